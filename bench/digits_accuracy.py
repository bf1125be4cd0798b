#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the MNIST convnet on scikit-learn's handwritten digits, freely and with dropout, at
several levels from the same weights and in the same order of batches. Prints the accuracies on
held-out digits as Markdown.

A run is `--epochs` rings of shuffled batches through the worker protocol: `inputs` and `set_labels`
bring the ring of an epoch, `prove` makes one step of each entry, `set_mode eval` and another ring
give the answers that are scored. Dropout is drawn by each level for itself, so levels agree in
distribution, not digit by digit: the difference of two levels is printed with its spread over the
seeds. Exit code 1 if that interval (99%, paired by seed) leaves out 0."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from safetensors.numpy import save_file

from common import ROOT

sys.path[:0] = [
    str(ROOT / "tests" / "levels"),
    str(ROOT / "tests" / "preloaded"),
    str(ROOT / "sdk" / "python"),
]
BUILDS = sorted(ROOT.glob("build/env-*/level_libtorch"), key=lambda path: path.stat().st_mtime)
os.environ.setdefault("STRATA_LEVEL_BUILD", str(BUILDS[-1].parent) if BUILDS else "")
import preloaded  # noqa: E402

preloaded.pytest_configure(SimpleNamespace())  # the protocol's client is the tests'
from client import Worker, prepare  # noqa: E402
from specs import whole  # noqa: E402

BATCH, TRAIN, TEST = 64, 22, 6  # batches; 1792 of the 1797 digits
OPTIMISER = {
    "name": "sgd",
    "lr": 0.02,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 1e-4,
    "nesterov": False,
    "schedule": None,
}
# Student's t, two-sided 99%, by degrees of freedom
T99 = {
    1: 63.66,
    2: 9.92,
    3: 5.84,
    4: 4.60,
    5: 4.03,
    6: 3.71,
    7: 3.50,
    8: 3.36,
    9: 3.25,
    14: 2.98,
    19: 2.86,
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """(1792, 1, 28, 28) in 0..1, every pixel of the 8x8 images three wide with a frame of two;
    labels."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    images = np.kron(loaded.images.astype(np.float32) / 16, np.ones((3, 3), np.float32))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)))[:, None]
    count = BATCH * (TRAIN + TEST)
    # one split for all seeds: they differ in weights, order and dropout
    order = np.random.default_rng(0).permutation(len(images))[:count]
    return images[order], loaded.target[order].astype(np.int64)


def capture(folder: Path) -> Path:
    """The bundle of the case; the rings that it holds are not used."""
    spec = whole(
        {
            "model": "mnist_convnet",
            "mode": "train",
            "batch": BATCH,
            "threads": 2,
            "ring": 2,
            "optimiser": OPTIMISER,
        }
    )
    (folder / "spec.json").write_text(json.dumps(spec))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "capture",
            "--spec",
            str(folder / "spec.json"),
            "--out",
            str(folder / "bundle"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}"},
    )
    return folder / "bundle"


def weights(seed: int) -> dict[str, np.ndarray]:
    """PyTorch's own initialisation, as a state of the protocol."""
    from strata_sdk import models

    return {
        f"weight:{name}": tensor.numpy().copy()
        for name, tensor in models.build_model("mnist_convnet", seed).module.state_dict().items()
    }


def send_ring(worker: Worker, folder: Path, images: np.ndarray, labels: np.ndarray) -> int:
    """Whole batches in the order given; their number."""
    count = len(images) // BATCH
    save_file(
        {f"{i}/x": np.ascontiguousarray(images[i * BATCH : (i + 1) * BATCH]) for i in range(count)},
        folder / "ring.safetensors",
    )
    save_file(
        {
            f"{i}/labels": np.ascontiguousarray(labels[i * BATCH : (i + 1) * BATCH])
            for i in range(count)
        },
        folder / "labels.safetensors",
    )
    worker.ask("inputs", path=str(folder / "ring.safetensors"))
    worker.ask("set_labels", path=str(folder / "labels.safetensors"))
    return count


def trained_accuracy(
    worker: Worker, folder: Path, seed: int, epochs: int, data: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Accuracy in percent on the held-out digits, and the mean loss of the last epoch."""
    images, labels = data
    held = BATCH * TRAIN
    save_file(weights(seed), folder / "state.safetensors")
    worker.ask("set_optimiser", optimiser=OPTIMISER)
    worker.ask("load_state", path=str(folder / "state.safetensors"), step=0)
    draw = np.random.default_rng(seed)
    worker.ask("set_mode", mode="train", dropout=True)
    losses = {}
    for _ in range(epochs):
        order = draw.permutation(held)
        losses = worker.prove(list(range(send_ring(worker, folder, images[order], labels[order]))))
    worker.ask("set_mode", mode="eval", dropout=True)
    count = send_ring(worker, folder, images[held:], labels[held:])
    answers = worker.prove(list(range(count)))
    right = sum(
        int(
            (
                answers[f"{i}/output"].argmax(1)
                == labels[held + i * BATCH : held + (i + 1) * BATCH]
            ).sum()
        )
        for i in range(count)
    )
    return 100 * right / (count * BATCH), float(
        np.mean([float(value) for value in losses.values()])
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--levels",
        default="eager,onednn,static",
        help="the first one is compared with each other one",
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    levels, data = options.levels.split(","), digits()
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = capture(folder)
        for level in levels:
            cache = folder / level
            cache.mkdir()
            if not (prepared := prepare(level, bundle, cache))["ok"]:
                sys.exit(f"{level}: {prepared['what']}")
            with Worker(level, bundle, cache) as worker:
                worker.load()
                found[level] = [
                    trained_accuracy(worker, folder, seed, options.epochs, data)
                    for seed in range(options.seeds)
                ]
    print(
        f"{options.epochs} epochs of {TRAIN} steps, batch {BATCH}, {BATCH * TEST} held-out digits, {options.seeds} seeds\n\n| level | accuracy of each seed (%) | mean | standard deviation | loss of the last epoch |\n|---|---|---|---|---|"
    )
    for level, runs in found.items():
        scores = [score for score, _ in runs]
        spread = f"{statistics.stdev(scores):.2f}" if len(scores) > 1 else "-"
        print(
            f"| {level} | {', '.join(f'{score:.2f}' for score in scores)} | {statistics.mean(scores):.2f} | {spread} | {statistics.mean(loss for _, loss in runs):.4f} |"
        )
    return int(not all(agrees(levels[0], other, found) for other in levels[1:]))


def agrees(one: str, other: str, found: dict[str, list[tuple[float, float]]]) -> bool:
    """Prints the mean difference with its interval; True if 0 lies in it, or one seed gives
    none."""
    differences = [b - a for (a, _), (b, _) in zip(found[one], found[other])]
    mean = statistics.mean(differences)
    if len(differences) < 2:
        print(f"\n{other} - {one}: {mean:+.2f} percent points; one seed has no spread")
        return True
    freedom = len(differences) - 1
    half = (
        T99[max(known for known in T99 if known <= freedom)]
        * statistics.stdev(differences)
        / len(differences) ** 0.5
    )
    print(
        f"\n{other} - {one}: {mean:+.2f} percent points, 99% interval {mean - half:+.2f} to {mean + half:+.2f}"
    )
    return mean - half <= 0 <= mean + half


if __name__ == "__main__":
    sys.exit(main())
