# SPDX-License-Identifier: Apache-2.0
"""Training steps of levels on the captured graph beside those of eager in this process: bundles
with their graph, and what is expected of a worker."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import backward_networks
import numpy as np
import pytest
import torch
import train_bundle
from backward_networks import NETWORKS
from client import ROOT, Worker, prepare
from safetensors.numpy import load_file
from train_bundle import (
    SGD,
    Eager,
    load_state,
    losses,
    state,
)

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.described import tied_names  # noqa: E402
from capture.export import export  # noqa: E402
from capture.graph import write_graph  # noqa: E402
from strata_sdk import models  # noqa: E402

NEAR = 2e-5  # of float32 against float32: other kernels, other orders of summing
# batch norms behind each other, before which whole gradients cancel, so that rounding grows
NEAR_OF = {"norms": 1e-3}
BATCH = 3


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
    program, outcome = export(module, entry, about, training=True)
    assert program is not None, outcome

    def save(key, tensors):
        return __import__("safetensors.torch").torch.save_file(
            tensors, bundle / f"{key}.safetensors"
        )

    outcome = write_graph(
        program,
        module,
        "train",
        [o["name"] for o in about["outputs"]],
        list(entry),
        bundle,
        save,
        trained,
    )
    assert outcome["ok"], outcome
    about["tied"] = tied_names(module)
    (bundle / "bundle.json").write_text(json.dumps(about))
    return bundle


def prepared(level: str, bundle: Path, cache: Path) -> Path:
    if level.startswith("static"):
        assert prepare(level, bundle, cache) == {"ok": True}
    return cache


def worst(got: dict[str, np.ndarray], truths: dict[str, np.ndarray]) -> float:
    """The greatest error of a tensor; of momentum relative to its norm and to that of all, since a
    gradient may be nothing but rounding."""
    assert set(got) == set(truths), set(got) ^ set(truths)
    kind = lambda name: name.partition(":")[0]  # noqa: E731
    all_of = {
        one: np.concatenate(
            [v.astype(np.float64).ravel() for k, v in truths.items() if kind(k) == one]
        )
        for one in {kind(k) for k in truths}
    }
    errors = {}
    for name, truth in truths.items():
        assert got[name].shape == truth.shape and got[name].dtype == truth.dtype, name
        size = np.linalg.norm(truth) + (
            1e-3
            if kind(name) == "weight"
            else 0.1 * np.sqrt(np.mean(all_of[kind(name)] ** 2)) * truth.size**0.5
        )
        errors[name] = float(np.linalg.norm(got[name].astype(np.float64) - truth) / size)
    return max(v if v == v else float("inf") for v in errors.values())


def expect_two_steps_of_eager(worker: Worker, name: str) -> None:
    eager = Eager(worker.bundle)
    assert losses(worker, [0, 1]) == pytest.approx([eager.step(0), eager.step(1)], rel=NEAR)
    tensors, step, _ = state(worker)
    assert step == 2 and worst(tensors, eager.state()) < NEAR_OF.get(name, 2 * NEAR)


def expect_gradients_as_first_momentum(worker: Worker) -> None:
    worker.ask("set_optimiser", optimiser=SGD | {"lr": 0.0, "weight_decay": 0.0})
    before, _, _ = state(worker)
    losses(worker, [2])
    after, _, _ = state(worker)
    eager = Eager(worker.bundle)
    eager.step(2)
    gradients = {f"momentum:{n}": p.grad.numpy() for n, p in eager.module.named_parameters()}
    assert worst({n: v for n, v in after.items() if n.startswith("momentum:")}, gradients) < NEAR
    assert all(np.array_equal(value, after[name]) for name, value in before.items())


def expect_frozen_parameters_to_stay(worker: Worker) -> None:
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


def expect_the_same_steps_from_a_state(worker: Worker, optimiser: dict, lacking: list[str]) -> None:
    worker.ask("set_optimiser", optimiser=optimiser)
    losses(worker, [0, 1, 2])
    saved, step, _ = state(worker)
    first, after = losses(worker, [3, 0]), state(worker)
    load_state(worker, saved, step)
    again, step_again, _ = state(worker)
    assert step_again == 3 and all(np.array_equal(again[n], saved[n]) for n in saved)
    assert losses(worker, [3, 0]) == first and all(
        np.array_equal(v, after[0][n]) for n, v in state(worker)[0].items()
    )
    without = {n: v for n, v in saved.items() if n not in lacking}
    load_state(worker, without, 0)
    assert set(state(worker)[0]) == set(without)


def expect_other_weights_to_start_afresh(worker: Worker) -> None:
    losses(worker, [0, 1])
    worker.ask("weights", weights="other")
    tensors, step, _ = state(worker)
    eager = Eager(worker.bundle, weights="other")
    of_eager = eager.state()
    assert (
        step == 0
        and set(tensors) == set(of_eager)
        and all(np.array_equal(v, of_eager[n]) for n, v in tensors.items())
    )
    assert losses(worker, [3]) == pytest.approx([eager.step(3)], rel=NEAR)


def expect_phases_that_count(worker: Worker, level: str) -> None:
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
