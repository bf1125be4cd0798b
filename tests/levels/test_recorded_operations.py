# SPDX-License-Identifier: Apache-2.0
"""The record behind `strata list models --level`: it has every model, and says what capture finds
today."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from strata_sdk.models import shipped_models, torchvision_names  # noqa: E402

spec = importlib.util.spec_from_file_location("record", ROOT / "tools/record_operations.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)
RECORD = json.loads(record.RECORD.read_text(encoding="utf-8"))
MODELS = record.models_of(RECORD)


def test_every_model_is_recorded_in_inference_and_training():
    lacking = {
        (name, mode)
        for name in [*shipped_models(), *torchvision_names()]
        for mode in record.MODES
        if mode not in MODELS.get(name, {})
    }
    assert not lacking


def test_a_record_that_is_written_again_is_the_same():
    assert record.text_of(
        {key: RECORD[key] for key in ("torch", "torchvision")}, MODELS
    ) == record.RECORD.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "mode"),
    [("mnist_convnet", "train"), ("squeezenet1_1", "infer"), ("shufflenet_v2_x0_5", "train")],
)
def test_the_record_is_what_capture_finds(name, mode):
    if torch.__version__.partition("+")[0] != RECORD["torch"]:
        pytest.skip(f"the record is of torch {RECORD['torch']}")
    assert record.operations_of(name, mode) == MODELS[name][mode]
