# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources of the program, with the checks of .clang-tidy: as they are compiled,
several files of a folder at once. Minutes of two cores."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
CLANG_TIDY = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
COMPILED = re.compile(
    r" -o (?:sdk/)?CMakeFiles/(strata_(?:graph|core|primitives)\.dir/(?:Unity|src)/\S+)\.o"
)
PRECOMPILED = re.compile(r" -Winvalid-pch| -include (\S*/cmake_pch\.hxx)")


def entries() -> dict[str, dict[str, str]]:
    """The compilations of the program's two libraries, and of that for levels on primitives, by
    name."""
    listed = [
        entry
        for file in (
            BUILD / "compile_commands.json",
            *BUILD.parent.glob("env-*/compile_commands.json"),
        )
        if file.exists()
        for entry in json.loads(file.read_text(encoding="utf-8"))
    ]
    return {match[1]: entry for entry in listed if (match := COMPILED.search(entry["command"]))}


@pytest.mark.parametrize("name", sorted(entries()))
def test_clang_tidy_has_nothing_to_say(name, tmp_path):
    if CLANG_TIDY is None:
        pytest.skip("the program clang-tidy is missing")
    entry = entries()[name]
    # the headers that all begin with; g++'s compiled form of them, which lies beside, is not read
    headers = tmp_path / "headers.hpp"
    included = filter(None, PRECOMPILED.findall(entry["command"]))
    headers.write_text("".join(f'#include "{file}"\n' for file in included), encoding="utf-8")
    command = f"{PRECOMPILED.sub('', entry['command'])} -include {headers}"
    commands = tmp_path / "compile_commands.json"
    commands.write_text(json.dumps([entry | {"command": command}]), encoding="utf-8")
    done = subprocess.run(
        [CLANG_TIDY, "-p", tmp_path, "--quiet", entry["file"]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-500:]
