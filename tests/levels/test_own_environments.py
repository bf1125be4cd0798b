# SPDX-License-Identifier: Apache-2.0
"""The peers with an environment of their own, ncnn and mnn: equal work in float32, what they cannot
do, and that they need no PyTorch. Skipped where the environment is not installed (./test installs
it where there is a network)."""

from __future__ import annotations

from pathlib import Path

import pytest
from client import Failed, Worker, error, own_python, prepare
from envelopes import SETS, envelope, reference

LEVELS = ("ncnn", "mnn")
# envelopes; of mnn only that it is the same network: how far it may round is the proof's to say,
# and its kernels differ by processor
WITHIN = {
    "ncnn": 8,
    "mnn": 512,
}


@pytest.fixture(params=LEVELS)
def level(request):
    need(request.param)
    return request.param


def need(level: str) -> None:
    if not own_python(level):
        pytest.skip(f"the environment of {level} is not installed: ./strata level install {level}")


@pytest.fixture
def loaded(bundles, artefacts):
    """loaded(level, bundle name, variant) -> (worker, its answer to load)."""
    workers = []

    def get(level: str, name: str, variant: str = "default") -> tuple[Worker, dict]:
        worker = Worker(level, bundles(name), artefacts(level, name), variant=variant)
        workers.append(worker)
        return worker, worker.load()

    yield get
    for worker in workers:
        worker.__exit__()


@pytest.mark.parametrize("name", ["mnist", "residual"])
def test_outputs_of_a_batch_lie_in_the_envelope_for_every_weight_set(level, name, bundles, loaded):
    worker, _ = loaded(level, name)
    for weights in (*SETS, "timed"):  # and back again
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles(name), weights)) <= WITHIN[
            level
        ] * envelope(bundles(name), weights), weights


def test_mnn_without_winograd_is_as_near_to_float64_as_eager_is(bundles, loaded):
    need("mnn")
    worker, _ = loaded("mnn", "residual", "no-winograd")
    for weights in SETS:
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles("residual"), weights)) <= 8 * envelope(
            bundles("residual"), weights
        ), weights


def test_a_block_is_answered_by_its_own_inputs_and_earlier_results_stay(level, bundles, loaded):
    worker, _ = loaded(level, "mnist")
    truth, bound = (
        reference(bundles("mnist"), "timed"),
        WITHIN[level] * envelope(bundles("mnist"), "timed"),
    )
    _, outputs = worker.measure([1, 0, 1, 0, 1], check=3, head=2)
    assert set(outputs) == {"0/output"} and error(outputs, truth) <= bound


def test_a_network_that_writes_into_its_input_gets_a_copy(level, bundles, loaded):
    worker, _ = loaded(level, "in_place")
    for _ in range(2):
        assert error(worker.prove([0, 1]), reference(bundles("in_place"), "timed")) <= WITHIN[
            level
        ] * envelope(bundles("in_place"), "timed")


def test_runs_without_pytorch_on_the_threads_of_the_case_and_says_its_version(level, loaded):
    worker, answer = loaded(level, "mnist")
    assert (
        answer["settings"]["threads"] == 2
        and answer["settings"]["precision"] == "fp32"
        and answer["artefact_bytes"] > 4_000_000
    )
    assert worker.ask("hello")["versions"][level]
    assert "libtorch" not in Path(f"/proc/{worker.process.pid}/maps").read_text()


def test_a_network_that_does_not_export_is_unsupported_with_its_place(level, bundles, tmp_path):
    answer = prepare(level, bundles("branching"), tmp_path)
    assert answer["code"] == "unsupported" and "networks.py:" in answer["what"], answer


def test_says_when_the_artefact_is_missing(level, bundles, tmp_path):
    with (
        Worker(level, bundles("mnist"), tmp_path) as worker,
        pytest.raises(Failed, match=r"timed.* is missing"),
    ):
        worker.load()


def test_ncnn_left_to_its_default_computes_in_float16_and_says_so(bundles, loaded):
    need("ncnn")
    worker, answer = loaded("ncnn", "mnist", "fp16")
    assert answer["settings"]["precision"] == "fp16"
    worker.ask("weights", weights="generic1")
    assert error(worker.prove([0, 1]), reference(bundles("mnist"), "generic1")) > 16 * envelope(
        bundles("mnist"), "generic1"
    )


def test_ncnn_names_what_it_has_no_layer_for_and_refuses_whole_numbers(bundles, tmp_path):
    need("ncnn")
    answer = prepare("ncnn", bundles("unknown_operation"), tmp_path)
    assert answer["code"] == "unsupported" and "no layer of ncnn for" in answer["what"], answer
    answer = prepare("ncnn", bundles("keywords"), tmp_path)
    assert answer["code"] == "unsupported" and "ids is int64" in answer["what"], answer


def test_mnn_takes_token_ids(bundles, loaded):
    need("mnn")
    worker, _ = loaded("mnn", "keywords")
    for weights in SETS:
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles("keywords"), weights)) <= WITHIN[
            "mnn"
        ] * envelope(bundles("keywords"), weights), weights


def test_mnn_says_how_many_results_it_cannot_compute(loaded):
    need("mnn")
    worker, _ = loaded("mnn", "token_operations")
    with pytest.raises(Failed, match="computes 0 of the network's") as failure:
        worker.prove([0])
    assert failure.value.code == "unsupported"
