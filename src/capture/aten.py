# SPDX-License-Identifier: Apache-2.0
"""ATen's operations as an exported program calls them: their names and arguments, what kinds of
them there are, and the functional form of one in place."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

# Their result has the values of their first argument; those that do not copy may share its memory.
SAME_VALUES = {"alias", "clone", "contiguous", "detach", "detach_", "lift_fresh", "lift_fresh_copy"}
COPIES = {"clone", "lift_fresh_copy"}
DROPOUTS = {
    "dropout",
    "dropout_",
    "feature_dropout",
    "feature_dropout_",
    "alpha_dropout",
    "alpha_dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
}
CASTS = {"to", "_to_copy", "type_as"}
# zeros and ones by one probability: torchvision's and timm's stochastic depth
DRAWS = {
    "bernoulli.p",
    "bernoulli_.float",
}
PADS = {"pad", "constant_pad_nd"}
# Only the shape and type of their tensor argument matter.
LIKE = {
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
}

# One name for one operation.
SYNONYMS = {
    "swapaxes.default": "transpose.int",
    "swapdims.default": "transpose.int",
    "concat.default": "cat.default",
    "concatenate.default": "cat.default",
    "multiply.Tensor": "mul.Tensor",
    "subtract.Tensor": "sub.Tensor",
    "divide.Tensor": "div.Tensor",
    "true_divide.Tensor": "div.Tensor",
    "clip.default": "clamp.default",
    "special_expit.default": "sigmoid.default",
    # of Python's operators, whose own headers no wheel has
    "__and__.Tensor": "bitwise_and.Tensor",
    "__and__.Scalar": "bitwise_and.Scalar",
    "__or__.Tensor": "bitwise_or.Tensor",
    "__or__.Scalar": "bitwise_or.Scalar",
    "__xor__.Tensor": "bitwise_xor.Tensor",
    "__xor__.Scalar": "bitwise_xor.Scalar",
    "__lshift__.Tensor": "bitwise_left_shift.Tensor",
    "__lshift__.Scalar": "bitwise_left_shift.Tensor_Scalar",
    "__rshift__.Tensor": "bitwise_right_shift.Tensor",
    "__rshift__.Scalar": "bitwise_right_shift.Tensor_Scalar",
}
# Python's operators that write to their left side.
OPERATORS = {
    "__iand__": "bitwise_and",
    "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift",
    "__irshift__": "bitwise_right_shift",
}
SLICES = {"select", "slice"}  # parts that can be put back into the whole


class NotFunctional(Exception):
    """Why the program has no functional graph. `aliased`: an in-place operation reaches a tensor
    that is also seen through another view."""

    def __init__(self, what: str, node: Node | None = None, aliased: bool = False) -> None:
        super().__init__(what)
        self.node, self.aliased = node, aliased


def name_of(target: Any) -> str:
    """`conv2d` of aten.conv2d.default."""
    return (
        target._schema.name.rpartition("::")[2]
        if isinstance(target, torch._ops.OpOverload)
        else str(target)
    )


def by_name(node: Any) -> dict[str, Any]:
    """Of a call with `target`, `args` and `kwargs`: every argument by the schema's name, defaults
    filled in, one number for a list of known length repeated."""
    schema = node.target._schema
    arguments: dict[str, Any] = {}
    for position, argument in enumerate(schema.arguments):
        if position < len(node.args):
            value = node.args[position]
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            value = argument.default_value
        length = getattr(argument, "N", None)
        if length and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = [value] * length
        elif length and isinstance(value, (list, tuple)) and len(value) == 1:
            value = list(value) * length
        arguments[argument.name] = value
    if (
        arguments.get("stride") == [] and "kernel_size" in arguments
    ):  # pooling's way of saying: the same
        arguments["stride"] = arguments["kernel_size"]
    return arguments


def draws(node: Node) -> bool:
    """Whether it is a random draw that DRAWS names."""
    return str(node.target).removeprefix("aten.") in DRAWS


def functional_form(node: Node) -> torch._ops.OpOverload:
    """aten.relu.default of aten.relu_.default: the same arguments in the same order, the first of
    which may have another name."""
    schema = node.target._schema
    name = schema.name.rpartition("::")[2]
    packet = getattr(torch.ops.aten, OPERATORS.get(name, name.removesuffix("_")), None)
    if packet is None or not schema.name.endswith("_"):
        raise NotFunctional(f"{node.target} has no functional form", node)

    def signature(s: torch._C.FunctionSchema) -> list[tuple[str, str]]:
        return [(a.name if i else "", str(a.type)) for i, a in enumerate(s.arguments)]

    overloads = sorted(
        (getattr(packet, name) for name in packet.overloads()),
        key=lambda o: o._overloadname != node.target._overloadname,
    )
    for overload in overloads:
        if signature(overload._schema) == signature(schema):
            return overload
    raise NotFunctional(f"{node.target} has no functional form", node)


def fixed(shape: Any, node: Node) -> tuple[int, ...]:
    """`shape` as integers. Raises NotFunctional where it depends on values."""
    if not all(isinstance(extent, int) for extent in shape):
        raise NotFunctional(f"a shape depends on values: {list(shape)}", node)
    return tuple(shape)
