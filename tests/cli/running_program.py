# SPDX-License-Identifier: Apache-2.0
"""What a program that is still running has stored and started, and a disk that fills up."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest


def count_blocks(store: Path) -> int:
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for_blocks(store: Path, at_least: int) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (found := count_blocks(store)) >= at_least:
            return found
        time.sleep(0.1)
    raise AssertionError("no block was committed within 120 s")


def workers_of(strata) -> list[str]:
    """Command lines of living processes that were started for this test's levels."""
    found = []
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            if (
                str(strata.levels).encode() in status.read_bytes()
                and b"STRATA_LEVEL_DIR" in status.read_bytes()
            ):
                found.append(status.parent.name)
        except OSError:
            continue
    return found


def small_disk(folder: Path, kilobytes: int) -> list[str]:
    """The words before a command that gives it a file system of that size at `folder`, seen by no
    other process."""
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size={kilobytes}k none "$0" && exec "$@"',
        str(folder),
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], capture_output=True).returncode != 0
    ):
        pytest.skip("no file system can be mounted here without rights")
    return words
