# SPDX-License-Identifier: Apache-2.0
"""`strata compare` that is interrupted or killed keeps what was measured."""

from __future__ import annotations

import json
import signal
import time

from conftest import rows_of
from running_program import count_blocks, wait_for_blocks, workers_of


def test_ctrl_c_keeps_what_was_measured_and_ends_the_workers(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=2, budget="600s"))
    wait_for_blocks(strata.store, 20)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    shown = json.loads(
        strata.run("show", "last", "--format", "json", "--store", str(strata.store)).stdout
    )
    assert shown["run"]["interrupted"] and rows_of(shown)["one"]["state"] == "measured"
    assert "W005" in [warning["id"] for warning in shown["warnings"]]
    assert workers_of(strata) == []


def test_a_killed_driver_leaves_a_clean_store_and_no_worker(strata):
    strata.level("one", rank=1, helper=True)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=2, budget="600s"))
    committed = wait_for_blocks(strata.store, 20)
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while workers_of(strata) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers_of(strata) == []
    assert count_blocks(strata.store) >= committed
    assert "interrupted" in strata.run("list", "runs", "--store", str(strata.store)).stdout
    assert (
        strata.run("show", "last", "--format", "json", "--store", str(strata.store)).returncode == 0
    )
