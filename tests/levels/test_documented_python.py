# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md and of the package's docstrings, run as they stand there with real
levels; only how often and how long something is measured or trained is less."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/python.md"
sys.path.insert(0, str(ROOT / "python"))

import stratabench  # noqa: E402
from stratabench import engine  # noqa: E402
from stratabench.pytest_plugin import Assertions, CouldNotTell  # noqa: E402

LESS = {
    "compare": {"budget_s": 3.0, "restarts": 3},
    "sweep": {"batch": [1], "size": "32", "budget_s": 4.0, "levels": ["eager", "onednn"]},
    "train": {"epochs": 1, "repeats": 1, "images": 128},
    "commands": {"budget_s": 1.0, "runs": 2},
}


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Each block of Python, and in which line it begins."""
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, block.start(1)), block[1]


def run(text: str, name: str, namespace: dict) -> None:
    for line, code in blocks(text):
        exec(compile("\n" * line + code, name, "exec"), namespace)


def docstrings() -> dict[str, str]:
    """Those that hold an example, by what they are of."""
    found = {}
    for name in stratabench.__all__:
        public = getattr(stratabench, name)
        parts = vars(public).items() if isinstance(public, type) else ()
        for path, thing in ((name, public), *((f"{name}.{key}", part) for key, part in parts)):
            text = dedent(inspect.getdoc(thing) or "")
            if "```python" in text:
                found[path] = text
    return found


@pytest.fixture
def measuring(monkeypatch, tmp_path):
    """A folder and a store of the test's own, and the verbs that were asked. Every question must
    come to a good end, but for a difference, where a level may be slower by chance."""
    asked, ask = [], engine.Engine.ask

    def ask_less(self, request):
        verb = request["verb"]
        asked.append(verb)
        answer = ask(self, request | LESS.get(verb, {}))
        assert answer.exit_code in ((0, 4, 5) if verb == "diff" else (0,)), answer
        return answer

    monkeypatch.setattr(engine.Engine, "ask", ask_less)
    monkeypatch.setenv("STRATA_PROGRAM", str(ROOT / "build/release/strata"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return asked


@pytest.mark.long
def test_the_page_about_python_does_what_it_says_from_its_first_line_to_its_last(measuring):
    page: dict = {"__name__": "__main__"}
    run(PAGE.read_text(encoding="utf-8"), str(PAGE), page)
    assert {"compare", "sweep", "train", "export", "runs", "show", "diff", "commands"} == set(
        measuring
    )
    assert [row.state for row in page["r"].rows] == ["measured"] * 4, page["r"].json
    is_undecided = page["r"].verdict == "not_reliable"  # beside other programs
    assert page["r"].best.name == ("eager" if is_undecided else "static")
    assert page["r"].table().shape[0] == 4
    assert set(page["swept"].table("points")["level"]) >= {"eager", "onednn"}
    assert set(page["trained"].table("result")["level"]) == {"eager", "static"}
    assert Path("served").is_dir() and page["served"].build and page["served"].test
    assert page["m"].wall_s > 0
    tests = [value for name, value in page.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        try:
            test(Assertions())
        except CouldNotTell as why:
            assert "not reliable" in str(why).lower(), why


@pytest.mark.parametrize(
    "name",  # the page above compares, too
    [
        pytest.param(name, marks=[pytest.mark.long] if name == "compare" else [])
        for name in sorted(docstrings())
    ],
)
def test_the_example_of_a_docstring_runs(measuring, name):
    run(docstrings()[name], name, {"__name__": "__main__"})


def test_examples_are_found_where_they_are():
    assert {"compare", "timeit", "meters"} <= set(docstrings())
    assert len(list(blocks(PAGE.read_text(encoding="utf-8")))) > 4
