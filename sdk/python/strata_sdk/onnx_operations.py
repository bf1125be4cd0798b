# SPDX-License-Identifier: Apache-2.0
"""The operations of an iteration as ONNX Runtime's own profiler records them, with the part of the
network that each node of the exported file comes from. Needs onnx."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .capabilities import Operation, RecordedIteration

# of a node: the modules around it, outermost first, then its own name
NAME_SCOPES = "pkg.torch.onnx.name_scopes"
MOVES = {
    *("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Identity", "Concat"),
    *("Split", "Slice", "Cast", "Pad", "ReorderInput", "ReorderOutput", "MemcpyFromHost"),
    "MemcpyToHost",
}
FUSED = 4  # so many nodes in a row become one at most
WORDS = {"MatMul": "matmul", "FusedMatMul": "fused_matmul"}  # one word in ATen


@dataclass(frozen=True)
class Node:
    kind: str
    layer: str | None
    inputs: Sequence[str]


class Nodes:
    """The nodes of an ONNX file by their names and by the names of what they give, each with the
    module whose weight it reads, else the innermost one around it, as far as the file says it."""

    def __init__(self, path: Path) -> None:
        import onnx

        graph = onnx.load(str(path), load_external_data=False).graph
        weights = {tensor.name for tensor in graph.initializer}
        self.by_name: dict[str, Node] = {}
        for node in graph.node:
            noted = {entry.key: entry.value for entry in node.metadata_props}
            scopes = ast.literal_eval(noted[NAME_SCOPES]) if NAME_SCOPES in noted else []
            owners = [name.rpartition(".")[0] for name in node.input if name in weights]
            layer = next(filter(None, owners), scopes[-2] if len(scopes) > 1 else None)
            told = Node(node.op_type, layer, list(node.input))
            self.by_name |= {name: told for name in (node.name, *node.output) if name}

    def layer(self, name: str, kind: str) -> str | None:
        """Of a node that the optimiser made: it has the name of a node of the file, or of what one
        gives, with words before and behind. Where that is of another kind, as the activation after
        a convolution that took it in, the nearest before it that is of the kind."""
        of = [one for one in self.by_name if one in name]
        if not of:
            return None
        first = self.by_name[max(of, key=len)]
        near = [first]
        for _ in range(FUSED):
            for node in near:
                if node.kind in kind:
                    return node.layer
            near = [self.by_name[i] for node in near for i in node.inputs if i in self.by_name]
        return first.layer


def of_profile(
    path: Path, start_ns: int, spans: Sequence[tuple[int, int]], network: Nodes
) -> list[RecordedIteration]:
    """Of each span (begin, end; nanoseconds of the clock by which the profile began at `start_ns`)
    the nodes that ran in it. The profiler counts in whole microseconds: what a shorter node took
    lies between operations. Nodes inside others (of a loop's body) are left out."""
    events = json.loads(path.read_text(encoding="utf-8"))
    nodes = sorted(
        (
            event
            for event in events
            if event["cat"] == "Node" and event["name"].endswith("_kernel_time")
        ),
        key=lambda event: (event["ts"], -event["dur"]),
    )
    known: dict[str, str | None] = {}
    recorded, at = [], 0
    for begin, end in spans:
        operations: list[Operation] = []
        while at < len(nodes) and start_ns + 1000 * nodes[at]["ts"] < begin:
            at += 1
        before = begin
        while at < len(nodes) and (first := start_ns + 1000 * nodes[at]["ts"]) < end:
            last = first + 1000 * nodes[at]["dur"]
            if first >= before and last <= end:
                operations.append(_operation(nodes[at], first, last, network, known))
                before = last
            at += 1
        recorded.append(RecordedIteration(begin, end, operations))
    return recorded


def _operation(
    event: dict, begin: int, end: int, network: Nodes, known: dict[str, str | None]
) -> Operation:
    name = event["name"].removesuffix("_kernel_time")
    kind = event["args"]["op_name"]
    if name not in known:
        known[name] = network.layer(name, kind)
    shapes = [
        shape for typed in event["args"].get("input_type_shape", []) for shape in typed.values()
    ]
    return Operation(
        operation=WORDS.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower(),
        begin_ns=begin,
        end_ns=end,
        layer=known[name],
        kernel=kind,
        shapes=shapes,
        moves_only=kind in MOVES,
    )
