# SPDX-License-Identifier: Apache-2.0
"""The Python SDK against docs/protocol.md: answers to bad requests, errors of a level, the end of a
worker, its overhead. Levels here are written by the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import preloaded
import pytest
from client import ROOT, Failed, Worker, environment, level_folder
from safetensors.numpy import load_file, save_file

ABOUT = {
    "id": "sample",
    "title": "a level of the tests",
    "rank": 50,
    "language": "python",
    "api": 2,
    "devices": ["cpu"],
    "modes": ["infer"],
    "precisions": ["fp32"],
    "start": ["{python}", "-m", "strata_sdk", "{level}"],
    "environment": False,
    "needs": [],
    "default": "none",
}

SAMPLE = """
import os
import numpy as np
from strata_sdk import *

class Sample({bases}):
    def load(self, job): self.scale = 0.0
    def load_weights(self, weights):
        from strata_sdk import tensors
        self.scale = tensors.read(str(self.job.weights_path(weights)))["scale"]
    def set_input(self, inputs): self.x = inputs[0]
    def run(self): self.y = self.x * self.scale
    def outputs(self): return [self.y]
    {more}
"""


@pytest.fixture
def bundle(tmp_path):
    """A bundle by hand: output = scale * x; the ring holds 1, 2, 3, 4 times ones."""
    folder = tmp_path / "bundle"
    (folder / "weights").mkdir(parents=True)
    case = {
        "model": "scale",
        "mode": "infer",
        "batch": 2,
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "seed": 0,
        "deep": False,
    }
    about = {
        "bundle": 2,
        "case": case,
        "inputs": [{"name": "arg0", "keyword": False, "dtype": "float32", "shape": [2, 3]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [2, 3]}],
        "ring": 4,
        "export": {"ok": True, "what": "", "where": ""},
    }
    (folder / "bundle.json").write_text(json.dumps(about))
    save_file(
        {f"{i}/arg0": np.full((2, 3), i + 1, np.float32) for i in range(4)},
        folder / "inputs.safetensors",
    )
    for weights, scale in (("timed", 10), ("generic1", 100), ("generic2", 1000)):
        save_file(
            {"scale": np.array(scale, np.float32)}, folder / "weights" / f"{weights}.safetensors"
        )
    return folder


@pytest.fixture
def sample(tmp_path, bundle):
    """sample(more, **fields of level.json) -> a worker of a level written here; `more` are methods
    that replace the ones above, `bases` what it derives from."""
    started = []

    def start(
        more: str = "pass", source: str | None = None, bases: str = "Level", **about
    ) -> Worker:
        folder = tmp_path / f"level{len(started)}"
        folder.mkdir()
        (folder / "level.json").write_text(json.dumps(ABOUT | about))
        (folder / "level.py").write_text(
            SAMPLE.replace("{more}", more).replace("{bases}", bases) if source is None else source
        )
        started.append(Worker(folder, bundle, threads=1))
        return started[-1]

    yield start
    for worker in started:
        worker.__exit__()


def code_of(worker: Worker, op: str, **fields) -> str:
    with pytest.raises(Failed) as failure:
        worker.ask(op, **fields)
    assert failure.value.what
    return failure.value.code


def test_a_whole_session_gives_what_the_protocol_promises(sample, bundle):
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
def test_wrong_fields_of_load_are_bad_requests_that_name_them(changed, sample, bundle):
    worker = sample()
    case = json.loads((bundle / "bundle.json").read_text())["case"]
    fields = {"case": case, "bundle": str(bundle), "weights": "timed", "cache": str(bundle)}
    with pytest.raises(Failed, match=f"`{next(iter(changed))}") as failure:
        worker.ask("load", **(fields | changed))
    assert failure.value.code == "bad_request"
    worker.load()


def test_inputs_come_before_iterations(sample, bundle):
    worker = sample()
    case = json.loads((bundle / "bundle.json").read_text())["case"]
    worker.ask("load", case=case, bundle=str(bundle), weights="timed", cache=str(bundle))
    assert code_of(worker, "prove", indices=[0], out="x") == "bad_request"
    assert code_of(worker, "warm_up", iterations=1, min_ns=0) == "bad_request"


MEASURE = {
    "iterations": 2,
    "head": 0,
    "indices": [0, 1],
    "check": 0,
    "out": "/nonexistent/x",
    "region": "end_to_end",
}


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
        {"check": 2},
        {"check": -2},
        {"check": True},
        {"check": None},
    ],
)
def test_wrong_fields_of_measure_are_bad_requests(changed, sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "measure", **(MEASURE | changed)) == "bad_request"


@pytest.mark.parametrize(
    "changed",
    [
        3,
        {},
        {"first": 1},
        {"first": -1, "places": [0]},
        {"first": 1, "places": "x"},
        {"first": 1, "places": [-1]},
        {"first": 1.5, "places": []},
        {"first": True, "places": []},
        {"first": 1, "places": [], "exchange": 4},
        {"first": 1, "places": [], "exchange": "0"},
    ],
)
def test_wrong_fields_of_fresh_inputs_are_bad_requests(changed, sample):
    worker = sample()
    worker.load()
    assert code_of(worker, "measure", **(MEASURE | {"fresh": changed})) == "bad_request"


REMEMBERS = """answers, hits = {}, 0
    def set_input(self, inputs): self.x = inputs[0]
    def key(self): return self.x.tobytes()
    def run(self):
        Sample.hits += self.key() in self.answers
        self.y = self.answers.setdefault(self.key(), self.x * self.scale)
    def report(self): return {"hits": self.hits}
"""
PLACES = [3, 1, 4, 1, 5, 9, 2, 6]


def block_of(tmp_path, **changed) -> dict:
    return {
        "iterations": 300,
        "head": 2,
        "indices": [i % 4 for i in range(300)],
        "check": 250,
        "out": str(tmp_path / "out"),
        "region": "end_to_end",
    } | changed


def hits_of(worker: Worker) -> int:
    return worker.ask("report")["facts"]["hits"]


def test_no_timed_input_is_one_that_a_level_which_remembers_has_seen(sample, tmp_path):
    worker = sample(REMEMBERS, bases="Level, Reports")
    worker.load()
    worker.prove([0, 1, 2, 3])
    assert hits_of(worker) == 0
    answer = worker.ask("measure", **block_of(tmp_path), fresh={"first": 1, "places": PLACES})
    assert answer["fresh"] == {"places": 6}  # as many as the input has values
    assert hits_of(worker) == 2, "only the unrecorded iterations had inputs that were seen"
    checked = load_file(tmp_path / "out")["2/output"]
    assert (checked != 30).any() and np.allclose(checked, 30, rtol=8 * 2.0**-23, atol=0)
    worker.ask(
        "measure", **block_of(tmp_path), fresh={"first": 301, "places": PLACES, "exchange": 1}
    )
    assert hits_of(worker) == 4, "the checked one neither"
    assert np.allclose(load_file(tmp_path / "out")["1/output"], 20, rtol=8 * 2.0**-23, atol=0), (
        "the result is that of the other entry's input"
    )
    assert (
        (worker.prove([2])["2/output"] == 30).all()
        and (worker.prove([1])["1/output"] == 20).all()
        and hits_of(worker) == 6
    ), "the ring is as it was"
    assert (
        "fresh" not in worker.ask("measure", **block_of(tmp_path)) and hits_of(worker) == 6 + 302
    ), "without it all are known"


def test_a_level_that_remembers_by_the_place_of_its_input_gives_a_wrong_answer_where_it_is_checked(
    sample, tmp_path
):
    worker = sample(
        REMEMBERS.replace("self.x.tobytes()", "self.x.ctypes.data"), bases="Level, Reports"
    )
    worker.load()
    worker.prove([0, 1, 2, 3])
    worker.ask("measure", **block_of(tmp_path), fresh={"first": 1, "places": PLACES, "exchange": 1})
    assert (load_file(tmp_path / "out")["1/output"] == 30).all(), (
        "entry 2's, where entry 1's input stood"
    )


def test_work_that_is_put_off_until_the_result_is_read_shows_in_the_time_of_keeping_it(
    sample, tmp_path
):
    worker = sample("""def run(self): pass
    def outputs(self): return [lambda: self.x * self.scale]
    def to_numpy(self, output):
        import time
        time.sleep(0.05)
        return output()""")
    worker.load()
    answer = worker.ask("measure", **block_of(tmp_path), fresh={"first": 1, "places": PLACES})
    assert max(answer["wall_ns"]) < 50e6 <= answer["kept_ns"]


def test_a_checked_result_that_is_a_view_of_the_input_is_kept_as_it_was(sample, tmp_path):
    worker = sample("def run(self): self.y = self.x")
    worker.load()
    worker.ask("measure", **block_of(tmp_path), fresh={"first": 1, "places": PLACES, "exchange": 0})
    assert np.allclose(load_file(tmp_path / "out")["0/output"], 1, rtol=8 * 2.0**-23, atol=0)


def test_inputs_without_values_that_can_hold_a_number_stay_as_they_are(sample, tmp_path):
    worker = sample()
    worker.load()
    for dtype, value in ((np.int64, 3), (np.float32, 0.0), (np.float32, np.inf)):
        save_file({f"{i}/arg0": np.full((2, 3), value, dtype) for i in range(4)}, tmp_path / "ring")
        worker.ask("inputs", path=str(tmp_path / "ring"))
        answer = worker.ask(
            "measure",
            **(MEASURE | {"out": str(tmp_path / "out"), "fresh": {"first": 7, "places": [0, 1]}}),
        )
        assert (
            answer["fresh"]["places"] == 0
            and (load_file(tmp_path / "out")["0/output"] == value * 10.0).all()
        )


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
    assert code_of(worker, "measure", **MEASURE) == "failed"
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


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"mode": "train"}, "mode train"),
        ({"precision": "tf32"}, "precision tf32"),
        ({"device": "cuda"}, "device cuda"),
    ],
)
def test_a_case_beyond_level_json_is_unsupported(changed, what, sample):
    worker = sample()
    with pytest.raises(Failed, match=what) as failure:
        worker.load(**changed)
    assert failure.value.code == "unsupported"
    worker.load()


def test_a_model_that_level_json_does_not_list_is_unsupported(sample):
    with pytest.raises(Failed, match="no scale") as failure:
        sample(models=["resnet18"]).load()
    assert failure.value.code == "unsupported" and "resnet18" in failure.value.hint


# ------------------------------------------------------------------------------ errors of a level


@pytest.mark.parametrize(
    ("raised", "code", "what"),
    [
        (
            "ValueError('first\\nsecond')",
            "failed",
            r"ValueError: first second \(level.py:\d+ in run\)",
        ),
        ("MemoryError()", "out_of_memory", "MemoryError"),
        (
            'RuntimeError("[enforce fail] DefaultCPUAllocator: can\'t allocate memory: you tried to allocate 9 bytes")',
            "out_of_memory",
            "DefaultCPUAllocator",
        ),
        (
            "RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')",
            "out_of_memory",
            "CUDA out of memory",
        ),
        ("RuntimeError('std::bad_alloc')", "out_of_memory", "bad_alloc"),
        (
            "UnsupportedError('no operation erfinv at model.py:3', 'use another')",
            "unsupported",
            "no operation erfinv at model.py:3",
        ),
        ("UnavailableError('no device')", "unavailable", "no device"),
        ("SystemExit(3)", "failed", "SystemExit: 3"),
        ("KeyError('indices')", "failed", "KeyError: 'indices'"),
        ("AssertionError", "failed", "AssertionError"),
    ],
)
def test_an_exception_becomes_a_failure_and_the_worker_goes_on(raised, code, what, sample):
    worker = sample(f"def run(self):\n        raise {raised}")
    worker.load()
    with pytest.raises(Failed, match=what) as failure:
        worker.prove([0])
    assert failure.value.code == code
    assert worker.ask("hello")["ok"]
    if code == "failed":
        assert "Traceback" in worker.log_text()


def test_after_a_failed_load_another_load_may_follow(sample):
    worker = sample(
        "def supports(self, job):\n        if job.threads != 1: raise UnsupportedError('one thread only')"
    )
    with pytest.raises(Failed, match="one thread only"):
        worker.load(threads=7)
    worker.load()
    assert worker.prove([0])["0/output"][0, 0] == 10


def test_a_missing_library_makes_the_level_unavailable(sample):
    worker = sample(source="import no_such_library")
    for op in ("hello", "load"):
        with pytest.raises(Failed, match="no_such_library") as failure:
            worker.ask(op)
        assert failure.value.code == "unavailable" and preloaded.PYTHON in failure.value.hint
    assert code_of(worker, "epoch") == "unsupported"
    worker.ask("bye")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "from strata_sdk import Level\nclass A(Level): pass\nclass B(Level): pass",
        "syntax error here",
    ],
)
def test_a_file_that_defines_no_single_level_fails(source, sample):
    assert code_of(sample(source=source), "hello") == "failed"


def test_progress_is_told_before_the_answer_and_never_while_something_is_timed(sample):
    says = "def load(self, job):\n        self.scale = 0.0; self.progress('half of it')\n    def run(self):\n        self.progress('running'); self.y = self.x * self.scale"
    worker = sample(says)
    worker.load()
    assert worker.told == ["half of it"]
    worker.prove([0])
    assert worker.told == ["half of it", "running"]
    worker.measure([0, 1, 2])
    assert worker.told == ["half of it", "running"]


def test_a_level_without_a_function_that_every_level_has_fails_with_its_name(sample):
    worker = sample(
        source="from strata_sdk import *\nclass Lazy(Level):\n    def load(self, job): pass"
    )
    with pytest.raises(Failed, match=r"Lazy.*outputs.*run.*set_input") as failure:
        worker.ask("hello")
    assert failure.value.code == "failed"


def test_what_it_derives_from_says_which_operations_there_are(sample):
    worker = sample(
        "def report(self): return {}\n    def weight_names(self): return ['scale']\n    def weight(self, name): return np.asarray(self.scale)",
        bases="Level, Reports, ReadsWeights",
    )
    ops = worker.ask("hello")["ops"]
    assert "report" in ops and "read_weights" in ops and "serve" not in ops and "steps" not in ops
    worker.load()
    assert list(worker.ask("read_weights")["sha256"]) == ["scale"]


def test_an_artefact_is_shipped_with_what_lies_beside_it_and_missed_by_its_name(sample):
    worker = sample("def load(self, job): self.artefact('a.bin', 'b.bin', 'c.bin')")
    for name in ("a.bin", "b.bin"):
        (worker.cache / name).write_bytes(bytes(100))
    assert worker.load()["artefact_bytes"] == 200
    worker.ask("unload")
    (worker.cache / "a.bin").unlink()
    with pytest.raises(Failed, match=r"a.bin is missing"):
        worker.load()


def test_too_few_outputs_fail(sample):
    worker = sample("def outputs(self): return []")
    worker.load()
    with pytest.raises(Failed, match="returned 0 outputs, the network has 1"):
        worker.prove([0])


def test_a_level_that_writes_into_its_input_is_told_to_copy(sample):
    worker = sample(
        "def set_input(self, inputs): self.x = inputs[0].copy() if self.copy_inputs else inputs[0]\n    def run(self):\n        self.x *= self.scale; self.y = self.x.copy()"
    )
    worker.load()
    for _ in range(2):
        assert worker.prove([0])["0/output"][0, 0] == 10


def test_a_level_that_writes_into_its_input_all_the_same_fails(sample):
    worker = sample("def run(self):\n        self.x *= 2; self.y = self.x.copy()")
    worker.load()
    with pytest.raises(Failed, match="changes the caller's input arg0"):
        worker.prove([0])


def test_numpy_scalars_in_settings_travel_as_numbers(sample):
    assert (
        sample("def settings(self): return {'threads': np.int64(3)}").load()["settings"]["threads"]
        == 3
    )


def test_a_scalar_and_a_strided_output_keep_shape_and_values(sample):
    worker = sample(
        "def run(self): self.y = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)).T"
    )
    worker.load()
    assert worker.prove([0])["0/output"].tolist() == [[0, 3], [1, 4], [2, 5]]
    worker = sample("def run(self): self.y = np.float32(7)")
    worker.load()
    output = worker.prove([0])["0/output"]
    assert output.shape == () and output == 7


# ------------------------------------------------------------------------------------ the process


def test_a_chatty_level_does_not_corrupt_the_stream(sample):
    worker = sample(
        "def run(self):\n        print('from print'); os.write(1, b'from fd 1\\n'); os.system('echo from a child'); self.y = self.x"
    )
    worker.load()
    worker.prove([0, 1])
    worker.measure([0, 1])
    worker.ask("bye")
    assert worker.process.wait(5) == 0 and worker.process.stdout.read() == b""
    log = worker.log_text()
    assert "from print" in log and "from fd 1" in log and "from a child" in log


def test_ends_when_its_input_closes_between_requests(sample):
    worker = sample()
    worker.load()
    worker.process.stdin.close()
    assert worker.process.wait(5) == 0


def test_ends_when_its_input_closes_during_a_request(sample):
    worker = sample("def run(self):\n        import time; time.sleep(600)")
    worker.load()
    worker.process.stdin.write(
        json.dumps({"id": 9, "op": "prove", "indices": [0], "out": "x"}).encode() + b"\n"
    )
    worker.process.stdin.flush()
    time.sleep(0.2)
    worker.process.stdin.close()
    assert worker.process.wait(8) == 1
    assert "input was closed" in worker.log_text()


def test_answers_all_that_was_sent_before_its_input_closed(tmp_path):
    folder = level_folder("null_py")
    requests = b"".join(b'{"id":%d,"op":"memory"}\n' % i for i in range(50))
    done = subprocess.run(
        [sys.executable, "-m", "strata_sdk", str(folder)],
        input=requests,
        env=environment(folder),
        stdout=subprocess.PIPE,
        timeout=30,
        cwd=tmp_path,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(
        range(50)
    ) and done.returncode == 0


def test_continues_after_it_was_stopped(sample):
    worker = sample()
    worker.load()
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.process.pid, signal.SIGCONT)
    assert worker.prove([0])["0/output"][0, 0] == 10


def test_a_file_of_the_working_folder_does_not_shadow_a_library(tmp_path, bundle):
    (tmp_path / "safetensors.py").write_text("raise SystemExit('shadowed')")
    folder = level_folder("null_py")
    requests = json.dumps(
        {
            "id": 1,
            "op": "load",
            "case": json.loads((bundle / "bundle.json").read_text())["case"],
            "bundle": str(bundle),
            "weights": "timed",
            "cache": "x",
        }
    )
    requests += (
        "\n"
        + json.dumps({"id": 2, "op": "inputs", "path": str(bundle / "inputs.safetensors")})
        + "\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "strata_sdk", str(folder)],
        input=requests,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        cwd=tmp_path,
    )
    assert [json.loads(line)["ok"] for line in done.stdout.splitlines()] == [True, True]


def test_packages_of_the_overlay_come_last(tmp_path):
    (tmp_path / "only_in_overlay.py").write_text("")
    (tmp_path / "json.py").write_text("raise ImportError")
    code = "import strata_sdk, json, only_in_overlay, sys; print(sys.path[-1])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(ROOT, STRATA_OVERLAY=str(tmp_path)),
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    assert done.stdout.strip() == str(tmp_path)


# --------------------------------------------------------------------------------- the null level


@pytest.fixture
def null(bundle):
    with Worker("null_py", bundle, threads=1) as worker:
        worker.load()
        yield worker


def test_null_proves_nothing_and_leaves_no_file(null, tmp_path):
    assert null.ask("prove", indices=[0, 1], out=str(tmp_path / "x"))["outputs"] == []
    null.ask("measure", **(MEASURE | {"out": str(tmp_path / "x")}))
    assert not (tmp_path / "x").exists()


def test_the_loop_costs_under_5_microseconds_an_iteration(null):
    null.ask("warm_up", iterations=1000, min_ns=0)
    count = 20000
    answer, _ = null.measure([i % 4 for i in range(count)], check=0)
    assert sorted(answer["wall_ns"])[count // 2] < 5000
    assert answer["cpu_ns"] / count < 5000, "between the recorded spans too"


def test_warm_up_honours_both_bounds_and_returns_few_times(null):
    assert null.ask("warm_up", iterations=7, min_ns=0)["iterations"] == 7
    long = null.ask("warm_up", iterations=1, min_ns=30_000_000)
    assert long["iterations"] > 4096 and len(long["wall_ns"]) == 4096
