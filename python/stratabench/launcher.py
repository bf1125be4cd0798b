# SPDX-License-Identifier: Apache-2.0
"""The command `strata` of the Python package: asks the driver what a call needs, compiles the
programs of levels that are missing for the PyTorch of that environment, and becomes the driver.

    bin/strata   the driver            libraries/   what such programs are linked with
    programs/    of levels that link no PyTorch     tree/   strata's own files, with levels' sources
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from stratabench import shipped
from stratabench.kit import jobs, say
from stratabench.pack.facts import Refused, facts_of

PACKAGE = Path(__file__).resolve().parent
DRIVER = PACKAGE / "bin/strata"
BYTES_OF_A_PROGRAM = 1 << 20
WITHOUT_LOCKS = (
    "run one strata at a time there, or set STRATA_CACHE to a folder on a disk of this machine"
)


def cache() -> Path:
    """Where the driver keeps what it makes, too (src/common/places.cpp). Begins with ~ where nobody
    knows a home: of a user in a container who is in no list."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("STRATA_CACHE") or Path(home) / "strata")


def is_private(folder: Path) -> bool:
    """Whether nobody else can write what is run there."""
    about = folder.stat()
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & 0o022


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds a file that one strata at a time holds, waited for with a sentence. On a file system
    without locks nothing is held, which is said."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"strata: another strata makes programs in {path.parent}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:  # of a network, without its server's lock manager
            say(
                f"strata: files in {path.parent} cannot be locked ({error.strerror}): {WITHOUT_LOCKS}"
            )
        yield


class Environment:
    """An interpreter, perhaps with PyTorch, and the programs of levels that are compiled for it."""

    overlay = ""  # pip has installed what strata needs

    def __init__(self, name: str, python: str) -> None:
        self.name, self.python = name, interpreter(python)
        self.torch = where = ""
        self.hidden: tuple[str, ...] = ()
        with contextlib.suppress(Refused):  # what is no interpreter the driver refuses
            facts = facts_of(self.python, [])
            self.torch, where, self.hidden = facts.torch, facts.packages, facts.hidden
        this = hashlib.sha256(DRIVER.read_bytes()).hexdigest()[:12]
        # where PyTorch lies, too, which programs are told when they are linked: a .pth file or
        # PYTHONPATH may put another of the same version before it
        of = hashlib.sha256(f"{self.python} {self.torch} {where}".encode()).hexdigest()[:12]
        self.folder = cache() / "programs" / this / of

    def get_ready(self, programs: list[str]) -> None:
        """Takes what the package brings, and compiles what has not been. Why a program could not be
        had is in a file beside it, and the driver tells that of its level. In a folder that cannot
        be used nothing is made: the driver refuses it, and says why."""
        try:
            if cache().parts[0] == "~":
                return
            cache().mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(cache()):
                return
        except OSError:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)  # `strata cache` goes by it
        with held(self.folder / "lock"):
            tried = self.folder / "tried"  # what CMake left out or did not compile, too
            done = tried.read_text().split() if tried.exists() else []
            wanted = [name for name in programs if name not in done]
            compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or ""
            brought = [] if shipped.for_cuda(programs) else shipped.brought(wanted)
            wanted = [name for name in wanted if name not in brought]
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
            # last: CMake writes, of every level, what it would compile the level's programs with
            shipped.take(brought, self.folder, compiler)

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
            # not a program's fault, so that the next call tries again
            if shutil.disk_usage(self.folder).free < BYTES_OF_A_PROGRAM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder))
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
            try:
                return subprocess.run(command, stdout=log, stderr=log).returncode == 0
            except OSError as error:
                log.write(f"error: cannot start {command[0]}: {error.strerror}\n")
                return False


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


def needs_of(driver: Path, arguments: list[str]) -> dict[str, Any]:
    """What a call needs before it runs, as `--needs` says it (docs/engine.md). Error: Refused."""
    hint = "install the package again, for this machine, where programs may be run"
    try:
        told = subprocess.run(
            [driver, "--needs", "json", *arguments], capture_output=True, text=True
        )
    except OSError as error:
        raise Refused(f"{driver} cannot be started: {error.strerror}", hint) from error
    if told.returncode != 0:
        said = " ".join(told.stderr.split()) or f"it ended with {told.returncode}"
        raise Refused(f"{driver} does not run here: {said[-300:]}", hint)
    needs: dict[str, Any] = json.loads(told.stdout)
    return needs


class Ready(Protocol):
    """An environment with its programs, as the driver is told of it."""

    name: str
    python: str
    folder: Path  # of the programs
    overlay: str


def become(driver: Path, arguments: list[str], environments: Sequence[Ready]) -> NoReturn:
    first = environments[0]
    os.environ |= {"STRATA_PYTHON": first.python, "STRATA_LEVEL_BUILD": str(first.folder)}
    if first.overlay:
        os.environ["STRATA_OVERLAY"] = first.overlay
    if first.name:
        os.environ["STRATA_ENVIRONMENTS"] = "".join(
            f"{each.name}\t{each.python}\t{each.folder}\t{each.overlay}\n" for each in environments
        )
    os.execv(driver, ["strata", *arguments])


def main() -> NoReturn:
    arguments = sys.argv[1:]
    os.environ |= {"STRATA_ROOT": str(PACKAGE / "tree"), "STRATA_TOOLS_PYTHON": sys.executable}
    os.environ.setdefault("STRATA_COMMAND", "strata")
    try:
        needs = needs_of(DRIVER, arguments)
    except Refused as why:
        say(str(why))
        sys.exit(why.code)
    named = os.environ.get("STRATA_PYTHON", "")
    environments = [
        (Environment(each["name"], each["python"] or named), each["programs"])
        for each in needs["environments"]
    ] or [(Environment("", named), [])]
    if needs["set_up"]:
        try:
            for environment, programs in environments:
                if environment.hidden:
                    say(
                        f"strata: {environment.python} reaches several PyTorch: {environment.torch}"
                        f" is measured, and not {', '.join(environment.hidden)}"
                    )
                environment.get_ready(programs)
        except KeyboardInterrupt:
            say("\nstrata: interrupted; the same command goes on with the compilation")
            sys.exit(130)
        except OSError as error:
            what = f"cannot write the levels' programs to {error.filename or cache()}"
            hint = "free some space, or set STRATA_CACHE to a folder that can be written"
            say(str(Refused(f"{what}: {error.strerror}", hint)))
            sys.exit(1)
    become(DRIVER, arguments, [environment for environment, _ in environments])


if __name__ == "__main__":
    main()
