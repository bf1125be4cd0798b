# SPDX-License-Identifier: Apache-2.0
"""What `run` of a pack does: looks at the machine, puts the programs where they find its PyTorch,
says what differs from what the pack was made for, and becomes the driver. Nothing is fetched; what
it makes lies in strata's cache, and the pack stays as it is.

    CACHE/packs/<pack>/driver-<its place>         bin, lib
    CACHE/packs/<pack>/<interpreter and machine>  bin, lib, overlay, target: a link to its packages
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from stratabench import launcher
from stratabench.kit import say
from stratabench.pack import elf, facts
from stratabench.pack.facts import Facts, Refused, facts_of

PACK = Path(__file__).resolve().parents[3]
OLDEST_PYTHON = (3, 10)


class Contents:
    """The pack's own files, and where what is made of them lies."""

    def __init__(self, folder: Path = PACK) -> None:
        self.folder = folder
        self.about: dict[str, Any] = json.loads((folder / "pack.json").read_text())
        self.place = launcher.cache() / "packs" / self.about["id"]

    def check_machine(self) -> None:
        """Errors: nothing of the pack can run here."""
        wanted, got = self.about["machine"], facts.machine()
        if wanted != got:
            raise Refused(f"this machine is {got}, the pack is for {wanted}", "make one there")
        needed, here = self.about["glibc"], facts.glibc()
        if not here or facts.numbers(here) < facts.numbers(needed):
            raise Refused(
                f"this machine has glibc {here or '(none)'}, the pack needs {needed} or newer",
                "make the pack on a system as old as this one",
            )

    def make(self, name: str, lay: Callable[[Path, Path], None]) -> Path:
        """The folder of that name, laid once: lay(where it is made, where it will be)."""
        folder: Path = self.place / name
        if folder.exists():
            with contextlib.suppress(OSError):
                os.utime(folder)  # `strata cache` goes by it
            return folder
        part = folder.with_name(f".{name}.{os.getpid()}")
        try:
            launcher.cache().mkdir(mode=0o700, parents=True, exist_ok=True)
            if not launcher.is_private(launcher.cache()):
                raise Refused(
                    f"others may write to {launcher.cache()}, where programs would lie",
                    "set STRATA_CACHE to a folder of your own",
                )
            shutil.rmtree(part, ignore_errors=True)
            for inner in ("bin", "lib"):
                (part / inner).mkdir(parents=True)
            for library in (self.folder / "lib").iterdir():
                (part / "lib" / library.name).symlink_to(library)
            lay(part, folder)
            if not folder.exists():
                part.rename(folder)
        except OSError as error:
            if not folder.exists():  # another call may have been quicker
                raise Refused(
                    f"cannot write to {self.place}: {error.strerror}",
                    "set STRATA_CACHE to a folder that you may write to",
                ) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return folder

    def lay_program(self, part: Path, name: str) -> str:
        """In part/bin. Gives why it cannot start here; empty: it can."""
        source, there = self.folder / "bin" / name, part / "bin" / name
        try:
            os.link(source, there)
        except OSError:  # another file system, or another owner
            shutil.copy2(source, there)
        if ".so" in name:
            return ""
        for library in elf.troubles(there):
            brought = self.folder / "fallback" / library
            link = part / "lib" / library
            if brought.exists() and not link.exists():
                link.symlink_to(brought)
        return ", ".join(f"{library} {why}" for library, why in elf.troubles(there).items())

    def driver(self) -> Path:
        def lay(part: Path, folder: Path) -> None:
            if why := self.lay_program(part, "strata"):
                raise Refused(
                    f"strata cannot start here: {why}", "make the pack on a system like this one"
                )

        # its libraries are links into the pack, which may have been moved
        moved = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        return self.make(f"driver-{moved}", lay) / "bin/strata"


def compiler() -> str:
    """Empty: there is none."""
    named = os.environ.get("CXX", "")
    return shutil.which(named or "g++") or shutil.which("c++") or ""


class Environment:
    """An interpreter of this machine, with the pack's programs for its PyTorch."""

    def __init__(self, pack: Contents, name: str, python: str) -> None:
        self.pack, self.name, self.python = pack, name, launcher.interpreter(python)
        modules = {need for level in pack.about["levels"].values() for need in level["needs"]}
        asked = sorted((modules | set(pack.about["modules"])) - {"torch"})
        self.facts: Facts = facts_of(self.python, asked)
        self.compiler = compiler()
        lacking = set(pack.about["instructions"])
        self.lacking = sorted(lacking - set(facts.instructions())) if lacking else []
        # what another answer to any of these changes is laid again
        seen = (self.facts, self.compiler, self.lacking, facts.glibc(), str(pack.folder))
        key = hashlib.sha256(repr(seen).encode()).hexdigest()[:16]
        place = pack.make(key, self.lay)
        self.folder, self.overlay = place / "bin", str(place / "overlay")

    def lay(self, part: Path, folder: Path) -> None:
        pack = self.pack
        (part / "overlay").mkdir()
        (part / "target").symlink_to(self.facts.packages or "/nonexistent")
        for name, module in pack.about["modules"].items():
            if name not in self.facts.modules and module["python"] in ("", self.facts.minor):
                for entry in module["entries"]:
                    (part / "overlay" / entry).symlink_to(pack.folder / "overlay" / entry)
        programs = [name for name in pack.about["programs"] if name != "strata"]
        whys = {name: self.why_not(name) for name in programs}
        for name, why in whys.items():
            whys[name] = why or pack.lay_program(part, name)
            template = pack.folder / "bin" / f"{name}.built_with"
            if template.exists():
                (part / "bin" / template.name).write_text(self.fill(template.read_text(), folder))
        for level in pack.about["levels"].values():
            why = next((whys[name] for name in level["programs"] if whys[name]), "")
            if why:
                program = part / "bin" / level["programs"][0]
                program.unlink(missing_ok=True)
                advice = (
                    f"make a pack for this machine (strata pack), or mend it and rm -r '{folder}'"
                )
                program.with_name(program.name + ".missing").write_text(f"{why}\n{advice}\n")

    def why_not(self, program: str) -> str:
        """Why it could start and yet do wrong."""
        made_for, here = self.pack.about["torch"], self.facts.torch
        if self.pack.about["programs"][program]["torch"] and facts.public(made_for) != facts.public(
            here
        ):
            return (
                f"its program is for PyTorch {made_for}, {self.python} has {here or 'no PyTorch'}"
            )
        if self.lacking and f"lib{program}_cpu.so" in self.pack.about["programs"]:
            return f"its kernels use {', '.join(self.lacking)}, which this processor lacks"
        return ""

    def fill(self, text: str, folder: Path) -> str:
        places = {
            "root": self.pack.folder / "tree",
            "compiler": self.compiler or "g++",
            "packages": self.facts.packages,
            "bin": folder / "bin",
            "lib": self.pack.folder / "lib",
        }
        for name, place in places.items():
            text = text.replace(f"{{{name}}}", str(place))
        return text

    def differences(self) -> list[str]:
        """What this machine has otherwise than the pack was made for."""
        about, here = self.pack.about, self.facts
        lines = [
            f"{self.python} has {name} {got or '(none)'}, the pack was made for {made_for}"
            for name, made_for, got in (
                ("PyTorch", about["torch"], here.torch),
                ("CUDA", about["cuda"], here.cuda),
            )
            if made_for != got
        ]
        for name, module in about["modules"].items():
            if name not in here.modules and module["python"] not in ("", here.minor):
                lines.append(
                    f"{self.python} has no {name}, and the pack's is for Python {module['python']}"
                )
        if about["device"] == "cuda" and not os.path.exists("/dev/nvidiactl"):
            lines.append("there is no NVIDIA driver, which the pack's levels run on")
        if about["compile_there"] and not self.compiler:
            names = ", ".join(about["compile_there"])
            lines.append(f"there is no C++ compiler (g++), by which these levels compile: {names}")
        for name, level in about["levels"].items():
            for program in level["programs"][:1]:
                missing = self.folder / f"{program}.missing"
                if missing.exists():
                    lines.append(f"{name} is left out: {missing.read_text().splitlines()[0]}")
        return lines


def ready(pack: Contents, needs: dict[str, Any]) -> list[Environment]:
    """Every environment of the call, made ready; says what differs where levels will run."""
    named = os.environ.get("STRATA_PYTHON", "")
    asked = needs["environments"] or [{"name": "", "python": ""}]
    environments = [Environment(pack, each["name"], each["python"] or named) for each in asked]
    for environment in environments if needs["set_up"] else []:
        if not environment.facts.torch:
            raise Refused(
                f"{environment.python} has no PyTorch, which captures the networks",
                f"STRATA_PYTHON=PATH, an interpreter with PyTorch {pack.about['torch']}",
            )
        for line in environment.differences():
            say(f"strata: {line}")
    return environments


def main() -> NoReturn:
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(
            f"error: {sys.executable} is Python {sys.version.split()[0]}, 3.10 or newer is needed\n"
            "  try: STRATA_PYTHON=PATH, an interpreter with PyTorch"
        )
    arguments = sys.argv[1:]
    try:
        pack = Contents()
        pack.check_machine()
        driver = pack.driver()
        os.environ |= {
            "STRATA_ROOT": str(PACK / "tree"),
            "STRATA_TOOLS_PYTHON": launcher.interpreter(""),
            "STRATA_PACK": str(PACK),
            # a network of the user's own fails at once, in place of waiting for an answer
            "HF_HUB_OFFLINE": "1",
        }
        os.environ.setdefault("STRATA_COMMAND", str(PACK / "run"))
        environments = ready(pack, launcher.needs_of(driver, arguments))
    except Refused as refused:
        say(str(refused))
        sys.exit(refused.code)
    launcher.become(driver, arguments, environments)


if __name__ == "__main__":
    main()
