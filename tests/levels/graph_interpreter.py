# SPDX-License-Identifier: Apache-2.0
"""Runs a bundle's graph.json with PyTorch's own operators, in float64: the oracle of what capture
wrote. Reads nothing but the files that a level reads."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from recurrent_layers import RECURRENT
from safetensors.torch import load_file
from torch import Tensor

PLAIN = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
FORMS = {
    "preserve_format": torch.preserve_format,
    "contiguous_format": torch.contiguous_format,
    "strided": torch.strided,
    "cpu": torch.device("cpu"),
}


class Interpreter:
    """`values` holds what the last run computed, by index; parameters are leaves that take
    gradients when `trained`."""

    def __init__(self, bundle: Path, weights: str = "timed", trained: bool = False) -> None:
        self.graph = json.loads((bundle / "graph.json").read_text())
        stored = load_file(bundle / "weights" / f"{weights}.safetensors")
        constants = (
            load_file(bundle / "graph_constants.safetensors") if self.graph["constants"] else {}
        )
        self.values: dict[int, Tensor] = {}
        self.fixed = {
            one["value"]: wide(source[one["name"]])
            for kind, source in (
                ("parameters", stored),
                ("buffers", stored),
                ("constants", constants),
            )
            for one in self.graph[kind]
        }
        self.parameters = {
            one["name"]: self.fixed[one["value"]].requires_grad_(trained)
            for one in self.graph["parameters"]
        }

    def run(self, inputs: dict[str, Tensor], dropout: bool = False) -> dict[str, Tensor]:
        """Outputs by name. Every value must have the shape and the type (float64 for float32) that
        the graph says. `dropout` False switches it off."""
        self.values = dict(self.fixed) | {
            one["value"]: wide(inputs[one["name"]]) for one in self.graph["inputs"]
        }
        for node in self.graph["nodes"]:
            target = RECURRENT.get(node["op"]) or overload(node["op"])
            args = {name: self.argument(arg) for name, arg in node["args"].items()}
            statistics = []
            if node["op"] == "aten.batch_norm.default" and args["training"]:
                statistics = [
                    args[name].clone()
                    for name in ("running_mean", "running_var")
                    if args[name] is not None
                ]
                args |= dict(zip(("running_mean", "running_var"), statistics))
            if "train" in args and not dropout and node["op"] not in RECURRENT:
                args["train"] = False
            # A value has no strides, so a view is a reshape.
            result = (
                args["self"].reshape(args["size"])
                if node["op"] == "aten.view.default"
                else target(**args)
            )
            # output_mask leaves some out
            results = [
                *(
                    part
                    for part in (result if isinstance(result, (list, tuple)) else [result])
                    if part is not None
                ),
                *statistics,
            ]
            assert len(results) == len(node["outputs"]), node
            for index, value in zip(node["outputs"], results):
                declared = self.graph["values"][index]
                if node["op"] == "aten.where.Scalar":  # of two numbers, whose type is torch's own
                    value = value.to(wide_type(declared["dtype"]))
                assert list(value.shape) == declared["shape"] and value.dtype == wide_type(
                    declared["dtype"]
                ), (node, value.shape, value.dtype, declared)
                self.values[index] = value
        return {one["name"]: self.values[one["value"]] for one in self.graph["outputs"]}

    def updates(self) -> dict[str, Tensor]:
        return {one["buffer"]: self.values[one["value"]].detach() for one in self.graph["updates"]}

    def argument(self, arg):
        if isinstance(arg, dict):
            return (
                self.values[arg["value"]]
                if "value" in arg
                else [None if i is None else self.values[i] for i in arg["values"]]
            )
        if isinstance(arg, str):
            return (
                PLAIN[arg]
                if arg in PLAIN
                else FORMS[arg]
                if arg in FORMS
                else wide_type(arg)
                if hasattr(torch, arg) and isinstance(getattr(torch, arg), torch.dtype)
                else arg
            )
        return arg


def overload(op: str) -> torch._ops.OpOverload:
    namespace, name, which = op.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), which)


def wide_type(name: str) -> torch.dtype:
    return torch.float64 if name == "float32" else getattr(torch, name)


def wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor.clone()
