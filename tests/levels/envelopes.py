# SPDX-License-Identifier: Apache-2.0
"""Whether a level's outputs lie as near to the float64 reference as eager's do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from client import Worker, error
from safetensors.numpy import load_file

LEVELS = ("eager", "compile", "onnxruntime", "openvino")


SETS = ("timed", "generic1", "generic2")


FLOOR = 8 * 2.0**-24  # the least envelope (docs/proof.md)


def reference(bundle: Path, weights: str) -> dict[str, np.ndarray]:
    return load_file(bundle / "reference" / f"{weights}.safetensors")


def envelope(bundle: Path, weights: str) -> float:
    """E0: the greatest error of any legitimate float32 run of eager."""
    truth = reference(bundle, weights)
    runs = load_file(bundle / "reference" / f"{weights}.envelope.safetensors")
    return max(
        [FLOOR, *(error({name.split("/", 1)[1]: value}, truth) for name, value in runs.items())]
    )


def bounds(bundle: Path, weights: str) -> dict[str, float]:
    """8 times the error of eager's worst legitimate run, of each output alone."""
    truth = reference(bundle, weights)
    worst: dict[str, float] = {}
    for name, value in load_file(bundle / "reference" / f"{weights}.envelope.safetensors").items():
        output = name.split("/", 2)[2]
        worst[output] = max(worst.get(output, FLOOR), error({name.split("/", 1)[1]: value}, truth))
    return {output: 8 * value for output, value in worst.items()}


def expect_outputs_within_bounds(worker: Worker, weights: str) -> None:
    """Puts the weight set in; two inputs' outputs must be as near to float64 as eager's, each
    alone."""
    worker.ask("weights", weights=weights)
    outputs, bound = worker.prove([0, 1]), bounds(worker.bundle, weights)
    assert {key.split("/")[1] for key in outputs} == bound.keys()
    wrong = {
        key: found
        for key, value in outputs.items()
        if not (found := error({key: value}, reference(worker.bundle, weights)))
        <= bound[key.split("/")[1]]
    }
    assert not wrong, (
        weights,
        {key: (found, bound[key.split("/")[1]]) for key, found in wrong.items()},
    )
