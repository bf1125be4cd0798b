# SPDX-License-Identifier: Apache-2.0
"""`--eval file.py:score` with fake levels: what is scored, how it is compared, and that a bad score
takes nothing away that was measured."""

from __future__ import annotations

import pytest
from conftest import MODEL, rows_of

INPUTS = "import numpy as np\ndef inputs():\n    return np.zeros((11, 8), np.float32)\n"
EACH = (
    INPUTS + "def score(outputs):\n    assert outputs.shape == (11, 4)\n    return outputs.sum(1)\n"
)


def write(strata, text: str) -> str:
    path = strata.folder / "my_score.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:score"


def points(result: dict) -> dict[tuple[str, str], dict]:
    return {(p["level"], p["precision"]): p for p in result["accuracy"][0]["points"]}


def test_scores_every_level_on_all_inputs_against_the_reference_in_fp32(strata):
    strata.level(
        "one",
        rank=1,
        precision={"has": ["fp32", "bf16"]},
        json_fields={"precisions": ["fp32", "bf16"]},
    )
    done, result = strata.compare(
        "one", more=("--eval", write(strata, EACH), "--precision", "fp32,bf16")
    )
    assert done.returncode == 0, done.stderr
    strict, reduced = points(result)["one", "fp32"]["eval"], points(result)["one", "bf16"]["eval"]
    assert strict["state"] == reduced["state"] == "scored" and strict["count"] == 11
    assert strict["difference"] == {"value": 0.0, "low": 0.0, "high": 0.0} and strict["differ"] == 0
    difference = reduced["difference"]
    assert difference["value"] == pytest.approx(reduced["score"] - strict["score"], abs=1e-9)
    assert (
        difference["low"] < difference["value"] < difference["high"]
        and 0 < abs(difference["value"]) < 0.1
    )
    assert reduced["differ"] <= 2
    assert result["run"]["eval"].endswith("my_score.py:score")
    text = strata.run("show", "last", "--store", str(strata.store)).stdout
    assert "one in bf16: " in text and "of 11 answers differ" in " ".join(text.split())
    assert not list((strata.folder).glob("logs/*/eval-*"))  # inputs and outputs are not kept


def test_a_file_that_cannot_be_scored_is_refused_before_anything_is_captured(strata):
    strata.level("one", rank=1)
    for text in ("def inputs():\n    return [1]\ndef score(o):\n    return 0\n", "import nosuch\n"):
        for more in ((), ("--dry-run",)):
            done = strata.run(*strata.arguments("one"), "--eval", write(strata, text), *more)
            assert done.returncode == 2 and "--eval" in done.stderr, done.stderr
            assert "captur" not in done.stderr


def test_one_number_for_all_examples_has_no_interval(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    done, result = strata.compare(
        "one",
        "two",
        more=(
            "--eval",
            write(strata, INPUTS + "def score(outputs):\n    return float(outputs.mean())\n"),
        ),
    )
    assert done.returncode == 0, done.stderr
    assert points(result)["two", "fp32"]["eval"]["difference"] == {
        "value": 0.0,
        "low": None,
        "high": None,
    }


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        (
            "raise ValueError('no labels')",
            "failed",
            "score() of my_score.py raised ValueError: no labels (my_score.py:5)",
        ),
        ("return float('nan')", "failed", "score() returned nan"),
        (
            "s = outputs.sum(1); s[3] = np.inf; return s",
            "failed",
            "score() returned inf for example 3",
        ),
        ("return outputs.sum(1)[:5]", "failed", "array of shape [5] for 11 examples"),
        ("return 'good'", "failed", "score() returned a str"),
        ("import os; os._exit(4)", "failed", "ended with exit code 4"),
    ],
)
def test_a_score_that_goes_wrong_is_told_and_keeps_every_number(strata, body, state, words):
    strata.level("one", rank=1)
    done, result = strata.compare(
        "one", more=("--eval", write(strata, INPUTS + f"def score(outputs):\n    {body}\n"))
    )
    assert done.returncode == 1
    row, found = rows_of(result)["one"], points(result)["one", "fp32"]["eval"]
    assert row["state"] == "measured" and row["end_to_end_ms"]["samples"] > 0
    assert found["state"] == state and words in found["reason"] and found["score"] is None
    assert "no score" in done.stderr


def test_a_score_that_never_ends_is_ended(strata):
    strata.level("one", rank=1)
    done, result = strata.compare(
        "one",
        more=(
            "--timeout",
            "8s",
            "--eval",
            write(strata, INPUTS + "import time\ndef score(outputs):\n    time.sleep(1000)\n"),
        ),
    )
    assert (
        done.returncode == 1
        and points(result)["one", "fp32"]["eval"]["state"] == "timeout"
        and "took longer than 8 s" in done.stderr
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import numpy as np\ndef inputs():\n    return np.zeros((11, 7), np.float32)\ndef score(o):\n    return 0\n",
            "gave x of shape [11, 7]",
        ),
        (
            "import numpy as np\ndef inputs():\n    return np.zeros((11, 8))\ndef score(o):\n    return 0\n",
            "gave x as float64",
        ),
        (
            "import numpy as np\ndef inputs():\n    return np.zeros((0, 8), np.float32)\ndef score(o):\n    return 0\n",
            "N examples from 1",
        ),
        (
            "import numpy as np\ndef inputs():\n    return {'ids': np.zeros(1)}\ndef score(o):\n    return 0\n",
            "the network's inputs are: x",
        ),
        ("def inputs():\n    return [1]\ndef score(o):\n    return 0\n", "return NumPy arrays"),
        (
            "def inputs():\n    raise OSError('no file')\ndef score(o):\n    return 0\n",
            "inputs() of my_score.py raised OSError: no file",
        ),
        (INPUTS, "has no function 'score'"),
        ("def score(o):\n    return 0\n", "has no function 'inputs'"),
        ("import nothing_of_this_name\n", "cannot be imported"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_before_any_level_starts(strata, text, words):
    strata.level("one", rank=1)
    done = strata.run(*strata.arguments("one"), "--eval", write(strata, text))
    assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("no_such.py:score", "there is no such file"),
        ("score.py", "the file or the function is missing"),
        ("score.py:", "the file or the function is missing"),
    ],
)
def test_a_score_that_is_not_named_rightly_is_refused(strata, spec, words):
    done = strata.run("compare", MODEL, "--eval", spec)
    assert done.returncode == 2 and words in done.stderr
