# SPDX-License-Identifier: Apache-2.0
"""How the models that need torchvision are had in an environment without it. Loads no PyTorch."""

from __future__ import annotations

import importlib.metadata
import sys


def install_hint() -> str:
    """What to do: pip alone would replace the PyTorch by the one of the newest torchvision."""
    try:
        keep = f" torch=={importlib.metadata.version('torch').split('+')[0]}"
    except importlib.metadata.PackageNotFoundError:  # a PyTorch that was built in its source folder
        keep = ""
    return (
        f"{sys.executable} -m pip install torchvision{keep}, from the index that PyTorch came from;"
        " mnist_convnet and networks of your own need no torchvision"
    )
