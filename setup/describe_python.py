# SPDX-License-Identifier: Apache-2.0
"""Describes the interpreter it runs in as shell assignments for setup/python.sh, without importing
PyTorch. Runs on any Python 3."""

import importlib.metadata
import importlib.util
import os
import shlex
import sys


def distribution(name):
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    torch = distribution("torch")
    # a PyTorch built from source may have no metadata folder: then its package folder stands for it
    spec = importlib.util.find_spec("torch")
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
    version = torch.version if torch else ""
    if not version and folder:
        scope = {}
        with open(os.path.join(folder, "version.py")) as file:
            exec(file.read(), scope)
        version = scope["__version__"]
    facts = {
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "python_is_usable": int(sys.version_info >= (3, 10)),
        "torch_version": version,
        "torch_witness": str(getattr(torch, "_path", "")) or folder,
        "torch_is_new_enough": int(
            tuple(
                int("".join(c for c in part if c.isdigit()) or 0)
                for part in version.split("+")[0].split(".")[:2]
            )
            >= (2, 11)
        )
        if version
        else 0,
        "overlay_missing": " ".join(
            name
            for name in ("numpy", "safetensors", "onnx", "onnxscript", "onnxruntime")
            if importlib.util.find_spec(name) is None
        ),
        "has_torchvision": int(importlib.util.find_spec("torchvision") is not None),
    }
    for name, value in facts.items():
        print(f"{name}={shlex.quote(str(value))}")


main()
