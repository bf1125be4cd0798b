# SPDX-License-Identifier: Apache-2.0
"""Levels that Python distributions bring as entry points of the group `stratabench.levels`: found,
listed and measured like strata's own; one that is broken is named, and hurts no other."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import Strata


class Site:
    """A folder of packages, which stands in front of the interpreter's own."""

    def __init__(self, strata: Strata) -> None:
        self.strata, self.folder = strata, strata.folder / "site"
        strata.environment["PYTHONPATH"] = str(self.folder)

    def distribution(self, name: str, *entries: str) -> None:
        about = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            "[console_scripts]\nx = y:z\n\n[stratabench.levels]\n" + "\n".join(entries) + "\n"
        )

    def level(self, name: str, package: str, **script) -> Path:
        """A package that is no level beside, and cannot be imported."""
        self.strata.level(name, **script)
        folder = self.folder / package.replace(".", "/")
        shutil.move(self.strata.levels / name, folder)
        (folder / "__init__.py").write_text("raise RuntimeError('it was imported')\n")
        return folder

    def listed(self) -> tuple[dict[str, str], str]:
        """Titles of levels by their ids, and what was said beside."""
        done = self.strata.run("list", "levels", "--format", "json")
        assert done.returncode == 0, done.stderr
        return {row["level"]: row["what_it_is"] for row in json.loads(done.stdout)}, done.stderr


@pytest.fixture
def site(strata):
    return Site(strata)


def test_a_distributions_level_is_listed_and_checked_with_its_name(site):
    site.distribution("fast-levels", "mine = fast_levels.mine", "other = fast_levels.other [gpu]")
    site.level("mine", "fast_levels.mine")
    site.level("other", "fast_levels.other")
    titles, said = site.listed()
    assert said == "" and "eager" in titles
    assert titles["mine"] == "fake mine (of fast-levels)"
    assert titles["other"] == "fake other (of fast-levels)"
    doctor = site.strata.run("doctor").stdout
    assert re.search(r"mine +ok +cpu, of the distribution fast-levels", doctor)


def test_a_function_gives_the_folder_whatever_its_package_prints(site):
    site.distribution("called", "mine = called.places:Of.level")
    folder = site.level("mine", "called.the_level")
    (site.folder / "called/places.py").write_text(
        "print('hello')\nimport os\nclass Of:\n"
        "    def level(): return os.path.join(os.path.dirname(__file__), 'the_level')\n"
    )
    titles, said = site.listed()
    assert titles["mine"] == "fake mine (of called)" and said == "", folder


def test_it_is_measured_like_any_other(site):
    site.distribution("fast-levels", "mine = fast_levels")
    site.level("mine", "fast_levels")
    site.strata.level("usual")
    done, document = site.strata.compare("mine", "usual")
    assert done.returncode == 0, done.stderr
    rows = {row["level"]: row["state"] for row in document["cases"][0]["rows"]}
    assert rows == {"mine": "measured", "usual": "measured"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("bad = no_such_package", ["there is no package no_such_package"]),
        ("bad = bad_level.no_such_part", ["there is no package bad_level.no_such_part"]),
        ("bad = bad_level.without", ["level.json"]),
        ("bad = bad_level.no_json", ["level.json", "JSON"]),
        ("bad = bad_level.code:fails", ["exit code 1", "RuntimeError: on purpose"]),
        ("bad = bad_level.code:leaves", ["exit code 7", "nothing was printed"]),
        ("bad = bad_level.code:relative", ["'levels'", "no absolute path"]),
        ("bad = bad_level.code:gone", ["exit code 1", "no attribute 'gone'"]),
        ("bad = bad_level.eager", ['the id "eager"', "bad_level/eager/level.json is taken by"]),
    ],
)
def test_a_broken_one_is_named_with_its_distribution_and_hurts_no_other(site, entry, words):
    site.distribution("bad-levels", entry)
    site.distribution("good-levels", "good = good_levels")
    site.level("good", "good_levels")
    site.level("eager", "bad_level.eager")
    (site.folder / "bad_level/without").mkdir()
    (site.folder / "bad_level/no_json").mkdir()
    (site.folder / "bad_level/no_json/level.json").write_text("{")
    (site.folder / "bad_level/code.py").write_text(
        "import os\ndef fails(): raise RuntimeError('on purpose')\n"
        "def leaves(): os._exit(7)\ndef relative(): return 'levels'\n"
    )
    titles, said = site.listed()
    assert titles["good"] == "fake good (of good-levels)" and "bad" not in titles
    assert "distribution bad-levels, entry point" in said and f'"{entry}"' in said
    assert all(word in said for word in words), said
    assert "(of" not in titles["eager"]


def test_two_distributions_with_one_id_are_told_with_both_places(site):
    for name in ("first", "second"):
        site.distribution(name, f"mine = {name}_level")
        site.level("mine", f"{name}_level")
    titles, said = site.listed()
    taken = re.search(
        r"distribution (\w+), .*is taken by .*/(\w+)_level of the distribution (\w+)", said
    )
    assert taken and {taken[1], taken[3]} == {"first", "second"} and taken[2] == taken[3]
    assert titles["mine"] == f"fake mine (of {taken[3]})"


def test_one_that_the_search_path_names_too_is_one_level(site):
    site.distribution("fast-levels", "mine = fast_levels")
    folder = site.level("mine", "fast_levels")
    site.strata.environment["STRATA_LEVEL_PATH"] = str(folder)
    titles, said = site.listed()
    assert titles["mine"] == "fake mine (of fast-levels)" and said == ""


def test_set_up_is_told_of_them_by_the_interpreter_that_is_named(site):
    """Else it would call such a level none, and make nothing ready."""
    site.distribution("fast-levels", "mine = fast_levels")
    site.level("mine", "fast_levels")
    done = site.strata.run("--needs", "json", "compare", "x.py:f", "--levels", "mine,eager")
    assert json.loads(done.stdout)["set_up"] is True, done.stderr
    done = site.strata.run(
        *("--needs", "json", "compare", "x.py:f", "--levels", "mine", "--python", "/no/python")
    )
    assert json.loads(done.stdout)["set_up"] is False
