# SPDX-License-Identifier: Apache-2.0
"""The ResNet family as torchvision defines it; the hand-written levels use its parameter names."""

import torchvision
from torch import nn


def build(name: str = "resnet50") -> nn.Module:
    """Random weights, 1000 classes, input (N, 3, H, W) with H and W of at least 32."""
    return torchvision.models.get_model(name, weights=None)
