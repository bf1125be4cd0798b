# SPDX-License-Identifier: Apache-2.0
"""What `strata sweep` foresees: a dry run, minutes and memory."""

from __future__ import annotations

import json
import re
import sqlite3

from conftest import IMAGES


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
