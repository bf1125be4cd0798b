# SPDX-License-Identifier: Apache-2.0
"""From an exception to the protocol's failure: code, what, hint (docs/protocol.md, "Rules")."""

from __future__ import annotations

import os
import re
import traceback

CODES = ("unsupported", "unavailable", "out_of_memory", "failed", "bad_request")

# What allocators say: Python, C++, PyTorch on CPU and CUDA, ONNX Runtime, the C library.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad[_ ]alloc|DefaultCPUAllocator|can't allocate memory|cannot allocate memory|failed to allocate memory",
    re.IGNORECASE,
)


class LevelError(Exception):
    """A failure that a level explains itself: `code` is one of CODES, `what` names it, `hint` says
    what to do."""

    code = "failed"

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


class UnsupportedError(LevelError):
    """This level cannot run this case; `what` names the operation and where it is."""

    code = "unsupported"


class UnavailableError(LevelError):
    """A library or a device is missing."""

    code = "unavailable"


class BadRequest(LevelError):
    """A request that is malformed or out of order."""

    code = "bad_request"


def describe(error: BaseException) -> dict[str, str]:
    """code, what and hint of any exception. An unexpected one is `failed` (or `out_of_memory`) with
    its last traceback line and place."""
    if isinstance(error, LevelError):
        return {"code": error.code, "what": error.what, "hint": error.hint}
    # ModelError, which belongs to the capture
    if hasattr(error, "what") and hasattr(error, "hint") and hasattr(error, "code"):
        return {
            "code": error.code if error.code in CODES else "failed",
            "what": str(error.what),
            "hint": str(error.hint),
        }
    if re.search(r"Python\.h: No such file", str(error)):
        return {
            "code": "unavailable",
            "what": "the C++ compiler does not find Python's header Python.h, which generated code includes",
            "hint": "install it for the Python that is measured (Debian: apt-get install python3-dev)",
        }
    text = last_line(error)
    if (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or _OUT_OF_MEMORY.search(str(error))
    ):
        return {
            "code": "out_of_memory",
            "what": text,
            "hint": "use a smaller batch or input, or a machine with more memory",
        }
    return {"code": "failed", "what": text, "hint": "the whole traceback is in the worker's log"}


def last_line(error: BaseException) -> str:
    """`Type: message (file:line in function)`, on one line of bounded length."""
    message = " ".join(str(error).split())
    if len(message) > 600 and (said := re.search(r"^.*\berror: .*$", str(error), re.MULTILINE)):
        # a compiler's words stand behind the command that called it, which alone is longer
        message = f"{said[0].strip()[:300]} in: {message}"
    if len(message) > 600:
        message = message[:600] + "..."
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name})"
        if frames
        else ""
    )
    return (
        f"{type(error).__name__}: {message}{place}" if message else f"{type(error).__name__}{place}"
    )
