# SPDX-License-Identifier: Apache-2.0
"""What a level in C++ says of a library that its artefact is and that cannot be loaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import ROOT

LOADS = """
#include <cstdio>
#include "strata/load_library.hpp"
int main(int, char** words) {
  try {
    strata::load_library(words[1], "made again");
    std::puts("loaded");
  } catch (const strata::Failure& failure) {
    std::printf("%s\\n%s\\n", failure.what(), failure.hint().c_str());
  }
}
"""
OLDER = "OLDER { global: symbol; };"
NEWER = "GLIBCXX_3.4.99 { global: symbol; };"


def build(source: str, target: Path, *words: str | Path, language: str = "c") -> Path:
    command = ["g++", "-x", language, "-", "-x", "none", "-o", target, *words]
    subprocess.run(command, input=source, text=True, check=True)
    return target


@pytest.fixture(scope="module")
def loads(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("loads") / "loads"
    folders = (f"-I{ROOT / 'sdk/cpp'}", f"-I{ROOT / 'src'}")
    return build(LOADS, target, "-std=c++20", *folders, "-ldl", language="c++")


def answer(loads: Path, library: Path) -> list[str]:
    return subprocess.check_output([loads, library], text=True).splitlines()


def test_a_library_of_an_older_cpp_library_is_told_with_what_to_do(loads, tmp_path):
    versions, standard = tmp_path / "versions", tmp_path / "libstandard.so.6"
    shared = (
        "-shared",
        "-fPIC",
        f"-Wl,--version-script={versions}",
        "-Wl,-soname,libstandard.so.6",
    )
    symbol = "int symbol(void) { return 1; }"
    versions.write_text(NEWER)
    build(symbol, standard, *shared)
    uses = "int symbol(void); int network(void) { return symbol(); }"
    network = tmp_path / "network.so"
    build(uses, network, standard, "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-nodefaultlibs")
    assert answer(loads, network) == ["loaded"]
    versions.write_text(OLDER)
    build(symbol, standard, *shared)
    what, hint = answer(loads, network)
    assert f"cannot load {network}: " in what and "version `GLIBCXX_3.4.99' not found" in what
    assert "LD_LIBRARY_PATH" in hint and "conda install -c conda-forge 'libstdcxx-ng>=12'" in hint


def test_a_library_that_is_damaged_is_made_again(loads, tmp_path):
    (tmp_path / "network.so").write_text("nothing")
    what, hint = answer(loads, tmp_path / "network.so")
    assert f"cannot load {tmp_path / 'network.so'}: " in what and hint == "made again"
