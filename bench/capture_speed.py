#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What capturing costs, part by part: one network at several image sizes, one after the other by
one process, as `./strata` does it. The first point also makes the network's weight sets; a further
one should cost little beyond what its references compute. Run it alone on the machine.

    bench/capture_speed.py --mode infer --sizes 64,96,128 --batch 32 --threads 2
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT

# Of spec.json (docs/bundle.md), what is asked for nothing here.
UNSET = (
    dict.fromkeys("size optimiser loss weights input_from input_file dynamic".split())
    | dict.fromkeys("synthetic deep light all_runs".split(), False)
    | {"precision": "fp32", "device": "cpu", "seed": 0, "ring": 4, "generic_sets": 2}
)

# Progress sentences (src/capture) by the part that they begin; the rest is "other".
PARTS = {
    "loading PyTorch": "PyTorch",
    "building": "build",
    "preparing inputs": "inputs",
    "preparing weights": "weights",
    "making weight set": "weights",
    "counting": "count",
    "float32 runs": "float32 runs",
    "float64 reference": "float64",
    "training step in float64": "float64",
    "training steps": "float32 runs",
    "probe weights": "probes",
    "planting faults": "faults",
    "steps with dropout": "dropout",
    "exporting": "export and graph",
    "writing": "writing",
    "done": "writing",
}
REFERENCES = ("float64", "probes", "faults")  # computed in float64


def part_of(sentence: str) -> str:
    return next((part for words, part in PARTS.items() if sentence.startswith(words)), "other")


def bytes_below(folder: Path) -> int:
    """Each file once, however many links it has."""
    return sum(
        {
            (about.st_dev, about.st_ino): about.st_size
            for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink()
            for about in [path.stat()]
        }.values()
    )


def capture(process: subprocess.Popen, spec: dict, folder: Path, name: str) -> dict[str, float]:
    """Seconds by part."""
    arguments = [
        "--spec",
        json.dumps(spec),
        "--out",
        str(folder / "bundles" / name),
        "--networks",
        str(folder / "networks"),
    ]
    assert process.stdin and process.stdout
    process.stdin.write(
        json.dumps({"arguments": arguments, "log": str(folder / f"{name}.log")}) + "\n"
    )
    process.stdin.flush()
    seconds: dict[str, float] = {}
    part, since = "start", time.monotonic()
    for line in process.stdout:
        now, message = time.monotonic(), json.loads(line)
        if message.get("ok") is False:
            sys.exit(f"{name}: {message['what']}")
        seconds[part] = seconds.get(part, 0.0) + now - since
        part, since = part_of(message["progress"]) if "progress" in message else "end", now
        if "exit_code" in message:
            break
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--mode", default="infer", choices=["infer", "train"])
    parser.add_argument("--sizes", default="64,96,128")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="capture-speed-"))
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}",
        "OMP_NUM_THREADS": str(options.threads),
    }
    columns: dict[str, dict[str, float]] = {}
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "capture", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            for size in options.sizes.split(","):
                spec = UNSET | {
                    "model": options.model,
                    "mode": options.mode,
                    "batch": options.batch,
                    "threads": options.threads,
                    "inputs": [
                        {"name": "", "dtype": "float32", "shape": [1, 3, int(size), int(size)]}
                    ],
                }
                before = bytes_below(folder)
                columns[size] = capture(process, spec, folder, size) | {
                    "MB": (bytes_below(folder) - before) / 1e6
                }
            process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(
        columns,
        f"{options.model}, {options.mode}, batch {options.batch}, {options.threads} threads",
    )


def show(columns: dict[str, dict[str, float]], title: str) -> None:
    print(f"{title}; seconds\n")
    print(
        "| part | "
        + " | ".join(f"{size} px" for size in columns)
        + " |\n|---|"
        + "---:|" * len(columns)
    )
    parts = [
        part
        for part in dict.fromkeys(p for column in columns.values() for p in column)
        if part != "MB"
    ]
    for part in parts:
        print(
            f"| {part} | "
            + " | ".join(f"{column.get(part, 0.0):.2f}" for column in columns.values())
            + " |"
        )
    for words, chosen in (
        ("all", parts),
        (f"all but {', '.join(REFERENCES)}", [part for part in parts if part not in REFERENCES]),
    ):
        print(
            f"| {words} | "
            + " | ".join(
                f"{sum(column.get(part, 0.0) for part in chosen):.2f}"
                for column in columns.values()
            )
            + " |"
        )
    print(
        "| MB more in the cache | "
        + " | ".join(f"{column['MB']:.1f}" for column in columns.values())
        + " |"
    )


if __name__ == "__main__":
    main()
