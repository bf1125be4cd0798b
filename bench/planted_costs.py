#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a profile show a cost where it is?

Networks of planted_networks.py, each a small one with a cost in a known place: a large convolution,
twenty element-wise functions, transposes in memory (all in `middle`), a loop of Python and a sleep
(between operations). Each is profiled in turns with the plain one at every level, and of each level
the medians are compared: how much longer an iteration takes that is not recorded, how much of that
is in the place where the cost is, and how much in any other. The parts that both have alike (`stem`
and `tail`) are the clock: the plain one's times are scaled by how much these differ, since a
machine that is slower for a minute would be taken for a cost. Found: within 20% of it there, below
5% elsewhere. A level that does without the cost (none of it is left in its iteration) is said to.
Prints a table as Markdown. Measure alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from common import ROOT

NETWORKS = Path(__file__).resolve().parent / "planted_networks.py"
PLACES = {
    "work": "middle",
    "elements": "middle",
    "moves": "middle",
    "python": "between",
    "waiting": "between",
}
LEVELS = ["eager", "libtorch", "torchscript", "onednn", "static", "onnxruntime"]
ALIKE = ("stem", "tail")
LEAST_MS, LEAST_SHARE = 0.1, 0.05  # of a cost that is looked for, beside the plain iteration
Times = dict[str, float]  # by place, ms of an iteration


def profile(network: str, mode: str, levels: list[str], threads: int) -> dict[str, Times]:
    """By level, milliseconds of an iteration by the network's first modules, and `plain`."""
    words = [f"{NETWORKS}:{network}", "--mode", mode, "--levels", ",".join(levels)]
    effort = ["--restarts", "1", "--budget", "2s", "--threads", str(threads), "--format", "json"]
    done = subprocess.run(
        [str(ROOT / "strata"), "profile", *words, *effort],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        sys.exit(done.stderr)
    found = {}
    for row in json.loads(done.stdout)["cases"][0]["rows"]:
        about = row["profile"]
        if not about or not about["operations"]:
            continue
        times: Times = defaultdict(float, plain=about["plain_ms"], between=about["after_ms"])
        for each in about["operations"]:
            layer = each["layer"]
            place = "(not known)" if layer is None else layer.partition(".")[0] or "(the network)"
            times[place] += each["ms"]
            times["between"] += each["gap_ms"]
        found[row["level"]] = times
    return found


def medians(runs: list[dict[str, Times]], level: str) -> Times:
    of_level = [run[level] for run in runs if level in run]
    places = {place for times in of_level for place in times}
    return {place: statistics.median(t.get(place, 0) for t in of_level) for place in places}


def line(cost: str, mode: str, level: str, plain: Times, planted: Times) -> str:
    pace = sum(planted[place] for place in ALIKE) / sum(plain[place] for place in ALIKE)
    grown = {
        place: planted.get(place, 0) - pace * plain.get(place, 0) for place in {*plain, *planted}
    }
    whole = grown.pop("plain")
    cells = [cost, mode, level, f"{whole:.2f}"]
    if whole < max(LEAST_MS, LEAST_SHARE * pace * plain["plain"]):
        return "| " + " | ".join([*cells, "–", "–", "none of it is left"]) + " |"
    there = grown.pop(PLACES[cost], 0.0)
    worst = max(grown, key=lambda place: abs(grown[place]))
    is_found = abs(there / whole - 1) <= 0.2 and abs(grown[worst]) < 0.05 * whole
    cells += [f"{there / whole:.0%}", f"{grown[worst] / whole:.0%} {worst}"]
    return "| " + " | ".join([*cells, "found" if is_found else "missed"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="profiles of each network (3)")
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--modes", default="infer,train")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    levels = asked.levels.split(",")
    print(
        "| cost | mode | level | ms more | of it there | most elsewhere | |\n|---|---|---|---|---|---|---|"
    )
    for mode in asked.modes.split(","):
        runs = defaultdict(list)
        for _ in range(asked.repeats):
            for network in ("plain", *PLACES):
                runs[network].append(profile(network, mode, levels, asked.threads))
        for cost in PLACES:
            for level in levels:
                if any(level in run for run in runs["plain"]) and any(
                    level in r for r in runs[cost]
                ):
                    plain, planted = (medians(runs[name], level) for name in ("plain", cost))
                    print(line(cost, mode, level, plain, planted), flush=True)


if __name__ == "__main__":
    main()
