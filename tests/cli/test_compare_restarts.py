# SPDX-License-Identifier: Apache-2.0
"""`strata compare` and restarts that part: what is claimed, warned of and learned."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys

import pytest
from conftest import ROOT, rows_of, samples

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage


def test_restarts_that_do_not_agree_are_warned_of(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    _, result = strata.compare("steady", "moody", restarts=3)
    (warning,) = [warning for warning in result["warnings"] if warning["id"] == "W007"]
    assert "moody" in warning["what"] and "steady" not in warning["what"]
    ratios = [math.log(ratio) for ratio in rows_of(result)["moody"]["ratio"]["by_restart"]]
    assert (
        f"moody: {100 * statistics.stdev(ratios):.1f}% between restarts, 2.1% assumed"
        in warning["what"]
    )
    assert "disturbed" not in warning["what"], "the other cause does not hold"


def test_a_level_whose_restarts_part_is_not_called_faster(strata):
    strata.level("steady", rank=1, **samples(1_150_000))
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.1))
    _, result = strata.compare("steady", "moody", restarts=4)
    ratio = rows_of(result)["moody"]["ratio"]
    assert (
        ratio["rests_on"] == "restarts"
        and ratio["verdict"] == "inconclusive"
        and len(ratio["by_restart"]) == 4
    )


def test_a_run_learns_from_those_before_it_how_much_restarts_part_and_keeps_what_it_learned(strata):
    strata.level("slow", rank=1, **samples(1_000_000, restart=0.005))
    strata.level("fast", rank=2, **samples(970_000, seed=2, restart=0.005))
    _, first = strata.compare("slow", "fast", restarts=4)
    assert rows_of(first)["fast"]["ratio"]["learned"] is None
    for _ in range(2):
        strata.compare("slow", "fast", restarts=4)
    # whether this machine is quiet now is not what is tested
    assert (
        store_damage.rewrite(strata.store, "UPDATE run_cases SET trust=json_remove(trust,'$.load')")
        == 3
    )
    _, last = strata.compare("slow", "fast", restarts=4)
    ratio = rows_of(last)["fast"]["ratio"]
    assert ratio["rests_on"] == "learned" and (
        ratio["learned"]["runs"],
        ratio["learned"]["restarts"],
    ) == (3, 12), ratio
    assert 0.1 < ratio["learned"]["process_effect_percent"] < 1.5
    strata.compare("slow", "fast", restarts=4)
    shown = json.loads(
        strata.run(
            "show", last["run"]["id"], "--store", str(strata.store), "--format", "json"
        ).stdout
    )
    assert rows_of(shown)["fast"]["ratio"] == ratio, "what comes later changes nothing"
    text = " ".join(
        strata.run("show", last["run"]["id"], "--store", str(strata.store)).stdout.split()
    )
    assert (
        f"(learned from {ratio['learned']['restarts']} restarts in {ratio['learned']['runs']} earlier runs)"
        in text
    )


def test_after_two_restarts_it_is_said_how_many_an_unsteady_level_would_take(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    done, _ = strata.compare("steady", "moody", restarts=3)
    (line,) = [
        line for line in done.stderr.splitlines() if "would give an interval of +-5%" in line
    ]
    assert re.search(
        r"moody: [0-9.]+% between its first restarts: (about [0-9]+|over 10,000) restarts", line
    ), line


def test_one_restart_claims_only_what_no_process_effect_explains_and_says_so(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("faster", rank=2, **samples(1_700_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("slow", "faster", "fast", restarts=1)
    rows = rows_of(result)
    assert [rows[name]["ratio"]["verdict"] for name in ("faster", "fast")] == [
        "inconclusive",
        "faster",
    ]
    assert (
        rows["fast"]["ratio"]["rests_on"] == "most" and result["cases"][0]["trust"]["restarts"] == 1
    )
    shown = " ".join(strata.run("show", "last", "--store", str(strata.store)).stdout.split())
    assert (
        "1 restart (fewer than 3 show no spread of their own: 10% between processes is assumed)"
        in shown
    )


def test_the_progress_of_a_restart_shows_that_restarts_numbers(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    done, result = strata.compare("steady", "moody", restarts=3)
    message = re.findall(r"restart (\d) of 3:.* moody ([0-9.]+) ms", done.stderr)
    blocks = rows_of(result)["moody"]["blocks"]
    seen = [
        statistics.median(block["median_ms"] for block in blocks if block["restart"] == restart)
        for restart in range(3)
    ]
    assert [float(ms) for _, ms in message] == [pytest.approx(ms, rel=0.02) for ms in seen] and max(
        seen
    ) > 1.1 * min(seen)


def test_aa_runs_every_level_against_itself(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    _, result = strata.compare("one", "two", more=("--aa",))
    assert result["cases"][0]["aa"]["comparisons"] == 2
    assert result["cases"][0]["aa"]["false_alarms"] == 0
    assert rows_of(result)["one"]["aa"]["verdict"] in ("same", "inconclusive")
