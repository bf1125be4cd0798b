# SPDX-License-Identifier: Apache-2.0
"""Variants: named with level@variant, and chosen by --tuned in a trial of their own."""

from __future__ import annotations

import json

import pytest
from conftest import MODEL, rows_by_name, samples

TITLES = {
    "quicker": {"title": "half the time"},
    "wrong": {"title": "another result"},
    "gpu_only": {"title": "needs a GPU", "devices": ["cuda"]},
}


@pytest.fixture
def levels(strata):
    """`first` has variants: one twice as fast, one that computes something else in no time, one for
    a GPU. `second` has none."""
    variants = {
        "quicker": samples(1_000_000),
        "wrong": samples(10_000) | {"outputs": {"scale": 1.01}},
    }
    strata.level(
        "first", rank=1, json_fields={"variants": TITLES}, variants=variants, **samples(2_000_000)
    )
    strata.level("second", rank=2, **samples(1_600_000, seed=2))
    return strata


def test_a_variant_is_measured_by_name_as_a_level_of_its_own(levels):
    done, result = levels.compare("first", "first@quicker")
    rows = rows_by_name(result)
    assert done.returncode == 0, done.stderr
    assert (
        set(rows) == {"first", "first@quicker"}
        and rows["first"]["reference"]
        and not rows["first@quicker"]["reference"]
    )
    assert rows["first@quicker"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)
    assert (
        "first@quicker" in rows["first@quicker"]["repeat"]
        and result["cases"][0]["headline"]["level"] == "first@quicker"
    )


def test_a_variant_of_another_device_is_unsupported_and_one_that_computes_something_else_unequal(
    levels,
):
    done, result = levels.compare("first", "first@wrong", "first@gpu_only")
    rows = rows_by_name(result)
    assert (rows["first@wrong"]["state"], rows["first@gpu_only"]["state"]) == (
        "unequal",
        "unsupported",
    )
    assert done.returncode == 1


def test_tuned_chooses_the_fastest_sound_variant_and_compares_tuned_with_tuned(levels):
    done, result = levels.compare(
        "first", "second", more=("--tuned", "--preset", "quick"), restarts=4
    )
    rows = rows_by_name(result)
    assert done.returncode == 0, done.stderr
    assert set(rows) == {"first", "first@quicker", "second"}
    tried = {one["variant"]: one for one in rows["first"]["tuning"]["tried"]}
    assert (
        set(tried) == {"default", "quicker", "wrong", "hugepages"}
        and rows["first"]["tuning"]["best"] == "quicker"
    )
    assert (
        tried["wrong"]["state"] == "unequal"
        and tried["wrong"]["median_ms"] is None
        and tried["wrong"]["ratio"] is None
    )
    assert (
        tried["quicker"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)
        and tried["quicker"]["ratio"]["verdict"] == "faster"
        and tried["default"]["ratio"] is None
    )
    assert rows["first"]["tuning"]["restarts"] == 2
    second = rows["second"]["tuning"]
    assert (
        {one["variant"] for one in second["tried"]} == {"default", "hugepages"}
        and second["best"] == "default"
        and second["note"] == ""
    )
    assert (
        rows["first"]["tuned"] is None
        and rows["first@quicker"]["tuned"]["ratio"]["verdict"] == "reference"
    )
    # against the default the second level wins, against the best it loses
    assert (
        rows["second"]["ratio"]["verdict"] == "faster"
        and rows["second"]["tuned"]["ratio"]["verdict"] == "slower"
    )
    assert rows["second"]["tuned"]["ratio"]["value"] == pytest.approx(1 / 1.6, rel=0.03)
    headline = result["cases"][0]["headline"]
    assert headline["verdict"] == "stay" and headline["sentence"].startswith(
        "Tuned against tuned: "
    )
    for form in ("text", "md"):
        shown = levels.run("show", "last", "--format", form, "--store", str(levels.store)).stdout
        for part in (
            "tuned",
            "first@quicker (best)",
            "first@wrong",
            "unequal: ",
            "second@hugepages",
        ):
            assert part in shown, (form, part)
    assert (
        json.loads(
            levels.run("show", "last", "--format", "json", "--store", str(levels.store)).stdout
        )
        == result
    )


def test_a_default_that_no_variant_beats_is_its_own_best(strata):
    strata.level(
        "first",
        rank=1,
        json_fields={"variants": {"slower": {"title": "twice the time"}}},
        variants={"slower": samples(4_000_000)},
        **samples(2_000_000),
    )
    strata.level("second", rank=2, **samples(1_000_000, seed=2))
    _, result = strata.compare("first", "second", more=("--tuned", "--preset", "quick"))
    rows = rows_by_name(result)
    assert set(rows) == {"first", "second"} and rows["first"]["tuning"]["best"] == "default"
    assert rows["second"]["tuned"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)


def test_a_level_whose_variants_are_for_another_device_says_so_and_has_not_failed(strata):
    strata.level(
        "first",
        rank=1,
        json_fields={"variants": {"gpu_only": TITLES["gpu_only"]}},
        **samples(2_000_000),
    )
    strata.level("second", rank=2, **samples(1_000_000, seed=2))
    done, result = strata.compare("first", "second", more=("--tuned",))
    tuning = rows_by_name(result)["first"]["tuning"]
    assert done.returncode == 0 and [one["variant"] for one in tuning["tried"]] == [
        "default",
        "hugepages",
    ]
    assert "failed" not in done.stdout and rows_by_name(result)["second"]["tuned"]["ratio"][
        "value"
    ] == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize(
    ("variants", "word"),
    [
        ([], "variants"),
        ({"default": {"title": "x"}}, "default"),
        ({"a b": {"title": "x"}}, "a b"),
        ({"x": {}}, "title"),
        ({"x": {"title": "x", "modes": ["infre"]}}, "infre"),
        ({"x": {"title": "x", "device": ["cpu"]}}, "devices"),
    ],
)
def test_variants_that_are_described_wrongly_are_told(strata, variants, word):
    strata.level("first", json_fields={"variants": variants})
    done = strata.run("compare", MODEL, "--levels", "first", "--store", str(strata.store))
    assert done.returncode == 2 and word in done.stderr


def test_an_unknown_variant_suggests_the_nearest(levels):
    done = levels.run("compare", MODEL, "--levels", "first@quiker", "--store", str(levels.store))
    assert done.returncode == 2 and "did you mean 'quicker'" in done.stderr
