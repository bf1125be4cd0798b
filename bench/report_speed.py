#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a page of many cases and levels takes to write, and how large it is beside plotly's
script. The result is the made-up one of tests/report, its first case again and again with more
levels.

    bench/report_speed.py --cases 100 --levels 10 --most-seconds 5 --most-mb 10
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT


def many(cases: int, levels: int) -> dict:
    run = json.loads((ROOT / "tests/report/example_run.json").read_text(encoding="utf-8"))
    first = run["cases"][0]
    # what options of a run add
    rows = [row | {"clients": None, "dynamic": None} for row in first["rows"] if not row["harness"]]
    while len(rows) < levels:
        rows.append(
            copy.deepcopy(rows[-1]) | {"variant": f"variant_{len(rows)}", "reference": False}
        )
    first |= {"rows": rows[:levels], "slo": None}
    run["cases"] = [
        {**first, "id": f"resnet50/infer/b{batch}/3x224x224/fp32/cpu/t2", "key": f"{batch:016x}"}
        for batch in range(1, cases + 1)
    ]
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--levels", type=int, default=10)
    parser.add_argument("--most-seconds", type=float, default=5)
    parser.add_argument("--most-mb", type=float, default=10)
    arguments = parser.parse_args()
    program = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))
    with tempfile.TemporaryDirectory() as folder:
        result, page = Path(folder) / "result.json", Path(folder) / "page.html"
        result.write_text(json.dumps(many(arguments.cases, arguments.levels)), encoding="utf-8")
        read_mb = result.stat().st_size / 1e6
        begin = time.perf_counter()
        done = subprocess.run(
            [program, "report", "--from-json", result, "-o", page],
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - begin
        if done.returncode != 0:
            sys.exit(done.stderr)
        text = page.read_text(encoding="utf-8")
        script = max(
            (len(part.encode()) for part in re.findall(r"<script>(.*?)</script>", text, re.DOTALL)),
            default=0,
        )
        size = (page.stat().st_size - script) / 1e6
    print(
        f"{arguments.cases} cases x {arguments.levels} levels: {took:.2f} s with reading {read_mb:.0f} MB of result; {size:.1f} MB and plotly's {script / 1e6:.1f} MB"
    )
    sys.exit(1 if took > arguments.most_seconds or size > arguments.most_mb else 0)


if __name__ == "__main__":
    main()
