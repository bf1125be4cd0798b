# SPDX-License-Identifier: Apache-2.0
"""Comparisons of many cases: the product of axes, --dry-run, and going on after an interruption or
a kill."""

from __future__ import annotations

import csv
import io
import json
import random
import signal
import sys
import time

from conftest import IMAGES, MODEL, ROOT

sys.path.insert(0, str(ROOT / "tests" / "fakes"))

import store_damage


def cases_of(done) -> list[dict]:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["cases"]


def samples(strata, restart: str = "") -> set[tuple]:
    """Every stored sample with all that is said of it, of one restart or of all."""
    done = strata.run("export-data", "last", "--store", str(strata.store))
    return {
        tuple(row.items())
        for row in csv.DictReader(io.StringIO(done.stdout))
        if restart in ("", row["restart"])
    }


def resume(strata, *more: str, run: str = "last"):
    return strata.run("resume", run, "--store", str(strata.store), "--format", "json", *more)


def test_every_combination_of_batches_sizes_and_threads_is_a_case(strata):
    strata.level("one", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run(
        "compare",
        "net.py:build",
        "--levels",
        "one",
        "--batch",
        "1..4*2",
        "--size",
        "8,10x12",
        "--threads",
        "1,2",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    ids = [one["id"] for one in cases_of(done)]
    assert ids == [
        f"net:build/infer/b{batch}/3x{size}/fp32/cpu/t{threads}"
        for size in ("8x8", "10x12")
        for threads in (1, 2)
        for batch in (1, 2, 4)
    ]
    assert len({one["key"] for one in cases_of(done)}) == 12
    repeat = cases_of(done)[-1]["rows"][0]["repeat"]
    assert "--batch 4 --size 10x12 " in repeat and " --threads 2 " in repeat


def test_a_size_of_what_is_no_image_is_refused(strata):
    strata.level("one", rank=1)
    done = strata.run(*strata.arguments("one"), "--size", "64")
    assert done.returncode == 2 and "has no input that is an image" in done.stderr
    done = strata.run("export", MODEL, "--level", "one", "-o", "out", "--size", "32,64")
    assert done.returncode == 2 and "at one size" in done.stderr


def test_a_dry_run_prints_the_plan_and_measures_nothing(strata):
    strata.level("one", rank=1)
    strata.level("trains", rank=2, json_fields={"modes": ["train"]})
    words = [
        *strata.arguments("one", "trains", restarts=2, budget="30s"),
        "--batch",
        "1,8",
        "--dry-run",
    ]
    done = strata.run(*words)
    assert done.returncode == 0, done.stderr
    assert (
        "2 cases, about" in done.stdout
        and "measure interleaved (2 restarts, 30 s)" in done.stdout
        and "without trains: no mode infer" in done.stdout
    )
    assert "assumed" in done.stdout and not strata.store.exists()
    plan = json.loads(strata.run(*words, "--format", "json").stdout)
    assert [(point["batch"], point["levels"]) for point in plan["points"]] == [
        (1, ["one"]),
        (8, ["one"]),
    ]
    assert plan["predicted_s"] > 60


def test_a_dry_run_knows_what_stored_runs_of_the_network_took(strata):
    strata.level("one", rank=1)
    _, result = strata.compare("one")
    done = strata.run(*strata.arguments("one"), "--dry-run")
    assert (
        f"as run {result['run']['id']} took" in done.stdout
        and "on disk for each case" in done.stdout
    )
    other = strata.run(*strata.arguments("one", budget="2s"), "--dry-run")
    assert "assumed" in other.stdout  # another effort says nothing of this one


def test_a_run_that_was_interrupted_says_how_to_go_on_and_keeps_whole_restarts(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=3, budget="6s"))
    for line in process.stderr:
        if line.startswith("restart 1 of 3"):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "./strata resume " in errors, errors
    assert "report: " in errors and "error" not in errors, "its page is written, too"
    first = samples(strata, restart="0")
    done = resume(strata)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert not result["run"]["interrupted"] and result["run"]["finished"]
    assert result["run"]["resumed"] == 1
    assert result["cases"][0]["headline"]["sentence"].startswith(
        "Resumed once after it was cut off. "
    )
    assert "W005" not in {warning["id"] for warning in result["warnings"]}
    assert "restart 1 of 3:" not in done.stderr and "restart 3 of 3:" in done.stderr
    assert {row["state"] for row in result["cases"][0]["rows"]} == {"measured"} and result["cases"][
        0
    ]["trust"]["restarts"] == 3
    assert first and first == samples(strata, restart="0")
    blocks = len(
        {(dict(one)["level"], dict(one)["restart"], dict(one)["round"]) for one in samples(strata)}
    )
    proven = [
        one["value"]
        for row in result["cases"][0]["rows"]
        for one in row["proof"]["lines"]
        if one["value"].endswith(" blocks")
    ]
    assert sum(int(value.split()[2]) for value in proven) == blocks


def test_killed_again_and_again_nothing_is_lost_or_doubled(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    draw = random.Random(3)
    words = [*strata.arguments("one", "two", restarts=3, budget="2s"), "--batch", "1,2"]
    for kills in range(6):
        process = strata.start(*words)
        time.sleep(draw.uniform(0.5, 2) * (1 + kills))
        process.kill()
        process.communicate()
        if (
            strata.store.exists()
            and strata.run("show", "last", "--store", str(strata.store)).returncode == 0
        ):
            words = ["resume", "last", "--store", str(strata.store)]
    assert words[0] == "resume"
    assert resume(strata).returncode == 0
    done = resume(strata)
    assert done.returncode == 0 and done.stderr.count("measured already") == 2, done.stderr
    result = json.loads(done.stdout)
    assert (
        len(result["cases"]) == 2 and result["run"]["finished"] and not result["run"]["interrupted"]
    )
    for case in result["cases"]:
        assert (
            {row["state"] for row in case["rows"]} == {"measured"}
            and len(case["rows"]) == 2
            and case["trust"]["restarts"] == 3
        )
    runs = json.loads(
        strata.run("list", "runs", "--format", "json", "--store", str(strata.store)).stdout
    )
    # one that was killed before its first case is no run yet
    assert [one["state"] for one in runs if one["cases"]] == ["finished"]


def test_what_cannot_go_on_is_refused_with_what_to_do(strata):
    strata.level("one", rank=1)
    strata.compare("one")
    done = resume(strata, run="nosuch")
    assert done.returncode == 2 and "no run is called 'nosuch'" in done.stderr
    done = resume(strata, "--python", "/usr/bin/python3")
    assert done.returncode == 2 and "strata's own Python" in done.stderr
    store_damage.rewrite(
        strata.store, "UPDATE runs SET machine=json_set(machine,'$.cpu','another')"
    )
    done = resume(strata)
    assert done.returncode == 3 and "on another machine" in done.stderr
    store_damage.rewrite(strata.store, "UPDATE runs SET settings=json_remove(settings,'$.request')")
    done = resume(strata)
    assert done.returncode == 2 and "ask again" in done.stderr


def test_a_network_that_changed_meanwhile_is_not_mixed_in(strata):
    strata.level("one", rank=1)
    model = strata.folder / "net.py"
    model.write_text(IMAGES, encoding="utf-8")
    words = [
        "compare",
        "net.py:build",
        "--levels",
        "one",
        "--threads",
        "1",
        "--restarts",
        "2",
        "--budget",
        "60s",
        "--store",
        str(strata.store),
    ]
    process = strata.start(*words)
    for line in process.stderr:
        if "measuring, round" in line:
            break
    process.kill()
    process.communicate()
    model.write_text(IMAGES.replace("Linear(4, 2)", "Linear(4, 3)"), encoding="utf-8")
    done = resume(strata)
    assert done.returncode != 0 and "the network is not the one that run" in done.stderr


def test_a_run_that_is_being_measured_is_left_alone(strata):
    strata.level("one", rank=1)
    process = strata.start(*strata.arguments("one", restarts=1, budget="60s"))
    for line in process.stderr:
        if "measuring, round" in line:
            break
    done = resume(strata)
    process.kill()
    process.communicate()
    assert done.returncode == 2 and "being measured by another process" in done.stderr
