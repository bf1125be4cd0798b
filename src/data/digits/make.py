#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes images-idx3-ubyte.gz and labels-idx1-ubyte.gz beside this file from scikit-learn's copy of
the digits (README.md); the same bytes at every call."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

from sklearn.datasets import load_digits

FOLDER = Path(__file__).resolve().parent


def write(name: str, sizes: tuple[int, ...], values: bytes) -> None:
    header = struct.pack(">4B", 0, 0, 8, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes)
    (FOLDER / name).write_bytes(gzip.compress(header + values, 9, mtime=0))


digits = load_digits()
write("images-idx3-ubyte.gz", digits.images.shape, digits.images.astype("uint8").tobytes())
write("labels-idx1-ubyte.gz", digits.target.shape, digits.target.astype("uint8").tobytes())
