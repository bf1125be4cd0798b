# SPDX-License-Identifier: Apache-2.0
"""Programs that the Python package brings compiled: how they come to where the driver looks, with
which oneDNN, and what is compiled on the user's machine all the same. In a package of fakes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from commands import executable
from fake_package import TOOL, Package, of

VERSION = """
struct Version { int major, minor, patch; };
const struct Version* dnnl_version(void) { static const struct Version version = {%s}; return &version; }
"""
PROGRAM = """
#include <stdio.h>
const int* dnnl_version(void);
int main(void) { printf("%d.%d.%d", dnnl_version()[0], dnnl_version()[1], dnnl_version()[2]); }
"""


def build(source: str, target: Path, *words: str | Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-x", "c", "-", "-x", "none", "-o", target, *words]
    subprocess.run(command, input=source, text=True, check=True)


@pytest.fixture
def package(tmp_path):
    return Package(tmp_path)


class WithOnednn:
    """A package whose level_onednn and strata_generate were built against version 3.2.0, and an
    environment where pip installed some version."""

    def __init__(self, package: Package) -> None:
        self.package, self.site = package, package.folder.parent
        self.programs = package.folder / "programs"
        self.install("3, 2, 0")
        library = self.site.parent / "lib/libdnnl.so.3"
        build(PROGRAM, self.programs / "level_onednn", library, "-Wl,-rpath,$ORIGIN")
        build("int main(void) {}", self.programs / "strata_generate")
        (self.programs / "strata_generate.built_with").write_text(
            "onednn=3.2.0\nkit_options=-O3 -march=native\ncuda_missing=no nvcc\n"
        )
        kit = package.folder / "tree/runtime/kit"
        kit.mkdir(parents=True)
        for name in ("one.cpp", "two.cpp", "one.hpp"):
            (kit / name).touch()

    def install(self, version: str, files: str = "../lib/libdnnl.so.3,,") -> None:
        library = self.site.parent / "lib/libdnnl.so.3"
        build(VERSION % version, library, "-shared", "-fPIC", f"-Wl,-soname,{library.name}")
        header = self.site.parent / "include/oneapi/dnnl/dnnl.hpp"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()
        headers = "../include/dnnl.hpp,,\n../include/oneapi/dnnl/dnnl.hpp,,"
        for name, record in (("onednn_cpu_gomp", files), ("onednn_devel_cpu_gomp", headers)):
            about = self.site / f"{name}-1.dist-info"
            about.mkdir(exist_ok=True)
            (about / "METADATA").write_text(f"Name: {name.replace('_', '-')}\nVersion: 1\n")
            (about / "RECORD").write_text(f"{record}\n")

    def call(self, *programs: str, **environment: str) -> tuple[Path, str]:
        """Where they are then, and what was said."""
        self.package.needs(of(*programs))
        _, variables, said = self.package.call("compare", "x", **environment)
        return Path(variables["STRATA_LEVEL_BUILD"]), said


@pytest.fixture
def onednn(package):
    return WithOnednn(package)


def test_what_the_package_brings_is_taken_and_the_rest_compiled(package):
    brought = executable(package.folder / "programs/level_a", "#!/bin/sh\necho first")
    package.needs(of("level_a"))
    _, variables, said = package.call("compare", "x")
    taken = Path(variables["STRATA_LEVEL_BUILD"]) / "level_a"
    assert said == "" and package.asked() == [] and os.access(taken, os.X_OK)
    executable(brought, "#!/bin/sh\necho newer")
    package.needs(of("level_a", "level_b"))
    package.call("compare", "x")
    built = package.asked()[-1]
    assert built.endswith(" level_b") and "level_a" not in built
    assert taken.read_text() == brought.read_text() and (taken.parent / "level_b").exists()


def test_a_program_calls_the_onednn_that_pip_installed_here(onednn):
    folder, said = onednn.call("level_onednn")
    assert subprocess.check_output([folder / "level_onednn"], text=True) == "3.2.0"
    assert said == "" and onednn.package.asked() == []
    onednn.install("3, 9, 1")
    folder, _ = onednn.call("level_onednn")
    assert subprocess.check_output([folder / "level_onednn"], text=True) == "3.9.1"


@pytest.mark.parametrize(
    ("version", "record", "words"),
    [
        ("3, 1, 9", "../lib/libdnnl.so.3,,", ("oneDNN 3.1.9", "too old", "against 3.2.0")),
        ("3, 2, 0", "../lib/gone.so.3,,", ("oneDNN is not installed here", "libdnnl.so.3")),
    ],
)
def test_without_that_onednn_its_levels_say_so_and_others_run(onednn, version, record, words):
    onednn.install(version, record)
    executable(onednn.programs / "level_a", "#!/bin/sh")
    folder, _ = onednn.call("level_onednn", "level_a")
    reason, advice = (folder / "level_onednn.missing").read_text().splitlines()
    assert all(word in reason for word in words) and "pip install onednn-cpu-gomp" in advice
    assert not (folder / "level_onednn").exists() and (folder / "level_a").exists()
    onednn.install("3, 2, 0")
    folder, _ = onednn.call("level_onednn", "level_a")
    assert (folder / "level_onednn").exists() and not (folder / "level_onednn.missing").exists()


def test_a_library_that_the_machine_lacks_is_named(onednn):
    other = onednn.site.parent / "libother.so.1"
    build("int other(void) { return 1; }", other, "-shared", "-fPIC", "-Wl,-soname,libother.so.1")
    build("int other(void); int main(void) { return other(); }", onednn.programs / "level_a", other)
    folder, _ = onednn.call("level_a")
    assert "libother.so.1 is missing" in (folder / "level_a.missing").read_text()


def test_a_program_that_cannot_be_started_is_told_with_the_reason(onednn):
    (onednn.programs / "level_a").write_bytes(b"\x7fELF of another machine")
    folder, _ = onednn.call("level_a")
    reason = (folder / "level_a.missing").read_text()
    assert "level_a cannot be started: Exec format error" in reason and "STRATA_CACHE" in reason


def test_what_generated_programs_share_is_compiled_once_for_this_processor(onednn):
    folder, said = onednn.call("strata_generate")
    one, two, ar = sorted(onednn.package.asked(), key=lambda line: line.startswith("ar"))
    assert "half a minute" in said and ar.startswith("ar rcs ")
    assert "-O3 -march=native" in one and {one.split()[-3], two.split()[-3]} == {
        str(onednn.package.folder / f"tree/runtime/kit/{name}.cpp") for name in ("one", "two")
    }
    assert f"-isystem {onednn.site.parent / 'include'} " in one
    (made,) = folder.glob("kit-*/libstrata_kit.a")
    lines = (folder / "strata_generate.built_with").read_text().splitlines()
    assert f"cpu_linked={made}|{onednn.site.parent / 'lib/libdnnl.so.3'}" in lines
    assert f"runtime={onednn.package.folder / 'tree/runtime'}" in lines
    assert f"compiler={onednn.package.tools / 'c++'}" in lines and "cuda_missing=no nvcc" in lines
    assert onednn.call("strata_generate") == (folder, "") and onednn.package.asked() == []


def test_what_cmake_says_of_a_program_that_the_package_brings_is_replaced(onednn):
    cmake = onednn.package.tools / "cmake"
    writes = '(b / "strata_generate.built_with").write_text("cpu_linked=of a clone")'
    finds = 'b = pathlib.Path(words[words.index("-B") + 1])'
    executable(cmake, f"{TOOL}\nif name == 'cmake':\n    {finds}\n    {writes}\n")
    folder, _ = onednn.call("level_a", "strata_generate")
    text = (folder / "strata_generate.built_with").read_text()
    assert (folder / "level_a").exists() and "of a clone" not in text
    assert "libstrata_kit.a|" in text and next(folder.glob("kit-*/libstrata_kit.a"))


def test_without_a_compiler_static_says_so_and_onednn_runs(onednn):
    (onednn.package.tools / "c++").unlink()
    folder, _ = onednn.call("strata_generate", "level_onednn")
    reason, advice = (folder / "strata_generate.missing").read_text().splitlines()
    assert "no C++ compiler" in reason and "g++ 12" in advice
    assert (folder / "level_onednn").exists() and not (folder / "strata_generate").exists()
    executable(onednn.package.tools / "c++", TOOL)
    folder, _ = onednn.call("strata_generate", "level_onednn")
    assert (folder / "strata_generate").exists()


@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        ("", "broken.cpp:1: error: no such thing"),
        ("/no/such", "cannot start /no/such: No such file"),
    ],
)
def test_a_compiler_that_does_not_do_is_told_in_its_own_words(onednn, compiler, words):
    (onednn.package.folder / "tree/runtime/kit/broken.cpp").touch()
    folder, _ = onednn.call("strata_generate", **({"CXX": compiler} if compiler else {}))
    assert words in (folder / "strata_generate.missing").read_text()
    assert not (folder / "strata_generate").exists()


def test_where_programs_for_a_gpu_can_be_compiled_all_are(onednn):
    executable(onednn.package.tools / "nvcc", "#!/bin/sh")
    executable(onednn.programs / "level_a", "#!/bin/sh")
    folder, _ = onednn.call("level_a", "strata_for_cuda")
    assert onednn.package.asked()[-1].endswith(" level_a") and (folder / "level_a").exists()
