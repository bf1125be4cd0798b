# SPDX-License-Identifier: Apache-2.0
"""The command of the Python package: what it asks, what it compiles, and how it becomes the
driver. In a package of fakes: nothing is compiled here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT, executable

DRIVER = f"""#!{sys.executable}
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "--needs":
    assert sys.argv[2] == "json"
    print(open(here + "/needs.json").read())
else:
    print(json.dumps([sys.argv[1:], {{k: v for k, v in os.environ.items() if k.startswith("STRATA_")}}]))
"""
# writes down that it was asked; ninja makes the programs, but those whose name says otherwise
TOOL = f"""#!{sys.executable}
import pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open(pathlib.Path(__file__).parent / "asked", "a") as log:
    print(name, *words, file=log)
if name == "cmake":
    pathlib.Path(words[words.index("-B") + 1], "build.ninja").touch()
elif "-t" in words:
    print("level_a: phony\\nlevel_b: phony\\nlevel_broken: phony")
else:
    folder = pathlib.Path(words[words.index("-C") + 1])
    for program in words[words.index("-j") + 2 :]:
        if program == "level_broken":
            sys.exit("a.cpp:1: error: no such thing")
        (folder / program).touch()
"""


class Package:
    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder / "site/stratabench", folder / "tools"
        shutil.copytree(ROOT / "python/stratabench", self.folder)
        executable(self.folder / "bin/strata", DRIVER)
        # beside its interpreter there are neither cmake nor ninja
        self.python = self.tools / "python"
        for name in ("cmake", "ninja", "c++"):
            executable(self.tools / name, TOOL)
        self.cache = folder / "cache"

    def needs(self, *environments: dict, set_up: bool = True) -> None:
        told = {"set_up": set_up, "environments": list(environments)}
        (self.folder / "bin/needs.json").write_text(json.dumps(told))

    def call(self, *arguments: str, **environment: str) -> tuple[list[str], dict[str, str], str]:
        """The arguments and variables that the driver got, and what was said."""
        done = subprocess.run(
            [sys.executable, "-c", "from stratabench.launcher import main; main()", *arguments],
            env={
                "PATH": str(self.tools),
                "PYTHONPATH": str(self.folder.parent),
                "STRATA_CACHE": str(self.cache),
                "HOME": str(self.cache),
            }
            | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        words, variables = json.loads(done.stdout)
        return words, variables, done.stderr

    def asked(self) -> list[str]:
        """Which tools were called, by their first words."""
        log = self.tools / "asked"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def package(tmp_path):
    return Package(tmp_path)


def of(*programs: str, name: str = "", python: str = "") -> dict:
    return {"name": name, "python": python, "programs": list(programs)}


def test_what_needs_nothing_is_the_drivers_at_once(package):
    package.needs(set_up=False)
    words, variables, said = package.call("show", "a b", "", "*")
    assert words == ["show", "a b", "", "*"] and said == "" and package.asked() == []
    assert variables["STRATA_ROOT"] == str(package.folder / "tree")
    assert variables["STRATA_PYTHON"] == variables["STRATA_TOOLS_PYTHON"] == sys.executable
    assert variables["STRATA_COMMAND"] == "strata" and "STRATA_ENVIRONMENTS" not in variables


def test_programs_that_are_missing_are_compiled_once(package):
    package.needs(of("level_a"))
    _, variables, said = package.call("compare", "x")
    folder = variables["STRATA_LEVEL_BUILD"]
    assert "compiling, once" in said and (Path(folder) / "level_a").exists()
    configured, _, built = package.asked()
    assert f"-B {folder}" in configured and f"-DSTRATA_PYTHON={sys.executable}" in configured
    assert f"-DSTRATA_LIBRARIES={package.folder / 'libraries'}" in configured
    assert built.endswith(" level_a")
    assert package.call("compare", "x")[2] == "" and package.asked() == []
    package.needs(of("level_a", "level_b"))
    package.call("compare", "x")
    assert package.asked()[-1].endswith(" level_b")


def test_another_driver_has_programs_of_its_own(package):
    package.needs(of("level_a"))
    first = package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"]
    executable(package.folder / "bin/strata", DRIVER + "# newer\n")
    assert package.call("compare", "x")[1]["STRATA_LEVEL_BUILD"] != first


def test_without_a_compiler_each_level_says_so_and_the_call_goes_on(package):
    (package.tools / "c++").unlink()
    package.needs(of("level_a"))
    words, variables, _ = package.call("compare", "x")
    assert words == ["compare", "x"] and package.asked() == []
    reason, advice = (
        (Path(variables["STRATA_LEVEL_BUILD"]) / "level_a.missing").read_text().splitlines()
    )
    assert "no C++ compiler" in reason and "g++" in advice
    # and is made when there is one
    executable(package.tools / "c++", TOOL)
    package.call("compare", "x")
    assert package.asked()[-1].endswith(" level_a")


def test_in_a_folder_that_others_may_write_to_nothing_is_compiled_or_run(package):
    package.cache.mkdir()
    package.cache.chmod(0o777)
    package.needs(of("level_a"))
    assert package.call("compare", "x")[2] == "" and package.asked() == []


def test_a_program_that_does_not_compile_is_told_with_the_compilers_words(package):
    package.needs(of("level_a", "level_broken"))
    words, variables, said = package.call("compare", "x")
    folder = Path(variables["STRATA_LEVEL_BUILD"])
    assert words == ["compare", "x"] and "no such thing" in said
    assert "no such thing" in (folder / "FAILED").read_text() and (folder / "level_a").exists()


def test_each_of_several_environments_has_its_own(package, tmp_path):
    other = executable(tmp_path / "other/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    package.needs(
        of("level_a", name="mine", python=sys.executable),
        of("level_b", name="other", python=str(tmp_path / "other")),
    )
    _, variables, _ = package.call("compare", "x")
    lines = [line.split("\t") for line in variables["STRATA_ENVIRONMENTS"].splitlines()]
    assert [line[:2] for line in lines] == [["mine", sys.executable], ["other", str(other)]]
    assert variables["STRATA_LEVEL_BUILD"] == lines[0][2] != lines[1][2]
    assert (Path(lines[1][2]) / "level_b").exists()


@pytest.mark.parametrize("how", ["folder", "name", "variable"])
def test_another_interpreter_is_named_in_any_form(package, tmp_path, how):
    other = executable(tmp_path / "other/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    more = {"PATH": f"{package.tools}{os.pathsep}{other.parent}"} if how == "name" else {}
    if how == "variable":
        more = {"STRATA_PYTHON": str(other)}
    named = {"folder": str(tmp_path / "other"), "name": "python", "variable": ""}[how]
    package.needs(of(python=named))
    assert package.call("compare", "x", **more)[1]["STRATA_PYTHON"] == str(other)
