# SPDX-License-Identifier: Apache-2.0
"""Iterations with the time of each operation (docs/protocol.md, operations): the request, and what
PyTorch's own profiler gives for levels that run a module from Python."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from . import loop
from .capabilities import Operation, RecordedIteration, TimesOperations
from .errors import BadRequest, LevelError
from .request import Request

if TYPE_CHECKING:
    import torch

    from .worker import Worker

# as Inductor names its kernels, with config.cpp.enable_kernel_profile
GENERATED = re.compile(r"(graph_\d+_)?cpp_(fused_)?(?P<of>\w*?)(_?\d+)?$")
PRODUCTS = re.compile(r"(?<![a-z])(convolution_backward|convolution|addmm|baddbmm|bmm|mm)(?![a-z])")
LAYER = "strata::layer::"  # what a module's path is marked with in PyTorch's records
ITERATION = "strata::iteration"


def operations(worker: Worker, request: Request) -> dict:
    """Iterations, each with when its operations began and ended."""
    level, ring = worker.running()
    indices, iterations = worker.indices(request["indices"]), request["iterations"]
    if iterations != len(indices) or not indices:
        raise BadRequest(
            f"`indices` has {len(indices)} entries for {iterations!r} iterations",
            "one ring index an iteration, at least one",
        )
    recorder = cast(TimesOperations, worker.loaded())

    def iterate(index: int) -> None:
        loop.iterate(level, ring[index])

    with loop.quiet_collector():
        recorded = recorder.record_operations(iterate, indices)
    return answer(recorded)


def answer(recorded: Sequence[RecordedIteration]) -> dict:
    """The operations of iterations, which are to be the same in each, by their place. Raises
    LevelError where they are not, or overlap."""
    first = [operation.operation for operation in recorded[0].operations]
    ns: list[list[int]] = [[] for _ in first]
    gap_ns: list[list[int]] = [[] for _ in first]
    after_ns = []
    for iteration in recorded:
        names = [operation.operation for operation in iteration.operations]
        if names != first:
            raise LevelError(
                f"the operations of iterations differ: {len(first)} and {len(names)}, the first"
                f" that differs is {_first_difference(first, names)}",
                "a network that computes something else each time has no profile",
            )
        before = iteration.begin_ns
        for place, operation in enumerate(iteration.operations):
            if operation.begin_ns < before or operation.end_ns < operation.begin_ns:
                raise LevelError(
                    f"operation {place} ({operation.operation}) begins before the one before it ends",
                    "operations that run at once cannot be told apart",
                )
            ns[place].append(operation.end_ns - operation.begin_ns)
            gap_ns[place].append(operation.begin_ns - before)
            before = operation.end_ns
        after_ns.append(iteration.end_ns - before)
    return {
        "operations": [
            {
                "operation": operation.operation,
                "layer": operation.layer,
                "kernel": operation.kernel,
                "shapes": [list(shape) for shape in operation.shapes],
                "moves_only": operation.moves_only,
                "ns": ns[place],
                "gap_ns": gap_ns[place],
            }
            for place, operation in enumerate(recorded[0].operations)
        ],
        "wall_ns": [iteration.end_ns - iteration.begin_ns for iteration in recorded],
        "after_ns": after_ns,
    }


def _first_difference(first: list[str], names: list[str]) -> str:
    pairs = itertools.zip_longest(first, names, fillvalue="none")
    return next(f"{a} and {b}" for a, b in pairs if a != b)


# ------------------------------------------------------------------------------- PyTorch's profiler


def of_module(
    module: torch.nn.Module, iterate: Callable[[int], None], indices: Sequence[int]
) -> list[RecordedIteration]:
    """As of_calls, with the module that is running, backward with that of the operation it is the
    gradient of."""
    with marked_layers(module):
        return of_calls(iterate, indices)


def of_calls(iterate: Callable[[int], None], indices: Sequence[int]) -> list[RecordedIteration]:
    """Calls iterate() with each index and gives its operations: the outermost calls of PyTorch's
    operators, and of kernels that Inductor generated, in this thread."""
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for index in indices:
            with record_function(ITERATION):
                iterate(index)
    events = profiler.events() or []
    thread = next(event.thread for event in events if event.name == ITERATION)
    own = sorted(
        (event for event in events if event.thread == thread),
        key=lambda event: event.time_range.start,
    )
    layers = _layers_by_number(own)
    return [_recorded(event, own, layers) for event in own if event.name == ITERATION]


@contextmanager
def marked_layers(module: torch.nn.Module) -> Iterator[None]:
    """While it lasts, each call of a part of the module is marked in PyTorch's records by its
    path."""
    from torch.profiler import record_function

    running: list[Any] = []

    def begin(path: str) -> Callable:
        def hook(*_arguments: Any) -> None:
            mark = record_function(LAYER + path)
            mark.__enter__()
            running.append(mark)

        return hook

    def end(*_arguments: Any) -> None:
        running.pop().__exit__(None, None, None)

    hooks = []
    for path, part in module.named_modules():
        hooks.append(part.register_forward_pre_hook(begin(path), prepend=True))
        hooks.append(part.register_forward_hook(end, always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def is_operation(event: Any) -> bool:
    """Whether it is a call of an operator or a generated kernel, not a mark or a part of the
    autograd engine."""
    if GENERATED.match(event.name):
        return True
    return "::" in event.name and not event.name.startswith(("autograd::", "strata::"))


def name_of(event: Any) -> str:
    """Of a generated kernel, what is fused in it: `graph_0_cpp_fused_add_convolution_relu_3` is
    `fused_add_relu`, since a product is a call of its own, whose operands the kernel moves."""
    kernel = GENERATED.match(event.name)
    if not kernel:
        return str(event.name.removeprefix("aten::"))
    return "_".join(["fused", *filter(None, PRODUCTS.sub("", kernel["of"]).split("_"))])


def _above(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event


def _marked_layer(event: Any) -> str | None:
    marks = (above.name for above in _above(event) if above.name.startswith(LAYER))
    return next((mark.removeprefix(LAYER) for mark in marks), None)


def _layers_by_number(events: Sequence[Any]) -> dict[int, str]:
    """The layer of the operation that made the autograd node of that sequence number: the last in
    the forward pass that ran while it was the next to be given."""
    layers = {}
    for event in events:
        if event.sequence_nr >= 0 and is_operation(event):
            layer = _marked_layer(event)
            if layer is not None:
                layers[event.sequence_nr] = layer
    return layers


def _layer_of(event: Any, layers: dict[int, str]) -> str | None:
    layer = _marked_layer(event)
    if layer is not None:
        return layer
    numbers = (
        above.sequence_nr
        for above in _above(event)
        if above.name.startswith("autograd::") and above.sequence_nr >= 0
    )
    return layers.get(next(numbers, -1))


def _kernel_of(event: Any) -> str:
    """The operator within it that takes the most of its time."""
    most, stack = event, [event]
    while stack:
        each = stack.pop()
        if each.self_cpu_time_total > most.self_cpu_time_total:
            most = each
        stack.extend(each.cpu_children)
    return most.name.removeprefix("aten::")


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _recorded(iteration: Any, events: Sequence[Any], layers: dict[int, str]) -> RecordedIteration:
    begin, end = iteration.time_range.start, iteration.time_range.end
    found = []
    for event in events:
        inside = begin <= event.time_range.start and event.time_range.end <= end
        if not inside or not is_operation(event) or any(map(is_operation, _above(event))):
            continue
        name = name_of(event)
        found.append(
            Operation(
                operation=name,
                layer=_layer_of(event, layers),
                kernel=_kernel_of(event),
                shapes=tuple(tuple(shape) for shape in event.input_shapes or () if shape),
                moves_only=name in MOVES or name == "fused",
                begin_ns=_ns(event.time_range.start),
                end_ns=_ns(event.time_range.end),
            )
        )
    return RecordedIteration(_ns(begin), _ns(end), found)


# operators that compute nothing
MOVES = frozenset(
    "clone contiguous copy_ to view reshape permute transpose t expand slice select cat stack"
    " flatten unflatten squeeze unsqueeze split chunk detach alias empty zeros narrow repeat unbind"
    " as_strided movedim roll flip".split()
)
