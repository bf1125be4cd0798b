# SPDX-License-Identifier: Apache-2.0
"""What is said of a PyTorch, or of a module beside it, that cannot be imported. Loads none."""

from __future__ import annotations

import sys


def why_not(error: Exception) -> dict:
    """A capture's answer to an `import` that failed with `error`."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] != "torch":
        return {
            "ok": False,
            "code": "unavailable",
            "what": f"this Python lacks a module: {error}",
            "hint": f"{sys.executable} needs torch, numpy and safetensors",
        }
    text = " ".join(str(error).split())
    return {
        "ok": False,
        "code": "unavailable",
        "what": f"PyTorch cannot be imported in {sys.executable}: {type(error).__name__}: {text}",
        "hint": _hint(text),
    }


def _hint(text: str) -> str:
    if "GLIBCXX_" in text or "CXXABI_" in text:
        return (
            "the libstdc++.so.6 that this Python loads is older than what it is needed for: update"
            " it (of conda: conda install -c conda-forge 'libstdcxx-ng>=12'), or take its folder"
            " out of LD_LIBRARY_PATH"
        )
    if "cannot open shared object file" in text:
        return (
            "PyTorch lacks a library that it was installed with: install it again with all that it"
            f" requires, {sys.executable} -m pip install --force-reinstall torch"
        )
    return f"mend the environment until this works: {sys.executable} -c 'import torch'"
