# SPDX-License-Identifier: Apache-2.0
"""How the capture fails: a code, what went wrong, and what to do; from any exception."""

from __future__ import annotations

import errno
from pathlib import Path

from strata_sdk.models import ModelError, last_line

Problem = ModelError  # one kind of failure for the model's part and the rest: code, what, hint

_DISK = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is larger than the limit for files",
}


def disk_trouble(error: BaseException) -> str | None:
    """Names a full disk in an exception of Python, safetensors or torch; None for anything else."""
    if isinstance(error, OSError) and error.errno in _DISK:
        return _DISK[error.errno]
    text = str(error)
    for number, words in _DISK.items():
        if f"os error {number})" in text:
            return words
    if "PytorchStreamWriter" in text or "file write failed" in text:
        return _DISK[errno.ENOSPC]
    return None


def from_exception(error: BaseException, out: Path) -> Problem:
    """The failure to report for `error`; out is the folder that was being written."""
    if isinstance(error, Problem):
        return error
    full = disk_trouble(error)
    if full:
        return Problem(
            "failed",
            f"cannot write the bundle to {out.parent}: {full}",
            "free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        )
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return Problem("failed", "the capture was interrupted", "run it again")
    if isinstance(error, PermissionError):
        return Problem(
            "failed",
            f"cannot write {error.filename or out}: permission denied",
            "choose a folder that you may write",
        )
    if is_out_of_memory(error):
        return Problem(
            "failed", f"out of memory: {last_line(error)}", "a smaller batch or input needs less"
        )
    return Problem("failed", f"the capture failed: {last_line(error)}")  # the driver keeps the log


def is_out_of_memory(error: BaseException) -> bool:
    """True for Python's, the CPU allocator's and CUDA's way of saying so."""
    return isinstance(error, MemoryError) or any(
        words in str(error)
        for words in ("can't allocate memory", "out of memory", "not enough memory")
    )
