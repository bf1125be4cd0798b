# SPDX-License-Identifier: Apache-2.0
"""Runs that real levels once measured (tests/recorded), one of every kind: what is said of them
stays as it was, to the digit, however the code that computes it changes."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "recorded"
RUNS = [
    "serving",
    "training-step",
    "against-itself",
    "open-batch",
    "precisions",
    "tuned",
    "map",
    "digits",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "strata.db"
    path.write_bytes(lzma.decompress((RECORDED / "strata.db.xz").read_bytes()))
    return path


def strata(*words: str) -> str:
    program = [ROOT / "build" / "release" / "strata", *words]
    done = subprocess.run(
        program, capture_output=True, text=True, env=os.environ | {"STRATA_ROOT": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kept(run: str, form: str) -> str:
    if form == "json":
        return lzma.decompress((RECORDED / f"{run}.json.xz").read_bytes()).decode()
    return (RECORDED / f"{run}.{form}").read_text(encoding="utf-8")


@pytest.mark.parametrize("run", RUNS)
def test_the_tables_of_a_recorded_run_are_as_they_were(run: str, store: Path) -> None:
    for form in ("md", "csv"):
        shown = strata("show", run, "--store", str(store), "--format", form)
        assert shown.splitlines() == kept(run, form).splitlines(), form


@pytest.mark.parametrize("run", RUNS)
def test_the_result_of_a_recorded_run_is_as_it_was(run: str, store: Path) -> None:
    shown = strata("show", run, "--store", str(store), "--format", "json")
    assert json.loads(shown) == json.loads(kept(run, "json"))
