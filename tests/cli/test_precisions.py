# SPDX-License-Identifier: Apache-2.0
"""Precisions from end to end with fake levels: cases, the proof in strict float32 and in the mode,
faults of precision, accuracy against speed."""

from __future__ import annotations

import csv
import io

import pytest
from conftest import MODEL, rows_of

BOTH = {"json_fields": {"precisions": ["fp32", "bf16"]}}
HAS = {"has": ["fp32", "bf16"]}


def lines_of(row: dict) -> dict[str, dict]:
    return {line["check"]: line for line in row["proof"]["lines"]}


def test_a_level_is_proven_in_strict_float32_and_then_in_the_mode_that_is_timed(strata):
    strata.level("one", rank=1, precision=HAS, **BOTH)
    done, result = strata.compare("one", more=("--precision", "bf16"))
    assert done.returncode == 0, done.stderr
    assert result["cases"][0]["id"].endswith("/bf16/cpu/t1")
    row = rows_of(result)["one"]
    assert (
        row["state"] == "measured"
        and "--levels eager,one --threads 1 --precision bf16 " in row["repeat"]
    )
    lines = lines_of(row)
    for check in (
        "outputs, generic weights 1, strict float32",
        "outputs, timed weights, strict float32",
        "outputs, generic weights 2, bf16",
        "outputs, timed weights, bf16",
        "outputs while timing, bf16",
        "computes in bf16",
    ):
        assert lines[check]["result"] == "pass", check
    assert lines["precision"]["value"] == "bf16"
    assert result["accuracy"] == []  # one mode alone is compared with nothing


def test_a_level_that_stays_in_float32_in_a_bf16_case_is_mistrusted(strata):
    strata.level("right", rank=1, precision=HAS, **BOTH)
    strata.level("wide", rank=2, precision=HAS | {"ignores": True}, **BOTH)
    done, result = strata.compare("right", "wide", more=("--precision", "bf16"))
    row = rows_of(result)["wide"]
    assert (done.returncode, row["state"], row["end_to_end_ms"]) == (1, "mistrusted", None)
    assert "higher precision" in row["reason"] and row["reason_short"] == "does not compute in bf16"
    assert rows_of(result)["right"]["state"] == "measured"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_level_that_computes_in_bf16_whatever_the_case_is_unequal(strata, precision):
    strata.level("right", rank=1, precision=HAS, **BOTH)
    strata.level("narrow", rank=2, precision=HAS | {"always": True}, **BOTH)
    done, result = strata.compare("right", "narrow", more=("--precision", precision))
    row = rows_of(result)["narrow"]
    assert (done.returncode, row["state"], row["end_to_end_ms"]) == (1, "unequal", None)
    assert "bfloat16" in row["reason"]


def test_a_level_whose_report_says_another_mode_is_unequal(strata):
    strata.level(
        "one",
        rank=1,
        precision=HAS,
        ops={"load": {"answer": {"settings": {"threads": 1, "precision": "fp32"}}}},
        **BOTH,
    )
    _, result = strata.compare("one", more=("--precision", "bf16"))
    assert (
        rows_of(result)["one"]["state"] == "unequal"
        and "precision fp32, the case says bf16" in rows_of(result)["one"]["reason"]
    )


def test_ratios_across_modes_stand_in_their_own_table_alone(strata):
    strata.level(
        "one",
        rank=1,
        precision=HAS,
        samples={"median_ns": 2_000_000, "jitter": 0.01, "seed": 1, "restart": 0.0},
        **BOTH,
    )
    strata.level("two", rank=2, precision=HAS, **BOTH)
    strata.level("old", rank=3)
    done, result = strata.compare("one", "two", "old", more=("--precision", "fp32,bf16"))
    assert done.returncode == 3, done.stderr  # `old` was named and has no bf16
    first, second = result["cases"]
    assert [c["case"]["precision"] for c in (first, second)] == ["fp32", "bf16"]
    old = next(r for r in second["rows"] if r["level"] == "old")
    assert (old["state"], old["reason"], old["hint"]) == (
        "unsupported",
        "no support for precision bf16",
        "it has: fp32",
    )
    [group] = result["accuracy"]
    assert (
        group["id"].endswith("/*/cpu/t1")
        and group["reference"] == {"case": first["id"], "level": "one", "precision": "fp32"}
        and group["measured_apart"]
    )
    points = {(p["level"], p["precision"]): p for p in group["points"]}
    assert set(points) == {
        ("one", "fp32"),
        ("two", "fp32"),
        ("old", "fp32"),
        ("one", "bf16"),
        ("two", "bf16"),
    }
    assert points["one", "fp32"]["reference"] and points["one", "fp32"]["ratio"]["value"] == 1
    assert points["two", "fp32"]["ratio"] == {
        "value": next(r for r in first["rows"] if r["level"] == "two")["ratio"]["value"],
        "together": True,
        **{
            k: next(r for r in first["rows"] if r["level"] == "two")["ratio"][k]
            for k in ("low", "high")
        },
    }
    across = points["two", "bf16"]["ratio"]
    assert (
        across["value"] == pytest.approx(2.0, rel=0.05)
        and across["low"] < 2.0 < across["high"]
        and not across["together"]
    )
    assert points["two", "fp32"]["error"] < 1e-6 < 1e-4 < points["two", "bf16"]["error"] < 0.05
    assert points["two", "bf16"]["answers"] == 8 and points["two", "bf16"]["differ"] <= 1
    for case in result["cases"]:  # and the ledger's edges stay within a case
        assert all(
            {edge["from"], edge["to"]} <= {row["level"] for row in case["rows"]}
            for edge in case["ledger"]["edges"]
        )
    assert (
        "W008" in {w["id"] for w in result["warnings"]}
        or "avx512_bf16" in str(result["machine"])
        or "amx_bf16" in str(result["machine"])
    )
    text = strata.run("show", "last", "--store", str(strata.store)).stdout
    assert "Accuracy against speed" in text and "one after the other" in " ".join(text.split())
    table = strata.run("show", "last", "--store", str(strata.store), "--format", "csv").stdout
    row = next(
        r
        for r in csv.DictReader(io.StringIO(table))
        if r["level"] == "two" and "/bf16/" in r["case"]
    )
    assert (
        float(row["accuracy_ratio_value"]) == pytest.approx(across["value"])
        and row["accuracy_ratio_together"] == "false"
    )
    assert (
        "## Accuracy against speed"
        in strata.run("show", "last", "--store", str(strata.store), "--format", "md").stdout
    )


def test_a_mode_that_the_device_lacks_makes_every_row_unsupported(strata):
    strata.level(
        "one",
        rank=1,
        json_fields={"precisions": ["fp32", "tf32"]},
        precision={"has": ["fp32", "tf32"]},
    )
    done, result = strata.compare("one", more=("--precision", "fp32,tf32"))
    row = result["cases"][1]["rows"][0]
    assert (done.returncode, row["state"], row["reason_short"]) == (
        3,
        "unsupported",
        "tf32 is a mode of CUDA devices",
    )
    alone = strata.run(*strata.arguments("one"), "--precision", "tf32")
    assert alone.returncode == 3 and not alone.stdout, alone.stdout
    assert "none of them can run this: one: tf32 is a mode of CUDA devices" in alone.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--precision", "int8"), "no level has an int8 path yet"),
        (("--precision", "bf61"), "did you mean 'bf16'?"),
        (("--precision", "bf16,fp32,bf16"), "bf16 is given twice"),
        (("--precision", ""), "--precision: the value is empty"),
        (("--precision", "bf16", "--mode", "infer,train"), "there is no training in bf16"),
        (("--eval", "score.py:score", "--mode", "train"), "--eval scores a network's answers"),
    ],
)
def test_refuses_what_cannot_be_asked_before_anything_starts(strata, arguments, words):
    done = strata.run("compare", MODEL, *arguments)
    assert done.returncode == 2 and words in done.stderr, done.stderr
