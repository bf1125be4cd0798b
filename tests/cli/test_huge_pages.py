# SPDX-License-Identifier: Apache-2.0
"""level@hugepages: a variant of every level that differs in the environment of its workers
alone."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import ROOT, rows_by_name, rows_of, samples

sys.path.insert(0, str(ROOT / "setup"))
from skips import gives_huge_pages

TOLD = ["GLIBC_TUNABLES", "variant"]
MEGABYTE = 1 << 20
needs_huge_pages = pytest.mark.skipif(not gives_huge_pages(), reason="no huge pages here")


def compare(strata, *levels: str, **environment: str):
    done = strata.run(*strata.arguments(*levels), "--format", "json", **environment)
    assert done.stdout, done.stderr
    return done, rows_by_name(json.loads(done.stdout))


@needs_huge_pages
def test_only_the_variables_of_the_worker_differ(strata):
    strata.level(
        "first",
        rank=1,
        environment_settings=TOLD,
        json_fields={"variants": {"other": {"title": "another"}}},
    )
    done, rows = compare(
        strata, "first", "first@other", "first@hugepages", GLIBC_TUNABLES="glibc.malloc.arena_max=1"
    )
    assert done.returncode == 0, done.stderr
    settings = {
        name: [row["settings"][variable] for variable in TOLD] for name, row in rows.items()
    }
    assert settings == {
        "first": ["glibc.malloc.arena_max=1", "default"],
        "first@other": ["glibc.malloc.arena_max=1", "other"],
        "first@hugepages": ["glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1", "default"],
    }
    assert "first@hugepages" in rows["first@hugepages"]["repeat"]
    assert "GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in rows["first@hugepages"]["default"]


@needs_huge_pages
def test_a_row_says_the_kernels_mode_and_how_much_memory_lies_in_huge_pages(strata):
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
        mode = file.read().partition("[")[2].partition("]")[0]
    strata.level("first", rank=1, ops={"load": {"fill": 64 * MEGABYTE}})
    _, rows = compare(strata, "first", "first@hugepages")
    assert [row["settings"]["huge_pages"] for row in rows.values()] == [mode, mode]
    assert rows["first@hugepages"]["settings"]["huge_page_bytes"] >= 32 * MEGABYTE
    if mode == "madvise":
        assert rows["first"]["settings"]["huge_page_bytes"] < 8 * MEGABYTE


def test_a_level_whose_name_strata_takes_is_told(strata):
    strata.level("first", json_fields={"variants": {"hugepages": {"title": "mine"}}})
    done = strata.run(*strata.arguments("first"))
    assert done.returncode == 2 and "hugepages, which strata gives every level" in done.stderr


def test_tuned_tries_huge_pages_and_does_not_call_less_than_a_hundredth_a_gain(strata):
    strata.level("first", rank=1, **samples(1_000_000))
    _, result = strata.compare("first", more=("--tuned", "--preset", "quick"))
    row = rows_of(result)["first"]
    tuning = row["tuning"]
    tried = {one["variant"]: one for one in tuning["tried"]}
    assert set(tried) == {"default", "hugepages"} and tuning["best"] == "default"
    if gives_huge_pages():
        assert tried["hugepages"]["state"] == "measured" and tuning["seconds"] > 0
        assert "GLIBC_TUNABLES" in tried["hugepages"]["title"]
    else:
        assert (
            tried["hugepages"]["state"] == "unavailable"
            and "huge pages" in tried["hugepages"]["reason"]
        )
        assert tuning["seconds"] == 0 and tried["default"]["state"] == "skipped"


def test_an_export_with_huge_pages_is_refused_with_what_to_set(strata):
    from shipping_level import export, shipping_level

    shipping_level(strata)
    done = export(strata, level="shipped@hugepages")
    assert done.returncode == 2 and "make no other artefact" in done.stderr
    assert (
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in done.stderr and "--level shipped," in done.stderr
    )
