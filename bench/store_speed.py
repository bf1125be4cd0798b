#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `list runs` and `show RUN` take in a store of many runs. The runs are made up, of six
levels with blocks and metrics each; their pages have strata's checksums, so that the program reads
them as its own.

    bench/store_speed.py --runs 5000 --most 0.1
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
from made_store import MadeStore

LEVELS = ("eager", "torchscript", "libtorch", "compile", "onednn", "static")
RESTARTS, ROUNDS, ITERATIONS = 4, 6, 5
METRICS = [f"metric_{n}" for n in range(40)]
REPEATS = 7


def fill(database: MadeStore, runs: int) -> list[str]:
    machines = [database.machine(f"machine {n}") for n in range(4)]
    environments = [database.environment(f"2.{n}.0") for n in range(10, 16)]
    ids = []
    for number in range(runs):
        run = database.run(machines[number % 4], environments[number % 6], name=f"night-{number}")
        ids.append(run)
        case = database.case(run, model=f"network{number % 50}", batch=1 + number % 8)
        for place, level in enumerate(LEVELS):
            row = database.row(run, case, level)
            times = struct.pack(
                f"<{ITERATIONS}q", *(1_000_000 * (9 - place) + 1000 * n for n in range(ITERATIONS))
            )
            database.connection.executemany(
                "INSERT INTO blocks(row_id,restart,round,position,instance,start_ns,wall_ns,latency_ns,check_result) VALUES(?,?,?,?,0,?,?,?,'')",
                [
                    (row, restart, round_, place, 10**9 * restart + 10**7 * round_, times, times)
                    for restart in range(RESTARTS)
                    for round_ in range(ROUNDS)
                ],
            )
            database.connection.executemany(
                "INSERT INTO metrics(row_id,pass,name,setting,unit,value,low,high,method) VALUES(?,'time',?,'','ms',?,?,?,'made')",
                [(row, name, place + 1.0, place + 0.5, place + 1.5) for name in METRICS],
            )
    return ids


def make(path: Path, runs: int) -> list[str]:
    database = MadeStore.in_file(path)
    ids = fill(database, runs)
    database.close(path)
    return ids


def seconds(program: Path, words: list[str]) -> float:
    begin = time.perf_counter()
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    took = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--most", type=float, default=0.1, help="seconds that a command may take")
    parser.add_argument("--store", type=Path, help="keep the store here, and use it again")
    arguments = parser.parse_args()
    program = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.store or Path(folder) / "many.db"
        if not path.exists():
            make(path, arguments.runs)
        names = [f"night-{n}" for n in (0, arguments.runs // 2)]
        print(
            f"{arguments.runs} runs, {path.stat().st_size / 1e6:.0f} MB; median and slowest of {REPEATS}, s"
        )
        slow = False
        for words in (
            ["--version"],
            ["list", "runs"],
            ["list", "runs", "--limit", "0"],
            ["show", "last"],
            *(["show", name] for name in names),
        ):
            more = [] if words == ["--version"] else ["--store", str(path)]
            took = [seconds(program, [*words, *more]) for _ in range(REPEATS)]
            print(
                f"{' '.join(words):24} {statistics.median(took):6.3f} {max(took):6.3f}", flush=True
            )
            slow = slow or ("0" not in words and statistics.median(took) > arguments.most)
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
