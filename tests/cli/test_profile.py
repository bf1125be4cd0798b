# SPDX-License-Identifier: Apache-2.0
"""--profile: where the time of an iteration goes, by the operations that levels tell."""

from __future__ import annotations

import json

import jsonschema
import pytest
from conftest import MODEL, ROOT

SLOW = [
    ["conv2d", "conv", 3_000_000, 20_000],
    ["relu", "act", 1_000_000, 80_000],
    ["odd", None, 5000, 0],
]
SCHEMA = json.loads((ROOT / "docs/trace.schema.json").read_text())
FAST = [["convolution", "conv", 1_000_000, 0]]
ASKED = ["--restarts", "1", "--budget", "1s", "--threads", "1", "--format", "json"]


def profiled(strata, levels: str, *more: str, verb: str = "compare"):
    asked = ["--profile"] if verb == "compare" else []
    words = ["--levels", levels, "--reference", "one", "--store", str(strata.store)]
    done = strata.run(verb, MODEL, *asked, *ASKED, *words, *more)
    assert done.stdout, done.stderr
    return done, {row["level"]: row for row in json.loads(done.stdout)["cases"][0]["rows"]}


@pytest.mark.parametrize("verb", ["compare", "profile"])
def test_operations_of_each_level_are_shown_part_beside_part(strata, verb):
    strata.level("one", rank=1, operations=SLOW)
    strata.level("two", rank=2, operations=FAST)
    _, rows = profiled(strata, "one,two", verb=verb)
    profile = rows["one"]["profile"]
    assert [(each["operation"], each["layer"]) for each in profile["operations"]] == [
        ("conv2d", "conv"),
        ("relu", "act"),
        ("odd", None),
    ]
    assert profile["operations"][0]["ms"] == pytest.approx(3) and profile["plain_ms"] > 0
    gaps = sum(each["ms"] + each["gap_ms"] for each in profile["operations"])
    assert gaps + profile["after_ms"] == pytest.approx(profile["profiled_ms"])
    shown = strata.run("show", "last", "--store", str(strata.store)).stdout
    lines = {
        line.split("  ")[1].strip(): line for line in shown.splitlines() if line.startswith("  ")
    }
    assert "3.00 ms" in lines["conv"] and "1.00 ms" in lines["conv"], shown
    assert "101 us" in lines["between operations"], shown
    assert "5.00 us" in lines["(of no known part)"], shown


LINEAR = [
    ["linear", "first", 2_000_000, 0],
    ["relu", "", 3_000_000, 500_000],
    ["linear", "second", 1_000_000, 0],
    ["relu", "", 1_000_000, 0],
]


def test_products_have_their_rates_by_the_graph_and_operations_are_shown_as_asked(strata):
    strata.level("one", rank=1, operations=LINEAR)
    strata.level("two", rank=2, operations=FAST)
    _, rows = profiled(strata, "one,two")
    first, relu, second, _ = rows["one"]["profile"]["operations"]
    assert first["flops"] == 2 * 2 * 8 * 16 and relu["flops"] is None  # tiny_mlp, two samples
    assert first["bytes"] == 4 * (2 * 8 + 16 * 8 + 16 + 2 * 16)
    assert second["flops"] == 2 * 2 * 16 * 4

    def shown(*more: str, level: str = "one"):
        words = ["show", "last", "--operations", "--level", level, *more]
        done = strata.run(*words, "--format", "json", "--store", str(strata.store))
        assert done.returncode == 0, done.stderr
        (part,) = json.loads(done.stdout)["parts"]
        (section,) = part["sections"]
        (table,) = section["items"]
        return table["rows"]

    by_name = shown()
    assert [row["operation"] for row in by_name] == ["relu", "linear"]
    assert by_name[1]["calls"]["value"] == 2
    assert by_name[1]["time"]["value"] == pytest.approx(3e-3)
    assert by_name[1]["gflops"]["value"] == pytest.approx((512 + 256) / 3e-3 * 1e-9)
    assert [row["operation"] for row in shown("--by", "call", "--sort", "order")] == [
        "linear",
        "relu",
        "linear",
        "relu",
    ]
    layers = shown("--by", "layer", "--sort", "between", "--top", "1")
    assert [row["layer"] for row in layers] == ["(the network itself)"]
    assert [row["operation"] for row in shown("--sort", "mean", level="two")] == ["convolution"]
    words = [
        "profile",
        MODEL,
        *ASKED[:-2],
        "--levels",
        "one",
        "--reference",
        "one",
        "--by",
        "layer",
    ]
    done = strata.run(*words, "--format", "csv", "--store", str(strata.store))
    assert done.returncode == 0 and "second,1,0.001," in done.stdout, done.stdout + done.stderr
    profiled(strata, "one,two")
    words = ["show", "last", "--operations", "--store", str(strata.store)]
    refused = strata.run(*words, "--level", "three")
    assert refused.returncode == 2 and "no profile of three" in refused.stderr
    assert "one, two" in refused.stderr
    refused = strata.run(*words, "--by", "layr")
    assert refused.returncode == 2 and "layer" in refused.stderr


def test_a_trace_has_each_level_as_a_process_with_its_operations_in_a_step(strata, tmp_path):
    strata.level("one", rank=1, operations=SLOW)
    strata.level("two", rank=2, operations=FAST)
    profiled(strata, "one,two")
    words = ["export-data", "last", "--format", "trace", "--store", str(strata.store)]
    written = strata.run(*words, "-o", str(tmp_path / "trace.json"))
    assert written.returncode == 0, written.stderr
    trace = json.loads((tmp_path / "trace.json").read_text())
    jsonschema.validate(trace, SCHEMA)
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert set(names.values()) == {"one", "two"}
    for process, level in names.items():
        spans = [e for e in events if e["pid"] == process and e["ph"] == "X"]
        step, *operations = spans
        told = SLOW if level == "one" else FAST
        assert step["name"] == "ProfilerStep#0" and step["cat"] == "user_annotation"
        assert [e["name"] for e in operations] == [name for name, *_ in told]
        assert [e["dur"] for e in operations] == pytest.approx([ns / 1000 for *_, ns, _ in told])
        assert operations[0]["args"]["Module Hierarchy"] == "conv"
        ends = [e["ts"] + e["dur"] for e in operations]
        assert all(e["ts"] >= end for e, end in zip(operations[1:], ends, strict=False))
        assert ends[-1] <= step["ts"] + step["dur"] + 1e-6
    ids = [e["args"]["External id"] for e in events if e["ph"] == "X"]
    assert len(set(ids)) == len(ids)
    validator = pytest.importorskip("torch.profiler._trace_validator")
    assert validator.validate_trace(str(tmp_path / "trace.json"))[1] == []


def test_a_level_without_times_that_hold_says_why_and_keeps_its_numbers(strata):
    """One that does not tell them, two whose answer is none, and one whose times do not add up."""
    strata.level("one", rank=1, operations=SLOW)
    strata.level("none", rank=2)
    answers = {
        "odd_after": {"operations": [], "wall_ns": [5] * 20, "after_ns": [5]},
        "no_list": {"operations": "x"},
    }
    for level, answer in answers.items():
        strata.level(level, rank=3, operations=FAST, ops={"operations": {"answer": answer}})
    strata.level("before_its_end", rank=4, operations=[["conv2d", "conv", 3_000_000, -20_000]])
    _, rows = profiled(strata, ",".join(["one", "none", *answers, "before_its_end"]))
    words = {
        "none": "does not time its operations",
        "odd_after": "after_ns",
        "no_list": '"operations"',
        "before_its_end": "gap_ns",
    }
    for level, expected in words.items():
        assert rows[level]["state"] == "measured", rows[level]
        profile = rows[level]["profile"]
        assert not profile["operations"] and expected in profile["note"], rows[level]
    shown = strata.run("show", "last", "--store", str(strata.store)).stdout
    assert "none has no profile: the level does not time its operations." in shown


def test_without_it_nothing_is_profiled(strata):
    strata.level("one", rank=1, operations=SLOW)
    done = strata.run("compare", MODEL, *ASKED, "--levels", "one", "--store", str(strata.store))
    assert json.loads(done.stdout)["cases"][0]["rows"][0]["profile"] is None
    words = ["export-data", "last", "--format", "trace", "--store", str(strata.store)]
    for asked in (words, ["show", "last", "--operations", "--store", str(strata.store)]):
        refused = strata.run(*asked)
        assert refused.returncode == 2 and "has no profile" in refused.stderr, refused
