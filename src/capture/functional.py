# SPDX-License-Identifier: Apache-2.0
"""Makes an exported program functional: one walk over its nodes that turns in-place operations into
their functional forms, computes what depends on no input, parameter or buffer, and leaves out what
computes nothing. Operations stay whole (batch_norm, layer_norm, hardswish, ...), which
run_decompositions does not promise."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

# Their result has the values of their first argument; those that do not copy may share its memory.
SAME_VALUES = {"alias", "clone", "contiguous", "detach", "detach_", "lift_fresh", "lift_fresh_copy"}
DETACHES = {"detach", "detach_"}
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
}
SLICES = {"select", "slice"}  # parts that can be put back into the whole


class NotFunctional(Exception):
    """Why the program has no functional graph. `aliased`: an in-place operation reaches a tensor
    that is also seen through another view."""

    def __init__(self, what: str, node: Node | None = None, aliased: bool = False) -> None:
        super().__init__(what)
        self.node, self.aliased = node, aliased


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
    through which somewhere no gradient flows, which the operations do not say."""

    inputs: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    updates: dict[str, Value] = field(default_factory=dict)
    detached: list[tuple[Node, Value]] = field(default_factory=list)


def name_of(target: Any) -> str:
    """`conv2d` of aten.conv2d.default."""
    return (
        target._schema.name.rpartition("::")[2]
        if isinstance(target, torch._ops.OpOverload)
        else str(target)
    )


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


def stopped_gradient(found: Functional) -> Node | None:
    """The first place where a gradient that some parameter would get does not flow."""
    from_parameters = {id(value) for node, value in found.detached if value.kind == "parameter"}
    for operation in found.operations:
        if any(
            isinstance(value, Value) and (value.kind == "parameter" or id(value) in from_parameters)
            for value in tensors_in(list(operation.args.values()))
        ):
            from_parameters.update(map(id, operation.outputs))
    return next((node for node, value in found.detached if id(value) in from_parameters), None)


def make_functional(program: ExportedProgram) -> Functional:
    """The functional graph of a program with fixed shapes, without dead operations. Raises
    NotFunctional."""
    return _Walk(program).run()


class _Walk:
    """`held` has, for every memory that a node of the program names, what lies there now: a Value,
    a Tensor (a constant), or a list of these."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.found = Functional()
        self.same: dict[Node, Node] = {}  # a node whose result is the very tensor of another
        self.groups: dict[Node, set[Node]] = {}  # nodes that may share memory, by each of them
        self.held: dict[Node, Any] = {}
        # placeholders that must not change, or whose change is an update: (kind, name)
        self.owners: dict[Node, tuple[str, str]] = {}
        # a part of another node's memory: (that node, the arguments of slice or select)
        self.views: dict[Node, tuple[Node, dict[str, Any]]] = {}
        self.constants: dict[int, tuple[Tensor, int, Value]] = {}
        self.names: dict[str, int] = {}
        self.order = {node: i for i, node in enumerate(program.graph.nodes)}

    def run(self) -> Functional:
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, specs[node.name])
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._outputs(node)
            else:
                raise NotFunctional(f"a {node.op} node in the exported graph: {node.target}", node)
        _remove_dead(self.found)
        return self.found

    # -------------------------------------------------------------------------------------- memory

    def _root(self, node: Node) -> Node:
        while node in self.same:
            node = self.same[node]
        return node

    def _own(self, node: Node, value: Any) -> None:
        self.held[node] = value
        self.groups.setdefault(node, {node})

    def _share(self, node: Node, other: Node) -> None:
        """Both may lie in the same memory from now on."""
        joined = self.groups.get(node, {node}) | self.groups[self._root(other)]
        for member in joined:
            self.groups[member] = joined

    def _check_unseen(self, node: Node, changed: Node, known: Collection[Node] = ()) -> None:
        """NotFunctional when the memory that `node` changes is read later through another view than
        the `known` ones."""
        now = self.order[node]
        for other in self.program.graph.nodes:
            root = self._root(other)
            if (
                root in self.held
                and root is not changed
                and root not in known
                and root in self.groups[changed]
                and any(self.order[user] > now for user in other.users)
            ):
                raise NotFunctional(
                    f"{name_of(node.target)} changes a tensor in place that is read later through another view ({other.name})",
                    node,
                    aliased=True,
                )

    def _wholes(self, part: Node) -> list[Node]:
        """What `part` is a slice of, from the nearest to the whole."""
        found = []
        while part in self.views:
            part = self.views[part][0]
            found.append(part)
        return found

    def _change(self, node: Node, changed: Node, value: Any, known: Collection[Node] = ()) -> None:
        """The memory of `changed` holds `value` from now on; the `known` views of it are changed by
        the caller."""
        kind, name = self.owners.get(changed, ("", ""))
        for member in self.groups[changed] - {changed, *known}:
            if self.owners.get(member, ("input",))[0] != "input":
                kind, name = self.owners[member]
                raise NotFunctional(
                    f"{name_of(node.target)} changes a view of the {kind} '{name}' in place",
                    node,
                    aliased=True,
                )
        if kind == "buffer":
            self.found.updates[name] = value
        elif kind and kind != "input":
            # nobody reads a caller's input after the network has overwritten it
            raise NotFunctional(
                f"{name_of(node.target)} changes the {kind} '{name}' in place", node
            )
        self.held[changed] = value

    # --------------------------------------------------------------------------------------- nodes

    def _placeholder(self, node: Node, spec: Any) -> None:
        value = node.meta.get("val")
        if not isinstance(value, Tensor):
            raise NotFunctional(f"the input {node.name} is no tensor", node)
        shape = _fixed(value.shape, node)
        if spec.kind == InputKind.USER_INPUT:
            held: Any = Value("input", node.name, value.dtype, shape)
            self.found.inputs.append(held)
            self.owners[node] = ("input", node.name)
        elif spec.kind == InputKind.PARAMETER or (
            spec.kind == InputKind.BUFFER and spec.persistent is not False
        ):
            kind = "parameter" if spec.kind == InputKind.PARAMETER else "buffer"
            held = Value(kind, spec.target, value.dtype, shape)
            self.owners[node] = (kind, spec.target)
        elif spec.target in self.program.constants and isinstance(
            self.program.constants[spec.target], Tensor
        ):
            held = self.program.constants[spec.target].detach().cpu()
            self.owners[node] = ("constant", spec.target)
        else:
            raise NotFunctional(
                f"the graph needs {spec.kind.name} '{spec.target}', which is no tensor", node
            )
        self._own(node, held)

    def _now(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.held[self._root(arg)]
        return [self._now(part) for part in arg] if isinstance(arg, (list, tuple)) else arg

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            source = self._root(node.args[0])
            self._own(node, self.held[source][node.args[1]])
            self._share(node, source)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise NotFunctional(f"the graph calls {node.target}, which is no operator", node)
        schema = node.target._schema
        written = [
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
        ]
        if not schema.returns:
            if written:
                raise NotFunctional(
                    f"{node.target} changes its arguments and returns nothing", node
                )
            return  # an assertion
        given = by_name(node)
        args = {name: self._now(arg) for name, arg in given.items()}
        if self._computes_nothing(node, args):
            self._same_values(node, given)
        elif written:
            self._in_place(node, given, args, written)
        elif _draws(node):
            self._own(node, self._drawn(node, args["p"]))
        elif name_of(node.target) == "feature_dropout":
            self._own(node, self._by_channels(node, args))
        elif folded := self._folded(node, args):
            self._own(node, folded[0])
            self._share_views(node, given)
        else:
            self._emit(node, node.target, args)
            self._share_views(node, given)
            if name_of(node.target) in SLICES:
                self.views[node] = (
                    self._root(given["self"]),
                    {name: arg for name, arg in args.items() if name != "self"},
                )
            self._running_statistics(node, given, args)

    def _computes_nothing(self, node: Node, args: dict[str, Any]) -> bool:
        name = name_of(node.target)
        if name in DROPOUTS:
            return not args["train"] or args["p"] == 0
        first = next(iter(args.values()), None)
        if not isinstance(first, Value):
            return False  # of a constant it is done in earnest: what follows may depend on strides
        no_padding = name in PADS and not any(args["pad"])
        return (
            name in SAME_VALUES
            or no_padding
            or (name in CASTS and node.meta["val"].dtype == first.dtype)
        )

    def _same_values(self, node: Node, given: dict[str, Any]) -> None:
        source = self._root(next(iter(given.values())))
        held = self.held[source]
        if name_of(node.target) in DETACHES:
            self.found.detached.append((node, held))
        if name_of(node.target) in COPIES:
            self._own(node, held)
        elif name_of(node.target).endswith("_"):
            self.same[node] = source
        else:
            self._own(node, held)
            self._share(node, source)

    def _share_views(self, node: Node, given: dict[str, Any]) -> None:
        if any(r.alias_info is not None for r in node.target._schema.returns):
            for arg in given.values():
                for source in [arg] if isinstance(arg, Node) else []:
                    self._share(node, source)

    def _in_place(
        self, node: Node, given: dict[str, Any], args: dict[str, Any], written: list[str]
    ) -> None:
        first = next(iter(given))
        if written != [first]:
            raise NotFunctional(f"{node.target} changes {', '.join(written)} in place", node)
        changed = self._root(given[first])
        if self._is_constant(node, args) and not any(
            member in self.owners for member in self.groups[changed]
        ):
            node.target(**args)  # in place on the constant itself, and so on all its views
            self.same[node] = changed
            return
        wholes = self._wholes(changed)
        self._check_unseen(node, changed, wholes)
        self._change(node, changed, self._written(node, args), {changed, *wholes})
        self.same[node] = changed
        part = changed
        for whole in wholes:
            self._put_back(node, part, whole, {changed, *wholes})
            part = whole

    def _written(self, node: Node, args: dict[str, Any]) -> Any:
        """What an in-place operation leaves in its first argument: mostly the result of its
        functional form."""
        name, (old, *others) = name_of(node.target), args.values()
        if name == "zero_" or (name == "fill_" and not isinstance(others[0], (Value, Tensor))):
            return torch.full(
                tuple(old.shape), 0 if name == "zero_" else others[0], dtype=old.dtype
            )
        if (
            name == "copy_"
            and isinstance(others[0], Value)
            and (others[0].shape, others[0].dtype) == (tuple(old.shape), old.dtype)
        ):
            return others[0]
        for part in tensors_in(others):
            if part.dtype not in (old.dtype, torch.bool) and len(part.shape) and name != "copy_":
                raise NotFunctional(
                    f"{node.target} keeps {old.dtype} where its functional form would give another type",
                    node,
                )
        if _draws(node):
            return self._drawn(node, others[0])
        if name == "feature_dropout_":
            return self._by_channels(node, args)
        functional = _functional_form(node)
        return self._append(
            node,
            functional,
            dict(zip((a.name for a in functional._schema.arguments), args.values())),
        )[0]

    def _drawn(self, node: Node, p: float) -> Value:
        """Ones with probability p, else zeros, as p times the dropout of ones: levels know how to
        draw that, and to switch it off, which leaves p, the mean."""
        drawn = node.meta["val"]
        ones = torch.ones(_fixed(drawn.shape, node), dtype=drawn.dtype)
        kept = self._append(
            node, torch.ops.aten.dropout.default, {"input": ones, "p": 1 - p, "train": True}
        )[0]
        return self._append(node, torch.ops.aten.mul.Scalar, {"self": kept, "other": p})[0]

    def _by_channels(self, node: Node, args: dict[str, Any]) -> Value:
        """One draw for each channel of a sample, as PyTorch makes it: the input times the dropout
        of ones."""
        value = node.meta["val"]
        batch, channels, *places = _fixed(value.shape, node)
        ones = torch.ones((batch, channels, *(1 for _ in places)), dtype=value.dtype)
        dropout = torch.ops.aten.dropout.default
        kept = Value("node", self._unique("dropout"), value.dtype, tuple(ones.shape))
        self.found.operations.append(
            Operation(
                dropout,
                {"input": self._value(ones), "p": args["p"], "train": True},
                [kept],
                node,
                kept.name,
            )
        )
        return self._append(
            node, torch.ops.aten.mul.Tensor, {"self": args["input"], "other": kept}
        )[0]

    def _put_back(self, node: Node, part: Node, whole: Node, known: Collection[Node]) -> None:
        """The memory of `whole` gets what its slice `part` holds now."""
        view = self.views[part][1]
        old = self.held[whole]
        scatter = (
            torch.ops.aten.select_scatter.default
            if "index" in view
            else torch.ops.aten.slice_scatter.default
        )
        new = Value("node", self._unique(name_of(scatter)), old.dtype, tuple(old.shape))
        args = {"self": self._value(old), "src": self._value(self.held[part])} | view
        self.found.operations.append(Operation(scatter, args, [new], node, new.name))
        self._change(node, whole, new, known)

    def _is_constant(self, node: Node, args: dict[str, Any]) -> bool:
        return torch.Tag.nondeterministic_seeded not in node.target.tags and not any(
            isinstance(v, Value) for v in tensors_in(list(args.values()))
        )

    def _folded(self, node: Node, args: dict[str, Any]) -> list[Any]:
        """[what the node computes] if that depends on nothing that varies, else []."""
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            return []
        name = name_of(node.target)
        if name in LIKE or name == "empty":
            value = node.meta["val"]
            if name.endswith("zeros_like") or "empty" in name or name == "new_zeros":
                return [torch.zeros(_fixed(value.shape, node), dtype=value.dtype)]
            fill = 1 if "ones" in name else args["fill_value"]
            return [torch.full(_fixed(value.shape, node), fill, dtype=value.dtype)]
        if not self._is_constant(node, args):
            return []
        result = node.target(
            **(args | ({"device": torch.device("cpu")} if "device" in args else {}))
        )
        return [list(result) if isinstance(result, (list, tuple)) else result]

    def _running_statistics(self, node: Node, given: dict[str, Any], args: dict[str, Any]) -> None:
        """In training batch_norm changes two of its arguments, which its schema hides: they become
        its second and third output."""
        name = name_of(node.target)
        changes = {"batch_norm": "training", "instance_norm": "use_input_stats"}.get(name)
        if changes is None or not args[changes] or given.get("running_mean") is None:
            return
        if name != "batch_norm":
            raise NotFunctional(f"{node.target} changes its running statistics", node)
        operation = self.found.operations[-1]
        for which in ("running_mean", "running_var"):
            changed = self._root(given[which])
            self._check_unseen(node, changed)
            old = args[which]
            new = Value("node", f"{operation.name}.{which}", old.dtype, tuple(old.shape))
            operation.outputs.append(new)
            self._change(node, changed, new)

    # ------------------------------------------------------------------------------------- results

    def _emit(self, node: Node, target: torch._ops.OpOverload, args: dict[str, Any]) -> None:
        outputs = self._append(node, target, args)
        self._own(node, outputs if isinstance(node.meta["val"], (list, tuple)) else outputs[0])

    def _append(
        self, node: Node, target: torch._ops.OpOverload, args: dict[str, Any]
    ) -> list[Value]:
        value = node.meta["val"]
        several = isinstance(value, (list, tuple))
        if known := SYNONYMS.get(str(target).removeprefix("aten.")):
            packet, _, which = known.partition(".")
            target = getattr(getattr(torch.ops.aten, packet), which)
            args = dict(zip((a.name for a in target._schema.arguments), args.values()))
        name = self._unique(name_of(target).lstrip("_"))
        made = [
            Value("node", f"{name}.{i}" if several else name, v.dtype, _fixed(v.shape, node))
            if isinstance(v, Tensor)
            else None
            for i, v in enumerate(value if several else [value])
        ]
        outputs = [one for one in made if one is not None]
        if len(outputs) < len(made):
            raise NotFunctional(
                f"{target} gives something that is no tensor: the graph would depend on the values of its inputs",
                node,
            )
        self.found.operations.append(
            Operation(
                target, {k: replaced(a, self._value) for k, a in args.items()}, outputs, node, name
            )
        )
        return outputs

    def _value(self, held: Value | Tensor) -> Value:
        if isinstance(held, Value):
            return held
        known = self.constants.get(id(held))
        if known is None or known[1] != held._version:  # changed in place since
            name = next(
                (
                    n
                    for n, t in self.program.constants.items()
                    if isinstance(t, Tensor)
                    and t.numel()
                    and (t.data_ptr(), t.shape, t.dtype)
                    == (held.data_ptr(), held.shape, held.dtype)
                ),
                "",
            )
            known = (
                held,
                held._version,
                Value(
                    "constant",
                    name or self._unique("constant"),
                    held.dtype,
                    tuple(held.shape),
                    held.detach().clone().contiguous(),
                ),
            )
            self.constants[id(held)] = known
        return known[2]

    def _unique(self, base: str) -> str:
        number = self.names.get(base, 0)
        self.names[base] = number + 1
        return f"{base}_{number}" if number else base

    def _outputs(self, node: Node) -> None:
        for spec, arg in zip(self.program.graph_signature.output_specs, node.args[0]):
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                continue
            if not isinstance(arg, Node):
                raise NotFunctional(f"the network returns {arg!r}, which is no tensor", node)
            value = self._value(self._now(arg))
            if spec.kind == OutputKind.USER_OUTPUT:
                self.found.outputs.append(value)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                self.found.updates[spec.target] = value
            else:
                raise NotFunctional(
                    f"the network changes its {spec.kind.name} '{spec.target}'", node
                )


def by_name(node: Any) -> dict[str, Any]:
    """Of a call with `target`, `args` and `kwargs`: every argument by the schema's name, defaults
    filled in, one number for a list of known length repeated."""
    schema = node.target._schema
    found: dict[str, Any] = {}
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
        found[argument.name] = value
    if found.get("stride") == [] and "kernel_size" in found:  # pooling's way of saying: the same
        found["stride"] = found["kernel_size"]
    return found


def _draws(node: Node) -> bool:
    return str(node.target).removeprefix("aten.") in DRAWS


def _functional_form(node: Node) -> torch._ops.OpOverload:
    """aten.relu.default of aten.relu_.default: the same arguments in the same order, the first of
    which may have another name."""
    schema = node.target._schema
    packet = getattr(torch.ops.aten, schema.name.rpartition("::")[2].removesuffix("_"), None)
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


def _fixed(shape: Any, node: Node) -> tuple[int, ...]:
    if not all(isinstance(extent, int) for extent in shape):
        raise NotFunctional(f"a shape depends on values: {list(shape)}", node)
    return tuple(shape)


def _remove_dead(found: Functional) -> None:
    needed = {id(v) for v in [*found.outputs, *found.updates.values()]}
    kept = []
    for operation in reversed(found.operations):
        if any(id(v) in needed for v in operation.outputs):
            kept.append(operation)
            needed.update(id(v) for v in tensors_in(list(operation.args.values())))
    found.operations[:] = reversed(kept)
