# SPDX-License-Identifier: Apache-2.0
"""The Dockerfiles of exported and generated folders. Tests have no Docker: a shell follows the
instructions, in a copy of the folder, where this environment's packages stand for those that an
image would install."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from written_folders import PROGRAM, ROOT, commands, follow, libraries_of, write

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

LEVELS = [
    "onnxruntime",
    *(pytest.param(name, marks=pytest.mark.long) for name in ("torchscript", "openvino")),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("images")


def exported(place: Path, level: str) -> Path:
    return write(place, level, "export", "--level", level)


def stages(folder: Path) -> list[list[tuple[str, str]]]:
    """The instructions of each stage, as ("RUN", "the rest"); a stage begins with its FROM."""
    out: list[list[tuple[str, str]]] = []
    for line in (folder / "Dockerfile").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        word, rest = line.split(" ", 1)
        if word == "FROM":
            out.append([])
        out[-1].append((word, rest))
    return out


def installs(command: str) -> bool:
    """Whether it installs packages, which must be those of this environment."""
    if command.startswith("apt-get "):
        assert {"cmake", "g++", "make"} <= set(command.split())
        return True
    if not command.startswith("pip install "):
        return False
    pins = [word for word in shlex.split(command)[2:] if not word.startswith("-")]
    assert pins
    for pin in pins:
        name, version = pin.split("==")
        assert importlib.metadata.version(name) == version, pin
    return True


def build_image(folder: Path, scratch: Path) -> tuple[Path, list[str]]:
    """Follows the Dockerfile; returns what its last stage holds in /network, and what it runs."""
    first, last = stages(folder)
    python = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim-bookworm AS build"
    assert first[0] == ("FROM", python) and last[0] == ("FROM", "debian:bookworm-slim")
    ignored = (folder / ".dockerignore").read_text(encoding="utf-8").split()
    inside, installed, network = scratch / "inside", scratch / "installed", scratch / "network"
    (scratch / "bin").mkdir()
    wrapper = scratch / "bin" / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    variables = {"PATH": f"{wrapper.parent}:{os.environ['PATH']}", "DNNL_ROOT": f"{ROOT}/.venv"}
    for word, rest in first[1:]:
        if word == "ARG":
            name, _, value = rest.partition("=")
            variables[name] = value
        elif word == "COPY":
            assert rest == ". ."
            shutil.copytree(folder, inside, ignore=shutil.ignore_patterns(*ignored))
        elif word == "RUN" and not installs(rest):
            done = follow(rest.replace("/installed", str(installed)), inside, **variables)
            assert done.returncode == 0, rest + done.stdout[-3000:] + done.stderr[-3000:]
    assert ("COPY", "--from=build /installed /network") in last
    shutil.move(installed, network)
    shutil.rmtree(inside)
    [program], [arguments] = (
        [json.loads(rest) for word, rest in last if word == kind] for kind in ("ENTRYPOINT", "CMD")
    )
    words = [re.sub("^/network", str(network), word) for word in program + arguments]
    return network, words


def needs_its_folder_alone(network: Path) -> None:
    """Every library is found beside the program, or is one of the system's."""
    system = re.compile(r"^(/usr)?/lib(64)?/([^/]*-linux-[^/]*/)?[^/]*$")
    for file in network.iterdir():
        if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
            continue
        said = libraries_of(file)
        assert "not found" not in said, (file, said)
        for found in re.findall(r"=> (/\S+)", said):
            assert Path(found).parent == network or system.match(found), (file, found)


def check_image(folder: Path, scratch: Path) -> str:
    network, words = build_image(folder, scratch)
    needs_its_folder_alone(network)
    ran = subprocess.run(words, env={}, cwd=network, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("level", [*LEVELS, pytest.param("aoti", marks=pytest.mark.long)])
def test_an_image_is_built_by_the_commands_of_the_readme_with_a_python_of_its_own(level, place):
    folder = exported(place, level)
    runs = [rest for word, rest in stages(folder)[0] if word == "RUN"]
    build, test, _ = commands(folder)
    own = build.replace(shlex.quote(sys.executable), "python")
    assert own != build and runs[2:4] == [own, test]


# aoti: where PyTorch has CUDA, its packages need gigabytes of libraries for that
@pytest.mark.parametrize("level", LEVELS)
def test_the_image_of_an_export_holds_all_that_its_program_needs(level, place, tmp_path):
    printed = check_image(exported(place, level), tmp_path)
    assert {line.split("/")[0] for line in printed.splitlines()} == {"0", "1", "2", "3"}


@pytest.mark.long
@pytest.mark.parametrize("target", ["onednn", "libtorch"])
def test_the_image_of_a_generated_program_holds_all_that_it_needs(target, place, tmp_path):
    if target == "onednn" and not (ROOT / ".venv" / "lib" / "libdnnl.so").exists():
        pytest.skip("no oneDNN in strata's own environment")
    assert "equal" in check_image(write(place, target, "generate", "--target", target), tmp_path)


def test_a_generated_program_for_cuda_comes_without_a_dockerfile(place):
    folder = write(place, "for_cuda", "generate", "--target", "cuda")
    assert not (folder / "Dockerfile").exists()
    assert "docker" not in (folder / "README.md").read_text(encoding="utf-8")
