# SPDX-License-Identifier: Apache-2.0
"""safetensors files for the fakes, with the standard library alone."""

from __future__ import annotations

import json
import struct
from typing import Any

FORMATS = {
    "F64": "d",
    "F32": "f",
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U8": "B",
    "BOOL": "B",
}


def read_tensors(path: str) -> dict[str, tuple[str, list[int], bytes]]:
    """Name -> (dtype, shape, raw bytes) of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    return {
        name: (
            entry["dtype"],
            entry["shape"],
            body[entry["data_offsets"][0] : entry["data_offsets"][1]],
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def write_tensors(path: str, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(
            struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values())
        )


def rows_of(dtype: str, shape: list[int], raw: bytes) -> list[list[float]]:
    values = [v[0] for v in struct.iter_unpack("<" + FORMATS[dtype], raw)]
    width = len(values) // shape[0]
    return [values[i * width : (i + 1) * width] for i in range(shape[0])]
