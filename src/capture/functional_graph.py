# SPDX-License-Identifier: Apache-2.0
"""A functional graph, which capture.functional makes: its values, and operations of ATen on them
that change nothing in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node


@dataclass(eq=False)
class Value:
    """One tensor of the graph: `kind` input, parameter, buffer, constant or node."""

    kind: str
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    data: Tensor | None = None  # of a constant


@dataclass(eq=False)
class Operation:
    """One node: `args` by schema name, with Values in the place of tensors."""

    target: torch._ops.OpOverload
    args: dict[str, Any]
    outputs: list[Value]
    node: Node
    name: str = ""


@dataclass
class Functional:
    """The whole: `updates` maps the name of a buffer to its new value; `detached` has the values
    that were detached in place, so that no gradient flows, which the operations do not say."""

    inputs: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    updates: dict[str, Value] = field(default_factory=dict)
    detached: list[tuple[Node, Value]] = field(default_factory=list)


def tensors_in(arg: Any) -> Iterator[Any]:
    """The Values and tensors in an argument, lists looked into."""
    if isinstance(arg, (Value, Tensor)):
        yield arg
    elif isinstance(arg, (list, tuple)):
        for part in arg:
            yield from tensors_in(part)


def replaced(arg: Any, change: Callable[[Any], Any]) -> Any:
    """`arg` with every Value and tensor in it changed."""
    if isinstance(arg, (Value, Tensor)):
        return change(arg)
    return [replaced(part, change) for part in arg] if isinstance(arg, (list, tuple)) else arg


def stopped_gradient(flat: Functional) -> Node | None:
    """The first place where a gradient that some parameter would get does not flow."""
    from_parameters = {id(value) for node, value in flat.detached if value.kind == "parameter"}
    for operation in flat.operations:
        if any(
            isinstance(value, Value) and (value.kind == "parameter" or id(value) in from_parameters)
            for value in tensors_in(list(operation.args.values()))
        ):
            from_parameters.update(map(id, operation.outputs))
    return next((node for node, value in flat.detached if id(value) in from_parameters), None)


def remove_dead(flat: Functional) -> None:
    """Leaves out operations that no output and no update needs."""
    needed = {id(v) for v in [*flat.outputs, *flat.updates.values()]}
    used = []
    for operation in reversed(flat.operations):
        if any(id(v) in needed for v in operation.outputs):
            used.append(operation)
            needed.update(id(v) for v in tensors_in(list(operation.args.values())))
    flat.operations[:] = reversed(used)
