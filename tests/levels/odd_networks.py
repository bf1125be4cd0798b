# SPDX-License-Identifier: Apache-2.0
"""Networks that do what most do not: write into their inputs, keep a state, share weights, have
none, hold NaN, answer with scalars, views, integers or their own input."""

import torch
from torch import Tensor, nn


def images(*shape: int, seed: int = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


class Module(nn.Module):
    """A module whose forward() is a function of (module, inputs...)."""

    def __init__(self, function, **parts) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


# ------------------------------------------------------------------------------- in place, states


class Normalises(nn.Module):
    """Normalises its input in place, as many a network in production does."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x.sub_(0.45).div_(0.22)
        return self.head(self.conv(x).relu().mean((2, 3)))


def normalises_in_place():
    return Normalises(), images(2, 3, 16, 16)


class Returned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.fc(x), x, x[:, 2:5]


def returns_its_input():
    """Also a view of it."""
    return Returned(), torch.randn(3, 8)


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x.mul_(2)
        return self.fc(x), x


def returns_its_changed_input():
    return Doubled(), torch.randn(3, 8)


class Counts(nn.Module):
    """Counts its calls; the answer does not follow."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.fc(x)


def counts_its_calls():
    return Counts(), torch.randn(3, 8)


class Keeps(nn.Module):
    """Its answer lies in a buffer that the next call overwrites."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.last.copy_(self.fc(x))
        return self.last


def answers_in_a_buffer():
    return Keeps(), torch.randn(3, 8)


class Remembers(nn.Module):
    """Its answer follows all calls before."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        self.mean.mul_(0.9).add_(0.1 * y.mean(0))
        return y - self.mean


def remembers_calls():
    return Remembers(), torch.randn(3, 8)


# ---------------------------------------------------------------------------------------- weights


def some_nan():
    """One weight of the last layer: one class of each answer."""
    network = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6))
    with torch.no_grad():
        network[2].weight[3, 5] = float("nan")
    return network, torch.randn(3, 8)


def only_nan():
    network = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6))
    with torch.no_grad():
        network[0].weight.fill_(float("nan"))
    return network, torch.randn(3, 8)


def infinite():
    """One class is minus infinity, as of a mask."""
    return Module(
        lambda m, x: m.fc(x) + m.mask,
        fc=nn.Linear(8, 6),
        mask=torch.tensor([0.0, float("-inf"), 0.0, 0.0, float("inf"), 0.0]),
    ), torch.randn(3, 8)


def constant_weights():
    """As some start: a filter that averages, a norm of untrained statistics, a head of zeros whose
    bias alone answers."""
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 4),
        nn.Linear(4, 5),
    )
    with torch.no_grad():
        network[0].weight.fill_(1 / 27)
        network[6].weight.zero_()
    return network, images(2, 3, 16, 16)


def no_parameters():
    return nn.Sequential(nn.ReLU(), nn.Softmax(1)), torch.randn(3, 8)


class Tied(nn.Module):
    """A small language model whose last layer is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 40, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.mix(self.embed(ids).mean(1))))


def tied_weights():
    return Tied(), torch.randint(0, 40, (4, 6), generator=torch.Generator().manual_seed(2))


class TiedLayers(nn.Module):
    """The same, of floats: one square matrix under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 5)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))


def tied_layers():
    return TiedLayers(), torch.randn(4, 16)


def only_buffers():
    return Module(
        lambda m, x: torch.tanh(x @ m.table) + m.shift,
        table=torch.randn(8, 4),
        shift=torch.randn(4),
    ), torch.randn(3, 8)


def number_as_parameter():
    """A parameter without dimensions."""
    return Module(
        lambda m, x: m.fc(x) * m.scale, fc=nn.Linear(8, 4), scale=nn.Parameter(torch.tensor(1.5))
    ), torch.randn(3, 8)


# ----------------------------------------------------------------------------- inputs and outputs


def one_number():
    return nn.Linear(1, 3), torch.randn(1, 1)


def one_boolean():
    return Module(lambda m, x: m.fc(x.float()), fc=nn.Linear(1, 3)), torch.ones(
        1, 1, dtype=torch.bool
    )


def one_whole_number():
    """An input that can have one value only."""
    return Module(lambda m, x: m.fc(x.float()), fc=nn.Linear(2, 3)), torch.full((1, 2), 7)


def without_elements():
    return nn.Linear(8, 4), torch.zeros(0, 8)


def scalar_output():
    return Module(lambda m, x: m.fc(x).square().mean(), fc=nn.Linear(8, 4)), torch.randn(3, 8)


def nested_outputs():
    return Module(
        lambda m, x: {
            "first": m.fc(x),
            "more": (x.sum(1), [m.fc(x).relu(), {"deep": x.mean()}]),
            "none": None,
            "number": 3,
        },
        fc=nn.Linear(8, 4),
    ), torch.randn(3, 8)


def strided_output():
    """A transposed, an expanded and a sliced result: none lies contiguous."""
    return Module(
        lambda m, x: (m.fc(x).t(), m.fc(x)[:, :1].expand(-1, 5), m.fc(x)[:, ::2]),
        fc=nn.Linear(8, 4),
    ), torch.randn(3, 8)


def in_double():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).double(), torch.randn(
        3, 8, dtype=torch.float64
    )


def in_half():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).half(), torch.randn(
        3, 8
    ).half()


def whole_numbers_only():
    return Module(
        lambda m, x: (x * m.factor).cumsum(1) % 97, factor=torch.arange(1, 7)
    ), torch.randint(0, 50, (3, 6))


def large_values():
    """Beyond what float32 holds in places; float64 has numbers there."""
    return Module(
        lambda m, x: torch.cat([m.fc(x), (m.fc(x) * 1e30) ** 2], 1), fc=nn.Linear(8, 4)
    ), torch.randn(3, 8)


# -------------------------------------------------------------------------- recurrent, transposed


class Recurrent(nn.Module):
    def __init__(self, kind, **options) -> None:
        super().__init__()
        self.cell = kind(8, 12, batch_first=True, **options)
        self.head = nn.Linear(24 if options.get("bidirectional") else 12, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


def lstm():
    return Recurrent(nn.LSTM), torch.randn(2, 7, 8)


def gru():
    return Recurrent(nn.GRU), torch.randn(2, 7, 8)


def rnn():
    return Recurrent(nn.RNN), torch.randn(2, 7, 8)


def bidirectional_lstm():
    return Recurrent(nn.LSTM, bidirectional=True, num_layers=2), torch.randn(2, 7, 8)


def transposed_convolution():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1)
    ), images(2, 3, 16, 16)


# --------------------------------------------------------------------------------------- to train


class Drops(nn.Module):
    """A classifier with one dropout, of any probability."""

    def __init__(self, p: float, width: int = 128) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(32, width), nn.Dropout(p), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.first(x).relu()))


def drops_half():
    torch.manual_seed(11)
    return Drops(0.5), torch.randn(16, 32)
