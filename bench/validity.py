#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `compare` keep what it promises, end to end?

A/A: levels beside themselves, in fresh processes, at one and at two threads (`--aa`). A/B: eager
beside copies of itself that do 1, 2, 3 and 5% more work (bench/slowed_eager), whose cost is
measured before and after each run. Three networks in turns, until --minutes are over; each run is
a line of OUTPUT/runs.jsonl with the machine, its load and every restart's ratio, and a second call
goes on where the first one stopped. All runs share a store, so that from the second of a kind on
intervals rest on what was learned. Prints false alarms, power, coverage and the smallest visible
effect, as Markdown, with 95% bounds (Clopper-Pearson, one-sided).

The comparisons of one run share the processes of eager, so that they are not independent.
Exit code: 0 the time is over, 1 a run failed, 3 the machine is not idle.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from false_alarms import ALARMS, add_waiting, append, read, upper_bound, wait_until_idle

from common import ROOT

Json = dict[str, Any]

SLOWED = ROOT / "bench" / "slowed_eager"
CASES = {
    "mnist_convnet": ["mnist_convnet"],
    "resnet18 at 64": ["resnet18", "--input", "1x3x64x64"],
    "mobilenet_v2 at 64": ["mobilenet_v2", "--input", "1x3x64x64"],
}
TWINS = ["eager", "libtorch", "torchscript", "static", "onnxruntime"]
EFFECTS = (1, 2, 3, 5)  # percent of eager's time
ENOUGH_RUNS = 3  # earlier ones, that an interval counts as learned from


class Experiment(NamedTuple):
    kind: str  # "aa" or "ab"
    case: str
    threads: int


EXPERIMENTS = [
    Experiment(kind, case, threads)
    for kind, threads in (("ab", 1), ("aa", 1), ("aa", 2))
    for case in CASES
]


def python() -> str:
    return os.environ.get("STRATA_PYTHON", str(ROOT / ".venv" / "bin" / "python"))


def cost_ns(turns: int) -> float:
    """What so many turns of the extra work take, in a process of its own."""
    done = subprocess.run(
        [python(), str(SLOWED / "extra_work.py"), str(turns)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def compare(options: argparse.Namespace, words: list[str], levels: Path | None) -> Json | None:
    """The result of one comparison; None: strata gave none."""
    command = [str(ROOT / "strata"), "compare", *words, "--store", str(options.output / "runs.db")]
    command += ["--format", "json", "-o", str(options.output / "last.html")]
    environment = os.environ | ({"STRATA_LEVEL_PATH": str(levels)} if levels else {})
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else None


def levels_of(options: argparse.Namespace, experiment: Experiment) -> Path:
    return options.output / "levels" / f"{experiment.case.replace(' ', '_')}-t{experiment.threads}"


def plant(options: argparse.Namespace, experiment: Experiment) -> dict[str, int] | None:
    """The copies of eager for a case, by name, with their turns: chosen once, since what is learned
    of a level holds for that program. They lie in levels_of(...)."""
    folder = levels_of(options, experiment)
    turns_file = folder.with_suffix(".json")
    if turns_file.exists():
        return json.loads(turns_file.read_text(encoding="utf-8"))
    words = [*CASES[experiment.case], "--levels", "eager", "--threads", str(experiment.threads)]
    result = compare(options, [*words, "--restarts", "3", "--budget", "6s"], None)
    if not result:
        return None
    time_ms = row_of(result, "eager")["end_to_end_ms"]
    if not time_ms:
        return None
    turn_ns = cost_ns(10000) / 10000
    about = json.loads((SLOWED / "level.json").read_text(encoding="utf-8"))
    turns = {}
    for percent in EFFECTS:
        name = f"slowed_{percent}"
        turns[name] = max(1, round(percent / 100 * time_ms["estimate"] * 1e6 / turn_ns))
        (folder / name).mkdir(parents=True, exist_ok=True)
        start = [
            "/usr/bin/env",
            f"STRATA_EXTRA_TURNS={turns[name]}",
            "{python}",
            "-m",
            "strata_sdk",
            str(SLOWED),
        ]
        text = json.dumps(about | {"id": name, "start": start})
        (folder / name / "level.json").write_text(text, encoding="utf-8")
    turns_file.write_text(json.dumps(turns), encoding="utf-8")
    return turns


def row_of(result: Json, level: str) -> Json:
    return next(row for row in result["cases"][0]["rows"] if row["level"] == level)


def record_of(row: Json, source: Json) -> Json:
    """What is kept of a comparison: `source` is the row's `ratio` or its `aa`."""
    parts = ("ratio", "verdict", "rests_on", "by_restart", "learned", "smallest_visible_percent")
    record = {part: source.get(part) for part in parts}
    if record["ratio"] is None:  # of a row's ratio, which is the estimate itself
        record["ratio"] = {part: source.get(part) for part in ("value", "low", "high")}
    blocks = row["blocks"]
    record["blocks"] = len(blocks)
    record["disturbed"] = sum(block["disturbed"] for block in blocks)
    return record | {"state": row["state"], "reason": row["reason"]}


def run_ab(options: argparse.Namespace, experiment: Experiment, words: list[str]) -> Json | None:
    """Eager beside its slowed copies. `planted`: the share of eager's time that the extra work
    took, by its cost before and after."""
    turns = plant(options, experiment)
    if turns is None:
        return None
    before = {name: cost_ns(count) for name, count in turns.items()}
    words = [*words, "--levels", ",".join(["eager", *turns])]
    result = compare(options, words, levels_of(options, experiment))
    after = {name: cost_ns(count) for name, count in turns.items()}
    if not result:
        return None
    time_ms = row_of(result, "eager")["end_to_end_ms"]
    if not time_ms:
        return None
    rows = {}
    for name in turns:
        row = row_of(result, name)
        planted = [cost[name] / (time_ms["estimate"] * 1e6) for cost in (before, after)]
        rows[name] = record_of(row, row["ratio"] or {}) | {"planted": planted, "turns": turns[name]}
    return result | {"kept": rows}


def run_aa(options: argparse.Namespace, _: Experiment, words: list[str]) -> Json | None:
    result = compare(options, [*words, "--levels", ",".join(TWINS), "--aa"], None)
    if result is None:
        return None
    return result | {
        "kept": {
            name: record_of(row_of(result, name), row_of(result, name)["aa"] or {})
            for name in TWINS
        }
    }


RUN: dict[str, Callable[[argparse.Namespace, Experiment, list[str]], Json | None]] = {
    "ab": run_ab,
    "aa": run_aa,
}


def run_once(options: argparse.Namespace, experiment: Experiment, busy: float) -> Json | None:
    """One line of runs.jsonl; None: strata gave no result."""
    words = [*CASES[experiment.case], "--threads", str(experiment.threads)]
    words += ["--restarts", str(options.restarts), "--budget", options.budget]
    load, began = os.getloadavg(), time.monotonic()
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    result = RUN[experiment.kind](options, experiment, words)
    if result is None:
        return None
    return {
        **experiment._asdict(),
        "started": started,
        "seconds": round(time.monotonic() - began, 1),
        "run": result["run"]["id"],
        "version": result["run"]["version"],
        "restarts": options.restarts,
        "budget": options.budget,
        "machine": result["machine"],
        "environments": result["environments"],
        "busy_before": round(busy, 4),
        "load_before": load,
        "load_after": os.getloadavg(),
        "warnings": [f"{warning['id']} {warning['what']}" for warning in result["warnings"]],
        "trust": result["cases"][0]["trust"],
        "levels": result["kept"],
    }


# -- what came of it -----------------------------------------------------------------------------


def usable(level: Json) -> bool:
    ratio = level["ratio"]
    ends = (ratio["value"], ratio["low"], ratio["high"])
    return level["state"] == "measured" and None not in ends


def learned(level: Json) -> bool:
    """Whether its interval rests on enough earlier runs."""
    return bool(level["learned"]) and level["learned"]["runs"] >= ENOUGH_RUNS


def half_width(level: Json) -> float:
    return math.log(level["ratio"]["high"] / level["ratio"]["low"]) / 2


def of_all(values: Iterable[float | None], decimals: int = 2) -> str:
    """Their median as percent; empty for none."""
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.{decimals}f}%" if known else ""


def share(hits: int, trials: int, *, at_least: bool) -> str:
    """ "17 of 17 (at least 84%)"."""
    if not trials:
        return "none"
    bound = 1 - upper_bound(trials - hits, trials) if at_least else upper_bound(hits, trials)
    return f"{hits} of {trials} (at {'least' if at_least else 'most'} {bound:.1%})"


def table(title: str, columns: list[str], lines: list[list[str]]) -> str:
    head = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([f"\n### {title}\n", *head, *body])


def alarms_line(name: str, twins: list[Json]) -> list[str]:
    rested = [level["rests_on"] for level in twins]
    return [
        name,
        share(sum(level["verdict"] in ALARMS for level in twins), len(twins), at_least=False),
        ", ".join(f"{rested.count(basis)} {basis}" for basis in sorted(set(rested))),
        of_all(100 * half_width(level) for level in twins),
    ]


def alarms(runs: list[Json]) -> str:
    lines, every = [], []
    for experiment in EXPERIMENTS:
        if experiment.kind != "aa":
            continue
        of_case = [run for run in runs if same(run, experiment)]
        for level in TWINS:
            twins = [run["levels"][level] for run in of_case if usable(run["levels"][level])]
            every += twins
            if twins:
                name = f"{experiment.case}, {experiment.threads} thread{'s' * (experiment.threads > 1)}, {level}"
                lines.append(alarms_line(name, twins))
    lines.append(alarms_line("all", every))
    lines.append(alarms_line("all, learned", [twin for twin in every if learned(twin)]))
    columns = ["network, level", "false alarms", "intervals rest on", "half width (99%)"]
    return table("A/A: a level beside itself", columns, lines)


def planted_log(level: Json) -> float:
    """ln(eager's time / the copy's) that is due."""
    return -math.log1p(statistics.fmean(level["planted"]))


def covered(level: Json) -> bool:
    return math.log(level["ratio"]["low"]) <= planted_log(level) <= math.log(level["ratio"]["high"])


def power_line(name: str, copies: list[Json]) -> list[str]:
    known = [level for level in copies if learned(level)]
    called_slower = [level for level in copies if level["verdict"] == "slower"]
    moved = (abs(math.log(level["planted"][1] / level["planted"][0])) for level in copies)
    return [
        name,
        share(len(called_slower), len(copies), at_least=True),
        share(sum(level["verdict"] == "slower" for level in known), len(known), at_least=True),
        share(sum(covered(level) for level in copies), len(copies), at_least=True),
        of_all(100 * (1 - math.exp(planted_log(level))) for level in copies),
        of_all(100 * (1 - level["ratio"]["value"]) for level in copies),
        of_all(100 * half_width(level) for level in copies),
        of_all((100 * part for part in moved), 1),
    ]


def power(runs: list[Json]) -> str:
    lines = []
    every: dict[int, list[Json]] = {percent: [] for percent in EFFECTS}
    for case in CASES:
        for percent in EFFECTS:
            copies = [
                run["levels"][f"slowed_{percent}"]
                for run in runs
                if run["kind"] == "ab" and run["case"] == case
            ]
            copies = [level for level in copies if usable(level)]
            every[percent] += copies
            if copies:
                lines.append(power_line(f"{case}, {percent}%", copies))
    for percent, copies in every.items():
        lines.append(power_line(f"all, {percent}%", copies))
    lines.append(power_line("all", [level for copies in every.values() for level in copies]))
    columns = [
        "network, planted",
        "found",
        f"found after {ENOUGH_RUNS} runs or more",
        "inside the interval",
        "due",
        "estimated",
        "half width (99%)",
        "calibration moved",
    ]
    return table("A/B: eager beside copies that do more work", columns, lines)


def visible(runs: list[Json]) -> str:
    """The smallest effect that is printed to be found 19 times in 20, and the smallest planted one
    that was."""
    lines = []
    for case in CASES:
        of_case = [run["levels"] for run in runs if run["kind"] == "ab" and run["case"] == case]
        copies = {
            percent: [
                levels[f"slowed_{percent}"]
                for levels in of_case
                if learned(levels[f"slowed_{percent}"])
            ]
            for percent in EFFECTS
        }
        visible_effects = [
            percent
            for percent, some in copies.items()
            if some and statistics.fmean(level["verdict"] == "slower" for level in some) >= 0.95
        ]
        every = [level for some in copies.values() for level in some]
        if every:
            printed = of_all(level["smallest_visible_percent"] for level in every)
            lines.append(
                [
                    case,
                    str(len(every)),
                    printed,
                    f"{min(visible_effects)}%" if visible_effects else "none",
                ]
            )
    columns = ["network", "comparisons", "as printed (median)", "smallest planted found in 95%"]
    return table(f"Smallest visible effect, after {ENOUGH_RUNS} runs or more", columns, lines)


def same(run: Json, experiment: Experiment) -> bool:
    return (run["kind"], run["case"], run["threads"]) == tuple(experiment)


def summary(runs: list[Json]) -> str:
    if not runs:
        return "no run yet"
    machines = {f"{run['machine'].get('cpu')}, {run['machine'].get('cores')} cores" for run in runs}
    torch = {str(run["environments"][0].get("torch")) for run in runs}
    restarts = {str(run["restarts"]) for run in runs}
    busy = [100 * run["busy_before"] for run in runs]
    disturbed = sum(level["disturbed"] for run in runs for level in run["levels"].values())
    blocks = sum(level["blocks"] for run in runs for level in run["levels"].values())
    head = (
        f"{len(runs)} runs of {', '.join(sorted(restarts))} restarts, "
        f"{sum(run['seconds'] for run in runs) / 60:.0f} minutes, "
        f"{runs[0]['started']} to {runs[-1]['started']}; {'; '.join(sorted(machines))}; "
        f"PyTorch {', '.join(sorted(torch))}. In use before a run: median "
        f"{statistics.median(busy):.1f}%, most {max(busy):.1f}%; "
        f"{disturbed} of {blocks} blocks disturbed."
    )
    return "\n".join([head, alarms(runs), power(runs), visible(runs)])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("output", type=Path, help="folder of runs.jsonl and the store; it is continued")
    add("--minutes", type=float, default=120, help="after which no run begins (%(default)s)")
    add("--restarts", type=int, default=6, help="of each run (%(default)s)")
    add("--budget", default="15s", help="measured seconds of each run (%(default)s)")
    add_waiting(parser)
    return parser.parse_args()


def main() -> int:
    options = parse()
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "runs.jsonl"
    runs, code = read(path), 0
    end = time.monotonic() + 60 * options.minutes
    while not options.show and time.monotonic() < end:
        busy = wait_until_idle(options.most_busy, options.patience)
        if busy is None:
            print(
                f"the machine did not become idle within {options.patience:.0f} s; "
                "run this again to go on",
                file=sys.stderr,
            )
            code = 3
            break
        experiment = min(EXPERIMENTS, key=lambda kind: sum(same(run, kind) for run in runs))
        run = run_once(options, experiment, busy)
        if run is None:
            print(f"{experiment.case}: strata gave no result", file=sys.stderr)
            code = 1
            break
        append(path, run)
        runs.append(run)
        print(
            f"{' '.join(map(str, experiment))}: {run['seconds']:.0f} s, {len(runs)} runs",
            file=sys.stderr,
            flush=True,
        )
    print(summary(runs))
    return code


if __name__ == "__main__":
    sys.exit(main())
