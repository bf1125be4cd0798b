# SPDX-License-Identifier: Apache-2.0
"""`strata compare --dynamic batch=1..4` with fake levels: one artefact over several sizes, what
recompiled, its time against the fixed one, and what is refused."""

from __future__ import annotations

import json

import pytest
from conftest import MODEL, rows_of, samples

OPEN = {"dynamic": True}


def test_sizes_that_recompile_are_counted_and_timed_and_the_others_are_not(strata):
    strata.level("steady", rank=1, json_fields=OPEN, **samples(2_000_000))
    strata.level(
        "compiling",
        rank=2,
        json_fields=OPEN,
        dynamic={"compile_ns": 300_000_000},
        report={"recompiles": 2, "recompile_reasons": ["size mismatch at index 0", "again"]},
        **samples(2_000_000),
    )
    done, result = strata.compare("steady", "compiling", more=("--dynamic", "batch=1..4"))
    assert done.returncode == 0, done.stderr
    steady, compiling = (rows_of(result)[name]["dynamic"] for name in ("steady", "compiling"))
    assert (
        steady["state"],
        steady["low"],
        steady["high"],
        [size["batch"] for size in steady["sizes"]],
    ) == ("measured", 1, 4, [1, 2, 4])
    unseen = [size for size in steady["sizes"] if not size["seen"]]
    assert (steady["recompiled"], steady["recompile_ms"], steady["unseen"]) == (
        0,
        0,
        len(unseen),
    ) and len(unseen) == 2
    assert all(
        size["settled_ms"] == pytest.approx(2, rel=0.05) and size["envelopes"] < 8
        for size in steady["sizes"]
    )
    assert compiling["recompiled"] == 2 and compiling["recompile_ms"] == pytest.approx(
        600, rel=0.05
    )
    assert [size["recompiled"] for size in compiling["sizes"]] == [
        not size["seen"] for size in compiling["sizes"]
    ]
    assert compiling["reported"] == {"recompiles": 0, "reasons": []} and steady["reported"] is None
    ratio = compiling["against_fixed"]["ratio"]
    assert (
        ratio["low"] < 1 < ratio["high"]
        and ratio["verdict"] in ("same", "inconclusive")
        and compiling["against_fixed"]["batch"] == compiling["own"]
    )
    for form, words in (
        ("text", "2 of 2"),
        ("md", "| compiling | 2 of 2 |"),
        ("csv", "dynamic_recompiled"),
    ):
        assert (
            words
            in strata.run("show", "last", "--format", form, "--store", str(strata.store)).stdout
        ), form
    assert (
        json.loads(
            strata.run("show", "last", "--format", "json", "--store", str(strata.store)).stdout
        )
        == result
    )
    assert (
        "--dynamic batch=1..4" in rows_of(result)["steady"]["repeat"]
        and result["run"]["dynamic"] == "batch=1..4"
    )


def test_an_artefact_that_computes_one_size_wrongly_is_unequal_and_the_fixed_one_keeps_its_number(
    strata,
):
    strata.level("right", rank=1, json_fields=OPEN)
    strata.level("wrong", rank=2, json_fields=OPEN, dynamic={"wrong_size": 4})
    done, result = strata.compare("right", "wrong", more=("--dynamic", "batch=1..4"))
    row = rows_of(result)["wrong"]
    assert done.returncode == 1
    assert (
        row["state"] == "measured"
        and row["dynamic"]["state"] == "unequal"
        and "batch 4" in row["dynamic"]["reason"]
        and row["dynamic"]["sizes"] == []
    )
    assert "wrong with an open batch: unequal" in done.stderr
    assert rows_of(result)["right"]["dynamic"]["state"] == "measured"


def test_a_level_of_one_size_is_unsupported_and_fails_nothing(strata):
    strata.level("open", rank=1, json_fields=OPEN)
    strata.level("fixed", rank=2)
    done, result = strata.compare("open", "fixed", more=("--dynamic", "batch=1..4"))
    found = rows_of(result)["fixed"]
    assert done.returncode == 0 and found["state"] == "measured"
    assert (
        found["dynamic"]["state"] == "unsupported"
        and "level.json" in found["dynamic"]["reason"]
        and found["dynamic"]["against_fixed"] is None
    )


def test_it_is_the_same_case_as_without_the_option_so_that_its_artefact_can_be_exported(strata):
    strata.level("open", rank=1, json_fields=OPEN)
    keys = {
        strata.compare("open", more=more)[1]["cases"][0]["key"]
        for more in ((), ("--dynamic", "batch=1..4"), ("--dynamic", "batch=1..2"))
    }
    assert len(keys) == 1


def test_without_the_option_there_is_nothing(strata):
    strata.level("open", rank=1, json_fields=OPEN)
    _, result = strata.compare("open")
    assert rows_of(result)["open"]["dynamic"] is None and result["run"]["dynamic"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["batch=32..1"], "the range is empty, 32 is above 1"),
        (["batch=1..1"], "one size"),
        (["size=1..4"], "unknown 'size'"),
        (["batch=0..4"], "whole numbers from 1"),
        (["batch=1-4"], "no range"),
        (["batch=1..x"], "whole numbers"),
        (["batch=1..4", "--mode", "train"], "inference only"),
        (["batch=1..4", "--batch", "8"], "--batch 8 lies outside"),
        (
            ["batch=1..4", "--input", "a=float32:2x8", "--input", "b=float32:3x8"],
            "first extents differ (a 2, b 3)",
        ),
    ],
)
def test_a_range_that_cannot_be_is_told_before_anything_runs(strata, words, message):
    strata.level("open", rank=1, json_fields=OPEN)
    done = strata.run(
        "compare", MODEL, "--levels", "open", "--store", str(strata.store), "--dynamic", *words
    )
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_lines_to_keep_are_counted_in_the_files_that_level_json_names(strata):
    strata.level(
        "kept",
        rank=1,
        json_fields={"to_maintain": ["{level}/serve.py", "{level}/other.py if resnet"]},
    )
    (strata.levels / "kept" / "serve.py").write_text(
        '"""What it is,\nin two lines."""\nimport sys\n\n# a comment\nprint(sys.argv)  # counted\n',
        encoding="utf-8",
    )
    _, result = strata.compare("kept")
    assert rows_of(result)["kept"]["lines"] == {
        "total": 2,
        "files": [{"file": "serve.py", "lines": 2}],
    }


def test_a_file_to_keep_that_is_not_there_is_told(strata):
    strata.level("kept", rank=1, json_fields={"to_maintain": ["{level}/serve.py"]})
    done = strata.run(*strata.arguments("kept"))
    assert done.returncode != 0 and "to_maintain" in done.stderr and "serve.py" in done.stderr


def test_both_break_evens_follow_from_the_starts_and_never_is_said_of_a_slower_level(strata):
    """The fast level needs half a second more at each start; preparing it takes its time once."""
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, start_s=0.5, **samples(1_000_000))
    _, result = strata.compare("slow", "fast")
    fast, slow = rows_of(result)["fast"], rows_of(result)["slow"]
    assert slow["break_even"] is None and slow["break_even_once"] is None
    assert not fast["break_even"]["never"] and fast["break_even"]["iterations"] == pytest.approx(
        500, rel=0.4
    )
    assert (
        fast["break_even"]["low"] <= fast["break_even"]["iterations"] <= fast["break_even"]["high"]
    )
    once = fast["break_even_once"]
    assert (
        not once["never"]
        and once["iterations"] >= 0
        and once["low"] <= once["iterations"] <= once["high"]
    )
    strata.level("slower", rank=3, start_s=0.5, **samples(4_000_000))
    _, result = strata.compare("slow", "slower", more=("--name", "third"))
    assert rows_of(result)["slower"]["break_even"]["never"]
