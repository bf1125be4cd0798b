# SPDX-License-Identifier: Apache-2.0
"""`strata compare --mode train` from end to end with fake levels that train: equal work, each fault
by its name, phases, both modes."""

from __future__ import annotations

import re
import time

import pytest
from conftest import MODEL, Strata, rows_of
from training_program import Training


@pytest.fixture
def training(tmp_path):
    return Training(tmp_path / "place with spaces")


def lines_of(row: dict) -> dict[str, dict]:
    return {line["check"]: line for line in row["proof"]["lines"]}


def test_a_training_step_is_proven_in_float32_and_then_in_the_mode_that_is_timed(training):
    has = {"has": ["fp32", "amp-bf16"]}
    training.level("right", rank=1, precision=has, precisions_in_json=has["has"])
    training.level("wide", rank=2, precision=has | {"ignores": True}, precisions_in_json=has["has"])
    training.level("old", rank=3)
    training.level(
        "biased", rank=4, precision=has, precisions_in_json=has["has"], train={"skip_biases": True}
    )
    done, result = training.compare(
        "right", "wide", "old", "biased", more=("--precision", "amp-bf16")
    )
    rows = rows_of(result)
    assert result["cases"][0]["id"].endswith("/amp-bf16/cpu/t1")
    assert rows["right"]["state"] == "measured", rows["right"]["reason"]
    lines = lines_of(rows["right"])
    for check in (
        "loss, gradients and statistics, probe weights 1, strict float32",
        "loss, gradients and statistics, probe weights 1, amp-bf16",
        "computes in amp-bf16",
        "losses follow inputs and labels, amp-bf16",
        "optimiser: weight decay",
        "a step after timing",
        "precision",
    ):
        assert lines[check]["result"] == "pass", lines[check]
    assert (rows["wide"]["state"], rows["wide"]["reason_short"]) == (
        "mistrusted",
        "does not compute in amp-bf16",
    )
    assert (rows["old"]["state"], rows["old"]["reason"]) == (
        "unsupported",
        "no support for precision amp-bf16",
    )
    # found before the mode's rounding could hide it
    assert rows["biased"]["state"] == "unequal" and "strict float32" in rows["biased"]["reason"]
    assert done.returncode == 1


def test_levels_that_train_alike_are_measured_with_throughput_and_phases(training):
    training.level("slow", rank=1, samples={"median_ns": 2_000_000, "jitter": 0.01, "seed": 1})
    training.level("fast", rank=2)
    done, result = training.compare("slow", "fast", restarts=2)
    rows = rows_of(result)
    assert done.returncode == 0, [row["reason"] for row in rows.values()]
    assert rows["fast"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)
    assert rows["fast"]["steps_per_s"] == pytest.approx(1000, rel=0.03) and rows["fast"][
        "throughput_per_s"
    ] == pytest.approx(8000, rel=0.03)
    assert rows["fast"]["phases"]["ms"]["backward"] == pytest.approx(0.4, rel=0.05)
    assert rows["fast"]["phases"]["joined"] == {"forward": ["forward", "loss"]}
    assert "a training step" in result["cases"][0]["headline"]["sentence"]
    assert {
        line["result"] for line in rows["fast"]["proof"]["lines"] if line["how"] == "observed"
    } <= {"pass", "not_checked"}
    assert not rows["fast"]["proof"]["weak"]
    checked = lines_of(rows["fast"])
    for check in (
        "loss, gradients and statistics, probe weights 1",
        "optimiser: weight decay",
        "optimiser: Nesterov",
        "a step after timing",
        "losses while timing are finite",
        "steps done and learning rate",
    ):
        assert checked[check]["result"] == "pass", checked[check]
    assert checked["a step after timing"]["value"] == "2 of 2 restarts"


def test_every_way_of_showing_a_run_shows_its_phases(training):
    training.level("one", rank=1)
    training.level("two", rank=2)
    training.compare("one", "two")
    shown = {
        style: training.run(
            "show", "last", "--format", style, "--store", str(training.store)
        ).stdout
        for style in ("text", "md", "csv")
    }
    assert (
        "backward" in shown["text"]
        and "samples/s" in shown["text"]
        and "in forward" in shown["text"]
    )
    assert "backward" in shown["md"] and "| one" in shown["md"]
    header, first = shown["csv"].splitlines()[:2]
    assert float(first.split(",")[header.split(",").index("phases_ms_backward")]) == pytest.approx(
        0.4, rel=0.05
    )
    page = training.folder / "page.html"
    assert (
        training.run("report", "last", "--store", str(training.store), "-o", str(page)).returncode
        == 0
    )
    assert "Phases of a training step" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fault", "state", "words"),
    [
        ({"no_momentum": True}, "unequal", ["momentum"]),
        ({"no_weight_decay": True}, "unequal", ["weight decay"]),
        ({"lr_factor": 0.999}, "unequal", ["weights move by 0.999"]),
        ({"skip_biases": True}, "unequal", ["biases"]),
        ({"eval_statistics": True}, "unequal", ["eval mode"]),
        ({"biased_variance": True}, "unequal", ["biased", "n = 8"]),
        ({"summed_loss": True}, "unequal", ["summed"]),
        ({"constant_loss": True}, "unequal", ["loss"]),
        ({"shift_labels": 1}, "unequal", ["labels", "off by one"]),
        (
            {"no_momentum": True, "only_in": "measure"},
            "unequal",
            ["after timing", "without momentum"],
        ),
        (
            {"no_weight_decay": True, "only_in": "measure"},
            "unequal",
            ["after timing", "without weight decay"],
        ),
        ({"lr_factor": 0.999, "only_in": "measure"}, "unequal", ["after timing", "learning rate"]),
        ({"steps_off": 1}, "unequal", ["optimiser steps"]),
    ],
)
def test_a_level_that_trains_otherwise_has_no_number_and_its_fault_is_named(
    training, fault, state, words
):
    training.level("right", rank=1)
    training.level("wrong", rank=2, train=fault)
    done, result = training.compare(
        "right", "wrong", more=("--optimiser", "sgd:lr=0.01,weight_decay=0.01")
    )
    rows = rows_of(result)
    assert (done.returncode, rows["right"]["state"]) == (1, "measured"), rows["right"]["reason"]
    row = rows["wrong"]
    assert (row["state"], row["end_to_end_ms"], row["phases"]) == (state, None, None), row["reason"]
    for word in words:
        assert word in row["reason"]


def test_steps_that_always_take_the_first_data_are_unequal(training):
    training.level("right", rank=1)
    training.level("stale", rank=2, train={"stale": True})
    _, result = training.compare("right", "stale", restarts=1)
    rows = rows_of(result)
    assert "losses follow inputs and labels" in lines_of(rows["right"])
    assert (
        (rows["right"]["state"], rows["stale"]["state"]) == ("measured", "unequal")
        and "inputs or labels" in rows["stale"]["reason"]
        and rows["stale"]["end_to_end_ms"] is None
    )


def test_timed_steps_on_other_data_are_mistrusted_or_unequal(training):
    training.level("right", rank=1)
    training.level("stale", rank=2, train={"stale": True, "only_in": "measure"})
    # the ring index of the last step is drawn; in one of four restarts it is not 0
    _, result = training.compare("right", "stale", restarts=4)
    row = rows_of(result)["stale"]
    assert row["state"] in ("mistrusted", "unequal") and row["end_to_end_ms"] is None, row["state"]
    # by the step after the blocks, or by those of the blocks that are made again
    assert "after timing" in row["reason"] or "while timing" in row["reason"], row["reason"]


def test_a_training_that_diverges_while_it_is_timed_begins_again_and_is_not_accused(training):
    training.level("right", rank=1)
    training.level("chaotic", rank=2, train={"diverges_after": 60})
    done, result = training.compare("right", "chaotic")
    row = rows_of(result)["chaotic"]
    line = lines_of(row)["losses while timing are finite"]
    assert (done.returncode, row["state"]) == (0, "measured"), row["reason"]
    assert line["result"] == "pass" and re.search(
        r"diverged \d+ times and began again", line["detail"]
    )
    assert (
        "diverged"
        not in lines_of(rows_of(result)["right"])["losses while timing are finite"]["detail"]
    )


def test_a_training_that_diverges_within_every_block_is_unequal_and_told_of_the_rate(training):
    training.level("right", rank=1)
    # the proof takes fewer steps from one set of weights
    training.level("wild", rank=2, train={"diverges_after": 4})
    _, result = training.compare("right", "wild")
    row = rows_of(result)["wild"]
    assert (
        row["state"] == "unequal"
        and "not finite within a block" in row["reason"]
        and "learning rate is too large" in row["reason"]
    )


def test_dropout_is_proven_by_the_losses_that_it_scatters(training):
    training.bundle(dropout=0.3)
    training.level("right", rank=1)
    done, result = training.compare("right")
    checked = lines_of(rows_of(result)["right"])
    assert (
        done.returncode == 0
        and checked["dropout"]["result"] == "pass"
        and checked["eval mode leaves dropout out"]["result"] == "pass"
    )


@pytest.mark.parametrize(
    ("fault", "word"),
    [("ignore_dropout", "dropout is not applied"), ("dropout_in_eval", "eval mode")],
)
def test_dropout_in_the_wrong_mode_is_named(training, fault, word):
    training.bundle(dropout=0.3)
    training.level("right", rank=1)
    training.level("wrong", rank=2, train={fault: True})
    _, result = training.compare("right", "wrong")
    rows = rows_of(result)
    assert (rows["right"]["state"], rows["wrong"]["state"]) == ("measured", "unequal")
    assert word in rows["wrong"]["reason"]


def test_a_schedule_is_followed_and_checked(training):
    training.level("right", rank=1)
    done, result = training.compare(
        "right", more=("--optimiser", "sgd:lr=0.05,schedule=step/100/0.9,nesterov=true")
    )
    row = rows_of(result)["right"]
    assert done.returncode == 0, row["reason"]
    assert result["cases"][0]["case"]["optimiser"]["schedule"] == {
        "name": "step",
        "every": 100,
        "gamma": 0.9,
    }
    assert lines_of(row)["a step after timing"]["result"] == "pass"


@pytest.mark.parametrize(
    ("ops", "state", "word"),
    [
        (
            {
                "state": {
                    "error": {"code": "failed", "what": "the state cannot be written", "hint": ""}
                }
            },
            "failed",
            "cannot be written",
        ),
        ({"state": {"answer": {"step": "many"}}}, "failed", "step"),
        ({"set_optimiser": {"signal": 11}}, "crashed", "SIGSEGV"),
        ({"set_labels": {"answer": {"count": 1}}}, "failed", "set_labels"),
        ({"profile": {"answer": {"phases": "x"}}}, "failed", '"phases"'),
        ({"profile": {"answer": {"phases": {"forward": 3}}}}, "failed", '"forward"'),
    ],
)
def test_a_worker_that_goes_wrong_while_training_costs_its_row_and_no_other(
    training, ops, state, word
):
    training.level("right", rank=1)
    training.level("wrong", rank=2, ops=ops)
    done, result = training.compare("right", "wrong")
    rows = rows_of(result)
    assert (rows["wrong"]["state"], rows["right"]["state"], done.returncode) == (
        state,
        "measured",
        1,
    )
    assert word in rows["wrong"]["reason"]


@pytest.mark.parametrize("op", ["load", "state", "set_optimiser", "profile"])
def test_the_time_out_holds_against_answers_that_drip(training, op):
    training.level("right", rank=1)
    training.level("wrong", rank=2, ops={op: {"drip": 0.3}})
    begin = time.monotonic()
    _, result = training.compare("right", "wrong", more=("--timeout", "4s"))
    rows = rows_of(result)
    assert (rows["wrong"]["state"], rows["right"]["state"]) == ("timeout", "measured"), rows
    assert f"{op}: no answer within 4 s" in rows["wrong"]["reason"]
    assert time.monotonic() - begin < 60


def test_a_level_without_phases_keeps_its_number(training):
    training.level(
        "right",
        rank=1,
        ops={"profile": {"error": {"code": "unsupported", "what": "no clock here", "hint": ""}}},
    )
    done, result = training.compare("right")
    row = rows_of(result)["right"]
    assert (done.returncode, row["state"], row["phases"]["ms"], row["phases"]["note"]) == (
        0,
        "measured",
        {},
        "no clock here",
    )


def test_a_level_that_cannot_train_is_unsupported(training):
    training.level("trains", rank=1)
    Strata.level(training, "infers", rank=2)
    done, result = training.compare("trains", "infers")
    assert (rows_of(result)["infers"]["state"], done.returncode) == ("unsupported", 3)


def test_a_weak_proof_is_warned_of(training):
    training.bundle(weak="no fault can be seen here")
    training.level("right", rank=1)
    _, result = training.compare("right")
    assert rows_of(result)["right"]["proof"]["weak"]
    (warning,) = [warning for warning in result["warnings"] if warning["id"] == "W004"]
    assert "no fault can be seen here" in warning["what"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "trian"], ["did you mean 'train'", "allowed: infer, train"]),
        (["--mode", "train,train"], ["twice"]),
        (["--optimiser", "sgd:lr=0.1"], ["training only", "--mode train"]),
        (["--loss", "nll"], ["training only"]),
        (["--mode", "train", "--loss", "hinge"], ["--loss hinge", "cross_entropy, nll", "output"]),
        (["--mode", "train", "--loss", "mine.py"], ["--loss mine.py", "function is missing"]),
        (["--mode", "train", "--loss", "mine.py:l"], ["--loss mine.py", "no such file"]),
        (
            ["--mode", "train", "--optimiser", "adan"],
            ["did you mean 'adam'", "allowed: sgd, adam, adamw"],
        ),
        (["--mode", "train", "--optimiser", "adam:amsgrad=true"], ["amsgrad is not offered"]),
        (
            ["--mode", "train", "--optimiser", "adamw:momentum=0.9"],
            ["unknown field 'momentum'", "beta1"],
        ),
        (["--mode", "train", "--optimiser", "sgd:momentun=0.9"], ["did you mean 'momentum'"]),
        (["--mode", "train", "--optimiser", "sgd:lr=0"], ["lr=0", "above 0"]),
        (["--mode", "train", "--optimiser", "sgd:lr=0.1,lr=0.2"], ["twice"]),
        (["--mode", "train", "--optimiser", "sgd:momentum=0,nesterov=true"], ["nesterov needs"]),
        (["--mode", "train", "--optimiser", "sgd:schedule=cosin/10"], ["did you mean 'cosine'"]),
        (["--mode", "train", "--optimiser", "sgd:schedule=step/30"], ["step/STEPS/FACTOR"]),
        (["--mode", "train", "--deep"], ["--deep", "--mode infer"]),
    ],
)
def test_bad_training_options_are_told_before_anything_runs(training, arguments, words):
    training.level("one")
    done = training.run(
        "compare", MODEL, "--levels", "one", "--store", str(training.store), *arguments
    )
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert not training.store.exists()
