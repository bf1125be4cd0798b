# SPDX-License-Identifier: Apache-2.0
"""The levels on the captured graph, onednn, static and cudnn (everywhere with its stand-in for
NVIDIA's libraries), in mode train, against eager in this process: losses, gradients, optimiser,
statistics, dropout, state, phases; every backward rule on odd shapes."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path

import backward_networks
import numpy as np
import pytest
import torch
import train_bundle
from backward_networks import NETWORKS
from client import ROOT, Failed, Worker, level_folder, prepare
from safetensors.numpy import load_file
from test_cpp_levels import BUILD, ON_A_GPU, PRIMITIVES, STATIC
from train_bundle import (
    ADAM,
    ADAMW,
    SGD,
    Eager,
    load_state,
    losses,
    moments,
    start,
    state,
    whole_state,
)

import training

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.export import export  # noqa: E402
from capture.graph import write_graph  # noqa: E402
from strata_sdk import models  # noqa: E402

if not PRIMITIVES:
    pytest.skip((BUILD / "level_onednn.missing").read_text(), allow_module_level=True)

NEAR = 2e-5  # of float32 against float32: other kernels, other orders of summing
# batch norms behind each other, before which whole gradients cancel, so that rounding grows
NEAR_OF = {"norms": 1e-3}
BATCH = 3
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


def classes_of(name: str) -> int:
    return backward_networks.network(name).train()(torch.randn(BATCH, *NETWORKS[name])).shape[1]


for _name, _shape in NETWORKS.items():
    train_bundle.SPECS[_name.lower()] = (
        f"{ROOT / 'tests' / 'levels' / 'backward_networks.py'}:{_name.lower()}",
        [("arg0", (BATCH, *_shape), False)],
        classes_of(_name),
        "cross_entropy",
    )


train_bundle.SPECS["depths"] = (
    f"{ROOT / 'tests' / 'levels' / 'backward_networks.py'}:depths",
    [("arg0", (BATCH, 3, 5, 6), False)],
    5,
    "cross_entropy",
)


def make(folder: Path, name: str) -> Path:
    """The bundle `name` of train_bundle.SPECS with its graph."""
    bundle = train_bundle.make(folder, name)
    about = json.loads((bundle / "bundle.json").read_text())
    module = models.build_model(about["case"]["model"], 0).module
    trained = [key for key, p in module.named_parameters() if p.requires_grad]
    module = copy.deepcopy(module).requires_grad_(False)
    entry = {
        i["name"]: torch.from_numpy(load_file(bundle / "inputs.safetensors")[f"0/{i['name']}"])
        for i in about["inputs"]
    }
    program, said = export(module, entry, about, training=True)
    assert program is not None, said

    def save(key, tensors):
        return __import__("safetensors.torch").torch.save_file(
            tensors, bundle / f"{key}.safetensors"
        )

    said = write_graph(
        program,
        module,
        "train",
        [o["name"] for o in about["outputs"]],
        list(entry),
        bundle,
        save,
        trained,
    )
    assert said["ok"], said
    return bundle


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(name) -> the bundle, captured once."""
    bundles: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in bundles:
            bundles[name] = make(tmp_path_factory.mktemp(name) / "bundle", name)
        return bundles[name]

    return get


def prepared(level: str, bundle: Path, cache: Path) -> Path:
    if level.startswith("static"):
        assert prepare(level, bundle, cache) == {"ok": True}
    return cache


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


@pytest.fixture(scope="module")
def trained(level, made, tmp_path_factory):
    """trained(bundle name) -> a worker with the network, dropout off, started afresh by `weights`
    and the case's optimiser."""
    workers: dict[str, Worker] = {}

    def get(name: str) -> Worker:
        if name not in workers:
            workers[name] = Worker(
                level,
                made(name),
                prepared(level, made(name), tmp_path_factory.mktemp(f"{level}-{name}")),
                threads=1,
            )
            start(workers[name])
        worker = workers[name]
        worker.ask("set_optimiser", optimiser=SGD)
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask("weights", weights="timed")
        return worker

    yield get
    for worker in workers.values():
        worker.__exit__()


def worst(got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The greatest error of a tensor; of momentum relative to its norm and to that of all, since a
    gradient may be nothing but rounding."""
    assert set(got) == set(wanted), set(got) ^ set(wanted)
    kind = lambda name: name.partition(":")[0]  # noqa: E731
    all_of = {
        one: np.concatenate(
            [v.astype(np.float64).ravel() for k, v in wanted.items() if kind(k) == one]
        )
        for one in {kind(k) for k in wanted}
    }
    errors = {}
    for name, truth in wanted.items():
        assert got[name].shape == truth.shape and got[name].dtype == truth.dtype, name
        size = np.linalg.norm(truth) + (
            1e-3
            if kind(name) == "weight"
            else 0.1 * np.sqrt(np.mean(all_of[kind(name)] ** 2)) * truth.size**0.5
        )
        errors[name] = float(np.linalg.norm(got[name].astype(np.float64) - truth) / size)
    return max(v if v == v else float("inf") for v in errors.values())


@pytest.mark.parametrize("name", [name.lower() for name in NETWORKS])
def test_two_steps_of_every_family_of_operations_are_those_of_eager(name, trained):
    worker = trained(name)
    eager = Eager(worker.bundle)
    assert losses(worker, [0, 1]) == pytest.approx([eager.step(0), eager.step(1)], rel=NEAR)
    tensors, step, _ = state(worker)
    assert step == 2 and worst(tensors, eager.state()) < NEAR_OF.get(name, 2 * NEAR)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_four_steps_of_the_optimiser_are_those_of_eager(optimiser, trained):
    worker = trained("mnist")
    worker.ask("set_optimiser", optimiser=optimiser)
    eager = Eager(worker.bundle, optimiser)
    assert losses(worker, [0, 1, 2, 3]) == pytest.approx(
        [eager.step(i) for i in range(4)], rel=NEAR
    )
    tensors, step, rate = state(worker)
    assert worst(tensors, eager.state()) < NEAR and step == 4
    assert any(not name.startswith("weight:") for name in tensors) == (
        optimiser.get("momentum") != 0
    )
    assert rate == pytest.approx(eager.optimiser.param_groups[0]["lr"], rel=1e-12, abs=1e-17)


@pytest.mark.parametrize("optimiser", [ADAM, ADAMW | {"eps": 1e-8}], ids=lambda o: o["name"])
@pytest.mark.parametrize(("done", "given"), [(0, True), (999, True), (5, False)], ids=str)
def test_a_step_of_adam_from_given_buffers_counts_the_steps_that_were_done(
    done, given, optimiser, trained
):
    worker = trained("mnist")
    worker.ask("set_optimiser", optimiser=optimiser | ({} if given else {"eps": 0.1}))
    eager = Eager(worker.bundle, optimiser | ({} if given else {"eps": 0.1}))
    weights, _, _ = state(worker)
    chosen = (
        moments(weights, [name for name, _ in eager.module.named_parameters()]) if given else {}
    )
    load_state(worker, weights | chosen, done)
    eager.load_moments(chosen, done)
    assert losses(worker, [1]) == pytest.approx([eager.step(1)], rel=NEAR)
    tensors, step, _ = state(worker)
    assert step == done + 1 and worst(tensors, eager.state()) < NEAR
    worker.ask("set_optimiser", optimiser=SGD)  # and no buffer is left of it
    load_state(worker, weights, 0)
    other = Eager(worker.bundle)
    assert losses(worker, [0, 2]) == pytest.approx([other.step(0), other.step(2)], rel=NEAR)
    assert worst(state(worker)[0], other.state()) < NEAR


def test_trains_a_residual_network_with_its_statistics(trained):
    worker = trained("resnet18")
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


def test_the_first_momentum_without_decay_is_the_gradient(trained):
    worker = trained("mnist")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    before, _, _ = state(worker)
    losses(worker, [2])
    after, _, _ = state(worker)
    eager = Eager(worker.bundle)
    eager.step(2)
    gradients = {f"momentum:{n}": p.grad.numpy() for n, p in eager.module.named_parameters()}
    assert worst({n: v for n, v in after.items() if n.startswith("momentum:")}, gradients) < NEAR
    assert all(np.array_equal(value, after[name]) for name, value in before.items())


def test_a_frozen_parameter_stays_and_has_no_momentum(trained):
    worker = trained("frozen")
    before, _, _ = state(worker)
    losses(worker, [0, 1])
    after, _, _ = state(worker)
    assert {n for n in after if n.startswith("momentum:")} == {
        "momentum:conv.weight",
        "momentum:conv.bias",
        "momentum:fc.bias",
    }
    assert all(
        np.array_equal(before[n], after[n])
        for n in ("weight:fc.weight", "weight:stem.0.weight", "weight:stem.1.weight")
    )
    assert not np.array_equal(
        before["weight:stem.1.running_mean"], after["weight:stem.1.running_mean"]
    )


@pytest.mark.parametrize(
    ("optimiser", "lacking"), [(SGD, ["momentum:fc1.bias"]), (ADAMW, [])], ids=["sgd", "adamw"]
)
def test_a_state_that_is_put_back_gives_the_same_steps(optimiser, lacking, trained):
    worker = trained("mnist")
    worker.ask("set_optimiser", optimiser=optimiser)
    losses(worker, [0, 1, 2])
    kept, step, _ = state(worker)
    first, after = losses(worker, [3, 0]), state(worker)
    load_state(worker, kept, step)
    again, step_again, _ = state(worker)
    assert step_again == 3 and all(np.array_equal(again[n], kept[n]) for n in kept)
    assert losses(worker, [3, 0]) == first and all(
        np.array_equal(v, after[0][n]) for n, v in state(worker)[0].items()
    )
    without = {n: v for n, v in kept.items() if n not in lacking}
    load_state(worker, without, 0)
    assert set(state(worker)[0]) == set(without)


def test_other_weights_start_afresh(trained):
    worker = trained("mnist")
    losses(worker, [0, 1])
    worker.ask("weights", weights="other")
    tensors, step, _ = state(worker)
    eager = Eager(worker.bundle, weights="other")
    wanted = eager.state()
    assert (
        step == 0
        and set(tensors) == set(wanted)
        and all(np.array_equal(v, wanted[n]) for n, v in tensors.items())
    )
    assert losses(worker, [3]) == pytest.approx([eager.step(3)], rel=NEAR)


def test_dropout_acts_as_given_and_can_be_switched(trained):
    worker = trained("mnist")
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


def test_stochastic_depth_is_switched_like_dropout_and_without_it_steps_are_those_of_eager(trained):
    test_two_steps_of_every_family_of_operations_are_those_of_eager("depths", trained)
    worker = trained("depths")
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    off = losses(worker, [0] * 2)
    worker.ask("set_mode", mode="train", dropout=True)
    on = losses(worker, [0] * 64)
    # three samples and the batch, each kept or not
    assert off[0] == off[1] and 8 < len(set(on)) <= 16


@pytest.mark.parametrize("name", ["mnist", "resnet18", "depths", "windows"])
def test_eval_mode_gives_the_networks_outputs_and_changes_nothing(name, trained):
    worker = trained(name)
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


def test_profile_splits_steps_into_phases_and_they_count(level, trained):
    worker = trained("mnist")
    answer = worker.ask("profile", iterations=3, indices=[1, 0, 2])
    if level.startswith("static"):  # a parameter is updated as soon as its gradient is there
        assert set(answer["phases"]) == {"input", "forward", "loss", "backward"} and answer[
            "joined"
        ] == {"backward": ["backward", "update"]}
    else:
        assert (
            set(answer["phases"]) == {"input", "forward", "loss", "backward", "update"}
            and "joined" not in answer
        )
    assert all(len(times) == 3 and min(times) > 0 for times in answer["phases"].values())
    expected = Eager(worker.bundle)
    for index in (1, 0, 2):
        expected.step(index)
    tensors, step, _ = state(worker)
    assert step == 3 and worst(tensors, expected.state()) < NEAR


def test_refuses_states_that_do_not_fit(trained):
    worker = trained("mnist")
    losses(worker, [0])
    kept, step, _ = state(worker)
    lacking = {n: v for n, v in kept.items() if n != "weight:fc2.bias"}
    for wrong, says in (
        (lacking, "weight:fc2.bias"),
        (kept | {"weight:fc2.bias": np.zeros(3, np.float32)}, "weight:fc2.bias"),
        (kept | {"momentum:fc9.bias": np.zeros(3, np.float32)}, "momentum:fc9.bias"),
        (kept | {"momentum:fc2.bias": np.zeros(3, np.float32)}, "momentum:fc2.bias"),
        (kept | {"weight:fc2.bias": np.zeros(10)}, "weight:fc2.bias"),
    ):
        with pytest.raises(Failed) as failed:
            load_state(worker, wrong, step)
        assert failed.value.code == "failed" and says in failed.value.what
    load_state(worker, kept, step)
    assert all(np.array_equal(v, kept[n]) for n, v in state(worker)[0].items())


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
def test_winograd_trains_3x3_convolutions_forward_and_backward(made, tmp_path):
    prepared("static", made("tiles"), tmp_path)
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
