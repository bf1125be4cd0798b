# SPDX-License-Identifier: Apache-2.0
"""Writes graph.json and graph_constants.safetensors (docs/bundle.md, "The graph"): the exported
network as a list of functional ATen operations, for levels without PyTorch."""

from __future__ import annotations

import functools
import json
import math
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import Node

from capture.aten import NotFunctional
from capture.described import tied_names
from capture.functional import make_functional
from capture.functional_graph import Functional, Operation, Value, stopped_gradient, tensors_in
from strata_sdk.models import last_line

DTYPES = {
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
}


def write_graph(
    program: ExportedProgram,
    module: nn.Module,
    mode: str,
    names: list[str],
    inputs: list[str],
    folder: Path,
    write: Callable[[str, dict[str, Tensor]], None],
    trained: list[str] | None = None,
) -> dict:
    """Writes the files and returns bundle.json's `graph`. `names`: of the outputs; `inputs`: of the
    inputs; both in order; `trained`: the parameters that are (None: all). A program that has no
    functional graph writes nothing."""
    try:
        flat = _functional(program, mode == "train")
        if mode == "infer" and flat.updates:
            raise NotFunctional(
                f"the network changes its buffer '{next(iter(flat.updates))}' in eval mode"
            )
        if mode == "train" and (stopped := stopped_gradient(flat)) is not None:
            raise NotFunctional(
                "a gradient stops at a detach_, which the list of operations does not say", stopped
            )
        described, constants = _described(flat, module, mode, names, inputs)
        _mark_frozen(described, trained)
    except NotFunctional as error:
        return {
            "ok": False,
            "what": f"no graph: {error}",
            "where": source_of(error.node) if error.node is not None else "",
        }
    except Exception as error:
        # operators may raise anything where constants are computed; the bundle is made without a
        # graph
        traceback.print_exc(file=sys.stderr)
        return {"ok": False, "what": f"no graph: {last_line(error)}", "where": ""}
    (folder / "graph.json").write_text(_one_item_a_line(described), encoding="utf-8")
    if constants:
        write("graph_constants", constants)
    return {"ok": True, "what": "", "where": ""}


def _functional(program: ExportedProgram, trains: bool) -> Functional:
    try:
        return make_functional(program, trains)
    except NotFunctional as error:
        if not error.aliased:
            raise
        # PyTorch's own pass knows views that are written through, at the price of shattering a few
        # operations.
        return make_functional(program.run_decompositions({}), trains)


class _Description:
    """The graph as bundle.json has it; numbers values in the order in which they are met."""

    def __init__(self, module: nn.Module) -> None:
        self.root = type(module).__name__
        self.values: list[dict] = []
        self.by_kind: dict[str, list[dict]] = {
            "input": [],
            "parameter": [],
            "buffer": [],
            "constant": [],
        }
        self.constants: dict[str, Tensor] = {}
        self._numbers: dict[int, int] = {}
        self._parameters: dict[str, int] = {}
        self._tied = tied_names(module)

    def number(self, value: Value, node: Node | None = None) -> int:
        if value.kind == "parameter":
            value.name = self._tied.get(value.name, value.name)  # the exporter takes any of them
            if value.name in self._parameters:
                return self._parameters[value.name]
            self._parameters[value.name] = len(self.values)
        if id(value) not in self._numbers:
            if value.dtype not in DTYPES:
                path, kind = ("", "") if node is None else _module_of(node, self.root)
                place = f" in {path} ({kind})" if path else ""
                raise NotFunctional(
                    f"the value {value.name}{place} has the type {_plain(value.dtype)}", node
                )
            self._numbers[id(value)] = len(self.values)
            self.values.append(
                {"name": value.name, "dtype": _plain(value.dtype), "shape": list(value.shape)}
            )
            if value.kind != "node":
                self.by_kind[value.kind].append(
                    {"value": self._numbers[id(value)], "name": value.name}
                )
            if value.data is not None:
                self.constants[value.name] = value.data
        return self._numbers[id(value)]

    def node(self, operation: Operation) -> dict:
        number = functools.partial(self.number, node=operation.node)
        args = {name: encoded(arg, number) for name, arg in operation.args.items()}
        path, kind = _module_of(operation.node, self.root)
        return {
            "op": str(operation.target),
            "name": operation.name,
            "args": args,
            "outputs": [number(v) for v in operation.outputs],
            "module": path,
            "module_type": kind,
            "source": source_of(operation.node),
        }


def _described(
    flat: Functional, module: nn.Module, mode: str, names: list[str], inputs: list[str]
) -> tuple[dict, dict[str, Tensor]]:
    about = _Description(module)
    for value, name in zip(flat.inputs, inputs):
        value.name = name
        about.number(value)
    nodes = [about.node(operation) for operation in flat.operations]
    outputs = [
        {"name": name, "value": about.number(v)}
        for name, v in zip(names, flat.outputs, strict=True)
    ]
    updates = [{"buffer": name, "value": about.number(v)} for name, v in flat.updates.items()]
    return {
        "graph": 1,
        "mode": mode,
        "values": about.values,
        "inputs": about.by_kind["input"],
        "parameters": about.by_kind["parameter"],
        "buffers": about.by_kind["buffer"],
        "constants": about.by_kind["constant"],
        "nodes": nodes,
        "outputs": outputs,
        "updates": updates,
    }, about.constants


def _mark_frozen(described: dict, trained: list[str] | None) -> None:
    for parameter in described["parameters"]:
        if trained is not None and parameter["name"] not in trained:
            parameter["frozen"] = True


def encoded(arg: Any, number: Callable[[Value], int]) -> Any:
    """{"value":n}, {"values":[...]} (null for a tensor left out), or plain JSON; infinities and NaN
    as strings, which JSON has no numbers for."""
    if isinstance(arg, Value):
        return {"value": number(arg)}
    if isinstance(arg, (list, tuple)):
        if any(True for _ in tensors_in(arg)):
            return {"values": [None if part is None else number(part) for part in arg]}
        return [encoded(part, number) for part in arg]
    if arg is None or isinstance(arg, (bool, int, str)):
        return arg
    if isinstance(arg, float):
        return (
            arg
            if math.isfinite(arg)
            else "nan"
            if math.isnan(arg)
            else "inf"
            if arg > 0
            else "-inf"
        )
    return _plain(arg)


def _plain(thing: Any) -> str:
    """`float32` of torch.float32, `cpu` of a device, `contiguous_format` of a memory format."""
    return str(thing).removeprefix("torch.")


def _module_of(node: Node, root: str) -> tuple[str, str]:
    """Path and type of the innermost module that the node belongs to."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    for path, kind in reversed(stack):
        if path:
            return path, (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    return "", root


def source_of(node: Node) -> str:
    """file:line of the deepest frame outside PyTorch and strata; empty when it is not known."""
    own = tuple(
        f"{folder}/"
        for folder in (
            Path(torch.__file__).parent,
            Path(__file__).resolve().parents[1],
            Path(__file__).resolve().parents[2] / "sdk",
        )
    )
    for line in reversed((node.meta.get("stack_trace") or "").splitlines()):
        parts = line.strip().split('"')
        if len(parts) == 3 and parts[0] == "File " and not parts[1].startswith(own):
            return f"{Path(parts[1]).name}:{parts[2].split(',')[1].strip().removeprefix('line ')}"
    return ""


def _one_item_a_line(described: dict) -> str:
    parts = []
    for key, value in described.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(
                json.dumps(item, separators=(",", ":"), allow_nan=False) for item in value
            )
            parts.append(f"{json.dumps(key)}:[\n{lines}]")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value)}")
    return "{" + ",\n".join(parts) + "}\n"
