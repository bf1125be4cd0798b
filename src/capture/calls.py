# SPDX-License-Identifier: Apache-2.0
"""calls.json (docs/bundle.md): the ATen operations that one forward pass calls, with their tensors'
shapes, in the form of graph.json. So strata counts a network without an exported graph by the same
rules as one with a graph."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from capture.aten import by_name
from capture.functional_graph import Value, replaced, tensors_in
from capture.graph import DTYPES, encoded
from strata_sdk.models import call


class Calls(TorchDispatchMode):
    """Notes what is called while it is entered, alike calls once. What a library other than PyTorch
    computes is not seen."""

    supports_higher_order_operators = True  # noted whole: what is in them is not seen

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.times[_form(func, args, kwargs or {}, result)] += 1
        return result

    def described(self) -> dict:
        """The object of calls.json. Tensors are not connected: each call has values of its own."""
        values: list[dict] = []
        nodes: list[dict] = []
        inputs: list[dict] = []

        def place(described: list[dict], is_input: bool) -> list[int]:
            first = len(values)
            for entry in described:
                name = f"t{len(values)}"
                if is_input:
                    inputs.append({"name": name, "value": len(values)})
                values.append({"name": name, **entry})
            return list(range(first, len(values)))

        for form in self.times:
            entry = json.loads(form)
            first = len(values)
            place(entry["inputs"], True)
            args = {name: _moved(arg, first) for name, arg in entry["args"].items()}
            outputs = place(entry["outputs"], False)
            nodes.append(
                {
                    "op": entry["op"],
                    "name": f"call{len(nodes)}",
                    "args": args,
                    "outputs": outputs,
                    "module": "",
                    "module_type": "",
                    "source": "",
                }
            )
        last = [{"name": "last", "value": nodes[-1]["outputs"][0]}] if nodes else []
        return {
            "graph": 1,
            "mode": "infer",
            "values": values,
            "inputs": inputs,
            "parameters": [],
            "buffers": [],
            "constants": [],
            "nodes": nodes,
            "outputs": last,
            "updates": [],
            "times": list(self.times.values()),
        }


def count_work(module: nn.Module, entry: dict[str, Tensor], bundle: dict) -> tuple[int, int, Calls]:
    """What one batch takes: FLOPs as far as PyTorch's own counter knows them, by which the capture
    bounds its own work (what is reported is counted by src/graph/flops.hpp); the bytes of all leaf
    modules' outputs; and what is called."""
    from torch.utils.flop_counter import FlopCounterMode

    total = [0]

    def add(_module: nn.Module, _args: tuple, output: Any) -> None:
        for part in output if isinstance(output, (tuple, list)) else [output]:
            if isinstance(part, Tensor):
                total[0] += part.numel() * part.element_size()

    leaves = [m for m in module.modules() if not any(True for _ in m.children())]
    handles = [
        m.register_forward_hook(add) for m in leaves if not isinstance(m, torch.jit.ScriptModule)
    ]
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # PyTorch's counter has no formula for it
    try:
        with torch.no_grad(), FlopCounterMode(display=False) as counter, Calls() as calls:
            call(module, entry, bundle)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for handle in handles:
            handle.remove()
    return int(counter.get_total_flops()), total[0], calls


def write_calls(calls: Calls, folder: Path) -> None:
    """Writes calls.json, unless nothing was seen."""
    if calls.times:
        text = json.dumps(calls.described(), separators=(",", ":"))
        (folder / "calls.json").write_text(text, encoding="utf-8")


def _form(func: Any, positional: tuple, kwargs: dict, result: Any) -> str:
    """One call as text: `op`, `args` (tensors numbered among `inputs`), `inputs` and `outputs` as
    type and shape. Of what has no plain tensors (sparse, nested, complex) the name says so, so that
    no rule takes it for what it is not."""
    try:
        results = list(tensors_in(_plain_lists(result)))
        named = by_name(SimpleNamespace(target=func, args=_plain_lists(positional), kwargs=kwargs))
        tensors = [*results, *tensors_in(list(named.values()))]
        kind = next(filter(None, map(_unlike, tensors)), "")
        if not kind:
            inputs: list[dict] = []

            def number(value: Value) -> int:
                inputs.append(_described(value))
                return len(inputs) - 1

            args = {name: encoded(replaced(arg, _value), number) for name, arg in named.items()}
            outputs = [_described(tensor) for tensor in results] or [_NOTHING]
            return json.dumps({"op": str(func), "args": args, "inputs": inputs, "outputs": outputs})
    except Exception:  # a tensor of a class of its own may refuse anything
        kind = "other"
    op = f"{kind}.{str(func).removeprefix('aten.')}"
    op += ".default" if op.count(".") < 2 else ""
    return json.dumps({"op": op, "args": {}, "inputs": [], "outputs": [_NOTHING]})


def _unlike(tensor: Tensor) -> str:
    """What a tensor is that is not dense numbers of the graph's types; empty: it is."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    return "" if tensor.dtype in DTYPES else str(tensor.dtype).removeprefix("torch.")


def _described(tensor: Tensor | Value) -> dict:
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


# Stands for what a call without tensors gives: a node has outputs.
_NOTHING = {"dtype": "float32", "shape": []}


def _value(tensor: Tensor) -> Value:
    return Value("input", "", tensor.dtype, tuple(tensor.shape))


def _plain_lists(thing: Any) -> Any:
    if isinstance(thing, (list, tuple)):
        return [_plain_lists(part) for part in thing]
    return thing


def _moved(arg: Any, first: int) -> Any:
    """`arg` with the numbers of its tensors counted from `first`."""
    if isinstance(arg, dict) and "value" in arg:
        return {"value": arg["value"] + first}
    if isinstance(arg, dict):
        return {"values": [None if number is None else number + first for number in arg["values"]]}
    return arg
