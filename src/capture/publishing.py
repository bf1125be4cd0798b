# SPDX-License-Identifier: Apache-2.0
"""How a bundle's folder appears: whole or not at all, also where several captures of one network
run at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from capture.errors import Problem


def identity(folder: Path) -> tuple[int, int] | None:
    """Tells a folder from a later one of the same name."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns


def state_folder(out: Path, info: dict) -> Path:
    """Where a capture lies that is kept by its state."""
    return out.parent / f"{out.name}.{info['state'][:16]}"


def check_space(folder: Path, needed: int) -> None:
    """Refuses early what cannot fit. `needed`: bytes, of the weights alone."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Problem(
            "failed",
            f"no space left for the bundle in {folder.parent}: it needs {needed / 1e6:.0f} MB, {free / 1e6:.0f} MB are free",
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        )


def publish(partial: Path, out: Path, replaced: tuple[int, int] | None) -> None:
    """Gives the finished bundle its name, unless another capture's has it since. `replaced`: what
    had the name at the start, if anything."""
    if replaced and identity(out) == replaced:
        old = out.parent / f".{out.name}.partial-old-{os.getpid()}"
        out.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        partial.rename(out)
    except OSError:
        if not (out / "bundle.json").exists():
            raise


def remove_left_overs(out: Path) -> None:
    """Removes what killed captures of the same bundle left."""
    for path in out.parent.glob(f".{out.name}.partial-*"):
        pid = path.name.rpartition("-")[2]
        if not (pid.isdigit() and _is_running(int(pid))):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(pid: int) -> bool:
    """One that has ended and that nobody waited for yet is not."""
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[0]
            != "Z"
        )
    except OSError:
        return False
