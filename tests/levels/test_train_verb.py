# SPDX-License-Identifier: Apache-2.0
"""`strata train` from end to end at real levels: what is learned, what is kept and taken up again,
and that faults which begin in the middle of a training are found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import preloaded
import pytest
from client import FAULTY, PROGRAM, ROOT
from safetensors.numpy import load_file

NETWORK = '''
import torch
from torch import nn

class Net(nn.Module):
    """Digits (N, 1, 8, 8) -> logits (N, 10)."""

    def __init__(self, dropout):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8 * 4 * 4, 10)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn(self.conv(x))), 2)
        return self.fc(self.dropout(torch.flatten(x, 1)))

def build():
    return Net(0.0), torch.zeros(1, 1, 8, 8)

def with_dropout():
    return Net(0.3), torch.zeros(1, 1, 8, 8)

class Plain(nn.Module):
    """The same without what brings a signal back to its size."""

    def __init__(self):
        super().__init__()
        self.conv, self.hidden, self.fc = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(8 * 4 * 4, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.fc(torch.relu(self.hidden(torch.flatten(x, 1))))

def plain():
    return Plain(), torch.zeros(1, 1, 8, 8)
'''
LEVELS = "eager,torchscript,libtorch,onednn,static"


class Trained:
    """A finished `strata train`: its exit code, its document, its tables by id."""

    def __init__(self, done: subprocess.CompletedProcess) -> None:
        self.code, self.errors = done.returncode, done.stderr
        self.document = json.loads(done.stdout) if done.stdout else {}
        items = [item for section in self.document.get("sections", []) for item in section["items"]]
        self.tables = {item["id"]: item for item in items if item["kind"] == "table"}
        self.figures = {item["id"]: item for item in items if item["kind"] == "figure"}
        self.maps = {item["id"]: item for item in items if item["kind"] == "heat_map"}

    def row(self, table: str, level: str) -> dict:
        return next(row for row in self.tables[table]["rows"] if row["level"] == level)


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "net.py").write_text(NETWORK)
        self.environment = (
            os.environ
            | preloaded.interpreter()
            | {
                "STRATA_ROOT": str(ROOT),
                "XDG_DATA_HOME": str(folder),
                "STRATA_PYTHON": preloaded.PYTHON,
                "OMP_WAIT_POLICY": "PASSIVE",
                "STRATA_LEVEL_PATH": str(FAULTY.parent),
            }
        )

    def start(self, *arguments: str, **more: str) -> subprocess.Popen:
        return subprocess.Popen(
            [str(PROGRAM), *arguments],
            env=self.environment | more,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **more: str) -> Trained:
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=600)
        return Trained(subprocess.CompletedProcess(arguments, process.returncode, out, err))

    def train(
        self, levels: str, *more: str, model: str = "net.py:build", **environment: str
    ) -> Trained:
        return self.run(
            "train",
            model,
            "--dataset",
            "digits",
            "--levels",
            levels,
            "--batch",
            "32",
            "--threads",
            "1",
            "--order-seed",
            "5",
            "--format",
            "json",
            *more,
            **environment,
        )

    def checkpoint(self, name: str) -> dict[str, np.ndarray]:
        """Of the last run that has it."""
        return load_file(
            max(
                (self.folder / "strata" / "trainings").glob(f"*/{name}.safetensors"),
                key=lambda path: path.stat().st_mtime_ns,
            )
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return Place(tmp_path_factory.mktemp("training"))


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
    )
    assert trained.code == 0, trained.errors
    for level in LEVELS.split(","):
        proof, result = trained.row("proof", level), trained.row("result", level)
        assert proof["state"] == "measured" and proof["in_the_middle"]["value"] == 2 * (
            3 + 1 + 1
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
            and trained.row("proof", level)["in_the_middle"]["value"] == 5
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
    kept = max(
        (place.folder / "strata" / "trainings").glob("*/eager-r1-last.safetensors"),
        key=lambda path: path.stat().st_mtime,
    )
    second = place.train("eager", "--epochs", "1", "--images", "320", "--init", str(kept))
    assert second.code == 0, second.errors
    losses = [
        trained.figures["by_epoch"]["panels"][3]["lines"][0]["y"][0] for trained in (first, second)
    ]
    assert losses[1] < 0.7 * losses[0], losses
    assert "init:file:eager-r1-last-" in second.document["subtitle"]
    wrong = place.folder / "wrong.safetensors"
    wrong.write_bytes(b"no tensors")
    for bad, said in (
        (str(wrong), ""),
        ("nowhere.safetensors", "nowhere.safetensors"),
        ("kayming", "no such scheme"),
    ):
        refused = place.train("eager", "--epochs", "1", "--init", bad)
        assert (
            refused.code in (1, 2) and said in refused.errors and "Traceback" not in refused.errors
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
        trained.row("proof", "static")["in_the_middle"]["value"] == 5
        and trained.row("result", "static")["test_accuracy"]["value"] > 0.5
    )


def test_a_dataloader_is_proven_too_and_waits_for_its_own_images(place):
    trained = place.train(
        "eager,eager@dataloader", "--epochs", "1", "--images", "320", "--augment", "flip,crop"
    )
    assert trained.code == 0, trained.errors
    assert trained.row("proof", "eager@dataloader")["in_the_middle"]["value"] == 5, trained.row(
        "proof", "eager@dataloader"
    )
    waits = {
        level: trained.row("phases", level)["input_wait_seconds"]["value"]
        for level in ("eager", "eager@dataloader")
    }
    assert waits["eager@dataloader"] > 2 * waits["eager"], waits
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
    trained = place.train("eager", "--epochs", "2", "--images", "320", "--optimiser", "sgd:lr=1e10")
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
    kept = max(
        (place.folder / "strata" / "trainings").iterdir(), key=lambda path: path.stat().st_mtime_ns
    )
    assert {path.name for path in kept.iterdir()} == {
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
    assert trained.row("life_cycle", "static")["epoch"]["value"] > 0 and {
        row["what"] for row in trained.tables["reference_behind"]["rows"]
    } >= {"start", "train an epoch", "test"}


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
            else (
                "train",
                model,
                "--dataset",
                "digits",
                "--levels",
                levels,
                "--batch",
                "32",
                "--threads",
                "1",
                "--order-seed",
                "5",
                "--format",
                "json",
                *options,
            )
        )
        process = killed.start(*arguments)
        seen = len(list((killed.folder / "strata").glob("trainings/*/*-e*.state")))
        for _ in range(6000):
            states = sorted(
                path.name for path in (killed.folder / "strata").glob("trainings/*/*-e*.state")
            )
            if process.poll() is not None or (
                len(states) > seen and any("-e2" in name or "-e3" in name for name in states)
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
