# SPDX-License-Identifier: Apache-2.0
"""The Python package as its user has it: built, installed beside a PyTorch, used. A quarter of an
hour of two cores; needs an index of packages."""

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


def run(*command: str | Path, codes: tuple[int, ...] = (0,), **how) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **how)
    assert done.returncode in codes, (done.stdout + done.stderr)[-4000:]
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
    run(python, "-m", "pip", "install", "-q", f"{wheel}[pack]")
    # behind its own packages, so that these are what is used of both
    (packages,) = folder.glob("lib/python3*/site-packages")
    (own,) = (ROOT / ".venv/lib").glob("python3*/site-packages")
    (packages / "torch_of_tests.pth").write_text(f"{own}\n")

    def strata(*words: str, codes: tuple[int, ...] = (0,), **environment: str) -> str:
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith("STRATA_")
        }
        caches = {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        variables |= caches | environment
        return run(folder / "bin/strata", *words, codes=codes, env=variables, cwd=folder)

    return strata


PROGRAMS = ("level_null_cpp", "level_onednn", "level_static", "strata_generate")


def test_it_is_small_and_of_an_old_enough_c_library(wheel, tmp_path):
    assert wheel.stat().st_size < MOST_BYTES and "py3-none-linux" in wheel.name
    archive = zipfile.ZipFile(wheel)
    for name in ("bin/strata", *(f"programs/{program}" for program in PROGRAMS)):
        program = archive.extract(f"stratabench/{name}", tmp_path)
        symbols = run("objdump", "-T", program)
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", symbols)}
        assert max(versions) <= OLDEST_GLIBC, name
        libraries = run("objdump", "-p", program)
        needed = set(re.findall(r"NEEDED +lib([a-z_]+)", libraries))
        assert needed <= {"c", "m", "gcc_s", "dnnl", "gomp"}, f"{name}: others are linked in"
        assert ("dnnl" in needed) == (name.endswith(("level_onednn", "level_static")))
        # no folder of the machine that built it
        assert set(re.findall(r"R(?:UN)?PATH +(.*)", libraries)) <= {"$ORIGIN"}


def test_levels_without_pytorch_start_without_cmake_and_onednn_without_a_compiler(
    installed, tmp_path
):
    call = (
        *("compare", str(ROOT / "examples/tiny_mlp.py:build"), "--levels", "eager,onednn,static"),
        *("--preset", "quick", "--budget", "1s", "--restarts", "2", "--format", "json"),
    )
    cache, no_compiler = tmp_path / "cache", tmp_path / "none"
    for name, rows in (
        (str(no_compiler), {"onednn": "measured", "static": "unavailable"}),
        ("g++", {"onednn": "measured", "static": "measured"}),
    ):
        said = installed(*call, codes=(0, 3), XDG_CACHE_HOME=str(cache), CXX=name)
        told = json.loads(said)["cases"][0]["rows"]
        states = {row["level"]: row["state"] for row in told}
        assert states == {"eager": "measured"} | rows, told
    assert list(cache.glob("strata/programs/*/*/level_onednn"))
    assert not list(cache.rglob("CMakeCache.txt"))


def test_it_compares_levels_of_every_kind_and_compiles_the_others_programs_once(installed):
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


def test_it_packs_itself_for_a_machine_without_a_network(installed, tmp_path):
    said = installed("pack", "-o", str(tmp_path / "there"), "--levels", "onednn")
    assert "levels: eager, onednn" in said and "there/run compare MODEL" in said
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
    python = os.environ.get("STRATA_PYTHON", sys.executable)
    listed = run(
        *(tmp_path / "there/run", "list", "levels", "--format", "json"),
        env=clean | {"STRATA_PYTHON": python, "STRATA_CACHE": str(tmp_path / "cache")},
    )
    assert "onednn" in listed and "static" not in listed
