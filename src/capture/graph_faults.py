# SPDX-License-Identifier: Apache-2.0
"""Faults in a network without layers, as a file holds it, or whose answers follow none: one
operation of its graph is left out. A program of PyTorch's is changed while it runs, an ONNX graph
in the file's model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from capture.faults import place, shared_copy

aten = torch.ops.aten
ACTIVATIONS = "relu relu6 gelu silu tanh sigmoid hardtanh hardswish hardsigmoid leaky_relu elu mish"
ACTIVATIONS_ONNX = "Relu Gelu Tanh Sigmoid HardSwish HardSigmoid LeakyRelu Elu Mish Clip"
PRODUCTS_ONNX = "Gemm Conv ConvTranspose"
GRAPH_FAULTS = ("activation_left_out", "bias_left_out", "sum_left_out")
ANY_FAULT = ("result_left_out",)  # of any operation


def with_graph_fault(
    module: nn.Module, fault: str, run: Callable[[nn.Module], Any], attempt: int = 0
) -> tuple[Any, str]:
    """What `run` gives of the network with one of GRAPH_FAULTS or ANY_FAULT, and a sentence that
    says where; `attempt` as in apply_fault(). Raises NotApplicable; `module` stays whole."""
    if hasattr(module, "with_weights"):
        changed = shared_copy(module)
        sentence = _change_onnx(changed.model, fault, attempt)
        return run(changed), sentence
    counting = _LeftOut(fault, -1)
    with counting:
        run(module)
    number = _number(fault, len(counting.seen), attempt)
    with _LeftOut(fault, number):
        return run(module), _sentence(fault, counting.seen[number], number, len(counting.seen))


def _number(fault: str, count: int, attempt: int) -> int:
    return place(count, count - 1 if fault == "bias_left_out" else count // 2, attempt)


def _sentence(fault: str, operation: str, number: int, of: int) -> str:
    what = {"bias_left_out": "the bias of ", "result_left_out": "the result of "}.get(fault, "")
    return f"{what}{operation} left out, {number + 1} of {of} such operations"


class _LeftOut(TorchDispatchMode):
    """Leaves out operation `number` of those that the fault is about; `seen`: their names."""

    def __init__(self, fault: str, number: int) -> None:
        super().__init__()
        self.without, self.number = _WITHOUT[fault], number
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        name = func._schema.name.split("::")[-1].rstrip("_")
        without = self.without(name, args, lambda: func(*args, **(kwargs or {})))
        if without is not None:
            self.seen.append(name)
            if len(self.seen) - 1 == self.number:
                return without()
        return func(*args, **(kwargs or {}))


# by the operation's name and arguments, and what calls it
Without = Callable[[str, tuple, Callable[[], Any]], Callable[[], Tensor] | None]


def _activation(name: str, args: tuple, _call: Any) -> Callable[[], Tensor] | None:
    return (lambda: args[0]) if name in ACTIVATIONS.split() else None


def _bias(name: str, args: tuple, _call: Any) -> Callable[[], Tensor] | None:
    if name == "addmm":
        return lambda: aten.mm(args[1], args[2])
    reads = name in ("linear", "_convolution") or name.startswith("conv")
    if not reads or len(args) < 3 or not isinstance(args[2], Tensor):
        return None
    return lambda: getattr(aten, name)(*args[:2], None, *args[3:])


def _sum(name: str, args: tuple, _call: Any) -> Callable[[], Tensor] | None:
    both = name == "add" and all(isinstance(value, Tensor) for value in args[:2])
    return (lambda: args[0]) if both and args[0].shape == args[1].shape else None


def _result(name: str, _args: tuple, call: Callable[[], Any]) -> Callable[[], Tensor] | None:
    """Zeros, as a buffer holds that nobody wrote; not of copies, as of the answers."""
    if name in ("_to_copy", "clone", "detach"):
        return None
    return lambda: tree_map_only(Tensor, torch.zeros_like, call())


_WITHOUT: dict[str, Without] = {
    "activation_left_out": _activation,
    "bias_left_out": _bias,
    "sum_left_out": _sum,
    "result_left_out": _result,
}


def _change_onnx(model: Any, fault: str, attempt: int) -> str:
    weights = {stored.name for stored in model.graph.initializer}
    found: list[tuple[Any, str]] = []  # a node, and its input that is its output then
    for node in model.graph.node:
        given = [name for name in node.input if name and name not in weights]
        kind = node.op_type
        if fault == "result_left_out":
            about = fault
        elif kind in ACTIVATIONS_ONNX.split():
            about = "activation_left_out"
        else:
            about = {1: "bias_left_out", 2: "sum_left_out"}.get(len(given) * (kind == "Add"), "")
        if fault == about:
            found.append((node, given[0] if given else ""))
        elif fault == "bias_left_out" and kind in PRODUCTS_ONNX.split() and len(node.input) == 3:
            found.append((node, ""))
    number = _number(fault, len(found), attempt)
    node, stays = found[number]
    sentence = _sentence(fault, f"{node.op_type} {node.name}".strip(), number, len(found))
    if fault == "result_left_out":
        _write_zeros(model.graph, node)
    elif stays:
        del node.input[:], node.attribute[:]
        node.input.append(stays)
        node.op_type, node.domain = "Identity", ""
    else:
        del node.input[2]
    return sentence


def _write_zeros(graph: Any, node: Any) -> None:
    """The difference of the node's first result with itself takes its place."""
    zeros = type(node)()
    zeros.op_type = "Sub"
    zeros.output.append(node.output[0])
    node.output[0] += "/whole"
    zeros.input.extend([node.output[0]] * 2)
    graph.node.insert(list(graph.node).index(node) + 1, zeros)
