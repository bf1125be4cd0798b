# SPDX-License-Identifier: Apache-2.0
"""What one process of a test session makes for all of them."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def once(folder: Path, make: Callable[[], None]) -> None:
    """Calls make() unless a process of this test session has done so for the folder; the others
    wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make()
            (folder / "made").touch()
