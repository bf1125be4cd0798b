# SPDX-License-Identifier: Apache-2.0
"""Several requests in flight (--clients) and limits on the time of a request (--slo), with levels
that do as they are told."""

from __future__ import annotations

import csv
import io
import json

import pytest
from conftest import MODEL, rows_of, samples


def points_of(row: dict) -> dict[tuple[int, str], dict]:
    return {(point["clients"], point["as"]): point for point in row["clients"]["points"]}


@pytest.fixture
def served(strata):
    """`python` scales perfectly, `native` (C++) gets half as slow again with each client, `alone`
    has no operation for it."""
    strata.level("python", rank=1, serve={}, **samples(2_000_000))
    strata.level(
        "native",
        rank=2,
        json_fields={"language": "c++"},
        language="c++",
        serve={"slow_with": 0.5},
        **samples(1_000_000, seed=2),
    )
    strata.level("alone", rank=3, **samples(1_500_000, seed=3))
    done, result = strata.compare(
        "python", "native", "alone", more=("--clients", "1,2", "--slo", "p99=1200us"), restarts=1
    )
    assert done.returncode == 0, done.stderr
    return strata, result


def test_throughput_and_quantiles_come_for_every_number_of_clients_and_python_also_as_processes(
    served,
):
    strata, result = served
    rows = rows_of(result)
    python, native = points_of(rows["python"]), points_of(rows["native"])
    assert set(python) == {(1, "threads"), (2, "threads"), (2, "processes")} and set(native) == {
        (1, "threads"),
        (2, "threads"),
    }
    batch = result["cases"][0]["case"]["batch"]
    for (clients, as_), point in python.items():
        assert point["state"] == "measured", point
        assert point["requests_per_s"]["value"] == pytest.approx(500 * clients, rel=0.03), as_
        assert point["inputs_per_s"]["value"] == pytest.approx(
            batch * point["requests_per_s"]["value"]
        )
        assert (
            point["latency_ms"]["p50"]["value"] == pytest.approx(2.0, rel=0.03)
            and point["latency_ms"]["p99"]["value"] >= point["latency_ms"]["p50"]["value"]
        )
        assert point["repetitions"] == 3 and point["threads_each"] == 1
        assert (
            point["requests_per_s"]["low"]
            <= point["requests_per_s"]["value"]
            <= point["requests_per_s"]["high"]
        )
    assert native[2, "threads"]["requests_per_s"]["value"] == pytest.approx(
        2 * 1000 / 1.5, rel=0.03
    )
    assert native[2, "threads"]["latency_ms"]["p50"]["value"] == pytest.approx(1.5, rel=0.03)
    raw = json.loads(
        strata.run("export-data", "last", "--format", "json", "--store", str(strata.store)).stdout
    )
    stored = {one["level"]: one for one in raw["passes"]}["python"]["clients"]["points"][0]
    assert (
        sum(len(one["latency_ns"]) for one in stored["repetitions"])
        == python[stored["clients"], stored["as"]]["latency_ms"]["samples"]
    )
    one, two = python[2, "threads"]["memory"], python[2, "processes"]["memory"]
    assert (
        two["private_bytes"] > 1.5 * one["private_bytes"] > 0
        and two["pss_bytes"] > one["pss_bytes"]
    )


def test_a_level_without_the_operation_says_so_and_keeps_its_number(served):
    _, result = served
    row = rows_of(result)["alone"]
    assert row["state"] == "measured" and row["end_to_end_ms"]["estimate"] == pytest.approx(
        1.5, rel=0.03
    )
    assert {point["state"] for point in row["clients"]["points"]} == {"unsupported"}
    assert all(
        "serve" in point["reason"] and point["requests_per_s"] is None
        for point in row["clients"]["points"]
    )


def test_every_format_shows_clients_and_what_a_level_needs(served):
    strata, result = served
    show = [
        strata.run("show", "last", "--store", str(strata.store), "--format", name).stdout
        for name in ("text", "md", "csv", "json")
    ]
    assert "2 processes" in show[0] and "SLO" in show[0] and "p99 within 1.20 ms" in show[0]
    assert "| python | 2 processes |" in show[1] and "native: batch" in show[1]
    rows = {row["level"]: row for row in csv.DictReader(io.StringIO(show[2]))}
    assert float(rows["native"]["clients_2_threads_inputs_per_s"]) == pytest.approx(
        points_of(rows_of(result)["native"])[2, "threads"]["inputs_per_s"]["value"]
    )
    assert (
        rows["alone"]["clients_1_threads_state"] == "unsupported"
        and rows["native"]["clients_2_processes_state"] == ""
    )
    assert json.loads(show[3]) == result
    assert (result["run"]["clients"], result["run"]["slo"]) == ("1,2", "p99=1200us")


def test_the_limit_chooses_the_point_with_the_most_inputs_that_meets_it(served):
    _, result = served
    slo = result["cases"][0]["slo"]
    levels = {one["level"]: one for one in slo["levels"]}
    assert (slo["quantile"], slo["limit_ms"]) == ("p99", pytest.approx(1.2))
    native = levels["native"]  # two clients give more, at 1.5 ms
    assert (native["verdict"], native["clients"], native["as"]) == (
        "meets",
        1,
        "threads",
    ) and native["quantile_ms"]["high"] <= 1.2
    assert (levels["python"]["verdict"], levels["alone"]["as"]) == ("misses", "turns")
    assert levels["python"]["miss_ms"] == pytest.approx(
        levels["python"]["quantile_ms"]["value"] - 1.2
    )


def test_results_of_other_clients_are_mistrusted_and_the_row_keeps_its_number(strata):
    strata.level("racy", rank=1, serve={"race": True}, **samples(1_000_000))
    done, result = strata.compare("racy", more=("--clients", "1,2"), restarts=1)
    row = rows_of(result)["racy"]
    points = points_of(row)
    assert points[1, "threads"]["state"] == "measured"
    assert (
        points[2, "threads"]["state"] == "mistrusted"
        and "2 requests in flight" in points[2, "threads"]["reason"]
        and "input" in points[2, "threads"]["reason"]
    )
    assert points[2, "processes"]["state"] == "measured"  # each process has one client
    assert row["state"] == "measured" and done.returncode == 1


def test_a_worker_that_dies_in_the_pass_loses_only_that_pass(strata):
    strata.level(
        "mortal",
        rank=1,
        serve={},
        json_fields={"language": "c++"},
        ops={"serve": {"signal": 11, "after": 3}},
        **samples(1_000_000),
    )
    strata.level("other", rank=2, serve={}, json_fields={"language": "c++"}, **samples(1_000_000))
    done, result = strata.compare("mortal", "other", more=("--clients", "1,2"), restarts=1)
    rows = rows_of(result)
    points = points_of(rows["mortal"])
    assert (
        points[1, "threads"]["state"] == "measured"
        and points[2, "threads"]["state"] == "crashed"
        and "SIGSEGV" in points[2, "threads"]["reason"]
    )
    assert rows["mortal"]["state"] == "measured" and rows["mortal"]["ratio"]
    assert {point["state"] for point in rows["other"]["clients"]["points"]} == {"measured"}
    assert done.returncode == 1


def test_repetitions_before_a_failure_are_kept_without_a_number(strata):
    strata.level(
        "tired",
        rank=1,
        serve={},
        json_fields={"language": "c++"},
        ops={"serve": {"signal": 11, "from_start": 4}},
        **samples(1_000_000),
    )
    _, result = strata.compare("tired", more=("--clients", "1"), restarts=1)
    point = points_of(rows_of(result)["tired"])[1, "threads"]
    assert point["state"] == "crashed" and point["requests_per_s"] is None
    assert point["repetitions"] == 1


@pytest.mark.parametrize(
    ("script", "state", "word"),
    [
        ({"serve": {"late_ns": 10**9}}, "failed", "same time"),
        ({"serve": {}, "ops": {"serve": {"answer": {"clients": []}}}}, "failed", "clients"),
        (
            {
                "serve": {},
                "ops": {
                    "serve": {
                        "error": {
                            "code": "unsupported",
                            "what": "its graph has one caller",
                            "hint": "",
                        }
                    }
                },
            },
            "unsupported",
            "one caller",
        ),
    ],
)
def test_a_point_that_cannot_be_measured_says_why(strata, script, state, word):
    strata.level("odd", rank=1, json_fields={"language": "c++"}, **script, **samples(1_000_000))
    _, result = strata.compare("odd", more=("--clients", "2"), restarts=1)
    point = points_of(rows_of(result)["odd"])[2, "threads"]
    assert point["state"] == state and word in point["reason"]


def test_clients_that_came_late_once_are_asked_again(strata):
    strata.level(
        "odd",
        rank=1,
        serve={"late_ns": 10**9, "late_first": 1},
        json_fields={"language": "c++"},
        **samples(1_000_000),
    )
    _, result = strata.compare("odd", more=("--clients", "2"), restarts=1)
    point = points_of(rows_of(result)["odd"])[2, "threads"]
    assert point["state"] == "measured" and point["requests_per_s"]["value"] > 0, point["reason"]


def test_a_limit_needs_no_clients_and_looks_at_all_batches(strata):
    strata.level("only", rank=1, **samples(1_000_000))
    done = strata.run(
        *strata.arguments("only", restarts=1),
        "--batch",
        "1,4",
        "--slo",
        "p90=1500us",
        "--format",
        "json",
    )
    result = json.loads(done.stdout)
    first, second = result["cases"]
    assert second["slo"] is None and len(first["slo"]["levels"]) == 1
    level = first["slo"]["levels"][0]
    assert (level["verdict"], level["batch"], level["clients"], level["as"]) == (
        "meets",
        4,
        1,
        "turns",
    )
    assert result["cases"][0]["rows"][0]["clients"] is None


def test_too_few_requests_to_bound_a_quantile_are_said(strata):
    strata.level("slow", rank=1, serve={}, **samples(100_000_000))
    _, result = strata.compare("slow", more=("--clients", "1", "--slo", "p99=1s"), restarts=1)
    level = result["cases"][0]["slo"]["levels"][0]
    assert (
        level["verdict"] == "may_meet"
        and level["quantile_ms"]["high"] is None
        and level["needed_samples"] == 528
    )
    assert "too few" in level["sentence"] and "528" in level["sentence"]


@pytest.mark.parametrize(
    ("arguments", "word", "hint"),
    [
        (("--clients", "0"), "not within 1 to 256", "1,2,4"),
        (("--clients", "a"), "not a whole number", "1,2,4"),
        (("--clients", "2,2"), "twice", "1,2,4"),
        (("--clients", "257"), "256", "1,2,4"),
        (("--slo", "p99=fast"), "not a time", "p99=20ms"),
        (("--slo", "p95=2ms"), "unknown quantile", "p99=20ms"),
        (("--clients", "2", "--mode", "train"), "inference only", "infer"),
        (("--slo", "p99=2ms", "--mode", "infer,train"), "inference only", "infer"),
    ],
)
def test_bad_options_are_refused_with_what_is_allowed(strata, arguments, word, hint):
    strata.level("first")
    done = strata.run(
        "compare", MODEL, "--levels", "first", "--store", str(strata.store), *arguments
    )
    assert done.returncode == 2 and word in done.stderr and hint in done.stderr, done.stderr
    assert not strata.store.exists()
