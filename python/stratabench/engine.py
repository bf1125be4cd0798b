# SPDX-License-Identifier: Apache-2.0
"""A client of `strata engine` (docs/engine.md): everything that Python asks for goes through it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratabench.errors import Interrupted, StrataError

PACKAGE = Path(__file__).resolve().parent
CLONE = PACKAGE.parents[1]
ENDED = None  # in the queue of lines: standard output has ended


@dataclass(frozen=True)
class Event:
    """What happens while a request runs; a function given as `progress` is called with each.

    Attributes:
        kind: "progress" (what is done now), "note" (a sentence that stays), "plan" (of a sweep),
            "restart" (of a comparison: `data` has `run`, `done`, `planned`) or "log" (a line of
            what is set up or compiled first).
        text: what people read.
        seconds_left: how long it takes; None: not known.
        data: the event as docs/engine.md has it; of "log" empty.
    """

    kind: str
    text: str
    seconds_left: float | None
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """`result`: an object, or a list where the verb gives one (docs/engine.md)."""

    result: Any
    run: str  # its id; "": none was made
    exit_code: int
    failed: str  # why it ended before its end; "": it did not


def program() -> list[str]:
    """The command `strata` that belongs to this package, or the one that STRATA_PROGRAM names.
    Raises StrataError where there is none."""
    if named := os.environ.get("STRATA_PROGRAM"):
        return [named]
    if (PACKAGE / "bin/strata").exists():
        return [sys.executable, "-P", "-m", "stratabench.launcher"]
    if (CLONE / "strata").exists():
        return [str(CLONE / "strata")]
    raise StrataError(
        f"{PACKAGE} is neither an installed package nor part of a clone: it has no program",
        "install the wheel, or put the folder `python` of a clone on PYTHONPATH",
        exit_code=3,
    )


def is_own(python: str) -> bool:
    """Whether it is what `strata` measures unless another is named."""
    own = CLONE / ".venv" if not (PACKAGE / "bin/strata").exists() else Path(sys.prefix)
    return os.path.abspath(python).startswith(f"{own}/")


def _plain(value: Any) -> Any:
    """What JSON has, of what numpy, pathlib and the like have for it."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


class Engine:
    """The process, as a context: its end ends the process. It has a session of its own, so that a
    terminal's Ctrl-C comes to this process, which passes it on once."""

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        python: str = "",
        environments: Mapping[str, str] | None = None,
        levels: Sequence[str] = (),
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        words = [*program(), "engine"]
        if store is not None:
            words += ["--store", os.fspath(store)]
        for name, path in (environments or {}).items():
            words += ["--env", f"{name}={path}"]
        if python and not environments and not is_own(python):
            words += ["--python", python]
        if levels:
            words += ["--levels", ",".join(levels)]
        self.on_event = on_event or (lambda event: None)
        self.is_asked = False  # and has not answered
        self.lines: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self.said: deque[str] = deque(maxlen=20)
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", self.process.stdout), ("err", self.process.stderr))
        ]
        for reader in reversed(self.readers):  # the first waits for the second at its end
            reader.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            if (
                self.is_asked
            ):  # an error of who listens, as an interrupt: nobody waits for the answer
                self._signal(signal.SIGINT)
            if self.process.stdin:
                with contextlib.suppress(OSError):
                    self.process.stdin.close()  # it ends when all is answered
            if not self.is_asked and self._is_there_after(2):
                self._signal(
                    signal.SIGINT
                )  # a process that was forked meanwhile holds its input open
            self._is_there_after(10)
        finally:  # an interrupt is the caller's
            if self.process.poll() is None:
                self._signal(signal.SIGKILL)
                self.process.wait()

    def _is_there_after(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is None

    def ask(self, request: Mapping[str, Any]) -> Answer:
        """The answer to a request, whose "version" is added. Raises StrataError where it is an
        error, and Interrupted: what had been measured by then is in it."""
        line = json.dumps({"id": 1, "request": {"version": 1, **request}}, default=_plain)
        interrupts = 0
        self.is_asked = True
        try:
            assert self.process.stdin
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended, and why is in what it said
        while True:
            try:
                for answer in self._answers():
                    return self._taken(answer, interrupts > 0)
                raise self._died(interrupts > 0)
            except Interrupted:
                raise
            except KeyboardInterrupt:
                interrupts += 1
                # the first lets it end as by Ctrl-C in a terminal, and answer with what it has
                self._signal(signal.SIGINT if interrupts == 1 else signal.SIGKILL)

    def _taken(self, answer: dict[str, Any], interrupted: bool) -> Answer:
        self.is_asked = False
        run = answer.get("run") or ""
        if "error" in answer:
            if interrupted:
                raise Interrupted(None, run)
            raise StrataError.of(answer["error"], run)
        taken = Answer(answer["result"], run, answer["exit_code"], answer.get("failed") or "")
        if interrupted and answer.get("cancelled"):
            raise Interrupted(taken, run)
        return taken

    def _answers(self) -> Iterator[dict[str, Any]]:
        """Answers as they come; what else comes is told to who listens."""
        while (line := self.lines.get()) is not ENDED:
            source, text = line
            if source == "err":
                self.said.append(text)
                self.on_event(Event("log", text, None, {}))
                continue
            told = json.loads(text)
            if "event" not in told:
                yield told
                continue
            words = told.get("doing") or told.get("text") or ""
            self.on_event(Event(told["event"], words, told.get("seconds_left"), told))

    def _read(self, name: str, stream: Any) -> None:
        try:
            for line in stream:
                if line.strip():
                    self.lines.put((name, line.rstrip("\n")))
        finally:
            if name == "out":
                self.readers[1].join(5)  # why it ended
                self.lines.put(ENDED)

    def _died(self, interrupted: bool) -> BaseException:
        self.is_asked = False
        if interrupted:
            return Interrupted()
        code = self.process.wait()
        how = f"by signal {-code}" if code < 0 else f"with {code}"
        said = "\n".join(self.said)
        return StrataError(
            f"strata ended {how} before it had answered" + (f":\n{said}" if said else ""),
            "what was measured is in the store, and `strata resume` goes on with it",
            exit_code=code if code > 0 else 1,
        )

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
