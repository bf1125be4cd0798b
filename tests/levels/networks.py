# SPDX-License-Identifier: Apache-2.0
"""Small networks of a user's kind: keyword inputs and integer ids, an in-place first operation, a
path that depends on data, residual ones to train and to break."""

import torch
from torch import Tensor, nn


class Keywords(nn.Module):
    """A tiny transformer layer over token ids with a mask; returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        hidden = self.layer(self.embed(ids)) * mask.unsqueeze(-1)
        return {"logits": self.head(hidden), "pooled": hidden.mean(1)}


def keyword_network():
    generator = torch.Generator().manual_seed(3)
    return Keywords().eval(), {
        "ids": torch.randint(0, 50, (2, 12), generator=generator),
        "mask": torch.ones(2, 12),
    }


class InPlace(nn.Module):
    """Writes into its input: the ReLU in front is in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(192, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def in_place_network():
    return InPlace().eval(), torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(4))


class Branching(nn.Module):
    """Takes a path that depends on the values of its input, which torch.export cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x) if x.sum().item() > 0 else self.b(x)


def branching_network():
    return Branching().eval(), torch.randn(2, 16, generator=torch.Generator().manual_seed(5))


class BasicBlock(nn.Module):
    """torchvision's residual block, by its names; importing torchvision takes as long as importing
    torch."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.bn1 = (
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.conv2, self.bn2 = (
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
            if stride > 1
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


def residual_network():
    """BatchNorm, a residual block, dropout and a bias: something to break for every fault of a
    training step."""
    torch.manual_seed(6)
    layers = [
        nn.Conv2d(3, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(inplace=True),
        BasicBlock(12, 12),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(48, 10),
    ]
    return nn.Sequential(*layers), torch.randn(4, 3, 12, 12)


def dropping_network():
    """Dropouts of images behind batch norms: what a training step with little memory computes
    again."""
    torch.manual_seed(8)
    layers = [
        part
        for inputs in (3, 8, 8)
        for part in (
            nn.Conv2d(inputs, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.3),
        )
    ]
    return nn.Sequential(
        *layers,
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ), torch.randn(2, 3, 8, 8)


def strided_network():
    """The same for every fault of inference; its weights follow the seed."""
    layers = [
        nn.Conv2d(3, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, 2),
        BasicBlock(12, 24, 2),
        BasicBlock(24, 24),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 10),
    ]
    return nn.Sequential(*layers), torch.randn(2, 3, 31, 31)
