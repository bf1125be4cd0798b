# SPDX-License-Identifier: Apache-2.0
"""The level static on CUDA. Without a device: its programs with the kit for CUDA in host memory,
where kernels, convolutions and products are loops and a graph is a list of calls, against float64
and eager; the same kit compiled by nvcc and linked with NVIDIA's libraries. With one (marker gpu):
the programs themselves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from client import NO_CUDA_DEVICE, Failed, Worker, error, prepare
from envelopes import bounds, reference
from graph_training import (
    NEAR,
    expect_frozen_parameters_to_stay,
    expect_gradients_as_first_momentum,
    expect_other_weights_to_start_afresh,
    expect_phases_that_count,
    expect_the_same_steps_from_a_state,
    expect_two_steps_of_eager,
    worst,
)
from level_builds import BUILD, STATIC
from train_bundle import (
    ADAM,
    ADAMW,
    SGD,
    expect_adam_to_count_steps,
    expect_four_steps_of_eager,
    losses,
)

if not STATIC:
    pytest.skip((BUILD / "level_static.missing").read_text(), allow_module_level=True)

HOST = "static_in_host_memory"
FAMILIES = ["image_operations", "residual_operations", "kernel_operations", "block_operations"]


@pytest.fixture(scope="module")
def level():
    return HOST


@pytest.mark.parametrize("name", FAMILIES)
def test_computes_what_eager_computes_on_odd_shapes_also_when_a_recorded_graph_runs_again(
    name, bundles, artefacts
):
    bundle = bundles(name)
    with Worker(HOST, bundle, artefacts(HOST, name)) as worker:
        worker.load()
        for weights in ("generic1", "timed"):
            worker.ask("weights", weights=weights)
            truth, bound = reference(bundle, weights), bounds(bundle, weights)
            # the first of all runs goes call by call, the second is recorded, all others are
            # recordings
            for indices in (
                [0],
                [1, 0],
            ):
                found = worker.prove(indices)
                wrong = {
                    key: (off, bound[key.split("/")[1]])
                    for key, value in found.items()
                    if not (off := error({key: value}, truth)) <= bound[key.split("/")[1]]
                }
                assert len(found) == len(indices) * len(bound) and not wrong, (
                    weights,
                    indices,
                    wrong,
                )
        assert worker.ask("report")["facts"]["library"] == "loops in host memory"


def test_a_network_lies_channels_last_and_takes_batch_norm_sum_and_activation_into_its_convolutions(
    artefacts,
):
    folder = artefacts(HOST, "residual_operations") / "program"
    stages = "".join(path.read_text() for path in sorted((folder / "stages").iterdir()))
    plan = (folder / "plan.hpp").read_text()
    assert "blocked" not in plan and plan.count("Layout::channels_last") > 5
    assert not re.search(r"winograd_|direct_", stages) and re.search(
        r"convolution\(p, (?:.|\n)*?\.then = \{plus\(v::\w+\), relu\(\)\}", stages
    )
    kit = {path.name for path in folder.glob("kit*/**/*")}
    assert {"libraries.cpp", "graph.cu", "device.cu", "elementwise.cu"} <= kit and not any(
        "_host" in name or "winograd" in name for name in kit
    )


def test_adam_begins_where_a_recorded_graph_of_sgd_was_run_and_is_that_of_eager(graph_worker):
    expect_four_steps_of_eager(graph_worker("mnist"), SGD, NEAR, worst)
    expect_four_steps_of_eager(graph_worker("mnist"), ADAMW, NEAR, worst)
    expect_adam_to_count_steps(graph_worker("mnist"), 999, True, ADAM, NEAR, worst)


@pytest.mark.parametrize(
    "name", ["convolutions", "poolings", "norms", "activations", "products", "tokens", "fire"]
)
def test_two_steps_of_families_of_operations_are_those_of_eager(name, graph_worker):
    expect_two_steps_of_eager(graph_worker(name), name)


@pytest.mark.parametrize(
    "changed",
    [
        {"nesterov": True},
        {"momentum": 0.0},
        {"dampening": 0.3, "schedule": {"name": "step", "every": 2, "gamma": 0.5}},
    ],
    ids=str,
)
def test_four_steps_of_the_optimiser_are_those_of_eager_though_the_second_was_recorded(
    changed,
    graph_worker,
):
    expect_four_steps_of_eager(graph_worker("mnist"), SGD | changed, NEAR, worst)


def test_dropout_draws_anew_in_every_run_of_a_recorded_step_and_can_be_switched(graph_worker):
    worker = graph_worker("mnist")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    off = losses(worker, [0, 0, 0])
    worker.ask("set_mode", mode="train", dropout=True)
    on = losses(worker, [0, 0, 0])
    worker.ask("set_mode", mode="train", dropout=False)
    assert losses(worker, [0]) == off[:1] and len(set(off)) == 1 and len({*on, *off}) == 4


def test_the_first_momentum_without_decay_is_the_gradient(graph_worker):
    expect_gradients_as_first_momentum(graph_worker("mnist"))


def test_a_frozen_parameter_stays_and_has_no_momentum(graph_worker):
    expect_frozen_parameters_to_stay(graph_worker("frozen"))


@pytest.mark.parametrize(
    ("optimiser", "lacking"), [(SGD, ["momentum:fc1.bias"]), (ADAMW, [])], ids=["sgd", "adamw"]
)
def test_a_state_that_is_put_back_gives_the_same_steps(optimiser, lacking, graph_worker):
    expect_the_same_steps_from_a_state(graph_worker("mnist"), optimiser, lacking)


def test_other_weights_start_afresh(graph_worker):
    expect_other_weights_to_start_afresh(graph_worker("mnist"))


def test_profile_splits_steps_into_phases_and_they_count(level, graph_worker):
    expect_phases_that_count(graph_worker("mnist"), level)


def on_cuda(bundle: Path, to: Path, precision: str = "fp32") -> Path:
    """The bundle for a case on a device."""
    shutil.copytree(bundle, to)
    about = json.loads((to / "bundle.json").read_text())
    about["case"] |= {"device": "cuda", "precision": precision}
    (to / "bundle.json").write_text(json.dumps(about))
    return to


@pytest.mark.parametrize(
    ("name", "precision"), [("residual_operations", "fp32"), ("mnist", "tf32")]
)
def test_compiles_for_a_device_and_is_unavailable_where_there_is_none(
    name, precision, bundles, tmp_path
):
    bundle, cache = on_cuda(bundles(name), tmp_path / "bundle", precision), tmp_path / "cache"
    cache.mkdir()
    answer = prepare("static", bundle, cache)
    if not answer["ok"]:  # no toolkit: what is missing is said
        assert (
            answer["code"] == "unavailable"
            and re.search(r"nvcc|CUDA|cudnn", answer["what"])
            and answer["hint"]
        )
        pytest.skip(answer["what"])
    needed = subprocess.run(
        ["ldd", cache / "network.so"], capture_output=True, text=True, check=True
    ).stdout
    assert (
        all(
            re.search(rf"lib{name}\.so\.\d+ => /", needed)
            for name in ("cudart", "cudnn", "cublasLt")
        )
        and "not found" not in needed
        and "torch" not in needed
    )
    assert ("p.allow_tf32();" in (cache / "program" / "program.cpp").read_text()) == (
        precision == "tf32"
    )
    if not NO_CUDA_DEVICE:
        return
    with Worker("static", bundle, cache) as worker, pytest.raises(Failed) as failed:
        worker.load(device="cuda")
    assert (
        failed.value.code == "unavailable"
        and "cudaError" in failed.value.what
        and "--device cpu" in failed.value.hint
    )


def test_a_training_step_compiles_for_a_device(graph_bundle, tmp_path):
    bundle = on_cuda(graph_bundle("mnist"), tmp_path / "bundle")
    answer = prepare("static", bundle, tmp_path)
    assert answer == {"ok": True} or answer["code"] == "unavailable", answer
    if answer["ok"]:
        assert (tmp_path / "network.so").exists() and (tmp_path / "evaluation.so").exists()


@pytest.mark.gpu
@pytest.mark.skipif(bool(NO_CUDA_DEVICE), reason=NO_CUDA_DEVICE)
@pytest.mark.parametrize("name", FAMILIES)
def test_computes_on_a_device_what_eager_computes_on_a_processor(name, bundles, tmp_path):
    bundle = on_cuda(bundles(name), tmp_path / "bundle")
    assert prepare("static", bundle, tmp_path) == {"ok": True}
    with Worker("static", bundle, tmp_path) as worker:
        worker.load(device="cuda")
        for weights in ("generic1", "timed"):
            worker.ask("weights", weights=weights)
            found = worker.prove([0, 1])
            assert error(found, reference(bundle, weights)) <= max(bounds(bundle, weights).values())
