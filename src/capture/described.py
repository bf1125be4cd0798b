# SPDX-License-Identifier: Apache-2.0
"""What bundle.json says of a case before anything ran, and of its outputs (docs/bundle.md)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from capture.case import Input
from capture.identity import network_of
from strata_sdk.models import Built, count_parameters
from strata_sdk.optimiser import check_optimiser


def described_case(spec: dict, built: Built, inputs: list[Input]) -> dict:
    """bundle.json of a case of which nothing has run."""
    described = [i.described() for i in inputs]
    case = {k: v for k, v in spec.items() if k not in ("dynamic", "light", "all_runs")} | {
        "inputs": [d | {"low": i.low, "high": i.high} for d, i in zip(described, inputs)],
        "batch": inputs[0].shape[0] if inputs[0].shape else 1,
    }
    if spec["mode"] == "train":
        case |= {
            "loss": spec["loss"] or built.loss,
            "optimiser": check_optimiser(spec["optimiser"] or built.optimiser),
        }
    else:
        case["loss"] = None
    return {
        "bundle": 2,
        "spec": spec,
        "case": case,
        "model": {
            "name": built.name,
            "kind": built.kind,
            "source": built.source,
            "note": built.note,
            "data": built.data,
        },
        "network": network_of(built.module),
        "read": [],
        "inputs": described,
        "input_source": "",
        "writes_inputs": [],
        "writes_buffers": [],
        "reads_values": [],
        "reads_extents": [],
        "unproven": "",
        "keeps_state": False,
        "outputs": [],
        "ring": spec["ring"],
        "parameters": count_parameters(built.module),
        "tied": tied_names(built.module),
        "weight_bytes": 0,
        "input_bytes": sum(
            torch.empty(0, dtype=getattr(torch, i.dtype)).element_size() * math.prod(i.shape)
            for i in inputs
        ),
        "activation_bytes": 0,
        "reference": "float64",
        "reference_note": "",
        "export": {},
        "graph": {},
        "weight_source": "",
        "faults": [],
        "torch": torch.__version__,
    }


def tied_names(module: nn.Module) -> dict[str, str]:
    """Further names of parameters that have several -> the first, as named_parameters() has it."""
    first = {id(parameter): name for name, parameter in module.named_parameters()}
    every = module.named_parameters(remove_duplicate=False)
    return {name: first[id(value)] for name, value in every if first[id(value)] != name}


def described_outputs(outputs: dict[str, Tensor]) -> list[dict]:
    return [
        {"name": k, "dtype": str(v.dtype).removeprefix("torch."), "shape": list(v.shape)}
        for k, v in outputs.items()
    ]
