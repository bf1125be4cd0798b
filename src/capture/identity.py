# SPDX-License-Identifier: Apache-2.0
"""What a captured network is: a hash of its weights, and the manifest of a bundle's files."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import Tensor, nn

from capture.opened import sha256_of, state_of_files

MANIFEST = "manifest.json"


def network_of(module: nn.Module) -> dict:
    """bundle.json's `network`: a hash over every parameter and buffer (name, type, shape,
    values)."""
    named = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    digest = hashlib.sha256()
    for name, tensor in named:
        digest.update(f"{name} {tensor.dtype} ".encode())
        if not isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            digest.update(f"{list(tensor.shape)}\n".encode())
            digest.update(_bytes_of(tensor.detach()))
    return {"sha256": digest.hexdigest(), "tensors": len(named)}


def _bytes_of(tensor: Tensor) -> memoryview:
    """The values in row-major order."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return memoryview(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())


def state_of_capture(info: dict, folder: Path) -> str:
    """One hash of the files that the network came from and of what came of them."""
    whole = hashlib.sha256(f"{state_of_files(info['read'])} {info['network']['sha256']}".encode())
    for name in ("graph.txt", "graph.json"):
        if (folder / name).is_file():
            whole.update(f" {name} {sha256_of(folder / name)[0]}".encode())
    return whole.hexdigest()


def write_manifest(folder: Path) -> None:
    """manifest.json: size and hash of every file of the bundle. Links have their targets."""
    files: dict[str, dict] = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place) / name
            key = path.relative_to(folder).as_posix()
            if path.is_symlink():
                files[key] = {"link": os.readlink(path)}
            elif path.is_file() and key != MANIFEST:
                digest, size = sha256_of(path)
                files[key] = {"bytes": size, "sha256": digest}
    text = json.dumps({"manifest": 1, "files": dict(sorted(files.items()))}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")
