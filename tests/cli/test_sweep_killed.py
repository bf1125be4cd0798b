# SPDX-License-Identifier: Apache-2.0
"""`strata sweep` within a budget, its walks and their processes, and after a kill."""

from __future__ import annotations

import json
import re
import sqlite3

from conftest import IMAGES
from small_sweep import SHORT, sweep


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
    shown = strata.run("show", "last", "--store", str(strata.store), "--format", "csv").stdout
    header, first = (line.split(",")[:4] for line in shown.splitlines()[:2])
    assert header == ["table", "run", "run_state", "run_resumed"]
    assert first[2] in ("finished", "interrupted"), first


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
