# SPDX-License-Identifier: Apache-2.0
"""`strata sweep --find-batch`."""

from __future__ import annotations

import json

from small_sweep import sweep


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
    for words, message in (
        (("--find-batch", "speed"), "throughput, memory, utilisation"),
        (("--find-batch", "memory", "--batch", "4"), "name both ends"),
    ):
        refused = strata.run("sweep", "net.py:build", "--levels", "plain", *words)
        assert refused.returncode == 2 and message in refused.stderr
