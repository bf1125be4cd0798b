# SPDX-License-Identifier: Apache-2.0
"""The record behind `strata list models --level`: it has every model, and says what capture finds today."""
from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]
FOLDER = ROOT / "src" / "graph" / "recorded"

from strata_sdk.models import build_model, shipped_models, torchvision_names  # noqa: E402

RECORD = json.loads((FOLDER / "operations.json").read_text(encoding="utf-8"))


def recorder():
    spec = importlib.util.spec_from_file_location("record", FOLDER / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_model_is_recorded_in_inference():
    assert {name for name in [*shipped_models(), *torchvision_names()] if "infer" not in RECORD["models"].get(name, {})} == set()


@pytest.mark.parametrize(("name", "mode"), [("mnist_convnet", "train"), ("squeezenet1_1", "infer"), ("mobilenet_v3_small", "train")])
def test_the_record_is_what_capture_finds(name, mode):
    if torch.__version__.partition("+")[0] != RECORD["torch"]:
        pytest.skip(f"the record is of torch {RECORD['torch']}")
    assert recorder().operations_of(build_model(name), mode) == RECORD["models"][name][mode]
