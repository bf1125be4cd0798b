# SPDX-License-Identifier: Apache-2.0
"""Networks as people write them, whose state, random numbers or values of inputs lie where a proof
does not look first: globals, class attributes, closures, generators of their own, draws that hardly
ever show, loops that end by a comparison."""

import functools
import itertools
import math
import random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Module):
    """One layer of 8 by 4, for the others to begin with."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 4)


def rows(seed: int = 3) -> Tensor:
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))


# ------------------------------------------------------------------------------------------- state

HISTORY: list[Tensor] = []


class GlobalHistory(Linear):
    def forward(self, x: Tensor) -> Tensor:
        HISTORY.append(self.lin(x))
        return torch.stack(HISTORY[-5:]).mean(0)


def global_history():
    return GlobalHistory(), rows()


class ClassAttribute(Linear):
    last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        y, before = self.lin(x), ClassAttribute.last
        ClassAttribute.last = y
        return y if before is None else (y + before) / 2


def class_attribute():
    return ClassAttribute(), rows()


def smoother():
    held = {"y": None}

    def smooth(y):
        held["y"] = y if held["y"] is None else 0.8 * held["y"] + 0.2 * y
        return held["y"]

    return smooth


class Closure(Linear):
    def __init__(self) -> None:
        super().__init__()
        self.smooth = smoother()

    def forward(self, x: Tensor) -> Tensor:
        return self.smooth(self.lin(x))


def closure():
    return Closure(), rows()


class Peaks(Linear):
    """Scales by the largest number so far, of Python's, in an attribute with an underscore."""

    def __init__(self) -> None:
        super().__init__()
        self._peaks: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        y = self.lin(x)
        self._peaks.append(float(y.abs().max()))
        return y / max(self._peaks)


def peaks():
    return Peaks(), rows()


class Counted(Linear):
    """Every other call turns the sign."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = itertools.count()

    def forward(self, x: Tensor) -> Tensor:
        return self.lin(x) * (1 if next(self.calls) % 2 else -1)


def counted():
    return Counted(), rows()


class EveryTenth(Linear):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.lin(x) * (2 if self.calls % 10 == 0 else 1)


def every_tenth():
    return EveryTenth(), rows()


TABLES: dict[int, Tensor] = {}


@functools.lru_cache
def table(n: int) -> Tensor:
    return torch.linspace(0, 1, n).cos()


class Tables(Linear):
    """What it keeps follows the shape alone: every call answers alike."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n not in TABLES:
            TABLES[n] = torch.linspace(0, 1, n).sin()
        return self.lin(x * TABLES[n] + table(n))


def tables():
    return Tables(), rows()


# ------------------------------------------------------------------------------------------ random


class RareDrop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if torch.rand(1).item() > 0.002:  # nearly always
                x = x + layer(x).relu()
        return x


def rare_drop():
    return RareDrop(), rows()


class Sampler(nn.Module):
    """Samples one of six, of which one is nearly sure."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.emb = nn.Linear(8, 6), nn.Embedding(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        p = (self.lin(x) * 60).softmax(-1)
        return self.emb(torch.multinomial(p, 1)[:, 0])


def sampler():
    return Sampler(), rows()


class OwnGenerator(Linear):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.torchs = torch.Generator().manual_seed(1)
        self.numpys = np.random.default_rng(1)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "torch":
            keep = torch.rand(x.shape, generator=self.torchs) > 0.2
        else:
            keep = torch.from_numpy(self.numpys.random(x.shape) > 0.2)
        return self.lin(x * keep)


def own_generator():
    return OwnGenerator("torch"), rows()


def own_numpy():
    return OwnGenerator("numpy"), rows()


class Crop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = random.randint(0, 2)  # where the crop begins
        return self.lin(x[:, first : first + 6])


def crop():
    return Crop(), rows()


class SeededMask(Linear):
    """Draws, from one seed in every call; and with a probability of 0."""

    def forward(self, x: Tensor) -> Tensor:
        keep = torch.rand(8, generator=torch.Generator().manual_seed(7)) > 0.3
        x = x * keep * torch.bernoulli(torch.ones_like(x))
        return self.lin(functional.dropout(x[:, torch.randperm(8).sort().values], 0.0, True))


def seeded_mask():
    return SeededMask(), rows()


# -------------------------------------------------------------------------- values that Python sees


class Settles(nn.Module):
    """A fixed point: iterated until two steps are alike."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(30):
            after = torch.tanh(self.lin(z) / 2 + x)
            if torch.allclose(after, z, atol=1e-2):
                break
            z = after
        return z


def settles():
    return Settles(), rows()


class ByTheRoot(nn.Module):
    """A shape that follows values: a tensor in a trace, until it is made a number of Python's."""

    def __init__(self, root: bool) -> None:
        super().__init__()
        self.emb, self.root = nn.Embedding(20, 8), root

    def forward(self, ids: Tensor) -> Tensor:
        distinct = torch.unique(ids).shape[0]
        return self.emb(ids).sum(1) / (math.sqrt(distinct) if self.root else distinct)


class ByARange(ByTheRoot):
    """A trace holds how often, and no warning says so."""

    def forward(self, ids: Tensor) -> Tensor:
        y = self.emb(ids).sum(1)
        for _ in range(torch.unique(ids).shape[0]):
            y = y * 0.9
        return y


def by_a_range():
    return ByARange(False), few_ids()


def few_ids() -> Tensor:
    return torch.randint(0, 20, (4, 6), generator=torch.Generator().manual_seed(3))


def by_the_root():
    return ByTheRoot(True), few_ids()


def by_the_number():
    return ByTheRoot(False), few_ids()
