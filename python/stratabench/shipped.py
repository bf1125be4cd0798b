# SPDX-License-Identifier: Apache-2.0
"""Programs of levels that the package brings compiled, since they link no PyTorch: copied to where
the driver looks for an environment's programs, beside a link to oneDNN, which pip installed."""

from __future__ import annotations

import contextlib
import ctypes
import filecmp
import importlib.metadata
import os
import shutil
from pathlib import Path

from stratabench import kit
from stratabench.kit import Missing
from stratabench.pack import elf

PROGRAMS = Path(__file__).resolve().parent / "programs"
GENERATOR = "strata_generate"  # of the level static: compiles what it writes, on this machine
LIBRARY = "libdnnl.so.3"
INSTALL = "install it here: python -m pip install onednn-cpu-gomp onednn-devel-cpu-gomp"


def brought(names: list[str]) -> list[str]:
    """Those that the package has."""
    return [name for name in names if (PROGRAMS / name).is_file()]


def take(names: list[str], folder: Path, compiler: str) -> None:
    """Puts programs that the package has into `folder`. Why one cannot run here is in a file beside
    it, and the driver tells that of its level."""
    for name in names:
        note = folder / f"{name}.missing"
        try:
            put(name, folder, compiler)
            note.unlink(missing_ok=True)
        except Missing as why:
            (folder / name).unlink(missing_ok=True)
            note.write_text(f"{why.what}\n{why.advice}\n")


def put(name: str, folder: Path, compiler: str) -> None:
    copy(PROGRAMS / name, folder / name)
    libraries = libraries_of(folder / name)
    if LIBRARY in libraries:
        link_onednn(folder / LIBRARY)
        libraries = libraries_of(folder / name)
    if lacking := [f"{library} {why}" for library, why in libraries.items() if why]:
        raise Missing(
            f"what the level's program is linked with: {', '.join(lacking)}",
            "install it (libgomp.so.1: the package libgomp1 of Debian, libgomp of Fedora)",
        )
    if LIBRARY in libraries:
        check_version(folder / LIBRARY)
    if name == GENERATOR:
        get_generator_ready(folder, compiler)


def get_generator_ready(folder: Path, compiler: str) -> None:
    """Says where compiler and libraries are, and makes what its programs are linked with."""
    library = link_onednn(folder / LIBRARY)
    built_with = dict(lines_of(PROGRAMS / f"{GENERATOR}.built_with"))
    include = file_of("onednn-devel-cpu-gomp", "dnnl.hpp", "oneapi").parents[2]
    made = kit.compiled(compiler, built_with.pop("kit_options").split(), include, folder)
    built_with |= {
        "runtime": str(kit.RUNTIME),
        "compiler": compiler or "g++",
        "cpu_linked": f"{made}|{library}",
    }
    text = "".join(f"{key}={value}\n" for key, value in built_with.items())
    replace(folder / f"{GENERATOR}.built_with", text.encode())


def copy(source: Path, target: Path) -> None:
    if target.is_file() and filecmp.cmp(source, target, shallow=False):
        return
    replace(target, source.read_bytes())
    target.chmod(0o755)


def replace(target: Path, content: bytes) -> None:
    """Whole or not at all: a process that runs it keeps what it has."""
    if target.is_file() and target.read_bytes() == content:
        return
    part = target.with_name(f"{target.name}.part")
    part.write_bytes(content)
    os.replace(part, target)


def libraries_of(program: Path) -> dict[str, str]:
    """As elf.linked."""
    try:
        return elf.linked(program)
    except OSError as error:
        raise Missing(
            f"{program} cannot be started: {error.strerror}",
            "programs must be allowed to run there; STRATA_CACHE names another folder",
        ) from error


def link_onednn(link: Path) -> Path:
    """`link` leads to oneDNN, which it gives."""
    library = file_of("onednn-cpu-gomp", LIBRARY)
    if not link.is_symlink() or os.readlink(link) != str(library):
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    return library


def check_version(link: Path) -> None:
    least = dict(lines_of(PROGRAMS / f"{GENERATOR}.built_with"))["onednn"]
    version = version_of(link)
    if version < tuple(map(int, least.split("."))):
        raise Missing(
            f"oneDNN {'.'.join(map(str, version))} ({os.readlink(link)}) is too old: this level's "
            f"program was compiled against {least}",
            f"{INSTALL} --upgrade",
        )


def version_of(library: Path) -> tuple[int, int, int]:
    class Version(ctypes.Structure):  # the beginning of dnnl_version_t
        _fields_ = [(name, ctypes.c_int) for name in ("major", "minor", "patch")]

    try:
        ask = ctypes.CDLL(str(library)).dnnl_version
    except (OSError, AttributeError) as error:
        raise Missing(f"oneDNN cannot be loaded: {error}", INSTALL) from error
    ask.restype = ctypes.POINTER(Version)
    version = ask().contents
    return version.major, version.minor, version.patch


def file_of(distribution: str, name: str, below: str = "") -> Path:
    """A file that pip installed for the interpreter that runs this."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(distribution) or []:
            if file.name == name and (not below or below in file.parts):
                path = Path(os.path.normpath(file.locate()))
                if path.is_file():
                    return path
    raise Missing(f"oneDNN is not installed here: no {name} of the package {distribution}", INSTALL)


def lines_of(file: Path) -> list[tuple[str, str]]:
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return [(key, value) for key, _, value in pairs]


def for_cuda(names: list[str]) -> bool:
    """Whether programs for a GPU are asked for which this machine can compile: then none of those
    that the package brings will do."""
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    return "strata_for_cuda" in names and bool(
        shutil.which("nvcc") or os.access(f"{home}/bin/nvcc", os.X_OK)
    )
