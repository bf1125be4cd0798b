# SPDX-License-Identifier: Apache-2.0
"""Many networks through the generator at once: their programs compiled as one file (a compiler
reads headers for longer than it compiles a small network) and run one after the other in a process
of their own, which may crash."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from client import PROGRAM, ROOT
from level_builds import BUILD
from safetensors.numpy import load_file

HERE = Path(__file__).resolve().parent
WRITER = PROGRAM.with_name("strata_network_code")


def onednn() -> Path:
    return Path(
        re.search(r"^STRATA_ONEDNN_ROOT:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
    )


def written(bundles: list[Path]) -> dict[Path, str]:
    """Writes the program of each into <bundle>/program; what was refused, and why."""
    done = subprocess.run([WRITER, *bundles], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return {bundle: why for bundle, why in zip(bundles, done.stdout.split("\n")) if why}


def unit(bundles: list[Path]) -> str:
    """The file that holds all programs. What stages include stands before them: they name it from
    the folder above theirs."""
    lines = ['#include "several_programs.hpp"']
    for bundle in bundles:
        program = bundle / "program"
        trains = (program / "training.cpp").exists()
        lines += [
            f"namespace {bundle.name} {{",
            *(
                f'#include "{program / file}"'
                for file in ("model.cpp", *(["training.cpp"] if trains else []), "program.cpp")
            ),
        ]
        lines += [
            re.sub(r"^#include .*\n", "", stage.read_text(), flags=re.M)
            for stage in sorted((program / "stages").iterdir())
        ]
        lines += ["}", f"{'EXPORT_TRAINING' if trains else 'EXPORT_NETWORK'}({bundle.name})"]
    return "\n".join(lines) + "\n"


def compiled(bundles: list[Path], folder: Path) -> Path:
    source, library, lib = folder / "all.cpp", folder / "all.so", onednn() / "lib"
    source.write_text(unit(bundles))
    compiler = re.search(
        r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M
    )[1]
    own = ROOT / "runtime"
    done = subprocess.run(
        [
            compiler,
            "-std=c++20",
            "-O0",
            "-fopenmp",
            "-fvisibility=hidden",
            "-fPIC",
            "-shared",
            "-I",
            HERE,
            "-I",
            own,
            "-I",
            own / "template",
            "-isystem",
            onednn() / "include",
            source,
            BUILD / "static" / "libstrata_kit.a",
            lib / "libdnnl.so",
            f"-Wl,-rpath,{lib}",
            "-Wl,-Bsymbolic",
            "-o",
            library,
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return library


def run(bundles: list[Path], folder: Path) -> dict[Path, dict | str]:
    """By bundle: what its program computes (docs/protocol.md's names of outputs, or of a training
    step as run_programs.py says), or why it does not."""
    refused = written(bundles)
    found: dict[Path, dict | str] = {
        bundle: f"the generator: {why}" for bundle, why in refused.items()
    }
    left = [bundle for bundle in bundles if bundle not in refused]
    library = compiled(left, folder) if left else None
    while left:
        done = subprocess.run(
            [sys.executable, HERE / "run_programs.py", library, *left],
            capture_output=True,
            text=True,
            timeout=300,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        for bundle, why in zip(left, answers):
            found[bundle] = why or load_file(bundle / "found.safetensors")
        left = left[len(answers) :]
        if left:  # the first of them ended the process
            found[left.pop(0)] = f"crashed with {done.returncode}: {done.stderr[-1000:]}"
    return found
