# SPDX-License-Identifier: Apache-2.0
"""What the values of a tensor of inputs mean, as far as they show it: numbers that noise may move,
or values that are compared, thresholded, rounded or cast, of which the next number is another
answer."""

from __future__ import annotations

import torch
from torch import Tensor

FEW_VALUES = 32  # distinct ones, each there twice on average, as of a mask or of levels of grey


def stays(values: Tensor) -> Tensor:
    """Which elements no noise moves: whole numbers, NaN and infinities."""
    return (values == values.round()) | ~values.isfinite()


def is_discrete(values: Tensor) -> bool:
    """Integers, whole numbers held in floats, few distinct values."""
    if not values.is_floating_point() or bool(stays(values).all()):
        return True
    limit = min(FEW_VALUES, values.numel() // 2)
    sample = values.reshape(-1)[: 64 * FEW_VALUES]  # most tensors of real numbers show it at once
    return len(torch.unique(sample)) <= limit and len(torch.unique(values)) <= limit


def is_constant(values: Tensor) -> bool:
    return values.numel() > 0 and bool((values == values.reshape(-1)[0]).all())
