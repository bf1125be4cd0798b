# SPDX-License-Identifier: Apache-2.0
"""Names that are code in some language (of a model's file, of its layers, of a folder) go through
everything that strata writes: nothing of them is executed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from shipping_level import shipping_level

# a file's name: a line of CMake, of C and C++, of Markdown, of the shell, ends of comments and
# strings
FILE = 'net\nexecute_process(COMMAND touch hit)\n#error hit\r#error hit\\\n* ]] "$(touch hit)${hit}`touch hit`\n# hit\n| hit | hit |.py'
MODEL = """
import torch
NAME = 'a*/ hit ]] ${hit} #error'
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module(NAME, torch.nn.Conv2d(3, 8, 3))
        self.relu = torch.nn.BatchNorm2d(8)
        self.Program = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3), torch.nn.SiLU())
        self.linear = torch.nn.Linear(8, 4)
        self.register_parameter("register", torch.nn.Parameter(torch.ones(4)))
    def forward(self, input):
        x = torch.relu(self.relu(getattr(self, NAME)(input)))
        return self.linear(self.Program(x).mean((2, 3))) * getattr(self, "register")
def build():
    torch.manual_seed(0)
    return Net().eval(), torch.randn(2, 3, 12, 12)
"""
TARGETS = {
    "onednn": [],
    "train": ["--train"],
    "libtorch": ["--target", "libtorch"],
    "cuda": ["--target", "cuda"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory, cache):
    from conftest import Strata

    return Strata(tmp_path_factory.mktemp("hostile") / "place", cache)


@pytest.fixture(scope="module")
def model(place) -> str:
    (place.folder / FILE).write_text(MODEL, encoding="utf-8")
    return f"{place.folder / FILE}:build"


def lines_of(folder: Path):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cpp", ".hpp", ".h", ".cu", ".txt", ".md", ".cmake", ".py"):
            for line in re.split(r"[\n\r\v\f\x85\u2028\u2029]", path.read_text(encoding="utf-8")):
                yield path, line


def must_be_inert(folder: Path) -> None:
    """No line begins with a word of the names, none ends with a backslash, and nothing has run."""
    for path, line in lines_of(folder):
        assert not re.match(
            r"\s*(execute_process\(COMMAND touch|#\s*error|#\s*hit|hit|\*/|\]\]|\| hit)", line
        ), (path.name, line)
        assert path.suffix == ".md" or not (line.endswith("\\") and "hit" in line), (
            path.name,
            line,
        )
    assert not list(folder.rglob("hit"))


def must_compile(folder: Path, names: list[str]) -> None:
    (folder / "all.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
    checked = subprocess.run(
        ["g++", "-std=gnu++20", "-fsyntax-only", "-Wall", "-I", folder, folder / "all.cpp"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr[-3000:]


@pytest.mark.parametrize("target", TARGETS)
def test_generated_programs_are_code_of_stratas_own_alone(target, place, model, tmp_path):
    folder = tmp_path / "made"
    done = place.run("generate", model, "-o", str(folder), "--threads", "1", *TARGETS[target])
    assert done.returncode == 0, done.stderr
    must_be_inert(folder)
    if target != "libtorch":
        must_compile(
            folder,
            [
                path.relative_to(folder).as_posix()
                for path in [*folder.glob("*.cpp"), *folder.glob("stages/*.cpp")]
            ],
        )


@pytest.mark.parametrize("target", ["onednn", "libtorch"])
def test_cmake_runs_nothing_of_a_name(target, place, model, tmp_path):
    """CMake reads the whole file, whatever it finds on this machine."""
    folder = tmp_path / "made"
    assert (
        place.run(
            "generate", model, "-o", str(folder), "--threads", "1", *TARGETS[target]
        ).returncode
        == 0
    )
    text = (folder / "CMakeLists.txt").read_text()
    (folder / "CMakeLists.txt").write_text(
        text.replace("LANGUAGES CXX", "LANGUAGES NONE")
        .split("find_package")[0]
        .split("include(")[0]
    )
    done = subprocess.run(
        ["cmake", "-S", folder, "-B", folder / "build"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("hit"))


def test_an_export_is_code_of_stratas_own_alone(place, model, tmp_path):
    shipping_level(place)
    done = place.run(
        "export",
        model,
        "--level",
        "shipped",
        "-o",
        str(tmp_path / "out"),
        "--store",
        str(tmp_path / "none.db"),
        "--threads",
        "1",
    )
    assert done.returncode == 0, done.stderr
    must_be_inert(tmp_path / "out")
    (tmp_path / "all.cpp").write_text(
        '#include "out/case.hpp"\nint main() { return kInputs.size() == 1 && kOutputs.size() == 1 ? 0 : 1; }\n'
    )
    checked = subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-fsyntax-only",
            "-Wall",
            *(f"-I{ROOT / 'runtime' / name}" for name in ("serve", "template", "kit")),
            tmp_path / "all.cpp",
        ],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr[-3000:]


def test_commands_of_an_export_name_interpreters_as_words_of_the_shell(strata, tmp_path):
    interpreter = tmp_path / "py thon; touch hit #"
    interpreter.write_text(
        f'#!/bin/sh\nexec {shlex.quote(strata.environment["STRATA_TOOLS_PYTHON"])} "$@"\n'
    )
    interpreter.chmod(0o755)
    shipping_level(strata)
    done = strata.run(
        "export",
        str(ROOT / "examples" / "tiny_mlp.py") + ":build",
        "--level",
        "shipped",
        "-o",
        "out",
        "--store",
        str(strata.store),
        "--threads",
        "1",
        STRATA_TOOLS_PYTHON=str(interpreter),
    )
    assert done.returncode == 0, done.stderr
    command = (
        (strata.folder / "out" / "README.md")
        .read_text(encoding="utf-8")
        .split("```\n")[1]
        .splitlines()[1]
    )
    assert shlex.split(command) == [str(interpreter), "check.py", str(interpreter), "serve.py"]
    ran = subprocess.run(
        ["sh", "-c", command], cwd=strata.folder / "out", capture_output=True, text=True
    )
    assert ran.returncode == 0 and not list(strata.folder.rglob("hit")), ran.stderr


def test_a_new_level_is_told_of_in_words_of_the_shell(strata):
    into = strata.folder / "le vels <b>`touch hit`"
    into.mkdir()
    done = strata.run("level", "new", "mine", "--language", "c++", "--into", str(into))
    assert done.returncode == 0, done.stderr
    commands = {
        line.split(": ", 1)[0]: line.split(": ", 1)[1]
        for line in done.stdout.splitlines()
        if ": " in line
    }
    assert shlex.split(commands["check it"])[-1] == str(into / "mine")
    assert (
        str(into / "mine") in shlex.split(commands["build it"])
        and shlex.split(commands["use it"])[0] == f"STRATA_LEVEL_PATH={into}"
    )
    assert [shlex.split(line)[1] for line in done.stdout.splitlines() if line.startswith("wrote ")]
    readme = (into / "mine" / "README.md").read_text()
    assert (
        f"`` strata level check '{into / 'mine'}' ``" in readme
        or f"``strata level check '{into / 'mine'}'``" in readme
    )
