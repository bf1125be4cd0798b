# SPDX-License-Identifier: Apache-2.0
"""`python -m capture --spec spec.json --out DIR`: progress and one final JSON line on standard
output, everything else on standard error."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from capture.importing import why_not


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # the user's model may print

    def say(message: dict) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    if sys.argv[1:] == ["--serve"]:
        from capture.serve import serve

        return serve(lambda arguments: capture_one(arguments, say), say)
    return capture_one(sys.argv[1:], say)


def _parser(say: Callable[[dict], None]) -> argparse.ArgumentParser:
    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            say(
                {"ok": False, "code": "usage", "what": message, "hint": self.format_usage().strip()}
            )
            raise SystemExit(1)

    parser = Parser(
        prog="python -m capture",
        description="Captures one network for every level. With --serve alone: many, as src/capture/serve.py says.",
    )
    parser.add_argument(
        "--spec",
        required=True,
        help="spec.json, see docs/bundle.md; or its text, which begins with {",
    )
    parser.add_argument(
        "--out", required=True, type=Path, help="the bundle's folder; made or replaced"
    )
    parser.add_argument(
        "--strict",
        type=Path,
        help="a bundle of the same case in fp32, for a spec in another precision; its files are shared",
    )
    parser.add_argument(
        "--by-state",
        action="store_true",
        help="the folder's name gets a hash of the files that the network came from",
    )
    parser.add_argument(
        "--networks",
        type=Path,
        help="a folder of weight sets that cases of one network share; made where it is missing",
    )
    parser.add_argument(
        "--memory-limit",
        type=float,
        help="GiB that a level's process may have; a model of a package that needs more is not built",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="captures nothing: says what is wrong with the spec, or which inputs the network takes",
    )
    return parser


def capture_one(arguments: list[str], say: Callable[[dict], None]) -> int:
    """Captures one case."""
    options = _parser(say).parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the half-made folder is removed

    say({"progress": "loading PyTorch"})
    try:
        import torch  # noqa: F401

        from capture.bundle import capture, check
        from capture.errors import from_exception
        from capture.publishing import state_folder
    except Exception as error:  # PyTorch raises OSError of its own, too
        say(why_not(error))
        return 1
    try:
        text = options.spec
        spec = json.loads(text if text.startswith("{") else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        say(
            {
                "ok": False,
                "code": "usage",
                "what": f"cannot read the spec {options.spec}: {error}",
                "hint": "docs/bundle.md describes it",
            }
        )
        return 1
    try:
        if options.check:
            inputs = check(spec, lambda text: say({"progress": text}), options.memory_limit)
            say({"ok": True, "inputs": inputs})
            return 0
        info = capture(
            spec,
            options.out,
            lambda text: say({"progress": text}),
            options.strict,
            options.by_state,
            options.networks,
            options.memory_limit,
        )
    except BaseException as error:  # a user's model may raise anything, SystemExit too
        traceback.print_exc(file=sys.stderr)
        problem = from_exception(error, options.out)
        say({"ok": False, "code": problem.code, "what": problem.what, "hint": problem.hint})
        return 1
    say(
        {"ok": True}
        | ({"folder": str(state_folder(options.out, info))} if options.by_state else {})
    )
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads of a user's libraries must not hold the process
