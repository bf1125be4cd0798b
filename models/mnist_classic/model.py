# SPDX-License-Identifier: Apache-2.0
"""The network of PyTorch's first MNIST example: channel-wise dropout as a layer, and dropout called
as a function."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MnistClassic(nn.Module):
    """(N, 1, 28, 28) -> log-probabilities (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def build() -> nn.Module:
    return MnistClassic()
