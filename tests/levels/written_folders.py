# SPDX-License-Identifier: Apache-2.0
"""What `strata export` and `strata generate` write of the MNIST convnet, and following the commands
that come with it, without strata."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))


def write(place: Path, name: str, *words: str) -> Path:
    """The folder `name` that `strata words` writes, once: one capture for all, and artefacts from
    other comparisons of this session."""
    folder = place / name
    if not folder.exists():
        verb, *more = words
        command = [str(PROGRAM), verb, "mnist_convnet", *more, "--threads", "1", "-o", str(folder)]
        environment = {
            "STRATA_ROOT": str(ROOT),
            "XDG_DATA_HOME": str(place),
            "STRATA_PYTHON": sys.executable,
            "STRATA_TOOLS_PYTHON": sys.executable,
        }
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert verb != "export" or "nothing is proven" in done.stderr
    return folder


def commands(folder: Path) -> list[str]:
    """The commands of the README: build, test, run."""
    return (folder / "README.md").read_text(encoding="utf-8").split("```\n")[1].splitlines()


def follow(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    # what was exported needs none of these
    alone = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STRATA_", "PYTHON"))
    }
    build = {"CMAKE_BUILD_TYPE": "None", "CXXFLAGS": "-O0"} | (
        {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    )
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=alone | build | {"OMP_WAIT_POLICY": "PASSIVE"} | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )


def libraries_of(program: Path) -> str:
    """What the loader says of the libraries that a program or library needs."""
    return subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
