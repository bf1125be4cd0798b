# SPDX-License-Identifier: Apache-2.0
"""spec.json in full, as the driver writes it, of the few fields that a test names; and its capture
in this process."""

from __future__ import annotations

import sys

from client import ROOT

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture import bundle  # noqa: E402


def whole(spec: dict) -> dict:
    return {
        "mode": "infer",
        "batch": None,
        "size": None,
        "inputs": [],
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "optimiser": None,
        "loss": None,
        "seed": 0,
        "weights": None,
        "input_from": None,
        "input_file": None,
        "synthetic": False,
        "ring": 4,
        "generic_sets": 2,
        "deep": False,
        "light": False,
        "all_runs": False,
        "dynamic": None,
    } | spec


def capture(spec: dict, *others, **how) -> dict:
    return bundle.capture(whole(spec), *others, **how)
