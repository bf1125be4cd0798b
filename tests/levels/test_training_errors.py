# SPDX-License-Identifier: Apache-2.0
"""bench/training_errors.py: the verdict it counts is strata's own, what is planted is planted, and
a second call goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from client import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import training_errors

SCRIPT = str(ROOT / "bench" / "training_errors.py")


def pairs_of(differences: list[float], loss: float = 0.0) -> training_errors.Pairs:
    return {
        "reference": [{"accuracy": 0.9, "loss": 0.3}] * len(differences),
        "level": [{"accuracy": 0.9 + difference, "loss": 0.3 + loss} for difference in differences],
    }


def test_the_verdict_is_that_of_the_program_with_its_margin_and_its_width_of_one_image():
    tests = [
        pairs_of([0.0] * 5),
        pairs_of([0.03, 0.031, 0.029, 0.03, 0.03], loss=0.2),
        pairs_of([0.0, 0.04, -0.04, 0.01, 0.02]),
        pairs_of([0.0099] * 5),
    ]
    verdicts = training_errors.judge(tests, margin=0.01, loss_margin=0.05, images=360)
    assert [one["accuracy"]["verdict"] for one in verdicts] == [
        "equivalent",
        "different",
        "inconclusive",
        "inconclusive",
    ]
    assert [one["loss"]["verdict"] for one in verdicts] == [
        "equivalent",
        "different",
        "equivalent",
        "equivalent",
    ]
    assert verdicts[0]["accuracy"]["half95"] == pytest.approx(1 / 360) and verdicts[1]["accuracy"][
        "mean"
    ] == pytest.approx(0.03)


def test_a_line_that_is_no_test_is_refused():
    done = subprocess.run(
        [str(training_errors.JUDGE)],
        input='{"margin": 0.01}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "loss_margin is not there" in done.stderr


def test_the_pairs_of_a_null_are_drawn_either_way_round_and_moved_by_the_margin():
    by = {
        "reference": [{"accuracy": 1.0, "loss": 0.0}] * 200,
        "another seed": [{"accuracy": 0.0, "loss": 0.0}] * 200,
    }
    change = next(one for one in training_errors.CHANGES if one.name == "another seed")
    differences = training_errors.differences(
        [training_errors.null_pairs(change, 0, by)], "accuracy"
    )
    assert (
        sorted(set(differences)) == [-1.0, 1.0] and 60 < sum(one > 0 for one in differences) < 140
    )
    moved = training_errors.shifted(pairs_of([0.0, 0.02]), 0.01, -0.05)
    assert training_errors.differences([moved], "accuracy") == [
        pytest.approx(0.01),
        pytest.approx(0.03),
    ]
    assert training_errors.differences([moved], "loss") == [pytest.approx(-0.05)] * 2


def test_every_change_of_a_training_changes_what_it_says_and_nothing_else():
    data, recipe = training_errors.digits(), training_errors.Recipe(epochs=2)
    ends = {
        change.name: training_errors.train(recipe, change, data, seed=3)
        for change in [training_errors.REFERENCE, *training_errors.CHANGES]
    }
    reference = ends["reference"]
    assert (
        0.7 < reference["accuracy"] <= 1
        and training_errors.train(recipe, training_errors.REFERENCE, data, seed=3)["weights"]
        == reference["weights"]
    )
    for change in training_errors.CHANGES:
        end = ends[change.name]
        if change.stale_statistics:  # evaluates the same weights otherwise
            assert end["weights"] == reference["weights"] and end["loss"] != reference["loss"]
        elif change.fault or change.ulp or change.other_seed:
            assert end["weights"] != reference["weights"], change.name
    assert (
        abs(ends["one ulp on an input"]["loss"] - reference["loss"])
        < 0.02
        < ends["label smoothing 0.1"]["loss"] - reference["loss"]
    )


def test_a_second_call_goes_on_and_prints_the_rates_with_their_bounds(tmp_path: Path):
    output = tmp_path / "trainings.jsonl"

    def run(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, SCRIPT, str(output), "--repeats", "2", "--epochs", "1", *more],
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("--tests", "1", "--minutes", "0").returncode == 1
    first = run("--tests", "1")
    assert first.returncode == 0, first.stderr
    lines = output.read_text().splitlines()
    assert (
        len(lines) == 1 + 2 * (1 + len(training_errors.CHANGES))
        and json.loads(lines[0])["repeats"] == 2
    )
    output.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # killed while it wrote
    second = run("--tests", "2")
    assert second.returncode == 0, second.stderr
    after = output.read_text().splitlines()
    assert after[: len(lines) - 1] == lines[:-1] and len(after) == 1 + len(lines) + 2 * (
        1 + len(training_errors.CHANGES)
    )
    assert (
        second.stdout.startswith("2 tests of 2 pairs")
        and "| one ulp on an input | " in second.stdout
        and "| schedule stuck | " in second.stdout
    )
    assert "0 of 2 (at most 77.6%)" in second.stdout, second.stdout
    other = run("--tests", "2", "--repeats", "3")
    assert other.returncode == 2 and "other settings" in other.stderr
