# SPDX-License-Identifier: Apache-2.0
"""Tiny networks, and builders that go wrong, for the tests of the capture; some name lines of this
file."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(x)


def build():
    print("chatty")
    return Net()


def raises():
    raise RuntimeError("no such checkpoint")


def number():
    return 7


def klass():
    return Net


def nothing():
    class Silent(Net):
        def forward(self, x):
            return None

    return Silent()


def only32():
    class Only32(Net):
        def forward(self, x):
            return super().forward(x) @ torch.eye(3)

    return Only32(), torch.randn(2, 6)


def odd():
    return Net(), "abc"


def stopped():
    raise SystemExit(3)


def linear():
    return Net(), torch.randn(2, 6)


def frozen():
    return Net().requires_grad_(False), torch.randn(2, 6)


def picture():
    return nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)


def detached():
    class Detached(Net):
        def forward(self, x):
            return super().forward(x).detach() + 0 * x[:, :3].requires_grad_()

    return Detached(), torch.randn(2, 6)


def infinite():
    class Infinite(Net):
        def forward(self, x):
            return super().forward(x) / 0

    return Infinite(), torch.randn(2, 6)


def one_value():
    return nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)), torch.randn(1, 6)
