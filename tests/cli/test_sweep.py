# SPDX-License-Identifier: Apache-2.0
"""`strata sweep`: a grid with levels that do as they are told: who is the fastest where, what ran out of memory, what has no result, a budget that ends early."""
from __future__ import annotations

import json

from test_plan import IMAGES


def sweep(strata, levels: str, *more: str):
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run("sweep", "net.py:build", "--levels", levels, "--threads", "1", "--store", str(strata.store), "--order-seed", "3", "--format", "json", *more)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    return done, document, {item["id"]: item for section in document["sections"] for item in section["items"] if "id" in item}


SHORT = ("--restarts", "3", "--point-time", "1s")


def test_a_map_says_who_is_the_fastest_and_every_point_is_told(strata):
    strata.level("plain", rank=1)
    strata.level("quick", samples={"median_ns": 100_000, "jitter": 0.01, "seed": 1, "restart": 0.0})
    done, document, items = sweep(strata, "plain,quick", "--batch", "1,2", "--size", "8,10", *SHORT)
    assert done.returncode == 0, done.stderr
    fastest = items["fastest1"]
    assert fastest["rows"] == ["8", "10"] and fastest["columns"] == ["1", "2"]
    assert fastest["labels"] == [["quick", "quick"], ["quick", "quick"]] and fastest["values"] == [[0, 0], [0, 0]] and fastest["scale"]["categories"] == ["quick"]
    assert document["summary"].startswith("Quick is the fastest in every one of 4 points") and "more than 100% behind in 4" in document["summary"]
    assert [panel["title"] for panel in items["times1"]["panels"]] == ["size 8", "size 10"]
    assert all(8 < value < 12 for row in items["speedup1"]["values"] for value in row)
    points = items["points"]["rows"]
    assert len(points) == 8 and {row["state"] for row in points} == {"measured"}
    shown = strata.run("show", "last", "--store", str(strata.store), "--format", "json")
    assert json.loads(shown.stdout) == document
    page = next((strata.store.parent / "reports").glob("*.html")).read_text(encoding="utf-8")
    assert "Who is the fastest" in page


def test_equal_levels_are_a_tie_and_no_colour(strata):
    strata.level("plain", rank=1)
    strata.level("twin")
    _, document, items = sweep(strata, "plain,twin", "--batch", "1,2", *SHORT)
    labels = [label for row in items["fastest1"]["labels"] for label in row]
    assert len(labels) == 2 and all("plain" in label and "twin" in label for label in labels), labels
    assert items["fastest1"]["values"] == [[None, None]] and "In none of 2 points is one level alone the fastest" in document["summary"]


def test_a_level_that_ran_out_of_memory_is_not_tried_at_larger_points_until_it_is_asked_to(strata):
    strata.level("plain", rank=1)
    strata.level("hungry", ops={"load": {"error": {"code": "out_of_memory", "what": "no memory for it", "hint": ""}}})

    def reasons(*more: str) -> dict[tuple[str, str], str]:
        done, _, items = sweep(strata, "plain,hungry", "--batch", "1,2,4", "--size", "8,10", *SHORT, *more)
        assert done.returncode == 1, done.stderr
        rows = [row for row in items["points"]["rows"] if row["level"] == "hungry"]
        assert all(row["state"] == "out_of_memory" for row in rows)
        return {(row["batch"], row["size"]): row["reason"] for row in rows}

    first = reasons()
    assert len(first) == 6
    tried = {point for point, why in first.items() if not why.startswith("skipped: no smaller than")}
    assert tried and first[("4", "10")].startswith("skipped") or ("4", "10") in tried
    assert len(tried) < 6, first
    assert all(why.startswith("skipped") for why in reasons().values()), "an earlier run saw it"
    retried = reasons("--retry")
    assert not any(why.startswith("skipped") for why in retried.values())


def test_a_point_that_the_network_cannot_have_is_told_and_takes_no_other_with_it(strata):
    strata.level("plain", rank=1)
    done, document, items = sweep(strata, "plain", "--batch", "1,2", "--size", "2,8", *SHORT)
    assert done.returncode == 0, done.stderr
    assert len(items["points"]["rows"]) == 2
    warnings = [item["paragraph"] for section in document["sections"] for item in section["items"] if "paragraph" in item]
    assert sum("W009" in text and "size 2" in text and "no result" in text for text in warnings) == 2
    assert not any("points were reached" in text for text in warnings)


def test_a_budget_that_ends_early_leaves_points_that_resume_goes_on_with(strata):
    strata.level("plain", rank=1)
    done, document, items = sweep(strata, "plain", "--batch", "1,2,3,4", "--restarts", "1", "--budget", "1s", "--point-time", "1s")
    rows = len(items["points"]["rows"]) if "points" in items else 0
    assert rows < 4
    words = json.dumps(document)
    assert f"{rows} of 4 points were reached" in words
    run = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert json.loads(run.stdout)["title"] == document["title"]


def test_a_dry_run_says_what_would_be_measured_and_stores_nothing(strata):
    strata.level("plain", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run("sweep", "net.py:build", "--levels", "plain", "--batch", "1..8*2", "--size", "8,10", "--dry-run", "--store", str(strata.store))
    assert done.returncode == 0 and "8 cases" in done.stdout and not strata.store.exists()
    wrong = strata.run("sweep", "net.py:build", "--batch", "1..8*2", "--sise", "8")
    assert wrong.returncode == 2 and "--size" in wrong.stderr
