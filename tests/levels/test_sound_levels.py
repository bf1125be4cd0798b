# SPDX-License-Identifier: Apache-2.0
"""No sound level is accused: every level of the tree on a real network and several weight sets (bench/false_accusations.py has more of both; each level's own tests have small networks)."""
from client import compare


def test_no_sound_level_is_accused(tmp_path):
    rows = compare(tmp_path, "resnet18", "--input", "1x3x64x64", "--weight-sets", "4", "--restarts", "1", "--budget", "1s")
    assert {name: (row["state"], row["reason"]) for name, row in rows.items() if row["state"] != "measured"} == {}
    for name, row in rows.items():
        assert row["harness"] or (row["proof"]["verdict"] == "equal" and not row["proof"]["weak"]), name
