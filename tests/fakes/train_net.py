# SPDX-License-Identifier: Apache-2.0
"""A network that trains in plain Python: BatchNorm of the inputs, dropout, one linear layer,
cross-entropy; its gradients by hand. For tests."""

from __future__ import annotations

import math
import struct
from typing import Any

Tensors = dict[str, list[float]]
EPSILON, STATISTICS_MOMENTUM = 1e-5, 0.1
PARAMETERS = ["bn.weight", "bn.bias", "fc.weight", "fc.bias"]  # in the module's order
STATISTICS = ["bn.running_mean", "bn.running_var"]


def shapes(features: int, classes: int) -> dict[str, list[int]]:
    return {
        "bn.weight": [features],
        "bn.bias": [features],
        "bn.running_mean": [features],
        "bn.running_var": [features],
        "fc.weight": [classes, features],
        "fc.bias": [classes],
    }


def as_float32(values: list[float]) -> list[float]:
    return list(struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values)))


def logits_in_eval(w: Tensors, x: list[list[float]]) -> list[list[float]]:
    scale = [g / math.sqrt(v + EPSILON) for g, v in zip(w["bn.weight"], w["bn.running_var"])]
    features = len(scale)
    rows = [
        [(v - m) * s + b for v, m, s, b in zip(row, w["bn.running_mean"], scale, w["bn.bias"])]
        for row in x
    ]
    return [
        [
            sum(w["fc.weight"][k * features + j] * row[j] for j in range(features)) + bias
            for k, bias in enumerate(w["fc.bias"])
        ]
        for row in rows
    ]


def train_step(
    w: Tensors,
    x: list[list[float]],
    labels: list[int],
    *,
    keep: list[list[float]] | None = None,
    eval_statistics: bool = False,
    biased: bool = False,
    summed: bool = False,
) -> tuple[float, Tensors, Tensors]:
    """Loss, gradients and BatchNorm's statistics after the step. `keep`: what dropout multiplies
    each feature of each sample by (0 or 1/(1-p))."""
    batch, features, classes = len(x), len(x[0]), len(w["fc.bias"])
    columns = list(zip(*x))
    mean = [sum(c) / batch for c in columns]
    var = [sum((v - m) ** 2 for v in c) / batch for c, m in zip(columns, mean)]
    if eval_statistics:
        statistics = {name: list(w[name]) for name in STATISTICS}
        mean, var = w["bn.running_mean"], w["bn.running_var"]
    else:
        over = batch if biased else batch - 1
        new = [mean, [v * batch / over for v in var]]
        statistics = {
            name: [
                (1 - STATISTICS_MOMENTUM) * old + STATISTICS_MOMENTUM * now
                for old, now in zip(w[name], values)
            ]
            for name, values in zip(STATISTICS, new)
        }
    normed = [[(v - m) / math.sqrt(s + EPSILON) for v, m, s in zip(row, mean, var)] for row in x]
    keep = keep or [[1.0] * features for _ in x]
    hidden = [
        [(g * v + b) * k for g, v, b, k in zip(w["bn.weight"], row, w["bn.bias"], mask)]
        for row, mask in zip(normed, keep)
    ]
    grads: Tensors = {name: [0.0] * len(w[name]) for name in PARAMETERS}
    loss, share = 0.0, 1.0 if summed else 1.0 / batch
    for row, mask, n, label in zip(hidden, keep, normed, labels):
        z = [
            sum(w["fc.weight"][k * features + j] * row[j] for j in range(features))
            + w["fc.bias"][k]
            for k in range(classes)
        ]
        top = max(z)
        total = sum(math.exp(v - top) for v in z)
        loss += (math.log(total) + top - z[label]) * share
        d = [(math.exp(v - top) / total - (k == label)) * share for k, v in enumerate(z)]
        for k in range(classes):
            grads["fc.bias"][k] += d[k]
            for j in range(features):
                grads["fc.weight"][k * features + j] += d[k] * row[j]
        for j in range(features):
            back = sum(d[k] * w["fc.weight"][k * features + j] for k in range(classes)) * mask[j]
            grads["bn.bias"][j] += back
            grads["bn.weight"][j] += back * n[j]
    return loss, grads, statistics


def learning_rate(optimiser: dict[str, Any], step: int) -> float:
    schedule = optimiser.get("schedule")
    if not schedule:
        return optimiser["lr"]
    if schedule["name"] == "step":
        return optimiser["lr"] * schedule["gamma"] ** (step // schedule["every"])
    return optimiser["lr"] * (1 + math.cos(math.pi * step / schedule["steps"])) / 2


def sgd(
    w: Tensors,
    momenta: Tensors,
    grads: Tensors,
    optimiser: dict[str, Any],
    lr: float,
    skip: tuple[str, ...] = (),
) -> None:
    """One step of SGD as PyTorch does it, in place, rounded to float32."""
    mu, dampening, decay = (
        optimiser.get("momentum", 0.0),
        optimiser.get("dampening", 0.0),
        optimiser.get("weight_decay", 0.0),
    )
    for name in PARAMETERS:
        if name.endswith(skip):
            continue
        d = [g + decay * v for g, v in zip(grads[name], w[name])]
        if mu:
            d = as_float32(d)
            old = momenta.get(name)
            momenta[name] = (
                as_float32([mu * o + (1 - dampening) * v for o, v in zip(old, d)])
                if old is not None
                else d
            )
            d = (
                [v + mu * b for v, b in zip(d, momenta[name])]
                if optimiser.get("nesterov")
                else momenta[name]
            )
        w[name] = as_float32([v - lr * u for v, u in zip(w[name], d)])
