# SPDX-License-Identifier: Apache-2.0
"""The levels on the captured graph, onednn, static and cudnn (everywhere with its stand-in for
NVIDIA's libraries), in mode train, against eager in this process: losses, gradients, optimiser,
statistics, dropout, state, phases; every backward rule on odd shapes."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
import torch
from backward_networks import NETWORKS
from client import ROOT, Failed, Worker, level_folder
from graph_training import (
    NEAR,
    expect_frozen_parameters_to_stay,
    expect_gradients_as_first_momentum,
    expect_other_weights_to_start_afresh,
    expect_phases_that_count,
    expect_the_same_steps_from_a_state,
    expect_two_steps_of_eager,
    make,
    prepared,
    worst,
)
from level_builds import BUILD, ON_A_GPU, PRIMITIVES, STATIC
from safetensors.numpy import load_file
from train_bundle import (
    ADAM,
    ADAMW,
    SGD,
    Eager,
    expect_adam_to_count_steps,
    expect_four_steps_of_eager,
    load_state,
    losses,
    start,
    state,
    whole_state,
)

import training

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]


if not PRIMITIVES:
    pytest.skip((BUILD / "level_onednn.missing").read_text(), allow_module_level=True)

OPTIMISERS = [
    *(
        SGD | changed
        for changed in (
            {},
            {"momentum": 0.0},
            {"momentum": 0.0, "weight_decay": 0.0},
            {"nesterov": True},
            {"dampening": 0.3},
            {"schedule": {"name": "step", "every": 2, "gamma": 0.5}},
            {"schedule": {"name": "cosine", "steps": 3}},
        )
    ),
    ADAM,
    ADAM | {"weight_decay": 0.0, "schedule": {"name": "step", "every": 2, "gamma": 0.5}},
    ADAMW,
]


@pytest.fixture(
    scope="module",
    params=[
        "onednn",
        pytest.param("static", marks=pytest.mark.skipif(not STATIC, reason="static is not built")),
        "cudnn_host",
        "cudnn_host@channels_last",
        pytest.param("cudnn", marks=ON_A_GPU),
        pytest.param("cudnn@channels_last", marks=ON_A_GPU),
    ],
)
def level(request):
    return request.param


@pytest.mark.parametrize("name", [name.lower() for name in NETWORKS])
def test_two_steps_of_every_family_of_operations_are_those_of_eager(name, level, graph_worker):
    # which calculates with float32 alone, and has neither recurrent layers nor floor
    lacking = ("typed", "lstms", "gates", "bent", "grown", "chosen", "composed", "stopped")
    if name in lacking and level.startswith("cudnn"):
        with pytest.raises(Failed, match="no operation"):
            graph_worker(name)
    else:
        expect_two_steps_of_eager(graph_worker(name), name)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_four_steps_of_the_optimiser_are_those_of_eager(optimiser, graph_worker):
    expect_four_steps_of_eager(graph_worker("mnist"), optimiser, NEAR, worst)


@pytest.mark.parametrize("optimiser", [ADAM, ADAMW | {"eps": 1e-8}], ids=lambda o: o["name"])
@pytest.mark.parametrize(("done", "has_moments"), [(0, True), (999, True), (5, False)], ids=str)
def test_a_step_of_adam_from_given_buffers_counts_the_steps_that_were_done(
    done, has_moments, optimiser, graph_worker
):
    expect_adam_to_count_steps(graph_worker("mnist"), done, has_moments, optimiser, NEAR, worst)


def test_trains_a_residual_network_with_its_statistics(graph_worker):
    worker = graph_worker("resnet18")
    eager = Eager(worker.bundle)
    before, _, _ = state(worker)
    # in the batches after it rounding moves elements over the kinks of ReLUs, eager's too
    assert losses(worker, [0]) == pytest.approx([eager.step(0)], rel=NEAR)
    tensors, step, _ = state(worker)
    assert step == 1 and worst(tensors, eager.state()) < 1e-4
    assert all(not np.array_equal(before[n], tensors[n]) for n in tensors if "running_" in n)
    counts = {n: int(v) for n, v in whole_state(worker)[0].items() if n.startswith("count:")}
    assert (
        counts
        and set(counts.values()) == {1}
        and all(n.endswith("num_batches_tracked") for n in counts)
    )


@pytest.mark.parametrize("name", ["train_tiny", "train_mnist"])
def test_gradients_statistics_and_loss_lie_within_the_proofs_bound(name, level, bundles, tmp_path):
    with Worker(level, bundles(name), prepared(level, bundles(name), tmp_path)) as worker:
        worker.load()
        for weights in ("timed", "probe1", "probe2"):
            times = training.times_bound(training.probe(worker, weights), bundles(name), weights)
            assert max(times.values()) < 1, (
                weights,
                max(times, key=times.get),
                max(times.values()),
            )


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


def test_dropout_acts_as_given_and_can_be_switched(graph_worker):
    worker = graph_worker("mnist")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    off = losses(worker, [0] * 4)
    worker.ask("set_mode", mode="train", dropout=True)
    on = losses(worker, [0] * 24)
    worker.ask("set_mode", mode="train", dropout=False)
    assert losses(worker, [0] * 4) == off and len(set(off)) == 1
    assert len(set(on)) == 24 and off[0] not in on
    worker.ask("unload")
    worker.load()  # without set_mode: as the network has it
    assert len(set(losses(worker, [0] * 2))) == 2


def test_stochastic_depth_is_switched_like_dropout_and_without_it_steps_are_those_of_eager(
    graph_worker,
):
    expect_two_steps_of_eager(graph_worker("depths"), "depths")
    worker = graph_worker("depths")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    off = losses(worker, [0] * 2)
    worker.ask("set_mode", mode="train", dropout=True)
    on = losses(worker, [0] * 64)
    # three samples and the batch, each kept or not
    assert off[0] == off[1] and 8 < len(set(on)) <= 16


@pytest.mark.parametrize("name", ["mnist", "resnet18", "depths", "windows"])
def test_eval_mode_gives_the_networks_outputs_and_changes_nothing(name, graph_worker):
    worker = graph_worker(name)
    eager = Eager(worker.bundle)
    losses(worker, [0])
    tensors, _, _ = state(worker)
    eager.module.load_state_dict(
        {
            k.removeprefix("weight:"): torch.from_numpy(v)
            for k, v in tensors.items()
            if k.startswith("weight:")
        },
        strict=False,
    )
    worker.ask("set_mode", mode="eval", dropout=True)
    eager.module.eval()
    outputs = worker.prove([0, 1])
    for index in (0, 1):
        truth = eager.forward(index)[0].detach().numpy()
        assert np.linalg.norm(outputs[f"{index}/output"] - truth) < NEAR * np.linalg.norm(truth)
    after, step, _ = state(worker)
    assert step == 1 and all(np.array_equal(v, after[n]) for n, v in tensors.items())
    worker.ask("weights", weights="other")  # while in eval mode
    eager.module.load_state_dict(
        {
            k: torch.from_numpy(v.copy())
            for k, v in load_file(worker.bundle / "weights" / "other.safetensors").items()
        }
    )
    truth = eager.forward(1)[0].detach().numpy()
    assert np.linalg.norm(worker.prove([1])["1/output"] - truth) < NEAR * np.linalg.norm(truth)


def test_profile_splits_steps_into_phases_and_they_count(level, graph_worker):
    expect_phases_that_count(graph_worker("mnist"), level)


def test_refuses_states_that_do_not_fit(graph_worker):
    worker = graph_worker("mnist")
    losses(worker, [0])
    saved, step, _ = state(worker)
    lacking = {n: v for n, v in saved.items() if n != "weight:fc2.bias"}
    for wrong, says in (
        (lacking, "weight:fc2.bias"),
        (saved | {"weight:fc2.bias": np.zeros(3, np.float32)}, "weight:fc2.bias"),
        (saved | {"momentum:fc9.bias": np.zeros(3, np.float32)}, "momentum:fc9.bias"),
        (saved | {"momentum:fc2.bias": np.zeros(3, np.float32)}, "momentum:fc2.bias"),
        (saved | {"weight:fc2.bias": np.zeros(10)}, "weight:fc2.bias"),
    ):
        with pytest.raises(Failed) as failed:
            load_state(worker, wrong, step)
        assert failed.value.code == "failed" and says in failed.value.what
    load_state(worker, saved, step)
    assert all(np.array_equal(v, saved[n]) for n, v in state(worker)[0].items())


def test_an_operation_without_a_backward_rule_is_unsupported_with_its_place(tmp_path):
    bundle = make(tmp_path / "bundle", "alpha_dropout")
    with Worker("onednn", bundle, threads=1) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert (
        failed.value.code == "unsupported"
        and "alpha_dropout" in failed.value.what
        and "train_networks.py:" in failed.value.what
    )


def test_keeps_parameters_in_the_librarys_layout_and_counts_what_it_moves(tmp_path):
    bundle = make(tmp_path / "bundle", "resnet18")
    facts = {}
    for variant in ("default", "contiguous"):
        with Worker("onednn", bundle, threads=1, variant=variant) as worker:
            start(worker)
            eager = Eager(bundle)
            assert losses(worker, [0]) == pytest.approx([eager.step(0)], rel=1e-4)
            facts[variant] = worker.ask("report")["facts"]
    assert facts["default"]["updates"] == facts["contiguous"]["updates"] == 62
    assert facts["contiguous"]["reorders"] > facts["default"]["reorders"] > 0


@pytest.mark.skipif(not STATIC, reason="static is not built")
def test_winograd_trains_3x3_convolutions_forward_and_backward(graph_bundle, tmp_path):
    prepared("static", graph_bundle("tiles"), tmp_path)
    stages = "".join(p.read_text() for p in (tmp_path / "program" / "stages").glob("*.cpp"))
    called = {
        name: sorted(re.findall(r'p\.step\("(\w+)"\);(?:\n.+)*?\n  ' + name + r"\(p,", stages))
        for name in ("winograd_convolution", "winograd_backward_data", "convolution_backward_data")
    }
    assert called == {
        "winograd_convolution": ["held", "last", "wide"],
        "winograd_backward_data": ["held", "last", "wide"],
        "convolution_backward_data": [],
    }


def test_says_that_it_trains(level):
    written = json.loads((level_folder(level) / "level.json").read_text())
    with Worker(level) as worker:
        assert worker.ask("hello")["modes"] == written["modes"] == ["infer", "train"]
