# SPDX-License-Identifier: Apache-2.0
"""One artefact over several batch sizes with the real levels: equal work at every size from one
loaded network, what compile says, and a network whose batch is fixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import preloaded
import pytest
from client import ROOT, Worker, error, prepare
from conftest import capture
from safetensors.numpy import load_file
from specs import whole

RANGE = {"low": 1, "high": 4, "sizes": [1, 2, 4]}


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Path:
    """The open part of a bundle of the convnet at batch 2."""
    folder = tmp_path_factory.mktemp("open")
    capture(
        folder / "spec.json",
        folder / "bundle",
        {"model": "mnist_convnet", "batch": 2, "dynamic": RANGE},
    )
    return folder / "bundle" / "dynamic"


def envelope_at(place: Path) -> float:
    truth, runs = (
        load_file(place / "reference" / "timed.safetensors"),
        load_file(place / "reference" / "timed.envelope.safetensors"),
    )
    return max(
        8 * 2**-24,
        *(
            float(
                np.linalg.norm(value - truth["f64/" + name.split("/", 1)[1]])
                / np.linalg.norm(truth["f64/" + name.split("/", 1)[1]])
            )
            for name, value in runs.items()
        ),
    )


def serve(worker: Worker, opened: Path, sizes: tuple[int, ...]) -> None:
    """Every size in this order, proven and once more in a block."""
    for size in sizes:
        place = opened / "sizes" / str(size)
        truth = load_file(place / "reference" / "timed.safetensors")
        assert worker.ask("inputs", path=str(place / "inputs.safetensors"))["count"] == 2
        assert error(worker.prove([0, 1]), truth) <= 8 * envelope_at(place), size
        assert error(worker.measure([1, 0, 1], check=2)[1], truth) <= 8 * envelope_at(place), size


def test_the_capture_writes_an_open_graph_and_each_sizes_reference(opened):
    about = json.loads((opened / "bundle.json").read_text(encoding="utf-8"))
    assert (
        about["export"] == {"ok": True, "what": "", "where": ""}
        and about["case"]["dynamic"] == RANGE
        and about["case"]["batch"] == 2
    )
    assert (
        "dynamic"
        not in json.loads((opened.parent / "bundle.json").read_text(encoding="utf-8"))["case"]
    )
    assert (opened / "graph.txt").read_text(encoding="utf-8") != (
        opened.parent / "graph.txt"
    ).read_text(encoding="utf-8")
    for size in RANGE["sizes"]:
        part = json.loads(
            (opened / "sizes" / str(size) / "bundle.json").read_text(encoding="utf-8")
        )
        assert part["inputs"][0]["shape"] == [size, 1, 28, 28] and part["outputs"][0]["shape"] == [
            size,
            10,
        ]
        assert load_file(opened / "sizes" / str(size) / "reference" / "timed.safetensors")[
            "f64/0/output"
        ].shape == (size, 10)
    assert (opened / "weights" / "generic2.safetensors").is_file() and (
        opened / "reference" / "generic1.safetensors"
    ).is_file()


@pytest.mark.parametrize(
    "level", ["eager", "compile", "torchscript", "libtorch", "aoti", "onnxruntime", "openvino"]
)
def test_one_network_serves_every_size_and_each_weight_set(level, opened, tmp_path):
    if level in ("torchscript", "libtorch", "aoti"):
        import level_builds  # noqa: F401  finds the level binaries, or skips
    assert prepare(level, opened, tmp_path)["ok"]
    with Worker(level, opened, tmp_path) as worker:
        assert worker.ask("hello")["dynamic"] is True
        worker.load()
        before = worker.ask("report")["facts"] if level == "compile" else {}
        serve(worker, opened, (4, 1, 2, 4))
        worker.ask("weights", weights="generic1")
        worker.ask("inputs", path=str(opened / "inputs.safetensors"))
        assert (
            error(worker.prove([0, 1]), load_file(opened / "reference" / "generic1.safetensors"))
            < 1e-4
        )
        facts = worker.ask("report")["facts"] if "report" in worker.ask("hello")["ops"] else None
    if level == "compile":  # 1 is a constant to PyTorch; all other sizes share one code
        assert (
            facts["recompiles"] - before["recompiles"] == 1
            and facts["guards"] > 0
            and facts["guard_us"] > 0
        ), (before, facts)
        assert len(facts["recompile_reasons"]) == facts["recompiles"]
    elif level == "torchscript":
        assert facts == {"bailouts": 0}
    else:
        assert facts is None


NETWORKS = """
import torch
from torch import nn

class Fixed(nn.Module):
    def forward(self, x):
        return x.reshape(2, 8).relu()

class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 3), nn.Linear(8, 3)
    def forward(self, x):
        return self.a(x) if x.shape[0] > 2 else self.b(x)

def fixed():
    return Fixed(), torch.randn(2, 8)

def branch():
    torch.manual_seed(1)
    return Branch(), torch.randn(2, 8)
"""


def captured(folder: Path, function: str) -> dict:
    """The capture's last line."""
    (folder / "nets.py").write_text(NETWORKS, encoding="utf-8")
    spec = {
        "model": f"{folder / 'nets.py'}:{function}",
        "dynamic": RANGE,
    }
    (folder / "spec.json").write_text(json.dumps(whole(spec)), encoding="utf-8")
    done = preloaded.run(
        [
            preloaded.PYTHON,
            "-m",
            "capture",
            "--spec",
            str(folder / "spec.json"),
            "--out",
            str(folder / "bundle"),
        ],
        {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}",
            "HOME": str(folder),
            "STRATA_OVERLAY": os.environ.get("STRATA_OVERLAY", ""),
        },
        folder,
        timeout=120,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_network_that_runs_at_one_size_only_is_told_with_the_size(tmp_path):
    answer = captured(tmp_path, "fixed")
    assert answer["code"] == "usage" and "does not run at batch 1" in answer["what"]


def test_a_network_whose_path_depends_on_the_batch_does_not_export_and_says_where(tmp_path):
    assert captured(tmp_path, "branch") == {"ok": True}
    message = json.loads(
        (tmp_path / "bundle" / "dynamic" / "bundle.json").read_text(encoding="utf-8")
    )["export"]
    assert not message["ok"] and "batch" in message["what"]
    assert json.loads((tmp_path / "bundle" / "bundle.json").read_text(encoding="utf-8"))["export"][
        "ok"
    ]
    answer = prepare("aoti", tmp_path / "bundle" / "dynamic", tmp_path / "cache")
    assert answer["code"] == "unsupported" and "does not export" in answer["what"]


@pytest.mark.parametrize("level", ["eager", "compile"])
def test_the_program_whose_lines_are_counted_runs_the_network(level, opened, bundles, tmp_path):
    bundle = bundles("in_place")
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "levels" / level / "standalone.py"),
            f"{ROOT / 'tests' / 'levels' / 'networks.py'}:in_place_network",
            str(bundle / "weights" / "timed.safetensors"),
            "2",
            str(bundle / "inputs.safetensors"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first = done.stdout.splitlines()[0].split("] ")[1].split()
    assert np.allclose(
        [float(x) for x in first],
        load_file(bundle / "reference" / "timed.safetensors")["f64/0/output"].ravel()[:8],
        atol=1e-4,
    )


def test_the_cpp_program_whose_lines_are_counted_runs_the_network(opened):
    program = Path(os.environ["STRATA_LEVEL_BUILD"]) / "libtorch_standalone"
    done = subprocess.run(
        [
            program,
            "mnist_convnet",
            str(opened / "weights" / "timed.safetensors"),
            "2",
            str(opened / "inputs.safetensors"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    shown = [float(word) for word in done.stdout.splitlines()[0].split()[1:]]
    assert np.allclose(
        shown[0],
        load_file(opened / "reference" / "timed.safetensors")["f64/0/output"].ravel()[0],
        atol=1e-3,
    )
