# SPDX-License-Identifier: Apache-2.0
"""Writes a bundle of mode train (docs/bundle.md) of train_net.py's network, without PyTorch. For
tests; standard library only."""

from __future__ import annotations

import json
import math
import os
import random
import struct
from typing import Any

import train_net

LEAST = 8 * 2.0**-24
BATCH, FEATURES, CLASSES = 8, 6, 4


def write_tensors(path: str, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(
            struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values())
        )


def floats(values: list[float], shape: list[int]) -> tuple[str, list[int], bytes]:
    return "F32", shape, struct.pack(f"<{len(values)}f", *values)


def rounded(tensors: train_net.Tensors, draw: random.Random) -> train_net.Tensors:
    """As a step in bfloat16 gives them: each value moved by up to one part in 256."""
    return {
        name: [v * (1 + draw.uniform(-1, 1) / 256) for v in values]
        for name, values in tensors.items()
    }


def draw_weights(draw: random.Random) -> train_net.Tensors:
    out = {
        name: [draw.gauss(0.3, 0.5) for _ in range(math.prod(shape))]
        for name, shape in train_net.shapes(FEATURES, CLASSES).items()
    }
    out["bn.running_var"] = [0.5 + draw.random() for _ in range(FEATURES)]
    return {name: train_net.as_float32(values) for name, values in out.items()}


def reference(
    weights: train_net.Tensors, x: list[list[float]], labels: list[int]
) -> tuple[dict[str, tuple[str, list[int], bytes]], dict[str, Any]]:
    """The set's tensors, and its part of train.json. The envelope is the least there is: plain
    Python computes in double."""
    loss, grads, statistics = train_net.train_step(weights, x, labels)
    shapes = train_net.shapes(FEATURES, CLASSES)
    tensors = (
        {"0/loss": floats([loss], [])}
        | {f"0/grad:{n}": floats(grads[n], shapes[n]) for n in train_net.PARAMETERS}
        | {f"0/stat:{n}": floats(statistics[n], shapes[n]) for n in train_net.STATISTICS}
    )
    every = [v for n in train_net.PARAMETERS for v in grads[n]]
    about = {
        "envelope": {
            "loss": LEAST,
            "grad": dict.fromkeys(train_net.PARAMETERS, LEAST),
            "stat": dict.fromkeys(train_net.STATISTICS, LEAST),
        },
        "grad_floor": math.sqrt(sum(v * v for v in every) / len(every)),
    }
    return tensors, about


# docs/bundle.md
USUAL = {
    "name": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.0001,
    "nesterov": False,
    "schedule": None,
}


def write(
    folder: str, spec: dict[str, Any], *, dropout: float = 0.0, weak: str = "", seed: int = 0
) -> None:
    """`spec`: as docs/bundle.md; its optimiser, threads and batch are kept."""
    draw = random.Random(seed)
    ring = spec.get("ring", 4)
    inputs = [
        [
            train_net.as_float32([draw.gauss(0.0, 1.0 + 0.3 * j) for j in range(FEATURES)])
            for _ in range(BATCH)
        ]
        for _ in range(ring)
    ]
    labels = [[draw.randrange(CLASSES) for _ in range(BATCH)] for _ in range(ring)]
    write_tensors(
        os.path.join(folder, "inputs.safetensors"),
        {
            f"{i}/arg0": floats([v for row in x for v in row], [BATCH, FEATURES])
            for i, x in enumerate(inputs)
        },
    )
    write_tensors(
        os.path.join(folder, "labels.safetensors"),
        {
            f"{i}/labels": ("I64", [BATCH], struct.pack(f"<{BATCH}q", *rows))
            for i, rows in enumerate(labels)
        },
    )
    about: dict[str, Any] = {}
    for name in ("timed", "probe1", "probe2"):
        weights = draw_weights(draw)
        write_tensors(
            os.path.join(folder, "weights", f"{name}.safetensors"),
            {n: floats(weights[n], s) for n, s in train_net.shapes(FEATURES, CLASSES).items()},
        )
        tensors, about[name] = reference(weights, inputs[0], labels[0])
        if name == "probe1":
            tensors |= {
                f"{i}/loss": floats([train_net.train_step(weights, inputs[i], labels[i])[0]], [])
                for i in range(1, ring)
            }
        write_tensors(os.path.join(folder, "reference", f"{name}.train.safetensors"), tensors)
        if name == "timed":
            masks = (
                [
                    [
                        [
                            0.0 if draw.random() < dropout else 1 / (1 - dropout)
                            for _ in range(FEATURES)
                        ]
                        for _ in range(BATCH)
                    ]
                    for _ in range(64)
                ]
                if dropout
                else []
            )
            losses = [
                train_net.train_step(weights, inputs[0], labels[0], keep=keep)[0] for keep in masks
            ]
    about |= {
        "faults": {
            "loss_summed": {
                "times_bound": 1e6,
                "sentence": "loss_summed: the loss summed, not averaged",
            }
        },
        "weak": weak,
        "dropout": {
            "layers": [{"name": "dropout", "p": dropout}] if dropout else [],
            "losses": losses,
        },
    }
    with open(os.path.join(folder, "reference", "train.json"), "w", encoding="utf-8") as file:
        json.dump(about, file)
    precision = spec.get("precision", "fp32")
    if precision != "fp32":  # errors of rounded(), and some room
        error = 2.0**-8
        in_mode = {
            name: {
                "envelope": {
                    kind: dict.fromkeys(errors, error) if isinstance(errors, dict) else error
                    for kind, errors in about[name]["envelope"].items()
                },
                "least": dict.fromkeys(train_net.PARAMETERS, error / 4),
            }
            for name in ("timed", "probe1", "probe2")
        }
        with open(
            os.path.join(folder, "reference", f"train.{precision}.json"), "w", encoding="utf-8"
        ) as file:
            json.dump(in_mode, file)
    case = {
        **spec,
        "batch": BATCH,
        "loss": spec.get("loss") or "cross_entropy",
        "optimiser": spec.get("optimiser") or USUAL,
        "weights_label": "seed0",
        "inputs": [{"name": "arg0", "dtype": "float32", "shape": [BATCH, FEATURES]}],
    }
    bundle = {
        "bundle": 2,
        "spec": spec,
        "case": case,
        "id": f"tiny/train/b{BATCH}/{FEATURES}/{precision}/cpu/t{spec.get('threads', 1)}",
        "model": {"name": "tiny", "kind": "user", "source": "a test"},
        "inputs": [
            {"name": "arg0", "keyword": False, "dtype": "float32", "shape": [BATCH, FEATURES]}
        ],
        "input_source": "drawn",
        "outputs": [{"name": "output", "dtype": "float32", "shape": [BATCH, CLASSES]}],
        "ring": ring,
        "parameters": 2 * FEATURES + CLASSES * (FEATURES + 1),
        "weight_bytes": 200,
        "input_bytes": 192,
        "flops": 400.0,
        "activation_bytes": 200,
        "reference": "float64",
        "reference_note": "",
        "export": {"ok": False, "what": "", "where": ""},
        "weight_source": "drawn",
        "faults": [],
        "fault_sentences": [],
        "torch": "none",
        "dropout_p": dropout,
    }
    with open(os.path.join(folder, "bundle.json"), "w", encoding="utf-8") as file:
        json.dump(bundle, file)
