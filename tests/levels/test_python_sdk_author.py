# SPDX-License-Identifier: Apache-2.0
"""The Python SDK and what the author of a level wrote: errors, capabilities, odd results."""

from __future__ import annotations

import preloaded
import pytest
from client import Failed
from scale_level import code_of


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
    assert worker.progress == ["half of it"]
    worker.prove([0])
    assert worker.progress == ["half of it", "running"]
    worker.measure([0, 1, 2])
    assert worker.progress == ["half of it", "running"]


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


def test_a_level_without_a_batch_runs_its_samples_and_gives_one_result(sample):
    worker = sample(
        source="""
from strata_sdk import SampleLevel, tensors

class Single(SampleLevel):
    def load_weights(self, weights):
        self.scale = tensors.read(str(self.job.weights_path(weights)))["scale"]
    def take_sample(self, inputs): return inputs[0]
    def run_sample(self, sample): return [(sample * self.scale).reshape(3, 1)]
"""
    )
    worker.load()
    assert worker.prove([1])["1/output"].tolist() == [[20.0] * 3] * 2


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
