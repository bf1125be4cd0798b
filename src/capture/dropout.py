# SPDX-License-Identifier: Apache-2.0
"""What shows a dropout's probability in a training step (docs/proof_of_training.md,
"Dropout's probability"): how far gradients of one batch scatter, which only the masks make differ.

Masks scale what they keep, so that means say nothing of the probability p; the variance of what
they make is proportional to p / (1 - p). For each layer that drops, the parameter whose gradient
shows a changed p best, against chance, is watched; eager's variances of it are the reference, and
what they can show is measured here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from strata_sdk.torch_training import Dropout

WATCHED_ELEMENTS = 1 << 21  # of a parameter, at most: a level writes it in every step
LAYERS = 16  # that are shifted one by one; of more, evenly spread ones
GROUP = 4  # steps that one variance is taken over
TRIAL_GROUPS = 16
LEAST_GROUPS, MOST_GROUPS = 16, 128  # of a level; the reference has MORE times as many
MORE = 2
SECONDS = 5.0  # of a level's steps, at most about
WANTED = 0.02  # error of p that is to be found
ALARM = 1e-6  # share of sound levels that may be accused, two-sided, over all that is watched
CERTAIN = 3.1  # standard errors beyond the bound: such an error is found in 999 of 1000 runs

Gradients = list[Tensor]


class DropoutCapture:
    """`gradients`: takes a step on one batch, in train mode, and gives the gradients of the named
    parameters; `dropouts`: all that drop in it, as given."""

    def __init__(
        self,
        module: nn.Module,
        dropouts: list[Dropout],
        gradients: Callable[[list[str]], Gradients],
        seed: int,
    ) -> None:
        self.dropouts, self.gradients, self.seed = dropouts, gradients, seed
        sizes = {name: p.numel() for name, p in module.named_parameters() if p.requires_grad}
        self.names = [name for name, size in sizes.items() if size <= WATCHED_ELEMENTS] or [
            min(sizes, key=lambda k: sizes[k])
        ]

    def run(self) -> dict:
        """train.json's `groups` that a level is asked for, `watched`: parameter -> variances in
        eager's groups, and for each layer what is watched and the least error of p that is
        found."""
        base = self.variances(self.names, TRIAL_GROUPS)
        noise = {name: _variation(values) for name, values in base.items()}
        slopes = {place: self.slopes(place, base) for place in self.examined()}
        best = {
            place: max(slope, key=lambda k: abs(slope[k]) / max(noise[k], 1e-9))
            for place, slope in slopes.items()
            if slope
        }
        # standard errors of one group, a unit of p
        strength = {
            place: abs(slopes[place][name]) / max(noise[name], 1e-9) for place, name in best.items()
        }
        watched = sorted(set(best.values()))
        groups = _groups(min(strength.values(), default=0.0), len(watched), self.step_s())
        layers = []
        for place, site in enumerate(self.dropouts):
            shown = (
                {"watched": best[place], "visible": _needed(len(watched), groups) / strength[place]}
                if strength.get(place, 0.0) > 0
                else {}
            )
            layers.append({"name": site.name, "p": site.p} | shown)
        return {
            "layers": layers,
            "group": GROUP,
            "groups": groups if watched else 0,
            "watched": self.variances(watched, MORE * groups) if watched else {},
        }

    def examined(self) -> list[int]:
        count = len(self.dropouts)
        return sorted(
            {
                round(i * (count - 1) / max(1, min(count, LAYERS) - 1))
                for i in range(min(count, LAYERS))
            }
        )

    def step_s(self) -> float:
        """Of the processor, so that it is the same whatever else the machine does."""
        times = []
        for _ in range(5):
            begin = time.process_time()
            self.gradients(self.names)
            times.append(time.process_time() - begin)
        return min(times) / torch.get_num_threads()

    def variances(self, names: list[str], groups: int) -> dict[str, list[float]]:
        """Parameter -> the variance of its gradient, summed over its elements, over the steps of
        each group."""
        torch.manual_seed(self.seed)
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(groups):
            for name, steps in zip(names, zip(*(self.gradients(names) for _ in range(GROUP)))):
                found[name].append(_summed_variance(torch.stack(steps)))
        return found

    def slopes(self, place: int, base: Mapping[str, list[float]]) -> dict[str, float]:
        """How the logarithm of each parameter's mean variance follows the p of one layer, by the
        same random numbers as `base` has."""
        site = self.dropouts[place]
        shift = min(0.05, (1 - site.p) / 2)
        site.give(site.p + shift)
        try:
            moved = self.variances(self.names, TRIAL_GROUPS)
        finally:
            site.give(site.p)
        means = {name: (sum(moved[name]), sum(base[name])) for name in self.names}
        return {name: math.log(a / b) / shift for name, (a, b) in means.items() if a > 0 and b > 0}


def _summed_variance(steps: Tensor) -> float:
    """Along the first dimension, summed over the others; overwrites `steps`. `var(0)` took 100 ms
    for four gradients of 1.2 million elements where this takes 15 (PyTorch 2.15, two threads)."""
    steps -= steps.mean(0)
    return steps.square_().sum(dtype=torch.float64).item() / (len(steps) - 1)


def _variation(values: list[float]) -> float:
    """Standard deviation over mean."""
    mean = sum(values) / len(values)
    return (
        (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5 / mean
        if mean > 0
        else float("inf")
    )


def _bound(watched: int, groups: int) -> float:
    """In standard errors: Student's t for ALARM, by its expansion about the normal distribution's
    z, with the degrees of freedom that a level's groups and the reference's have together."""
    z = (
        torch.distributions.Normal(0.0, 1.0)
        .icdf(torch.tensor(1 - ALARM / 2 / max(1, watched), dtype=torch.float64))
        .item()
    )
    freedom = (1 + 1 / MORE) ** 2 / (1 / (groups - 1) + 1 / MORE**2 / (MORE * groups - 1))
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _needed(watched: int, groups: int) -> float:
    """The change of a mean variance, in units of the variation of one group, that is found in 999
    of 1000 runs."""
    return (_bound(watched, groups) + CERTAIN) * (1 / groups + 1 / (MORE * groups)) ** 0.5


def _groups(strength: float, watched: int, step_s: float) -> int:
    """So many that WANTED is found at the layer that shows least, within the time."""
    groups = LEAST_GROUPS
    while (
        groups < min(MOST_GROUPS, SECONDS / max(GROUP * step_s, 1e-6))
        and not _needed(watched, groups) <= WANTED * strength
    ):
        groups += 4
    return groups
