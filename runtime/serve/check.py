# SPDX-License-Identifier: Apache-2.0
"""The test of equal work: check.py PROGRAM [ARGUMENT ...] runs the program on
test/inputs.safetensors and compares its outputs with the network's own outputs in float64. Allowed
is a multiple of what legitimate float32 runs of the network differ by (the envelope). Needs numpy;
exits with 1 when unequal."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tensor_files import read_safetensors

FOLDER = Path(__file__).resolve().parent
LEAST = 8 * 2.0**-24  # no envelope is smaller: one lucky run would accuse its neighbours


def floor_of(reference: dict) -> float:
    """2^-24 times the median magnitude of all floating-point outputs of entry 0: a tensor that is
    nearly zero is not judged by its rounding."""
    values = [
        np.abs(value).reshape(-1)
        for name, value in reference.items()
        if name.startswith("f64/0/") and value.dtype.kind == "f"
    ]
    finite = np.concatenate(values) if values else np.zeros(1)
    finite = finite[np.isfinite(finite)]
    return 2.0**-24 * float(np.median(finite)) if finite.size else 0.0


def errors(value: np.ndarray, truth: np.ndarray, floor: float) -> tuple[float, float]:
    """||y - y64|| / (||y64|| + floor sqrt(n)) and max |y - y64| / (max |y64| + floor), over the
    elements that are finite in both."""
    both = np.isfinite(value) & np.isfinite(truth)
    expected, off = truth[both], value[both].astype(np.float64) - truth[both]
    if not off.size:
        return 0.0, 0.0
    tiny = np.finfo(np.float64).tiny
    return float(
        np.linalg.norm(off) / max(np.linalg.norm(expected) + floor * np.sqrt(truth.size), tiny)
    ), float(np.abs(off).max() / max(np.abs(expected).max() + floor, tiny))


def what_differs(
    name: str,
    value: np.ndarray,
    truth: np.ndarray,
    runs: list[np.ndarray],
    bounds: tuple[float, float],
    floor: float,
) -> str:
    """Why this output is not the network's; empty if it is."""
    if value.shape != truth.shape:
        return f"has shape {list(value.shape)}, {list(truth.shape)} is right"
    legitimate = [truth, *runs]
    if truth.dtype.kind != "f":
        right = np.any([value == run for run in legitimate], axis=0)
        return "" if right.all() else f"differs in {int((~right).sum())} elements"
    alike = np.any(
        [
            (np.isfinite(value) & np.isfinite(run))
            | (np.isnan(value) & np.isnan(run))
            | (value == run)
            for run in legitimate
        ],
        axis=0,
    )
    if not alike.all():
        return f"has NaN or Inf at {int((~alike).sum())} places where the network has not, or the other way round"
    error, largest = errors(value, truth, floor)
    print(
        f"{name}: {error / bounds[0]:.3f} of the allowed error, {largest / bounds[1]:.3f} of the allowed largest"
    )
    return (
        ""
        if error <= bounds[0] and largest <= bounds[1]
        else f"is off by {error:.3g} (allowed {bounds[0]:.3g}), at most {largest:.3g} (allowed {bounds[1]:.3g})"
    )


def main() -> int:
    case = json.loads((FOLDER / "case.json").read_text(encoding="utf-8"))
    reference = read_safetensors(FOLDER / "test" / "reference.safetensors")
    envelope = read_safetensors(FOLDER / "test" / "envelope.safetensors")
    variants, floor = sorted({name.split("/", 1)[0] for name in envelope}), floor_of(reference)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "outputs.safetensors"
        done = subprocess.run(
            [*sys.argv[1:], str(FOLDER), str(FOLDER / "test" / "inputs.safetensors"), str(out)],
            stdout=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            print(f"FAILED: the program ended with {done.returncode}")
            return 1
        outputs = read_safetensors(out)
    wrong = []
    for about in case["outputs"]:
        entries = range(case["ring"])
        truths = [reference[f"f64/{i}/{about['name']}"] for i in entries]
        runs = [
            [
                envelope[f"{v}/{i}/{about['name']}"]
                for v in variants
                if f"{v}/{i}/{about['name']}" in envelope
            ]
            for i in entries
        ]
        known = (
            [errors(run, truth, floor) for truth, several in zip(truths, runs) for run in several]
            if truths[0].dtype.kind == "f"
            else []
        )
        bounds = (
            case["allowed"]["error"] * max([LEAST, *(e for e, _ in known)]),
            case["allowed"]["largest"] * max([LEAST, *(m for _, m in known)]),
        )
        for i in entries:
            name = f"{i}/{about['name']}"
            why = (
                what_differs(name, outputs[name], truths[i], runs[i], bounds, floor)
                if name in outputs
                else "is missing"
            )
            if why:
                wrong.append(f"{name} {why}")
    print(
        "\n".join(f"FAILED: {line}" for line in wrong)
        if wrong
        else f"equal work on {case['ring']} inputs"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
