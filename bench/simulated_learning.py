#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do intervals that rest on earlier runs cover and find, whose spread varies from run to run?

Simulated, by earlier runs of six restarts: the tables on learned process effects in
docs/measuring.md. Each restart gives ln(ratio) of one pair of fresh processes, normal with the
level's own standard deviation, times a factor that each run draws; noise within restarts is left
out. The rule is of src/stats; its two constants can be changed here, to see what they do."""

from __future__ import annotations

import argparse
import functools
import math
import random
import statistics
from collections.abc import Callable

from simulated_alarms import LEAST_EFFECT, chosen, table

EARLIER = (0, 1, 3, 8)
RESTARTS = 6
Factor = Callable[[random.Random], float]
MIXTURES: dict[str, Factor] = {
    "the same in every run": lambda _: 1.0,
    "twice in half of the runs": lambda draw: draw.choice((1.0, 2.0)),
    "three times in one run of five": lambda draw: 3.0 if draw.randrange(5) == 0 else 1.0,
    "three times in half of the runs": lambda draw: draw.choice((1.0, 3.0)),
    "lognormal, a third up or down": lambda draw: math.exp(draw.gauss(0, 0.3)),
}


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised, by the continued fraction (Abramowitz and Stegun 26.5.8, Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x)) / a
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(200):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        fraction *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * (fraction - 1)


@functools.cache
def student(df: float) -> float:
    """The 99.5% quantile of Student's t."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        above = incomplete_beta(df / 2, 0.5, df / (df + middle * middle)) / 2
        low, high = (middle, high) if above > 0.005 else (low, middle)
    return high


def half_width(values: list[float], earlier: list[float], options: argparse.Namespace) -> float:
    """`earlier`: variances of runs of six restarts; without any, the rule of simulated_alarms."""
    if not earlier:
        return chosen(values)
    own_df, own = len(values) - 1, statistics.variance(values)
    learned, squares = statistics.fmean(earlier), 0.0
    for estimate in earlier:
        squares += (RESTARTS - 1) / 2 * (estimate / learned - 1) ** 2
    dispersion = max(1.0, squares / max(1, len(earlier) - 1))
    most = min(options.most_df, len(earlier) * (RESTARTS - 1)) / dispersion
    explained = incomplete_beta(most / 2, own_df / 2, most / (most + own_df * own / learned))
    df = most * min(1.0, explained / options.in_full)
    variance = (df * learned + own_df * own) / (df + own_df)
    return student(round(df + own_df, 2)) * math.sqrt(variance / len(values))


def run(
    sd: float,
    factor: Factor,
    earlier: int,
    effect: float,
    draw: random.Random,
    options: argparse.Namespace,
) -> tuple[bool, bool]:
    """Whether the interval holds the effect, and whether it was found."""

    def restarts(mean: float) -> list[float]:
        own = sd * factor(draw)
        return [mean + draw.gauss(0, own) for _ in range(RESTARTS)]

    known = [statistics.variance(restarts(effect)) for _ in range(earlier)]
    values = restarts(effect)
    width, mean = half_width(values, known, options), statistics.fmean(values)
    return abs(mean - effect) <= width, abs(mean) > max(width, LEAST_EFFECT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--in-full", type=float, default=0.1, help="(%(default)s)")
    parser.add_argument("--most-df", type=float, default=20, help="(%(default)s)")
    options = parser.parse_args()
    draw = random.Random(1)
    counts = [f"{count} earlier runs" for count in EARLIER]

    def share(which: int, sd: float, factor: Factor, earlier: int, effect: float) -> float:
        """Share (%) of runs that hold (0) or find (1) the effect."""
        every = range(options.runs)
        return (
            100
            * sum(run(sd, factor, earlier, effect, draw, options)[which] for _ in every)
            / options.runs
        )

    lines = [
        [f"{sd:.2%}", name] + [f"{share(1, sd, factor, earlier, 0):.2f}" for earlier in EARLIER]
        for sd in (0.0106, 0.026, 0.077)
        for name, factor in MIXTURES.items()
    ]
    table("False alarms (%)", ["sd of a pair", "its spread is", *counts], lines)
    lines = [
        [f"{sd:.2%}", name]
        + [f"{100 - share(0, sd, factor, earlier, 0.013):.2f}" for earlier in EARLIER]
        for sd in (0.0035, 0.077)
        for name, factor in MIXTURES.items()
    ]
    table("Missed by the 99% interval (%)", ["sd of a pair", "its spread is", *counts], lines)
    steady = MIXTURES["the same in every run"]
    lines = [
        [f"{sd:.2%}", f"{effect:.0%}"]
        + [f"{share(1, sd, steady, earlier, math.log1p(effect)):.1f}" for earlier in EARLIER]
        for sd in (0.0035, 0.0106, 0.026)
        for effect in (0.01, 0.02, 0.03, 0.05)
    ]
    table("Found (%)", ["sd of a pair", "true effect", *counts], lines)


if __name__ == "__main__":
    main()
