# SPDX-License-Identifier: Apache-2.0
"""The command `strata` of the Python package: asks the driver what a call needs, compiles the
programs of levels that are missing for the PyTorch of that environment, and becomes the driver.

    bin/strata   the driver            libraries/   what such programs are linked with
    tree/        strata's own files, with the sources of levels
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

PACKAGE = Path(__file__).resolve().parent
DRIVER = PACKAGE / "bin/strata"
BYTES_OF_A_COMPILER = 2 << 30  # PyTorch's headers need about that

# The version of an interpreter's PyTorch, without loading it.
VERSION = """
import importlib.util as util
spec = util.find_spec("torch")
scope = {}
if spec and spec.origin:
    exec(open(spec.origin.replace("__init__.py", "version.py")).read(), scope)
print(scope.get("__version__", ""))
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache() -> Path:
    """Where the driver keeps what it makes, too (src/common/places.cpp)."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("STRATA_CACHE") or Path(home) / "strata")


class Environment:
    """An interpreter, perhaps with PyTorch, and the programs of levels that are compiled for it."""

    def __init__(self, name: str, python: str) -> None:
        self.name, self.python = name, interpreter(python)
        # what is no interpreter the driver refuses
        told = subprocess.run([self.python, "-c", VERSION], capture_output=True, text=True)
        self.torch = told.stdout.strip()
        this = hashlib.sha256(DRIVER.read_bytes()).hexdigest()[:12]
        of = hashlib.sha256(f"{self.python} {self.torch}".encode()).hexdigest()[:12]
        self.folder = cache() / "programs" / this / of

    def get_ready(self, programs: list[str]) -> None:
        """Compiles what has not been. Why a program could not be is in a file beside it, and the
        driver tells that of its level."""
        cache().mkdir(mode=0o700, parents=True, exist_ok=True)
        about = cache().stat()
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & 0o022:
            return  # others could write what is run here; the driver refuses the folder, and says why
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tried = self.folder / "tried"  # what CMake left out or did not compile, too
            done = tried.read_text().split() if tried.exists() else []
            wanted = [name for name in programs if name not in done]
            compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
            for name in wanted:
                missing = self.folder / f"{name}.missing"
                missing.unlink(missing_ok=True)
                if not compiler:
                    missing.write_text(
                        "there is no C++ compiler, which makes this level's program for your PyTorch\n"
                        "install g++ 12 or newer, then run the same command again\n"
                    )
            if wanted and compiler:
                self.compile(wanted, compiler)
                tried.write_text(" ".join(done + wanted))

    def compile(self, programs: list[str], compiler: str) -> None:
        say(f"strata: compiling, once, for {self.python}: {' '.join(programs)}")
        say(f"  (minutes; log: {self.log})")
        (self.folder / "FAILED").unlink(missing_ok=True)
        done = self.run(
            *(tool("cmake"), "-S", PACKAGE / "tree/levels", "-B", self.folder, "-G", "Ninja"),
            *(f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_BUILD_TYPE=Release"),
            f"-DCMAKE_CXX_COMPILER={compiler}",
            f"-DSTRATA_PYTHON={self.python}",
            f"-DSTRATA_WITH_TORCH={'ON' if self.torch else 'OFF'}",
            f"-DSTRATA_DRIVER={PACKAGE / 'libraries/lib'}",
            f"-DSTRATA_LIBRARIES={PACKAGE / 'libraries'}",
            f"-DSTRATA_ONEDNN_ROOT={sys.prefix}",
        )
        if done:
            ninja = (tool("ninja"), "-C", str(self.folder))
            known = subprocess.run([*ninja, "-t", "targets", "all"], capture_output=True, text=True)
            targets = {line.split(":")[0] for line in known.stdout.splitlines()}
            wanted = [name for name in programs if name in targets]
            # -k 0: one that does not compile takes no other with it
            done = not wanted or self.run(*ninja, "-k", "0", "-j", str(jobs()), *wanted)
        if not done:
            lines = self.log.read_text(errors="replace").splitlines()
            failed = (line for line in lines if "error:" in line or "CMake Error" in line)
            reason = next(failed, lines[-1] if lines else "CMake could not be started")
            (self.folder / "FAILED").write_text(reason + "\n")
            say("strata: some programs were not compiled, their levels are unavailable:")
            say(f"  {reason}\n  To try again: rm -r '{self.folder}'")

    @property
    def log(self) -> Path:
        return self.folder / "compile.log"

    def run(self, *command: str | Path) -> bool:
        with open(self.log, "a") as log:
            return subprocess.run(command, stdout=log, stderr=log).returncode == 0


def interpreter(python: str) -> str:
    """An absolute path, its links as they are (a venv's python is one). A folder stands for the
    environment in it, a bare name is looked up; empty: the one that runs this."""
    if not python:
        return sys.executable
    if os.access(f"{python}/bin/python", os.X_OK):
        python += "/bin/python"
    return os.path.abspath(python if "/" in python else shutil.which(python) or python)


def tool(name: str) -> str:
    """Of the environment that strata is installed in, which has it, else of the system."""
    own = Path(sys.executable).parent / name
    return str(own) if own.exists() else shutil.which(name) or name


def jobs() -> int:
    """As many compilers as processors and free memory allow."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), free // BYTES_OF_A_COMPILER))


def needs_of(arguments: list[str]) -> dict[str, Any]:
    told = subprocess.run(
        [DRIVER, "--needs", "json", *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(told.stdout)


def main() -> NoReturn:
    arguments = sys.argv[1:]
    os.environ |= {"STRATA_ROOT": str(PACKAGE / "tree"), "STRATA_TOOLS_PYTHON": sys.executable}
    os.environ.setdefault("STRATA_COMMAND", "strata")
    needs = needs_of(arguments)
    named = os.environ.get("STRATA_PYTHON", "")
    environments = [
        (Environment(each["name"], each["python"] or named), each["programs"])
        for each in needs["environments"]
    ] or [(Environment("", named), [])]
    if needs["set_up"]:
        try:
            for environment, programs in environments:
                environment.get_ready(programs)
        except KeyboardInterrupt:
            say("\nstrata: interrupted; the same command goes on with the compilation")
            sys.exit(130)
    first = environments[0][0]
    os.environ |= {"STRATA_PYTHON": first.python, "STRATA_LEVEL_BUILD": str(first.folder)}
    if first.name:
        os.environ["STRATA_ENVIRONMENTS"] = "".join(
            f"{each.name}\t{each.python}\t{each.folder}\t\n" for each, _ in environments
        )
    os.execv(DRIVER, ["strata", *arguments])
