# SPDX-License-Identifier: Apache-2.0
"""Twelve 3x3 convolutions without normalisation or shortcuts: whether it learns is decided by how
its weights are drawn. ./strata train examples/plain_net.py:build --dataset digits --sweep-init"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def build() -> tuple[nn.Module, Tensor]:
    layers: list[nn.Module] = []
    for block, (inputs, outputs) in enumerate(((1, 16), (16, 32), (32, 32))):
        for i in range(4):
            layers += [nn.Conv2d(inputs if i == 0 else outputs, outputs, 3, padding=1), nn.ReLU()]
        if block < 2:
            layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(*layers), torch.zeros(1, 1, 8, 8)
