# SPDX-License-Identifier: Apache-2.0
"""The verb `strata pack`: what it refuses, what it needs built, that it hands on what was asked.
Packs themselves: test_pack.py."""

from __future__ import annotations

import json

import pytest
from packed import Elsewhere, interpreter


@pytest.fixture
def elsewhere(tmp_path) -> Elsewhere:
    return Elsewhere(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["--output is required"]),
        (["-o", "x", "--levels", "no_such"], ["no_such", "unknown"]),
        (["-o", "x", "--levels", "ncnn"], ["ncnn brings a Python environment of its own"]),
        (["-o", "x", "--levels", "eager,eager"], ["eager is given twice"]),
        (["-o", "x", "--device", "tpu"], ["--device tpu: unknown", "cpu, cuda"]),
        (["-o", "x", "--for", "2.11"], ["--for 2.11: allowed: torch==2.11.0+cu130,python3.12"]),
        (["-o", "x", "--for", "python3.12,python3.11"], ["--for python3.12,python3.11: allowed"]),
        (["-o", "x", "--model", "resnet18"], ["--model"]),
    ],
)
def test_the_verb_refuses_what_it_cannot_pack_before_anything_is_written(strata, words, said):
    done = strata.run("pack", *words)
    assert done.returncode == 2 and "  try: " in done.stderr, done.stderr
    for word in said:
        assert word in done.stderr, done.stderr
    assert not (strata.folder / "x").exists()


def test_the_verb_needs_the_programs_of_the_levels_that_it_packs(strata):
    told = strata.run("--needs", "json", "pack", "-o", "x", "--levels", "libtorch,eager@fused")
    needs = json.loads(told.stdout)
    assert needs["set_up"]
    assert needs["environments"][0]["programs"] == ["level_libtorch", "strata_generate_libtorch"]
    told = strata.run(
        "--needs", "json", "pack", "-o", "x", "--levels", "static", "--device", "cuda"
    )
    assert "strata_for_cuda" in json.loads(told.stdout)["environments"][0]["programs"]


def test_a_pack_makes_no_pack(strata):
    done = strata.run("pack", "-o", "x", STRATA_PACK="/somewhere")
    assert done.returncode == 3 and "is a pack itself" in done.stderr


def test_the_verb_writes_a_pack_whose_run_is_this_strata(strata, elsewhere, tmp_path):
    python = str(interpreter(tmp_path / "environment"))
    done = strata.run("pack", "-o", "a pack", "--levels", "eager", STRATA_PYTHON=python)
    assert done.returncode == 0, done.stderr
    pack = strata.folder / "a pack"
    assert "levels: eager" in done.stdout and "'a pack/run'" in done.stdout
    listed = elsewhere.run(pack, "list", "levels", "--format", "json", python=python)
    assert listed.returncode == 0, listed.stderr
    assert "eager" in listed.stdout and "libtorch" not in listed.stdout
    other = strata.run(
        *("pack", "-o", "other", "--levels", "eager", "--for", "torch==2.15.0,python3.11"),
        STRATA_PYTHON=python,
    )
    assert other.returncode == 3 and "has torch 2.11.0+cu130, not 2.15.0" in other.stderr
    assert not (strata.folder / "other").exists()
