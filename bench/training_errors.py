#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often is the verdict on trainings wrong?

Trains a small network with BatchNorm on strata's digits, in PyTorch, some tenth of a second a
training. A test is `--repeats` pairs of trainings, each with weights and an order of its own; its
verdict is strata's own (`strata_judge_trainings`, which links it). A level's part is played by

- nulls: the same seed with one pixel of each image one ulp larger, on another number of threads,
  in another memory layout; and, for the widest scatter there is, another seed. Which training of a
  pair
  is called the reference is drawn, so that the true difference is zero. *different* is false here;
- a planted difference of exactly the margin: the very pairs of the nulls, to whose level the margin
  is added (or from which it is taken, test by test). Nothing was trained to it: *equivalent* is
  false by construction;
- faults in the training: *different* is right where the fault changes scores by more than the
  margin; how much it changes them stands beside it.

Each finished training is a line of OUTPUT. A second call goes on where the first one stopped, after
`--minutes` for example. Prints Markdown; bounds are one-sided, 95%, Clopper-Pearson.

Exit code: 0 all tests are there, 1 some are still missing, 2 another OUTPUT or no program.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import gzip
import hashlib
import itertools
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Two threads that wait for each other by spinning stand still where others use the machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from false_alarms import append, read, upper_bound
from torch import nn
from torch.nn import functional

from common import ROOT

Json = dict[str, Any]
Pairs = dict[str, list[Json]]  # reference and level: a line of OUTPUT for each repeat

JUDGE = ROOT / "build" / "release" / "strata_judge_trainings"
TRAIN_IMAGES = 1437  # as `strata train --dataset digits` splits them
OTHER_SEED = 500_000_000
PIECE = 100  # trainings after which the time is looked at


@dataclasses.dataclass(frozen=True)
class Recipe:
    """SGD with momentum; the rate is a tenth after half of the steps. It is high, so that rounding
    parts two trainings within some tenths of a second as it does others in the long run."""

    epochs: int = 6
    batch: int = 128
    rate: float = 0.5
    momentum: float = 0.9
    weight_decay: float = 5e-4
    threads: int = 1


@dataclasses.dataclass(frozen=True)
class Change:
    """What is otherwise than in the reference."""

    name: str
    fault: bool = False
    ulp: bool = False
    other_seed: bool = False
    threads: int | None = None
    layout: torch.memory_format = torch.contiguous_format
    smoothing: float = 0.0
    no_weight_decay: bool = False
    momentum_lost: bool = False  # after the first epoch
    schedule_stuck: bool = False
    stale_statistics: bool = False  # evaluates with BatchNorm's statistics of the first epoch


REFERENCE = Change("reference")
CHANGES = [
    Change("one ulp on an input", ulp=True),
    Change("two threads", threads=2),
    Change("channels_last", layout=torch.channels_last),
    Change("another seed", other_seed=True),
    Change("label smoothing 0.1", fault=True, smoothing=0.1),
    Change("no weight decay", fault=True, no_weight_decay=True),
    Change("momentum lost after epoch 1", fault=True, momentum_lost=True),
    Change("schedule stuck", fault=True, schedule_stuck=True),
    Change("stale BatchNorm statistics in evaluation", fault=True, stale_statistics=True),
]


class Net(nn.Module):
    """Digits (N, 1, 8, 8) -> logits (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = torch.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(torch.flatten(x, 1))

    def statistics(self) -> dict[str, torch.Tensor]:
        return {name: value.clone() for name, value in self.named_buffers()}

    def fingerprint(self) -> str:
        held = (
            value.detach().contiguous().numpy().tobytes() for value in self.state_dict().values()
        )
        return hashlib.sha256(b"".join(held)).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Data:
    """Images (N, 1, 8, 8), normalised by the mean and deviation of those to learn from."""

    train: torch.Tensor
    train_labels: torch.Tensor
    test: torch.Tensor
    test_labels: torch.Tensor


@functools.cache
def digits() -> Data:
    folder = ROOT / "src" / "data" / "digits"

    def values(name: str, header: int) -> np.ndarray:
        with gzip.open(folder / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header).copy()

    images = torch.from_numpy(values("images-idx3-ubyte.gz", 16)).reshape(-1, 1, 8, 8).float() / 16
    labels = torch.from_numpy(values("labels-idx1-ubyte.gz", 8)).long()
    learnt = images[:TRAIN_IMAGES]
    images = (images - learnt.mean()) / learnt.std()
    return Data(
        images[:TRAIN_IMAGES], labels[:TRAIN_IMAGES], images[TRAIN_IMAGES:], labels[TRAIN_IMAGES:]
    )


def with_one_ulp(images: torch.Tensor, seed: int) -> torch.Tensor:
    """A copy in which one value of each image, drawn from the seed, is the next larger float."""
    flat = images.flatten(1).clone()
    drawn = np.random.default_rng(seed).integers(flat.shape[1], size=len(flat))
    places = torch.arange(len(flat)), torch.from_numpy(drawn)
    flat[places] = torch.nextafter(flat[places], torch.tensor(torch.inf))
    return flat.reshape(images.shape)


def train(recipe: Recipe, change: Change, data: Data, seed: int) -> Json:
    """Accuracy (a share) and mean loss of the test images, and what the weights hash to."""
    began = time.perf_counter()
    torch.set_num_threads(change.threads or recipe.threads)
    seed += OTHER_SEED if change.other_seed else 0
    torch.manual_seed(seed)
    net = Net().to(memory_format=change.layout)
    images = with_one_ulp(data.train, seed) if change.ulp else data.train
    images = images.contiguous(memory_format=change.layout)
    decay = 0.0 if change.no_weight_decay else recipe.weight_decay
    optimiser = torch.optim.SGD(
        net.parameters(), lr=recipe.rate, momentum=recipe.momentum, weight_decay=decay
    )
    steps = len(images) // recipe.batch
    first_statistics = net.statistics()
    for epoch in range(recipe.epochs):
        order = torch.randperm(len(images))[: steps * recipe.batch]
        for step, batch in enumerate(order.split(recipe.batch)):
            if epoch * steps + step == recipe.epochs * steps // 2 and not change.schedule_stuck:
                optimiser.param_groups[0]["lr"] = recipe.rate / 10
            optimiser.zero_grad()
            functional.cross_entropy(
                net(images[batch]), data.train_labels[batch], label_smoothing=change.smoothing
            ).backward()
            optimiser.step()
        if epoch == 0:
            first_statistics = net.statistics()
            if change.momentum_lost:
                optimiser.param_groups[0]["momentum"] = 0.0
    fingerprint = net.fingerprint()
    if change.stale_statistics:
        net.load_state_dict(first_statistics, strict=False)
    net.eval()
    with torch.no_grad():
        logits = net(data.test.contiguous(memory_format=change.layout))
        loss = functional.cross_entropy(logits, data.test_labels).item()
        right = int((logits.argmax(1) == data.test_labels).sum())
    return {
        "accuracy": right / len(data.test),
        "loss": loss,
        "weights": fingerprint,
        "seconds": round(time.perf_counter() - began, 4),
    }


def key_of(line: Json) -> tuple[int, int, str]:
    return line["test"], line["repeat"], line["change"]


def train_one(recipe: Recipe, change: Change, test: int, repeat: int) -> Json:
    """A line of OUTPUT."""
    line = {"test": test, "repeat": repeat, "change": change.name}
    return line | train(recipe, change, digits(), seed=1000 * test + repeat)


def train_missing(
    options: argparse.Namespace, recipe: Recipe, done: set[tuple[int, int, str]]
) -> bool:
    """Whether all trainings are there; else time is up."""
    end = time.monotonic() + 60 * options.minutes
    cut = not options.output.read_bytes().endswith(b"\n")
    missing = [
        (change, test, repeat)
        for test in range(options.tests)
        for repeat in range(options.repeats)
        for change in [REFERENCE, *CHANGES]
        if (test, repeat, change.name) not in done
    ]
    with (
        concurrent.futures.ProcessPoolExecutor(
            options.jobs, multiprocessing.get_context("spawn")
        ) as pool,
        options.output.open("a", encoding="utf-8") as file,
    ):
        file.write("\n" if cut else "")
        # A few at a time: what was handed out is still trained when time is up.
        for begin in range(0, len(missing), PIECE):
            if time.monotonic() > end:
                return False
            for line in pool.map(
                train_one, itertools.repeat(recipe), *zip(*missing[begin : begin + PIECE])
            ):
                file.write(json.dumps(line) + "\n")
            file.flush()
            print(
                f"{min(begin + PIECE, len(missing))} of {len(missing)}", file=sys.stderr, flush=True
            )
    return True


def whole_tests(lines: list[Json], repeats: int) -> dict[int, dict[str, list[Json]]]:
    """Tests of which every training is there: by number and change, a line for each repeat."""
    trainings: dict[int, dict[str, dict[int, Json]]] = {}
    for line in lines:
        trainings.setdefault(line["test"], {}).setdefault(line["change"], {})[line["repeat"]] = line
    names = [REFERENCE.name, *(change.name for change in CHANGES)]
    return {
        test: {name: [by[name][repeat] for repeat in range(repeats)] for name in names}
        for test, by in sorted(trainings.items())
        if all(len(by.get(name, {})) == repeats for name in names)
    }


def null_pairs(change: Change, test: int, by: dict[str, list[Json]]) -> Pairs:
    """Which of a pair is the reference is drawn, so that the true difference is zero."""
    drawn = random.Random(f"{change.name}, test {test}")
    pairs: Pairs = {"reference": [], "level": []}
    for pair in zip(by[REFERENCE.name], by[change.name]):
        one, other = pair if drawn.random() < 0.5 else pair[::-1]
        pairs["reference"].append(one)
        pairs["level"].append(other)
    return pairs


def shifted(pairs: Pairs, accuracy: float, loss: float) -> Pairs:
    level = [
        one | {"accuracy": one["accuracy"] + accuracy, "loss": one["loss"] + loss}
        for one in pairs["level"]
    ]
    return {"reference": pairs["reference"], "level": level}


def judge(tests: list[Pairs], margin: float, loss_margin: float, images: int) -> list[Json]:
    """What strata says of each: {"accuracy": {"verdict": ...}, "loss": ...}."""

    def scores(lines: list[Json]) -> Json:
        return {
            "test_accuracy": [line["accuracy"] for line in lines],
            "test_loss": [line["loss"] for line in lines],
        }

    about = {"margin": margin, "loss_margin": loss_margin, "test_images": images}
    requests = [
        json.dumps(about | {who: scores(lines) for who, lines in test.items()}) for test in tests
    ]
    done = subprocess.run(
        [str(JUDGE)],
        input="\n".join(requests) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def rate(verdicts: list[Json], score: str, word: str, *, at_least: bool = False) -> str:
    """ "3 of 300 (at most 2.6%)": of tests in which the verdict on a score is this word."""
    count, trials = sum(verdict[score]["verdict"] == word for verdict in verdicts), len(verdicts)
    if at_least:
        return f"{count} of {trials} (at least {1 - upper_bound(trials - count, trials):.1%})"
    return f"{count} of {trials} (at most {upper_bound(count, trials):.1%})"


def differences(tests: list[Pairs], score: str) -> list[float]:
    pairs = [pair for test in tests for pair in zip(test["reference"], test["level"])]
    return [level[score] - reference[score] for reference, level in pairs]


def print_table(header: list[str], lines: list[list[str]]) -> None:
    print("\n| " + " | ".join(header) + " |\n|---|" + "---:|" * (len(header) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def null_line(
    change: Change,
    tests: list[Pairs],
    verdicts_of: Callable[[list[Pairs]], list[Json]],
    margins: tuple[float, float],
) -> list[str]:
    alike = [pair for test in tests for pair in zip(test["reference"], test["level"])]
    same = sum(one["weights"] == other["weights"] for one, other in alike)
    null = verdicts_of(tests)
    signs = [1 if test % 2 else -1 for test in range(len(tests))]
    moved = [
        shifted(test, sign * margins[0], sign * margins[1]) for sign, test in zip(signs, tests)
    ]
    at_margin = verdicts_of(moved)
    return [
        change.name,
        f"{same} of {len(alike)}",
        f"{100 * statistics.pstdev(differences(tests, 'accuracy')):.2f}",
        rate(null, "accuracy", "different"),
        rate(at_margin, "accuracy", "equivalent"),
        f"{statistics.pstdev(differences(tests, 'loss')):.4f}",
        rate(null, "loss", "different"),
        rate(at_margin, "loss", "equivalent"),
    ]


def fault_line(
    change: Change, tests: list[Pairs], verdicts_of: Callable[[list[Pairs]], list[Json]]
) -> list[str]:
    verdicts = verdicts_of(tests)
    return [
        change.name,
        f"{100 * statistics.fmean(differences(tests, 'accuracy')):+.2f}",
        rate(verdicts, "accuracy", "different", at_least=True),
        str(sum(verdict["accuracy"]["verdict"] == "equivalent" for verdict in verdicts)),
        f"{statistics.fmean(differences(tests, 'loss')):+.4f}",
        rate(verdicts, "loss", "different", at_least=True),
        str(sum(verdict["loss"]["verdict"] == "equivalent" for verdict in verdicts)),
    ]


def print_rates(settings: Json, lines: list[Json], options: argparse.Namespace) -> None:
    whole = whole_tests(lines, options.repeats)
    if not whole:
        print("No test has all of its trainings yet.")
        return
    recipe = settings["recipe"]
    accuracies = [line["accuracy"] for by in whole.values() for line in by[REFERENCE.name]]
    seconds = statistics.median(
        line["seconds"] for by in whole.values() for line in by[REFERENCE.name]
    )
    print(
        f"{len(whole)} tests of {options.repeats} pairs; a training: {recipe['epochs']} epochs in "
        f"{seconds:.2f} s, test accuracy {statistics.fmean(accuracies):.1%} (sd over seeds "
        f"{100 * statistics.pstdev(accuracies):.2f} points); margins {100 * options.margin:g} points and a "
        f"loss of {options.loss_margin:g}; PyTorch {settings['torch']}"
    )

    def verdicts_of(tests: list[Pairs]) -> list[Json]:
        return judge(tests, options.margin, options.loss_margin, settings["test_images"])

    nulls, faults = [], []
    for change in CHANGES:
        if change.fault:
            tests = [
                {"reference": by[REFERENCE.name], "level": by[change.name]} for by in whole.values()
            ]
            faults.append(fault_line(change, tests, verdicts_of))
        else:
            tests = [null_pairs(change, test, by) for test, by in whole.items()]
            nulls.append(
                null_line(change, tests, verdicts_of, (options.margin, options.loss_margin))
            )
    print_table(
        [
            "null",
            "the same to the bit",
            "sd of a pair (points)",
            "false *different*, accuracy",
            "false *equivalent* at the margin, accuracy",
            "sd of a pair (loss)",
            "false *different*, loss",
            "false *equivalent* at the margin, loss",
        ],
        nulls,
    )
    print_table(
        [
            "planted fault",
            "mean difference (points)",
            "*different*, accuracy",
            "*equivalent*",
            "mean difference (loss)",
            "*different*, loss",
            "*equivalent*",
        ],
        faults,
    )


def settings_of(recipe: Recipe, options: argparse.Namespace) -> Json:
    return {
        "recipe": dataclasses.asdict(recipe),
        "repeats": options.repeats,
        "torch": torch.__version__,
        "test_images": len(digits().test),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "output", type=Path, metavar="OUTPUT", help="a file of finished trainings, a line each"
    )
    parser.add_argument("--tests", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5, help="pairs of a test")
    parser.add_argument("--epochs", type=int, default=Recipe.epochs)
    parser.add_argument(
        "--minutes", type=float, default=35, help="ends after so long; call again to go on"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trainings at a time")
    parser.add_argument("--margin", type=float, default=0.01, help="of test accuracy, a share")
    parser.add_argument("--loss-margin", type=float, default=0.05)
    options = parser.parse_args()
    if not JUDGE.exists():
        print(
            f"{JUDGE} is not built: cmake -DSTRATA_TESTS=ON build/release && "
            f"cmake --build build/release --target {JUDGE.name}",
            file=sys.stderr,
        )
        return 2
    recipe = Recipe(epochs=options.epochs)
    settings = settings_of(recipe, options)
    lines = read(options.output)
    if not lines:
        append(options.output, settings)
        lines = [settings]
    if lines[0] != settings:
        print(f"{options.output} holds trainings of other settings: {lines[0]}", file=sys.stderr)
        return 2
    complete = train_missing(options, recipe, {key_of(line) for line in lines[1:]})
    print_rates(
        settings,
        [line for line in read(options.output)[1:] if line["test"] < options.tests],
        options,
    )
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
