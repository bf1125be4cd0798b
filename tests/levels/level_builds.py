# SPDX-License-Identifier: Apache-2.0
"""The level binaries of STRATA_LEVEL_BUILD, and which of them there are. Without any, importing
this skips a file of tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from client import NO_CUDA_DEVICE

TORCH = ("libtorch", "torchscript", "aoti")
if not os.environ["STRATA_LEVEL_BUILD"]:
    pytest.skip(
        "no build/env-*: cmake -S levels -B build/env-default -G Ninja && ninja -C build/env-default",
        allow_module_level=True,
    )
BUILD = Path(os.environ["STRATA_LEVEL_BUILD"])
# left out where there is no package of its library
PRIMITIVES = () if (BUILD / "level_onednn.missing").exists() else ("onednn",)
STATIC = () if (BUILD / "level_static.missing").exists() else ("static",)
NO_CUDNN = (
    (BUILD / "level_cudnn.missing").read_text() if (BUILD / "level_cudnn.missing").exists() else ""
)
CUDNN_IS_BUILT = pytest.mark.skipif(NO_CUDNN != "", reason=f"cudnn is left out: {NO_CUDNN}")
ON_A_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(NO_CUDA_DEVICE != "", reason=NO_CUDA_DEVICE),
    CUDNN_IS_BUILT,
]
