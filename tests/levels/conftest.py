# SPDX-License-Identifier: Apache-2.0
"""Bundles for the tests of levels, captured once by the real capture."""
from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

SPECS = {
    "resnet18": {"model": "resnet18", "inputs": [{"name": "", "dtype": "float32", "shape": [2, 3, 64, 64]}], "batch": 2},
    "mnist": {"model": "mnist_convnet", "batch": 4},
    "mnist_deep": {"model": "mnist_convnet", "batch": 2, "deep": True},
    "keywords": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":keyword_network"},
    "one_thread": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":keyword_network", "threads": 1},
    "in_place": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":in_place_network"},
    "train_tiny": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network", "mode": "train"},
    "train_mnist": {"model": "mnist_convnet", "mode": "train", "batch": 4},
    "residual": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":strided_network"},
    **{f"tiny_{maths.replace('fp32', 'strict')}": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network", "threads": 1, "maths": maths} for maths in ("fp32", "bf16", "amp-bf16")},
    **{f"mnist_{maths}": {"model": "mnist_convnet", "batch": 2, "threads": 1, "maths": maths} for maths in ("bf16", "amp-bf16")},
    **{name: {"model": str(ROOT / "tests" / "levels" / "primitive_networks.py") + f":{name}"} for name in ("image_operations", "token_operations", "unknown_operation")},
    "branching": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":branching_network"},
}


def pytest_collection_modifyitems(items):
    """Whole comparisons first: a process that gets the longest file last works alone at the end."""
    items.sort(key=lambda item: item.path.name not in ("test_sound_levels.py", "test_compare_levels.py"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all processes of this test session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session", autouse=True)
def cache(shared):
    """Comparisons keep their artefacts here: the user's cache is neither used nor filled."""
    os.environ.setdefault("STRATA_CACHE", str(shared / "cache"))
    os.environ.setdefault("STRATA_TEST_KERNELS", str(shared / "kernels"))


@pytest.fixture(scope="session")
def bundles(shared):
    """bundles(name) -> folder, captured on first use, by one process for all."""
    place = shared / "bundles"

    def get(name: str) -> Path:
        folder = place / name
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "bundle" / "bundle.json").exists():
                capture(folder / "spec.json", folder / "bundle", SPECS[name])
        return folder / "bundle"

    return get


def capture(spec: Path, bundle: Path, fields: dict) -> None:
    spec.write_text(json.dumps({"mode": "infer", "maths": "fp32", "device": "cpu", "threads": 2, "seed": 0, "ring": 4} | fields), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "capture", "--spec", str(spec), "--out", str(bundle)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}", "OMP_NUM_THREADS": "2"}, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
