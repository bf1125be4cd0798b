# SPDX-License-Identifier: Apache-2.0
"""What fake_worker.py trains: train_net.py's network, with the faults that its script's `train`
wants. Standard library only."""

from __future__ import annotations

import json
import os
import random
import struct
from typing import Any

import train_net
from tensors import FORMATS, write_tensors
from train_bundle import rounded

Json = dict[str, Any]


class Trainer:
    """train_net.py's network with an optimiser, and with the faults that the script wants."""

    def __init__(self, faults: Json, optimiser: Json, bundle: str, rounds: bool = False) -> None:
        self.faults, self.rounds = faults, rounds  # rounds: as in bfloat16
        with open(os.path.join(bundle, "bundle.json"), encoding="utf-8") as file:
            self.drop = json.load(file).get("dropout_p", 0.0)
        self.inputs: dict[int, list[list[float]]] = {}
        self.labels: dict[int, list[int]] = {}
        # what each step of the last run() gave
        self.steps: list[dict[str, tuple[str, list[int], bytes]]] = []
        self.weights: dict[str, list[float]] = {}
        self.shapes: dict[str, list[int]] = {}
        self.mode, self.dropout = "train", True
        self.random = random.Random(1)
        self.reset(optimiser)

    def reset(self, optimiser: Json) -> None:
        self.optimiser, self.momenta, self.step = optimiser, {}, 0

    def load_weights(
        self, tensors: dict[str, tuple[str, list[int], bytes]], prefix: str = ""
    ) -> None:
        self.momenta, self.step = {}, 0
        for name, (dtype, shape, raw) in tensors.items():
            values = [v[0] for v in struct.iter_unpack("<" + FORMATS[dtype], raw)]
            if name.startswith("momentum:"):
                self.momenta[name.removeprefix("momentum:")] = values
            else:
                self.weights[name.removeprefix(prefix)], self.shapes[name.removeprefix(prefix)] = (
                    values,
                    shape,
                )

    def fault(self, name: str, op: str) -> Any:
        return self.faults.get(name) if self.faults.get("only_in") in (None, op) else None

    def masks(self, op: str, rows: list[list[float]]) -> list[list[float]] | None:
        if not self.dropout or not self.drop or self.fault("ignore_dropout", op):
            return None
        return [
            [0.0 if self.random.random() < self.drop else 1 / (1 - self.drop) for _ in row]
            for row in rows
        ]

    def iterate(self, op: str, index: int) -> dict[str, tuple[str, list[int], bytes]]:
        used = 0 if self.fault("stale", op) else index
        x, labels = self.inputs[used], self.labels[used]
        if self.mode == "eval":
            out = train_net.logits_in_eval(self.weights, x)
            if self.fault("dropout_in_eval", op):
                out = [
                    [v * k for v, k in zip(row, mask)]
                    for row, mask in zip(out, self.masks(op, out) or [])
                ]
            flat = [v for row in out for v in row]
            return {
                f"{index}/output": (
                    "F32",
                    [len(out), len(out[0])],
                    struct.pack(f"<{len(flat)}f", *flat),
                )
            }
        classes = len(self.weights["fc.bias"])
        labels = [(label + (self.fault("shift_labels", op) or 0)) % classes for label in labels]
        loss, grads, statistics = train_net.train_step(
            self.weights,
            x,
            labels,
            keep=self.masks(op, x),
            eval_statistics=bool(self.fault("eval_statistics", op)),
            biased=bool(self.fault("biased_variance", op)),
            summed=bool(self.fault("summed_loss", op)),
        )
        if self.rounds:
            grads = rounded(grads, random.Random(index))
        optimiser = dict(self.optimiser)
        if self.fault("no_momentum", op) and self.momenta:
            self.momenta = {}  # every step is a first one
        if self.fault("no_weight_decay", op):
            optimiser["weight_decay"] = 0.0
        lr = train_net.learning_rate(self.optimiser, self.step) * (
            self.fault("lr_factor", op) or 1.0
        )
        train_net.sgd(
            self.weights,
            self.momenta,
            grads,
            optimiser,
            lr,
            ("bias",) if self.fault("skip_biases", op) else (),
        )
        self.weights |= {name: train_net.as_float32(values) for name, values in statistics.items()}
        self.step += 1
        if self.faults.get("diverges_after", self.step) < self.step:
            loss, self.weights = (
                float("nan"),
                {name: [float("nan")] * len(values) for name, values in self.weights.items()},
            )
        return {
            f"{index}/loss": (
                "F32",
                [],
                struct.pack("<f", 1.0 if self.fault("constant_loss", op) else loss),
            )
        }

    def run(self, op: str, indices: list[int], out: str | None) -> list[str]:
        """Iterates, and writes what every iteration gave. Returns the outputs' names."""
        self.steps = [self.iterate(op, index) for index in indices]
        outputs = {name: value for step in self.steps for name, value in step.items()}
        if out is not None:
            write_tensors(out, outputs)
        return sorted({name.split("/", 1)[1] for name in outputs})

    def write_result(self, step: int, out: str) -> None:
        """What one step of the last run() gave; negative: from its end."""
        write_tensors(out, self.steps[step])

    def write_state(self, out: str) -> Json:
        tensors = {
            f"weight:{name}": ("F32", self.shapes[name], struct.pack(f"<{len(v)}f", *v))
            for name, v in self.weights.items()
        }
        tensors |= {
            f"momentum:{name}": ("F32", self.shapes[name], struct.pack(f"<{len(v)}f", *v))
            for name, v in self.momenta.items()
        }
        write_tensors(out, tensors)
        return {
            "step": self.step + self.faults.get("steps_off", 0),
            "lr": train_net.learning_rate(self.optimiser, self.step),
        }
