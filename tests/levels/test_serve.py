# SPDX-License-Identifier: Apache-2.0
"""Several clients at once on real levels: each gets the results of its own inputs, and the whole
pass from the program."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from client import Failed, Worker, compare, error
from envelopes import LEVELS, envelope, reference
from level_builds import PRIMITIVES, STATIC, TORCH
from safetensors.numpy import load_file

REQUEST = {
    "threads": 1,
    "min_ns": 60_000_000,
    "max_requests": 100_000,
    "samples": 200,
    "checks": 8,
    "seed": 3,
    "begin_ns": None,
}


def served(
    worker: Worker, out: Path, **changed
) -> tuple[dict, list[tuple[int, dict[str, np.ndarray]]]]:
    """The answer to `serve`, and of each checked result its ring index and tensors."""
    answer = worker.ask("serve", **(REQUEST | {"out": str(out)} | changed))
    return answer, [
        (index, load_file(f"{out}-{client}-{i}.safetensors"))
        for client, one in enumerate(answer["clients"])
        for i, index in enumerate(one["checked"])
    ]


@pytest.mark.parametrize("level", [*LEVELS, *TORCH, *PRIMITIVES, *STATIC])
def test_no_client_gets_the_results_of_another(level, bundles, running, tmp_path):
    truth, bound = reference(bundles("mnist"), "timed"), 8 * envelope(bundles("mnist"), "timed")
    worker, _ = running(level, "mnist")
    worker.ask("weights", weights="timed")
    worker.prove([0])
    answer, results = served(worker, tmp_path / level, clients=2)
    assert len(answer["clients"]) == 2 and answer["cpu_ns"] > 0 and len(results) >= 2
    for index, outputs in results:
        assert list(outputs) == [f"{index}/output"] and error(outputs, truth) <= bound
    for one in answer["clients"]:
        assert (
            one["requests"] >= len(one["latency_ns"]) == min(200, one["requests"])
            and one["wall_ns"] > 0
        )
        ends, times = one["done_ns"], one["latency_ns"]
        assert all(0 < latency <= done <= one["wall_ns"] for latency, done in zip(times, ends))
        # a closed loop
        assert all(
            later - latency >= earlier for earlier, later, latency in zip(ends, ends[1:], times[1:])
        )
    first, second = answer["clients"]
    # at the same time
    assert max(first["start_ns"], second["start_ns"]) < min(
        first["start_ns"] + first["wall_ns"], second["start_ns"] + second["wall_ns"]
    )


def test_aoti_serves_the_weights_that_are_loaded_and_one_client_again_afterwards(
    bundles,
    running,
    tmp_path,
):
    worker, _ = running("aoti", "mnist")
    worker.ask("weights", weights="generic1")
    truth, bound = (
        reference(bundles("mnist"), "generic1"),
        8 * envelope(bundles("mnist"), "generic1"),
    )
    for clients in (2, 3, 1):  # each opens the package again, with as many runners
        _, results = served(worker, tmp_path / "aoti", clients=clients)
        # of these weights the reference holds a part of the ring
        known = [outputs for index, outputs in results if f"f64/{index}/output" in truth]
        assert known and all(error(outputs, truth) <= bound for outputs in known)


def test_a_network_that_writes_into_its_input_is_given_copies(bundles, running, tmp_path):
    worker, _ = running("eager", "in_place")
    worker.prove([0, 1])
    _, results = served(worker, tmp_path / "serve", clients=2)
    for _, outputs in results:
        assert error(outputs, reference(bundles("in_place"), "timed")) <= 8 * envelope(
            bundles("in_place"), "timed"
        )


def test_a_variant_that_replaces_methods_gives_each_client_its_own(bundles, tmp_path):
    """eager@channels_last binds set_input to the level itself: a client that kept that would write
    into the others' inputs."""
    with Worker("eager", bundles("mnist"), tmp_path, variant="channels_last") as worker:
        worker.load()
        _, results = served(worker, tmp_path / "serve", clients=3)
        for _, outputs in results:
            assert error(outputs, reference(bundles("mnist"), "timed")) <= 8 * envelope(
                bundles("mnist"), "timed"
            )


def test_processes_begin_together(bundles, running, tmp_path):
    workers = [running(level, "mnist")[0] for level in ("eager", "libtorch")]
    begin, starts = time.monotonic_ns() + 400_000_000, {}

    def ask(number: int) -> None:
        answer, _ = served(
            workers[number], tmp_path / str(number), clients=1, checks=1, begin_ns=begin
        )
        starts[number] = answer["clients"][0]["start_ns"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(0 <= start - begin < 200_000_000 for start in starts.values())


@pytest.mark.parametrize("level", ["eager", "libtorch"])
def test_what_makes_no_sense_is_refused(level, bundles, running, tmp_path):
    worker, _ = running(level, "mnist")
    for changed in (
        {"clients": 0},
        {"clients": 257},
        {"clients": "two"},
        {"clients": 1, "threads": 0},
        {"clients": 1, "min_ns": -1},
    ):
        with pytest.raises(Failed) as failed:
            served(worker, tmp_path / "serve", **({"clients": 1} | changed))
        assert failed.value.code == "bad_request"


def test_a_level_that_was_not_written_for_it_does_not_offer_it(bundles):
    with Worker("null_py", bundles("mnist")) as worker:
        assert "serve" not in worker.ask("hello")["ops"]


@pytest.mark.alone  # its clients must run at the same time
def test_the_program_measures_two_clients_of_eager_and_libtorch(tmp_path):
    rows = compare(
        tmp_path,
        "mnist_convnet",
        "--levels",
        "eager,libtorch",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--clients",
        "1,2",
        "--slo",
        "p50=10s",
    )
    kinds = {
        "eager": {(1, "threads"), (2, "threads"), (2, "processes")},
        "libtorch": {(1, "threads"), (2, "threads")},
    }
    for name, expected in kinds.items():
        points = {
            (point["clients"], point["as"]): point for point in rows[name]["clients"]["points"]
        }
        assert set(points) == expected
        for point in points.values():
            assert point["state"] == "measured", point["reason"]
            assert (
                point["latency_ms"]["requests"] > 10
                and point["memory"]["private_bytes"] > 1e6
                and 0 < point["latency_ms"]["p50"]["value"] <= point["latency_ms"]["p99"]["value"]
            )
