# SPDX-License-Identifier: Apache-2.0
"""Tells, as a JSON list, which levels the distributions of the interpreter that runs this bring:
their entry points of the group `stratabench.levels`. A package that is named is looked for and not
imported; what is to be called is called in a process of its own. Runs on Python 3.8 and newer."""

import os
import sys

GROUP = "stratabench.levels"
LONGEST_S = 20
# what a package prints while it is imported is no answer
CALL = """
import functools, importlib, os, sys
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
called = functools.reduce(getattr, sys.argv[2].split("."), importlib.import_module(sys.argv[1]))
print(os.fspath(called()), file=answer)
"""


def is_named_somewhere() -> bool:
    """Whether a distribution on the search path names the group at all: most environments have
    none, and every call asks."""
    for place in sys.path:
        try:
            names = [name for name in os.listdir(place or ".") if name.endswith(("-info", ".egg"))]
        except OSError:
            continue
        for name in names:
            for below in ("entry_points.txt", "EGG-INFO/entry_points.txt"):
                try:
                    with open(os.path.join(place, name, below), "rb") as file:
                        if GROUP.encode() in file.read():
                            return True
                except OSError:
                    continue
    return False


def folder_of_package(name: str) -> str:
    import importlib.util

    first, *rest = name.split(".")
    spec = importlib.util.find_spec(first)  # imports nothing: `first` has no dot
    for place in (spec and spec.submodule_search_locations) or []:
        folder = os.path.join(place, *rest)
        if os.path.isdir(folder):
            return folder
    raise ValueError(f"there is no package {name}")


def folder_of_call(module: str, name: str) -> str:
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-c", CALL, module, name],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"it gave no folder within {LONGEST_S} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        raise ValueError(f"it ended with exit code {done.returncode}: {last}")
    folder = done.stdout.strip()
    if not os.path.isabs(folder):
        raise ValueError(f"it gave '{folder}', which is no absolute path of a folder")
    return folder


def folder_of(value: str) -> str:
    """Of `package` or `module:function`, perhaps with extras behind."""
    module, _, name = value.partition("[")[0].partition(":")
    return (
        folder_of_call(module.strip(), name.strip()) if name else folder_of_package(module.strip())
    )


def levels() -> list:
    import importlib.metadata

    found, seen = [], set()
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name in seen:
            continue  # one that an earlier entry of the search path hides
        seen.add(name)
        for entry in distribution.entry_points:
            if entry.group != GROUP:
                continue
            level = {"distribution": name, "entry": f"{entry.name} = {entry.value}"}
            try:
                level["folder"] = folder_of(entry.value)
            except Exception as error:  # whatever is wrong with one hurts no other
                level["problem"] = f"{error}"
            found.append(level)
    return found


if __name__ == "__main__":
    if is_named_somewhere():
        import json

        print(json.dumps(levels()))
    else:
        print("[]")
