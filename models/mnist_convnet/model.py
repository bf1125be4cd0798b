# SPDX-License-Identifier: Apache-2.0
"""A small network for handwritten digits, with the layers and sizes of the classical MNIST
example."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MnistConvnet(nn.Module):
    """(N, 1, 28, 28) -> log-probabilities (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.relu2 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(9216, 128)
        self.relu3 = nn.ReLU()
        self.dropout2 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu1(self.conv1(x))
        x = self.dropout1(self.pool(self.relu2(self.conv2(x))))
        x = self.dropout2(self.relu3(self.fc1(torch.flatten(x, 1))))
        return F.log_softmax(self.fc2(x), dim=1)


def build() -> nn.Module:
    return MnistConvnet()
