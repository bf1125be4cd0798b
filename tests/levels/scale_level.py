# SPDX-License-Identifier: Apache-2.0
"""A level that the tests of the Python SDK write, and its bundle: output = scale * x."""

from __future__ import annotations

import json

import numpy as np
import pytest
from client import Failed, Worker
from safetensors.numpy import save_file

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
def scale_bundle(tmp_path):
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
def sample(tmp_path, scale_bundle):
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
        started.append(Worker(folder, scale_bundle, threads=1))
        return started[-1]

    yield start
    for worker in started:
        worker.__exit__()


def code_of(worker: Worker, op: str, **fields) -> str:
    with pytest.raises(Failed) as failure:
        worker.ask(op, **fields)
    assert failure.value.what
    return failure.value.code


MEASURE = {
    "iterations": 2,
    "head": 0,
    "indices": [0, 1],
    "retain": [0],
    "region": "end_to_end",
}
