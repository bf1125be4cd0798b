# SPDX-License-Identifier: Apache-2.0
"""Bundles for the tests of levels, captured once by the real capture."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def newest_build() -> str:
    found = sorted(ROOT.glob("build/env-*/level_libtorch"), key=lambda path: path.stat().st_mtime)
    return str(found[-1].parent) if found else ""


os.environ.setdefault("STRATA_LEVEL_BUILD", newest_build())  # ./test sets it
# Compiling takes longest: the code around the kernels without optimisation, in the process itself
# instead of a pool whose processes load PyTorch, and without asking the compiler in each cache
# folder anew whether it knows the processor's vector instructions. Read when PyTorch is imported.
os.environ |= {
    "AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL": "O0",
    "AOT_INDUCTOR_ENABLE_LINE_TABLES": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tests" / "preloaded")]

import preloaded  # noqa: E402
from client import prepare  # noqa: E402
from once import once  # noqa: E402
from preloaded import pytest_configure  # noqa: E402, F401
from running_levels import (  # noqa: E402
    fresh,  # noqa: F401
    graph_bundle,  # noqa: F401
    graph_worker,  # noqa: F401
    running,  # noqa: F401
    running_variant,  # noqa: F401
)
from scale_level import sample, scale_bundle  # noqa: E402, F401
from specs import whole  # noqa: E402

SPECS = {
    "resnet18": {
        "model": "resnet18",
        "inputs": [{"name": "", "dtype": "float32", "shape": [2, 3, 64, 64]}],
        "batch": 2,
    },
    "mnist": {"model": "mnist_convnet", "batch": 4},
    "package": {
        "model": "torchvision:mobilenet_v3_small?num_classes=5",
        "batch": 2,
        "size": [64, 64],
    },
    "mnist_deep": {"model": "mnist_convnet", "batch": 2, "deep": True},
    "keywords": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":keyword_network"},
    "one_thread": {
        "model": str(ROOT / "tests" / "levels" / "networks.py") + ":keyword_network",
        "threads": 1,
    },
    "in_place": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":in_place_network"},
    "train_tiny": {
        "model": str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network",
        "mode": "train",
    },
    "train_mnist": {"model": "mnist_convnet", "mode": "train", "batch": 4},
    "train_wide_amp": {
        "model": str(ROOT / "tests" / "levels" / "train_networks.py") + ":wide",
        "mode": "train",
        "precision": "amp-bf16",
        "inputs": [{"name": "", "dtype": "float32", "shape": [8, 3, 8, 8]}],
        "batch": 8,
    },
    "train_odd_amp": {
        "model": str(ROOT / "tests" / "levels" / "train_networks.py") + ":odd",
        "mode": "train",
        "precision": "amp-bf16",
        "inputs": [{"name": "", "dtype": "float32", "shape": [4, 3, 9, 7]}],
        "batch": 4,
    },
    "train_tiny_amp": {
        "model": str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network",
        "mode": "train",
        "precision": "amp-bf16",
    },
    "residual": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":strided_network"},
    **{
        f"tiny_{precision.replace('fp32', 'strict')}": {
            "model": str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network",
            "threads": 1,
            "precision": precision,
        }
        for precision in ("fp32", "bf16", "amp-bf16")
    },
    **{
        f"mnist_{precision}": {
            "model": "mnist_convnet",
            "batch": 2,
            "threads": 1,
            "precision": precision,
        }
        for precision in ("bf16", "amp-bf16")
    },
    **{
        name: {"model": str(ROOT / "tests" / "levels" / "primitive_networks.py") + f":{name}"}
        for name in (
            "image_operations",
            "image_sizes",
            "token_operations",
            "typed_operations",
            "unknown_operation",
        )
    },
    **{
        name: {"model": str(ROOT / "tests" / "levels" / "recurrent_networks.py") + f":{name}"}
        for name in ("gates_in_order", "projected_lstm", "recurrent_operations")
    },
    **{
        name: {"model": str(ROOT / "tests" / "levels" / "place_networks.py") + f":{name}"}
        for name in ("place_operations", "part_operations", "function_operations")
    },
    **{
        name: {"model": str(ROOT / "tests" / "levels" / "static_networks.py") + f":{name}"}
        for name in ("residual_operations", "kernel_operations", "block_operations")
    },
    **{
        f"{name}_bf16": {
            "model": str(ROOT / "tests" / "levels" / f"{file}_networks.py") + f":{name}",
            "precision": "bf16",
        }
        for file, name in (
            ("primitive", "image_operations"),
            ("static", "residual_operations"),
            ("static", "block_operations"),
        )
    },
    "branching": {"model": str(ROOT / "tests" / "levels" / "networks.py") + ":branching_network"},
}


def pytest_collection_modifyitems(items):
    """The longest files first: a process that gets one of them last works alone at the end."""
    longest = (
        "train_judged",
        "odd_networks",
        "train_verb",
        "sound_levels",
        "export",
        "cpp_levels",
        "python_levels",
        "dynamic",
        "compare_levels",
        "examples",
        "precision_levels",
        "train_levels",
        "cpp_variants",
        "serve",
        "model_files",
        "static",
        "onednn",
        "cpp_train",
    )
    place = {f"test_{name}.py": i for i, name in enumerate(longest)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


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

    def get(name: str) -> Path:
        folder = shared / "bundles" / name
        once(folder, lambda: capture(folder / "spec.json", folder / "bundle", SPECS[name]))
        return folder / "bundle"

    return get


@pytest.fixture(scope="session")
def artefacts(shared, bundles):
    """artefacts(level, bundle name) -> the level's cache folder with what its prepare command made,
    by one process for all."""

    def get(level: str, name: str) -> Path:
        folder = shared / "artefacts" / f"{level}-{name}"

        def make() -> None:
            (folder / "cache").mkdir(exist_ok=True)
            answer = prepare(level, bundles(name), folder / "cache")
            assert answer == {"ok": True}, answer

        once(folder, make)
        return folder / "cache"

    return get


def capture(spec: Path, bundle: Path, fields: dict) -> None:
    spec.write_text(
        json.dumps(whole({"threads": 2} | fields)),
        encoding="utf-8",
    )
    done = preloaded.run(
        [preloaded.PYTHON, "-m", "capture", "--spec", str(spec), "--out", str(bundle)],
        os.environ
        | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}", "OMP_NUM_THREADS": "2"},
        spec.parent,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where `strata train` is run on the digits (train_verb.py)."""
    from train_verb import Place

    return Place(tmp_path_factory.mktemp("training"))
