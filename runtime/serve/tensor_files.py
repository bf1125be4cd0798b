# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files: 8 bytes of header length, a JSON header, raw tensors
(https://huggingface.co/docs/safetensors). Needs numpy alone."""

import json
import math
import struct
from pathlib import Path

import numpy as np

TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}


def check_place(name: str, at: dict, end: int, taken: list[tuple[int, int]]) -> None:
    """ValueError unless the tensor's bytes lie within the file and are as many as its type and
    shape take."""
    if at.get("dtype") not in TYPES:
        raise ValueError(f"the tensor '{name}' is of type {at.get('dtype')}, which numpy has not")
    shape, place = at.get("shape"), at.get("data_offsets")
    if (
        not all(
            isinstance(numbers, list)
            and all(type(number) is int and number >= 0 for number in numbers)
            for numbers in (shape, place)
        )
        or len(place) != 2
    ):
        raise ValueError(f"the tensor '{name}' has no shape or place")
    if not place[0] <= place[1] <= end or place[1] - place[0] != np.dtype(
        TYPES[at["dtype"]]
    ).itemsize * math.prod(shape):
        raise ValueError(
            f"the tensor '{name}' lies outside the file, or its bytes do not fit its type and shape"
        )
    if place[0] < place[1]:
        taken.append((place[0], place[1]))


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Name -> array. ValueError for a file that is damaged (tensors must fill it, none over
    another) and for a type that numpy lacks (BF16)."""
    data = path.read_bytes()
    if len(data) < 8 or struct.unpack("<Q", data[:8])[0] > len(data) - 8:
        raise ValueError(f"{path} is no safetensors file, or not all of it is there")
    body = 8 + struct.unpack("<Q", data[:8])[0]
    taken: list[tuple[int, int]] = []
    try:
        header = json.loads(data[8:body])
        if not isinstance(header, dict) or not all(isinstance(at, dict) for at in header.values()):
            raise ValueError("its header is no list of tensors")
        header.pop("__metadata__", None)
        for name, at in header.items():
            check_place(name, at, len(data) - body, taken)
        ends = [0, *(end for _, end in sorted(taken))]
        if [begin for begin, _ in sorted(taken)] != ends[:-1] or ends[-1] != len(data) - body:
            raise ValueError("tensors overlap, or no tensor holds some of its bytes")
    except (ValueError, RecursionError) as error:  # JSON's errors are ValueErrors
        raise ValueError(f"{path} is damaged: {error}") from None
    return {
        name: np.frombuffer(
            data[body + at["data_offsets"][0] : body + at["data_offsets"][1]], TYPES[at["dtype"]]
        ).reshape(at["shape"])
        for name, at in header.items()
    }


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes arrays in row-major order."""
    names = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}
    header, parts, at = {}, [], 0
    for name, value in tensors.items():
        parts.append(np.ascontiguousarray(value).tobytes())
        header[name] = {
            "dtype": names[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [at, at + len(parts[-1])],
        }
        at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
