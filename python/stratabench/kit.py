# SPDX-License-Identifier: Apache-2.0
"""What all programs of the level static share (runtime/kit), compiled once for the processor that
is there: the package brings only what every machine runs alike."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent / "tree/runtime"
# what CMake adds in a clone's build (levels/static/CMakeLists.txt)
OPTIONS = ("-std=c++20", "-DNDEBUG", "-fPIC", "-fopenmp", "-c")
BYTES_OF_A_COMPILER = 2 << 30  # PyTorch's headers need about that


class Missing(Exception):
    """Why a level's program cannot run here, and what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def jobs() -> int:
    """As many compilers as processors and free memory allow."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), free // BYTES_OF_A_COMPILER))


def compiled(compiler: str, options: list[str], include: Path, folder: Path) -> Path:
    """The library in `folder`. `include`: where oneDNN's headers are."""
    place = folder / f"kit-{processor()}"
    library = place / "libstrata_kit.a"
    if library.exists():
        return library
    if not compiler:
        raise Missing(
            "there is no C++ compiler, which makes this level's program for your network",
            "install g++ 12 or newer, then run the same command again",
        )
    say("strata: compiling, once, what programs of the level static share (half a minute)")
    place.mkdir(parents=True, exist_ok=True)
    command = [compiler, *OPTIONS, *options, f"-I{RUNTIME}", "-isystem", str(include)]
    sources = sorted((RUNTIME / "kit").glob("*.cpp"))
    objects = [str(place / f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(jobs()) as pool:
        calls = [[*command, str(source), "-o", made] for source, made in zip(sources, objects)]
        for failure in pool.map(failure_of, calls):
            if failure:
                raise Missing(
                    f"what its programs share could not be compiled: {failure}",
                    "g++ 12 or newer is needed, and CXX names another; then run the same command again",
                )
    part = place / "part.a"
    part.unlink(missing_ok=True)
    if failure := failure_of([shutil.which("ar") or "ar", "rcs", str(part), *objects]):
        raise Missing(f"ar did not join what was compiled: {failure}", "install binutils")
    os.replace(part, library)
    for made in objects:
        os.unlink(made)
    return library


def failure_of(command: list[str]) -> str:
    """The first line that says what is wrong; empty: nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"cannot start {command[0]}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = done.stderr.splitlines() or [f"{command[0]} ended with {done.returncode}"]
    return next((line for line in lines if "error" in line), lines[-1])


def processor() -> str:
    """A name for what -march=native asks: homes are shared by machines that differ in it."""
    names = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU part", "Features")
    with open("/proc/cpuinfo") as file:
        first = file.read().split("\n\n")[0].splitlines()
    told = [line for line in first if line.partition("\t")[0].strip().partition(":")[0] in names]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
