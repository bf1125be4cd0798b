# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files: 8 bytes of header length, a JSON header, raw tensors (https://huggingface.co/docs/safetensors). Needs numpy alone."""
import json
import struct
from pathlib import Path

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Name -> array. ValueError for a file that is damaged, KeyError for a type that numpy lacks (BF16)."""
    data = path.read_bytes()
    if len(data) < 8 or struct.unpack("<Q", data[:8])[0] > len(data) - 8:
        raise ValueError(f"{path} is no safetensors file, or not all of it is there")
    body = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:body])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[body + at["data_offsets"][0]:body + at["data_offsets"][1]], TYPES[at["dtype"]]).reshape(at["shape"]) for name, at in header.items()}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes arrays in row-major order."""
    names = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}
    header, parts, at = {}, [], 0
    for name, value in tensors.items():
        parts.append(np.ascontiguousarray(value).tobytes())
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
