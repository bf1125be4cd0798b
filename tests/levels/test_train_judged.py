# SPDX-License-Identifier: Apache-2.0
"""`strata train` at real levels: faults that begin in the middle of a training are found, and what
is judged of whole trainings, also of killed ones and of shards."""

from __future__ import annotations

import signal
import time

import numpy as np
import preloaded
import pytest
from train_verb import Place, train_command


@pytest.mark.parametrize(
    ("fault", "optimiser", "words"),
    [
        ("late_no_momentum", "sgd:lr=0.02", "momentum"),
        ("late_rate_stuck", "sgd:lr=0.02,schedule=step/12/0.1", "move otherwise"),
        ("late_statistics", "sgd:lr=0.02", "bn.running"),
        ("late_no_momentum", "adamw:lr=0.005", "exp_avg of"),
        ("late_rate_stuck", "adam:lr=0.005,schedule=step/12/0.1", "learning rate in use"),
        ("late_last_batch_skipped", "sgd:lr=0.02", "its loss is 0"),
        ("late_stale_evaluation", "sgd:lr=0.05", "with the same weights"),
    ],
)
def test_a_fault_that_begins_in_the_middle_is_found_and_takes_the_numbers(
    fault, optimiser, words, place
):
    trained = place.train(
        "eager,faulty_eager",
        "--epochs",
        "2",
        "--images",
        "320",
        "--optimiser",
        optimiser,
        STRATA_FAULT=fault,
    )
    assert trained.code == 1, trained.errors
    assert trained.row("proof", "eager")["state"] == "measured"
    faulty = trained.row("proof", "faulty_eager")
    assert faulty["state"] == "unequal" and words in faulty["reason"], faulty
    result = trained.row("result", "faulty_eager")
    assert not any(
        isinstance(cell, dict) and cell.get("value") is not None for cell in result.values()
    ), result


def test_a_loss_that_is_not_finite_ends_the_repeat_and_is_said(place):
    trained = place.train(
        "eager",
        "--epochs",
        "2",
        "--images",
        "320",
        "--optimiser",
        "sgd:lr=1e10",
        STRATA_PYTHON=preloaded.PYTHON,  # this one in processes that start as a user's do
    )
    assert trained.code == 0, trained.errors
    assert any(
        "not finite" in item.get("paragraph", "")
        for item in trained.document["sections"][0]["items"]
    )


def test_schemes_of_initialisation_are_a_table_of_what_learns_and_where_a_signal_goes(place):
    trained = place.train(
        "eager,static",
        "--epochs",
        "2",
        "--images",
        "320",
        "--optimiser",
        "sgd:lr=0.1",
        "--init",
        "kaiming:fan_in,relu;normal:1e-6;normal:1e5",
        model="net.py:plain",
    )
    assert trained.code == 0, trained.errors
    rows = {row["scheme"]: row for row in trained.tables["initialisations"]["rows"]}
    assert list(rows) == ["kaiming:fan_in,relu", "normal:1e-6", "normal:1e5"]
    seen = {(row["scheme"], row["level"]): row for row in trained.tables["first_seen"]["rows"]}
    for level in ("eager", "static"):
        assert [rows[scheme][level].split(":")[0] for scheme in rows] == [
            "learns",
            "vanishes",
            "explodes",
        ], rows
        for scheme, words in (
            ("normal:1e-6", "activations vanish at hidden"),
            ("normal:1e5", "activations explode at hidden"),
        ):
            row = seen[scheme, level]
            assert (
                row["step"]["value"] == 1 and row["layer"] == "hidden" and words in row["what"]
            ), row
    assert (
        trained.document["summary"]
        == "Learns at every level from kaiming:fan_in,relu; not everywhere from normal:1e-6 (vanishes at eager, static); normal:1e5 (explodes at eager, static)."
    )
    assert {
        f"init{i}_{table}" for i in (1, 2, 3) for table in ("result", "proof", "life_cycle")
    } <= set(trained.tables)
    assert trained.maps["init1_activations"]["columns"] == [
        "1",
        "3",
        "5",
        "7",
        "9",
        "11",
        "13",
        "15",
        "17",
        "19",
    ], "four looks an epoch, or more where it has ten steps"
    newest = max(
        (place.folder / "strata" / "trainings").iterdir(), key=lambda path: path.stat().st_mtime_ns
    )
    assert {path.name for path in newest.iterdir()} == {
        "kaiming-fan_in-relu",
        "normal-1e-6",
        "normal-1e5",
    }
    assert place.run("show", "last", "--format", "json").document == trained.document
    again = place.run("resume", "last")
    assert (
        again.errors.count("trained already") == 3
        and again.tables["initialisations"] == trained.tables["initialisations"]
    ), again.errors


def test_mlperfs_rule_judges_the_epochs_to_a_target(place):
    trained = place.train(
        "eager,static",
        "--epochs",
        "20",
        "--repeats",
        "5",
        "--images",
        "64",
        "--proofs",
        "0",
        "--norms",
        "0",
        "--optimiser",
        "sgd:lr=0.05",
        "--target",
        "30%",
        "--rule",
        "mlperf",
    )
    assert trained.code == 0, trained.errors
    row = trained.row("mlperf", "static")
    assert row["verdict"] == "passes in both directions" and row["repeats"]["value"] == 5, row
    assert (
        0 < row["fewest"]["value"] <= row["epochs"]["value"]
        and abs(row["fewest"]["value"] - row["fewest_of_reference"]["value"]) < 3
    )
    assert trained.row("life_cycle", "static")["epoch"]["value"] > 0
    # how far the reference is behind is said where other programs left the processors alone
    if "Times are not reliable" in trained.tables["result"].get("note", ""):
        assert "reference_behind" not in trained.tables
    else:
        assert {row["what"] for row in trained.tables["reference_behind"]["rows"]} >= {
            "start",
            "train an epoch",
            "test",
        }


def test_a_killed_training_goes_on_with_its_last_epoch_and_ends_with_the_same_weights(tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole, killed, model = (
        Place(tmp_path / "whole"),
        Place(tmp_path / "killed"),
        "net.py:with_dropout",
    )
    # whose steps count on
    levels, options = (
        "eager,onednn,static",
        ("--epochs", "4", "--images", "640", "--optimiser", "adamw"),
    )
    assert whole.train(levels, *options, model=model).code == 0
    for _ in range(2):
        arguments = (
            ("resume", "last")
            if list((killed.folder / "strata").glob("trainings/*/*.json"))
            else train_command(levels, *options, model=model)
        )
        process = killed.start(*arguments)
        seen = {path.name for path in (killed.folder / "strata").glob("trainings/*/*-e*.state")}
        for _ in range(6000):
            states = {
                path.name for path in (killed.folder / "strata").glob("trainings/*/*-e*.state")
            }
            if process.poll() is not None or any(
                "-e2" in name or "-e3" in name for name in states - seen
            ):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = killed.run("resume", "last")
    assert done.code == 0, done.errors
    assert len(done.figures["by_epoch"]["panels"][0]["lines"][0]["x"]) == 4
    for level in levels.split(","):
        one, two = whole.checkpoint(f"{level}-r1-last"), killed.checkpoint(f"{level}-r1-last")
        assert set(one) == set(two) and all(np.array_equal(one[name], two[name]) for name in one), (
            level
        )
        assert one["bn.num_batches_tracked"] == 4 * 20, "every batch is counted once"


def test_repeats_in_shards_are_those_of_the_whole_and_are_shown_as_one(tmp_path):
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole, parts, levels = Place(tmp_path / "whole"), Place(tmp_path / "parts"), "eager,static"
    options = ("--epochs", "2", "--repeats", "3", "--images", "320")
    trained = whole.train(levels, *options)
    assert trained.code == 0, trained.errors
    for shard in ("1/2", "2/2"):
        assert parts.train(levels, *options, "--shard", shard).code == 0
    for name in (f"{level}-r{repeat}-last" for level in levels.split(",") for repeat in (1, 2, 3)):
        one, two = whole.checkpoint(name), parts.checkpoint(name)
        assert set(one) == set(two) and all(np.array_equal(one[key], two[key]) for key in one), name
    shown = parts.run("show", "last", "--format", "json")
    for place in (0, 1):  # accuracy and loss: means and ranges over three repeats
        assert (
            shown.figures["by_epoch"]["panels"][place]["lines"]
            == trained.figures["by_epoch"]["panels"][place]["lines"]
        )
    for level in levels.split(","):
        assert (
            shown.row("proof", level)["in_the_middle"]
            == trained.row("proof", level)["in_the_middle"]
        )
    assert [row["shard"] for row in shown.tables["shards"]["rows"]] == ["1/2", "2/2"]
