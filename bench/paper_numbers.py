#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the paper of 2020 says in its own published numbers: the figures of
docs/reproduce_the_paper.md.

Reads the summaries (tex/figures/plots/*.csv: batch, pixels, value) of a clone of
github.com/makslevental/pytorch_abstraction_comparison and prints ratios, the training time that its
script counts as evaluation, and what its copies between buffers of the host would come to. Runs
nothing of theirs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path

Surface = dict[tuple[int, int], float]  # (batch, pixels) -> value
BATCHES, SIZES = [8, 16, 32, 64, 128, 256, 512], [8, 16, 32, 64, 128, 256, 512, 1024]
SUMMARIES = Path("tex/figures/plots")
IMAGES = 17_125  # of VOC 2012, which the authors part themselves: python/pascal.py:101-104
WINDOW = 20  # batches; what fills no window is counted nowhere in training: python/main.py:76
COPIED = {"eval": 128, "train": 248}  # bytes an image and pixel, see host_copies


def read(folder: Path, level: str, mode: str, metric: str) -> Surface:
    path = folder / SUMMARIES / f"{level}_{mode}_avg_{metric}.csv"
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {(int(batch), int(pixels)): float(value) for batch, pixels, value in rows}


def ratio(above: Surface, below: Surface) -> Surface:
    return {point: value / below[point] for point, value in above.items() if point in below}


def left_over(batch: int) -> tuple[int, int]:
    """Batches of training whose time python/main.py adds to an evaluation, and the evaluation's own
    batches."""
    learned = int(IMAGES * 0.8)
    return -(-learned // batch) % WINDOW, -(-(IMAGES - learned) // batch)


def without_left_over(evaluation: Surface, training: Surface) -> Surface:
    """Evaluation's time of a sample, less the training time in it."""
    out: Surface = {}
    for (batch, pixels), value in evaluation.items():
        left, batches = left_over(batch)
        out[batch, pixels] = value - training[batch, pixels] * left / batches
    return out


def host_copies(slower: Surface, faster: Surface, mode: str) -> Surface:
    """GB/s at which the host would have to copy for its copies to be the whole difference.

    cpp/cudnn/include/tensor.h:84-89 copies a tensor's buffer on the host too. Four block inputs a
    forward pass, by their channels and strides 64/4^2 + 256/4^2 + 512/8^2 + 1024/16^2 = 32 floats
    an image and pixel; four gradients a backward pass, 2048/32^2 + 1024/16^2 + 512/8^2 + 256/4^2 =
    30.
    """
    return {
        point: COPIED[mode] * point[1] ** 2 / 1e6 / (value - faster[point])
        for point, value in slower.items()
        if point in faster and value > faster[point]
    }


def table(title: str, surface: Surface, show: str = "{:.2f}") -> None:
    print(
        f"\n{title}\n\n| batch | "
        + " | ".join(f"{size} px" for size in SIZES)
        + " |\n|---:|"
        + "---:|" * len(SIZES)
    )
    for batch in BATCHES:
        print(
            f"| {batch} | "
            + " | ".join(
                show.format(surface[batch, size]) if (batch, size) in surface else ""
                for size in SIZES
            )
            + " |"
        )


def summary(what: str, values: Iterable[float]) -> None:
    every = sorted(values)
    mean = math.exp(sum(math.log(value) for value in every) / len(every))
    print(
        f"{what}: {len(every)} points, {every[0]:.2f} to {every[-1]:.2f}, geometric mean {mean:.2f}, {sum(value < 1 for value in every)} below 1, {sum(value >= 10 for value in every)} of 10 or more"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path, help="a clone of the paper's repository")
    folder = parser.parse_args().clone
    if not (folder / SUMMARIES).is_dir():
        parser.error(
            f"{folder} has no {SUMMARIES}: git clone https://github.com/makslevental/pytorch_abstraction_comparison, and name that folder"
        )

    def load(metric: str) -> Callable[[str, str], Surface]:
        return lambda level, mode: read(folder, level, mode, metric)

    time, memory = load("sample_time"), load("used_mem")
    corrected = without_left_over(time("pytorch", "eval"), time("pytorch", "train"))
    for level in ("libtorch", "cudnn", "torchscript"):
        for title, mine, mode in (
            ("evaluation, as published", time("pytorch", "eval"), "eval"),
            ("evaluation, without the training time in it", corrected, "eval"),
            ("training", time("pytorch", "train"), "train"),
        ):
            if (level, mode) == ("torchscript", "train"):
                continue
            times = ratio(mine, time(level, mode))
            table(f"PyTorch over {level}, {title}", times)
            summary("all", times.values())
            summary("below 128 pixels", (value for (_, size), value in times.items() if size < 128))
    published = time("pytorch", "eval")
    table(
        "share of PyTorch's published evaluation that is training, %",
        {point: 100 * (1 - corrected[point] / value) for point, value in published.items()},
        "{:.0f}",
    )
    table(
        "PyTorch's evaluation without it, ms a batch",
        {(batch, size): value * batch for (batch, size), value in corrected.items()},
        "{:.1f}",
    )
    for mode in ("eval", "train"):
        table(f"cudnn over libtorch, {mode}", ratio(time("cudnn", mode), time("libtorch", mode)))
        table(
            f"GB/s of the host's copies that would be cudnn's difference to libtorch, {mode}",
            host_copies(time("cudnn", mode), time("libtorch", mode), mode),
            "{:.1f}",
        )
    for above, below in (
        ("pytorch", "libtorch"),
        ("cudnn", "pytorch"),
        ("cudnn", "libtorch"),
        ("torchscript", "pytorch"),
    ):
        parts = ratio(memory(above, "eval"), memory(below, "eval"))
        table(f"memory of {above} over {below}, evaluation", parts)
        summary("all", parts.values())
    for level in ("pytorch", "libtorch", "cudnn"):
        parts = ratio(memory(level, "eval"), memory(level, "train"))
        print(
            f"\nmemory of {level}, evaluation over training: at most {100 * max(abs(value - 1) for value in parts.values()):.2f}% apart"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
