# SPDX-License-Identifier: Apache-2.0
"""The C++ levels that train, against eager in this process: the same weights, inputs, labels and
optimiser must give the same losses and states."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import level_builds  # noqa: F401  finds the level binaries, or skips
import numpy as np
import pytest
import torch
import train_bundle
from client import Failed, Worker, prepare
from safetensors.numpy import load_file, save_file
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
    worst,
)

LEVELS = ("libtorch", "torchscript")
SAME = 2e-6  # relative; the kernels are eager's, only their order of summing may differ
# ./test compat: the level's PyTorch is not the tests' own (2.11 against 2.15 after two steps of
# ResNet-18: 1.3e-5)
SAME_ACROSS_VERSIONS = 5e-5
OPERATIONS = {
    "set_labels",
    "set_mode",
    "set_optimiser",
    "state",
    "load_state",
    "profile",
    "data",
    "steps",
    "evaluate",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """trained(level, bundle name) -> a worker that holds the loaded network, dropout off, started
    afresh by `weights` and the case's optimiser."""
    bundles: dict[str, Path] = {}
    workers: dict[tuple[str, str], Worker] = {}

    def get(level: str, name: str) -> Worker:
        if name not in bundles:
            bundles[name] = train_bundle.make(tmp_path_factory.mktemp(name) / "bundle", name)
        if (level, name) not in workers:
            cache = tmp_path_factory.mktemp(level)
            assert prepare(level, bundles[name], cache) == {"ok": True}
            workers[level, name] = Worker(level, bundles[name], cache, threads=1)
            start(workers[level, name])
        worker = workers[level, name]
        worker.ask("set_optimiser", optimiser=SGD)
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask("weights", weights="timed")
        return worker

    yield get
    for worker in workers.values():
        worker.__exit__()


@pytest.mark.parametrize("level", LEVELS)
def test_says_that_it_trains_and_how_it_is_set(level, trained):
    worker = trained(level, "mnist")
    hello = worker.ask("hello")
    assert (
        hello["modes"] == ["infer", "train"]
        and OPERATIONS <= set(hello["ops"])
        and "epoch" not in hello["ops"]
    )
    worker.ask("unload")
    loaded = start(worker)
    assert (
        loaded["settings"]["inference_mode"] is False
        and loaded["settings"]["freezing"] is False
        and loaded["settings"]["layout"] == "contiguous"
    )
    assert loaded["settings"]["graph"] == {"libtorch": "none", "torchscript": "scripted"}[level]
    assert loaded["parameters"] == 1199882


@pytest.mark.parametrize(
    "optimiser",
    [
        *(
            SGD | changed
            for changed in (
                {},
                {"momentum": 0.0},
                {"momentum": 0.0, "weight_decay": 0.0},
                {"nesterov": True},
                {"clip_norm": 0.1},
                {"dampening": 0.3},
                {"schedule": {"name": "step", "every": 2, "gamma": 0.5}},
                {"schedule": {"name": "cosine", "steps": 3}},
            )
        ),
        ADAM,
        ADAM | {"schedule": {"name": "step", "every": 2, "gamma": 0.5}},
        ADAMW,
        ADAMW | {"clip_norm": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("level", LEVELS)
def test_four_steps_are_those_of_eager(level, optimiser, trained):
    expect_four_steps_of_eager(trained(level, "mnist"), optimiser, SAME)


@pytest.mark.parametrize("optimiser", [ADAM, ADAMW | {"eps": 1e-8}], ids=lambda o: o["name"])
@pytest.mark.parametrize(("done", "has_moments"), [(0, True), (999, True), (5, False)], ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_a_step_of_adam_from_given_buffers_counts_the_steps_that_were_done(
    level, done, has_moments, optimiser, trained
):
    expect_adam_to_count_steps(trained(level, "mnist"), done, has_moments, optimiser, SAME)


@pytest.mark.parametrize(
    ("level", "name"),
    [("libtorch", "resnet18"), ("torchscript", "resnet18"), ("torchscript", "small")],
)
def test_trains_batch_norm_statistics_and_a_users_network_as_eager_does(level, name, trained):
    worker = trained(level, name)
    eager = Eager(worker.bundle)
    before, _, _ = state(worker)
    versions = {
        text.partition("+")[0]
        for text in (torch.__version__, worker.ask("hello")["versions"]["torch"])
    }
    same = SAME if len(versions) == 1 else SAME_ACROSS_VERSIONS
    assert losses(worker, [1, 0]) == pytest.approx([eager.step(1), eager.step(0)], rel=same)
    tensors, step, _ = state(worker)
    assert worst(tensors, eager.state()) < same and step == 2
    statistics = [n for n in tensors if "running_" in n]
    assert statistics and all(not np.array_equal(before[n], tensors[n]) for n in statistics)
    counts = {n: int(v) for n, v in whole_state(worker)[0].items() if n.startswith("count:")}
    assert (
        counts
        and set(counts.values()) == {2}
        and all(n.endswith("num_batches_tracked") for n in counts)
    )
    frozen = {n for n in before if n.endswith("fc.bias")}
    assert ("momentum:fc.bias" in tensors) == (name != "small") and (
        name != "small" or all(np.array_equal(before[n], tensors[n]) for n in frozen)
    )


def test_a_network_that_writes_into_its_input_gets_copies_and_no_second_step(trained):
    worker = trained("torchscript", "in_place")
    eager = Eager(worker.bundle)
    assert losses(worker, [0, 0, 1]) == pytest.approx([eager.step(i) for i in (0, 0, 1)], rel=SAME)
    tensors, step, _ = state(worker)
    assert step == 3 and worst(tensors, eager.state()) < SAME


@pytest.mark.parametrize("level", LEVELS)
def test_the_first_momentum_of_a_step_without_decay_is_the_gradient(level, trained):
    worker = trained(level, "mnist")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    before, _, _ = state(worker)
    losses(worker, [2])
    after, _, _ = state(worker)
    eager = Eager(worker.bundle)
    eager.step(2)
    gradients = {f"momentum:{n}": p.grad.numpy() for n, p in eager.module.named_parameters()}
    assert worst({n: v for n, v in after.items() if n.startswith("momentum:")}, gradients) < SAME
    assert all(np.array_equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize(
    ("base", "lacking"), [(SGD, ["momentum:fc1.bias"]), (ADAMW, [])], ids=["sgd", "adamw"]
)
@pytest.mark.parametrize("level", LEVELS)
def test_a_state_that_is_put_back_gives_the_same_steps(level, base, lacking, trained):
    worker = trained(level, "mnist")
    worker.ask(
        "set_optimiser",
        optimiser=base | {"lr": 0.05, "schedule": {"name": "step", "every": 2, "gamma": 0.5}},
    )
    losses(worker, [0, 1, 2])
    saved, step, rate = state(worker)
    first, after = losses(worker, [3, 0]), state(worker)
    load_state(worker, saved, step)
    again, step_again, rate_again = state(worker)
    assert (step_again, rate_again) == (step, rate) == (3, 0.025) and worst(again, saved) == 0
    assert losses(worker, [3, 0]) == first and worst(state(worker)[0], after[0]) == 0
    without = {n: v for n, v in saved.items() if n not in lacking}
    load_state(worker, without, 0)
    assert set(state(worker)[0]) == set(without)


@pytest.mark.parametrize("level", LEVELS)
def test_other_weights_start_afresh(level, trained):
    worker = trained(level, "mnist")
    losses(worker, [0, 1])
    worker.ask("weights", weights="other")
    tensors, step, _ = state(worker)
    eager = Eager(worker.bundle, weights="other")
    assert step == 0 and worst(tensors, eager.state()) == 0
    assert losses(worker, [3]) == pytest.approx([eager.step(3)], rel=SAME)


@pytest.mark.parametrize(
    ("level", "name"), [("libtorch", "mnist"), ("torchscript", "mnist"), ("torchscript", "small")]
)
def test_dropout_acts_as_given_and_can_be_switched(level, name, trained):
    worker = trained(level, name)
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    off = losses(worker, [0] * 4)
    worker.ask("set_mode", mode="train", dropout=True)
    on = losses(worker, [0] * 8)
    worker.ask("set_mode", mode="train", dropout=False)
    assert losses(worker, [0] * 4) == off and len(set(off)) == 1
    assert len(set(on)) == 8 and off[0] not in on
    worker.ask("set_mode", mode="train", dropout=True)
    assert len(set(losses(worker, [0] * 4))) == 4
    worker.ask("unload")
    worker.load()  # without set_mode: as the network has it
    worker.ask("set_labels", path=str(worker.bundle / "labels.safetensors"))
    assert len(set(losses(worker, [0] * 2))) == 2


@pytest.mark.parametrize(("level", "name"), [("libtorch", "resnet18"), ("torchscript", "small")])
def test_eval_mode_gives_the_networks_outputs_and_changes_nothing(level, name, trained):
    worker = trained(level, name)
    eager = Eager(worker.bundle)
    losses(worker, [0])
    eager.step(0)
    worker.ask("set_mode", mode="eval", dropout=True)
    eager.module.eval()
    before = state(worker)
    outputs = worker.prove([0, 1])
    for index in (0, 1):
        names = [o["name"] for o in eager.about["outputs"]]
        expected = {f"{index}/{n}": v.detach().numpy() for n, v in zip(names, eager.forward(index))}
        assert (
            worst({n: v for n, v in outputs.items() if n.startswith(f"{index}/")}, expected) < SAME
        )
    assert all(np.array_equal(value, outputs[n]) for n, value in worker.prove([0, 1]).items())
    assert worst(state(worker)[0], before[0]) == 0 and state(worker)[1] == before[1] == 1
    worker.ask("set_mode", mode="train", dropout=False)
    eager.module.train()
    assert losses(worker, [2]) == pytest.approx([eager.step(2)], rel=SAME)


@pytest.mark.parametrize("level", LEVELS)
def test_a_timed_block_is_steps_with_the_checked_loss(level, trained):
    worker = trained(level, "mnist")
    worker.ask("set_optimiser", optimiser=SGD | {"schedule": {"name": "cosine", "steps": 20}})
    warm = worker.ask("warm_up", iterations=2, min_ns=0)
    answer, checked = worker.measure([3, 1, 2], check=1, head=1)
    expected = Eager(worker.bundle, SGD | {"schedule": {"name": "cosine", "steps": 20}})
    steps = [expected.step(i) for i in (0, 1, 0, 3, 1, 2)]
    assert warm["iterations"] == 2 and len(answer["wall_ns"]) == len(answer["latency_ns"]) == 3
    assert (
        list(checked) == ["1/loss"]
        and checked["1/loss"].shape == ()
        and float(checked["1/loss"]) == pytest.approx(steps[4], rel=SAME)
    )
    tensors, step, rate = state(worker)
    assert (
        step == 6
        and rate == pytest.approx(0.05 * (1 + math.cos(math.pi * 6 / 20)) / 2)
        and worst(tensors, expected.state()) < SAME
    )


@pytest.mark.parametrize("level", LEVELS)
def test_profile_splits_steps_into_phases_and_they_count(level, trained):
    worker = trained(level, "mnist")
    losses(worker, [0])
    answer = worker.ask("profile", iterations=3, indices=[1, 0, 2])
    assert (
        set(answer["phases"]) == {"input", "forward", "loss", "backward", "update"}
        and "joined" not in answer
    )
    assert all(len(times) == 3 and min(times) > 0 for times in answer["phases"].values())
    expected = Eager(worker.bundle)
    for index in (0, 1, 0, 2):
        expected.step(index)
    tensors, step, _ = state(worker)
    assert step == 4 and worst(tensors, expected.state()) < SAME
    begin = time.monotonic_ns()
    phases = worker.ask("profile", iterations=20, indices=[0] * 20)["phases"]
    elapsed = time.monotonic_ns() - begin
    # no part of a step is left out or counted twice
    assert 0.5 * elapsed < sum(map(sum, phases.values())) <= elapsed


@pytest.mark.parametrize("level", LEVELS)
def test_refuses_states_that_do_not_fit(level, trained):
    worker = trained(level, "mnist")
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
    with pytest.raises(Failed) as failed:
        worker.ask("load_state", path="/no/such/file", step=0)
    assert failed.value.code == "failed" and "/no/such/file" in failed.value.what
    with pytest.raises(Failed) as failed:
        worker.ask("load_state", path="/no/such/file", step=-1)
    assert failed.value.code == "bad_request"
    with pytest.raises(Failed) as failed:
        worker.ask("state", out="/no/such/folder/state.safetensors")
    assert failed.value.code == "failed" and "/no/such/folder" in failed.value.what
    load_state(worker, saved, step)
    assert worst(state(worker)[0], saved) == 0


def test_refuses_optimisers_modes_and_labels_that_make_no_sense(trained, tmp_path):
    worker = trained("libtorch", "mnist")
    before = state(worker)
    for wrong, says in (
        ({"lr": -1}, '"lr"'),
        ({"momentum": "much"}, '"momentum"'),
        ({"weight_decay": True}, '"weight_decay"'),
        ({"nesterov": 1}, '"nesterov"'),
        ({"dampening": -1}, '"dampening"'),
        ({"nesterov": True, "momentum": 0}, "nesterov"),
        ({"nesterov": True, "dampening": 0.5}, "nesterov"),
        ({"schedule": {"name": "poly"}}, "schedule"),
        ({"schedule": {"name": "step", "every": 0, "gamma": 1}}, '"every"'),
        ({"schedule": {"name": "step", "every": 2}}, '"gamma"'),
        ({"schedule": {"name": "cosine"}}, '"steps"'),
        ({"schedule": {"name": "cosine", "steps": 3, "warm": 1}}, "'warm'"),
        ({"nestrov": True}, "'nestrov'"),
    ):
        with pytest.raises(Failed) as failed:
            worker.ask("set_optimiser", optimiser={"name": "sgd"} | wrong)
        assert failed.value.code == "bad_request" and says in failed.value.what, wrong
    with pytest.raises(Failed) as failed:
        worker.ask("set_optimiser", optimiser={"name": "adan"})
    assert (
        failed.value.code == "unsupported"
        and '"adan" is not one of: "sgd", "adam", "adamw"' in failed.value.what
    )
    for wrong, code, says in (
        ({"beta1": 1}, "bad_request", '"beta1"'),
        ({"eps": -1}, "bad_request", '"eps"'),
        ({"momentum": 0.9}, "bad_request", "'momentum'"),
        ({"amsgrad": True}, "unsupported", "'amsgrad'"),
        ({"maximize": True}, "unsupported", "'maximize'"),
    ):
        with pytest.raises(Failed) as failed:
            worker.ask("set_optimiser", optimiser={"name": "adam"} | wrong)
        assert failed.value.code == code and says in failed.value.what, wrong
    for wrong in ({"mode": "test"}, {"mode": 1}, {}, {"mode": "train", "dropout": "no"}):
        with pytest.raises(Failed) as failed:
            worker.ask("set_mode", **wrong)
        assert failed.value.code == "bad_request", wrong
    good = load_file(worker.bundle / "labels.safetensors")
    for wrong, says in (
        (dict(list(good.items())[:3]), "'3/labels'"),
        (good | {"1/labels": good["1/labels"].astype(np.int32)}, "I32"),
        (good | {"1/labels": good["1/labels"][:2].copy()}, "[2]"),
        (good | {"1/labels": good["1/labels"] + 10}, "0 to 9"),
        (good | {"1/labels": good["1/labels"] - 10}, "0 to 9"),
    ):
        save_file(wrong, tmp_path / "labels.safetensors")
        with pytest.raises(Failed) as failed:
            worker.ask("set_labels", path=str(tmp_path / "labels.safetensors"))
        assert failed.value.code == "bad_request" and says in failed.value.what
    after = state(worker)
    assert after[1:] == before[1:] and worst(after[0], before[0]) == 0
    assert losses(worker, [0]) == pytest.approx([Eager(worker.bundle).step(0)], rel=SAME)


def test_the_order_of_requests_is_kept(trained):
    worker = trained("libtorch", "mnist")
    for wrong in (
        {"iterations": 2, "indices": [0]},
        {"iterations": 1, "indices": [9]},
        {"indices": [0]},
    ):
        with pytest.raises(Failed) as failed:
            worker.ask("profile", **wrong)
        assert failed.value.code == "bad_request", wrong
    worker.ask("set_mode", mode="eval", dropout=False)
    with pytest.raises(Failed) as failed:
        worker.ask("profile", iterations=1, indices=[0])
    assert failed.value.code == "bad_request" and "set_mode" in failed.value.hint
    worker.ask("set_mode", mode="train", dropout=False)
    # other inputs, other labels
    worker.ask("inputs", path=str(worker.bundle / "inputs.safetensors"))
    with pytest.raises(Failed) as failed:
        worker.prove([0])
    assert failed.value.code == "bad_request" and "set_labels" in failed.value.hint
    worker.ask("set_mode", mode="eval", dropout=False)
    assert "0/output" in worker.prove([0])  # the forward pass needs none
    worker.ask("unload")
    for op in (
        "set_labels",
        "set_mode",
        "set_optimiser",
        "state",
        "load_state",
        "profile",
        "data",
        "steps",
        "evaluate",
    ):
        with pytest.raises(Failed) as failed:
            worker.ask(op)
        assert failed.value.code == "bad_request" and "loaded" in failed.value.what
    worker.load(mode="infer")
    with pytest.raises(Failed) as failed:
        worker.ask("set_mode", mode="train", dropout=True)
    assert failed.value.code == "bad_request" and "infer" in failed.value.what
    worker.ask("unload")
    with pytest.raises(Failed) as failed:
        worker.load(loss="hinge")
    assert failed.value.code == "unsupported" and "hinge" in failed.value.what
    start(worker)


@pytest.mark.parametrize("level", ["null_cpp", "aoti"])
def test_a_level_that_does_not_train_says_so(level, trained):
    bundle = trained("libtorch", "mnist").bundle
    with Worker(level, bundle, threads=1) as worker:
        assert not OPERATIONS & set(worker.ask("hello")["ops"])
        for op in OPERATIONS:
            with pytest.raises(Failed) as failed:
                worker.ask(op)
            assert failed.value.code == "unsupported" and op in failed.value.what
        with pytest.raises(Failed) as failed:
            worker.load()
        assert failed.value.code == "unsupported" and "train" in failed.value.what


def test_torchscript_refuses_to_train_what_it_cannot_script(tmp_path):
    answer = prepare(
        "torchscript", train_bundle.make(tmp_path / "bundle", "unscriptable"), tmp_path / "cache"
    )
    assert answer["code"] == "unsupported" and "train_networks.py" in answer["what"], answer


def test_torchscript_switches_dropouts_that_the_code_calls_with_a_number(trained):
    worker = trained("torchscript", "called_dropouts")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0})
    still = losses(worker, [0, 0])
    assert still == pytest.approx([Eager(worker.bundle).step(0)] * 2, rel=SAME)
    worker.ask("set_mode", mode="train", dropout=True)
    assert len(set(losses(worker, [0] * 8))) == 8
    worker.ask("set_mode", mode="train", dropout=False)
    assert losses(worker, [0]) == still[:1]


def test_libtorch_trains_in_channels_last_as_eager_does(trained):
    import torch

    bundle = trained("libtorch", "resnet18").bundle
    with Worker("libtorch", bundle, threads=1, variant="channels_last") as worker:
        assert start(worker)["settings"]["layout"] == "channels_last"
        eager = Eager(bundle)
        eager.module.to(memory_format=torch.channels_last)
        assert losses(worker, [0, 1]) == pytest.approx([eager.step(0), eager.step(1)], rel=1e-4)
        tensors, _, _ = state(worker)
        assert worst(tensors, eager.state()) < 1e-3
        names = json.dumps(sorted(tensors))
        load_state(worker, tensors, 2)
        again, _, _ = state(worker)
        assert json.dumps(sorted(again)) == names and worst(again, tensors) == 0
