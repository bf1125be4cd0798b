# SPDX-License-Identifier: Apache-2.0
"""What is said on a machine that others use: no recommendation where they have the cores, and who
they are."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys

import pytest
from conftest import MODEL, ROOT, rows_of, samples

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def hogs():
    """A busy program of somebody else for each processor."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CORES)]
    yield running
    for hog in running:
        hog.kill()
        hog.wait()


def arguments(strata, *levels: str) -> list[str]:
    return [
        "compare",
        MODEL,
        "--levels",
        ",".join(levels),
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
        "--order-seed",
        "7",
        "--threads",
        str(CORES),
    ]


def test_recommends_nothing_in_any_form_where_others_have_the_cores_that_the_threads_need(
    strata, hogs
):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done = strata.run(*arguments(strata, "slow", "fast"))
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("Not reliable: ") and "of this machine" in first, first
    assert "W002" in done.stdout and "warning: other programs use" in done.stderr
    for form in ("text", "md", "json"):
        shown = strata.run("show", "last", "--store", str(strata.store), "--format", form).stdout
        assert (
            "Not reliable: " in shown
            and "Move to" not in shown
            and "recommended" not in shown
            and "./strata export" not in shown
        ), form
    page = strata.folder / "page.html"
    assert (
        strata.run("report", "last", "--store", str(strata.store), "-o", str(page)).returncode == 0
    )
    assert "Not reliable: " in page.read_text(encoding="utf-8") and "Move to" not in page.read_text(
        encoding="utf-8"
    )


def test_stores_what_others_used_before_and_while_it_measured(strata, hogs):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done = strata.run(*arguments(strata, "slow", "fast"), "--format", "json")
    assert done.returncode == 0, done.stderr
    case = json.loads(done.stdout)["cases"][0]
    trust = case["trust"]
    assert (
        trust["others_begin_percent"] > 50 and trust["others_percent"] + trust["host_percent"] > 50
    ), trust
    assert trust["reliable"] is False and trust["disturbed_blocks"] == trust["blocks"]
    assert (case["headline"]["verdict"], case["headline"]["level"]) == ("not_reliable", None)
    assert {row["ratio"]["verdict"] for row in case["rows"]} <= {"reference", "inconclusive"}


def test_names_another_run_of_strata_that_measures(strata):
    strata.level("slow", rank=1)
    strata.level("fast", rank=2)
    mark = strata.folder / "data" / "strata" / "measuring"
    mark.parent.mkdir(parents=True, exist_ok=True)
    with open(mark, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(str(os.getpid()))
        held.flush()
        _, result = strata.compare("slow", "fast")
    warning = next(w for w in result["warnings"] if w["id"] == "W002")
    assert f"another strata run is measuring (pid {os.getpid()})" in warning["what"]
    assert result["cases"][0]["trust"]["other_run"] == os.getpid()


def certificate_line(row: dict, check: str) -> dict:
    return next(line for line in row["proof"]["lines"] if line["check"] == check)


LARGE = ("--batch", "512")  # so much work that a nanosecond is implausible on every machine
NO_TIME = samples(1) | {"first_ns": 1_000_000_000}  # the first fills the warm-up


def test_accuses_no_level_by_a_peak_that_was_measured_beside_others(strata, hogs):
    """However fast the level: it is the peak that is not known."""
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **NO_TIME)
    done = strata.run(*arguments(strata, "slow", "fast"), *LARGE, "--format", "json")
    rows = {row["level"]: row for row in json.loads(done.stdout)["cases"][0]["rows"]}
    assert rows["fast"]["state"] == "measured", rows["fast"]["reason"]
    plausible = certificate_line(rows["fast"], "time is plausible")
    assert plausible["result"] == "not_checked" and "may be too low" in plausible["detail"], (
        plausible
    )


def test_a_level_that_does_nothing_is_caught_by_a_peak_that_was_once_seen_undisturbed(strata):
    strata.level("right", rank=1, **samples(2_000_000))
    strata.level("memo", rank=2, **NO_TIME)
    strata.compare("right", more=LARGE)
    # whether this machine is quiet now is not what is tested
    assert store_damage.rewrite(strata.store, "UPDATE peaks SET quiet=1") == 1
    _, result = strata.compare("right", "memo", more=LARGE)
    rows = rows_of(result)
    assert rows["memo"]["state"] == "mistrusted" and "it was not done" in rows["memo"]["reason"]
    assert rows["right"]["state"] == "measured"
