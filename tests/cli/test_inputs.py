# SPDX-License-Identifier: Apache-2.0
"""--inputs: the user's tensors are the ring's, named in the answer and part of the case."""

from __future__ import annotations

import hashlib
import json
import shlex

import numpy as np
import pytest
from conftest import MODEL
from safetensors.numpy import save_file
from shipping_level import export, read, shipping_level

ROWS = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)  # four batches of MODEL's input, 2x8


def compare(strata, *more: str):
    done = strata.run(
        "compare",
        MODEL,
        "--levels",
        "one",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--threads",
        "1",
        "--store",
        str(strata.store),
        "--format",
        "json",
        *more,
    )
    return done, json.loads(done.stdout) if done.stdout else None


def test_what_was_captured_is_another_when_the_file_holds_other_numbers(strata):
    strata.level("one", rank=1)
    found = []
    for rows in (ROWS, ROWS[::-1], ROWS):
        save_file({"arg0": np.ascontiguousarray(rows)}, strata.folder / "own.safetensors")
        done, result = compare(strata, "--inputs", "own.safetensors")
        assert done.returncode == 0, done.stderr
        found.append(result["cases"][0])
    assert len({one["key"] for one in found}) == 1
    assert found[0]["network_hash"] == found[2]["network_hash"] != found[1]["network_hash"]
    source = found[0]["input_source"]
    assert source.startswith("the user's file own.safetensors (SHA-256 ")
    assert source.endswith(", its 4 batches")
    assert found[0]["case"]["inputs_label"].startswith("own.safetensors:")
    shown = strata.run("show", "last", "--store", str(strata.store)).stdout
    assert "own.safetensors (SHA-256 " in " ".join(shown.split())
    again = shlex.split(found[0]["rows"][0]["repeat"])
    assert again[again.index("--inputs") + 1] == str(strata.folder / "own.safetensors")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--inputs", "none.npz"], ["--inputs none.npz", "no such file"]),
        (["--inputs", "own.txt"], ["--inputs own.txt", ".safetensors, .npz"]),
        (["--inputs", "own.npz", "--synthetic"], ["--synthetic and --inputs exclude each other"]),
        (["--inputs", "own.npz", "--input-from", "."], ["--input-from and --inputs exclude"]),
        (["--inputs", "own.npz"], ["'x' is float64 8x8", "float32 2x8"]),
        (["--inputs", "own.npz", "--input", "mask=float32:1x8:2..1"], ["the range '2..1'"]),
    ],
)
def test_a_file_that_does_not_serve_is_wrong_usage(strata, arguments, words):
    strata.level("one", rank=1)
    np.savez(strata.folder / "own.npz", ROWS.astype(np.float64))
    (strata.folder / "own.txt").write_text("1 2 3\n")
    done, _ = compare(strata, *arguments)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr


def test_an_export_is_proven_on_the_inputs_of_the_file_and_on_no_others(strata):
    shipping_level(strata, "one", rank=1)
    np.savez(strata.folder / "own.npz", ROWS)
    done, _ = compare(strata, "--inputs", "own.npz")
    assert done.returncode == 0, done.stderr
    assert "warning" not in export(strata, "--inputs", "own.npz", level="one").stderr
    digest = hashlib.sha256((strata.folder / "own.npz").read_bytes()).hexdigest()
    assert digest[:12] in (strata.folder / "out" / "README.md").read_text(encoding="utf-8")
    np.savez(strata.folder / "own.npz", ROWS[::-1])
    other = export(strata, "--inputs", "own.npz", level="one", to="other")
    assert other.returncode == 0 and "own.npz changed since run " in other.stderr
    assert read(strata, "certificate.json", "other")["proven"] is False


def test_a_mask_of_ones_can_be_written(strata):
    strata.level("one", rank=1)
    done, result = compare(strata, "--input", "x=float32:2x8:1")
    assert done.returncode == 0, done.stderr
    assert "the constant 1.0" in result["cases"][0]["input_source"]
    assert "--input x=float32:2x8:1..1" in result["cases"][0]["rows"][0]["repeat"]
