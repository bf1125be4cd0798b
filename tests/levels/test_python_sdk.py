# SPDX-License-Identifier: Apache-2.0
"""The Python SDK against docs/protocol.md: a session, and answers to bad requests."""

from __future__ import annotations

import json

import numpy as np
import pytest
from client import Failed
from safetensors.numpy import save_file
from scale_level import MEASURE, code_of


def test_a_whole_session_gives_what_the_protocol_promises(sample, scale_bundle):
    worker = sample()
    assert "read_weights" not in worker.ask("hello")["ops"]
    assert worker.ask("hello", api=99)["api"] == 2
    loaded = worker.load(unknown_field=1)
    assert set(loaded) == {
        "id",
        "ok",
        "phases",
        "settings",
        "parameters",
        "artefact_bytes",
        "deterministic",
    }
    assert set(loaded["settings"]) == {
        "threads",
        "precision",
        "layout",
        "inference_mode",
        "autotune",
        "freezing",
        "graph",
    }
    assert {k: v.tolist() for k, v in worker.prove([0, 3]).items()} == {
        "0/output": [[10.0] * 3] * 2,
        "3/output": [[40.0] * 3] * 2,
    }
    worker.ask("weights", weights="generic1")
    assert worker.prove([1])["1/output"][0, 0] == 200
    answer, outputs = worker.measure([2, 0], check=1, head=5)
    assert outputs["0/output"][0, 0] == 100 and len(answer["wall_ns"]) == 2
    answer, outputs = worker.measure([], check=-1)
    assert answer["wall_ns"] == [] and outputs == {}
    assert worker.ask("memory")["device_peak_bytes"] is None
    worker.ask("unload")
    assert code_of(worker, "prove", indices=[0], out="x") == "bad_request"
    worker.load("generic2")
    assert worker.prove([0])["0/output"][0, 0] == 1000
    worker.ask("bye")
    assert worker.process.wait(5) == 0


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[1]",
        b"3",
        b"null",
        b'"text"',
        b'{"id":1',
        b"\xff\xfe",
        b'{"id":1e999}',
        b"{}",
        b'{"id":"1","op":"hello"}',
        b'{"id":true,"op":"hello"}',
        b'{"id":1.5,"op":"hello"}',
        b"[" * 100000,
        b'{"op":"hello"}',
        b'{"id":' + b"9" * 5000 + b"}",
    ],
)
def test_a_line_that_is_no_request_is_a_bad_request_without_id(line, sample):
    worker = sample()
    answer = worker.send(line)
    assert (answer["id"], answer["ok"], answer["code"]) == (None, False, "bad_request") and answer[
        "what"
    ]
    assert worker.ask("hello")["ok"]


def test_empty_lines_are_skipped(sample):
    assert sample().send(b'\n  \n{"id":5,"op":"hello"}')["id"] == 5


def test_an_operation_that_is_no_string_keeps_its_id(sample):
    answer = sample().send(b'{"id":4,"op":7}')
    assert (answer["id"], answer["code"]) == (4, "bad_request")


@pytest.mark.parametrize(
    "op",
    [
        "set_mode",
        "set_optimiser",
        "set_labels",
        "state",
        "load_state",
        "epoch",
        "profile",
        "report",
        "serve",
        "read_weights",
        "norms",
        "no_such_operation",
        "",
    ],
)
def test_operations_that_it_lacks_are_unsupported(op, sample):
    assert code_of(sample(), op) == "unsupported"


@pytest.mark.parametrize("op", ["weights", "inputs", "prove", "warm_up", "measure"])
def test_nothing_runs_before_load(op, sample):
    assert (
        code_of(
            sample(),
            op,
            weights="timed",
            path="x",
            indices=[0],
            out="x",
            iterations=1,
            head=0,
            min_ns=0,
        )
        == "bad_request"
    )


def test_a_second_load_needs_unload_first(sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "load", case={}, bundle="x", weights="timed", cache="x") == "bad_request"
    assert worker.prove([0])["0/output"][0, 0] == 10


@pytest.mark.parametrize(
    "changed",
    [
        {"case": None},
        {"case": []},
        {"case": {}},
        {"case": {"mode": 3}},
        {"bundle": 3},
        {"weights": None},
        {"cache": ["x"]},
    ],
)
def test_wrong_fields_of_load_are_bad_requests_that_name_them(changed, sample, scale_bundle):
    worker = sample()
    case = json.loads((scale_bundle / "bundle.json").read_text())["case"]
    fields = {
        "case": case,
        "bundle": str(scale_bundle),
        "weights": "timed",
        "cache": str(scale_bundle),
    }
    with pytest.raises(Failed, match=f"`{next(iter(changed))}") as failure:
        worker.ask("load", **(fields | changed))
    assert failure.value.code == "bad_request"
    worker.load()


def test_inputs_come_before_iterations(sample, scale_bundle):
    worker = sample()
    case = json.loads((scale_bundle / "bundle.json").read_text())["case"]
    worker.ask(
        "load", case=case, bundle=str(scale_bundle), weights="timed", cache=str(scale_bundle)
    )
    assert code_of(worker, "prove", indices=[0], out="x") == "bad_request"
    assert code_of(worker, "warm_up", iterations=1, min_ns=0) == "bad_request"


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": [0]},
        {"indices": [0, 4]},
        {"indices": [0, -1]},
        {"indices": "01"},
        {"indices": [0, True]},
        {"indices": [0, 1.0]},
        {"iterations": -1},
        {"iterations": "2"},
        {"iterations": None},
        {"head": -1},
        {"retain": [2]},
        {"retain": [-1]},
        {"retain": [True]},
        {"retain": None},
        {"retain": 0},
    ],
)
def test_wrong_fields_of_measure_are_bad_requests(changed, sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "measure", **(MEASURE | changed)) == "bad_request"


@pytest.mark.parametrize("missing", ["iterations", "head", "indices"])
def test_a_missing_field_is_a_bad_request_that_names_it(missing, sample):
    worker = sample()
    worker.load()
    with pytest.raises(Failed, match=f"`{missing}`") as failure:
        worker.ask("measure", **{k: v for k, v in MEASURE.items() if k != missing})
    assert failure.value.code == "bad_request"


def test_other_regions_are_unsupported(sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "measure", **(MEASURE | {"region": "throughput"})) == "unsupported"


def test_a_result_that_cannot_be_written_fails_and_the_worker_goes_on(sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "result", iteration=0, out="x") == "bad_request"
    worker.ask("measure", **MEASURE)
    assert code_of(worker, "result", iteration=0, out="/nonexistent/x") == "failed"
    assert code_of(worker, "result", iteration=1, out="x") == "bad_request"
    assert worker.prove([0])["0/output"][0, 0] == 10


@pytest.mark.parametrize(
    ("tensors", "named"), [({"0/other": 1}, "0/arg0"), ({"1/arg0": 1}, "0/arg0"), ({}, "0/arg0")]
)
def test_a_ring_without_the_network_s_inputs_is_refused(tensors, named, sample, tmp_path):
    worker = sample()
    worker.load()
    save_file({name: np.zeros((2, 3), np.float32) for name in tensors}, tmp_path / "ring")
    with pytest.raises(Failed, match=named) as failure:
        worker.ask("inputs", path=str(tmp_path / "ring"))
    assert failure.value.code == "bad_request"
