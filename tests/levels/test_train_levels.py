# SPDX-License-Identifier: Apache-2.0
"""Training levels in Python as the driver meets them: a step against the float64 reference, the
optimiser against its formula, dropout, and that every planted fault shows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from client import ROOT, Failed, Worker
from safetensors.numpy import load_file
from train_bundle import moments

from training import PROBE, about, gradients, load_state, probe, sgd, state, step_error, times_bound

LEVELS = ("eager", "compile", "eager@channels_last", "eager@fused")
SETS = ("timed", "probe1", "probe2")
INFLATED = {
    "name": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.1,
    "nesterov": False,
    "schedule": None,
}
INFLATED_ADAM = {
    "name": "adam",
    "lr": 0.1,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "schedule": None,
}


@pytest.fixture(scope="module")
def running(bundles, tmp_path_factory):
    """running(level or level@variant, bundle name) -> (worker, its answer to load), kept for the
    tests of this file."""
    workers: dict[tuple[str, str], tuple[Worker, dict]] = {}
    cache = tmp_path_factory.mktemp("cache")

    def get(level: str, name: str) -> tuple[Worker, dict]:
        if (level, name) not in workers:
            plain, _, variant = level.partition("@")
            worker = Worker(plain, bundles(name), cache, threads=1, variant=variant or "default")
            workers[level, name] = worker, {}
            workers[level, name] = worker, worker.load()
        return workers[level, name]

    yield get
    for worker, _ in workers.values():
        worker.__exit__()


@pytest.fixture(params=LEVELS)
def tiny(request, running) -> Worker:
    worker, _ = running(request.param, "train_tiny")
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
    level, name, bundles, running
):
    worker, _ = running(level, name)
    for weights in (*SETS, "timed"):  # and back again
        times = times_bound(probe(worker, weights), bundles(name), weights)
        assert max(times.values()) <= 1, (weights, max(times, key=times.get), max(times.values()))


def test_a_step_moves_the_weights_by_the_rate_times_the_buffer(tiny, bundles):
    probe(tiny, "probe1")
    after, _ = state(tiny)
    before = load_file(bundles("train_tiny") / "weights" / "probe1.safetensors")
    for name, v in gradients(after).items():
        wanted = before[name].astype(np.float64) - v
        assert (
            np.abs(after[f"weight:{name}"] - wanted).max()
            <= 2.0**-23 * np.abs(np.stack([before[name], wanted])).max()
        ), name


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"weight_decay": 0.0},
        {"momentum": 0.0},
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
        wanted = sgd(before, gradient, optimiser, rate)
        name = "weight:7.bias"
        assert np.allclose(
            after[name] - before[name], wanted[name] - before[name], rtol=1e-4, atol=1e-7
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
def test_dropout_can_be_switched_off_and_on(level, running, bundles):
    worker, _ = running(level, "train_tiny")
    worker.ask("weights", weights="timed")
    worker.ask("set_optimiser", optimiser=PROBE | {"lr": 0.0})
    worker.ask("set_mode", mode="train", dropout=False)
    off = [worker.prove([0])["0/loss"] for _ in range(2)]
    assert off[0] == off[1]
    worker.ask("set_mode", mode="train", dropout=True)
    on = np.array([worker.prove([0])["0/loss"] for _ in range(64)], np.float64)
    told = np.array(about(bundles("train_tiny"))["dropout"]["losses"])
    assert len(told) == 64 and len(set(on)) > 32
    z = (on.mean() - told.mean()) / math.sqrt((on.var() + told.var()) / 64)
    assert abs(z) < 4 and 0.5 < on.std() / told.std() < 2


@pytest.mark.parametrize("level", LEVELS)
def test_state_writes_the_tensors_that_are_asked_for_by_name(level, running):
    worker, _ = running(level, "train_tiny")
    worker.ask("set_mode", mode="train", dropout=True)
    worker.ask("set_optimiser", optimiser=PROBE | {"lr": 0.0, "momentum": 2.0**-40})
    worker.prove([0])
    whole, _ = state(worker)
    assert set(state(worker, names=["momentum:7.weight"])[0]) == {"momentum:7.weight"} < set(whole)
    with pytest.raises(Failed, match="momentum:none"):
        state(worker, names=["momentum:none"])


@pytest.mark.parametrize("level", ["eager", "compile"])
def test_eval_mode_gives_the_network_s_outputs_and_changes_nothing(level, running, bundles):
    worker, _ = running(level, "train_tiny")
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


def test_reports_how_it_trains(running):
    for level, expected in (
        ("eager", {"optimiser": "loop", "layout": "contiguous", "graph": "none"}),
        ("eager@fused", {"optimiser": "fused"}),
        ("eager@channels_last", {"layout": "channels_last"}),
        ("compile", {"optimiser": "loop", "graph": "compiled", "graph_breaks": 0}),
    ):
        worker, loaded = running(level, "train_tiny")
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


# --------------------------------------------------------------------------------- planted faults


@pytest.fixture(scope="module")
def faulty(bundles, tmp_path_factory):
    """faulty(name): one worker of faulty_eager, loaded anew with that fault."""
    choice = tmp_path_factory.mktemp("fault") / "fault"
    choice.write_text("none")
    with Worker(
        "faulty_eager", bundles("train_tiny"), threads=1, STRATA_FAULT=f"@{choice}"
    ) as worker:

        def get(fault: str) -> Worker:
            worker.ask("unload")
            choice.write_text(fault)
            worker.load("probe1")
            return worker

        yield get


def test_without_a_fault_it_passes(faulty, bundles):
    worker = faulty("none")
    for weights in SETS:
        assert (
            max(times_bound(probe(worker, weights), bundles("train_tiny"), weights).values()) <= 1
        )


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("relu_dropped", {"loss", "grad"}),
        ("labels_off_by_one", {"loss", "grad"}),
        ("shortcut_backward", {"grad"}),
        ("bn_eval", {"loss", "grad", "stat"}),
        ("bias_skipped", {"grad"}),
        ("bn_biased_variance", {"stat"}),
        ("label_smoothing", {"loss", "grad"}),
        ("bf16", {"grad"}),
        ("loss_summed", {"loss", "grad"}),
        ("shortcut_dropped", {"loss", "grad"}),
        ("wrong_seed", {"loss", "grad"}),
        ("other_batch", {"loss", "grad"}),
        ("un_normalised_input", {"grad"}),
        ("dropout_always", {"loss", "grad"}),
        ("constant_loss", {"loss"}),
    ],
)
def test_a_fault_of_the_step_shows_by_ten_bounds_where_it_should(fault, kinds, faulty, bundles):
    times = times_bound(probe(faulty(fault), "probe1"), bundles("train_tiny"), "probe1")
    for kind in kinds:
        assert max(v for k, v in times.items() if k.startswith(kind)) > 10, kind


def test_every_fault_of_a_training_step_is_planted_here():
    text = (ROOT / "src" / "capture" / "train_faults.py").read_text()
    inside = text[text.index("TRAIN_FAULTS: dict") : text.index("IN_FLOAT32 =")]
    marks = [
        mark
        for mark in test_a_fault_of_the_step_shows_by_ten_bounds_where_it_should.pytestmark
        if mark.name == "parametrize"
    ]
    planted = {fault for fault, _ in marks[0].args[1]}
    names = set(inside.split('"')[1::2])
    assert len(names) >= 9 and names <= planted


def test_biases_that_are_skipped_have_a_gradient_of_zero(faulty):
    found = probe(faulty("bias_skipped"), "probe1")
    assert not found["grad:7.bias"].any() and found["grad:7.weight"].any()


def test_weights_that_are_baked_in_show_in_the_second_set(faulty, bundles):
    worker = faulty("baked_weights")
    assert max(times_bound(probe(worker, "probe1"), bundles("train_tiny"), "probe1").values()) <= 1
    assert (
        max(times_bound(probe(worker, "probe2"), bundles("train_tiny"), "probe2").values()) > 1000
    )


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("no_momentum", {}),
        ("no_weight_decay", {}),
        ("no_dampening", {"dampening": 0.5}),
        ("no_nesterov", {"nesterov": True}),
        ("rate_off", {}),
    ],
)
def test_a_fault_of_the_optimiser_shows_against_its_formula(fault, changed, faulty):
    optimiser = INFLATED | changed
    worker = faulty("none")
    worker.ask("set_mode", mode="train", dropout=False)
    worker.ask("set_optimiser", optimiser=INFLATED)
    worker.prove([0, 1])
    before, _ = state(worker)
    assert step_error(worker, before, optimiser, 2, 0.1) < 1e-5
    worker = faulty(fault)
    worker.ask("set_mode", mode="train", dropout=False)
    if fault == "rate_off":  # the probe step's own rate is off too, and leaves its buffer sound
        assert step_error(worker, before, optimiser, 2, 0.1) == pytest.approx(1e-3, rel=0.1)
    else:
        assert step_error(worker, before, optimiser, 2, 0.1) > 1e-3


def test_a_schedule_inside_the_loop_shows_without_loading_again(faulty):
    for fault, wrong in (("none", False), ("decay_inside", True)):
        worker = faulty(fault)
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask("set_optimiser", optimiser=INFLATED)
        worker.prove([0, 1, 2])
        before, answer = state(worker)
        worker.prove([3])
        after, _ = state(worker)
        v, w = (
            after["momentum:7.bias"].astype(np.float64),
            before["weight:7.bias"].astype(np.float64),
        )
        off = (
            np.abs(after["weight:7.bias"] - (w - answer["lr"] * v)).max()
            / np.abs(answer["lr"] * v).max()
        )
        assert (off > 1e-3) == wrong, fault


def test_buffers_that_outlive_a_change_of_weights_show(faulty):
    worker = faulty("keeps_buffers")
    worker.ask("set_optimiser", optimiser=INFLATED)
    worker.prove([0])
    worker.ask("weights", weights="probe2")
    assert gradients(state(worker)[0])


def test_stale_labels_and_inputs_show_in_the_second_loss(faulty):
    truth = faulty("none")
    still = PROBE | {"lr": 0.0}

    def losses(worker: Worker) -> dict:
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask("set_optimiser", optimiser=still)
        return worker.prove([0, 1])

    wanted = losses(truth)
    for fault in ("stale_labels", "stale_input"):
        found = losses(faulty(fault))
        assert (
            found["0/loss"] == wanted["0/loss"] and abs(found["1/loss"] - wanted["1/loss"]) > 1e-3
        )


def test_dropout_that_never_drops_shows(faulty):
    worker = faulty("dropout_never")
    worker.ask("set_optimiser", optimiser=PROBE | {"lr": 0.0})
    worker.ask("set_mode", mode="train", dropout=True)
    assert len({float(worker.prove([0])["0/loss"]) for _ in range(4)}) == 1


def test_a_training_fault_is_refused_in_a_case_of_inference(bundles):
    with (
        Worker("faulty_eager", bundles("in_place"), threads=1, STRATA_FAULT="bn_eval") as worker,
        pytest.raises(Failed, match="STRATA_FAULT is 'bn_eval'"),
    ):
        worker.load()


# ----------------------------------------------- variants of inference, and what the compiler did


@pytest.mark.parametrize(
    "level",
    ["eager@channels_last", "compile@channels_last", "compile@freezing", "compile@max-autotune"],
)
def test_a_variant_infers_within_the_envelope_for_every_set(level, bundles, running):
    from test_python_levels import envelope, error, reference

    worker, loaded = running(level, "in_place")
    told = {
        "eager@channels_last": {"layout": "channels_last"},
        "compile@channels_last": {"layout": "channels_last", "graph": "compiled"},
        "compile@freezing": {"freezing": True},
        "compile@max-autotune": {"autotune": True, "freezing": False},
    }[level]
    assert told.items() <= loaded["settings"].items()
    for weights in ("timed", "generic1", "generic2"):
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles("in_place"), weights)) <= 8 * envelope(
            bundles("in_place"), weights
        )
    if level != "compile@freezing":
        assert worker.ask("read_weights")["sha256"]
        return
    with pytest.raises(Failed, match="part of its code") as failure:
        worker.ask("read_weights")
    assert failure.value.code == "unsupported"


@pytest.mark.parametrize(
    ("level", "bundle", "what"),
    [
        ("eager@turbo", "in_place", "no variant turbo"),
        ("eager@fused", "in_place", "eager@fused has no mode infer"),
        ("eager@cudagraph", "in_place", "eager@cudagraph has no device cpu"),
        ("compile@freezing", "train_tiny", "compile@freezing has no mode train"),
    ],
)
def test_a_variant_beyond_level_json_is_unsupported(level, bundle, what, bundles):
    plain, _, variant = level.partition("@")
    with (
        Worker(plain, bundles(bundle), threads=1, variant=variant) as worker,
        pytest.raises(Failed, match=what) as failure,
    ):
        worker.load()
    assert failure.value.code == "unsupported" and failure.value.hint.startswith("it has: ")


def test_graph_breaks_are_told_with_file_and_line(bundles, running):
    _, loaded = running("compile", "branching")
    found = loaded["settings"]["compile"]
    file, _, line = found["graph_breaks"][0]["where"].rpartition(":")
    source = (ROOT / "tests" / "levels" / "networks.py").read_text(encoding="utf-8").splitlines()
    assert (
        file.endswith("networks.py")
        and "if x.sum()" in source[int(line) - 1]
        and found["graph_breaks"][0]["reason"]
    )
    assert found["graphs"] >= 2 and found["guards"] > 0 and json.dumps(found["recompiles"])
