# SPDX-License-Identifier: Apache-2.0
"""Small networks to train: BatchNorm and dropout with a keyword input, one that torch.jit.script refuses, one whose dropout nothing can switch off."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Small(nn.Module):
    """(N, 3, 8, 8) and a scale (N, 1) -> two results, the first the logits (N, 5). Its last bias is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.dropout = nn.Dropout2d(0.5)
        self.fc = nn.Linear(8, 5)
        self.fc.bias.requires_grad_(False)

    def forward(self, x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        x = self.dropout(self.relu(self.bn(self.conv(x))))
        features = x.mean((2, 3)) * scale
        return self.fc(features), features


def small():
    return Small()


class Unscriptable(nn.Module):
    """Calls a lambda, which TorchScript does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        double = lambda value: 2 * value  # noqa: E731
        return self.fc(double(x))


def unscriptable():
    return Unscriptable()


class BuiltInDropout(nn.Module):
    """Its dropout is a call with a number, not a module."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.fc(x), 0.3, self.training)


def built_in_dropout():
    return BuiltInDropout()
