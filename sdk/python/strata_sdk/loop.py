# SPDX-License-Identifier: Apache-2.0
"""The timed region of every Python level, and what the operating system says about it. Nothing here
knows the protocol.

Measured with levels/null_py; the budget is 5 microseconds an iteration, so names are bound and
lists made before the loop.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

clock = time.monotonic_ns

_KEPT_WARM_UP = 4096  # times that warm_up returns; a level that does nothing would fill megabytes


@dataclass
class Block:
    wall_ns: list[int]
    latency_ns: list[int]
    cpu_ns: int
    runq_ns: int | None
    start_ns: int
    retained: dict[int, Any]  # by iteration, what `copy` made of outputs()
    copy_ns: int  # how long that took, after the iteration, on average


@contextmanager
def quiet_collector() -> Iterator[None]:
    """No garbage collection inside a timed region: what lives now is set aside, so that the
    collection before the next region is short."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Iterated(Protocol):
    """What one iteration is made of: a level, or a training step in its place."""

    def set_input(self, inputs: Any) -> None: ...
    def run(self) -> None: ...
    def wait(self) -> None: ...
    def outputs(self) -> Any: ...


def iterate(level: Iterated, inputs: Any) -> tuple[Any, int]:
    """One iteration: what outputs() returned, and its end-to-end time."""
    begin = clock()
    level.set_input(inputs)
    level.run()
    level.wait()
    result = level.outputs()
    return result, clock() - begin


def warm_up(
    level: Iterated, ring: Sequence[Any], iterations: int, min_ns: int
) -> tuple[int, list[int]]:
    """At least `iterations` and at least `min_ns`: how many, and the times of the first 4096."""
    times: list[int] = []
    count = 0
    with quiet_collector():
        begin = clock()
        while count < iterations or clock() - begin < min_ns:
            _, wall = iterate(level, ring[count % len(ring)])
            if count < _KEPT_WARM_UP:
                times.append(wall)
            count += 1
    return count, times


def measure(
    level: Iterated,
    ring: Sequence[Any],
    indices: Sequence[int],
    head: int,
    retain: frozenset[int],
    put: Callable[[int], None],
    copy: Callable[[int, Any], Any],
) -> Block:
    """`head` unrecorded iterations, then one a ring index, before each `put(iteration)`; of the
    recorded iterations in `retain` what `copy(iteration, result)` gives."""
    count = len(indices)
    entries = [ring[i] for i in indices]
    wall_ns, latency_ns = [0] * count, [0] * count
    retained: dict[int, Any] = {}
    copying_ns = 0
    set_input, run, wait, outputs, now = (
        level.set_input,
        level.run,
        level.wait,
        level.outputs,
        clock,
    )
    with quiet_collector():
        for i in range(head):
            iterate(level, ring[i % len(ring)])
        runq = run_queue_ns()
        cpu = time.process_time_ns()
        start = now()
        for i in range(count):
            inputs = entries[i]
            put(i)
            t0 = now()
            set_input(inputs)
            t1 = now()
            run()
            wait()
            t2 = now()
            result = outputs()
            t3 = now()
            wall_ns[i] = t3 - t0
            latency_ns[i] = t2 - t1
            if i in retain:
                retained[i] = copy(i, result)
                copying_ns += now() - t3
            del result  # the caller frees it here: not the level's time
        cpu = time.process_time_ns() - cpu
        runq_after = run_queue_ns()
    waited = runq_after - runq if runq is not None and runq_after is not None else None
    copy_ns = copying_ns // max(1, len(retain))
    return Block(wall_ns, latency_ns, cpu, waited, start, retained, copy_ns)


def run_queue_ns() -> int | None:
    """Time that the main thread was runnable but waited for a core, from /proc/self/schedstat; None
    where the kernel does not say."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
