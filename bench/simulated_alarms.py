#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often would two processes of one program be told apart, and what does a run find?

Simulated, by rule and number of restarts: the tables of docs/measuring.md. Each restart gives
ln(ratio) of one pair of fresh processes, normal with the level's own standard deviation or in one
of two states; noise within restarts is left out.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import statistics
from collections.abc import Callable

Z = 2.5758293
# 99.5% quantiles of Student's t, by degrees of freedom
T = [0, 63.657, 9.9248, 5.8409, 4.6041, 4.0321, 3.7074, 3.4995, 3.3554, 3.2498, 3.1693, 3.1058]
ASSUMED, MOST, LEAST_EFFECT = 0.015, 0.10, math.log(1.01)
PAIRS = {"0.3%": 0.003, "1.1%": 0.011, "2.6%": 0.026, "7.7%": 0.077, "12.8%": 0.128}
RESTARTS = (1, 2, 3, 4, 6, 8, 12)
Draw = Callable[[], float]
Rule = Callable[[list[float]], float]


def assumed(values: list[float]) -> float:
    """The half width if the process effect were 1.5% at every level."""
    return Z * ASSUMED * math.sqrt(2 / len(values))


def student(values: list[float]) -> float:
    """That of Student's t over the restarts' own values."""
    if len(values) < 2:
        return math.inf
    return T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def wider(values: list[float]) -> float:
    return max(assumed(values), student(values))


def chosen(values: list[float]) -> float:
    """The rule of src/stats/half_width.cpp."""
    if len(values) > 2:
        return wider(values)
    most = Z * MOST * math.sqrt(2 / len(values))
    part = len(values) == 2 and statistics.stdev(values) / math.sqrt(2) > most
    return student(values) if part else most


def share_found(rule: Rule, draw: Draw, restarts: int, runs: int, effect: float = 0.0) -> float:
    """Share (%) of runs whose interval excludes 0 and whose value is above the least effect."""
    hits = 0
    for _ in range(runs):
        values = [effect + draw() for _ in range(restarts)]
        hits += abs(statistics.fmean(values)) > max(rule(values), LEAST_EFFECT)
    return 100 * hits / runs


def missed(draw: Draw, fewest: int, precision: float, runs: int) -> float:
    """Share (%) of runs that miss 0, of at most 12 restarts, stopped at this half width."""
    misses = 0
    for _ in range(runs):
        values: list[float] = []
        while len(values) < 12:
            values.append(draw())
            if len(values) >= fewest and chosen(values) <= precision:
                break
        misses += abs(statistics.fmean(values)) > chosen(values)
    return 100 * misses / runs


def table(title: str, header: list[str], lines: list[list[str]]) -> None:
    print(f"\n{title}\n\n| " + " | ".join(header) + " |\n|---|" + "---:|" * (len(header) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20000)
    runs = parser.parse_args().runs
    source = random.Random(1)
    draws: dict[str, Draw] = {
        name: functools.partial(source.gauss, 0, sd) for name, sd in PAIRS.items()
    }
    draws["two states, 14%"] = lambda: 0.14 * (source.randrange(2) - source.randrange(2))
    counts = [str(n) for n in RESTARTS]

    rules: dict[str, Rule] = {"assumed alone": assumed, "wider": wider, "chosen": chosen}
    lines = [
        [name, rule] + [f"{share_found(rules[rule], draw, n, runs):.1f}" for n in RESTARTS]
        for name, draw in draws.items()
        for rule in rules
    ]
    table("False alarms (%)", ["sd of a pair", "rule", *counts], lines)

    lines = [
        [name, f"{effect:.0%}"]
        + [
            f"{share_found(chosen, draws[name], n, runs // 4, math.log1p(effect)):.0f}"
            for n in RESTARTS
        ]
        for name in ("1.1%", "2.6%", "12.8%")
        for effect in (0.02, 0.05, 0.10, 0.25, 0.50, 1.00)
    ]
    table("Found (%)", ["sd of a pair", "true effect", *counts], lines)

    lines = [
        [name] + [f"{missed(draw, fewest, 0.03, runs):.1f}" for fewest in (3, 4, 6)]
        for name, draw in draws.items()
    ]
    table(
        "Missed by the 99% interval (%) where --ci-width 3% stops a run",
        ["sd of a pair", "from 3", "from 4", "from 6"],
        lines,
    )


if __name__ == "__main__":
    main()
