# SPDX-License-Identifier: Apache-2.0
"""Folders that `strata generate` wrote, built once for all processes of the test session."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Strata
from once import once

RESIDUAL = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:residual_network"


def build(folder: Path, like: Path | None = None) -> None:
    """`like`: a folder that was built; what both have of the kit need not be compiled again."""
    steps = [
        [
            "cmake",
            "-S",
            folder,
            "-B",
            folder / "build",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
            f"-DDNNL_ROOT={ROOT / '.venv'}",
        ],
        ["cmake", "--build", folder / "build", "-j2"],
    ]
    for command in steps:
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
        if like and command is steps[0]:
            kits = [
                {path.name: path.read_bytes() for path in (one / "kit").iterdir()}
                for one in (folder, like)
            ]
            assert all(kits[0][name] == kits[1][name] for name in kits[0].keys() & kits[1].keys())
            objects = Path("build", "CMakeFiles", "model.dir", "kit")
            (folder / objects).mkdir(parents=True, exist_ok=True)
            for one in (like / objects).glob("*.o"):
                if one.name.removesuffix(".o") in kits[0]:
                    shutil.copyfile(one, folder / objects / one.name)


def built_once(name: str, cache: Path, words: list[str], like: Path | None = None) -> Path:
    """The folder that `generate words` writes for one thread, built, by one process for all."""
    place = cache.parent / "generated" / name

    def make() -> None:
        strata = Strata(place / "place", cache)
        done = strata.run("generate", *words, "-o", str(place / name), "--threads", "1")
        assert done.returncode == 0, done.stderr
        assert str(place / name) in done.stdout and "cmake -S" in done.stdout
        build(place / name, like)

    once(place, make)
    return place / name


def mnist_program(cache: Path) -> Path:
    """A generated MNIST network, built."""
    if not (ROOT / ".venv" / "lib" / "libdnnl.so").exists():
        pytest.skip("no oneDNN in strata's own environment")
    return built_once("mnist", cache, ["mnist_convnet"])


def residual_trainer(cache: Path) -> Path:
    """A generated training step of a residual network with batch norms, built."""
    return built_once("trainer", cache, [RESIDUAL, "--train"], like=mnist_program(cache))


def entries_of(program: Path, folder: Path, **changed) -> Path:
    """A file of two entries made of the stored input; `changed`: by name, None takes one away."""
    from safetensors.numpy import load_file, save_file

    [(name, value)] = [
        (name.removeprefix("input/"), value)
        for name, value in load_file(program / "reference.safetensors").items()
        if name.startswith("input/")
    ]
    tensors = {f"0/{name}": value, f"1/{name}": value * 0.5} | {
        name.replace("_", "/"): value for name, value in changed.items()
    }
    save_file(
        {name: value for name, value in tensors.items() if value is not None},
        folder / "inputs.safetensors",
    )
    return folder / "inputs.safetensors"


def build_with_kit(folder: Path, built: Path) -> Path:
    """The program in `folder`; what the folder of another has of the kit's objects, which are the
    same for all, is not compiled again."""
    flags = dict(
        line.split(" = ", 1)
        for line in (built / "build" / "CMakeFiles" / "model.dir" / "flags.make")
        .read_text()
        .splitlines()
        if " = " in line
    )
    library = next(
        line.split("=", 1)[1]
        for line in (built / "build" / "CMakeCache.txt").read_text().splitlines()
        if line.startswith("DNNL_LIBRARY:")
    )
    words = shlex.split(" ".join(flags[f"CXX_{key}"] for key in ("DEFINES", "INCLUDES", "FLAGS")))
    objects = {
        path.name.removesuffix(".o"): path
        for path in (built / "build" / "CMakeFiles" / "model.dir" / "kit").glob("*.o")
    }
    more = [path for path in sorted((folder / "kit").glob("*.cpp")) if path.name not in objects]
    (folder / "all.cpp").write_text(
        "".join(
            f'#include "{path.relative_to(folder)}"\n'
            for path in [
                *sorted(folder.glob("[impt]*.cpp")),
                *sorted((folder / "stages").iterdir()),
            ]
        )
    )
    command = [
        "c++",
        f"-I{folder}",
        *words,
        folder / "all.cpp",
        *more,
        *objects.values(),
        library,
        f"-Wl,-rpath,{Path(library).parent}",
        "-o",
        folder / "network",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "network"
