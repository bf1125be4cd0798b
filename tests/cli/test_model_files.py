# SPDX-License-Identifier: Apache-2.0
"""`strata compare` of a file: what is no network is wrong usage (exit 2), and a changed file is
another case."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("net.pt2", None, ["net.pt2", "no such file"]),
        ("net.pt2", b"this is no network\n" * 50, ["net.pt2", "no torch.export file"]),
        ("net.pt", b"\x80\x04K\x01.", ["net.pt", "no TorchScript archive"]),
        ("net.onnx", b"this is no network\n" * 50, ["net.onnx", "no ONNX file"]),
    ],
)
def test_a_file_that_is_no_network_is_wrong_usage(strata, name, content, words):
    strata.level("one", rank=1)
    if content is not None:
        (strata.folder / name).write_bytes(content)
    done = strata.run(
        "compare", name, "--levels", "one", "--threads", "1", "--store", str(strata.store)
    )
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr


def test_a_file_that_changed_is_another_network_of_the_same_case(strata):
    import torch

    strata.level("one", rank=1)
    cases = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        torch.export.save(
            torch.export.export(torch.nn.Linear(6, 3).eval(), (torch.ones(2, 6),)),
            str(strata.folder / "net.pt2"),
        )
        done = strata.run(
            "compare",
            "net.pt2",
            "--levels",
            "one",
            "--threads",
            "1",
            "--restarts",
            "1",
            "--budget",
            "1s",
            "--store",
            str(strata.store),
            "--format",
            "json",
        )
        assert done.returncode == 0, done.stderr
        cases.append(json.loads(done.stdout)["cases"][0])
    assert (
        cases[0]["key"] == cases[1]["key"] and cases[0]["network_hash"] != cases[1]["network_hash"]
    )


@pytest.fixture
def onnx_file(strata):
    """net.onnx: y = relu(x w), x float32 [1,4]."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [weights],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        str(strata.folder / "net.onnx"),
    )
    return "net.onnx"


def test_what_runs_an_onnx_file_is_named_where_it_has_no_graph(strata, onnx_file):
    for verb in (["graph", onnx_file], ["generate", onnx_file, "-o", "program"]):
        done = strata.run(*verb, "--threads", "1")
        assert (
            done.returncode == 3
            and "no captured graph: an ONNX file holds no PyTorch module" in done.stderr
        ), done.stderr
        assert (
            "--levels onnxruntime,openvino" in done.stderr
            and "eager" not in done.stderr
            and "()" not in done.stderr
        )


def test_inputs_of_an_onnx_file_are_asked_for_by_their_names(strata, onnx_file):
    strata.level("one")
    for shape in ("2x4", "z=1x4"):
        done = strata.run(
            "compare",
            onnx_file,
            "--levels",
            "one",
            "--threads",
            "1",
            "--input",
            shape,
            "--store",
            str(strata.store),
        )
        assert (
            done.returncode == 2 and "net.onnx takes its inputs by name: x; given: " in done.stderr
        ), done.stderr
        assert "write NAME=SHAPE, as x=" in done.stderr and "TypeError" not in done.stderr


def test_the_command_that_proves_the_export_of_an_onnx_file_names_no_level_that_cannot_run_it(
    strata, onnx_file
):
    done = strata.run(
        "export",
        onnx_file,
        "--level",
        "onnxruntime",
        "--threads",
        "1",
        "-o",
        "shipped",
        "--store",
        str(strata.store),
    )
    assert done.returncode == 0, done.stderr
    assert "prove it: ./strata compare " in done.stderr and done.stderr.rstrip().endswith(
        "--levels onnxruntime --threads 1"
    ), done.stderr
