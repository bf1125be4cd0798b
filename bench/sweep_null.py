#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many fields of a map have a colour where no level is faster than another?

Runs `sweep` over a grid with twins, one level under two names, in walks of processes of their own;
each sweep has another order. Each sweep is one line of OUTPUT/sweeps.jsonl, and a second call goes
on where the first one stopped. Sweeps begin only while the rest of the machine is idle. Prints, as
Markdown, the fields that name one twin alone as the fastest, each of them wrong, with their 95%
bound (Clopper-Pearson, one-sided). The bound takes fields as independent; fields of a walk share
their processes, so sweeps with any such field are counted too.

Exit code: 0 enough sweeps, 1 a sweep failed, 3 the machine is not idle.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from false_alarms import Json, add_waiting, append, read, upper_bound, wait_until_idle

from common import ROOT

TWINS = ("twin_a", "twin_b")


def make_twins(level: str, folder: Path) -> None:
    """Two copies of a level that differ in nothing but their names."""
    for twin in TWINS:
        shutil.rmtree(folder / twin, ignore_errors=True)
        shutil.copytree(ROOT / "levels" / level, folder / twin)
        about = json.loads((folder / twin / "level.json").read_text(encoding="utf-8"))
        about |= {"id": twin, "title": f"{level}, as {twin}"}
        (folder / twin / "level.json").write_text(json.dumps(about), encoding="utf-8")


def fields_of(document: Json) -> list[str | None]:
    """What each field of the maps is: a twin's name, "" without a colour, None where others used
    the machine or nothing was measured."""
    fields: list[str | None] = []
    for item in (item for section in document["sections"] for item in section["items"]):
        if not item.get("id", "").startswith("fastest"):
            continue
        names = item["scale"].get("categories", [])  # none where no field has a colour
        for values, labels in zip(item["values"], item["labels"], strict=True):
            for value, label in zip(values, labels, strict=True):
                if value is not None:
                    fields.append(names[int(value)])
                else:
                    fields.append("" if all(twin in label for twin in TWINS) else None)
    return fields


def run_once(number: int, options: argparse.Namespace, busy: float) -> Json | None:
    """One line of sweeps.jsonl; None: strata gave no result."""
    command = [str(ROOT / "strata"), "sweep", options.model, *options.grid.split()]
    command += ["--levels", ",".join(TWINS), "--restarts", str(options.restarts)]
    command += ["--point-time", options.point_time, "--order-seed", str(number + 1)]
    command += ["--store", str(options.output / "sweeps.db"), "--format", "json"]
    command += ["-o", str(options.output / "last.html")]
    folders = [str(options.output / "levels"), os.environ.get("STRATA_LEVEL_PATH", "")]
    environment = os.environ | {"STRATA_LEVEL_PATH": ":".join(filter(None, folders))}
    began, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode not in (0, 1) or not done.stdout:
        return None
    return {
        "number": number,
        "started": started,
        "seconds": round(time.monotonic() - began, 1),
        "command": command[1:],
        "level": options.level,
        "restarts": options.restarts,
        "busy_before": round(busy, 4),
        "exit_code": done.returncode,
        "fields": fields_of(json.loads(done.stdout)),
    }


def line_of(name: str, sweeps: list[Json]) -> str:
    fields = [field for sweep in sweeps for field in sweep["fields"]]
    judged = [field for field in fields if field is not None]
    coloured = sum(field != "" for field in judged)
    cells = [
        name,
        str(len(fields)),
        str(len(fields) - len(judged)),
        str(coloured),
        f"{upper_bound(coloured, len(judged)):.1%}",
        f"{sum(any(sweep['fields']) for sweep in sweeps)} of {len(sweeps)}",
        f"{sum(sweep['seconds'] for sweep in sweeps) / 60:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def summary(sweeps: list[Json]) -> str:
    """A Markdown table: a line a sweep, and one of all."""
    columns = [
        "sweep",
        "fields",
        "without a result",
        "coloured",
        "at most (95%)",
        "sweeps with any",
        "minutes",
    ]
    lines = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    lines += [line_of(str(sweep["number"] + 1), [sweep]) for sweep in sweeps]
    lines.append(line_of("all", sweeps))
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("output", type=Path, help="folder of sweeps.jsonl and the store; it is continued")
    add("--sweeps", type=int, default=5, help="with earlier ones (%(default)s)")
    add("--level", default="eager", help="that has twins (%(default)s)")
    add("--model", default="mnist_convnet", help="(%(default)s)")
    add(
        "--grid",
        default="--batch 1..18 --mode infer,train --threads 1",
        help="axes of the sweep, as one word (%(default)s: 36 fields)",
    )
    add("--restarts", type=int, default=3, help="walks of each sweep (%(default)s)")
    add("--point-time", default="3s", help="measured time of a point (%(default)s)")
    add_waiting(parser)
    return parser.parse_args()


def main() -> int:
    options = parse()
    options.output = options.output.absolute()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "sweeps.jsonl"
    sweeps = read(path)
    code = 0
    if not options.show:
        make_twins(options.level, options.output / "levels")
    while not options.show and len(sweeps) < options.sweeps:
        busy = wait_until_idle(options.most_busy, options.patience)
        if busy is None:
            print("the machine did not become idle; run this again to go on", file=sys.stderr)
            code = 3
            break
        sweep = run_once(len(sweeps), options, busy)
        if sweep is None:
            print(f"sweep {len(sweeps) + 1}: strata gave no result", file=sys.stderr)
            code = 1
            break
        append(path, sweep)
        sweeps.append(sweep)
        print(
            f"sweep {len(sweeps)} of {options.sweeps}: {sweep['seconds']:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    print(summary(sweeps))
    return code


if __name__ == "__main__":
    sys.exit(main())
