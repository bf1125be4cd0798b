# SPDX-License-Identifier: Apache-2.0
"""Training levels in Python as the driver meets them: a step against the float64 reference, the
optimiser against its formula, dropout, and that every planted fault shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from client import Failed, Worker
from safetensors.numpy import load_file
from train_bundle import moments

from training import (
    INFLATED,
    PROBE,
    SETS,
    about,
    gradients,
    load_state,
    probe,
    sgd,
    state,
    step_error,
    times_bound,
)

LEVELS = ("eager", "compile", "eager@channels_last", "eager@fused")


INFLATED_ADAM = {
    "name": "adam",
    "lr": 0.1,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "schedule": None,
}


@pytest.fixture(params=LEVELS)
def tiny(request, running_variant) -> Worker:
    worker, _ = running_variant(request.param, "train_tiny")
    worker.ask("weights", weights="timed")
    worker.ask("set_mode", mode="train", dropout=False)
    return worker


# compiling takes long
@pytest.mark.parametrize(
    ("level", "name"),
    [
        *((level, "train_tiny") for level in LEVELS),
        ("eager", "train_mnist"),
        ("eager@channels_last", "train_mnist"),
        ("compile@channels_last", "train_mnist"),
    ],
)
def test_loss_gradients_and_statistics_lie_in_the_envelope_for_every_weight_set(
    level, name, bundles, running_variant
):
    worker, _ = running_variant(level, name)
    for weights in (*SETS, "timed"):  # and back again
        times = times_bound(probe(worker, weights), bundles(name), weights)
        assert max(times.values()) <= 1, (weights, max(times, key=times.get), max(times.values()))


def test_a_step_moves_the_weights_by_the_rate_times_the_buffer(tiny, bundles):
    probe(tiny, "probe1")
    after, _ = state(tiny)
    before = load_file(bundles("train_tiny") / "weights" / "probe1.safetensors")
    for name, v in gradients(after).items():
        by_hand = before[name].astype(np.float64) - v
        assert (
            np.abs(after[f"weight:{name}"] - by_hand).max()
            <= 2.0**-23 * np.abs(np.stack([before[name], by_hand])).max()
        ), name


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"weight_decay": 0.0},
        {"momentum": 0.0},
        {"clip_norm": 0.01},
        {"clip_norm": 1e6},
        {"dampening": 0.5},
        {"nesterov": True},
        {"lr": 0.2},
        {"schedule": {"name": "step", "every": 3, "gamma": 0.5}},
    ],
    ids=str,
)
def test_the_optimiser_follows_its_formula_with_and_without_buffers(changed, tiny):
    optimiser = INFLATED | changed
    fresh = {k: v for k, v in state(tiny)[0].items() if k.startswith("weight:")}
    generator = np.random.default_rng(1)
    names = gradients(state_after_probe(tiny, fresh))
    held = fresh | {
        f"momentum:{k}": generator.normal(size=v.shape).astype(np.float32) for k, v in names.items()
    }
    for before in [fresh] + ([held] if optimiser["momentum"] else []):
        rate = optimiser["lr"] * (0.5 if optimiser["schedule"] else 1)
        assert step_error(tiny, before, optimiser, 4, rate) < 1e-5


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"weight_decay": 0.0},
        {"clip_norm": 0.01},
        {"beta1": 0.5, "beta2": 0.9},
        {"eps": 0.1},
        {"schedule": {"name": "step", "every": 3, "gamma": 0.5}},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam_follows_its_formula_from_its_first_step_and_from_later_ones(name, changed, tiny):
    optimiser = INFLATED_ADAM | {"name": name} | changed
    fresh = {k: v for k, v in state(tiny)[0].items() if k.startswith("weight:")}
    chosen = fresh | moments(fresh, list(gradients(state_after_probe(tiny, fresh))))
    for before, done in ((chosen, 0), (chosen, 4), (chosen, 999), (fresh, 4)):
        rate = optimiser["lr"] * (0.5 ** (done // 3) if optimiser["schedule"] else 1)
        if before is fresh and optimiser["eps"] < 0.01:
            continue  # in which gradients that are rounding would make whole steps
        assert step_error(tiny, before, optimiser, done, rate) < 1e-5, done


def state_after_probe(worker: Worker, weights: dict) -> dict:
    worker.ask("set_optimiser", optimiser=PROBE)
    load_state(worker, weights, 0)
    worker.prove([0])
    return state(worker)[0]


def test_state_can_be_taken_and_given_back_whole(tiny):
    tiny.ask("set_optimiser", optimiser=INFLATED)
    tiny.prove([0, 1])
    before, answer = state(tiny)
    assert answer["step"] == 2 and answer["lr"] == 0.1 and gradients(before)
    tiny.prove([2])
    assert not np.array_equal(state(tiny)[0]["weight:7.weight"], before["weight:7.weight"])
    load_state(tiny, before, 2)
    again, answer = state(tiny)
    assert (
        answer["step"] == 2
        and set(again) == set(before)
        and all(np.array_equal(again[k], before[k]) for k in before)
    )
    load_state(
        tiny,
        {k: v for k, v in before.items() if not k.endswith("7.bias") or k.startswith("weight:")},
        5,
    )
    partly, answer = state(tiny)
    assert answer["step"] == 5 and set(before) - set(partly) == {"momentum:7.bias"}


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({"name": "step", "every": 2, "gamma": 0.1}, [0.1, 0.1, 0.01, 0.01]),
        (
            {"name": "cosine", "steps": 4},
            [0.1 * (1 + math.cos(math.pi * n / 4)) / 2 for n in range(4)],
        ),
    ],
)
def test_a_schedule_is_followed_step_by_step(schedule, rates, tiny):
    optimiser = INFLATED | {"schedule": schedule, "momentum": 0.0}
    tiny.ask("set_optimiser", optimiser=optimiser)
    for n, rate in enumerate(rates):
        before, answer = state(tiny)
        assert answer["step"] == n and answer["lr"] == pytest.approx(rate, rel=1e-12)
        tiny.prove([0])
        after, _ = state(tiny)
        gradient = gradients(state_after_probe(tiny, before))
        by_hand = sgd(before, gradient, optimiser, rate)
        name = "weight:7.bias"
        assert np.allclose(
            after[name] - before[name], by_hand[name] - before[name], rtol=1e-4, atol=1e-7
        )
        tiny.ask("set_optimiser", optimiser=optimiser)
        load_state(tiny, after, n + 1)


@pytest.mark.parametrize("operation", ["weights", "set_optimiser"])
def test_buffers_and_steps_are_dropped_with(operation, tiny):
    tiny.ask("set_optimiser", optimiser=INFLATED)
    tiny.prove([0])
    assert gradients(state(tiny)[0])
    tiny.ask(operation, weights="timed", optimiser=INFLATED)
    tensors, answer = state(tiny)
    assert answer["step"] == 0 and not gradients(tensors)


@pytest.mark.parametrize("level", ["eager", "compile"])
def test_dropout_can_be_switched_off_and_on(level, running_variant, bundles):
    worker, _ = running_variant(level, "train_tiny")
    worker.ask("weights", weights="timed")
    worker.ask("set_optimiser", optimiser=PROBE | {"lr": 0.0})
    worker.ask("set_mode", mode="train", dropout=False)
    off = [worker.prove([0])["0/loss"] for _ in range(2)]
    assert off[0] == off[1]
    worker.ask("set_mode", mode="train", dropout=True)
    on = np.array([worker.prove([0])["0/loss"] for _ in range(64)], np.float64)
    recorded = np.array(about(bundles("train_tiny"))["dropout"]["losses"])
    assert len(recorded) == 64 and len(set(on)) > 32
    z = (on.mean() - recorded.mean()) / math.sqrt((on.var() + recorded.var()) / 64)
    assert abs(z) < 4 and 0.5 < on.std() / recorded.std() < 2


@pytest.mark.parametrize("level", LEVELS)
def test_state_writes_the_tensors_that_are_asked_for_by_name(level, running_variant):
    worker, _ = running_variant(level, "train_tiny")
    worker.ask("set_mode", mode="train", dropout=True)
    worker.ask("set_optimiser", optimiser=PROBE | {"lr": 0.0, "momentum": 2.0**-40})
    worker.prove([0])
    whole, _ = state(worker)
    assert set(state(worker, names=["momentum:7.weight"])[0]) == {"momentum:7.weight"} < set(whole)
    with pytest.raises(Failed, match="momentum:none"):
        state(worker, names=["momentum:none"])


@pytest.mark.parametrize("level", ["eager", "compile"])
def test_eval_mode_gives_the_network_s_outputs_and_changes_nothing(level, running_variant, bundles):
    worker, _ = running_variant(level, "train_tiny")
    worker.ask("weights", weights="timed")
    worker.ask("set_mode", mode="eval", dropout=True)
    before, _ = state(worker)
    first, second = worker.prove([0, 1]), worker.prove([0, 1])
    assert set(first) == {"0/output", "1/output"} and first["0/output"].shape == (4, 10)
    assert all(np.array_equal(first[k], second[k]) for k in first)
    after, _ = state(worker)
    assert all(np.array_equal(after[k], before[k]) for k in before)
    worker.ask("set_mode", mode="train", dropout=False)
    assert set(worker.prove([0])) == {"0/loss"}


def test_a_block_of_steps_trains_and_gives_the_loss_that_was_asked_for(tiny):
    tiny.ask("set_optimiser", optimiser=INFLATED | {"lr": 0.01})
    before, _ = state(tiny)
    warm = tiny.ask("warm_up", iterations=2, min_ns=0)
    answer, losses = tiny.measure([2, 0, 3], check=1, head=2)
    assert (
        warm["first_ns"] > 0
        and len(answer["wall_ns"]) == 3
        and all(0 < a <= b for a, b in zip(answer["latency_ns"], answer["wall_ns"]))
    )
    assert (
        list(losses) == ["0/loss"]
        and losses["0/loss"].dtype == np.float32
        and np.isfinite(losses["0/loss"])
    )
    after, answer = state(tiny)
    assert answer["step"] == 7 and not np.array_equal(
        before["weight:7.weight"], after["weight:7.weight"]
    )


def test_a_profile_has_one_time_a_phase_and_iteration(tiny):
    before = state(tiny)[1]["step"]
    answer = tiny.ask("profile", iterations=3, indices=[0, 1, 2])
    joined = {name for names in answer.get("joined", {}).values() for name in names}
    assert set(answer["phases"]) | joined == {
        "input",
        "to_device",
        "forward",
        "loss",
        "backward",
        "update",
    }
    assert all(
        len(times) == 3 and all(t >= 0 for t in times) for times in answer["phases"].values()
    )
    assert min(min(answer["phases"][p]) for p in ("forward", "backward", "update")) > 0
    assert state(tiny)[1]["step"] == before + 3


def test_reports_how_it_trains(running_variant):
    for level, expected in (
        ("eager", {"optimiser": "loop", "layout": "contiguous", "graph": "none"}),
        ("eager@fused", {"optimiser": "fused"}),
        ("eager@channels_last", {"layout": "channels_last"}),
        ("compile", {"optimiser": "loop", "graph": "compiled", "graph_breaks": 0}),
    ):
        worker, loaded = running_variant(level, "train_tiny")
        assert (
            expected.items() <= loaded["settings"].items()
            and loaded["settings"]["inference_mode"] is False
        )
        assert {
            "set_labels",
            "set_mode",
            "set_optimiser",
            "state",
            "load_state",
            "profile",
            "data",
            "steps",
            "evaluate",
        } <= set(worker.ask("hello")["ops"])
    assert (
        loaded["settings"]["compile"]["guards"] > 0 and loaded["settings"]["compile"]["graphs"] == 1
    )
