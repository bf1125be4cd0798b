#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what makes source hard to read, as a Markdown list: tools/count_source.py [CHECKOUT].

Lines, wide lines, long files and functions, folders of src/ that include each other, short everyday
words as identifiers, errors forwarded by hand, untyped reads of JSON, tests. Strings and comments
are left out where identifiers are counted. A function's length is that of its definition outside of
a class in C++.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

WORDS = ("one", "found", "said", "told", "wanted", "asked", "kept", "made", "given")
SHIPPED = ("src/", "sdk/", "levels/", "runtime/")
CPP = (".cpp", ".hpp", ".cu")
DEFINITION = re.compile(r"^(?!namespace|struct|class|enum|union|extern)[A-Za-z_].*\).*\{$")


class Checkout:
    def __init__(self, root: Path) -> None:
        command = ["git", "-C", str(root), "ls-files", "-z"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.texts = {
            name: (root / name).read_text(encoding="utf-8")
            for name in listed.split("\0")
            if name.endswith((*CPP, ".py", ".md")) and (root / name).is_file()
        }
        self.tracked = len(listed.split("\0")) - 1

    def files(self, under: str | tuple[str, ...], kinds: str | tuple[str, ...]) -> list[str]:
        return [name for name in self.texts if name.startswith(under) and name.endswith(kinds)]

    def matches(self, pattern: str, names: list[str]) -> int:
        return sum(len(re.findall(pattern, self.texts[name], re.MULTILINE)) for name in names)

    def lines(self, names: list[str]) -> list[str]:
        return [line for name in names for line in self.texts[name].split("\n") if line.strip()]


def identifiers(name: str, text: str) -> str:
    """The text without comments and without what strings hold."""
    if name.endswith(".py"):
        text = re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
    else:
        text = re.sub(r'R"\w*\(.*?\)\w*"', "", text, flags=re.DOTALL)
        text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', '""', text)


def function_lengths(text: str) -> list[int]:
    lengths, begin = [], None
    for number, line in enumerate(text.split("\n")):
        if begin is None and DEFINITION.match(line):
            begin = number
        elif begin is not None and line.startswith("}"):
            lengths.append(number - begin + 1)
            begin = None
    return lengths


def folders_in_circles(checkout: Checkout) -> tuple[int, list[str]]:
    """How many folders of src/ include how many others, and those that include themselves that
    way."""
    includes: dict[str, set[str]] = defaultdict(set)
    names = checkout.files("src/", CPP)
    folders = {name.split("/")[1] for name in names}
    for name in names:
        own = name.split("/")[1]
        included = set(re.findall(r'#include "(\w+)/', checkout.texts[name]))
        includes[own] |= (included & folders) - {own}

    def reached(folder: str, seen: set[str]) -> set[str]:
        for other in includes[folder] - seen:
            seen.add(other)
            reached(other, seen)
        return seen

    arrows = sum(len(others) for others in includes.values())
    return arrows, sorted(folder for folder in folders if folder in reached(folder, set()))


def wide(lines: list[str], most: int) -> str:
    count = sum(len(line) > most for line in lines)
    return f"{count:,} of {len(lines):,} ({100 * count / max(1, len(lines)):.2f}%)"


def main() -> None:
    checkout = Checkout(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    shipped = checkout.files(SHIPPED, (*CPP, ".py"))
    source = checkout.files(SHIPPED, (".cpp", ".hpp"))
    code = checkout.files("", (*CPP, ".py"))
    lengths = [n for name in source for n in function_lengths(checkout.texts[name])]
    arrows, circles = folders_in_circles(checkout)
    plain = "\n".join(identifiers(name, checkout.texts[name]) for name in shipped)
    sizes = {name: checkout.texts[name].count("\n") for name in code}
    for what, value in {
        "tracked files": f"{checkout.tracked:,}",
        "lines of C++ and Python": f"{sum(sizes.values()):,}",
        "of them under src/": f"{sum(n for name, n in sizes.items() if name.startswith('src/')):,}",
        "files of more than 500 lines": sum(n > 500 for n in sizes.values()),
        "functions of more than 60 lines": f"{sum(n > 60 for n in lengths)} of {len(lengths):,}",
        "functions of more than 40 lines": sum(n > 40 for n in lengths),
        "lines of C++ beyond 120 columns": wide(checkout.lines(checkout.files("", CPP)), 120),
        "lines of Python beyond 100": wide(checkout.lines(checkout.files("", ".py")), 100),
        "arrows between folders of src/": arrows,
        "folders of src/ in circles": ", ".join(circles) or "none",
        **{f"`{word}` as a name": len(re.findall(rf"\b{word}\b", plain)) for word in WORDS},
        "errors forwarded by hand": checkout.matches(
            r"return tl::unexpected\(\*?\w+(?:\.|->)error\(\)\)", source
        ),
        "errors forwarded by STRATA_TRY": checkout.matches("STRATA_TRY", source),
        'reads of JSON by `.value("` in src/': checkout.matches(
            r'\.value\("', checkout.files("src/", (".cpp", ".hpp"))
        ),
        "structs of a stochastic gradient descent": checkout.matches(
            r"\bstruct \w*Sgd\w*(?= *\{)", source
        ),
        "tests in C++": checkout.matches(
            r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(", checkout.files("tests/", ".cpp")
        ),
        "tests in Python": checkout.matches(r"^ *def test_", checkout.files("tests/", ".py")),
        "test modules that import another": checkout.matches(
            r"^\s*(?:from|import) test_\w+", checkout.files("tests/", ".py")
        ),
    }.items():
        print(f"- {what}: {value}")


if __name__ == "__main__":
    main()
