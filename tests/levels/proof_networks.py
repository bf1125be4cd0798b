# SPDX-License-Identifier: Apache-2.0
"""Networks that are easily proven by nothing: whose answers jump where an input is compared,
rounded or cast, that draw random numbers, keep a state, or let Python look at their inputs."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def drawn(*shape: int, seed: int = 3) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


# -------------------------------------------------------------------------------- compared, rounded


class Pooled(nn.Module):
    """Sums over the positions whose mask is not zero."""

    def __init__(self, skip_mask: bool = False) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 8), nn.Linear(8, 3)
        self.skip_mask = skip_mask

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = self.inner(x).relu()
        if not self.skip_mask:
            h = h.masked_fill((mask == 0).unsqueeze(-1), 0.0)
        return self.outer(h.sum(1))


def half_mask() -> Tensor:
    return torch.tensor([[1.0] * 7 + [0.0] * 3, [1.0] * 4 + [0.0] * 6, [1.0] * 10])


def masked_sum():
    return Pooled(), (drawn(3, 10, 6), half_mask())


class Thresholded(nn.Module):
    """Takes what is there: a mask by `.bool()`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(10, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(
            torch.where(x.bool(), self.inner(x).sum(1, keepdim=True), -x).tanh()[:, :8]
        )


def padded_values():
    """Real numbers, and exact zeros in their place where there is nothing."""
    x = drawn(4, 10) + 0.25
    x[:, 6:] = 0
    return Thresholded(), x


class Looked(nn.Module):
    """A table by whole numbers that come as floats, as pixels or years do."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.outer = nn.Embedding(12, 5), nn.Linear(5, 3)

    def forward(self, years: Tensor) -> Tensor:
        return self.outer(self.table(years.long()).mean(1))


def whole_floats():
    return Looked(), torch.tensor([[0.0, 3.0, 11.0, 4.0], [7.0, 7.0, 2.0, 1.0]])


class Binned(nn.Module):
    """Steps of a half by floor and round."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(torch.floor(2 * x) + torch.round(x))


def half_steps():
    steps = torch.tensor([0.0, 0.5, 1.5, 2.5])
    return Binned(), steps[(drawn(4, 12) * 4).long()]


class Positive(nn.Module):
    """`> 0` beside a sum that scales it up: one ulp of its threshold is another answer."""

    def forward(self, x: Tensor) -> Tensor:
        return 100 * (x * 3 > 1.5).float().sum(1, keepdim=True) + x


def on_the_threshold():
    """Half of the values lie on it."""
    x = drawn(4, 40)
    x[:, ::2] = 0.5 + 1e-8
    return Positive(), x


class Offsets(nn.Module):
    """Bags of words by offsets, which have to begin with 0 and grow."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 4)

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        return self.bag(ids, offsets)


def growing_offsets():
    return Offsets(), (torch.arange(12) % 9 + 3, torch.tensor([0, 3, 4, 9]))


# ------------------------------------------------------------------------------------------ random


class ForgetsTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(functional.dropout(self.first(x).relu(), 0.1))  # forgets training=


def dropout_without_training():
    return ForgetsTraining(), drawn(3, 8)


class Samples(nn.Module):
    """The encoder of a variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread, self.decode = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        spread = (0.5 * self.spread(x)).exp()
        return self.decode(self.mean(x) + torch.randn_like(spread) * spread)


def samples():
    return Samples(), drawn(3, 8)


class InAList(nn.Module):
    """Its dropout is in no ModuleList, so that eval() does not reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 4)
        self.layers = [nn.Dropout(0.4)]

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[0](self.first(x))


def dropout_in_a_list():
    return InAList(), drawn(3, 8)


class Rarely(nn.Module):
    """Noise of numpy's, which no operation of PyTorch shows."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        import numpy

        return self.fc(x) * float(numpy.random.rand())


def numpys_noise():
    return Rarely(), drawn(3, 8)


class NoiseInTraining(nn.Module):
    """Adds noise to its input in train mode, which no dropout's probability switches off."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x + torch.randn_like(x) if self.training else x)


def noise_in_training():
    return NoiseInTraining(), drawn(3, 8)


class DrawsInVain(nn.Module):
    """Draws, but answers one input in one way."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) + 0 * torch.rand_like(x[:, :4])


def draws_in_vain():
    return DrawsInVain(), drawn(3, 8)


# ------------------------------------------------------------------------------------------- state


class Frames(nn.Module):
    """A buffer of the frames that were seen last; full of them, it stays what it is as long as the
    input does."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 4)
        self.register_buffer("frames", torch.zeros(2, 2, 6))

    def forward(self, x: Tensor) -> Tensor:
        before = self.frames.clone()
        self.frames.copy_(torch.stack([self.frames[1], x]))
        return self.fc(torch.cat([before[1], x], 1))


def remembers_a_frame():
    return Frames(), drawn(2, 6)


class Cache(nn.Module):
    """Keys of the calls before, in an attribute; the first call makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.keys = nn.Linear(6, 4), None

    def forward(self, x: Tensor) -> Tensor:
        key = self.key(x)
        self.keys = key if self.keys is None else 0.5 * (self.keys + key)
        return self.keys.softmax(-1)


def keeps_keys():
    return Cache(), drawn(2, 6)


class Once(nn.Module):
    """Takes its scale from the first input that it sees, and keeps it in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.kept = nn.Linear(6, 4), {}

    def forward(self, x: Tensor) -> Tensor:
        if "scale" not in self.kept:
            self.kept["scale"] = x.abs().mean()
        return self.fc(x / self.kept["scale"])


def scales_by_the_first():
    return Once(), drawn(2, 6)


class Memo(nn.Module):
    """Keeps a table that is the same for every input of this length, and what it saw last."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.tables, self.last = nn.Linear(6, 4), {}, None

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] not in self.tables:
            self.tables[x.shape[1]] = torch.linspace(0, 1, x.shape[1])
        self.last = self.fc(x + self.tables[x.shape[1]].to(x.dtype))
        return self.last


def keeps_what_no_answer_follows():
    return Memo(), drawn(2, 6)


# -------------------------------------------------------------------------- values that Python sees


class UpToTheLongest(nn.Module):
    """Words up to the longest row; 0 pads."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.outer = nn.Embedding(30, 8), nn.Linear(8, 3)

    def forward(self, ids: Tensor) -> Tensor:
        longest = int((ids > 0).sum(1).max())
        return self.outer(self.table(ids)[:, :longest].sum(1))


def up_to_the_longest():
    ids = torch.randint(1, 30, (4, 12), generator=torch.Generator().manual_seed(5))
    ids[:, 9:] = 0
    return UpToTheLongest(), ids


class ScaledByValue(nn.Module):
    """A scale that Python takes out of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) / x.abs().max().item()


def scaled_by_a_value():
    return ScaledByValue(), drawn(2, 6)


class Listed(nn.Module):
    """Rows that a list picks."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return sum(
            self.table.weight[i] * (k + 1) for k, i in enumerate(ids[0].tolist())
        ) + self.table(ids)


def by_a_list():
    return Listed(), torch.tensor([[1, 5, 2, 7], [3, 3, 8, 0]])


class ChecksShapes(nn.Module):
    """Looks at shapes and at its own buffer, at no value of an input."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)
        self.register_buffer("steps", torch.tensor(2))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] != 6 or len(x) == 0:
            raise ValueError("no rows of six")
        for _ in range(int(self.steps)):
            x = x + torch.arange(x.shape[1])
        return self.fc(x)


def looks_at_shapes():
    return ChecksShapes(), drawn(2, 6)


# ------------------------------------------------------------------------------------ no numbers


class Clips(nn.Module):
    """A maximum that may drop NaN, behind a product."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def clips():
    return Clips(), drawn(2, 6)


def pools():
    """The same by a maximum over an image."""
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), drawn(
        2, 2, 6, 6
    )


# ------------------------------------------------------------------------------------ added up


class AveragedMap(nn.Module):
    """The mean of a large map, as before the classifier of a network for large images."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Conv2d(3, 8, 1), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).relu().mean((2, 3)))


def averaged_map():
    return AveragedMap(), drawn(2, 3, 384, 384)


class UnusedLast(nn.Module):
    """A second head whose answer nobody takes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.unused = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        self.unused(h)
        return self.last(h)


def unused_last():
    return UnusedLast(), drawn(3, 6)


class Highest(nn.Module):
    """An activation that a maximum hides: of numbers that large it hardly changes any."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.middle = nn.Linear(6, 8), nn.Linear(8, 64)
        self.first, self.second = nn.Tanh(), nn.Softplus()

    def forward(self, x: Tensor) -> Tensor:
        h = self.middle(self.first(self.inner(x)))
        return self.second(h - h.amax().detach() + 10.0).amax(1, keepdim=True)


def highest():
    return Highest(), drawn(3, 6)


def spectrum():
    """Nothing that is a layer, and nothing that a list of operations knows."""
    return Spectrum(), drawn(2, 16)


class Spectrum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.rfft(x).abs().log1p()


class Constant(nn.Module):
    """Answers that follow nothing by more than rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin(x).relu() * 1e-9 + 1.0


def constant():
    return Constant(), drawn(3, 6)


# ------------------------------------------------------------------------------ subnormal numbers


class Rescaled(nn.Module):
    """A layer whose inputs or weights are below 1.2e-38, and whose answers are scaled back."""

    def __init__(self, weights: float) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 8, bias=False), nn.Linear(8, 4)
        self.inner.weight.data *= weights

    def forward(self, x: Tensor) -> Tensor:
        return self.outer((self.inner(x) * 2.0**126).relu())


def subnormal_weights():
    return Rescaled(2.0**-127), drawn(4, 16)


def subnormal_inputs():
    return Rescaled(1.0), drawn(4, 16) * 2.0**-128
