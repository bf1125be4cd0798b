# SPDX-License-Identifier: Apache-2.0
"""Makes an exported program functional: one walk over its nodes that turns in-place operations into
their functional forms, computes what depends on no input, parameter or buffer, and leaves out what
computes nothing. Operations stay whole (batch_norm, layer_norm, hardswish, ...), which
run_decompositions does not promise."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from capture.aten import (
    CASTS,
    COPIES,
    DROPOUTS,
    LIKE,
    PADS,
    SAME_VALUES,
    SLICES,
    SYNONYMS,
    NotFunctional,
    by_name,
    draws,
    fixed,
    functional_form,
    name_of,
)
from capture.bags import ADD_UP, rows_of_each
from capture.functional_graph import (
    Functional,
    Operation,
    Value,
    remove_dead,
    replaced,
    tensors_in,
)


def make_functional(program: ExportedProgram, trains: bool = False) -> Functional:
    """The functional graph of a program with fixed shapes, without dead operations. `trains`: with
    each detach that may stop a gradient. Raises NotFunctional."""
    return _Walk(program, trains).run()


class _Walk:
    """`held` has, for every memory that a node of the program names, what lies there now: a Value,
    a Tensor (a constant), or a list of these."""

    def __init__(self, program: ExportedProgram, trains: bool) -> None:
        self.program, self.trains = program, trains
        self.flat = Functional()
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
        remove_dead(self.flat)
        return self.flat

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
        mutated = []
        while part in self.views:
            part = self.views[part][0]
            mutated.append(part)
        return mutated

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
            self.flat.updates[name] = value
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
        shape = fixed(value.shape, node)
        if spec.kind == InputKind.USER_INPUT:
            held: Any = Value("input", node.name, value.dtype, shape)
            self.flat.inputs.append(held)
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
        operands = by_name(node)
        args = {name: self._now(arg) for name, arg in operands.items()}
        if self._computes_nothing(node, args):
            self._same_values(node, operands)
        elif written:
            self._in_place(node, operands, args, written)
        elif draws(node):
            self._own(node, self._drawn(node, args["p"]))
        elif name_of(node.target) == "feature_dropout":
            self._own(node, self._by_channels(node, args))
        elif name_of(node.target) == "embedding_bag" and (rows := rows_of_each(node, args)):
            self._own(node, [self._bags(node, args, rows), None, None, None])
        elif folded := self._folded(node, args):
            self._own(node, folded[0])
            self._share_views(node, operands)
        else:
            self._emit(node, node.target, args)
            self._share_views(node, operands)
            if name_of(node.target) in SLICES:
                self.views[node] = (
                    self._root(operands["self"]),
                    {name: arg for name, arg in args.items() if name != "self"},
                )
            self._running_statistics(node, operands, args)

    def _computes_nothing(self, node: Node, args: dict[str, Any]) -> bool:
        name = name_of(node.target)
        if name in DROPOUTS:
            return not args["train"] or args["p"] == 0
        first = next(iter(args.values()), None)
        if not isinstance(first, Value):
            return False  # of a constant it is done in earnest: what follows may depend on strides
        if self.trains and name == "detach" and first.kind in ("parameter", "node"):
            return False  # it stops a gradient
        no_padding = name in PADS and not any(args["pad"])
        return (
            name in SAME_VALUES
            or no_padding
            or (name in CASTS and node.meta["val"].dtype == first.dtype)
        )

    def _same_values(self, node: Node, operands: dict[str, Any]) -> None:
        source = self._root(next(iter(operands.values())))
        held = self.held[source]
        if name_of(node.target) == "detach_" and held.kind != "input":
            self.flat.detached.append((node, held))
        if name_of(node.target) in COPIES:
            self._own(node, held)
        elif name_of(node.target).endswith("_"):
            self.same[node] = source
        else:
            self._own(node, held)
            self._share(node, source)

    def _share_views(self, node: Node, operands: dict[str, Any]) -> None:
        if any(r.alias_info is not None for r in node.target._schema.returns):
            for arg in operands.values():
                for source in [arg] if isinstance(arg, Node) else []:
                    self._share(node, source)

    def _in_place(
        self, node: Node, operands: dict[str, Any], args: dict[str, Any], written: list[str]
    ) -> None:
        first = next(iter(operands))
        if written != [first]:
            raise NotFunctional(f"{node.target} changes {', '.join(written)} in place", node)
        changed = self._root(operands[first])
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
        if draws(node):
            return self._drawn(node, others[0])
        if name == "feature_dropout_":
            return self._by_channels(node, args)
        functional = functional_form(node)
        named = dict(zip((a.name for a in functional._schema.arguments), args.values()))
        without_data = {
            key: replaced(arg, lambda t: torch.empty(t.shape, dtype=t.dtype, device="meta"))
            for key, arg in named.items()
        }
        if (given := functional(**without_data).dtype) != old.dtype:
            raise NotFunctional(
                f"{node.target} keeps {old.dtype} where its functional form gives {given}", node
            )
        return self._append(node, functional, named)[0]

    def _drawn(self, node: Node, p: float) -> Value:
        """Ones with probability p, else zeros, as p times the dropout of ones: levels know how to
        draw that, and to switch it off, which leaves p, the mean."""
        drawn = node.meta["val"]
        ones = torch.ones(fixed(drawn.shape, node), dtype=drawn.dtype)
        dropped = self._append(
            node, torch.ops.aten.dropout.default, {"input": ones, "p": 1 - p, "train": True}
        )[0]
        return self._append(node, torch.ops.aten.mul.Scalar, {"self": dropped, "other": p})[0]

    def _by_channels(self, node: Node, args: dict[str, Any]) -> Value:
        """One draw for each channel of a sample, as PyTorch makes it: the input times the dropout
        of ones."""
        value = node.meta["val"]
        batch, channels, *places = fixed(value.shape, node)
        ones = torch.ones((batch, channels, *(1 for _ in places)), dtype=value.dtype)
        dropout = torch.ops.aten.dropout.default
        drawn = {"input": self._value(ones), "p": args["p"], "train": True}
        mask = self._add(node, dropout, drawn, (value.dtype, tuple(ones.shape)))
        return self._append(
            node, torch.ops.aten.mul.Tensor, {"self": args["input"], "other": mask}
        )[0]

    def _bags(self, node: Node, args: dict[str, Any], rows: int) -> Value:
        """The lookup of all rows and their sum, which levels know."""
        aten, weight, indices = torch.ops.aten, self._value(args["weight"]), args["indices"]
        bags, width = fixed(node.meta["val"][0].shape, node)
        view = {"self": self._value(indices), "size": [bags, rows]}
        places = self._add(node, aten.view.default, view, (indices.dtype, (bags, rows)))
        lookup = {"weight": weight, "indices": places, "padding_idx": -1}
        lookup |= {"scale_grad_by_freq": False, "sparse": False}
        found = self._add(node, aten.embedding.default, lookup, (weight.dtype, (bags, rows, width)))
        added = {"self": found, "dim": [1], "keepdim": False, "dtype": None}
        return self._add(node, ADD_UP[args["mode"]], added, (weight.dtype, (bags, width)))

    def _add(
        self,
        node: Node,
        target: torch._ops.OpOverload,
        args: dict[str, Any],
        result: tuple[torch.dtype, tuple[int, ...]],
    ) -> Value:
        """One operation whose result, of that type and shape, is not the node's."""
        value = Value("node", self._unique(name_of(target)), *result)
        self.flat.operations.append(Operation(target, args, [value], node, value.name))
        return value

    def _put_back(self, node: Node, part: Node, whole: Node, known: Collection[Node]) -> None:
        """The memory of `whole` gets what its slice `part` holds now."""
        view = self.views[part][1]
        old = self.held[whole]
        scatter = (
            torch.ops.aten.select_scatter.default
            if "index" in view
            else torch.ops.aten.slice_scatter.default
        )
        args = {"self": self._value(old), "src": self._value(self.held[part])} | view
        new = self._add(node, scatter, args, (old.dtype, tuple(old.shape)))
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
                return [torch.zeros(fixed(value.shape, node), dtype=value.dtype)]
            fill = 1 if "ones" in name else args["fill_value"]
            return [torch.full(fixed(value.shape, node), fill, dtype=value.dtype)]
        if not self._is_constant(node, args):
            return []
        result = node.target(
            **(args | ({"device": torch.device("cpu")} if "device" in args else {}))
        )
        return [list(result) if isinstance(result, (list, tuple)) else result]

    def _running_statistics(
        self, node: Node, operands: dict[str, Any], args: dict[str, Any]
    ) -> None:
        """In training batch_norm changes two of its arguments, which its schema hides: they become
        its second and third output."""
        name = name_of(node.target)
        changes = {"batch_norm": "training", "instance_norm": "use_input_stats"}.get(name)
        if changes is None or not args[changes] or operands.get("running_mean") is None:
            return
        if name != "batch_norm":
            raise NotFunctional(f"{node.target} changes its running statistics", node)
        operation = self.flat.operations[-1]
        for which in ("running_mean", "running_var"):
            changed = self._root(operands[which])
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
        per_output = [
            Value("node", f"{name}.{i}" if several else name, v.dtype, fixed(v.shape, node))
            if isinstance(v, Tensor)
            else None
            for i, v in enumerate(value if several else [value])
        ]
        outputs = [output for output in per_output if output is not None]
        if len(outputs) < len(per_output):
            raise NotFunctional(
                f"{target} gives something that is no tensor: the graph would depend on the values of its inputs",
                node,
            )
        self.flat.operations.append(
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
                self.flat.outputs.append(value)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                self.flat.updates[spec.target] = value
            else:
                raise NotFunctional(
                    f"the network changes its {spec.kind.name} '{spec.target}'", node
                )
