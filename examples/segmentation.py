# SPDX-License-Identifier: Apache-2.0
"""A small U-Net that marks pixels, and a loss of the overlap and of each pixel.

strata compare examples/segmentation.py:build --mode train --loss examples/segmentation.py:loss
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def block(channels: int, to: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, to, 3, padding=1, bias=False),
        nn.BatchNorm2d(to),
        nn.ReLU(),
        nn.Conv2d(to, to, 3, padding=1, bias=False),
        nn.BatchNorm2d(to),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Images [batch, 3, height, width] -> logits [batch, 1, height, width]; sizes are multiples of
    four."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = block(3, 16), block(16, 32), block(32, 64)
        self.up2, self.up1 = (
            nn.ConvTranspose2d(64, 32, 2, stride=2),
            nn.ConvTranspose2d(32, 16, 2, stride=2),
        )
        self.join2, self.join1, self.head = block(64, 32), block(32, 16), nn.Conv2d(16, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        lowest = self.bottom(functional.max_pool2d(second, 2))
        upper = self.join2(torch.cat([self.up2(lowest), second], 1))
        return self.head(self.join1(torch.cat([self.up1(upper), first], 1)))


def loss(logits: Tensor, target: Tensor) -> Tensor:
    """Of shares that do not overlap (Dice, with 1 added for empty masks), and of pixels."""
    shares = torch.sigmoid(logits)
    overlap = (2 * (shares * target).sum() + 1) / (shares.sum() + target.sum() + 1)
    return 1 - overlap + functional.binary_cross_entropy_with_logits(logits, target)


def build() -> tuple[nn.Module, Tensor, Tensor]:
    """The module, an example of its input, and one of its target."""
    draw = torch.Generator().manual_seed(0)
    mask = (torch.rand(2, 1, 64, 64, generator=draw) > 0.5).float()
    return UNet(), torch.randn(2, 3, 64, 64, generator=draw), mask
