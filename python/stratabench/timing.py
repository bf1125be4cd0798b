# SPDX-License-Identifier: Apache-2.0
"""Functions and commands side by side: in turns, in fresh processes, with the intervals and
verdicts of `compare`. No network is in it, and nothing is proven of what they do."""

from __future__ import annotations

import pickle
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stratabench.asking import NO_LEVELS, Shown, ask
from stratabench.documents import Document
from stratabench.errors import StrataError
from stratabench.live import name_of, own_paths, pickled

SERVER = Path(__file__).with_name("served.py")


def timeit(
    *what: Callable[[], Any] | str,
    setup: Callable[[], Any] | str | None = None,
    warmup: int = 1,
    runs: int = 0,
    budget_s: float = 20,
    timeout_s: float = 600,
    threads: int = 0,
    names: list[str] | None = None,
    progress: Shown = True,
) -> Document:
    """Compares two or more functions without arguments, or two or more commands (as texts).

    Functions are carried to fresh processes, where blocks of about 5 ms of each take turns; what
    they return is thrown away, so wait for a GPU in them. Commands run from their start to their
    end, in turns, without a shell.

    Args:
        *what: the functions, or the commands; the first is the reference.
        setup: of functions, one that is called once in each process; of commands, one that runs
            before each run. Not timed.
        warmup: calls, or runs, of each first, not timed.
        runs: of functions, processes of each, one after the other (0: six); of commands, runs of
            each (0: as many as the budget allows).
        budget_s: measured time of all of them together, seconds.
        timeout_s: the longest time of one block or run, seconds.
        threads: of PyTorch, in the processes of functions (0: its default).
        names: what they are called in the table (default: the functions' names, the commands).
        progress: False shows nothing; a function is called with each Event.

    Returns:
        A document with the table "commands"; a speedup above 1 is faster. What fails is a row that
        says so.

    Raises:
        StrataError: nothing can be compared.
        Interrupted: with what was measured until then.

    ```python
    import stratabench as strata

    numbers = list(range(1000))
    timed = strata.timeit(lambda: sum(numbers), lambda: max(numbers), names=["sum", "max"])
    timed.table()  # a row each: the time, and the speedup over the first with its 99% CI
    ```
    """
    commands = [isinstance(each, str) for each in what]
    if len(what) < 2 or any(commands) != all(commands):
        raise StrataError(
            f"timeit was given {len(what) - sum(commands)} functions and {sum(commands)} commands",
            "give two or more functions, or two or more commands",
            where="what",
            exit_code=2,
        )
    request = {
        "verb": "commands",
        "warmup": warmup,
        "runs": runs,
        "budget_s": float(budget_s),
        "timeout_s": float(timeout_s),
    }
    if names is not None:
        request["names"] = list(names)
    if all(commands):
        if setup is not None and not isinstance(setup, str):
            raise StrataError(
                "`setup` is a function, and commands are compared",
                "give a command",
                where="setup",
                exit_code=2,
            )
        request["commands"] = list(what)
        if setup:
            request["setup"] = setup
        return _asked(request, progress)
    with tempfile.TemporaryDirectory(prefix="strata-timeit-") as folder:
        request |= {"served": True, "commands": _servers(folder, what, setup, threads)}
        request.setdefault("names", _names(what))
        return _asked(request, progress)


def _asked(request: dict[str, Any], progress: Shown) -> Document:
    answer = ask(request, progress=progress, levels=NO_LEVELS)
    return Document(answer.result, answer.exit_code)


def _servers(folder: str, functions: tuple[Any, ...], setup: Any, threads: int) -> list[str]:
    """The command that serves each function. The folder is this user's alone."""
    if isinstance(setup, str):
        raise StrataError(
            "`setup` is a text, and functions are compared",
            "give a function without arguments",
            where="setup",
            exit_code=2,
        )
    for function in functions:
        if not callable(function):
            raise StrataError(
                f"what is timed is a function or a command, not of type {type(function).__name__}",
                where="what",
                exit_code=2,
            )
    words = []
    pickled(setup, "setup")  # an error has its name
    for number, function in enumerate(functions):
        # in one pickle, so that the function sees the global variables that the set-up makes
        both = pickled((setup, function), name_of(function))
        content = (own_paths(), threads, both)
        path = Path(folder) / f"{number}.pickle"
        path.write_bytes(pickle.dumps(content))
        words.append(shlex.join([sys.executable, "-P", str(SERVER), str(path)]))
    return words


def _names(functions: tuple[Any, ...]) -> list[str]:
    """Their own, each with a number where two are called alike (as lambdas are)."""
    names = [name_of(function) for function in functions]
    return [
        name if names.count(name) == 1 else f"{name} {number + 1}"
        for number, name in enumerate(names)
    ]
