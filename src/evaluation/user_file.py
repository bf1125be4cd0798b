# SPDX-License-Identifier: Apache-2.0
"""Calls what a user's file defines, and says what is wrong with what it returns."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Problem(Exception):
    """Something the user has to fix: `code` usage or failed, `what`, `hint`."""

    def __init__(self, code: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.code, self.what, self.hint = code, what, hint


def load(path: Path) -> Any:
    """The imported file; its folder joins sys.path, as `python file.py` would do it."""
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location("strata_score", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["strata_score"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # a user's file may call exit()
        raise Problem(
            "usage",
            f"--eval: {path} cannot be imported: {place(error, path)}",
            "fix the file, or run it with python to see the whole trace",
        ) from error
    return module


def function(module: Any, path: Path, name: str) -> Callable:
    callable_ = getattr(module, name, None)
    if callable(callable_):
        return callable_
    own = [
        n
        for n, v in vars(module).items()
        if callable(v) and getattr(v, "__module__", None) == module.__name__
    ]
    near = difflib.get_close_matches(name, own, n=1)
    raise Problem(
        "usage",
        f"--eval: {path} has no function '{name}'",
        f"did you mean '{near[0]}'? "
        if near
        else f"it has: {', '.join(own) or 'no functions'}; it needs inputs() and the score",
    )


def called(name: str, what: Callable, path: Path, *arguments: Any) -> Any:
    """The result of the file's function `name`; Problem with the line in the user's file when it
    raises."""
    try:
        return what(*arguments)
    except BaseException as error:
        traceback.print_exc(file=sys.stderr)
        code = "usage" if name == "inputs" else "failed"
        raise Problem(
            code,
            f"--eval: {name}() of {path.name} raised {place(error, path)}",
            "the log has the whole trace",
        ) from error


def place(error: BaseException, path: Path) -> str:
    """`Type: message (file:line)`, the deepest line in the user's own file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).resolve() == path.resolve()]
    frame = next(reversed(own or frames), None)
    message = " ".join(str(error).split())[:400]
    return f"{type(error).__name__}{': ' if message else ''}{message}" + (
        f" ({Path(frame.filename).name}:{frame.lineno})" if frame else ""
    )


def check_arrays(returned: Any) -> None:
    """Refuses what inputs() of no network may return: neither an array nor a dict of arrays."""
    named = returned if isinstance(returned, dict) else {"": returned}
    for name, value in named.items():
        if not hasattr(value, "__array__"):
            raise Problem(
                "usage",
                f"--eval: inputs() gave a {type(value).__name__}{f' for {name}' if name else ''}",
                "return NumPy arrays: one, or a dict of them by the network's inputs' names",
            )


def checked_inputs(returned: Any, bundle: dict) -> dict[str, np.ndarray]:
    """inputs()'s result by input name: N examples each, of the network's own types and shapes."""
    check_arrays(returned)
    inputs = bundle["inputs"]
    names = [i["name"] for i in inputs]
    if not isinstance(returned, dict):
        if len(inputs) != 1:
            raise Problem(
                "usage",
                f"--eval: inputs() returned one {type(returned).__name__}, the network has {len(inputs)} inputs",
                f"return a dict with {', '.join(names)}",
            )
        returned = {names[0]: returned}
    if set(returned) != set(names):
        raise Problem(
            "usage",
            f"--eval: inputs() named {', '.join(map(str, returned)) or 'nothing'}",
            f"the network's inputs are: {', '.join(names)}",
        )
    arrays: dict[str, np.ndarray] = {}
    for declared in inputs:
        name, batch, rest = declared["name"], bundle["case"]["batch"], declared["shape"][1:]
        if declared["dtype"] == "bfloat16":
            raise Problem(
                "usage",
                f"--eval: the network's input {name} is bfloat16, which NumPy has not",
                "let the network take float32 and convert it",
            )
        if declared["shape"][:1] != [batch]:
            raise Problem(
                "usage",
                f"--eval: the network's input {name} is {declared['shape']}: its first extent is not the batch of {batch}",
                "a score needs inputs whose first extent counts examples",
            )
        array = np.asarray(returned[name])
        if array.ndim < 1 or list(array.shape[1:]) != rest or not len(array):
            raise Problem(
                "usage",
                f"--eval: inputs() gave {name} of shape {list(array.shape)}",
                f"allowed: {['N', *rest]}, N examples from 1",
            )
        if array.dtype.name != declared["dtype"]:
            raise Problem(
                "usage",
                f"--eval: inputs() gave {name} as {array.dtype.name}",
                f"the network takes {declared['dtype']}: .astype('{declared['dtype']}')",
            )
        arrays[name] = array
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise Problem(
            "usage",
            f"--eval: inputs() gave different numbers of examples: {', '.join(f'{n} {c}' for n, c in counts.items())}",
            "give every input for every example",
        )
    return arrays


def checked_score(value: Any, count: int, name: str) -> tuple[float, list[float] | None]:
    """The score, and each example's where there is one an example."""
    allowed = f"allowed: a number, or {count} numbers, one an example"
    try:
        array = np.asarray(
            value.detach().cpu() if hasattr(value, "detach") else value, dtype=np.float64
        )
    except (TypeError, ValueError) as error:
        raise Problem(
            "failed", f"{name}() returned a {type(value).__name__}: {error}", allowed
        ) from error
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise Problem(
            "failed",
            f"{name}() returned an array of shape {list(array.shape)} for {count} examples",
            allowed,
        )
    wrong = ~np.isfinite(np.atleast_1d(array))
    if wrong.any():
        where = f" for example {int(np.argmax(wrong))}" if array.ndim else ""
        raise Problem(
            "failed",
            f"{name}() returned {np.atleast_1d(array)[wrong][0]}{where}",
            "return finite numbers",
        )
    return float(array.mean()), array.tolist() if array.ndim else None
