# SPDX-License-Identifier: Apache-2.0
"""Commands that tests of the launchers and of set-up run."""

from __future__ import annotations

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command, cwd=None, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STRATA_")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def executable(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def installer_calls(root: pathlib.Path) -> list[str]:
    """What fakes in this folder were called with, a line each."""
    return (root / "asked").read_text().splitlines() if (root / "asked").exists() else []
