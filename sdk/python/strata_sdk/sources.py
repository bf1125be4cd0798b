# SPDX-License-Identifier: Apache-2.0
"""A user's own sources: which files are not installed libraries, and that they are read as they are
now.

Python takes a compiled module for current if the source's size and its time in whole seconds are
those that it was compiled from; an edit within a second that keeps the size would run the old
network.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.machinery import SourceFileLoader
from typing import Any

_BASE = {
    "base": sys.base_prefix,
    "platbase": sys.base_exec_prefix,
    "installed_base": sys.base_prefix,
    "installed_platbase": sys.base_exec_prefix,
}
_PLACES = tuple(
    {
        f"{os.path.realpath(sysconfig.get_path(name, vars=of))}/"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        for of in ({}, _BASE)
    }
)


def is_library(path: str) -> bool:
    """Whether an absolute path lies in the interpreter's library or among installed packages."""
    return path.startswith(_PLACES) or "/site-packages/" in path or "/dist-packages/" in path


def compile_from_source() -> None:
    """From now on modules outside of installed libraries are compiled from their sources, and no
    __pycache__ is written beside them."""
    loader: Any = SourceFileLoader
    original = loader.path_stats
    if getattr(original, "of_strata", False):
        return

    def path_stats(self: SourceFileLoader, path: str) -> Any:
        if not is_library(os.path.abspath(path)):
            raise OSError  # the loader then looks for nothing compiled
        return original(self, path)

    path_stats.of_strata = True  # type: ignore[attr-defined]
    loader.path_stats = path_stats
