# SPDX-License-Identifier: Apache-2.0
"""`strata train` from end to end at real levels: what is learned, kept and begun with, and what is
refused."""

from __future__ import annotations

import json
import subprocess

import preloaded
import pytest
from client import PROGRAM
from train_verb import LEVELS, NETWORK


def test_every_level_learns_the_digits_alike_and_each_epoch_is_told(place):
    trained = place.train(
        LEVELS,
        "--epochs",
        "3",
        "--repeats",
        "2",
        "--augment",
        "crop",
        "--optimiser",
        "sgd:lr=0.05",
        "--target",
        "50%",
        STRATA_PYTHON=preloaded.PYTHON,  # processor time is that of processes of their own
    )
    assert trained.code == 0, trained.errors
    for level in LEVELS.split(","):
        proof, result = trained.row("proof", level), trained.row("result", level)
        assert proof["state"] == "measured" and proof["in_the_middle"]["value"] == 2 * (
            3 + 1 + 3
        ), (level, proof, trained.errors)
        assert (
            0.85 < result["test_accuracy"]["value"] <= 1
            and result["test_accuracy"]["low"]
            <= result["test_accuracy"]["value"]
            <= result["test_accuracy"]["high"]
        )
        assert (
            result["step_time"]["value"] > 0
            and result["epoch_seconds"]["value"] > 0
            and 0 < result["cpu_utilisation"]["value"] < 3
        )
        assert (
            trained.row("meters", level)["cpu_seconds"]["value"] > 0
            and trained.row("meters", level)["peak_resident_bytes"]["value"] > 1e6
        )
    for level in LEVELS.split(",")[1:]:
        verdict = trained.row("verdicts", level)
        means = [trained.row("result", one)["last_accuracy"]["value"] for one in (level, "eager")]
        assert (
            verdict["repeats"]["value"] == 2
            and abs(verdict["accuracy_difference"]["value"] - 100 * (means[0] - means[1])) < 1e-9
        )
        assert (
            verdict["accuracy_verdict"].split(":")[0].split(",")[0]
            in ("equivalent", "different", "inconclusive")
            and verdict["loss_verdict"]
        )
        target = trained.row("time_to_accuracy", level)
        assert (
            1 <= target["epoch"]["value"] <= 3
            and target["seconds"]["value"] > 0
            and target["never"]["value"] == 0
        )
    assert trained.row("verdicts", "libtorch")["accuracy_verdict"] == "equivalent", (
        "the same kernels on the same images"
    )
    assert trained.row("result", "eager")["speedup"]["value"] == 1
    test_accuracy = trained.figures["by_epoch"]["panels"][0]
    assert [line["name"] for line in test_accuracy["lines"]] == LEVELS.split(",") and all(
        line["x"] == [1, 2, 3] for line in test_accuracy["lines"]
    )
    losses = trained.figures["by_epoch"]["panels"][3]["lines"]
    firsts = [line["y"][0] for line in losses]
    assert max(firsts) - min(firsts) < 1e-3 * min(firsts), (
        "the first epoch's mean loss is that of the same steps"
    )
    for name in ("activations", "gradients"):
        sizes = trained.maps[name]
        assert (
            sizes["rows"] == ["conv", "fc"]
            and sizes["columns"] == ["1", "45", "89"]
            and all(value > 0 for row in sizes["values"] for value in row)
        )
    shown = place.run("show", "last", "--format", "json")
    assert shown.document == trained.document


def test_every_level_learns_by_adamw_and_is_proven_in_the_middle(place):
    trained = place.train(LEVELS, "--epochs", "2", "--optimiser", "adamw:lr=0.005")
    assert trained.code == 0, trained.errors
    assert (
        next(fact["value"] for fact in trained.document["facts"] if fact["name"] == "optimiser")
        == "adamw:lr=0.005"
    )
    for level in LEVELS.split(","):
        assert (
            trained.row("proof", level)["state"] == "measured"
            and trained.row("proof", level)["in_the_middle"]["value"] == 4 + 2
        )
        assert trained.row("result", level)["test_accuracy"]["value"] > 0.85


def test_a_checkpoint_loads_into_the_module_under_pytorchs_names(place):
    assert place.train("eager,static", "--epochs", "1").code == 0
    import torch

    namespace: dict = {}
    exec(NETWORK, namespace)
    module, _ = namespace["build"]()
    held = {
        name: torch.from_numpy(value) for name, value in place.checkpoint("static-r1-last").items()
    }
    module.load_state_dict(held)  # strictly
    assert (
        held["bn.num_batches_tracked"] == 1437 // 32
        and torch.equal(module.fc.weight, held["fc.weight"])
        and not torch.equal(module.bn.running_mean, torch.zeros(8))
    )


def test_a_training_begins_with_the_weights_of_a_checkpoint(place):
    first = place.train("eager", "--epochs", "2", "--images", "320")
    assert first.code == 0, first.errors
    newest = max(
        (place.folder / "strata" / "trainings").glob("*/eager-r1-last.safetensors"),
        key=lambda path: path.stat().st_mtime,
    )
    second = place.train("eager", "--epochs", "1", "--images", "320", "--init", str(newest))
    assert second.code == 0, second.errors
    losses = [
        trained.figures["by_epoch"]["panels"][3]["lines"][0]["y"][0] for trained in (first, second)
    ]
    assert losses[1] < 0.7 * losses[0], losses
    assert "init:file:eager-r1-last-" in second.document["subtitle"]
    wrong = place.folder / "wrong.safetensors"
    wrong.write_bytes(b"no tensors")
    for bad, message in (
        (str(wrong), ""),
        ("nowhere.safetensors", "nowhere.safetensors"),
        ("kayming", "no such scheme"),
    ):
        refused = place.train("eager", "--epochs", "1", "--init", bad)
        assert (
            refused.code in (1, 2)
            and message in refused.errors
            and "Traceback" not in refused.errors
        ), refused.errors


def test_a_step_of_a_network_with_dropout_is_proven_beside_its_training(place):
    trained = place.train(
        "eager,static",
        "--epochs",
        "2",
        "--images",
        "320",
        "--optimiser",
        "sgd:lr=0.05",
        model="net.py:with_dropout",
    )
    assert trained.code == 0, trained.errors
    assert (
        trained.row("proof", "static")["in_the_middle"]["value"] == 4 + 2
        and trained.row("result", "static")["test_accuracy"]["value"] > 0.5
    )


def test_a_dataloader_is_proven_too_and_its_waiting_is_shown(place):
    trained = place.train(
        "eager,eager@dataloader", "--epochs", "1", "--images", "320", "--augment", "flip,crop"
    )
    assert trained.code == 0, trained.errors
    assert trained.row("proof", "eager@dataloader")["in_the_middle"]["value"] == 5, trained.row(
        "proof", "eager@dataloader"
    )
    # How long is measured beside whatever else runs: that nothing is gathered ahead is asked of the
    # worker itself (test_training_data.py), where it is no matter of time.
    for phase in ("input_wait_seconds", "input_seconds"):
        assert trained.row("phases", "eager@dataloader")[phase]["value"] > 0, phase
    compared = place.run(
        "compare",
        "net.py:build",
        "--mode",
        "train",
        "--levels",
        "eager@dataloader",
        "--preset",
        "quick",
        "--format",
        "json",
    )
    assert "trainings on a data set" in json.dumps(compared.document), compared.errors


def test_a_network_at_its_own_size_gets_the_images_in_it(place):
    trained = place.train(
        "eager,onednn,static", "--epochs", "1", "--images", "128", model="mnist_classic"
    )
    assert trained.code == 0, trained.errors
    assert all(
        trained.row("proof", level)["in_the_middle"]["value"] == 4 + 1
        for level in ("eager", "onednn", "static")
    )
    assert "8x8 resized to 28x28" in next(
        fact["value"] for fact in trained.document["facts"] if fact["name"] == "data"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("train", "net.py:build"), 2, "--dataset"),
        (("train", "net.py:build", "--dataset", "digit"), 2, "digits"),
        (("train", "net.py:build", "--dataset", "digits", "--augment", "turn"), 2, "flip, crop"),
        (("train", "net.py:build", "--dataset", "digits", "--epochs", "0"), 2, "--epochs"),
        (("train", "net.py:build", "--dataset", "digits", "--margin", "1"), 2, "percentage points"),
        (("train", "net.py:build", "--dataset", "digits", "--target", "0.9"), 2, "--target 95%"),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--rule",
                "mlperf",
                "--epochs",
                "20",
                "--repeats",
                "5",
            ),
            2,
            "--target 95%",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--rule",
                "mlperf",
                "--epochs",
                "19",
                "--repeats",
                "5",
                "--target",
                "90%",
            ),
            2,
            "19 evaluations a repeat",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--rule",
                "mlperf",
                "--epochs",
                "20",
                "--repeats",
                "4",
                "--target",
                "90%",
            ),
            2,
            "4 repeats; allowed: 5 or more",
        ),
        (
            ("train", "net.py:build", "--dataset", "digits", "--sweep-init", "--init", "xavier"),
            2,
            "--sweep-init",
        ),
        (
            ("train", "net.py:build", "--dataset", "digits", "--init", "torch;torch"),
            2,
            "torch is named twice",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--init",
                "torch;xavier",
                "--repeats",
                "2",
                "--shard",
                "1/2",
                "--order-seed",
                "1",
            ),
            2,
            "not split over shards",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--levels",
                "eager",
                "--init",
                "kaiming:fan",
            ),
            2,
            "fan_in, fan_out",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--levels",
                "eager",
                "--init",
                "torch;normal:-1",
            ),
            2,
            "no standard deviation",
        ),
        (
            (
                "train",
                "net.py:build",
                "--dataset",
                "digits",
                "--levels",
                "eager",
                "--init",
                "normal",
            ),
            2,
            "normal:DEVIATION",
        ),
        (
            ("train", "net.py:build", "--dataset", "digits", "--levels", "eager", "--images", "10"),
            2,
            "one batch has 64",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_reason(arguments, code, words, place):
    process = place.start(*arguments)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code and words in errors, errors


def test_a_program_asks_for_a_training_and_gets_what_show_prints(place):
    request = {
        "verb": "train",
        "version": 1,
        "model": "net.py:build",
        "dataset": "digits",
        "levels": ["eager", "static"],
        "batch": 32,
        "threads": 1,
        "margin": 0.02,
        "scale": "images=0.2",
    }
    engine = subprocess.run(
        [str(PROGRAM), "engine"],
        input="".join(
            json.dumps({"id": n, "request": asked}) + "\n"
            for n, asked in enumerate(
                [request, request | {"init": "torch", "sweep_init": True, "rule": "mlperf"}]
            )
        ),
        env=place.environment,
        cwd=place.folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    lines = [json.loads(line) for line in engine.stdout.splitlines()]
    answers = {line["id"]: line for line in lines if "event" not in line}
    assert answers[0]["exit_code"] == 0, answers[0]
    assert any("scaled: " in line.get("text", "") for line in lines), "what is cut is an event"
    shown = place.run("show", answers[0]["run"], "--format", "json")
    assert shown.document == answers[0]["result"]
    assert "--rule mlperf counts the epochs to a target" in answers[1]["error"]["what"]


def test_a_suite_trains_a_part_says_so_and_the_next_plan_knows_its_steps(place):
    (place.folder / "suite.toml").write_text("""title = "Digits"
[[entry]]
verb = "train"
model = "net.py:build"
dataset = "digits"
levels = ["eager", "static"]
batch = 32
threads = 1
order-seed = [5, 6]
""")
    done = place.run("run", "suite.toml", "--scale", "images=0.25", "--format", "json")
    assert done.code == 0, done.errors
    rows = done.tables["entries"]["rows"]
    assert [row["state"] for row in rows] == ["done", "done"] and done.document[
        "summary"
    ].startswith("Scaled by --scale images=0.25. 2 entries: 2 done"), done.document
    assert done.errors.count("predicted") == 2, "each training says how far off its prediction was"
    trained = place.run("show", rows[1]["run"], "--format", "json")
    assert trained.document["summary"].startswith(
        "Scaled: 1 of 1 epoch, 1 of 1 repeat, 359 of 1437 images. After 1 epoch on digits"
    )
    facts = {fact["name"]: fact["value"] for fact in trained.document["facts"]}
    assert (
        "--order-seed 6" in facts["command"]
        and "--scale images=0.25" in facts["command"]
        and facts["suite"].startswith("Digits, entry 2")
    )
    words = [
        "train",
        "net.py:build",
        "--dataset",
        "digits",
        "--levels",
        "eager,static",
        "--batch",
        "32",
        "--threads",
        "1",
        "--dry-run",
    ]
    plan = place.run(*words, "--format", "json").document
    assert [level["from"] for level in plan["levels"]] == [
        f"measured in run {rows[1]['run']}"
    ] * 2 and plan["train_images"] == 1437
