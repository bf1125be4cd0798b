# SPDX-License-Identifier: Apache-2.0
"""What the driver checks of a training level, in NumPy, for the tests: one step against the
bundle's reference, and PyTorch's SGD by its formula."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from client import Worker
from safetensors.numpy import load_file

SETS = ("timed", "probe1", "probe2")
INFLATED = {
    "name": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.1,
    "nesterov": False,
    "schedule": None,
}
# without a buffer the first step's buffer is the gradient
PROBE = {
    "name": "sgd",
    "lr": 1.0,
    "momentum": 0.9,
    "weight_decay": 0.0,
}


def about(bundle: Path) -> dict:
    return json.loads((bundle / "reference" / "train.json").read_text(encoding="utf-8"))


def in_mode(bundle: Path, precision: str) -> dict:
    return json.loads(
        (bundle / "reference" / f"train.{precision}.json").read_text(encoding="utf-8")
    )


def state(worker: Worker, **fields) -> tuple[dict[str, np.ndarray], dict]:
    """The tensors and the answer of `state`."""
    out = Path(worker.scratch.name) / "state.safetensors"
    out.unlink(missing_ok=True)
    answer = worker.ask("state", out=str(out), **fields)
    return load_file(out), answer


def load_state(worker: Worker, tensors: dict[str, np.ndarray], step: int) -> None:
    from safetensors.numpy import save_file

    path = Path(worker.scratch.name) / "given.safetensors"
    save_file(tensors, path)
    worker.ask("load_state", path=str(path), step=step)


def gradients(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name.removeprefix("momentum:"): value
        for name, value in tensors.items()
        if name.startswith("momentum:")
    }


def probe(worker: Worker, weights: str) -> dict[str, np.ndarray]:
    """One step from a weight set: `loss`, `grad:<parameter>`, `stat:<buffer>`, under the names of
    the reference."""
    worker.ask("weights", weights=weights)
    worker.ask("set_mode", mode="train", dropout=False)
    worker.ask("set_optimiser", optimiser=PROBE)
    loss = worker.prove([0])["0/loss"]
    after, _ = state(worker)
    return (
        {"loss": loss}
        | {f"grad:{k}": v for k, v in gradients(after).items()}
        | {f"stat:{k.removeprefix('weight:')}": v for k, v in after.items() if "running_" in k}
    )


def times_bound(
    found: dict[str, np.ndarray], bundle: Path, weights: str, precision: str = "fp32"
) -> dict[str, float]:
    """Name -> error in units of 8 envelopes of the precision."""
    of_set = about(bundle)[weights]
    runs = (of_set if precision == "fp32" else in_mode(bundle, precision)[weights])["envelope"]
    envelope = {"loss": runs["loss"]} | {
        f"{kind}:{k}": v for kind in ("grad", "stat") for k, v in runs[kind].items()
    }
    times = {}
    for key, truth in load_file(bundle / "reference" / f"{weights}.train.safetensors").items():
        index, name = key.split("/", 1)
        if index != "0":  # losses of the rest of the ring
            continue
        truth = truth.astype(np.float64)
        if name not in found or found[name].shape != truth.shape:
            times[name] = float("inf")
            continue
        size = np.linalg.norm(truth) + (
            0.01 * of_set["grad_floor"] * truth.size**0.5 if name.startswith("grad:") else 0.0
        )
        times[name] = float(
            np.linalg.norm(found[name].astype(np.float64) - truth) / max(size, 1e-300)
        ) / (8 * envelope[name])
    return {k: v if v == v else float("inf") for k, v in times.items()}


def clipped(gradient: dict[str, np.ndarray], optimiser: dict) -> dict[str, np.ndarray]:
    """As clip_grad_norm_ leaves it, in float64."""
    wide = {name: g.astype(np.float64) for name, g in gradient.items()}
    norm = np.sqrt(sum((g * g).sum() for g in wide.values()))
    most = optimiser.get("clip_norm", 0.0)
    share = min(1.0, most / (norm + 1e-6)) if most else 1.0
    return {name: share * g for name, g in wide.items()}


def sgd(
    before: dict[str, np.ndarray], gradient: dict[str, np.ndarray], optimiser: dict, rate: float
) -> dict[str, np.ndarray]:
    """`weight:` and `momentum:` after one step, in float64; docs/protocol.md has the formula."""
    after = {}
    for name, g in gradient.items():
        w, v = before[f"weight:{name}"].astype(np.float64), before.get(f"momentum:{name}")
        d = g.astype(np.float64) + optimiser["weight_decay"] * w
        if optimiser["momentum"]:
            v = (
                d
                if v is None
                else optimiser["momentum"] * v.astype(np.float64) + (1 - optimiser["dampening"]) * d
            )
            after[f"momentum:{name}"] = v
            d = d + optimiser["momentum"] * v if optimiser["nesterov"] else v
        after[f"weight:{name}"] = w - rate * d
    return after


def adam(
    before: dict[str, np.ndarray],
    gradient: dict[str, np.ndarray],
    optimiser: dict,
    rate: float,
    step: int,
) -> dict[str, np.ndarray]:
    """`weight:`, `exp_avg:` and `exp_avg_sq:` after step number `step`, from 1, likewise."""
    after, beta1, beta2, decay = (
        {},
        optimiser["beta1"],
        optimiser["beta2"],
        optimiser["weight_decay"],
    )
    for name, g in gradient.items():
        w = before[f"weight:{name}"].astype(np.float64)
        m, v = (
            before.get(f"{prefix}:{name}", np.zeros(())).astype(np.float64)
            for prefix in ("exp_avg", "exp_avg_sq")
        )
        d = g.astype(np.float64) + (decay * w if optimiser["name"] == "adam" else 0.0)
        m, v = beta1 * m + (1 - beta1) * d, beta2 * v + (1 - beta2) * d * d
        apart = rate * decay * w if optimiser["name"] == "adamw" else 0.0
        after |= {
            f"exp_avg:{name}": m,
            f"exp_avg_sq:{name}": v,
            f"weight:{name}": w
            - apart
            - rate * m / (1 - beta1**step) / (np.sqrt(v / (1 - beta2**step)) + optimiser["eps"]),
        }
    return after


def step_error(
    worker: Worker, before: dict[str, np.ndarray], optimiser: dict, steps_before: int, rate: float
) -> float:
    """One step of `optimiser` from the state `before` against the formula, with the gradient that a
    probe step from the same state shows; the largest relative error of an update."""
    worker.ask("set_optimiser", optimiser=PROBE)
    load_state(worker, {k: v for k, v in before.items() if k.startswith("weight:")}, 0)
    worker.prove([0])
    gradient = clipped(gradients(state(worker)[0]), optimiser)
    worker.ask("set_optimiser", optimiser=optimiser)
    load_state(worker, before, steps_before)
    worker.prove([0])
    after, _ = state(worker)
    expected = (
        sgd(before, gradient, optimiser, rate)
        if optimiser["name"] == "sgd"
        else adam(before, gradient, optimiser, rate, steps_before + 1)
    )
    others = ("weight:", "count:", "generator:")  # than the optimiser's buffers
    if {name for name in after if not name.startswith(others)} != {
        name for name in expected if not name.startswith(others)
    }:
        return float("inf")
    worst = 0.0
    for name, value in expected.items():
        start = before[name].astype(np.float64) if name.startswith("weight:") else 0.0
        # of the sum, which the difference of two weights keeps
        rounding = 4 * 2.0**-24 * np.linalg.norm(value)
        off = np.linalg.norm(after[name].astype(np.float64) - value)
        worst = max(
            worst, float(max(0.0, off - rounding) / max(np.linalg.norm(value - start), 1e-12))
        )
    return worst
