# SPDX-License-Identifier: Apache-2.0
"""Networks whose floating-point operations test_counted_operations.py works out by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class Lstm(nn.Module):
    """(N, 50, 64) -> (N, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 64, batch_first=True)
        self.head = nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lstm():
    return Lstm().eval(), drawn(1, 50, 64)


class BranchingLstm(Lstm):
    """The same work behind a condition on values, which torch.export cannot follow."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum().item() > 0 else x.abs())


def branching_lstm():
    return BranchingLstm().eval(), drawn(1, 50, 64)


class Recurrent(nn.Module):
    """(12, N, 6) -> (N, 5); every kind of recurrent layer once."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, proj_size=3)
        self.gru = nn.GRU(6, 7, bidirectional=True)
        self.tanh = nn.RNN(14, 4, nonlinearity="tanh", num_layers=2)
        self.relu = nn.RNN(4, 9, nonlinearity="relu", bias=False)
        self.cell = nn.GRUCell(9, 5)

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.lstm, self.gru, self.tanh, self.relu):
            x = layer(x)[0]
        return self.cell(x[-1])


def recurrent():
    return Recurrent().eval(), drawn(12, 2, 6)


class Transposed(nn.Module):
    """(N, 3, 16, 16) -> (N, 2, 16, 16): down by a convolution, up by a transposed one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1, groups=4)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).relu()
        return self.last(torch.cat([x, self.up(self.down(x).relu())], 1))


def unet():
    return Transposed().eval(), drawn(2, 3, 16, 16)


class Distances(nn.Module):
    """(N, 16, 8) -> (N, 16, 16): of each row to each, which no rule counts."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return torch.cdist(x, x.flip(1))


def distances():
    return Distances().eval(), drawn(2, 16, 8)


class Everything(nn.Module):
    """(N, 4, 8) -> (N, 4, 8): einsum with dots, attention, batches of products, an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.mixing = nn.Parameter(drawn(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.einsum("...ij,jk->...ik", x, self.mixing)
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        x = torch.baddbmm(x, x @ x.mT, x)
        return self.encoder(x)


def everything():
    return Everything().eval(), drawn(2, 4, 8)
