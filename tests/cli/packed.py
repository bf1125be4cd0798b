# SPDX-License-Identifier: Apache-2.0
"""Small things in place of what packs are made of: programs that gcc compiles in a moment, an
interpreter with a PyTorch of any version and nothing in it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from commands import ROOT

sys.path.insert(0, str(ROOT / "python"))

from stratabench.pack.lay import TREE, Level, Order

# asked what a call needs it says what FAKE_NEEDS says, else what it was called with
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char** environ;
int main(int n, char** words) {
  if (n > 1 && strcmp(words[1], "--needs") == 0) return puts(getenv("FAKE_NEEDS")) < 0;
  for (int i = 1; i < n; ++i) printf("word %s\\n", words[i]);
  for (char** each = environ; *each; ++each)
    if (strncmp(*each, "STRATA_", 7) == 0) puts(*each);
  return 0;
}
"""
NEEDS = '{"set_up": true, "environments": [{"name": "", "python": "", "programs": []}]}'


def compiled(path: Path, text: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["gcc", "-x", "c", "-", "-x", "none", "-o", path, "-Wl,--no-as-needed", *options],
        input=text,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return path


def library(path: Path, text: str = "int x;") -> Path:
    return compiled(path, text, "-shared", "-fPIC", f"-Wl,-soname,{path.name}")


def interpreter(folder: Path, torch: str = "2.11.0+cu130", cuda: str = "13.0") -> Path:
    """An environment with a PyTorch that is nothing but its version; torch empty: without one."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    if torch:
        (packages / "torch/lib").mkdir(parents=True)
        (packages / "torch/__init__.py").touch()
        (packages / "torch/version.py").write_text(f"__version__ = {torch!r}\ncuda = {cuda!r}\n")
        library(packages / "torch/lib/libtorch.so")
    return folder / "bin/python"


def install(packages: Path, name: str, file: str) -> None:
    """A package of one file, with what an installer writes beside it."""
    about = packages / f"{name}-1.0.dist-info"
    for folder in (packages / name, about):
        folder.mkdir()
    (packages / name / "__init__.py").write_text(f"# {name}\n")
    (packages / name / file).touch()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "RECORD").write_text(
        f"../../../bin/tool,,\n{name}/__init__.py,,\n{name}/{file},,\n{about.name}/METADATA,,\n"
    )


def tree(folder: Path) -> Path:
    """strata's own files, as far as a pack has them, with a level of each kind."""
    for name in ("eager", "libtorch", "onednn", "static"):
        (folder / "levels" / name).mkdir(parents=True)
        (folder / "levels" / name / "level.json").write_text("{}")
    for name in (*TREE, "levels/eager/__pycache__"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "file.py").write_text(f"# {name}\n")
    return folder


def programs(folder: Path, packages: Path, place: Path) -> Path:
    """libtorch's links PyTorch, onednn's a library of its own, static's compiles there."""
    main, run_path = "int main() { return 0; }", f"-Wl,-rpath,{place}"
    dnnl = library(place / "libdnnl.so.3")
    torch = packages / "torch/lib"
    compiled(
        folder / "level_libtorch", main, str(torch / "libtorch.so"), f"-Wl,-rpath,{torch}", "-lm"
    )
    compiled(folder / "level_onednn", main, str(dnnl), run_path)
    compiled(folder / "level_static", main)
    compiled(folder / "strata_generate", main)
    object_file = compiled(place / "kit.o", "int kit(void) { return 7; }", "-c", "-fPIC")
    subprocess.run(["ar", "rc", place / "libkit.a", object_file], check=True)
    (folder / "strata_generate.built_with").write_text(
        f"runtime=/elsewhere/runtime\ncompiler=/elsewhere/g++\n"
        f"cpu_linked={place / 'libkit.a'}|{dnnl}\ncuda_linked=\ncuda_missing=no nvcc\ncuda_advice=x\n"
    )
    return folder


PROGRAMS = {
    "eager": (),
    "libtorch": ("level_libtorch",),
    "onednn": ("level_onednn",),
    "static": ("level_static", "strata_generate"),
}


class Workshop:
    """Where packs are made of such things."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = interpreter(folder / "made for")
        (packages,) = (folder / "made for").glob("lib/python3*/site-packages")
        install(packages, "numpy", "core.cpython-311-x86_64-linux-gnu.so")
        install(packages, "safetensors", "rust.abi3.so")
        self.root = tree(folder / "tree")
        self.libraries = folder / "libraries"
        self.build = programs(folder / "build", packages, self.libraries)
        self.driver = compiled(folder / "driver/strata", DRIVER)

    def order(self, output: Path, *levels: str, named: bool = True, **more) -> Order:
        chosen = levels or tuple(PROGRAMS)
        values = {
            "output": output,
            "device": "cpu",
            "target": {},
            "named": named,
            "levels": tuple(
                Level(name, self.root / "levels" / name, ("torch",), PROGRAMS[name])
                for name in chosen
            ),
            "driver": self.driver,
            "root": self.root,
            "python": str(self.python),
            "level_build": self.build,
            "overlay": "",
        }
        return Order(**values | more)


class Elsewhere:
    """Another machine's caches and interpreters, on which a pack is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, pack: Path, *words: str, python: Path | str, **environment: str):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("STRATA_")}
        named = {"STRATA_PYTHON": str(python)} if python else {}
        return subprocess.run(
            [pack / "run", *words],
            env=clean
            | {"STRATA_CACHE": str(self.folder / "cache"), "FAKE_NEEDS": NEEDS}
            | named
            | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def variables(self, done) -> dict[str, str]:
        """What the driver was started with."""
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if not line.startswith("word ")]
        return dict(line.split("=", 1) for line in lines)
