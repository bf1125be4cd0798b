# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks on odd shapes: LSTM, GRU and RNN with layers, directions and biases in every
form, and their cells; those that infer give each result, those that train scores (N, classes)."""

import torch
from torch import Tensor, nn


class Recurrences(nn.Module):
    """Initial states that are absent, computed, and parameters; sequences, last states and cells
    as results."""

    def __init__(self) -> None:
        super().__init__()
        self.deep = nn.LSTM(5, 7, num_layers=2, bidirectional=True, batch_first=True)
        self.bare = nn.LSTM(14, 6, bias=False)
        self.gates = nn.GRU(5, 9, num_layers=2, bidirectional=True)
        self.unbiased = nn.GRU(18, 4, bias=False, batch_first=True)
        self.tangent = nn.RNN(5, 8, num_layers=3, batch_first=True)
        self.bent = nn.RNN(5, 3, nonlinearity="relu", bidirectional=True, bias=False)
        self.wide = nn.LSTM(5, 33)
        self.begin = nn.Parameter(torch.randn(1, 3, 6))
        self.lstm_cell, self.gru_cell = nn.LSTMCell(5, 6), nn.GRUCell(5, 7)
        self.rnn_cell = nn.RNNCell(5, 4, nonlinearity="relu", bias=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        steps = x.transpose(0, 1).contiguous()
        sequence, (state, cell) = self.deep(x)
        computed, (last, memory) = self.bare(
            sequence.transpose(0, 1), (self.begin, torch.tanh(self.begin) * x[None, :, 0, :1])
        )
        gated, last_gated = self.gates(steps)
        narrow, last_narrow = self.unbiased(
            gated.transpose(0, 1), last_gated[-1:, :, :4].contiguous()
        )
        tangents, last_tangent = self.tangent(x)
        bent, last_bent = self.bent(steps)
        alone, _ = self.wide(x[0])  # without a batch
        h, c = self.lstm_cell(x[:, 0])
        h, c = self.lstm_cell(x[:, 1], (h, c))
        g = self.gru_cell(x[:, 1], self.gru_cell(x[:, 0]))
        return {
            "sequence": sequence,
            "state": state,
            "cell": cell,
            "computed": computed,
            "last": last,
            "memory": memory,
            "gated": gated,
            "last_gated": last_gated,
            "narrow": narrow,
            "last_narrow": last_narrow,
            "tangents": tangents,
            "last_tangent": last_tangent,
            "bent": bent,
            "last_bent": last_bent,
            "alone": alone,
            "lstm_cell": h,
            "memory_cell": c,
            "gru_cell": g,
            "rnn_cell": self.rnn_cell(x[:, 2]),
        }


def recurrent_operations():
    torch.manual_seed(17)
    return Recurrences().eval(), torch.randn(3, 6, 5)


class Projected(nn.Module):
    """A projection of an LSTM's state, which no level of strata's own has."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, proj_size=3)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


def projected_lstm():
    torch.manual_seed(18)
    return Projected().eval(), torch.randn(5, 2, 4)


def gates_in_order():
    torch.manual_seed(19)
    return nn.GRU(5, 16, bidirectional=True).eval(), torch.randn(4, 3, 5)


class Lstms(nn.Module):
    """Gradients by the sequence alone, by the last states alone, and by both; one layer whose
    weights are partly held; a cell that is called several times."""

    def __init__(self) -> None:
        super().__init__()
        self.deep = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.bare = nn.LSTM(10, 6, bias=False)
        self.begin = nn.Parameter(torch.randn(2, 1, 1, 6))
        self.held = nn.LSTM(6, 3)
        self.held.weight_hh_l0.requires_grad_(False)
        self.held.bias_ih_l0.requires_grad_(False)
        self.cell = nn.LSTMCell(3, 5)

    def forward(self, x: Tensor) -> Tensor:
        y, (_, deep) = self.deep(x)
        begin = self.begin.expand(-1, -1, x.shape[0], -1)
        y, (h, c) = self.bare(y.transpose(0, 1), (begin[0].contiguous(), begin[1].contiguous()))
        z, _ = self.held(y)
        _, (last, _) = self.held(y * 0.5)
        state = self.cell(last[0])
        for step in range(2):
            state = self.cell(z[step], state)
        return torch.cat([state[0] + deep[1], h[0] * c[0]], 1)


class Gates(nn.Module):
    """GRU and RNN likewise."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv1d(3, 4, 3, padding=1)
        self.deep = nn.GRU(4, 5, num_layers=2, bidirectional=True)
        self.bare = nn.GRU(10, 3, bias=False, batch_first=True)
        self.held = nn.GRU(3, 4)
        self.held.bias_hh_l0.requires_grad_(False)
        self.tangent = nn.RNN(4, 5, num_layers=2, batch_first=True)
        self.bent = nn.RNN(5, 3, nonlinearity="relu", bidirectional=True)
        self.gru_cell, self.rnn_cell = nn.GRUCell(3, 6), nn.RNNCell(3, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).transpose(1, 2)
        y, last = self.deep(x.transpose(0, 1))
        y, _ = self.bare(y.transpose(0, 1), last[0, :, :3][None].contiguous())
        held = self.held(y.transpose(0, 1))[1][0]
        z, _ = self.tangent(x)
        bent, ends = self.bent(z.transpose(0, 1))
        state = self.gru_cell(y[:, 1], self.gru_cell(y[:, 0]))
        state = self.rnn_cell(bent[-1, :, :3], state)
        return torch.cat([state, held, ends[1]], 1)
