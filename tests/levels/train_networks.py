# SPDX-License-Identifier: Apache-2.0
"""Small networks to train: BatchNorm and dropout with a keyword input, one that torch.jit.script
refuses, one whose dropouts are calls with numbers, one of many channels, and one of odd
convolutions."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Small(nn.Module):
    """(N, 3, 8, 8) and a scale (N, 1) -> two results, the first the logits (N, 5). Its last bias is
    frozen."""

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


class TwoMasks(nn.Module):
    """(N, 3, 8, 8) -> (N, 10): the difference of two dropouts of one tensor, zero where both draw
    alike."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(144, 10)
        self.first = nn.Dropout(0.5)
        self.second = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(torch.flatten(torch.relu(self.norm(self.conv(x))), 1))
        return self.first(x) - self.second(x)


def two_masks():
    return TwoMasks()


class WholeChannels(nn.Module):
    """(N, 3) -> (N, 10): how far the pixels of channels that dropout kept or dropped whole lie
    apart, zero."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 10)
        self.dropout = nn.Dropout2d(0.5)
        self.register_buffer("pixels", torch.ones(1, 1, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(self.fc(x).reshape(-1, 10, 1, 1) * self.pixels)
        return torch.flatten(F.max_pool2d(x, 3) - F.avg_pool2d(x, 3), 1)


def whole_channels():
    return WholeChannels()


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


class Called(nn.Module):
    """Its dropouts are calls with numbers, not modules; one lies in a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        if x.size(0) > 1:
            x = F.dropout(x, 0.3, self.training)
        return F.dropout2d(x.reshape(-1, 4, 1, 1), 0.25, self.training).flatten(1)


def called_dropouts():
    """(N, 4) -> (N, 4): two instances of one class, a layer, and a call of its own."""
    return nn.Sequential(Called(), nn.Dropout(0.1), Called())


class Alpha(nn.Module):
    """(N, 4) -> (N, 3). Its dropout is one that the levels on the captured graph do not know."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.dropout = nn.Linear(4, 3), nn.AlphaDropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.fc(x))


def alpha_dropout():
    return Alpha()


def wide():
    """(N, 3, 8, 8) -> (N, 10). Enough channels that a thread takes several blocks of them, and 1x1
    convolutions that give one pixel."""

    def layer(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )

    return nn.Sequential(
        layer(3, 64, 3),
        nn.MaxPool2d(2),
        layer(64, 128, 1),
        layer(128, 256, 3, 2),
        layer(256, 128, 1, 2),
        layer(128, 64, 1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


class Odd(nn.Module):
    """(N, 3, 9, 7) -> (N, 5). Convolutions with biases, in groups, of single channels and along one
    dimension, a product of two tensors, a residual sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.grouped = nn.Conv2d(12, 12, 3, padding=1, groups=4)
        self.single = nn.Conv2d(12, 12, (5, 3), padding=(2, 1), groups=12, bias=False)
        self.norm = nn.BatchNorm2d(12)
        self.along = nn.Conv1d(12, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.first(x))
        x = F.relu(x + self.norm(self.single(self.grouped(x))))
        x = self.along(x.flatten(2))
        return self.fc((torch.matmul(x, x.transpose(1, 2)) / 20).sum(2))


def odd():
    return Odd()
