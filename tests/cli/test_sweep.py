# SPDX-License-Identifier: Apache-2.0
"""`strata sweep`: a grid with levels that do as they are told: who is the fastest where, what ran
out of memory, what has no result, a budget that ends early."""

from __future__ import annotations

import json
import os
import re
import sqlite3

from test_plan import IMAGES


def sweep(strata, levels: str, *more: str):
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run(
        "sweep",
        "net.py:build",
        "--levels",
        levels,
        "--threads",
        "1",
        "--store",
        str(strata.store),
        "--order-seed",
        "3",
        "--format",
        "json",
        *more,
    )
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    return (
        done,
        document,
        {
            item["id"]: item
            for section in document["sections"]
            for item in section["items"]
            if "id" in item
        },
    )


SHORT = ("--restarts", "3", "--point-time", "1s")


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


def test_a_budget_that_ends_early_leaves_points_that_resume_goes_on_with(strata):
    strata.level("plain", rank=1)
    _, document, items = sweep(
        strata,
        "plain",
        "--batch",
        "1,2,3,4",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--point-time",
        "1s",
    )
    rows = len(items["points"]["rows"]) if "points" in items else 0
    assert rows < 4
    words = json.dumps(document)
    assert f"{rows} of 4 points were reached" in words
    run = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert json.loads(run.stdout)["title"] == document["title"]


def blocks_of(strata) -> dict[tuple, list[tuple]]:
    """Places of blocks by case, participant and restart."""
    places: dict[tuple, list[tuple]] = {}
    with sqlite3.connect(f"file:{strata.store}?mode=ro", uri=True) as store:
        for case, row, restart, turn, position in store.execute(
            "SELECT hash, row_id, restart, round, position FROM blocks JOIN level_rows USING (row_id)"
        ):
            places.setdefault((case, row, restart), []).append((turn, position))
    return places


def test_a_walk_has_one_process_of_each_level_which_goes_from_point_to_point(strata):
    counted = {"bye": {"from_start": 1_000_000, "hang": True}}  # so that starts are counted
    strata.level("plain", rank=1, ops=counted)
    # as PyTorch does, whether it compiles or not
    strata.level("other", ops=counted, empty_folder="TORCHINDUCTOR_CACHE_DIR")
    done, _, items = sweep(
        strata,
        "plain,other",
        "--batch",
        "1,2,4,8",
        "--size",
        "8,10",
        "--restarts",
        "2",
        "--point-time",
        "1s",
    )
    assert done.returncode == 0 and {row["state"] for row in items["points"]["rows"]} == {
        "measured"
    }, done.stderr
    # corners, and the lines of batch 4 and of size 10 beside them: in fresh processes, for their
    # memory
    alone = 4 + 3
    for level in ("plain", "other"):
        assert (strata.levels / level / "script.json.starts").stat().st_size == alone + 2
    assert len(blocks_of(strata)) == 8 * 2 * 2


def test_a_level_that_is_unequal_beside_three_runs_of_eager_is_judged_beside_all(strata):
    strata.level("plain", rank=1)
    # as beside an envelope that is too narrow
    strata.level("sound", outputs={"add": 1.0, "few_runs": True})
    strata.level("wrong", outputs={"add": 1.0})
    done, _, items = sweep(
        strata,
        "plain,sound,wrong",
        "--batch",
        "1,2,4,8",
        "--size",
        "8,10",
        "--restarts",
        "2",
        "--point-time",
        "1s",
    )
    states = {
        (row["level"], row["batch"], row["size"]): row["state"] for row in items["points"]["rows"]
    }
    assert len(states) == 8 * 3 and done.returncode == 1
    assert {state for (level, *_), state in states.items() if level != "wrong"} == {"measured"}, (
        done.stderr
    )
    assert {state for (level, *_), state in states.items() if level == "wrong"} == {"unequal"}
    decided = re.findall(
        r"batch (\d+), size (\d+).*: unequal beside three runs of eager: ([a-z, ]+); all runs decide",
        done.stderr,
    )
    assert sorted(decided) == [
        (batch, size, "sound, wrong") for batch in "24" for size in ("10", "8")
    ], "a corner had judged wrong already, but not sound"
    assert len(blocks_of(strata)) == 8 * 2 * 2
    with sqlite3.connect(strata.store) as store:
        proofs = [
            json.loads(proof)
            for (proof,) in store.execute("SELECT proof FROM level_rows WHERE level='sound'")
        ]
    extents = [
        line["detail"]
        for proof in proofs
        for line in proof["lines"]
        if line["check"] == "extent of the proof"
    ]
    assert len(extents) == 4 and all("an envelope of all runs of eager" in one for one in extents)


def test_a_process_that_died_at_a_point_is_replaced_at_the_next(strata):
    strata.level("plain", rank=1)
    strata.level("frail", ops={"measure": {"signal": 11, "after": 20}})
    done, _, items = sweep(
        strata,
        "plain,frail",
        "--batch",
        "1,2,4,8",
        "--size",
        "8,10",
        "--restarts",
        "1",
        "--point-time",
        "1s",
    )
    rows = [row for row in items["points"]["rows"] if row["level"] == "frail"]
    assert done.returncode == 1 and len(rows) == 8 and "crashed" in {row["state"] for row in rows}
    assert {row["state"] for row in items["points"]["rows"] if row["level"] == "plain"} == {
        "measured"
    }


def test_a_batch_is_looked_for_by_doubling_and_bisecting(strata):
    # an iteration takes as long at every batch, so that the largest is the best
    strata.level("plain", rank=1)
    strata.level("other")
    done, document, items = sweep(
        strata,
        "plain,other",
        "--find-batch",
        "throughput",
        "--batch",
        "1..16*2",
        "--restarts",
        "2",
        "--point-time",
        "1s",
    )
    assert done.returncode == 0, done.stderr
    assert [
        (row["batch"]["value"], row["fastest"]["value"]) for row in items["best_batch"]["rows"]
    ] == [(16, 16)] * 2
    assert {int(row["batch"]) for row in items["points"]["rows"]} == {1, 2, 4, 8, 12, 14, 16}
    assert document["summary"].startswith(
        "Best batch, the smallest batch within 2% of the best throughput: plain: 16 (1"
    )
    again = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert json.loads(again.stdout) == document and "restart" not in again.stderr, (
        "all was measured already"
    )
    for words, told in (
        (("--find-batch", "speed"), "throughput, memory, utilisation"),
        (("--find-batch", "memory", "--batch", "4"), "name both ends"),
    ):
        refused = strata.run("sweep", "net.py:build", "--levels", "plain", *words)
        assert refused.returncode == 2 and told in refused.stderr


def killed(strata, at: str, *axes: str) -> None:
    """A sweep of two levels, killed at a line of its progress."""
    strata.level("plain", rank=1)
    strata.level("other")
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    process = strata.start(
        "sweep",
        "net.py:build",
        "--levels",
        "plain,other",
        "--threads",
        "1",
        "--store",
        str(strata.store),
        "--order-seed",
        "3",
        *axes,
        *SHORT,
    )
    for line in process.stderr:
        if at in line:
            break
    process.kill()
    process.communicate()


def test_killed_in_its_second_walk_a_sweep_goes_on_and_nothing_is_lost_or_doubled(strata):
    killed(strata, "walk 2 of 3, point 4", "--batch", "1,2,4", "--size", "8,10")
    before = blocks_of(strata)
    assert max(restart for _, _, restart in before) == 1
    done = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "proving" not in done.stderr, "each point was proven in the first walk"
    after = blocks_of(strata)
    assert len(after) == 6 * 2 * 3 and {restart for _, _, restart in after} == {0, 1, 2}
    assert all(len(places) == len(set(places)) for places in after.values())
    whole = [key for key in before if key[2] == 0]
    assert len(whole) == 12 and all(after[key] == before[key] for key in whole), (
        "the first walk was kept as it was"
    )
    items = {
        item["id"]: item
        for section in json.loads(done.stdout)["sections"]
        for item in section["items"]
        if "id" in item
    }
    assert {row["state"] for row in items["points"]["rows"]} == {"measured"}


def test_killed_while_it_measures_a_point_for_the_first_time_a_sweep_keeps_its_proofs(strata):
    killed(strata, "measuring, round 1", "--batch", "1,2", "--size", "8,10")
    assert blocks_of(strata) == {} or {restart for _, _, restart in blocks_of(strata)} == {0}
    done = strata.run("resume", "last", "--store", str(strata.store), "--format", "json")
    assert done.returncode == 0, done.stderr
    first, rest = done.stderr.split("walk 1 of 3, point 2", 1)
    assert "measuring, round 1" in first and "proving" not in first and "proving" in rest
    items = {
        item["id"]: item
        for section in json.loads(done.stdout)["sections"]
        for item in section["items"]
        if "id" in item
    }
    assert {row["state"] for row in items["points"]["rows"]} == {"measured"}


def test_a_dry_run_says_what_would_be_measured_and_stores_nothing(strata):
    strata.level("plain", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run(
        "sweep",
        "net.py:build",
        "--levels",
        "plain",
        "--batch",
        "1..8*2",
        "--size",
        "8,10",
        "--dry-run",
        "--store",
        str(strata.store),
    )
    assert done.returncode == 0 and "8 cases" in done.stdout and not strata.store.exists()
    huge = strata.run(
        "sweep", "net.py:build", "--batch", "1..256", "--size", "1..256", "--budget", "40m"
    )
    assert huge.returncode == 2 and "65536 cases" in huge.stderr and "about 480" in huge.stderr
    wrong = strata.run("sweep", "net.py:build", "--batch", "1..8*2", "--sise", "8")
    assert wrong.returncode == 2 and "--size" in wrong.stderr


GRID = (
    "sweep",
    "net.py:build",
    "--levels",
    "plain",
    "--threads",
    "1",
    "--batch",
    "1..8*2",
    "--size",
    "8,10,12",
    "--restarts",
    "2",
    "--point-time",
    "1s",
)


def plan_of(strata) -> dict:
    done = strata.run(*GRID, "--dry-run", "--format", "json", "--store", str(strata.store))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_minutes_and_memory_of_points_are_foreseen_and_what_earlier_sweeps_took_corrects_them(
    strata,
):
    strata.level("plain", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    before = plan_of(strata)
    assert len(before["points"]) == 12 and all(
        point["predicted_s"] > 1 and point["predicted_bytes"] > 1e6 for point in before["points"]
    )
    assert (
        "no sweep of net:build is stored here"
        in strata.run(*GRID, "--dry-run", "--store", str(strata.store)).stdout
    )
    done = strata.run(*GRID, "--order-seed", "3", "--store", str(strata.store))
    assert done.returncode == 0, done.stderr
    assert (
        "plan: 12 points in 2 walks, about" in done.stderr
        and "point " in done.stderr
        and "minutes" in done.stderr
    )
    off = re.search(
        r"predicted minutes were within a factor of 2 for (\d+) of 12 points, and for (\d+) as corrected on the way; predicted memory for \d+ of (\d+) at",
        done.stderr,
    )
    assert off and int(off[2]) >= 9 and int(off[3]) >= 8, done.stderr
    assert "as corrected on the way" in done.stdout, "the report says it too"
    with sqlite3.connect(f"file:{strata.store}?mode=ro", uri=True) as store:
        (settings,) = store.execute("SELECT settings FROM runs").fetchone()
    visits = json.loads(settings)["visited"]["visits"]
    assert (
        sorted(visit["kind"] for visit in visits) == ["later"] * 12 + ["light"] * 8 + ["whole"] * 4
    )
    wall = json.loads(settings)["wall_s"]
    assert sum(visit["capture_s"] + visit["rest_s"] for visit in visits) < wall
    after = plan_of(strata)
    text = strata.run(*GRID, "--dry-run", "--store", str(strata.store)).stdout
    assert (
        "by 24 visits of earlier sweeps of net:build on this machine" in text
        and "minutes" in text
        and "memory" in text
    )
    assert (
        wall / 2 < after["predicted_s"] + sum(visit["capture_s"] for visit in visits) < 2 * wall
    ), "all is captured now"


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
