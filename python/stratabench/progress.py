# SPDX-License-Identifier: Apache-2.0
"""Shows what a request does: one line that is replaced, in a notebook or (with tqdm) a terminal;
what stays goes to the log `stratabench`."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from stratabench.engine import Event

log = logging.getLogger("stratabench")


class Progress:
    """A context; called with each event. `wanted`: False: only the log; a function is called with
    each event in place of showing it. `short`: what a word of the events is shown as."""

    def __init__(
        self,
        wanted: bool | Callable[[Event], None] = True,
        short: Mapping[str, str] | None = None,
    ) -> None:
        self.listener = wanted if callable(wanted) else None
        self.line = _line() if wanted is True else None
        self.short = short or {}

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.line is not None:
            self.line.end()

    def __call__(self, event: Event) -> None:
        if self.listener is not None:
            self.listener(event)
        if event.kind in ("note", "log", "plan"):
            log.info(event.text)
        if self.line is None or event.kind not in ("progress", "log"):
            return
        text = event.text
        for word, shown in self.short.items():
            text = text.replace(word, shown)
        self.line.show(text[:100] + _left(event.seconds_left))


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return (
        f", about {seconds:.0f} s left" if seconds < 120 else f", about {seconds / 60:.0f} min left"
    )


class _Terminal:
    """tqdm's line, with the time that passed."""

    def __init__(self, tqdm: Any) -> None:
        self.bar = tqdm(bar_format="{desc} [{elapsed}]", leave=False, mininterval=0)

    def show(self, text: str) -> None:
        self.bar.set_description_str(text)

    def end(self) -> None:
        self.bar.close()


class _Notebook:
    """An output of the cell that is written anew, and empty at the end: a saved notebook keeps
    nothing of it."""

    def __init__(self) -> None:
        from IPython.display import display

        self.handle = display(  # type: ignore[no-untyped-call]
            {"text/plain": ""}, raw=True, display_id=True
        )
        self.begin = time.monotonic()

    def show(self, text: str) -> None:
        passed = int(time.monotonic() - self.begin)
        self._write(f"{text} [{passed // 60:02}:{passed % 60:02}]")

    def end(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        self.handle.update({"text/plain": text}, raw=True)


def _line() -> _Terminal | _Notebook | None:
    """None: there is nobody who would look at one, or no tqdm."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _Notebook()
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return _Terminal(tqdm)
