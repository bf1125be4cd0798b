# SPDX-License-Identifier: Apache-2.0
"""What levels and the world around may do to the driver: a row with a state, a right exit code,
never an abort."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM, rows_of
from running_program import wait_for_blocks, workers_of

YEARS = 285 * 365 * 24 * 3600 * 10**9


@pytest.mark.parametrize(
    "ops",
    [
        {"load": {"answer": {"phases": "x"}}},
        {"load": {"answer": {"deterministic": "no"}}},
        {"load": {"answer": {"settings": 5, "artefact_bytes": -1}}},
        {"inputs": {"answer": {"count": []}}},
        {"warm_up": {"answer": {"wall_ns": [[]]}}},
        {"measure": {"answer": {"start_ns": "now"}}},
        {"prove": {"junk": "[" * 100_000}},
        {"load": {"junk": json.dumps({"id": 2, "ok": True, "settings": [[]] * 300_000})}},
    ],
    ids=lambda ops: f"{next(iter(ops))}-{next(iter(next(iter(ops.values()))))!s}",
)
def test_an_answer_of_a_wrong_type_costs_its_row_and_no_other(strata, ops):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops=ops)
    done, result = strata.compare("right", "wrong")
    rows = rows_of(result)
    assert done.returncode == 1, done.stderr
    assert rows["right"]["state"] == "measured"
    assert rows["wrong"]["state"] == "failed" and rows["wrong"]["reason"], rows["wrong"]


def test_a_level_cannot_say_that_it_is_measured(strata):
    strata.level("right", rank=1)
    strata.level(
        "wrong", rank=2, ops={"load": {"error": {"code": "measured", "what": "all is well"}}}
    )
    _, result = strata.compare("right", "wrong")
    assert rows_of(result)["wrong"]["state"] == "failed"
    assert rows_of(result)["wrong"]["reason"] == "all is well"


@pytest.mark.parametrize(
    "script",
    [
        {"clock": 0.5},
        {"clock": 1000},
        {"ops": {"measure": {"answer": {"wall_ns": [YEARS] * 10, "latency_ns": [1] * 10}}}},
        {"ops": {"measure": {"answer": {"latency_ns": [10**8] * 10}}}},
        {"ops": {"warm_up": {"answer": {"first_ns": YEARS}}}},
    ],
    ids=["half", "thousandfold", "285_years", "latency_above_the_whole", "first_iteration"],
)
def test_times_that_cannot_be_are_not_believed(strata, script):
    strata.level("right", rank=1)
    samples = {"median_ns": 1_000_000, "jitter": 0.0, "seed": 1}
    strata.level("wrong", rank=2, **{"samples": samples} | script)
    done, result = strata.compare("right", "wrong")
    row = rows_of(result)["wrong"]
    assert row["state"] == "mistrusted" and row["end_to_end_ms"] is None, row
    assert done.returncode == 1 and rows_of(result)["right"]["state"] == "measured"


def test_the_certificate_says_that_times_were_held_against_the_drivers_clock(strata):
    strata.level("right", rank=1)
    _, result = strata.compare("right")
    lines = {line["check"]: line for line in rows_of(result)["right"]["proof"]["lines"]}
    assert lines["times are the driver's"]["result"] == "pass"
    assert "untold" in lines["times are the driver's"]["value"]


@pytest.mark.parametrize(
    "trouble",
    [{"signal": int(signal.SIGSTOP)}, {"drip": 0.1}, {"hang": True}],
    ids=["stopped", "dripping", "hanging"],
)
def test_the_time_out_holds_against(strata, trouble):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops={"prove": trouble})
    begin = time.monotonic()
    done, result = strata.compare("right", "wrong", more=("--timeout", "2s"))
    assert rows_of(result)["wrong"]["state"] == "timeout", rows_of(result)["wrong"]
    assert rows_of(result)["right"]["state"] == "measured"
    assert done.returncode == 1 and time.monotonic() - begin < 120


def test_a_level_that_hangs_takes_no_measuring_time_from_the_others(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops={"measure": {"hang": True, "after": 9}})
    _, result = strata.compare("right", "wrong", budget="2s", more=("--timeout", "4s"))
    rows = rows_of(result)
    assert rows["wrong"]["state"] == "timeout"
    assert rows["right"]["end_to_end_ms"]["samples"] >= 200


def test_a_level_that_deletes_the_runs_folder_costs_its_row(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops={"result": {"delete_out": True, "after": 8}})
    done, result = strata.compare("right", "wrong")
    assert rows_of(result)["wrong"]["state"] == "failed", rows_of(result)["wrong"]
    assert done.returncode == 1 and rows_of(result)["wrong"]["reason"]


def test_what_a_worker_started_ends_with_the_driver_wherever_it_went(strata):
    strata.level("one", rank=1, ops={"load": {"escape": True}})
    process = strata.start(*strata.arguments("one", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 5)
    assert len(workers_of(strata)) >= 2
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while workers_of(strata) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers_of(strata) == []


def shell(strata, script: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", "-c", script, "bash", str(PROGRAM), *words],
        env=strata.environment,
        cwd=strata.folder,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2>&- <&-", "2> >(exec true)"])
def test_nobody_to_tell_of_progress_ends_no_measurement(strata, redirection):
    strata.level("one", rank=1)
    words = strata.arguments("one", restarts=1)
    done = shell(strata, f'"$@" --format json {redirection}', *words)
    assert done.returncode == 0
    assert rows_of(json.loads(done.stdout))["one"]["state"] == "measured"


def test_an_answer_that_cannot_be_written_is_no_success_and_what_was_measured_stays(strata):
    strata.level("one", rank=1)
    words = strata.arguments("one", restarts=1)
    for redirection in (">/dev/full", ">&-"):
        done = shell(strata, f'"$@" {redirection}', *words)
        assert done.returncode == 1, done.stderr
        assert "cannot write to standard output" in done.stderr
        shown = strata.run("show", "last", "--format", "json", "--store", str(strata.store))
        assert rows_of(json.loads(shown.stdout))["one"]["state"] == "measured"
        show = ["show", "last", "--store", str(strata.store)]
        done = shell(strata, f'"$@" {redirection}', *show)
        assert done.returncode == 1 and "cannot write" in done.stderr


def test_a_reader_that_goes_away_costs_nothing_that_was_measured(strata):
    strata.level("one", rank=1)
    words = strata.arguments("one", restarts=1)
    done = shell(strata, '"$@" | true; echo ${PIPESTATUS[0]}', *words)
    assert done.stdout.strip() in ("0", "141"), done
    shown = strata.run("show", "last", "--format", "json", "--store", str(strata.store))
    result = json.loads(shown.stdout)
    assert rows_of(result)["one"]["state"] == "measured" and not result["run"]["interrupted"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name
)
def test_a_signal_keeps_what_was_measured_and_is_the_exit_code(strata, number):
    strata.level("one", rank=1)
    process = strata.start(*strata.arguments("one", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 10)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    shown = strata.run("show", "last", "--format", "json", "--store", str(strata.store))
    assert rows_of(json.loads(shown.stdout))["one"]["state"] == "measured"
    assert workers_of(strata) == []


def test_a_store_whose_name_cannot_be_is_refused_with_a_sentence(strata):
    os.symlink("loop", strata.folder / "loop")
    for name in ("x" * 300, "loop", "loop/strata.db", "x" * 300 + "/strata.db"):
        path = str(strata.folder / name)
        for words in (["show", "last"], ["list", "runs"]):
            done = strata.run(*words, "--store", path)
            assert done.returncode in (1, 2), (words, name, done)
            assert done.stderr.startswith("error: store ") and "unforeseen" not in done.stderr
