# SPDX-License-Identifier: Apache-2.0
"""The level libtorch on networks that nobody wrote by hand: generated calls of ATen compute and
train what eager does, and what cannot be written is named with its place."""

from __future__ import annotations

import hashlib
import json

import pytest
from client import ROOT, Failed, Worker, compare, error, prepare
from envelopes import SETS, bounds, reference
from safetensors.numpy import load_file

NETWORKS = f"{ROOT / 'tests/levels/networks.py'}"


@pytest.mark.parametrize("name", ["image_operations", "token_operations", "keywords", "in_place"])
def test_computes_what_eager_computes_with_every_weight_set(name, bundles, running):
    bundle = bundles(name)
    worker, loaded = running("libtorch", name)
    assert (
        loaded["settings"]["graph"] == "exported"
        and loaded["parameters"] == json.loads((bundle / "bundle.json").read_text())["parameters"]
    )
    for weights in (*SETS, "timed"):
        worker.ask("weights", weights=weights)
        outputs, bound = worker.prove([0, 1]), bounds(bundle, weights)
        assert {key.split("/")[1] for key in outputs} == bound.keys()
        wrong = {
            key: found
            for key, value in outputs.items()
            if not (found := error({key: value}, reference(bundle, weights)))
            <= bound[key.split("/")[1]]
        }
        assert not wrong, (weights, wrong)


def test_every_weight_can_be_read_back_those_too_that_no_operation_reads(bundles, running):
    worker, _ = running("libtorch", "image_operations")
    worker.ask("weights", weights="generic1")
    file = load_file(bundles("image_operations") / "weights" / "generic1.safetensors")
    assert any("num_batches_tracked" in name for name in file)
    assert worker.ask("read_weights")["sha256"] == {
        name: hashlib.sha256(value.tobytes()).hexdigest() for name, value in file.items()
    }


def test_the_program_names_the_modules_and_gives_memory_back_after_the_last_reader(
    bundles, artefacts
):
    program = (artefacts("libtorch", "keywords") / "network.cpp").read_text()
    assert (
        "op::embedding::call(" in program and "networks.py:" in program and ".reset();" in program
    )


def test_what_has_no_captured_graph_is_unsupported_with_its_place(bundles, tmp_path):
    answer = prepare("libtorch", bundles("branching"), tmp_path)
    assert (
        answer["ok"] is False
        and answer["code"] == "unsupported"
        and "networks.py:" in answer["what"] + answer["hint"]
    )


def test_without_a_compiler_it_is_unavailable(bundles, tmp_path):
    answer = prepare("libtorch", bundles("in_place"), tmp_path, CXX="/nowhere/c++")
    assert (
        answer["ok"] is False
        and answer["code"] == "unavailable"
        and "/nowhere/c++" in answer["what"]
    )


def test_a_missing_program_and_one_for_several_batches_are_refused(bundles, tmp_path):
    with Worker("libtorch", bundles("in_place"), tmp_path) as worker:
        with pytest.raises(Failed, match=r"network\.so is missing"):
            worker.load()
        with pytest.raises(Failed, match="made for one batch") as failed:
            worker.load(dynamic={"name": "batch", "low": 1, "high": 4, "sizes": [1, 4]})
        assert failed.value.code == "unsupported"


def test_trains_a_users_network_by_autograd_as_the_proof_of_training_demands(tmp_path):
    rows = compare(
        tmp_path,
        f"{NETWORKS}:residual_network",
        "--mode",
        "train",
        "--threads",
        "1",
        "--levels",
        "eager,libtorch",
        "--restarts",
        "1",
        "--budget",
        "1s",
    )
    assert rows["libtorch"]["state"] == "measured", rows["libtorch"]["reason"]
    assert rows["libtorch"]["proof"]["verdict"] == "equal"
