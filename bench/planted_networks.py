# SPDX-License-Identifier: Apache-2.0
"""A small convolutional network, and the same with a cost in a known place (planted_costs.py)."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn


class Middle(nn.Module):
    """What the cost is planted in; the plain one is a convolution."""

    def __init__(self, cost: str) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 32, 3, padding=1)
        self.cost = cost
        if cost == "work":
            self.extra = nn.Conv2d(32, 32, 7, padding=3)
        if cost == "elements":
            self.extra = nn.Sequential(*(nn.GELU() for _ in range(20)))

    def forward(self, images: Tensor) -> Tensor:
        images = self.conv(images)
        if self.cost in ("work", "elements"):
            return images + self.extra(images)
        if self.cost == "moves":
            for _ in range(
                8
            ):  # transposed to memory and back, with work between that keeps it there
                images = images.transpose(2, 3).contiguous() * 0.99
        return images


class Net(nn.Module):
    def __init__(self, cost: str) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.middle = Middle(cost)
        self.tail = nn.Conv2d(32, 32, 3, padding=1)
        self.head = nn.Linear(32, 10)
        self.cost = cost

    def forward(self, images: Tensor) -> Tensor:
        images = self.middle(torch.relu(self.stem(images)))
        if self.cost == "python":
            for _ in range(60_000):  # which no captured network has
                pass
        if self.cost == "waiting":
            time.sleep(0.003)
        return self.head(torch.relu(self.tail(images)).mean((2, 3)))


def _built(cost: str) -> tuple[nn.Module, Tensor]:
    return Net(cost), torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def plain() -> tuple[nn.Module, Tensor]:
    return _built("plain")


def work() -> tuple[nn.Module, Tensor]:
    return _built("work")


def elements() -> tuple[nn.Module, Tensor]:
    return _built("elements")


def moves() -> tuple[nn.Module, Tensor]:
    return _built("moves")


def python() -> tuple[nn.Module, Tensor]:
    return _built("python")


def waiting() -> tuple[nn.Module, Tensor]:
    return _built("waiting")
