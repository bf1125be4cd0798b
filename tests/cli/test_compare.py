# SPDX-License-Identifier: Apache-2.0
"""`strata compare` from end to end with fake levels: ratios, states, exit codes, what is stored."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, rows_of, samples
from running_program import small_disk, workers_of
from shipping_level import shipping_level


def test_recovers_the_ratio_of_two_levels_and_calls_the_faster_one_faster(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done, result = strata.compare("slow", "fast", restarts=3)
    assert done.returncode == 0, done.stderr
    rows = rows_of(result)
    assert rows["slow"]["ratio"]["verdict"] == "reference"
    assert rows["fast"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)
    assert rows["fast"]["ratio"]["low"] < 2.0 < rows["fast"]["ratio"]["high"]
    assert rows["fast"]["ratio"]["verdict"] == "faster"
    assert result["cases"][0]["headline"]["level"] == "fast"


def test_any_level_can_be_the_one_that_others_are_compared_with(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done, result = strata.compare("slow", "fast", more=("--reference", "fast"))
    assert done.returncode == 0, done.stderr
    rows = rows_of(result)
    assert rows["fast"]["ratio"]["verdict"] == "reference" and rows["slow"]["ratio"][
        "value"
    ] == pytest.approx(0.5, rel=0.03)
    assert result["cases"][0]["headline"]["verdict"] == "stay"
    done = strata.run(*strata.arguments("slow", "fast"), "--reference", "fats")
    assert (
        done.returncode == 2
        and "--reference fats: no such level is compared; there are slow, fast" in done.stderr
        and "did you mean fast?" in done.stderr
    )


def test_does_not_claim_a_difference_that_is_not_there(strata):
    strata.level("one", rank=1, **samples(1_000_000))
    strata.level("two", rank=2, **samples(1_000_000, seed=2))
    _, result = strata.compare("one", "two")
    assert rows_of(result)["two"]["ratio"]["verdict"] in ("same", "inconclusive")
    assert result["cases"][0]["headline"]["verdict"] in ("stay", "undecided")


def test_a_level_with_other_outputs_is_unequal_and_has_no_number(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01})
    done, result = strata.compare("right", "wrong")
    row = rows_of(result)["wrong"]
    assert (done.returncode, row["state"], row["end_to_end_ms"], row["ratio"]) == (
        1,
        "unequal",
        None,
        None,
    )
    assert rows_of(result)["right"]["state"] == "measured", rows_of(result)["right"]["reason"]
    assert "output" in row["reason"]


def test_a_level_that_answers_every_input_alike_is_mistrusted(strata):
    strata.level("right", rank=1)
    strata.level("stale", rank=2, same_output=True)
    _, result = strata.compare("right", "stale")
    row = rows_of(result)["stale"]
    assert row["state"] in ("mistrusted", "unequal") and row["end_to_end_ms"] is None
    assert "input" in row["reason"]


def test_a_level_that_is_right_before_it_is_timed_and_wrong_while_it_is_gets_no_number(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01, "only_in": "measure"})
    done, result = strata.compare("right", "wrong")
    row = rows_of(result)["wrong"]
    assert (done.returncode, row["state"], row["end_to_end_ms"], row["ratio"]) == (
        1,
        "unequal",
        None,
        None,
    )
    assert row["reason"].startswith("while timing: ")
    with sqlite3.connect(strata.store) as store:  # the block that gave it away is kept, with why
        assert [
            check
            for (check,) in store.execute(
                "SELECT check_result FROM blocks WHERE check_result LIKE 'while timing%'"
            )
        ] == [row["reason"]]


def test_weights_that_are_baked_in_are_named(strata):
    strata.level("right", rank=1)
    strata.level("baked", rank=2, outputs={"from": "timed"})
    _, result = strata.compare("right", "baked")
    row = rows_of(result)["baked"]
    assert row["state"] == "unequal" and "weights" in row["reason"]


@pytest.mark.parametrize(
    ("ops", "state", "word"),
    [
        ({"load": {"signal": 11}}, "crashed", "SIGSEGV"),
        ({"measure": {"signal": 6, "after": 2}}, "crashed", "SIGABRT"),
        ({"load": {"exit": 3}}, "crashed", "3"),
        ({"prove": {"junk": "hello"}}, "failed", "hello"),
        ({"measure": {"id": 99}}, "failed", "99"),
        (
            {"load": {"error": {"code": "out_of_memory", "what": "no memory for it", "hint": ""}}},
            "out_of_memory",
            "no memory for it",
        ),
        (
            {
                "load": {
                    "error": {"code": "unsupported", "what": "no such operation: foo", "hint": ""}
                }
            },
            "unsupported",
            "foo",
        ),
        ({"measure": {"answer": {"wall_ns": []}}}, "failed", "wall_ns"),
    ],
)
def test_a_worker_that_goes_wrong_costs_its_row_and_no_other(strata, ops, state, word):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops=ops)
    done, result = strata.compare("right", "wrong")
    rows = rows_of(result)
    assert rows["wrong"]["state"] == state, rows["wrong"]["reason"]
    assert word in rows["wrong"]["reason"]
    assert rows["right"]["state"] == "measured"
    assert done.returncode == (3 if state == "unsupported" else 1)
    assert "--levels" in rows["wrong"]["repeat"]


def test_a_worker_that_hangs_is_timed_out(strata):
    strata.level("right", rank=1)
    strata.level("hangs", rank=2, ops={"prove": {"hang": True}})
    done, result = strata.compare("right", "hangs", more=("--timeout", "3s"))
    assert (
        rows_of(result)["hangs"]["state"],
        rows_of(result)["right"]["state"],
        done.returncode,
    ) == ("timeout", "measured", 1)


def test_what_a_level_says_that_it_is_doing_is_shown_with_its_name(strata):
    strata.level(
        "slow", rank=1, ops={"load": {"progress": ["compiling 1 of 2", "compiling 2 of 2"]}}
    )
    done, result = strata.compare("slow")
    assert rows_of(result)["slow"]["state"] == "measured"
    assert "slow: compiling 1 of 2" in done.stderr and "slow: compiling 2 of 2" in done.stderr


def test_a_worker_of_another_protocol_version_is_refused(strata):
    strata.level("right", rank=1)
    strata.level("old", rank=2, api=1)
    _, result = strata.compare("right", "old")
    assert (
        rows_of(result)["old"]["state"] == "unavailable"
        and "version 1" in rows_of(result)["old"]["reason"]
    )


def test_a_debug_build_is_timed_only_when_asked_for(strata):
    strata.level("debug", rank=1, build="debug")
    strata.level("right", rank=2)
    _, result = strata.compare("debug", "right")
    assert (
        rows_of(result)["debug"]["state"] == "unavailable"
        and "debug" in rows_of(result)["debug"]["reason"]
    )
    _, result = strata.compare("debug", "right", more=("--allow-debug",))
    assert rows_of(result)["debug"]["state"] == "measured"


def test_a_program_that_does_not_exist_is_unavailable_and_a_named_level_makes_exit_3(strata):
    strata.level("right", rank=1)
    strata.level("gone", rank=2, json_fields={"start": ["/nowhere/level"]})
    done, result = strata.compare("right", "gone")
    assert (rows_of(result)["gone"]["state"], done.returncode) == ("unavailable", 3)


def test_a_run_is_stored_shown_listed_and_exported(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    _, result = strata.compare("one", "two", more=("--name", "first"))
    run = result["run"]["id"]
    again = strata.run("show", "first", "--format", "json", "--store", str(strata.store))
    assert json.loads(again.stdout) == result  # every statistic again from the store
    assert run in strata.run("list", "runs", "--store", str(strata.store)).stdout
    certificate = strata.run("show", run, "--certificate", "--store", str(strata.store)).stdout
    assert "observed" in certificate and "generic weights" in certificate
    csv = strata.run("export-data", "last", "--store", str(strata.store)).stdout.splitlines()
    assert len(csv) - 1 == sum(row["end_to_end_ms"]["samples"] for row in rows_of(result).values())
    page = strata.folder / "page.html"
    assert strata.run("report", run, "--store", str(strata.store), "-o", str(page)).returncode == 0
    assert "<html" in page.read_text(encoding="utf-8")[:2000]
    for style, word in (("md", "|"), ("csv", "one"), ("text", "Trust")):
        assert (
            word in strata.run("show", run, "--format", style, "--store", str(strata.store)).stdout
        )


def test_pages_beside_the_store_share_one_script_and_one_that_is_passed_on_carries_it(strata):
    strata.level("one", rank=1)
    for name in ("first", "second"):
        strata.compare("one", restarts=1, more=("--name", name))
    reports = strata.store.parent / "reports"
    pages, (script,) = list(reports.glob("*.html")), reports.glob("plotly-*.min.js")
    assert len(pages) == 2 and all(page.stat().st_size < 300_000 for page in pages)
    assert all(
        f'<script src="{script.name}"></script>' in page.read_text(encoding="utf-8")
        for page in pages
    )
    alone = strata.folder / "alone.html"
    assert (
        strata.run("report", "first", "--store", str(strata.store), "-o", str(alone)).returncode
        == 0
    )
    assert (
        " src=" not in alone.read_text(encoding="utf-8").split("<script", 1)[0]
        and alone.stat().st_size > script.stat().st_size
    )


def test_a_case_that_cannot_be_captured_takes_nothing_from_the_others(strata):
    strata.level("one", rank=1)
    model = strata.folder / "no_three.py"
    model.write_text(
        "import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n        assert len(x) != 3, 'not three'\n        return super().forward(x)\n\n"
        "def build():\n    return Net(4, 2).eval(), torch.ones(2, 4)\n"
    )
    words = strata.arguments("one", restarts=1)
    words[1] = f"{model}:build"
    done = strata.run(*words, "--batch", "3,2", "--format", "json")
    assert done.returncode == 2 and "not three" in done.stderr.splitlines()[-2], done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert case["case"]["batch"] == 2 and case["rows"][0]["state"] == "measured"


def test_a_full_disk_under_the_store_ends_the_run_with_a_reason_and_no_worker_left(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    disk = strata.folder / "disk"
    disk.mkdir()
    words = small_disk(disk, 700)
    arguments = strata.arguments("one", "two", restarts=1, budget="600s")
    arguments[arguments.index("--store") + 1] = str(disk / "strata.db")
    # what is left of the disk is looked at before the file system goes with its last process
    script = '"$@"; code=$?; "$1" list runs --store "$0/strata.db"; exit $code'
    done = subprocess.run(
        [*words, "sh", "-c", script, str(disk), str(PROGRAM), *arguments],
        env=strata.environment,
        cwd=strata.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode not in (0, 2) and done.returncode > 0, done.stderr
    assert "full" in done.stderr and str(disk) in done.stderr
    assert "interrupted" in done.stdout  # the store opens, with what was committed
    assert workers_of(strata) == []


def test_a_report_that_cannot_be_written_says_so_and_keeps_the_run(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    done = strata.run(*strata.arguments("one", "two", restarts=1), "-o", "/dev/full")
    assert done.returncode == 1 and "/dev/full" in done.stderr
    assert "finished" in strata.run("list", "runs", "--store", str(strata.store)).stdout


def test_a_broken_level_hides_no_other(strata):
    strata.level("one", rank=1)
    (strata.levels / "broken").mkdir()
    (strata.levels / "broken" / "level.json").write_text("{", encoding="utf-8")
    _, result = strata.compare("one", restarts=1)
    assert rows_of(result)["one"]["state"] == "measured"
    assert "W006" in [warning["id"] for warning in result["warnings"]]


def test_the_first_line_says_that_the_reference_has_no_number_and_what_stands_in_for_it(strata):
    strata.level("wrong", rank=1, outputs={"scale": 1.01})
    strata.level("right", rank=2, **samples(2_000_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("wrong", "right", "fast")
    case = result["cases"][0]
    assert (
        case["reference_level"],
        case["reference_instead_of"]["level"],
        case["reference_instead_of"]["state"],
    ) == ("right", "wrong", "unequal")
    assert (
        case["headline"]["sentence"].startswith("wrong has no number (unequal: ")
        and "; compared with right instead. Move to fast" in case["headline"]["sentence"]
    )
    assert strata.run("show", "last", "--store", str(strata.store)).stdout.startswith(
        "wrong has no number"
    )


def test_a_reference_that_is_lost_while_it_is_timed_is_replaced_and_it_is_said(strata):
    strata.level("lost", rank=1, ops={"measure": {"signal": 6, "after": 2}})
    strata.level("right", rank=2, **samples(2_000_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("lost", "right", "fast")
    case = result["cases"][0]
    assert (
        case["headline"]["sentence"].startswith("lost has no number (crashed: ")
        and case["headline"]["level"] == "fast"
    )


def test_a_cold_start_that_another_version_noted_in_other_words_is_unknown_and_not_0(strata):
    strata.level("right")
    shipping_level(strata)

    def cold_start_ms():
        _, result = strata.compare("right", "shipped")
        return rows_of(result)["shipped"]["startup"]["cold_start_ms"]

    assert cold_start_ms() > 0
    notes = [
        path
        for path in Path(strata.environment["STRATA_CACHE"]).rglob("warm.json")
        if "shipped" in str(path) and "first_ever_ms" not in path.read_text(encoding="utf-8")
    ]
    assert notes
    for path in notes:
        path.write_text('{"first_ever_ms": 9, "prepare_ms": 3}', encoding="utf-8")
    assert cold_start_ms() is None
