# SPDX-License-Identifier: Apache-2.0
"""What the operations of fake_level.py share: refusals, rounding, and taking the time that is told.
Standard library only."""

from __future__ import annotations

import struct
import time
from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer with ok false."""

    def __init__(self, code: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.fields = {"code": code, "what": what, "hint": hint}


def refusal(identity: int | None, code: str, what: str, hint: str = "") -> Json:
    return {"id": identity, "ok": False, "code": code, "what": what, "hint": hint}


def out_of_memory(identity: int | None) -> Json:
    return refusal(identity, "out_of_memory", "no memory left", "a smaller batch")


def to_bfloat16(value: float) -> float:
    """The nearest number of bfloat16."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    (rounded,) = struct.unpack(
        "<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)
    )
    return rounded


def spend(walls: list[int], since_ns: int | None = None) -> None:
    """Takes as long as it says: the driver holds that against its own clock. What was done since
    `since_ns` is a part of it."""
    done_ns = 0 if since_ns is None else time.monotonic_ns() - since_ns
    time.sleep(max(0, sum(walls) - done_ns) * 1e-9)
