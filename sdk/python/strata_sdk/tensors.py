# SPDX-License-Identifier: Apache-2.0
"""safetensors files to and from numpy arrays, without torch, and the hash that proves what a
framework holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

_ALIGNMENT = 64  # a cache line; what PyTorch's own CPU allocator gives


def read(path: str, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The tensors of a file (all, or those named) as contiguous arrays of their own, aligned to 64
    bytes."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return {
            name: aligned(file.get_tensor(name))
            for name in (names if names is not None else file.keys())
        }


def names_in(path: str) -> list[str]:
    """The names of the tensors of a file."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return list(file.keys())


def write(path: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes contiguous copies where needed; shapes (0-d included) stay as they are."""
    from safetensors.numpy import save_file

    save_file(
        {
            name: value if value.flags.c_contiguous else value.copy(order="C")
            for name, value in tensors.items()
        },
        path,
    )


def aligned(array: np.ndarray) -> np.ndarray:
    """A contiguous, writable copy whose data start at a multiple of 64 bytes."""
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def sha256(array: np.ndarray) -> str:
    """SHA-256 of the contiguous little-endian bytes."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return hashlib.sha256(np.ascontiguousarray(little).tobytes()).hexdigest()
