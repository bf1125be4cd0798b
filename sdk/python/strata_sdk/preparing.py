# SPDX-License-Identifier: Apache-2.0
"""What a Python `prepare` script shares with others: its command line, the one JSON line it answers
with, and a network's exported form. Needs torch only where used."""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from .errors import LevelError, UnavailableError, UnsupportedError, describe, last_line

if TYPE_CHECKING:
    import torch


def main(prepare: Callable[..., None], *further: str, by_variant: bool = False) -> None:
    """Calls prepare(bundle, cache) with the folders of --bundle and --cache, and by name what the
    `further` options say; answers and exits as answer_for() does. `by_variant`: each variant has an
    artefact of its own, and prepare() gets its name as `variant` (default: none)."""
    parser = argparse.ArgumentParser(description="makes a level's artefact from a bundle")
    for name in ("bundle", "cache"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in further:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--variant", default="default")
    options = vars(parser.parse_args())
    bundle, cache = options.pop("bundle").resolve(), options.pop("cache").resolve()
    if not by_variant:
        del options["variant"]

    def work() -> None:
        cache.mkdir(parents=True, exist_ok=True)
        prepare(bundle, cache, **options)

    answer_for(work)


def answer_for(work: Callable[[], None]) -> NoReturn:
    """Does the work, prints the JSON line of docs/protocol.md on how it went, after those of its
    Steps, and exits with 0 or 1."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # exporters print
    Steps.stream = stream
    answer: dict = {"ok": True}
    try:
        work()
    except ImportError as error:
        traceback.print_exc()
        answer = {
            "ok": False,
            **describe(
                UnavailableError(
                    last_line(error), f"install the missing package for {sys.executable}"
                )
            ),
        }
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        answer = {"ok": False, **describe(error)}
    stream.write(json.dumps(answer) + "\n")
    stream.flush()
    sys.stderr.flush()
    os._exit(0 if answer["ok"] else 1)


def delegate(command: list[str]) -> None:
    """Runs a program that ends with answer_for(), in another Python. Its failure is raised here."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise LevelError(
            f"{' '.join(command[:2])} ended with exit code {done.returncode} and no answer",
            "the lines above say more",
        ) from None
    if not answer["ok"]:
        error = LevelError(answer["what"], answer["hint"])
        error.code = answer["code"]
        raise error


class Steps:
    """What is done now: for the log, with the time since the beginning, and for whoever waits."""

    stream: TextIO | None = None  # of answer_for()

    def __init__(self) -> None:
        self.begin = time.monotonic()

    def __call__(self, what: str) -> None:
        print(f"{time.monotonic() - self.begin:6.1f} s  {what}", file=sys.stderr, flush=True)
        if self.stream is not None:
            self.stream.write(json.dumps({"progress": what}) + "\n")
            self.stream.flush()


def exported(bundle_dir: Path) -> torch.export.ExportedProgram:
    """The bundle's network as the capture exported it: positional inputs, a flat tuple as its
    result, the `timed` weights. A deep case is exported here, with its taps. UnsupportedError with
    the place in the model's source when it does not export."""
    import torch

    from . import models

    bundle = models.read_bundle(bundle_dir)
    if not bundle["export"]["ok"]:
        where = f" ({bundle['export']['where']})" if bundle["export"]["where"] else ""
        raise UnsupportedError(
            f"the network does not export: {bundle['export']['what']}{where}",
            "only levels that run the Python module can run it",
        )
    if not bundle["case"].get("deep"):
        return read_exported(bundle_dir)
    module, names = models.build_module(bundle_dir)
    example = models.example_inputs(bundle_dir)
    with torch.no_grad():
        return torch.export.export(
            models.graph_module(module, bundle), tuple(example[name] for name in names)
        )


def save_exported(program: torch.export.ExportedProgram, path: Path, with_inputs: bool) -> None:
    """Writes a bundle's model.pt2: the program without its weights, which are the weight set
    `timed`. `with_inputs`: with its example inputs; else they are entry 0 of the ring."""
    import torch

    hollow = copy.copy(program)
    # one number in the place of each weight, with the weight's type and shape; tied ones stay so
    numbers = {
        (value.data_ptr(), value.dtype): torch.zeros((), dtype=value.dtype)
        for value in program.state_dict.values()
    }
    hollow._state_dict = {
        name: _alike(value, numbers[value.data_ptr(), value.dtype].expand(value.shape))
        for name, value in program.state_dict.items()
    }
    if not with_inputs:
        hollow._example_inputs = None
    with warnings.catch_warnings():
        # for which those are taken
        warnings.filterwarnings("ignore", message="No complete tensor found")
        torch.export.save(hollow, path)


def read_exported(bundle_dir: Path, weight_set: str = "timed") -> torch.export.ExportedProgram:
    """A bundle's model.pt2 with the weights of a set in it, and with example inputs."""
    import torch

    from . import models

    try:
        program = _load_exported(bundle_dir)
    except Exception as error:  # its readers raise RuntimeError, KeyError, SerializeError and more
        written_by = models.read_bundle(bundle_dir)["torch"]
        if written_by == torch.__version__:
            raise
        raise UnsupportedError(
            f"the network was captured by PyTorch {written_by}, whose export PyTorch {torch.__version__} cannot read: {last_line(error)}",
            "name the environment with the older PyTorch first among --env: the network is captured there",
        ) from error
    tensors = weights(bundle_dir, weight_set)
    by_place: dict[int, torch.Tensor] = {}  # tied weights share one
    for name, value in list(program.state_dict.items()):
        content = by_place.setdefault(value.data_ptr(), tensors[name])
        program.state_dict[name] = _alike(
            value, content if content.shape == value.shape else tensors[name]
        )
    if program.example_inputs is None:
        program._example_inputs = (tuple(models.example_inputs(bundle_dir).values()), {})
    return program


def _load_exported(bundle_dir: Path) -> torch.export.ExportedProgram:
    """An operator of another package is there once that was imported, which the model's own code
    does: it is built where loading fails."""
    import torch

    from . import models

    path = bundle_dir / "model.pt2"
    try:
        return torch.export.load(path)
    except Exception:
        models.build_model(models.read_bundle(bundle_dir)["case"]["model"])
        return torch.export.load(path)


def _alike(value: torch.Tensor, content: torch.Tensor) -> torch.Tensor:
    """A parameter or a plain tensor, as `value` is."""
    import torch

    return (
        torch.nn.Parameter(content, requires_grad=value.requires_grad)
        if isinstance(value, torch.nn.Parameter)
        else content
    )


def exported_in_mode(bundle_dir: Path) -> torch.export.ExportedProgram:
    """The same in the case's precision: conversions from and to the caller's types are part of it,
    its parameters have the mode's type."""
    import torch

    from . import models, precision

    bundle = models.read_bundle(bundle_dir)
    if bundle["case"]["precision"] not in ("bf16", "amp-bf16"):
        return exported(bundle_dir)
    module, names = models.build_module(bundle_dir)
    view = models.graph_module(precision.in_mode(module, bundle["case"], bundle["outputs"]), bundle)
    example = models.example_inputs(bundle_dir)
    try:
        with torch.no_grad():
            return torch.export.export(view, tuple(example[name] for name in names))
    except Exception as error:
        raise UnsupportedError(
            f"the network does not export in {bundle['case']['precision']}: {last_line(error)}",
            "only levels that run the Python module can run it",
        ) from error


def refuse_read_values(bundle: dict) -> None:
    """UnsupportedError with the place where the network makes a Python value of a value of its
    input, which is a constant in what is specialised for one input."""
    if places := bundle.get("reads_values"):
        raise UnsupportedError(
            f"the network reads a value of its input, which the artefact would hold as a constant: {', '.join(places[:3])}",
            "levels that run the Python module can run it",
        )


def traced(
    view: torch.nn.Module, inputs: tuple[torch.Tensor, ...], bundle: dict
) -> torch.jit.ScriptModule:
    """The traced module. UnsupportedError where a trace would hold something of its input."""
    import warnings

    import torch

    refuse_read_values(bundle)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        try:
            # the proof compares with float64; the tracer's own check only runs it again
            script = torch.jit.trace(view, inputs, check_trace=False)
        except Exception as error:
            raise UnsupportedError(
                f"torch.jit.trace cannot trace the network: {' '.join(str(error).split())[:300]}",
                "levels that run the Python module can run it",
            ) from error
    places = [
        f"{w.filename}:{w.lineno}"
        for w in caught
        if issubclass(w.category, torch.jit.TracerWarning)
    ]
    # alone each may be harmless: a shape that is checked, an operation that torch.export lacks, an
    # extent that follows values and stays a tensor
    extents = bundle.get("reads_extents", [])
    if bool(places) + bool(extents) + (not bundle["export"]["ok"]) > 1:
        raise UnsupportedError(
            f"the network's path depends on its input, a trace would hold one of them: {(places + extents)[0]}",
            "levels that run the Python module can run it",
        )
    return script


def weight_sets(bundle_dir: Path) -> list[str]:
    """The names of the bundle's weight sets, `timed` and generic ones."""
    return sorted(path.stem for path in (bundle_dir / "weights").glob("*.safetensors"))


def weights(bundle_dir: Path, weight_set: str) -> dict[str, torch.Tensor]:
    """A weight set of the bundle by PyTorch names."""
    from safetensors.torch import load_file

    return load_file(str(bundle_dir / "weights" / f"{weight_set}.safetensors"))


def set_weights(program: torch.export.ExportedProgram, tensors: dict[str, torch.Tensor]) -> None:
    """Writes a weight set into an exported program, in place."""
    import torch

    with torch.no_grad():
        for name, value in program.state_dict.items():
            value.copy_(tensors[name])
