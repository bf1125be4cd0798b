# SPDX-License-Identifier: Apache-2.0
"""The verbs as functions. Each asks a process of its own (docs/engine.md): nothing is carried out
here, and what is measured is in the store as if it had been typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from stratabench import comparison, documents
from stratabench.comparison import Comparison
from stratabench.documents import Document
from stratabench.engine import Answer, Engine, Event, program
from stratabench.errors import Interrupted, StrataError
from stratabench.live import is_live, keep
from stratabench.options import (
    CompareOptions,
    ExportOptions,
    GenerateOptions,
    SweepOptions,
    TrainOptions,
    members,
)
from stratabench.progress import Progress

Store: TypeAlias = str | os.PathLike[str] | None
Shown: TypeAlias = bool | Callable[[Event], None]
NO_LEVELS = ("none",)  # of questions that run no level: nothing is got ready for them


def compare(
    model: Any,
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    environments: Mapping[str, str] | None = None,
    progress: Shown = True,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Compares a network's levels: proves that they do equal work, and times them side by side.

    Args:
        model: a torch.nn.Module or a function of tensors of this process, a model's name, or a
            path: "file.py:build", a .pt2, .pt or .onnx file.
        example_inputs: what such an object is called with: a tensor, a tuple of tensors, or a dict
            by keyword. Their shapes, the batch first, are the case's. None: of a name or path.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter that is measured (default: this one).
        environments: several interpreters by name, in place of `python`.
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata compare`: CompareOptions.

    Returns:
        A row for each level, in each case; a level that fails, or does other work, is one that
        says so.

    Raises:
        StrataError: it cannot begin, or nothing could be measured.
        Interrupted: with what was measured until then.

    ```python
    import torch
    import stratabench as strata

    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    result = strata.compare(net, torch.rand(8, 16), levels=["eager", "onednn"], budget_s=10)
    print(result["onednn"].time_ms, result["onednn"].speedup)
    ```
    """
    request = _request("compare", model, example_inputs, options, several=True)
    answer = ask(request, store, python, environments, progress)
    return Comparison(answer.result, answer.exit_code, answer.failed, store)


def profile(
    model: Any,
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    environments: Mapping[str, str] | None = None,
    progress: Shown = True,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Shows where the time of an iteration goes at each level: `compare` with `profile=True`, with
    the least measuring beside it (`preset="quick"`).

    Args:
        model: as of `compare`.
        example_inputs: as of `compare`.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter that is measured (default: this one).
        environments: several interpreters by name, in place of `python`.
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata profile`: CompareOptions.

    Returns:
        A row for each level, with a `profile`; `operations()` is all of them as a frame.

    Raises:
        StrataError: it cannot begin, or nothing could be measured.
        Interrupted: with what was measured until then.
    """
    options = {"profile": True, "preset": "quick", **options}
    return compare(
        model,
        example_inputs,
        store=store,
        python=python,
        environments=environments,
        progress=progress,
        **options,
    )


def sweep(
    model: Any,
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    environments: Mapping[str, str] | None = None,
    progress: Shown = True,
    **options: Unpack[SweepOptions],
) -> Document:
    """Finds which level is the fastest where, over lists of batches, sizes, threads and precisions.

    Args:
        model: as of `compare`.
        example_inputs: as of `compare`; `batch` replaces their first dimension.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter that is measured (default: this one).
        environments: several interpreters by name, in place of `python`.
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata sweep`: SweepOptions; the lists are `batch`, `size`, `threads`,
            `precision` and `mode`, and every combination is a point.

    Returns:
        A document; its table "points" has every point, "standings" how each level did over all of
        them, where a level is shown to be the fastest anywhere.

    Raises:
        StrataError: it cannot begin, or nothing could be measured.
        Interrupted: with what was measured until then.
    """
    request = _request("sweep", model, example_inputs, options, several=True)
    answer = ask(request, store, python, environments, progress)
    return Document(answer.result, answer.exit_code, answer.failed, store)


def train(
    model: Any,
    dataset: str | os.PathLike[str],
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    progress: Shown = True,
    **options: Unpack[TrainOptions],
) -> Document:
    """Trains the network at every level that trains, on the same images in the same order from the
    same weights.

    Args:
        model: a classifier of images (N, channels, height, width), which gives (N, classes); an
            object, a name or a path as of `compare`.
        dataset: what it learns: a set's name (`data("list")` says which there are; "digits" needs
            no files), or a folder of images by class.
        example_inputs: what a network that is an object is called with: images (N, channels,
            height, width), whose values do not matter. None: of a name or path.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter that is measured (default: this one).
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata train`: TrainOptions.

    Returns:
        A document; its table "result" has each level's accuracies and times.

    Raises:
        StrataError: it cannot begin, or nothing could be trained.
        Interrupted: with what was trained until then.
    """
    if is_live(model) and example_inputs is None:
        raise StrataError(
            "the images that the network takes are not known",
            "give example_inputs: a tensor (N, channels, height, width), as torch.zeros(1, 1, 8, 8)",
            where="example_inputs",
            exit_code=2,
        )
    request = _request("train", model, example_inputs, options) | {"dataset": dataset}
    answer = ask(request, store, python, None, progress)
    return Document(answer.result, answer.exit_code, answer.failed, store)


@dataclass(frozen=True)
class Folder:
    """What `export` or `generate` made, which can be given where a path can.

    Attributes:
        path: the folder.
        build: the shell command that builds its program.
        test: the shell command that tests it.
        json: all that is known of it (docs/engine.md).
    """

    path: Path
    build: str
    test: str
    json: Mapping[str, Any]

    def __fspath__(self) -> str:
        return str(self.path)


def export(
    model: Any,
    level: str,
    output: str | os.PathLike[str],
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    progress: Shown = True,
    **options: Unpack[ExportOptions],
) -> Folder:
    """Writes a level's artefact with a program that serves it, and the certificate of its proof.

    Args:
        model: as of `compare`.
        level: "aoti", "torchscript", "onnxruntime" or "openvino".
        output: the folder to make, which must not exist; all of it appears, or nothing.
        example_inputs: as of `compare`.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter whose PyTorch is used (default: this one).
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata export`: ExportOptions.

    Raises:
        StrataError: the network cannot be exported, or the level does other work.
    """
    request = _request("export", model, example_inputs, options)
    request |= {"level": level, "output": os.fspath(output)}
    return _folder(ask(request, store, python, None, progress, [level]))


def generate(
    model: Any,
    output: str | os.PathLike[str],
    example_inputs: Any = None,
    *,
    store: Store = None,
    python: str = "",
    progress: Shown = True,
    **options: Unpack[GenerateOptions],
) -> Folder:
    """Writes the network as C++ that needs oneDNN and OpenMP, and no strata.

    Args:
        model: as of `compare`.
        output: the folder to make, which must not exist; all of it appears, or nothing.
        example_inputs: as of `compare`.
        store: the file where runs are kept (default: strata's own).
        python: the interpreter whose PyTorch is used (default: this one).
        progress: False shows nothing; a function is called with each Event.
        **options: those of `strata generate`: GenerateOptions.

    Raises:
        StrataError: the network has an operation that generated programs lack, or the like.
    """
    request = _request("generate", model, example_inputs, options)
    request |= {"output": os.fspath(output)}
    return _folder(ask(request, store, python, None, progress, ["static"]))


def data(action: str = "list", name: str = "", **options: Any) -> Any:
    """Asks about data sets on this machine.

    Args:
        action: "list", "info", "verify", "fetch" or "show".
        name: the set that it is about; "list" has none.
        **options: the members that docs/engine.md has for the action, as `data_dir`.

    Returns:
        What docs/engine.md says of the action: of "list" a list of sets, of others a dict.

    Raises:
        StrataError: there is no such set, or the action failed.
    """
    request = {"verb": "data", "action": action, **members(options)}
    request |= {"name": name} if name else {}
    return ask(request, progress=False, levels=NO_LEVELS).result


def _request(
    verb: str, model: Any, example_inputs: Any, options: Mapping[str, Any], several: bool = False
) -> dict[str, Any]:
    if is_live(model):
        named = keep(model, example_inputs)
    elif example_inputs is None:
        named = os.fspath(model)
    else:
        raise StrataError(
            f"example_inputs is of a network given as an object, and {os.fspath(model)!r} is a name",
            "leave it out: 'file.py:build' may give the network with an example; `input` declares others",
            where="example_inputs",
            exit_code=2,
        )
    return {"verb": verb, "model": named, **members(options, several)}


def ask(
    request: Mapping[str, Any],
    store: Store = None,
    python: str = "",
    environments: Mapping[str, str] | None = None,
    progress: Shown = True,
    levels: Sequence[str] = (),
) -> Answer:
    """The answer to any request of docs/engine.md, from a process of its own. `levels`: those that
    it needs, which are got ready first; none: those that the request names."""
    with (
        Progress(progress, _short(request)) as shown,
        Engine(
            store,
            python or sys.executable,
            environments,
            levels or request.get("levels", ()),
            shown,
        ) as engine,
    ):
        try:
            return engine.ask(request)
        except Interrupted as stop:
            if isinstance(stop.result, Answer):
                stop.result = _result(stop.result, store)
            raise


def _short(request: Mapping[str, Any]) -> dict[str, str]:
    """A path is shown as its file's name."""
    model = str(request.get("model", ""))
    return {model: os.path.basename(model)} if os.path.dirname(model) else {}


def _result(answer: Answer, store: Store) -> Comparison | Document:
    return _typed(answer.result, answer.exit_code, answer.failed, store)


def _typed(result: Any, exit_code: int, failed: str, store: Store) -> Comparison | Document:
    schema = result.get("schema") if isinstance(result, dict) else None
    if schema == comparison.SCHEMA:
        return Comparison(result, exit_code, failed, store)
    if schema == documents.SCHEMA:
        return Document(result, exit_code, failed, store)
    raise StrataError(
        f"a result of the schema {schema!r} is not known here",
        f"allowed: {comparison.SCHEMA}, {documents.SCHEMA}; is this package older than what wrote it?",
    )


def _folder(answer: Answer) -> Folder:
    about = answer.result
    return Folder(Path(about["folder"]), about["build"], about["test"], about)


def load(path: str | os.PathLike[str]) -> Comparison | Document:
    """Reads the result that `save` wrote, or the program with `--format json`.

    Raises:
        StrataError: the file holds no result.
        OSError: it cannot be read.
    """
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise StrataError(
            f"{os.fspath(path)} is no JSON: {error}", "give a file that r.save() wrote"
        ) from None
    return _typed(result, 0, "", None)


class Runs:
    """A store of runs, as `open_store` gives it. Raises StrataError where there is no such run."""

    def __init__(self, store: Store = None) -> None:
        self.store = store

    def runs(
        self, limit: int = 20, name: str = "", model: str = "", since: str = ""
    ) -> list[dict[str, Any]]:
        """Lists runs, the newest first, each a dict with `run` (its id) and what it measured.

        Args:
            limit: at most so many; 0: all.
            name: only those with this in their names.
            model: only those with a network that has this in its name.
            since: only those that began on this day or later, as "2026-11-27".
        """
        asked = {"verb": "runs", "limit": limit, "name": name, "model": model, "since": since}
        answer = self._ask({key: value for key, value in asked.items() if value != ""})
        return list(answer.result)

    def show(self, run: str = "last") -> Comparison | Document:
        """Gives the result of a run, by its id, the beginning of one, its name, or "last"."""
        return _result(self._ask({"verb": "show", "run": run}), self.store)

    def diff(self, before: str, after: str, fail_above: float = 0.05) -> dict[str, Any]:
        """Says what changed from one run to another.

        Args:
            before: the earlier run, as of `show`.
            after: the later one.
            fail_above: the share by which a level may be slower.

        Returns:
            What `strata diff --format json` prints, and `exit_code`: 4 where a level is slower by
            more than `fail_above` with its whole 99% CI, else 1 where one has no number any more,
            else 5 where it could not be told, else 0.
        """
        asked = {"verb": "diff", "before": before, "after": after, "fail_above": fail_above}
        answer = self._ask(asked)
        return {**answer.result, "exit_code": answer.exit_code}

    def _ask(self, request: Mapping[str, Any]) -> Answer:
        return ask(request, self.store, progress=False, levels=NO_LEVELS)


def open_store(store: Store = None) -> Runs:
    """Opens the runs that were measured, here or by the command. `store`: its file (default:
    strata's own)."""
    return Runs(store)


def write_page(run: str, path: str | os.PathLike[str], store: Store) -> Path:
    """The report of a run of the store as one HTML file. Raises StrataError."""
    words = [*program(), "report", run, "--output", os.fspath(path)]
    if store is not None:
        words += ["--store", os.fspath(store)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise StrataError(done.stderr.strip() or f"`strata report` ended with {done.returncode}")
    return Path(path)
