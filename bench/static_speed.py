#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is the level static? Times it beside eager, the tuned compile, one library call an
operation and the peers, all in one interleaved run a case, and prints how many times as fast as
each of them it is, with the 99% interval; beside it peak memory above the idle runtime, and process
start to first result from caches. Exit code 1 where a goal lies above the interval, or memory above
its goal. Start-up is shown with its goal and depends on what else runs."""

from __future__ import annotations

import argparse
import sys

from common import compare

LEVELS = (
    "eager,eager@channels_last,compile@freezing,onednn,static,static@measured,onnxruntime,openvino"
)
MEMORY_GOALS = {"infer": 0.5, "train": 0.8}  # share of eager's
START_GOAL_S = 0.25  # ResNet-50
TRAIN_LEVELS = (
    "eager,eager@channels_last,eager@fused,compile,compile@channels_last,libtorch,onednn,static"
)
# Case -> (the words of the command, how many times as fast as the best peer static is to be, and as
# eager if that is asked). In training, where no peer is, the best of eager and compile.
CASES = {
    "resnet50 b1 at 224": (["resnet50"], 1.1, 2.3),
    "resnet50 b8 at 224": (["resnet50", "--batch", "8"], 1.1, None),
    "resnet50 b1 at 32": (["resnet50", "--input", "1x3x32x32"], 1.2, 6.5),
    "resnet50 b32 at 32": (["resnet50", "--input", "32x3x32x32"], 1.1, None),
    "mnist_convnet b1": (["mnist_convnet"], 1.5, None),
    "mnist_convnet b64": (["mnist_convnet", "--batch", "64"], 1.2, None),
    "resnet18 b1 at 224": (["resnet18"], None, None),
    "mobilenet_v2 b1 at 224": (["mobilenet_v2"], None, None),
    "train resnet50 b32 at 32": (
        ["resnet50", "--input", "32x3x32x32", "--mode", "train"],
        1.6,
        None,
    ),
    "train resnet50 b8 at 96": (["resnet50", "--input", "8x3x96x96", "--mode", "train"], 1.6, None),
    "train resnet18 b32 at 32": (
        ["resnet18", "--input", "32x3x32x32", "--mode", "train"],
        1.6,
        None,
    ),
    "train mnist_convnet b64": (["mnist_convnet", "--batch", "64", "--mode", "train"], 2.5, None),
}


def of_memory(row: dict) -> float | None:
    """Peak private megabytes above what the same process held before it had the network."""
    return row["memory"]["above_idle_bytes"] / 1e6 if row["memory"] else None


def memory_and_start(case: str, rows: list[dict], mode: str) -> bool:
    """Prints them for each level; False: static takes more of eager's memory than its goal."""
    print(
        "\n| case | level | memory (MB) | share of eager's | start (s) |\n|---|---|---:|---:|---:|"
    )
    eager = next(
        (of_memory(row) for row in rows if (row["level"], row["variant"]) == ("eager", "default")),
        None,
    )
    reached = True
    for row in rows:
        megabytes = of_memory(row)
        if megabytes is None or row["harness"]:
            continue
        name, static = (
            row["level"] if row["variant"] == "default" else f"{row['level']}@{row['variant']}",
            (row["level"], row["variant"]) == ("static", "default"),
        )
        share = megabytes / eager if eager else None
        reached &= not static or share is None or share <= MEMORY_GOALS[mode]
        goals = (
            f" (goal {MEMORY_GOALS[mode]})" if static else "",
            f" (goal {START_GOAL_S})" if static and mode == "infer" and "resnet50" in case else "",
        )
        print(
            f"| {case} | {name} | {megabytes:.0f} | {'' if share is None else f'{share:.2f}'}{goals[0]} | {row['startup']['warm_start_ms'] / 1e3 if row['startup'] else float('nan'):.2f}{goals[1]} |",
            flush=True,
        )
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick")
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help="default: all; a part of a name chooses those that have it",
    )
    options = parser.parse_args()
    missed = False
    for case, (words, goal, goal_eager) in CASES.items():
        if options.cases and not any(part in case for part in options.cases):
            continue
        trains = "train" in words
        rows = compare(
            *words,
            "--levels",
            TRAIN_LEVELS if trains else LEVELS,
            "--reference",
            "static",
            "--preset",
            options.preset,
        )["cases"][0]["rows"]
        print(
            "\n| case | level | time (ms) | static is so many times as fast (99%) | goal |\n|---|---|---:|---:|---:|"
        )
        timed = [row for row in rows if row["state"] == "measured" and not row["harness"]]
        if not any((row["level"], row["variant"]) == ("static", "default") for row in timed):
            sys.exit(f"{case}: static has no number, so nothing is compared with it")
        best_peer = max(
            (
                row
                for row in timed
                if (row["level"] in ("eager", "compile") if trains else row["peer"])
            ),
            key=lambda row: row["ratio"]["value"],
            default=None,
        )
        for row in rows:
            if row["harness"]:
                continue
            name = (
                row["level"] if row["variant"] == "default" else f"{row['level']}@{row['variant']}"
            )
            if row not in timed:
                print(f"| {case} | {name} | {row['state']}: {row['reason']} | | |", flush=True)
                continue
            bound = goal if row is best_peer else goal_eager if name == "eager" else None
            # the ratio is that level's speed against static's
            faster = [1 / row["ratio"][key] for key in ("value", "high", "low")]
            missed |= bound is not None and faster[2] < bound
            against = (
                "" if name == "static" else f"{faster[0]:.2f} ({faster[1]:.2f} to {faster[2]:.2f})"
            )
            print(
                f"| {case} | {name} | {row['end_to_end_ms']['estimate']:.3g} | {against} | {bound or ''} |",
                flush=True,
            )
        missed |= not memory_and_start(case, timed, "train" if trains else "infer")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
