# SPDX-License-Identifier: Apache-2.0
"""bench/sweep_null.py: what the fields of a map of twins count as, and twins that differ in their
names alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import sweep_null


def document(values: list, labels: list) -> dict:
    fastest = {
        "kind": "heat_map",
        "id": "fastest1",
        "values": [values],
        "labels": [labels],
        "scale": {"categories": ["twin_b"]},
    }
    return {
        "sections": [
            {
                "id": "fastest",
                "items": [
                    {"kind": "text", "paragraph": "x"},
                    fastest,
                    {"kind": "table", "id": "standings"},
                ],
            }
        ]
    }


def test_a_field_is_a_twin_or_no_colour_or_without_a_result():
    sweep = document(
        [0, None, None, None, None],
        [
            "twin_b",
            "twin_a or twin_b",
            "tie within 3%: twin_a, twin_b",
            "not reliable",
            "not reached",
        ],
    )
    assert sweep_null.fields_of(sweep) == ["twin_b", "", "", None, None]
    plain = document([None], ["twin_a or twin_b"])
    del plain["sections"][0]["items"][1]["scale"]["categories"]  # of a map without a colour
    assert sweep_null.fields_of(plain) == [""]


def test_a_summary_counts_coloured_fields_of_those_with_a_result_and_sweeps_with_any():
    sweeps = [
        {"number": 0, "seconds": 60, "fields": ["", "", None]},
        {"number": 1, "seconds": 120, "fields": ["twin_a", "", ""]},
    ]
    *_, second, total = sweep_null.summary(sweeps).splitlines()
    assert second == "| 2 | 3 | 0 | 1 | 86.5% | 1 of 1 | 2.0 |"
    assert total == "| all | 6 | 1 | 1 | 65.7% | 1 of 2 | 3.0 |"


def test_twins_are_the_level_under_two_names(tmp_path: Path):
    sweep_null.make_twins("eager", tmp_path)
    own = json.loads((ROOT / "levels/eager/level.json").read_text(encoding="utf-8"))
    for twin in sweep_null.TWINS:
        about = json.loads((tmp_path / twin / "level.json").read_text(encoding="utf-8"))
        assert about["id"] == twin and {**about, "id": own["id"], "title": own["title"]} == own
        assert (tmp_path / twin / "level.py").read_text() == (
            ROOT / "levels/eager/level.py"
        ).read_text()
