# SPDX-License-Identifier: Apache-2.0
"""A model of one's own, as `strata compare examples/my_model.py:build` takes it: build() returns
the module and example inputs, so no option is needed.

The result may be a tensor, a tuple, a dict or, as here, a dataclass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Result:
    """What the network says about a picture."""

    scores: Tensor  # (N, 10) logits
    box: Tensor  # (N, 4) in 0..1


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x + self.body(x))


class Detector(nn.Module):
    """(N, 3, 96, 96) -> Result."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.SiLU(), nn.MaxPool2d(2)
        )
        self.blocks = nn.Sequential(*[Block(32) for _ in range(4)])
        self.dropout = nn.Dropout(0.2)
        self.scores = nn.Linear(32, 10)
        self.box = nn.Linear(32, 4)

    def forward(self, image: Tensor) -> Result:
        features = self.blocks(self.stem(image)).mean(dim=(2, 3))
        return Result(scores=self.scores(self.dropout(features)), box=self.box(features).sigmoid())


def build():
    return Detector(), torch.randn(1, 3, 96, 96)
