# SPDX-License-Identifier: Apache-2.0
"""Operations timed one by one (docs/protocol.md, operations): each level that can tells them with
their layers, they add up, and what costs time is found where it is."""

from __future__ import annotations

import json
import time
import types

import onnx
import pytest
import torch
from client import Failed, Worker
from onnx import helper
from torch import Tensor, nn

from strata_sdk import onnx_operations, operation_times

LEVELS = ["eager", "compile", "libtorch", "torchscript", "onednn", "static", "onnxruntime"]


@pytest.fixture(params=LEVELS)
def worker(request, bundles, artefacts, tmp_path):
    level = request.param
    bundle = bundles("mnist")
    cache = (
        artefacts(level, "mnist") if level in ("static", "torchscript", "onnxruntime") else tmp_path
    )
    with Worker(level, bundle, cache) as running:
        running.load()
        running.ask("warm_up", iterations=5, min_ns=0)  # TorchScript runs another graph at first
        yield level, running


def totals(answer: dict) -> list[int]:
    operations = answer["operations"]
    return [
        sum(each["ns"][i] + each["gap_ns"][i] for each in operations) + answer["after_ns"][i]
        for i in range(len(answer["wall_ns"]))
    ]


def test_operations_and_gaps_add_up_to_the_iteration_and_name_their_layers(worker):
    level, running = worker
    answer = running.ask("operations", iterations=3, indices=[0, 1, 0])
    assert totals(answer) == answer["wall_ns"] and len(answer["wall_ns"]) == 3
    layers = [each["layer"] for each in answer["operations"] if not each["moves_only"]]
    named = [layer for layer in dict.fromkeys(layers) if layer]
    if level in ("compile", "libtorch", "torchscript"):  # which know operators alone
        names = [each["operation"] for each in answer["operations"]]
        assert not named and sum("conv" in name for name in names) >= 2, names
        assert sum(name in ("linear", "addmm") for name in names) == 2, names
        assert level != "compile" or any(name.startswith("fused_") for name in names), names
        return
    assert named[:2] == ["conv1", "conv2"] or named[:3] == ["conv1", "relu1", "conv2"], named
    assert {"conv1", "conv2", "fc1", "fc2"} <= set(named), (level, named)
    convolutions = [each for each in answer["operations"] if "conv" in each["operation"]]
    assert len(convolutions) >= 2 and all(min(each["ns"]) > 0 for each in convolutions)


def test_a_request_that_fits_no_ring_is_refused(worker):
    _, running = worker
    for wrong in ({"iterations": 2, "indices": [0]}, {"iterations": 1, "indices": [99]}):
        with pytest.raises(Failed) as failed:
            running.ask("operations", **wrong)
        assert failed.value.code == "bad_request"


class Slow(nn.Module):
    """Sleeps between two layers, and computes one of them eleven times."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.last = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).relu()
        for _ in range(11):
            x = self.again(x)
        time.sleep(0.003)
        return self.last(x)


def recorded(module: nn.Module, x: Tensor):
    def iterate(_index: int) -> None:
        with torch.inference_mode():
            module(x)

    return operation_times.answer(operation_times.of_module(module, iterate, [0] * 10))


def test_python_between_two_layers_is_a_gap_in_front_of_the_second():
    answer = recorded(Slow(), torch.randn(8, 64))
    gaps = {
        (each["operation"], each["layer"]): min(each["gap_ns"]) for each in answer["operations"]
    }
    slow = gaps.pop(("linear", "last"))
    assert slow >= 3e6 and slow > 2 * max(gaps.values()), (slow, gaps)


def test_a_layer_that_runs_several_times_has_as_many_operations():
    answer = recorded(Slow(), torch.randn(8, 64))
    layers = [each["layer"] for each in answer["operations"] if each["operation"] == "linear"]
    assert layers == ["first"] + 11 * ["again"] + ["last"]


def test_backward_has_the_layer_of_the_operation_that_it_is_the_gradient_of():
    module, x = (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2)),
        torch.randn(2, 3, 8, 8),
    )

    def iterate(_index: int) -> None:
        module.zero_grad()
        module(x).sum().backward()

    answer = operation_times.answer(operation_times.of_module(module, iterate, [0]))
    by_name = {each["operation"]: each["layer"] for each in answer["operations"]}
    assert (
        by_name["convolution_backward"] == "0" and by_name["native_batch_norm_backward"] == "1"
    ), by_name
    assert "3" in {each["layer"] for each in answer["operations"] if each["operation"] == "mm"}


def test_operations_that_differ_from_iteration_to_iteration_are_refused():
    calls = iter([nn.ReLU(), nn.Tanh()])
    x = torch.randn(4)

    def iterate(_index: int) -> None:
        next(calls)(x)

    with pytest.raises(Exception, match="relu and tanh"):
        operation_times.answer(operation_times.of_module(nn.ReLU(), iterate, [0, 1]))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("graph_0_cpp_fused_add_convolution_relu_3", "fused_add_relu"),
        ("cpp_fused__native_batch_norm_legit_relu_12", "fused_native_batch_norm_legit_relu"),
        ("graph_12_cpp_fused_addmm_0", "fused"),
        ("cpp_fused_1", "fused"),
        ("cpp_fused_convolution_backward_threshold_backward_5", "fused_threshold_backward"),
        ("aten::addmm", "addmm"),
    ],
)
def test_a_generated_kernel_is_called_by_what_is_fused_in_it(kernel, name):
    event = types.SimpleNamespace(name=kernel)
    assert operation_times.is_operation(event) and operation_times.name_of(event) == name


def test_nodes_of_onnx_runtime_belong_to_the_iteration_in_which_they_ran(tmp_path):
    def node(name: str, kind: str, ts: int, dur: int) -> dict:
        args = {"op_name": kind, "input_type_shape": [{"float": [1, 3]}, {"float": [3]}]}
        return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": args}

    other = {"cat": "Session", "name": "model_run", "ts": 0, "dur": 90}
    warm, body = node("fc", "Gemm", 1, 5), node("in_a_loop", "Add", 32, 2)
    nodes = [node("fused fc_1_x", "FusedMatMul", 20, 7), node("loop", "Loop", 30, 9), body]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([other, warm, *nodes]), encoding="utf-8")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "first.weight"], ["y"], name="fc"),
            helper.make_node("MatMul", ["y", "second.weight"], ["z"], name="other"),
            helper.make_node("Relu", ["z"], ["fc_1"], name="relu"),
        ],
        "network",
        [],
        [],
        [helper.make_tensor(f"{name}.weight", 1, [1], [0.0]) for name in ("first", "second")],
    )
    onnx.save(helper.make_model(graph), str(tmp_path / "network.onnx"))
    nodes = onnx_operations.Nodes(tmp_path / "network.onnx")
    [one] = onnx_operations.of_profile(path, 500, [(15_000, 45_000)], nodes)
    told = [(each.operation, each.layer, each.begin_ns, each.end_ns) for each in one.operations]
    assert told == [("fused_matmul", "second", 20_500, 27_500), ("loop", None, 30_500, 39_500)]
    assert one.operations[0].shapes == [[1, 3], [3]]
