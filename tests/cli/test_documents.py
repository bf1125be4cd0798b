# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead somewhere, and prose is as wide as it should be
(tools/wrap_markdown)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

DATED = "docs/results/"  # records, which stay as they were written
PAGES = sorted(
    page
    for folder in ("", "bench", "docs", "examples", "levels", "src/data", "tests/levels")
    for page in ((ROOT / folder).glob("*.md") if not folder else (ROOT / folder).rglob("*.md"))
)
PROSE = [
    page for page in PAGES if not re.match(DATED + r"(archive/)?\d", str(page.relative_to(ROOT)))
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(
        r"^#+ +(.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading_of_it(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor:
            assert anchor in anchors_of(file), f"{name_of(page)}: {target}"


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_prose_is_at_most_100_columns_wide(page):
    text = without_code(page.read_text(encoding="utf-8"))
    wide = [
        line
        for line in text.splitlines()
        if len(line) > 100
        and not line.lstrip().startswith("|")
        and " " in line.strip()
        and not line.startswith(("    ", "![", "#"))
    ]
    assert not wide, "try: tools/wrap_markdown " + name_of(page) + "\n" + "\n".join(wide)


def test_the_tool_that_wraps_changes_no_word_and_nothing_that_is_wrapped(tmp_path):
    page = tmp_path / "page.md"
    word = "word " * 40
    table = "| a | " + word + "|"
    page.write_text(
        f"# {word}\n\n{word}- {word}`code of one piece`\n\n- {word}\n  {word}\n1. {word}\n\n{table}\n|---|---|\n\n"
        f"```\n{word}\n```\n\n    {word}\n> {word}\n",
        encoding="utf-8",
    )
    before = page.read_text(encoding="utf-8")
    tool = [sys.executable, str(ROOT / "tools" / "wrap_markdown")]
    assert (
        subprocess.run([*tool, "--check", str(page)], capture_output=True, text=True).returncode
        == 1
    )
    assert page.read_text(encoding="utf-8") == before, "--check writes nothing"
    assert subprocess.run([*tool, str(page)]).returncode == 0
    after = page.read_text(encoding="utf-8")
    assert [part for part in after.split() if part != ">"] == [
        part for part in before.split() if part != ">"
    ]
    long_lines = [line for line in after.splitlines() if len(line) > 100]
    assert long_lines == [
        line for line in before.splitlines() if line in (f"# {word}", table, word, f"    {word}")
    ]
    assert not re.search(r"^- `code|^`?of one", after, re.MULTILINE), (
        "neither a list is made nor a short piece of code broken"
    )
    assert subprocess.run([*tool, "--check", str(page)]).returncode == 0
