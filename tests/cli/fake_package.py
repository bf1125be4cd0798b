# SPDX-License-Identifier: Apache-2.0
"""The Python package with a driver, compilers and build tools that are fakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from commands import ROOT, executable

DRIVER = f"""#!{sys.executable}
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "--needs":
    assert sys.argv[2] == "json"
    print(open(here + "/needs.json").read())
else:
    print(json.dumps([sys.argv[1:], {{k: v for k, v in os.environ.items() if k.startswith("STRATA_")}}]))
"""
# writes down that it was asked; what is called broken is not made
TOOL = f"""#!{sys.executable}
import pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open(pathlib.Path(__file__).parent / "asked", "a") as log:
    print(name, *words, file=log)
if name in ("c++", "ar"):
    if any("broken" in word for word in words):
        sys.exit("broken.cpp:1: error: no such thing")
    pathlib.Path(words[words.index("-o") + 1] if "-o" in words else words[1]).touch()
elif name == "cmake":
    pathlib.Path(words[words.index("-B") + 1], "build.ninja").touch()
elif "-t" in words:
    print("level_a: phony\\nlevel_b: phony\\nlevel_broken: phony")
else:
    folder = pathlib.Path(words[words.index("-C") + 1])
    for program in words[words.index("-j") + 2 :]:
        if program == "level_broken":
            sys.exit("a.cpp:1: error: no such thing")
        (folder / program).touch()
"""


class Package:
    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder / "site/stratabench", folder / "tools"
        shutil.copytree(ROOT / "python/stratabench", self.folder)
        executable(self.folder / "bin/strata", DRIVER)
        # beside its interpreter there are neither cmake nor ninja
        self.python = self.tools / "python"
        for name in ("cmake", "ninja", "c++", "ar"):
            executable(self.tools / name, TOOL)
        self.cache = folder / "cache"

    def needs(self, *environments: dict, set_up: bool = True) -> None:
        told = {"set_up": set_up, "environments": list(environments)}
        (self.folder / "bin/needs.json").write_text(json.dumps(told))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from stratabench.launcher import main; main()", *arguments],
            env={
                "PATH": str(self.tools),
                "PYTHONPATH": str(self.folder.parent),
                "STRATA_CACHE": str(self.cache),
                "HOME": str(self.cache),
            }
            | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, **environment: str) -> tuple[list[str], dict[str, str], str]:
        """The arguments and variables that the driver got, and what was said."""
        process = self.start(*arguments, **environment)
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        words, variables = json.loads(stdout)
        return words, variables, stderr

    def refused(self, code: int, *arguments: str, **environment: str) -> str:
        """What is said in place of becoming the driver, with that exit code."""
        process = self.start(*arguments, **environment)
        stdout, stderr = process.communicate()
        assert process.returncode == code and stdout == "", stderr
        assert "Traceback" not in stderr
        return stderr

    def before_each_call(self, code: str) -> None:
        """Runs in the package's interpreters first: a machine that does otherwise than this one."""
        (self.folder.parent / "sitecustomize.py").write_text(code)

    def asked(self) -> list[str]:
        """Which tools were called, by their first words."""
        log = self.tools / "asked"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


def of(*programs: str, name: str = "", python: str = "") -> dict:
    return {"name": name, "python": python, "programs": list(programs)}
