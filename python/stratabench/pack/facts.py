# SPDX-License-Identifier: Apache-2.0
"""What an interpreter and a machine are: asked where a pack is made and again where it runs, so
that the two are compared in the same words. Runs on both sides."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# PyTorch is not imported, which takes seconds, nor anything of the current folder
ASK = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import importlib.util, json, os, platform
def version_in(folder):
    scope = {}
    with open(os.path.join(folder, "torch/version.py")) as file:
        exec(file.read(), scope)
    return scope
spec, torch, hidden = importlib.util.find_spec("torch"), {}, []
if spec and spec.origin:
    packages = os.path.dirname(os.path.dirname(spec.origin))
    torch = version_in(packages)
    for folder in dict.fromkeys(map(os.path.realpath, sys.path)):
        if folder != os.path.realpath(packages) and os.path.isfile(folder + "/torch/version.py"):
            hidden.append(version_in(folder).get("__version__", "") + " in " + folder)
print(json.dumps({
    "python": platform.python_version(),
    "torch": torch.get("__version__", ""),
    "cuda": torch.get("cuda") or "",
    "packages": packages if torch else "",
    "hidden": hidden,
    "modules": [name for name in sys.argv[1:] if importlib.util.find_spec(name)],
}))
"""
# what g++ -march=native compiles for
INSTRUCTIONS = re.compile(r"(sse|ssse|avx|amx|bmi|fma|f16c|vaes|vpclmul|gfni|movbe|popcnt|abm|adx)")


class Refused(Exception):
    """What is wrong, what to do about it, and the exit code: 1 the writing failed, 3 something is
    missing here."""

    def __init__(self, what: str, hint: str, code: int = 3) -> None:
        super().__init__(what)
        self.what, self.hint, self.code = what, hint, code

    def __str__(self) -> str:
        return f"error: {self.what}\n  try: {self.hint}"


@dataclass(frozen=True)
class Facts:
    """Of an interpreter. torch, cuda, packages (the folder that has torch) are empty where it has
    no PyTorch; hidden: others that it reaches, "2.14.1 in FOLDER"; modules: those of the ones asked
    for that it has."""

    path: str
    python: str
    torch: str
    cuda: str
    packages: str
    modules: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    @property
    def minor(self) -> str:
        return ".".join(self.python.split(".")[:2])


def facts_of(python: str, modules: list[str]) -> Facts:
    hint = "name an interpreter that works, by its path"
    try:
        done = subprocess.run([python, "-c", ASK, *modules], capture_output=True, text=True)
        told = json.loads(done.stdout.splitlines()[-1])
    except OSError as error:
        raise Refused(
            f"the Python interpreter {python} cannot be started: {error.strerror}", hint
        ) from None
    except (ValueError, IndexError):
        raise Refused(
            f"the Python interpreter {python} does not work: {done.stderr.strip()[-300:]}", hint
        ) from None
    lists = {name: tuple(told[name]) for name in ("hidden", "modules")}
    return Facts(path=python, **told | lists)


def public(version: str) -> str:
    """2.11.0 of 2.11.0+cu130."""
    return version.split("+", maxsplit=1)[0]


def glibc() -> str:
    """As "2.36"; empty where the C library is another."""
    try:
        words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):
        return ""
    return words[1] if len(words) == 2 else ""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def machine() -> str:
    return platform.machine()


def instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Of this machine's processor, as the kernel names them."""
    found = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    return sorted(word for word in (found[1].split() if found else []) if INSTRUCTIONS.match(word))
