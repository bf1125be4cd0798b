# SPDX-License-Identifier: Apache-2.0
"""The operation `serve` (docs/protocol.md): several requests in flight in this process, each client
a thread in a closed loop, and its timed region.

Python's threads share one lock; what that costs a Python level is part of what is measured.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .capabilities import Serves
from .errors import BadRequest
from .level import Level
from .loop import clock, iterate, quiet_collector
from .request import Request, natural

if TYPE_CHECKING:
    from .worker import Worker

_MOST_CLIENTS = 256
# ring indices that a client goes through before it begins again; a prime, so that it fits no length
# of a ring
_DRAWN = 4099


@dataclass(frozen=True)
class Plan:
    clients: int
    threads: int  # for the work of each client
    min_ns: int
    max_requests: int
    samples: int
    checks: int
    seed: int
    begin_ns: int | None  # the clock's time at which all begin; None: when all are warm


@dataclass
class Record:
    """What one client did. `done_ns` counts from start_ns; `checked` are ring indices with what
    outputs() returned."""

    start_ns: int = 0
    latency_ns: array = field(default_factory=lambda: array("q"))
    done_ns: array = field(default_factory=lambda: array("q"))
    checked: list[tuple[int, Any]] = field(default_factory=list)
    error: BaseException | None = None


def serve(worker: Worker, request: Request) -> dict:
    level = worker.loaded()
    if worker.training:
        raise BadRequest("the case that is loaded is of mode train", "serve is for inference")
    worker.indices([0])
    plan = read_plan(request)
    clients = cast(Serves, level).clients(plan.clients, plan.threads)
    records, cpu_ns = run(clients, worker.arrays, level, plan)
    answers = []
    for client, record in enumerate(records):
        for i, (index, result) in enumerate(record.checked):
            worker.write_outputs(f"{request['out']}-{client}-{i}.safetensors", index, result)
        sampled = sample(len(record.latency_ns), plan.samples, plan.seed + client)
        answers.append(
            {
                "requests": len(record.latency_ns),
                "start_ns": record.start_ns,
                "wall_ns": record.done_ns[-1],
                "latency_ns": [record.latency_ns[i] for i in sampled],
                "done_ns": [record.done_ns[i] for i in sampled],
                "checked": [index for index, _ in record.checked],
            }
        )
    return {"clients": answers, "cpu_ns": cpu_ns}


def read_plan(request: Request) -> Plan:
    """Raises BadRequest."""

    return Plan(
        clients=natural(request, "clients", 1, _MOST_CLIENTS),
        threads=natural(request, "threads", 1),
        min_ns=natural(request, "min_ns", 0),
        max_requests=natural(request, "max_requests", 1),
        samples=natural(request, "samples", 1),
        checks=natural(request, "checks", 0),
        seed=natural(request, "seed", 0),
        begin_ns=None if request.get("begin_ns") is None else natural(request, "begin_ns", 0),
    )


def run(
    clients: Sequence[Any], arrays: Sequence[tuple[Any, ...]], level: Level, plan: Plan
) -> tuple[list[Record], int]:
    """One thread a client; the records, and the CPU time of the process. Raises what a client
    raised, after all have ended."""
    records = [Record() for _ in clients]
    ready, warming = threading.Barrier(len(clients) + 1), threading.Lock()

    def body(number: int) -> None:
        record = records[number]
        try:
            # callers of a server share no memory
            ring = [level.host_input(tuple(array.copy() for array in entry)) for entry in arrays]
            client = clients[number]
            with warming:  # what is compiled on first use is compiled once
                client.enter()
                for i in range(2):
                    iterate(client, ring[i % len(ring)])
            ready.wait()
            requests(client, ring, plan, random.Random(f"{plan.seed}/{number}"), record)
        except BaseException as error:
            record.error = error
            ready.abort()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(len(clients))]
    with quiet_collector():
        for thread in threads:
            thread.start()
        # a client's own error is told below
        with contextlib.suppress(threading.BrokenBarrierError):
            ready.wait()
        cpu = time.process_time_ns()
        for thread in threads:
            thread.join()
        cpu = time.process_time_ns() - cpu
    errors = [record.error for record in records if record.error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return records, cpu


def requests(
    client: Level, ring: Sequence[Any], plan: Plan, source: random.Random, record: Record
) -> None:
    """The closed loop of one client."""
    order = [source.randrange(len(ring)) for _ in range(_DRAWN)]
    checks = [
        *sorted(source.randrange(plan.min_ns) if plan.min_ns else 0 for _ in range(plan.checks)),
        1 << 62,
    ]
    set_input, perform, wait, outputs, now = (
        client.set_input,
        client.run,
        client.wait,
        client.outputs,
        clock,
    )
    add_latency, add_done, checked, most = (
        record.latency_ns.append,
        record.done_ns.append,
        record.checked,
        plan.max_requests,
    )
    if plan.begin_ns is not None:
        time.sleep(max(0, plan.begin_ns - now()) * 1e-9)
    start = record.start_ns = now()
    end, done, number = (
        (start if plan.begin_ns is None else plan.begin_ns) + plan.min_ns - start,
        0,
        0,
    )
    check = checks[0]
    while number == 0 or (done < end and number < most):
        index = order[number % _DRAWN]
        begin = now()
        set_input(ring[index])
        perform()
        wait()
        result = outputs()
        finish = now()
        done = finish - start
        add_latency(finish - begin)
        add_done(done)
        # drawn beforehand, so that the level cannot foresee which result is looked at
        if done >= check:
            checked.append((index, result))
            check = checks[len(checked)]
        del result
        number += 1


def sample(count: int, most: int, seed: int) -> Sequence[int]:
    """Which of `count` requests are told, in their order: each has the same chance."""
    return range(count) if count <= most else sorted(random.Random(seed).sample(range(count), most))
