# SPDX-License-Identifier: Apache-2.0
"""The documents as a site (mkdocs.yml): it builds without a warning, every list of a document is
one there, and all that the Python package offers is in its reference."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import stratabench  # noqa: E402
from stratabench import options  # noqa: E402

KEYWORDS = {
    f"stratabench.options.{name}": value
    for name, value in vars(options).items()
    if name.endswith("Options")
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder


def sections(site: Path) -> dict[str, str]:
    """What the reference has of each name."""
    page = (site / "python_reference/index.html").read_text(encoding="utf-8")
    parts = re.split(r'<h[34] id="(stratabench\.[\w.]+)"', page)
    return dict(zip(parts[1::2], parts[2::2]))


def fields(public: type) -> list[str]:
    """Those of a dataclass, or of keywords without those that they have from others."""
    if dataclasses.is_dataclass(public):
        return [field.name for field in dataclasses.fields(public)]
    own = set(public.__annotations__)
    others = [set(other.__annotations__) for other in KEYWORDS.values()]
    return sorted(own.difference(*(other for other in others if other < own)))


def test_the_reference_explains_every_public_name_and_every_field_of_it(site):
    found = sections(site)
    assert {f"stratabench.{name}" for name in stratabench.__all__} <= set(found)
    public = KEYWORDS | {
        f"stratabench.{name}": value
        for name in stratabench.__all__
        if dataclasses.is_dataclass(value := getattr(stratabench, name))
    }
    assert len(public) > 10
    for name, value in public.items():
        missing = [
            field for field in fields(value) if f"<b><code>{field}</code></b>" not in found[name]
        ]
        assert not missing, f"{name} has no `Attributes:` of {missing}"


def test_the_fixture_of_pytest_is_in_the_reference(site):
    found = sections(site)
    asserting = found["stratabench.pytest_plugin.Assertions.assert_not_slower"]
    assert "allow_undecided" in asserting and "CouldNotTell" in asserting
    assert "stratabench.pytest_plugin.strata" in found


def test_a_list_of_a_document_is_a_list_of_its_page(site):
    """Python-Markdown wants an empty line before a list, and what is inside of one indented by
    four."""
    wrong = []
    for source in sorted((ROOT / "docs").glob("*.md")):
        if source.stem == "python_reference":
            continue
        text = re.sub(r"^( *)```.*?^\1```", "", source.read_text("utf-8"), flags=re.M | re.S)
        page = (site / source.stem / "index.html").read_text(encoding="utf-8")
        article = page[page.index('itemprop="articleBody"') : page.index("<footer")]
        items = len(re.findall(r"^ *(?:[-*+]|\d\d?[.)]) ", text, re.M)), article.count("<li>")
        if items[0] != items[1]:
            wrong.append(f"{source.name}: {items[0]} in the file, {items[1]} on the page")
    assert not wrong


def test_a_link_out_of_the_documents_is_text_and_one_to_a_page_leads_there(site):
    compare = (site / "compare/index.html").read_text(encoding="utf-8")
    assert "an example: <code>examples/digits_score.py</code>" in compare
    home = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="proof/#what-the-proof-cannot-see"' in home and 'href="contributing/"' in home
