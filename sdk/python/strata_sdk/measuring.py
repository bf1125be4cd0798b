# SPDX-License-Identifier: Apache-2.0
"""The operation `measure` (docs/protocol.md): what is asked is checked, the loop in loop.py times
it, and the checked result is written afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import loop
from .errors import BadRequest, UnsupportedError
from .request import Request, natural

if TYPE_CHECKING:
    from .worker import Worker


def measure(worker: Worker, request: Request) -> dict:
    """Timed iterations, of which one is checked (docs/protocol.md, measure)."""
    worker.loaded()
    region = request.get("region", "end_to_end")
    if region != "end_to_end":
        raise UnsupportedError(f"this level has no region `{region}`", "it has: end_to_end")
    iterations, head = natural(request, "iterations"), natural(request, "head")
    indices = worker.indices(request["indices"])
    check = request.get("check", -1)
    if len(indices) != iterations:
        raise BadRequest(
            f"`indices` has {len(indices)} entries for {iterations} iterations",
            "one ring index an iteration",
        )
    if isinstance(check, bool) or not isinstance(check, int) or not -1 <= check < iterations:
        raise BadRequest(f"`check` is {check!r}", f"allowed: 0 to {iterations - 1}, or -1 for none")
    level, ring = worker.running()
    fresh, checked = _fresh(worker, request.get("fresh"), indices, check)

    def keep(result: Any) -> dict[str, Any]:
        # a result may be a view of the input, which changes
        return {name: array.copy() for name, array in worker.named(checked, result).items()}

    if fresh is None:
        block = loop.measure(level, ring, indices, head, check, lambda _iteration: None, keep)
    else:
        with fresh:
            block = loop.measure(level, ring, indices, head, check, fresh.put, keep)
    if check >= 0 and not worker.is_harness():
        from . import tensors

        tensors.write(request["out"], block.checked)
    freshness = {} if fresh is None else {"fresh": {"places": fresh.places}}
    return {
        "wall_ns": block.wall_ns,
        "latency_ns": block.latency_ns,
        "cpu_ns": block.cpu_ns,
        "start_ns": block.start_ns,
        "runq_ns": block.runq_ns,
        "kept_ns": block.kept_ns,
    } | freshness


def _fresh(
    worker: Worker, fresh_request: Any, indices: Sequence[int], check: int
) -> tuple[Any, int]:
    """What the driver wants done to the inputs of a block (fresh_inputs.FreshInputs; None:
    nothing), and whose input the checked iteration then has."""
    checked = indices[check] if check >= 0 else -1
    if fresh_request is None:
        return None, checked
    allowed = f"allowed: `first`, an integer from 0, `places`, a list of them, and in inference `exchange`, a ring index up to {len(worker.ring) - 1}, or any with `entry`, a file of one entry"
    if not isinstance(fresh_request, dict) or not isinstance(fresh_request.get("places"), list):
        raise BadRequest(f"`fresh` is {fresh_request!r}", allowed)
    other = fresh_request.get("exchange")
    numbers = [
        fresh_request.get("first"),
        *fresh_request["places"],
        *([] if other is None else [other]),
    ]
    entry = fresh_request.get("entry")
    if (
        any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in numbers)
        or (other is not None and worker.steps())
        or (entry is None and other is not None and other >= len(worker.ring))
        or (entry is not None and (other is None or not isinstance(entry, str)))
    ):
        raise BadRequest(f"`fresh` is {fresh_request!r}", allowed)
    from .fresh_inputs import FreshInputs

    arrays, at = worker.arrays, other
    if entry is not None:
        arrays, at = [*arrays, worker.unseen(entry)], len(arrays)
    return FreshInputs(
        arrays, indices, fresh_request["first"], fresh_request["places"], check, at
    ), checked if other is None else other
