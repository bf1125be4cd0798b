# SPDX-License-Identifier: Apache-2.0
"""What is said of a model that needs torchvision where there is none, or one that does not fit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture import names  # noqa: E402
from strata_sdk.models import ModelError, build_model  # noqa: E402


@pytest.mark.parametrize(
    ("model", "what"),
    [("resnet18", "'resnet18' is torchvision's"), ("vgg11", "'vgg11' is torchvision's")],
)
def test_a_model_of_a_torchvision_that_is_missing_is_known_without_pytorch(
    model, what, monkeypatch
):
    monkeypatch.setattr(names, "_known", lambda: None)
    told = names.unknown(model)
    assert told["code"] == "unavailable" and what in told["what"]
    version = torch.__version__.split("+")[0]
    assert f"-m pip install torchvision torch=={version}" in told["hint"]
    assert names.unknown("mnist_convnet") is None and names.unknown("no_such_model") is None


@pytest.mark.parametrize("model", ["resnet18", "vgg11"])
def test_a_torchvision_that_does_not_fit_its_pytorch_is_told_in_its_own_words(
    model, monkeypatch, tmp_path
):
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "torchvision").mkdir()
    error = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision/__init__.py").write_text(f"raise RuntimeError('{error}')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError) as failed:
        build_model(model)
    assert failed.value.code == "unavailable" and error in failed.value.what
    assert f"beside PyTorch {torch.__version__}" in failed.value.what
    assert "pip install torchvision" in failed.value.hint
    assert build_model("mnist_convnet").name == "mnist_convnet"


def test_a_shipped_model_without_any_torchvision_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ModelError) as failed:
        build_model("resnet18")
    assert failed.value.code == "unavailable" and "has no torchvision" in failed.value.what
