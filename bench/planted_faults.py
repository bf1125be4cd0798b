#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the proof see every mistake in this network? Compares eager with copies of itself, each with
one planted fault. Prints a Markdown table; exit code 1 if a copy got a number.

A fault that the network has no place for (a shortcut, a LayerNorm) says so itself and is listed as
such. Options after the model go to ./strata compare."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, compare

FAULTY = ROOT / "tests" / "levels" / "faulty_eager"
sys.path.insert(0, str(FAULTY.parent))
from faulty_eager.copies import plant  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("model")
    options, more = parser.parse_known_args()
    python = os.environ.get("STRATA_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    faults = subprocess.run(
        [python, str(FAULTY / "level.py"), options.mode],
        env=os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "python")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    with tempfile.TemporaryDirectory() as levels:
        os.environ["STRATA_LEVEL_PATH"] = str(plant(Path(levels), faults))
        result = compare(
            options.model,
            "--mode",
            options.mode,
            "--restarts",
            "1",
            "--budget",
            "1s",
            *more,
            "--levels",
            ",".join(["eager", *faults]),
        )
    rows = {row["level"]: row for row in result["cases"][0]["rows"]}
    print("| planted | result | reason |\n|---|---|---|")
    for name in ["eager", *faults]:
        print(f"| {name} | {rows[name]['state']} | {rows[name]['reason'].replace('|', '/')} |")
    missed = [name for name in faults if rows[name]["state"] == "measured"]
    print(
        f"\n{sum(rows[name]['state'] in ('unequal', 'mistrusted') for name in faults)} faults refused, {sum(rows[name]['state'] == 'unsupported' for name in faults)} have no place here, {len(missed)} missed"
    )
    return int(bool(missed) or rows["eager"]["state"] != "measured")


if __name__ == "__main__":
    sys.exit(main())
