# SPDX-License-Identifier: Apache-2.0
"""The operations `measure` and `result` (docs/protocol.md): what is asked is checked, the loop in
loop.py times it, and what it retained is written when the driver asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import loop
from .errors import BadRequest, UnsupportedError
from .request import Request, natural

if TYPE_CHECKING:
    from .worker import Worker


def measure(worker: Worker, request: Request) -> dict:
    """Timed iterations, some of whose results stay (docs/protocol.md, measure)."""
    worker.loaded()
    worker.retained = {}
    region = request.get("region", "end_to_end")
    if region != "end_to_end":
        raise UnsupportedError(f"this level has no region `{region}`", "it has: end_to_end")
    iterations, head = natural(request, "iterations"), natural(request, "head")
    indices = worker.indices(request["indices"])
    if len(indices) != iterations:
        raise BadRequest(
            f"`indices` has {len(indices)} entries for {iterations} iterations",
            "one ring index an iteration",
        )
    retain = request.get("retain", [])
    if not isinstance(retain, list) or any(not _is_below(i, iterations) for i in retain):
        raise BadRequest(f"`retain` is {retain!r}", f"a list of iterations, 0 to {iterations - 1}")
    level, ring = worker.running()
    fresh, names = _fresh(worker, request.get("fresh"), indices)

    def copy(iteration: int, result: Any) -> dict[str, Any]:
        # a result may be a view of the input, which changes
        named = worker.named(names[iteration], result)
        return {name: array.copy() for name, array in named.items()}

    retained = frozenset(retain)
    if fresh is None:
        block = loop.measure(level, ring, indices, head, retained, lambda _iteration: None, copy)
    else:
        with fresh:
            block = loop.measure(level, ring, indices, head, retained, fresh.put, copy)
    worker.retained = block.retained
    freshness = {} if fresh is None else {"fresh": {"places": fresh.places}}
    return {
        "wall_ns": block.wall_ns,
        "latency_ns": block.latency_ns,
        "cpu_ns": block.cpu_ns,
        "start_ns": block.start_ns,
        "runq_ns": block.runq_ns,
        "copy_ns": block.copy_ns,
    } | freshness


def result(worker: Worker, request: Request) -> dict:
    """What one iteration of the last `measure` gave (docs/protocol.md, result)."""
    iteration = natural(request, "iteration")
    if iteration not in worker.retained:
        raise BadRequest(
            f"the result of iteration {iteration} was not retained",
            "name it in `retain` of measure",
        )
    if not worker.is_harness():
        from . import tensors

        tensors.write(request["out"], worker.retained[iteration])
    return {}


def _is_below(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound


def _fresh(worker: Worker, fresh_request: Any, indices: Sequence[int]) -> tuple[Any, list[int]]:
    """What the driver wants done to the inputs of a block (fresh_inputs.FreshInputs; None:
    nothing), and whose input each iteration then has."""
    names = list(indices)
    if fresh_request is None:
        return None, names
    allowed = f"allowed: `first`, an integer from 0, `places`, a list of them, and in inference `exchange`, a ring index up to {len(worker.ring) - 1}, or any with `entry`, a file of one entry, with `at`, an iteration"
    if not isinstance(fresh_request, dict) or not isinstance(fresh_request.get("places"), list):
        raise BadRequest(f"`fresh` is {fresh_request!r}", allowed)
    other, at = fresh_request.get("exchange"), fresh_request.get("at", -1)
    numbers = [
        fresh_request.get("first"),
        *fresh_request["places"],
        *([] if other is None else [other]),
    ]
    entry = fresh_request.get("entry")
    if (
        any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in numbers)
        or (other is not None and (worker.steps() or not _is_below(at, len(indices))))
        or (entry is None and other is not None and other >= len(worker.ring))
        or (entry is not None and (other is None or not isinstance(entry, str)))
    ):
        raise BadRequest(f"`fresh` is {fresh_request!r}", allowed)
    from .fresh_inputs import FreshInputs

    arrays, place = worker.arrays, other
    if entry is not None:
        arrays, place = [*arrays, worker.unseen(entry)], len(arrays)
    if other is not None:
        names[at] = other
    return FreshInputs(
        arrays, indices, fresh_request["first"], fresh_request["places"], at, place
    ), names
