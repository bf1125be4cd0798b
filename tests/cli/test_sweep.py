# SPDX-License-Identifier: Apache-2.0
"""`strata sweep`: a grid with levels that do as they are told: who is the fastest where, what ran
out of memory, what has no result."""

from __future__ import annotations

import json
import os
import sqlite3

from small_sweep import SHORT, sweep


def test_a_map_says_who_is_the_fastest_and_every_point_is_told(strata):
    strata.level("plain", rank=1)
    strata.level("quick", samples={"median_ns": 100_000, "jitter": 0.01, "seed": 1, "restart": 0.0})
    done, document, items = sweep(strata, "plain,quick", "--batch", "1,2", "--size", "8,10", *SHORT)
    assert done.returncode == 0, done.stderr
    fastest = items["fastest1"]
    assert fastest["rows"] == ["8", "10"] and fastest["columns"] == ["1", "2"]
    assert (
        fastest["labels"] == [["quick", "quick"], ["quick", "quick"]]
        and fastest["values"] == [[0, 0], [0, 0]]
        and fastest["scale"]["categories"] == ["quick"]
    )
    assert (
        document["summary"].startswith("Quick is the fastest in every one of 4 points")
        and "more than 100% behind in 4" in document["summary"]
    )
    assert [panel["title"] for panel in items["times1"]["panels"]] == ["size 8", "size 10"]
    speedups = items["surface1"]
    assert speedups["choices"] == [{"title": "show", "option": "speedup over plain"}] and [
        layer["name"] for layer in speedups["layers"]
    ] == ["quick"]
    assert all(
        8 < field["low"] < field["value"] < field["high"] < 12
        and field["outcome"] == "faster than plain, the fastest"
        for row in speedups["layers"][0]["fields"]
        for field in row
    )
    points = items["points"]["rows"]
    assert len(points) == 8 and {row["state"] for row in points} == {"measured"}
    shown = strata.run("show", "last", "--store", str(strata.store), "--format", "json")
    assert json.loads(shown.stdout) == document
    page = next((strata.store.parent / "reports").glob("*.html")).read_text(encoding="utf-8")
    assert "Who is the fastest" in page
    # quick, size 10, batch 2
    by_quantity = {
        item["choices"][0]["option"]: item["layers"][-1]["fields"][1][1]["value"]
        for item in items.values()
        if item["kind"] == "surface"
    }
    assert (
        abs(by_quantity["throughput"] * by_quantity["time of a sample"] - 1) < 1e-9
        and abs(by_quantity["time of an iteration"] / by_quantity["time of a sample"] - 2) < 1e-9
    )


def test_the_crossing_of_two_levels_lies_between_the_last_point_of_one_and_the_first_of_the_other(
    strata,
):
    strata.level("plain", rank=1)
    strata.level(
        "steep",
        samples={"median_ns": 400_000, "jitter": 0.01, "seed": 1, "restart": 0.0, "batch_power": 1},
    )
    done, document, items = sweep(strata, "plain,steep", "--batch", "1..8*2", *SHORT)
    assert done.returncode == 0, done.stderr
    crossing = {
        "axis": "batch",
        "before": "steep",
        "from": "2",
        "after": "plain",
        "to": "4",
        "fastest": "yes",
    }
    assert items["crossings"]["rows"] == [crossing]
    assert document["summary"] == (
        "Plain is the fastest at every point from batch 4 on (2 of 4 points). Steep is the fastest at every point up to batch 2 (2 of 4 points). "
        "The crossing from steep to plain lies between batch 2 and 4. Plain is within 10% of the fastest in 2 of 4 points and more than 100% behind in 1, in between in 1."
    )
    standing = items["standings"]["rows"][0]
    assert {
        name: standing[name]["value"]
        for name in ("points", "alone", "within", "between", "far", "unknown", "without")
    } == {
        "points": 4,
        "alone": 2,
        "within": 2,
        "between": 1,
        "far": 1,
        "unknown": 0,
        "without": 0,
    }
    shown = strata.run("show", "last", "--store", str(strata.store), "--format", "md").stdout
    assert (
        "The crossing from steep to plain lies between batch 2 and 4." in shown
        and "| along | ahead | up to | then ahead | from |" in shown
    )


def test_equal_levels_are_a_tie_and_no_colour(strata):
    strata.level("plain", rank=1)
    strata.level("twin")
    _, document, items = sweep(strata, "plain,twin", "--batch", "1,2", *SHORT)
    labels = [label for row in items["fastest1"]["labels"] for label in row]
    assert len(labels) == 2 and all("plain" in label and "twin" in label for label in labels), (
        labels
    )
    assert (
        items["fastest1"]["values"] == [[None, None]]
        and "In none of 2 points is one level alone the fastest" in document["summary"]
    )


def test_a_level_and_its_variant_share_no_process_of_a_walk(strata):
    quick = {"samples": {"median_ns": 100_000, "jitter": 0.01, "seed": 1, "restart": 0.0}}
    strata.level(
        "plain",
        rank=1,
        json_fields={"variants": {"quick": {"title": "a tenth of the time"}}},
        variants={"quick": quick},
    )
    done, _, items = sweep(strata, "plain,plain@quick", "--batch", "1,2", *SHORT)
    assert done.returncode == 0, done.stderr
    assert {row["state"] for row in items["points"]["rows"]} == {"measured"}
    assert all("plain@quick" in label for row in items["fastest1"]["labels"] for label in row), (
        items["fastest1"]["labels"]
    )


def test_a_level_that_ran_out_of_memory_is_not_tried_at_larger_points_until_it_is_asked_to(strata):
    strata.level("plain", rank=1)
    strata.level(
        "hungry",
        ops={"load": {"error": {"code": "out_of_memory", "what": "no memory for it", "hint": ""}}},
    )

    def reasons(*more: str) -> dict[tuple[str, str], str]:
        done, _, items = sweep(
            strata,
            "plain,hungry",
            "--batch",
            "1,2,4",
            "--size",
            "8,10",
            "--restarts",
            "1",
            "--point-time",
            "1s",
            *more,
        )
        assert done.returncode == 1, done.stderr
        rows = [row for row in items["points"]["rows"] if row["level"] == "hungry"]
        assert all(row["state"] == "out_of_memory" for row in rows)
        return {(row["batch"], row["size"]): row["reason"] for row in rows}

    first = reasons()
    assert len(first) == 6
    tried = {
        point for point, why in first.items() if not why.startswith("skipped: no smaller than")
    }
    assert (tried and first[("4", "10")].startswith("skipped")) or ("4", "10") in tried
    assert len(tried) < 6, first
    assert all(why.startswith("skipped") for why in reasons().values()), "an earlier run saw it"
    retried = reasons("--retry")
    assert not any(why.startswith("skipped") for why in retried.values())


def test_a_point_that_the_network_cannot_have_is_told_and_takes_no_other_with_it(strata):
    strata.level("plain", rank=1)
    done, document, items = sweep(strata, "plain", "--batch", "1,2", "--size", "2,8", *SHORT)
    assert done.returncode == 0, done.stderr
    assert len(items["points"]["rows"]) == 2
    warnings = [
        item["paragraph"]
        for section in document["sections"]
        for item in section["items"]
        if "paragraph" in item
    ]
    assert (
        sum("W009" in text and "size 2" in text and "no result" in text for text in warnings) == 2
    )
    assert not any("points were reached" in text for text in warnings)


def test_what_a_level_takes_beside_time_is_told_at_every_point_and_a_missing_meter_says_why(strata):
    strata.level("plain", rank=1)
    strata.level("other", rank=2)
    done, _, items = sweep(strata, "plain,other", "--batch", "1,2", "--size", "8,10", *SHORT)
    assert done.returncode == 0, done.stderr
    rows = items["meters"]["rows"]
    assert len(rows) == 8 and all(
        row[meter]["value"] >= 0
        for row in rows
        for meter in ("run_queue_wait", "page_faults", "switched_out")
    )
    assert all(row["throughput"]["value"] > 0 for row in rows)
    quantities = [
        item["choices"][0]["option"] for item in items.values() if item["kind"] == "surface"
    ]
    assert "page faults of an iteration" in quantities
    energy = os.access("/sys/class/powercap/intel-rapl:0/energy_uj", os.R_OK)
    assert ("energy" in rows[0]) == energy and (
        "energy of an iteration (" in items["meters"]["note"]
    ) == (not energy)
    with sqlite3.connect(f"file:{strata.store}?mode=ro", uri=True) as store:
        stored = dict(store.execute("SELECT name, count(*) FROM metrics GROUP BY name"))
    assert stored["page_faults"] == stored["switched_out"] == stored["run_queue_wait"] == 8


def test_a_sweep_whose_budget_is_spent_was_not_interrupted_and_goes_on(strata):
    strata.level("plain", rank=1)
    strata.level("quick", samples={"median_ns": 100_000, "jitter": 0.01, "seed": 1, "restart": 0.0})
    done, document, _ = sweep(strata, "plain,quick", "--batch", "1..8", *SHORT, "--budget", "5s")
    assert done.returncode == 0 and "the budget is spent" in done.stderr, done.stderr
    assert document["summary"].startswith("The budget is spent; ./strata resume "), document
    again = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["summary"].startswith("Resumed once after it was cut off. ")
