# SPDX-License-Identifier: Apache-2.0
"""The Python package as its user has it: built, installed beside a PyTorch, used. Ten minutes of
two cores; needs an index of packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLDEST_GLIBC = (2, 34)
MOST_BYTES = 40e6


def run(*command: str | Path, **how) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **how)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, ROOT)
    (built,) = folder.glob("stratabench-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel, what it requires, and the tests' own PyTorch. Gives a function
    that calls its strata."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "-q", wheel)
    # behind its own packages, so that these are what is used of both
    (packages,) = folder.glob("lib/python3*/site-packages")
    (own,) = (ROOT / ".venv/lib").glob("python3*/site-packages")
    (packages / "torch_of_tests.pth").write_text(f"{own}\n")

    def strata(*words: str, **environment: str) -> str:
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith("STRATA_")
        }
        caches = {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        return run(folder / "bin/strata", *words, env=variables | caches | environment, cwd=folder)

    return strata


def test_it_is_small_and_of_an_old_enough_c_library(wheel, tmp_path):
    assert wheel.stat().st_size < MOST_BYTES and "py3-none-linux" in wheel.name
    zipfile.ZipFile(wheel).extract("stratabench/bin/strata", tmp_path)
    symbols = run("objdump", "-T", tmp_path / "stratabench/bin/strata")
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert max(versions) <= OLDEST_GLIBC
    libraries = run("objdump", "-p", tmp_path / "stratabench/bin/strata")
    needed = set(re.findall(r"NEEDED +lib([a-z_]+)", libraries))
    assert needed <= {"c", "m", "gcc_s"}, "all others are linked in"


def test_it_compares_levels_of_every_kind_and_compiles_their_programs_once(installed):
    levels = ("eager", "libtorch", "onednn", "static")
    call = (
        *("compare", str(ROOT / "examples/tiny_mlp.py:build"), "--levels", ",".join(levels)),
        *("--preset", "quick", "--budget", "1s", "--restarts", "2", "--format", "json"),
    )
    rows = json.loads(installed(*call))["cases"][0]["rows"]
    states = {row["level"]: (row["state"], row["reason"]) for row in rows}
    assert states == dict.fromkeys(levels, ("measured", "")), states
    again = json.loads(installed(*call, CXX="/no/compiler/is/needed"))["cases"][0]["rows"]
    assert {row["state"] for row in again} == {"measured"}
    said = installed("show", "last") + installed("list", "runs")
    assert "strata compare" in said and "./strata" not in said


def test_doctor_knows_that_it_is_a_package(installed):
    checks = json.loads(installed("doctor", "--format", "json"))["checks"]
    assert not [each for each in checks if each["group"] == "set-up"]
