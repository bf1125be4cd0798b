# SPDX-License-Identifier: Apache-2.0
"""A sweep on a real Slurm of three nodes on loopback, with levels that do as they are told: a
node's daemon is killed in the middle, what is missing is sent again, and one report has every point
once."""

from __future__ import annotations

import time

import pytest
from cluster_commands import GRID, ask, points_of, send, shown, status
from slurm_local import LocalSlurm, why_not

LARGER = tuple("1,2,3" if word == "1,2" else word for word in GRID)  # two points a shard

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")


@pytest.fixture
def cluster(grid_program):
    with LocalSlurm(3) as slurm:
        grid_program.environment |= slurm.environment
        yield slurm


def wait_for(grid_program, ready, timeout: float = 240) -> dict:
    end = time.monotonic() + timeout
    while not ready(listed := status(grid_program)):
        assert time.monotonic() < end, listed
        time.sleep(0.3)
    return listed


def test_a_node_that_dies_costs_nothing_that_was_measured(grid_program, cluster):
    done = send(grid_program, "--nodes", "3", "--sbatch", "no-requeue", grid=LARGER)
    assert done.returncode == 0, done.stderr
    listed = wait_for(
        grid_program,
        lambda all_of_them: any(
            one["done"] == 1 and one["state"] == "running" for one in all_of_them["shards"]
        ),
    )
    dying = next(one for one in listed["shards"] if one["done"] == 1 and one["state"] == "running")
    cluster.kill_node(dying["node"])
    ended = wait_for(
        grid_program,
        lambda all_of_them: all(
            one["state"] not in ("running", "pending") for one in all_of_them["shards"]
        ),
    )
    assert {one["shard"]: one["state"] for one in ended["shards"]}[
        dying["shard"]
    ] == "node failure", ended
    assert ended["missing"] == [dying["shard"]]
    again = send(grid_program, "--nodes", "3", "--sbatch", "no-requeue", grid=LARGER)
    assert "1 of 3 shards" in again.stdout, again
    whole = wait_for(
        grid_program,
        lambda all_of_them: all(
            one["state"] not in ("running", "pending") for one in all_of_them["shards"]
        ),
    )
    assert whole["whole"], whole
    other = next(one for one in whole["shards"] if one["shard"] == dying["shard"])
    assert other["run"] == dying["run"] and other["node"] != dying["node"], (
        "it went on with its run, elsewhere"
    )
    merged = grid_program.run(
        "status", "shared folder", "--merge", "--store", str(grid_program.store)
    )
    assert merged.returncode == 0 and "3 runs copied" in merged.stdout, merged
    _, items, words = shown(grid_program, grid_program.store)
    assert sorted(points_of(items)) == sorted(
        (batch, size) for batch in ("1", "2", "3") for size in ("8", "10")
    )
    assert "more than once" not in words
    assert ask(grid_program.store, "SELECT count(*) FROM runs") == [(3,)] and ask(
        grid_program.store, "SELECT count(*), sum(finished) FROM run_cases"
    ) == [(6, 6)]
