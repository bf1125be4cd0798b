# SPDX-License-Identifier: Apache-2.0
"""`strata generate --train`: a program that trains, against the reference, in a memory budget."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from generated import build_with_kit

DROPPING = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:dropping_network"


def test_a_training_step_has_the_loss_and_gradients_of_the_reference_and_notices_other_weights(
    trainer, tmp_path
):
    import numpy as np
    from safetensors.numpy import load_file, save_file

    network = trainer / "build" / "network"
    done = subprocess.run([network, "--check", "--threads", "1"], capture_output=True, text=True)
    gradients = sum(
        name.startswith("output/grad:") for name in load_file(trainer / "reference.safetensors")
    )
    assert (
        done.returncode == 0
        and gradients >= 8
        and f"{gradients + 1} of {gradients + 1} tensors equal" in done.stdout
    ), done.stdout + done.stderr
    tensors = {
        name: np.array(value) for name, value in load_file(trainer / "weights.safetensors").items()
    }
    first = next(name for name in tensors if tensors[name].ndim == 4)
    tensors[first][0] *= 1.1
    save_file(tensors, tmp_path / "other.safetensors")
    done = subprocess.run(
        [network, "--check", "--weights", tmp_path / "other.safetensors"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "grad:" in done.stdout and "WRONG" in done.stdout


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_a_training_program_lowers_the_loss_and_saves_what_it_trained_by_pytorchs_names(
    trainer, tmp_path, optimiser
):
    import numpy as np
    from safetensors.numpy import load_file

    saved = tmp_path / "trained.safetensors"
    done = subprocess.run(
        [
            trainer / "build" / "network",
            "--steps",
            "40",
            "--optimiser",
            optimiser,
            "--lr",
            "0.05" if optimiser == "sgd" else "0.003",
            "--threads",
            "1",
            "--save",
            saved,
        ],
        capture_output=True,
        text=True,
    )
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and losses[-1] < 0.5 * losses[0], done.stdout + done.stderr
    before, after = load_file(trainer / "weights.safetensors"), load_file(saved)
    assert set(after) == set(before) and all(
        after[name].shape == before[name].shape and not np.array_equal(after[name], before[name])
        for name in after
    )
    assert {
        int(value) for name, value in after.items() if name.endswith("num_batches_tracked")
    } == {40}


def test_a_training_step_under_its_least_memory_budget_trains_to_the_same_bytes(
    strata, trainer, tmp_path
):
    words = ("generate", DROPPING, "--threads", "1", "--train", "-o")
    whole = strata.run(*words, str(tmp_path / "whole"))
    refused = strata.run(*words, str(tmp_path / "none"), "--memory-budget", "1%")
    assert (
        whole.returncode == 0
        and refused.returncode == 1
        and "cannot be met" in refused.stderr
        and not (tmp_path / "none").exists()
    ), whole.stderr + refused.stderr
    least, every = map(
        int,
        re.search(
            r"the least found is (\d+) bytes, (\d+) with every result kept", refused.stderr
        ).groups(),
    )
    lean = strata.run(*words, str(tmp_path / "lean"), "--memory-budget", f"{least}B")
    assert (
        lean.returncode == 0
        and f"{least} bytes for activations" in lean.stdout
        and "steps of the forward phase are repeated" in lean.stdout
        and f"{every} bytes" in whole.stdout
    ), lean.stderr
    code = "".join(path.read_text() for path in (tmp_path / "lean" / "stages").iterdir())
    assert "(BatchNorm2d) with relu, again" in code and "dropout_again(p, " in code
    saved = []
    for name in ("whole", "lean"):
        network = build_with_kit(tmp_path / name, trainer)
        checked = subprocess.run(
            [network, "--check", "--threads", "1"], capture_output=True, text=True
        )
        trained = subprocess.run(
            [
                network,
                "--steps",
                "4",
                "--lr",
                "0.1",
                "--threads",
                "1",
                "--save",
                tmp_path / f"{name}.safetensors",
            ],
            capture_output=True,
            text=True,
        )
        assert checked.returncode == 0 and trained.returncode == 0, (
            checked.stdout + checked.stderr + trained.stderr
        )
        saved.append((tmp_path / f"{name}.safetensors").read_bytes())
    assert saved[0] == saved[1]
    from safetensors.numpy import load

    before = load((tmp_path / "lean" / "weights.safetensors").read_bytes())
    assert all((before[name] != value).any() for name, value in load(saved[1]).items())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda t: t[:-1]),
        ("labels", lambda t: t.astype("i4")),
        ("output/loss", lambda t: t.repeat(9)),
        ("grad", lambda t: t.repeat(9, 0)),
        ("input/input", lambda t: t.astype("f8")),
    ],
)
def test_a_batch_of_another_shape_is_refused_before_a_step_reads_it(
    trainer, tmp_path, name, change
):
    from safetensors.numpy import load_file, save_file

    for file in ("build/network", "build/libmodel.so", "weights.safetensors"):
        shutil.copy(trainer / file, tmp_path)
    tensors = load_file(trainer / "reference.safetensors")
    name = (
        next(key for key in tensors if key.startswith("output/grad:") and tensors[key].ndim == 4)
        if name == "grad"
        else name
    )
    save_file(
        tensors
        | {
            name: change(
                tensors[name].reshape(-1) if not tensors[name].ndim else tensors[name]
            ).copy()
        },
        tmp_path / "reference.safetensors",
    )
    done = subprocess.run([tmp_path / "network", "--check"], capture_output=True, text=True)
    assert done.returncode == 1 and f"'{name}' is" in done.stderr and not done.stdout, (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--steps"],
        ["--steps", "0"],
        ["--steps", "5", "--lr", "fast"],
        ["--steps", "5", "--optimiser", "adan"],
        ["--steps", "5", "--beta1", "1"],
        ["--chek"],
        ["--threads", "-1", "--check"],
    ],
)
def test_a_training_program_refuses_words_that_it_does_not_know(trainer, words):
    done = subprocess.run([trainer / "build" / "network", *words], capture_output=True, text=True)
    assert done.returncode == 2 and "--check | --steps N" in done.stderr
