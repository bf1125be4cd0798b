# SPDX-License-Identifier: Apache-2.0
"""strata's backward rules: the training graph that C++ makes of a captured network, run operator by
operator in float64, gives autograd's gradients."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import backward_networks
import pytest
import torch
import torch.nn.functional as F
from backward_networks import NETWORKS
from captured import TRAINING_GRAPH, captured, differentiated
from graph_interpreter import Interpreter
from torch import Tensor, nn

NEAR = 1e-10  # relative, in float64


def drawn(
    module: nn.Module, shape: tuple[int, ...], batch: int
) -> tuple[nn.Module, Tensor, Tensor]:
    """The module with weights and statistics off 0 and 1, an input, labels."""
    generator = torch.Generator().manual_seed(batch)
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(
                    torch.rand(tensor.shape, generator=generator) + 0.5
                    if "running_var" in name
                    else 0.6 * torch.randn(tensor.shape, generator=generator)
                )
    x = torch.randn((batch, *shape), generator=generator)
    with torch.no_grad():
        classes = copy.deepcopy(module).train()(x).shape[1]
    return module.train(), x, torch.randint(0, classes, (batch,), generator=generator)


def autograd(
    module: nn.Module, x: Tensor, labels: Tensor, loss: str
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """In float64: the loss, gradients of trained parameters (None: no influence), buffers after the
    step."""
    module = copy.deepcopy(module).double()
    value = (F.nll_loss if loss == "nll" else F.cross_entropy)(module(x.double()), labels)
    value.backward()
    return (
        value.detach(),
        {name: p.grad for name, p in module.named_parameters() if p.grad is not None},
        dict(module.named_buffers()),
    )


def compare(
    runner: Interpreter,
    found: dict[str, Tensor],
    expected: tuple[Tensor, dict[str, Tensor], dict[str, Tensor]],
) -> None:
    loss, gradients, buffers = expected
    assert set(found) == {"loss"} | {f"grad:{name}" for name in gradients}
    assert abs(found["loss"] - loss) <= NEAR * abs(loss)
    for name, truth in gradients.items():
        assert (found[f"grad:{name}"] - truth).norm() <= NEAR * truth.norm() + 1e-14, name
    updates = runner.updates()
    for name, value in buffers.items():
        if name in updates:
            assert (
                updates[name].double() - value.double()
            ).abs().max() <= NEAR * value.double().abs().max(), name


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_autograd(name, batch, tmp_path):
    if name == "Norms" and batch == 1:
        pytest.skip("PyTorch refuses a BatchNorm over one value")
    loss = "nll" if batch == 5 else "cross_entropy"
    torch.manual_seed(3)
    module, x, labels = drawn(getattr(backward_networks, name)(), NETWORKS[name], batch)
    bundle = captured(module, {"arg0": x}, tmp_path / "bundle", labels)
    runner = Interpreter(differentiated(bundle, loss, tmp_path / "training"))
    with torch.no_grad():
        found = runner.run({"arg0": x, "labels": labels}, dropout=True)
    compare(runner, found, autograd(module, x, labels, loss))


def test_a_dropped_element_has_no_gradient_and_the_others_are_scaled(tmp_path, monkeypatch):
    module, x, labels = drawn(backward_networks.Dropouts(), (6,), 16)
    bundle = captured(module, {"arg0": x}, tmp_path / "bundle", labels)
    runner = Interpreter(differentiated(bundle, "cross_entropy", tmp_path / "training"))
    found = runner.run({"arg0": x, "labels": labels}, dropout=True)
    masks = [
        runner.values[node["outputs"][1]]
        for node in runner.graph["nodes"]
        if node["op"] == "aten.native_dropout.default"
    ]
    assert len(masks) == 2 and all(0 < mask.double().mean() < 1 for mask in masks)
    masks_left = iter(masks)
    monkeypatch.setattr(F, "dropout", lambda value, p: value * next(masks_left) / (1 - p))
    compare(runner, found, autograd(module, x, labels, "cross_entropy"))


def test_stochastic_depth_drops_whole_samples_or_the_batch(tmp_path, monkeypatch):
    module, x, labels = drawn(backward_networks.Depths(), (3, 5, 6), 16)
    bundle = captured(module, {"arg0": x}, tmp_path / "bundle", labels)
    runner = Interpreter(differentiated(bundle, "cross_entropy", tmp_path / "training"))
    found = runner.run({"arg0": x, "labels": labels}, dropout=True)
    masks = [
        runner.values[node["outputs"][1]]
        for node in runner.graph["nodes"]
        if node["op"] == "aten.native_dropout.default"
    ]
    assert [tuple(mask.shape) for mask in masks] == [(16, 1, 1, 1), (1, 1)] and 0 < masks[
        0
    ].double().mean() < 1
    masks_left = iter(masks)
    monkeypatch.setattr(
        sys.modules["torchvision.ops.stochastic_depth"],
        "stochastic_depth",
        lambda value, p, mode, training: value * next(masks_left) / (1 - p),
    )
    compare(runner, found, autograd(module, x, labels, "cross_entropy"))


def test_nothing_is_computed_for_what_needs_no_gradient(tmp_path):
    module, x, labels = drawn(backward_networks.Frozen(), NETWORKS["Frozen"], 2)
    folder = differentiated(
        captured(module, {"arg0": x}, tmp_path / "bundle", labels),
        "cross_entropy",
        tmp_path / "training",
    )
    graph = json.loads((folder / "graph.json").read_text())
    assert {one["name"] for one in graph["outputs"]} == {
        "loss",
        "grad:conv.weight",
        "grad:conv.bias",
        "grad:fc.bias",
    }
    backward = [
        node for node in graph["nodes"] if node["op"].split(".")[1] == "convolution_backward"
    ]
    assert [node["args"]["output_mask"] for node in backward] == [[False, True, True]] and len(
        backward[0]["outputs"]
    ) == 2
    assert not [
        node
        for node in graph["nodes"]
        if node["op"].split(".")[1]
        in (
            "max_pool2d_with_indices",
            "native_batch_norm_backward",
            "max_pool2d_with_indices_backward",
        )
    ]
    assert sum(node["op"].split(".")[1] == "threshold_backward" for node in graph["nodes"]) == 1


class Unknown(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cumsum(self.fc(x), 1)


def test_an_operation_without_a_rule_is_named_with_its_place(tmp_path):
    bundle = captured(
        Unknown(), {"arg0": torch.randn(2, 4)}, tmp_path / "bundle", torch.tensor([0, 2])
    )
    done = subprocess.run(
        [str(TRAINING_GRAPH), str(bundle), "nll", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        done.returncode == 1
        and "cumsum" in done.stderr
        and "no backward rule" in done.stderr
        and "test_backward.py:" in done.stderr
    )
    assert not (tmp_path / "out").exists()
