# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in a training step of eager: each shows where it should."""

from __future__ import annotations

import numpy as np
import pytest
from client import ROOT, Failed, Worker

from training import INFLATED, PROBE, SETS, gradients, probe, state, step_error, times_bound


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
    names = set(inside.split('"')[1::2]) - {"targets_moved"}  # which test_losses.py plants
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

    expected = losses(truth)
    for fault in ("stale_labels", "stale_input"):
        found = losses(faulty(fault))
        assert (
            found["0/loss"] == expected["0/loss"]
            and abs(found["1/loss"] - expected["1/loss"]) > 1e-3
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
