# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which: src/README.md gives the order, and says what levels may use; what
programs contain (runtime/) uses none of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = {".cpp", ".hpp", ".h", ".cu", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"(\w+)/', re.MULTILINE)
MAP = (ROOT / "src/README.md").read_text(encoding="utf-8")


def folders_of(text: str) -> list[str]:
    """The folders that have a paragraph, in its order."""
    return re.findall(r"^\*\*`(\w+)/`\*\*", text, re.MULTILINE)


ORDER = folders_of(MAP)
OF_LEVELS = folders_of(MAP.split("\n## ")[1])


def imported(text: str) -> list[str]:
    """Modules that a Python source imports, anywhere in it, but for those beside it."""
    nodes = list(ast.walk(ast.parse(text)))
    whole = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    return whole + [
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0
    ]


def uses(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each source below the folder with the first part of each path that it includes, or of each
    module that it imports."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in CPP:
            yield from ((file, name) for name in INCLUDE.findall(file.read_text(encoding="utf-8")))
        elif file.suffix == ".py":
            yield from (
                (file, name.partition(".")[0])
                for name in imported(file.read_text(encoding="utf-8"))
            )


def backward(source: Path, order: list[str]) -> list[str]:
    """Every use of a folder that comes after the user's own."""
    places = {name: place for place, name in enumerate(order)}
    found = []
    for file, used in uses(source):
        own = file.relative_to(source).parts[0]
        if used in places and places[used] > places[own]:
            found.append(f"{file.relative_to(source)} uses {used}/, which comes after {own}/")
    return found


def test_every_folder_of_src_has_one_paragraph_in_its_map():
    folders = {
        path.name
        for path in (ROOT / "src").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    assert sorted(ORDER) == sorted(folders)


def test_no_folder_uses_one_that_comes_after_it():
    assert backward(ROOT / "src", ORDER) == []


def test_a_use_that_goes_backward_is_found(tmp_path):
    for name, text in {
        "core/a.hpp": '#include "core/b.hpp"\n#  include "report/b.hpp"\n',
        "report/b.hpp": '#include "core/a.hpp"\n#include <core/a>\n',
        "core/c.py": "from report.b import c\n",
        "report/c.py": "import core\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert backward(tmp_path, ["core", "report"]) == [
        "core/a.hpp uses report/, which comes after core/",
        "core/c.py uses report/, which comes after core/",
    ]


def test_levels_and_the_sdk_use_no_more_than_the_folders_that_are_theirs():
    others = set(ORDER) - set(OF_LEVELS)
    assert OF_LEVELS == ORDER[: len(OF_LEVELS)] and {"common", "graph"} <= set(OF_LEVELS)
    for folder in ("levels", "sdk"):
        assert [f"{file}: {name}" for file, name in uses(ROOT / folder) if name in others] == []


def test_what_programs_contain_uses_nothing_of_strata():
    names = {*ORDER, "primitives", "strata", "strata_sdk"}
    assert [f"{file}: {name}" for file, name in uses(ROOT / "runtime") if name in names] == []


def test_no_file_of_tests_imports_another():
    """What several of them use stands in a module beside them."""
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for module in imported(file.read_text(encoding="utf-8"))
        if module.split(".")[0].startswith("test_")
    ]
    assert not wrong, wrong
