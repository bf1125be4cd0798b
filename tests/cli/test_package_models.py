# SPDX-License-Identifier: Apache-2.0
"""Networks of packages by name, as `timm:convnext_tiny?in_chans=1`, through the built program; timm
is stood for by tests/fakes/packages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

WORDS = ["--levels", "one", "--threads", "1", "--restarts", "1", "--budget", "1s"]


@pytest.fixture
def timm(strata) -> Path:
    """The package in a folder of the test's own, which Python finds it in."""
    folder = strata.folder / "installed"
    shutil.copytree(ROOT / "tests/fakes/packages/timm", folder / "timm")
    strata.environment["PYTHONPATH"] = str(folder)
    return folder / "timm" / "__init__.py"


def test_lists_how_models_of_packages_are_named(strata):
    done = strata.run("list", "models", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["model"]: row for row in json.loads(done.stdout)}
    for scheme in ("torchvision", "timm", "hf"):
        row = rows[f"{scheme}:NAME?OPTION=VALUE&..."]
        assert row["kind"] == "package" and f"as {scheme}:" in row["what_it_is"]


def test_compares_a_network_of_a_package_with_its_options_in_the_case(strata, timm):
    strata.level("one", rank=1)
    model = "timm:tiny_net?in_chans=1&num_classes=3"
    done = strata.run("compare", model, "--batch", "2", *WORDS, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert f"{model} has " in done.stderr and " parameters, " in done.stderr
    case = json.loads(done.stdout)["cases"][0]["case"]
    assert case["model"] == model and case["batch"] == 2, case


def test_a_package_that_changed_is_captured_again(strata, timm):
    def graph():
        done = strata.run("graph", "timm:tiny_net", "--threads", "1", "--format", "json")
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "building timm:tiny_net" in graph()
    assert "building" not in graph()
    timm.write_text(timm.read_text().replace("num_classes: int = 5", "num_classes: int = 6"))
    again = graph()
    assert "capturing again: " in again and "__init__.py changed" in again
    assert "building timm:tiny_net" in again


def test_a_package_that_is_found_elsewhere_is_captured_again(strata, timm):
    graph = ["graph", "timm:tiny_net?in_chans=2", "--threads", "1"]
    assert "building timm:tiny_net" in strata.run(*graph).stderr
    elsewhere = shutil.copytree(timm.parent.parent, strata.folder / "elsewhere")
    assert "building" not in strata.run(*graph).stderr
    done = strata.run(*graph, PYTHONPATH=str(elsewhere))
    assert "building timm:tiny_net" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "says", "hint", "code"),
    [
        (["tiny:tiny_net"], "'tiny' in tiny:tiny_net is no package", "torchvision, timm, hf", 2),
        (["timm:tiny_nt"], "timm has no model 'tiny_nt'", "did you mean tiny_net", 2),
        (["timm:tiny_net?chans=1"], "tiny_net has no option 'chans'", "in_chans", 2),
        (
            ["timm:tiny_net?width=3000", "--memory-limit", "0.05"],
            "--memory-limit allows 53.7 MB",
            "a higher --memory-limit",
            2,
        ),
    ],
)
def test_what_a_name_may_not_say_is_told_by_the_plan_as_by_the_run(
    strata, timm, words, says, hint, code
):
    strata.level("one", rank=1)
    for more in (["--dry-run"], []):
        done = strata.run("compare", *words, *WORDS, *more)
        assert done.returncode == code and not done.stdout, (more, done.stdout, done.stderr)
        error = done.stderr[done.stderr.index("error: ") :]
        assert says in error and hint in error, error


def test_a_package_that_cannot_be_imported_ends_it_as_an_environment_that_lacks_it(strata, timm):
    timm.write_text("raise ImportError('built for another torch')\n")
    done = strata.run("graph", "timm:tiny_net", "--threads", "1")
    assert done.returncode == 3, done.stderr
    assert "the package timm cannot be imported" in done.stderr
    assert "built for another torch" in done.stderr
