# SPDX-License-Identifier: Apache-2.0
"""Levels that cheat (cheats/README.md), in C++ and in Python, against the whole program: each is
refused, or has the time that its work takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from client import ROOT, compare_all
from train_verb import Trained

pytestmark = pytest.mark.alone  # what is said of a level follows from times

LEVELS = Path(__file__).resolve().parent / "cheats"
MODEL = f"{ROOT / 'examples/tiny_mlp.py'}:build"
WORK_MS = 0.8  # of processor time, which honest work takes
BOTH = [
    "content",
    "coarse",
    "table",
    "place",
    "later",
    "ahead",
    "clock",
    "blocks",
    "references",
    "less",
    "buffer",
]
PYTHON_ALONE = ["checks", "exchanged"]  # of what only Python can reach


def run(folder: Path, language: str, cheats: list[str], budget: str) -> dict[str, dict]:
    """The rows of an honest level and of its cheats, by variant."""
    level = f"cheat_{'cpp' if language == 'c++' else 'py'}"
    result = compare_all(
        folder,
        MODEL,
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        budget,
        "--order-seed",
        "3",
        "--levels",
        ",".join([level, *(f"{level}@{name}" for name in cheats)]),
        levels=LEVELS,
    )
    return {row["variant"]: row for row in result["cases"][0]["rows"]}


@pytest.fixture(scope="module", params=["c++", "python"])
def rows(request, tmp_path_factory):
    return run(
        tmp_path_factory.mktemp("store"),
        request.param,
        [*BOTH, *(PYTHON_ALONE if request.param == "python" else [])],
        "12s",
    )


def row_of(rows: dict[str, dict], cheat: str) -> dict:
    if cheat not in rows:
        pytest.skip("in Python alone")
    return rows[cheat]


def lines_of(row: dict) -> dict[str, dict]:
    return {line["check"]: line for line in row["proof"]["lines"]}


def need_a_processor(honest: dict) -> None:
    """What others take of the processors, nobody gains by a second thread, and a clock's fault
    drowns in the waiting."""
    used = lines_of(honest)["processors used"]["value"]
    if not used or float(used) < 0.85:
        pytest.skip(
            f"others use this machine: the honest level had {used or 'an unknown share'} of its processor"
        )


def test_the_honest_level_beside_cheats_is_measured(rows):
    honest = rows["default"]
    assert honest["state"] == "measured" and honest["end_to_end_ms"]["median"] >= WORK_MS, honest[
        "reason"
    ]
    lines = lines_of(honest)
    for check in (
        "every timed input is new",
        "which result is checked is drawn afterwards",
        "exchanged inputs take as long",
        "processors used",
        "inputs that it never saw take as long",
        "references are out of sight",
    ):
        assert lines[check]["result"] == "pass", lines[check]


@pytest.mark.parametrize("cheat", ["content", "ahead"])
def test_a_cheat_that_gains_nothing_has_the_time_that_its_work_takes(rows, cheat):
    row = row_of(rows, cheat)
    assert row["state"] == "measured" and row["end_to_end_ms"]["median"] >= 0.95 * WORK_MS, row[
        "reason"
    ]


@pytest.mark.parametrize("cheat", ["table", "place", "less", "buffer", "checks", "exchanged"])
def test_wrong_answers_that_are_given_only_while_timing_are_refused(rows, cheat):
    row = row_of(rows, cheat)
    assert row["state"] in ("unequal", "mistrusted") and row["end_to_end_ms"] is None, (
        row["state"],
        row["reason"],
    )
    assert "while timing" in row["reason"], row["reason"]


@pytest.mark.parametrize(
    ("cheat", "words"),
    [
        ("later", ["by the driver's clock"]),
        ("clock", ["by the driver's clock"]),
        ("blocks", ["of its timed blocks took", "processors where the case has 1 thread"]),
        ("coarse", ["inputs that it had never seen took"]),
    ],
)
def test_times_that_are_not_those_of_the_work_are_mistrusted(rows, cheat, words):
    row = row_of(rows, cheat)
    if cheat in ("later", "clock", "blocks"):
        need_a_processor(rows["default"])
    assert row["state"] == "mistrusted" and row["end_to_end_ms"] is None, row["state"]
    assert any(each in row["reason"] for each in words), row["reason"]


def test_the_references_are_out_of_sight(rows):
    row = row_of(rows, "references")
    assert row["state"] == "failed" and "ermission denied" in row["reason"], (
        row["state"],
        row["reason"],
    )


@pytest.mark.parametrize("language", ["c++", "python"])
def test_references_that_are_shown_serve_a_cheat_and_the_certificate_says_that_they_were(
    tmp_path, monkeypatch, language
):
    monkeypatch.setenv("STRATA_SHOW_REFERENCES", "1")
    rows = run(tmp_path, language, ["references"], "2s")
    assert rows["references"]["state"] == "measured", rows["references"]["reason"]
    assert (
        rows["references"]["end_to_end_ms"]["median"] < rows["default"]["end_to_end_ms"]["median"]
    )
    line = lines_of(rows["references"])["references are out of sight"]
    assert line["result"] == "not_checked" and "STRATA_SHOW_REFERENCES is set" in line["detail"]


TRAINING_CHEATS = ["@later", "@frozen", "@halves"]


def test_timed_steps_that_are_put_off_or_less_than_the_proven_ones_are_refused(tmp_path):
    result = compare_all(
        tmp_path,
        MODEL,
        *("--mode", "train", "--threads", "1", "--restarts", "1", "--budget", "8s"),
        *("--levels", ",".join(f"cheat_train{each}" for each in ("", *TRAINING_CHEATS))),
        levels=LEVELS,
    )
    rows = {row["variant"]: row for row in result["cases"][0]["rows"]}
    honest, later = rows["default"], rows["later"]
    assert honest["state"] == "measured", honest["reason"]
    again = lines_of(honest)["timed steps, made again one at a time"]
    assert again["result"] == "pass", again
    for cheat in ("frozen", "halves"):
        row = rows[cheat]
        assert row["state"] == "unequal" and row["end_to_end_ms"] is None, row["state"]
        assert "timed steps led elsewhere" in row["reason"], row["reason"]
    assert lines_of(honest)["nothing is put off until the state is read"]["result"] == "pass"
    # each reading is late, or the losses that it told before are not those of its steps
    assert later["state"] in ("mistrusted", "unequal") and later["end_to_end_ms"] is None
    assert any(
        each in later["reason"] for each in ("the work is put off", "timed steps led elsewhere")
    ), later["reason"]


@pytest.fixture(scope="module")
def trained(place) -> Trained:
    """On the digits, an honest level and those that cheat by what a request of steps asks for."""
    cheats = ("singles", "second", "frozen", "halves", "long", "clock", "boast")
    return place.train(
        ",".join(["eager", "cheat_train", *(f"cheat_train@{name}" for name in cheats)]),
        *("--epochs", "3", "--optimiser", "sgd:lr=0.05"),
        STRATA_LEVEL_PATH=str(LEVELS),
    )


@pytest.mark.parametrize(
    ("cheat", "state", "words"),
    [
        ("singles", "unequal", "epoch 1, steps"),
        ("second", "unequal", "epoch 1, steps"),
        ("frozen", "unequal", "epoch 1, steps"),
        ("halves", "unequal", "epoch 1, steps"),
        ("boast", "unequal", "the score after epoch 1: it finds 360 of 360 labels"),
        ("clock", "mistrusted", "longer by the driver's clock"),
    ],
)
def test_a_level_that_trains_less_where_nobody_seems_to_look_has_no_numbers(
    trained, cheat, state, words
):
    row = trained.row("proof", f"cheat_train@{cheat}")
    assert row["state"] == state and words in row["reason"], row
    result = trained.row("result", f"cheat_train@{cheat}")
    assert not any(
        isinstance(cell, dict) and cell.get("value") is not None for cell in result.values()
    )


def test_an_honest_level_beside_them_is_measured_and_the_share_of_its_steps_is_told(trained):
    for level in ("eager", "cheat_train"):
        row = trained.row("proof", level)
        assert row["state"] == "measured" and row["in_the_middle"]["value"] == 4 + 3, row
        assert 0.05 < row["in_windows"]["value"] < 0.9, row


def test_a_level_that_makes_no_long_request_of_steps_is_the_hole_that_the_method_names(trained):
    """What it leaves out lies outside of all windows: docs/proof.md, "Ways to cheat"."""
    assert trained.row("proof", "cheat_train@long")["state"] == "measured"


@pytest.mark.parametrize("language", ["c++", "python"])
def test_threads_and_processes_that_work_beside_the_cases_one_thread_are_mistrusted(
    tmp_path, language
):
    rows = run(tmp_path, language, ["threads", "child"], "4s")
    assert rows["default"]["state"] == "measured", rows["default"]["reason"]
    need_a_processor(rows["default"])
    for cheat in ("threads", "child"):
        row = rows[cheat]
        assert (
            row["state"] == "mistrusted"
            and "processors where the case has 1 thread" in row["reason"]
        ), (cheat, row["state"], row["reason"])
