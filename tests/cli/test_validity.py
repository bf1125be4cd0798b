# SPDX-License-Identifier: Apache-2.0
"""bench/validity.py: what it counts, on runs made up here."""

from __future__ import annotations

import math
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import validity

LEARNED = {"process_effect_percent": 0.7, "restarts": 18, "runs": 3}


def level(value: float, half_width: float, verdict: str, **more) -> dict:
    ratio = {
        "value": value,
        "low": value * math.exp(-half_width),
        "high": value * math.exp(half_width),
    }
    return {
        "ratio": ratio,
        "verdict": verdict,
        "rests_on": "learned",
        "learned": LEARNED,
        "smallest_visible_percent": 1.9,
        "by_restart": [],
        "blocks": 100,
        "disturbed": 1,
        "state": "measured",
        "reason": "",
    } | more


def run(kind: str, levels: dict, threads: int = 1) -> dict:
    return {
        "kind": kind,
        "case": "mnist_convnet",
        "threads": threads,
        "levels": levels,
        "restarts": 6,
        "seconds": 60.0,
        "started": "2026-11-25T20:00:00Z",
        "machine": {"cpu": "one", "cores": 2},
        "environments": [{"torch": "2.15.0"}],
        "busy_before": 0.01,
    }


def line(text: str, beginning: str) -> list[str]:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {beginning} |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_levels_called_other_than_themselves_are_alarms_and_those_without_a_number_are_not_counted():
    twins = [
        level(1.0, 0.01, "same"),
        level(1.03, 0.02, "faster"),
        level(0.97, 0.02, "slower", rests_on="assumed", learned=None),
        level(1.0, 0.01, "same", state="crashed"),
    ]
    runs = [run("aa", dict.fromkeys(validity.TWINS, twin)) for twin in twins]
    text = validity.summary(runs)
    assert line(text, "mnist_convnet, 1 thread, static")[1:3] == [
        "2 of 3 (at most 98.3%)",
        "1 assumed, 2 learned",
    ]
    assert line(text, "all, learned")[1].startswith("5 of 10 ")
    assert "20 of 2000 blocks disturbed" in text


def test_found_and_covered_are_counted_by_what_was_really_planted():
    def copies(value: float, verdict: str, **more) -> dict:
        return {
            f"slowed_{percent}": level(value, 0.01, verdict, planted=[0.02, 0.021], **more)
            for percent in validity.EFFECTS
        }

    runs = [
        run("ab", copies(1 / 1.02, "slower")),
        run("ab", copies(0.999, "inconclusive", learned=LEARNED | {"runs": 1})),
        run("ab", copies(1.03, "faster")),
    ]
    text = validity.summary(runs)
    cells = line(text, "mnist_convnet, 2%")
    assert cells[1:4] == [
        "1 of 3 (at least 1.7%)",
        "1 of 2 (at least 2.5%)",
        "1 of 3 (at least 1.7%)",
    ]
    assert cells[4] == "2.01%", "1 - 1 / 1.0205"
    assert line(text, "mnist_convnet")[2:] == ["1.90%", "none"]
    assert cells[7] == f"{100 * math.log(0.021 / 0.02):.1f}%"


def test_the_experiment_with_the_fewest_runs_is_next(monkeypatch, tmp_path, capsys):
    experiments = []

    def once(_options, one, _busy):
        experiments.append(one)
        return run(one.kind, {}, one.threads) | {"case": one.case} if len(experiments) < 4 else None

    monkeypatch.setattr(validity, "run_once", once)
    monkeypatch.setattr(validity, "wait_until_idle", lambda *_: 0.0)
    monkeypatch.setattr(sys, "argv", ["validity.py", str(tmp_path)])
    monkeypatch.setattr(validity, "summary", lambda runs: f"{len(runs)} runs")
    for expected in (3, 3):  # goes on where it stopped, and does not repeat
        assert validity.main() == 1 and f"{expected} runs" in capsys.readouterr().out
    assert experiments[:4] == validity.EXPERIMENTS[:4] and experiments[4] == validity.EXPERIMENTS[3]


@pytest.mark.parametrize("level_name", ["slowed_1", "slowed_5"])
def test_copies_of_eager_are_planted_once_with_turns_by_their_share_of_its_time(
    monkeypatch, tmp_path, level_name
):
    eager = {"level": "eager", "end_to_end_ms": {"estimate": 10.0}}
    compared = []
    monkeypatch.setattr(
        validity, "compare", lambda *words: compared.append(words) or {"cases": [{"rows": [eager]}]}
    )
    monkeypatch.setattr(validity, "cost_ns", lambda turns: turns * 20.0)
    options, one = type("Options", (), {"output": tmp_path})(), validity.EXPERIMENTS[0]
    turns = validity.plant(options, one)
    assert turns == {"slowed_1": 5000, "slowed_2": 10000, "slowed_3": 15000, "slowed_5": 25000}
    assert validity.plant(options, one) == turns and len(compared) == 1
    about = (validity.levels_of(options, one) / level_name / "level.json").read_text(
        encoding="utf-8"
    )
    assert f"STRATA_EXTRA_TURNS={turns[level_name]}" in about
