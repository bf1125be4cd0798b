# SPDX-License-Identifier: Apache-2.0
"""strata doctor."""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path

import no_locks
import pytest
from commands import ROOT, executable


def test_doctor_gives_every_limit_a_reason_and_every_missing_thing_a_remedy(strata):
    done = strata.run("doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["schema"] == "strata.doctor/1"
    assert result["machine"]["cores"] >= 1
    checks = {(check["group"], check["name"]): check for check in result["checks"]}
    for group, name in [
        ("machine", "cores"),
        ("machine", "caches"),
        ("machine", "instruction sets"),
        ("machine", "governor"),
        ("machine", "SMT"),
        ("machine", "steal"),
        ("machine", "other load"),
        ("machine", "memory"),
        ("machine", "GPU"),
        ("software", "PyTorch"),
        ("levels", "eager"),
        ("levels", "libtorch"),
        ("set-up", "disk"),
        ("set-up", "still to do"),
    ]:
        assert (group, name) in checks
    for check in result["checks"]:
        assert check["standing"] in ("ok", "limited", "missing")
        assert check["found"] if check["standing"] == "ok" else check["reason"], check
        assert check["remedy"] or check["standing"] != "missing", check


def test_doctor_says_which_level_is_unavailable_and_why(strata):
    strata.level(
        "lonely", json_fields={"needs": ["no_such_module"], "start": ["{tools_python}", "x"]}
    )
    strata.level("broken_build", json_fields={"start": ["{build}/level_broken"]})
    build = strata.folder / "build"
    build.mkdir()
    (build / "FAILED").write_text("torch.h: no such file\n")
    strata.level("left_out", json_fields={"start": ["{build}/level_left_out"]})
    (build / "level_left_out.missing").write_text("the library is not in /there\ninstall it\n")
    strata.level("no_generator", json_fields={"prepare": ["{build}/generates"]})
    (build / "generates.missing").write_text("there is no C++ compiler\ninstall g++\n")
    done = strata.run("doctor", STRATA_LEVEL_BUILD=str(build))
    assert done.returncode == 0, done.stderr
    assert re.search(r"lonely +missing +Python module no_such_module is missing", done.stdout)
    assert (
        re.search(r"left_out +missing +the library is not in /there", done.stdout)
        and "install it" in done.stdout
    )
    assert re.search(r"no_generator +missing +there is no C\+\+ compiler", done.stdout)
    assert re.search(
        r"broken_build +missing +it could not be compiled: torch.h: no such file", done.stdout
    )


def test_doctor_works_without_any_environment(strata, tmp_path):
    done = strata.run(
        "doctor",
        STRATA_PYTHON=str(tmp_path / "nothing/python"),
        STRATA_TOOLS_PYTHON=str(tmp_path / "nothing/python"),
    )
    assert done.returncode == 0, done.stderr
    assert "is not set up" in done.stdout


def test_doctor_refuses_an_unknown_format(strata):
    assert strata.run("doctor", "--format", "jsno").returncode == 2


@pytest.fixture
def package(strata, tmp_path):
    """Variables for a strata that pip installed for an interpreter in no virtual environment, with
    two PyTorch to be found."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("levels", "models", "sdk", "src", "cmake", "runtime"):
        (root / name).symlink_to(ROOT / name)
    folders = []
    for version in ("2.15.0+cu132", "2.14.1"):
        folder = tmp_path / version
        (folder / "torch").mkdir(parents=True)
        (folder / "torch/__init__.py").touch()
        (folder / "torch/version.py").write_text(f"__version__ = '{version}'\n")
        folders.append(str(folder))
    metadata = tmp_path / "2.15.0+cu132/torch-2.15.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Name: torch\nVersion: 2.15.0\n")
    python = executable(tmp_path / "conda/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    executable(tmp_path / "conda/bin/cmake", "#!/bin/sh\necho cmake version 9.8.7\n")
    return {
        "STRATA_ROOT": str(root),
        "STRATA_PYTHON": str(python),
        "STRATA_TOOLS_PYTHON": str(python),
        "STRATA_COMMAND": "strata",
        "STRATA_OVERLAY": "",
        "PYTHONPATH": ":".join(folders),
    }


def checks_of(strata, package: dict[str, str]) -> dict[tuple[str, str], dict]:
    done = strata.run("doctor", "--format", "json", **package)
    assert done.returncode == 0, done.stderr
    return {(each["group"], each["name"]): each for each in json.loads(done.stdout)["checks"]}


def test_doctor_asks_the_interpreter_of_a_package_wherever_its_packages_lie(strata, package):
    checks = checks_of(strata, package)
    assert checks["software", "PyTorch"]["found"] == "2.15.0"
    assert checks["software", "CMake"]["found"] == "cmake version 9.8.7"
    assert "is not set up" not in json.dumps(list(checks.values()))


def test_a_package_offers_no_environment_that_only_a_clone_installs(strata, package):
    check = checks_of(strata, package)["levels", "ncnn"]
    assert check["standing"] == "missing" and "in a clone" in check["remedy"]
    done = strata.run("level", "install", "ncnn", **package)
    assert done.returncode == 3 and "in a clone" in done.stderr and "bash" not in done.stderr
    listed = json.loads(strata.run("list", "environments", "--format", "json", **package).stdout)
    default = next(each for each in listed if each["environment"] == "default")
    assert default["interpreter"] == package["STRATA_PYTHON"] and not default["problem"]


def test_doctor_says_which_of_two_pytorch_is_measured(strata, package):
    check = checks_of(strata, package)["levels", "PyTorch"]
    assert (check["standing"], check["found"]) == ("limited", "2.15.0")
    hidden = Path(package["PYTHONPATH"].split(":")[1])
    assert f"which is not measured: 2.14.1 in {hidden}" in check["reason"]
    assert "--python" in check["remedy"]
    package["PYTHONPATH"] = str(hidden)
    assert checks_of(strata, package)["levels", "eager"]["standing"] in ("ok", "missing")


def test_a_pytorch_without_metadata_has_the_version_that_it_says(strata, package):
    package["PYTHONPATH"] = package["PYTHONPATH"].split(":")[1]
    done = strata.run("list", "environments", "--format", "json", **package)
    assert done.returncode == 0, done.stderr
    assert "2.14.1" in {each["torch"] for each in json.loads(done.stdout)}


def test_what_a_package_lacks_is_installed_by_pip_and_not_by_strata(strata, package, tmp_path):
    script = f'#!/bin/sh\nfile=$1; shift\nexec {sys.executable} -S "$file" "$@"\n'
    executable(Path(package["STRATA_PYTHON"]), script)
    checks = checks_of(strata, package | {"PYTHONPATH": ""})
    for key, words in (
        (("software", "PyTorch"), f"{package['STRATA_PYTHON']} -m pip install torch"),
        (("software", "plotly"), f"{package['STRATA_PYTHON']} -m pip install plotly"),
        (("levels", "eager"), "install PyTorch 2.11 or newer there"),
        (("levels", "onnxruntime"), f"{package['STRATA_PYTHON']} -m pip install "),
    ):
        assert checks[key]["standing"] == "missing", key
        assert words in checks[key]["remedy"] and "compare" not in checks[key]["remedy"]


def test_a_page_is_drawn_with_the_plotly_that_the_interpreter_of_a_package_finds(
    strata, package, tmp_path
):
    python = Path(package["STRATA_PYTHON"])
    script = f'#!/bin/sh\nfile=$1; shift\nexec {sys.executable} -S "$file" "$@"\n'
    executable(python, script)
    result = lzma.open(ROOT / "tests/recorded/precisions.json.xz").read()
    (tmp_path / "result.json").write_bytes(result)
    words = ("report", "--from-json", str(tmp_path / "result.json"), "-o", str(tmp_path / "p.html"))
    done = strata.run(*words, **package)
    assert done.returncode == 3 and f"{python} has no plotly" in done.stderr
    assert f"{python} -m pip install plotly" in done.stderr
    drawing = tmp_path / "lent/plotly/package_data/plotly.min.js"
    drawing.parent.mkdir(parents=True)
    drawing.write_text("/* drawn */")
    (drawing.parents[1] / "__init__.py").touch()
    done = strata.run(*words, **package | {"PYTHONPATH": str(tmp_path / "lent")})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.html").exists()


def test_doctor_says_whether_the_cache_can_be_used(strata, tmp_path):
    (tmp_path / "file").touch()
    for variables, standing, words in (
        ({}, "ok", f"GB free in {tmp_path / 'cache/strata'}"),
        (no_locks.below(tmp_path, tmp_path), "limited", "no locks (No locks available)"),
        (
            {"XDG_CACHE_HOME": str(tmp_path / "file")},
            "limited",
            f"{tmp_path / 'file'} is no folder",
        ),
    ):
        done = strata.run(
            *("doctor", "--format", "json"),
            **{"STRATA_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "cache")} | variables,
        )
        checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
        cache = checks["cache"]
        assert cache["standing"] == standing and words in cache["found"] + cache["reason"], cache
        assert standing == "ok" or "STRATA_CACHE" in cache["remedy"]
