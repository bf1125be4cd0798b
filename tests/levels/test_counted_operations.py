# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of captured networks (counted_networks.py) against numbers worked out
by hand: `graph` and `compare` print one count, and what is not counted is named, bounds nothing and
accuses nobody."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import counted_networks
import preloaded
import pytest
import torch
from client import PROGRAM, ROOT, compare_all

MODELS = Path(__file__).with_name("counted_networks.py")
QUICK = (
    "--threads",
    "1",
    "--restarts",
    "1",
    "--budget",
    "2s",
    "--preset",
    "quick",
    "--order-seed",
    "1",
)

LSTM = 2 * 50 * (4 * 64 * 64 + 4 * 64 * 64) + 2 * 64 * 4
RECURRENT = (
    # four times 4 gates: inputs of 6 features (both directions' 3 in the second layer), 3 projected
    2 * 24 * 4 * (32 * 6 + 32 * 3 + 3 * 8)
    + 2 * 24 * 2 * (21 * 6 + 21 * 7)  # GRU in two directions: 3 gates of 7
    + 2 * 24 * (4 * 14 + 4 * 4 + 4 * 4 + 4 * 4)  # two layers
    + 2 * 24 * (9 * 4 + 9 * 9)
    + 2 * 2 * (15 * 9 + 15 * 5)  # one step of a GRU
)
UNET = (
    2 * (2 * 8 * 16 * 16) * (3 * 9)
    + 2 * (2 * 16 * 8 * 8) * (8 * 9)
    + 2 * (2 * 16 * 8 * 8) * (2 * 9)  # each input element with 2 channels of its group
    + 2 * (2 * 2 * 16 * 16) * 16
)
EVERYTHING = (
    2 * (2 * 4) * 8 * 8  # einsum
    + 2 * 2 * (2 * 4 * 4 * 8)  # attention
    + 2 * 2 * (2 * 4 * 4 * 8)  # two products of batches
    + 2 * (2 * 4) * (4 * 8 * 8 + 2 * 8 * 16)
    + 2 * 2 * (2 * 4 * 4 * 8)  # the encoder layer
)


def graph_of(folder: Path, network: str) -> dict:
    environment = (
        os.environ
        | {
            "STRATA_ROOT": str(ROOT),
            "XDG_DATA_HOME": str(folder),
            "STRATA_PYTHON": preloaded.PYTHON,
        }
        | preloaded.interpreter()
    )
    words = [str(PROGRAM), "graph", f"{MODELS}:{network}", "--threads", "1", "--format", "json"]
    done = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def compared(folder: Path, network: str) -> dict:
    """The case of one short comparison of a level with a number."""
    result = compare_all(folder, f"{MODELS}:{network}", "--levels", "eager", *QUICK)
    return result["cases"][0]


def work_lines(case: dict) -> dict[str, dict]:
    return {line["check"]: line for line in case["rows"][0]["proof"]["lines"]}


def test_the_hand_computed_numbers_are_those_of_the_findings():
    assert LSTM == 3_277_312


@pytest.mark.parametrize(
    ("network", "flops"), [("recurrent", RECURRENT), ("everything", EVERYTHING)]
)
def test_a_captured_graph_is_counted_as_by_hand(tmp_path, network, flops):
    graph = graph_of(tmp_path, network)
    assert graph["total"]["flops"] == flops and graph["flops_uncounted"] == []
    assert sum(node["flops"] for node in graph["nodes"]) == flops


@pytest.mark.parametrize(("network", "flops"), [("lstm", LSTM), ("unet", UNET)])
def test_compare_and_graph_print_one_count(tmp_path, network, flops):
    graph, case = graph_of(tmp_path, network), compared(tmp_path, network)
    assert graph["total"]["flops"] == flops and case["flops"] == flops
    assert graph["flops_uncounted"] == [] and case["flops_uncounted"] == []
    assert case["limits"]["compute_ms"] == pytest.approx(flops / case["limits"]["gflops"] * 1e-6)


def test_a_network_without_a_graph_is_counted_from_what_it_calls(tmp_path):
    case = compared(tmp_path, "branching_lstm")
    assert case["flops"] == LSTM and case["flops_uncounted"] == []
    assert case["limits"]["compute_ms"] is not None


def test_of_an_onnx_file_nothing_is_counted(tmp_path):
    module, example = counted_networks.unet()
    program = torch.export.export(module.requires_grad_(False), (example,))
    path = tmp_path / "net.onnx"
    torch.onnx.export(program, dynamo=True, verbose=False, input_names=["x"]).save(str(path))
    case = compare_all(tmp_path, str(path), "--levels", "onnxruntime", *QUICK)["cases"][0]
    assert case["flops"] is None and case["flops_uncounted"] == []
    assert case["limits"]["compute_ms"] is None
    lines = work_lines(case)
    assert lines["time is plausible"]["detail"] == "the network's work is not counted"
    assert "floating-point operations" not in lines


def test_what_is_not_counted_is_named_and_bounds_nothing(tmp_path):
    graph, case = graph_of(tmp_path, "distances"), compared(tmp_path, "distances")
    assert graph["flops_uncounted"] == case["flops_uncounted"] == ["cdist"]
    assert graph["total"]["flops"] == case["flops"] == 2 * 32 * 8 * 8
    assert [node["flops"] for node in graph["nodes"] if node["operation"] == "cdist"] == [None]
    assert case["limits"]["limit_ms"] is None and case["limits"]["kind"] is None
    lines = work_lines(case)
    assert lines["time is plausible"]["result"] == "not_checked"
    assert lines["time is plausible"]["detail"] == "the work of cdist is not counted"
    assert lines["floating-point operations"]["value"].endswith(", without cdist")
