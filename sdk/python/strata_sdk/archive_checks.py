# SPDX-License-Identifier: Apache-2.0
"""What the archives of PyTorch (.pt2, .pt) are checked for before PyTorch reads them: that they
unpack to a size in proportion. Read by PyTorch's own reader, since another reader might find other
contents in the same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

FREE_BYTES = 64 << 20  # what any archive may unpack to
USUAL_EXPANSION = 20  # PyTorch stores tensors as they are and compresses nothing but code


class Refused(Exception):
    """An archive that holds what strata does not load; the message says where and what."""


def max_expansion() -> float:
    """How many times its own size an archive may unpack to: STRATA_MAX_EXPANSION, which
    --max-expansion sets.
    """
    return float(os.environ.get("STRATA_MAX_EXPANSION") or USUAL_EXPANSION)


def check_size(path: Path, unpacked: int, limit: float | None = None) -> None:
    """Raises Refused for an archive that unpacks to more than `limit` times its size and more than
    FREE_BYTES.
    """
    limit = max_expansion() if limit is None else limit
    size = max(1, path.stat().st_size)
    if unpacked > FREE_BYTES and unpacked > limit * size:
        times = unpacked / size
        raise Refused(
            f"its {size:,} bytes unpack to {unpacked:,}, {times:.0f} times as much; "
            f"allowed are {limit:g} times (--max-expansion)"
        )


def open_archive(path: Path) -> tuple[torch._C.PyTorchFileReader, list[str]]:
    """PyTorch's reader of the archive and its records' names. Raises Refused for a size out of
    proportion, RuntimeError for what is no archive.
    """
    reader = torch._C.PyTorchFileReader(str(path))
    names = reader.get_all_records()
    if len(set(names)) != len(names):
        raise Refused("it holds two records of one name")
    check_size(path, sum(reader.get_record_size(name) for name in names))
    return reader, names
