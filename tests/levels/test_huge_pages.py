# SPDX-License-Identifier: Apache-2.0
"""eager@hugepages: PyTorch's memory really lies in huge pages where the kernel gives them."""

from __future__ import annotations

import sys

import pytest
from client import ROOT, compare_all

sys.path.insert(0, str(ROOT / "setup"))
from skips import gives_huge_pages

NETWORK = """
import torch
from torch import nn
def build():
    layers = [nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)]
    return nn.Sequential(*layers), torch.randn(4, 2048)
"""
WEIGHTS = 2 * 2048 * 2048 * 4
QUICK = ("--threads", "1", "--restarts", "1", "--budget", "2s", "--preset", "quick")


@pytest.mark.skipif(not gives_huge_pages(), reason="no huge pages here")
def test_the_weights_of_eager_lie_in_huge_pages(tmp_path):
    (tmp_path / "net.py").write_text(NETWORK, encoding="utf-8")
    result = compare_all(
        tmp_path,
        f"{tmp_path / 'net.py'}:build",
        "--levels",
        "eager,eager@hugepages",
        *QUICK,
        afresh=True,
    )
    default, huge = result["cases"][0]["rows"]
    assert (default["variant"], huge["variant"]) == ("default", "hugepages")
    assert (default["state"], huge["state"]) == ("measured", "measured"), (
        default["reason"],
        huge["reason"],
    )
    assert huge["settings"]["huge_page_bytes"] >= 0.8 * WEIGHTS
    if huge["settings"]["huge_pages"] == "madvise":
        assert default["settings"]["huge_page_bytes"] < 0.2 * WEIGHTS
    assert huge["memory"]["peak_private_bytes"] > 0 and huge["proof"]["verdict"] == "equal"
