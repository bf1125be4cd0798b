#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often is a level called faster or slower than itself?

Runs `compare --aa`, twins of every level in fresh processes, over two networks until enough
comparisons are there. Each run is one line of OUTPUT/runs.jsonl with the machine, its load and
every restart's ratio; a second call goes on where the first one stopped. Runs begin only while the
rest of the machine is idle. Prints the alarms with their 95% bound (Clopper-Pearson, one-sided), by
network and level, and what the assumed process effect alone would have called.

Exit code: 0 enough comparisons, 1 a run failed, 3 the machine is not idle.
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
from pathlib import Path
from typing import Any

from common import ROOT

Json = dict[str, Any]

CASES = {
    "mnist_convnet": (["mnist_convnet"], ["libtorch", "torchscript", "static", "onnxruntime"]),
    "resnet18 at 64": (
        ["resnet18", "--input", "1x3x64x64"],
        ["eager", "libtorch", "static", "onnxruntime", "aoti", "openvino", "onednn"],
    ),
}
ALARMS = ("faster", "slower")
COLUMNS = [
    "network, level",
    "comparisons",
    "false alarms",
    "at most (95%)",
    "by the assumed effect alone",
    "sd of a pair by restart",
    "half width (99%)",
]


def upper_bound(hits: int, trials: int) -> float:
    """The rate at which so few hits or fewer have a chance of 5%; 1 for no trials."""
    if hits >= trials:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chances = range(hits + 1)
        terms = (math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in chances)
        low, high = (rate, high) if sum(terms) > 0.05 else (low, rate)
    return high


def busy_share(seconds: float = 3.0) -> float:
    """Share of the processors' time in use, between two looks at /proc/stat."""

    def look() -> tuple[int, int]:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        fields = [int(word) for word in first.split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = look()
    time.sleep(seconds)
    total_after, idle_after = look()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def wait_until_idle(most: float, patience: float) -> float | None:
    """The share in use once it is at most `most`; None after `patience` seconds."""
    end = time.monotonic() + patience
    while (share := busy_share()) > most:
        if time.monotonic() > end:
            return None
        print(
            f"{share:.0%} of the machine is in use (at most {most:.0%}): waiting",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(20)
    return share


def twins_of(row: Json) -> Json:
    """What is kept of one level against itself."""
    aa = row["aa"] or {}
    return {
        "state": row["state"],
        "reason": row["reason"],
        "verdict": aa.get("verdict"),
        "ratio": aa.get("ratio"),
        "by_restart": aa.get("by_restart", []),
        "if_assumed": aa.get("if_assumed"),
        "blocks": len(row["blocks"]),
        "disturbed": sum(block["disturbed"] for block in row["blocks"]),
    }


def run_once(case: str, options: argparse.Namespace, busy: float) -> Json | None:
    """One line of runs.jsonl; None: strata gave no result."""
    words, levels = CASES[case]
    command = [str(ROOT / "strata"), "compare", *words, "--levels", ",".join(levels), "--aa"]
    command += ["--threads", "1", "--restarts", str(options.restarts), "--budget", options.budget]
    command += ["--store", str(options.output / "runs.db"), "--format", "json"]
    command += ["-o", str(options.output / "last.html")]
    load, began = os.getloadavg(), time.monotonic()
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        return None
    result = json.loads(done.stdout)
    run_case = result["cases"][0]
    return {
        "case": case,
        "started": started,
        "seconds": round(time.monotonic() - began, 1),
        "run": result["run"]["id"],
        "version": result["run"]["version"],
        "restarts": options.restarts,
        "budget": options.budget,
        "exit_code": done.returncode,
        "machine": result["machine"],
        "busy_before": round(busy, 4),
        "load_before": load,
        "load_after": os.getloadavg(),
        "warnings": [f"{warning['id']} {warning['what']}" for warning in result["warnings"]],
        "trust": run_case["trust"],
        "levels": {row["level"]: twins_of(row) for row in run_case["rows"] if not row["harness"]},
    }


def read(path: Path) -> list[Json]:
    """The lines that are whole: the last one may have been cut."""
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"{path}: a line that is not whole is left out", file=sys.stderr)
    return runs


def append(path: Path, run: Json) -> None:
    """One line more, on a line of its own even behind one that was cut."""
    before = path.read_bytes() if path.exists() else b""
    cut = bool(before) and not before.endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + json.dumps(run) + "\n")


def comparisons(runs: list[Json]) -> list[tuple[str, str, Json]]:
    """(case, level, twins) of every level that was compared with itself."""
    return [
        (run["case"], level, twins)
        for run in runs
        for level, twins in run["levels"].items()
        if twins["state"] == "measured" and twins["ratio"] and twins["ratio"]["value"] is not None
    ]


def line_of(name: str, chosen: list[Json]) -> str:
    alarms = sum(twins["verdict"] in ALARMS for twins in chosen)
    assumed = sum(twins["if_assumed"]["verdict"] in ALARMS for twins in chosen)
    logs = [[math.log(ratio) for ratio in twins["by_restart"]] for twins in chosen]
    spread = [statistics.variance(ratios) for ratios in logs if len(ratios) > 1]
    ratios = [
        twins["ratio"] for twins in chosen if twins["ratio"]["low"] and twins["ratio"]["high"]
    ]
    widths = [math.log(ratio["high"] / ratio["low"]) / 2 for ratio in ratios]
    cells = [
        name,
        str(len(chosen)),
        str(alarms),
        f"{upper_bound(alarms, len(chosen)):.1%}",
        str(assumed),
        f"{math.sqrt(statistics.fmean(spread)):.2%}" if spread else "",
        f"{statistics.median(widths):.1%}" if widths else "",
    ]
    return "| " + " | ".join(cells) + " |"


def summary(runs: list[Json]) -> str:
    """A Markdown table of all lines in runs.jsonl."""
    every = comparisons(runs)
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for case, (_, levels) in CASES.items():
        for level in levels:
            chosen = [twins for *where, twins in every if where == [case, level]]
            if chosen:
                lines.append(line_of(f"{case}, {level}", chosen))
    lines.append(line_of("all", [twins for *_, twins in every]))
    minutes = sum(run["seconds"] for run in runs) / 60
    disturbed = sum(twins["disturbed"] for *_, twins in every)
    blocks = sum(twins["blocks"] for *_, twins in every)
    restarts = ", ".join(str(n) for n in sorted({run["restarts"] for run in runs}))
    lines.append(
        f"\n{len(runs)} runs of {restarts} restarts in {minutes:.0f} minutes; "
        f"{disturbed} of {blocks} blocks disturbed"
    )
    return "\n".join(lines)


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """The options of all scripts that measure on an idle machine only and can be continued."""
    add = parser.add_argument
    add(
        "--most-busy",
        type=float,
        default=0.05,
        help="share of the machine that may be in use before each begins (%(default)s)",
    )
    add("--patience", type=float, default=900, help="seconds to wait for that (%(default)s)")
    add("--show", action="store_true", help="print what is there and run nothing")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("output", type=Path, help="folder of runs.jsonl and the store; it is continued")
    add("--comparisons", type=int, default=110, help="with earlier ones (%(default)s)")
    add("--restarts", type=int, default=4, help="of each run (%(default)s)")
    add("--budget", default="8s", help="measured seconds of each run (%(default)s)")
    add("--cases", default=",".join(CASES), help="by comma (%(default)s)")
    add_waiting(parser)
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    for case in options.cases:
        if case not in CASES:
            parser.error(f"--cases {case}: allowed: {', '.join(CASES)}")
    return options


def main() -> int:
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "runs.jsonl"
    runs = read(path)
    code = 0
    while not options.show and len(comparisons(runs)) < options.comparisons:
        busy = wait_until_idle(options.most_busy, options.patience)
        if busy is None:
            print(
                f"the machine did not become idle within {options.patience:.0f} s; "
                "run this again to go on",
                file=sys.stderr,
            )
            code = 3
            break
        case = min(options.cases, key=lambda name: sum(run["case"] == name for run in runs))
        run = run_once(case, options, busy)
        if run is None:
            print(f"{case}: strata gave no result", file=sys.stderr)
            code = 1
            break
        append(path, run)
        runs.append(run)
        if len(runs) > 2 and not comparisons(runs[-3:]):
            print(
                "no level could be compared with itself: every block was disturbed", file=sys.stderr
            )
            code = 3
            break
        print(
            f"{case}: {run['seconds']:.0f} s, {len(comparisons(runs))} of {options.comparisons}",
            file=sys.stderr,
            flush=True,
        )
    print(summary(runs))
    return code


if __name__ == "__main__":
    sys.exit(main())
