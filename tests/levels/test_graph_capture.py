# SPDX-License-Identifier: Apache-2.0
"""graph.json computes what the network computes: run operator by operator from the files alone, it
gives the bundle's float64 references, in inference and in training."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from graph_interpreter import Interpreter
from safetensors.torch import load_file
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.export import export  # noqa: E402
from capture.graph import write_graph  # noqa: E402
from strata_sdk.losses import OF_LABELS  # noqa: E402


def entry(bundle: Path, index: int) -> dict[str, Tensor]:
    return {
        k.partition("/")[2]: v
        for k, v in load_file(bundle / "inputs.safetensors").items()
        if k.startswith(f"{index}/")
    }


def about(bundle: Path) -> dict:
    return json.loads((bundle / "bundle.json").read_text())


def operations(graph: dict) -> list[str]:
    return [node["op"].split(".")[1] for node in graph["nodes"]]


@pytest.mark.parametrize("name", ["resnet18", "mnist", "keywords", "in_place"])
@pytest.mark.parametrize("weights", ["timed", "generic1"])
def test_the_graph_gives_the_references_of_inference(bundles, name, weights):
    bundle = bundles(name)
    assert about(bundle)["graph"] == {"ok": True, "what": "", "where": ""}
    expected = load_file(bundle / "reference" / f"{weights}.safetensors")
    runner = Interpreter(bundle, weights)
    assert runner.graph["mode"] == "infer" and not runner.graph["updates"]
    assert [o["name"] for o in runner.graph["outputs"]] == [
        o["name"] for o in about(bundle)["outputs"]
    ]
    assert [i["name"] for i in runner.graph["inputs"]] == [
        i["name"] for i in about(bundle)["inputs"]
    ]
    for index in range(2):
        for key, value in runner.run(entry(bundle, index)).items():
            truth = expected[f"f64/{index}/{key}"]
            assert (value - truth).abs().max() <= 1e-9 * truth.abs().max(), key


@pytest.mark.parametrize("name", ["train_tiny", "train_mnist"])
@pytest.mark.parametrize("weights", ["timed", "probe1"])
def test_the_training_graph_gives_loss_gradients_and_statistics(bundles, name, weights):
    bundle = bundles(name)
    assert about(bundle)["graph"]["ok"] and not (bundle / "model.pt2").exists()
    runner = Interpreter(bundle, weights, trained=True)
    outputs = runner.run(entry(bundle, 0))
    loss = OF_LABELS[about(bundle)["case"]["loss"]](
        next(iter(outputs.values())), load_file(bundle / "labels.safetensors")["0/labels"]
    )
    loss.backward()
    found = (
        {"loss": loss.detach()}
        | {f"grad:{k}": p.grad for k, p in runner.parameters.items()}
        | {f"stat:{k}": v for k, v in runner.updates().items() if v.is_floating_point()}
    )
    expected = {
        k.removeprefix("0/"): v.double()
        for k, v in load_file(bundle / "reference" / f"{weights}.train.safetensors").items()
        if k.startswith("0/")
    }
    assert set(found) == set(expected)
    for key, truth in expected.items():  # stored as float32
        assert (found[key] - truth).norm() <= 1e-6 * truth.norm() + 1e-12, key


def test_a_training_graph_counts_batches_and_drops_out(bundles):
    bundle = bundles("train_tiny")
    runner = Interpreter(bundle, trained=True)
    first = runner.run(entry(bundle, 0), dropout=True)["output"]
    assert not torch.equal(first, runner.run(entry(bundle, 0), dropout=True)["output"])
    counts = {k: v for k, v in runner.updates().items() if k.endswith("num_batches_tracked")}
    stored = load_file(bundle / "weights" / "timed.safetensors")
    assert len(counts) == 3 and all(v == stored[k] + 1 for k, v in counts.items())
    dropout = next(node for node in runner.graph["nodes"] if node["op"] == "aten.dropout.default")
    assert (
        dropout["args"]["p"] == 0.3
        and dropout["args"]["train"] is True
        and dropout["module"] == "6"
    )


def test_operations_stay_whole_and_name_their_place(bundles):
    graph = json.loads((bundles("resnet18") / "graph.json").read_text())
    assert set(operations(graph)) == {
        "conv2d",
        "batch_norm",
        "relu",
        "max_pool2d",
        "add",
        "adaptive_avg_pool2d",
        "flatten",
        "linear",
    }
    assert operations(graph).count("batch_norm") == 20
    block = next(node for node in graph["nodes"] if node["module"] == "layer2.0.downsample.0")
    assert (
        block["op"] == "aten.conv2d.default"
        and block["module_type"] == "Conv2d"
        and block["source"].startswith("resnet.py:")
    )
    assert block["args"] | {"input": 0, "weight": 0} == {
        "input": 0,
        "weight": 0,
        "bias": None,
        "stride": [2, 2],
        "padding": [0, 0],
        "dilation": [1, 1],
        "groups": 1,
    }
    numbers = {one["value"]: one["name"] for one in graph["parameters"]}
    assert numbers[block["args"]["weight"]["value"]] == "layer2.0.downsample.0.weight"


def test_a_network_that_does_not_export_has_a_bundle_without_a_graph(bundles):
    bundle = bundles("branching")
    assert not (bundle / "graph.json").exists()
    answer = about(bundle)["graph"]
    assert not answer["ok"] and answer["what"] and "networks.py" in answer["where"]


# ------------------------------------------------------------------- networks that write in place


class Views(nn.Module):
    """Writes through a view of a tensor that is read afterwards."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y[:, 0].relu_()
        return y + 1


class Siblings(nn.Module):
    """Changes a tensor that is read afterwards through a view which is no slice."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        seen = y.view(2, 3)
        y.relu_()
        return seen + 1


class Biased(nn.Module):
    """Clears a part of a copy of a parameter; what swin transformers of the second kind do."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias.clone()
        bias[1:].zero_()
        y = x.swapaxes(0, 1) + bias[:, None]
        y[:, 0] = x[0] * 2
        return y


class Masked(nn.Module):
    """A mask made from nothing but numbers, in place; what swin transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 3.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        mask = x.new_zeros(x.shape[-1])
        mask[1:].fill_(float("-inf"))
        return (x + mask).softmax(-1) * self.scale


class Chained(nn.Module):
    """In place on results of in-place operations, with the first seen again under another name."""

    def forward(self, x: Tensor) -> Tensor:
        a = x + 1
        b = a
        a.mul_(2).relu_()
        b.clamp_(0, 3)
        return torch.cat([a, b.flatten(1).add_(1)], 1)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x + self.calls


class Detached(nn.Module):
    """Scaled by its own input, or by its own result, through which no gradient shall flow."""

    def __init__(self, result: bool) -> None:
        super().__init__()
        self.layer, self.result = nn.Linear(2, 2), result

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return y * (y if self.result else x).detach()


def captured(module: nn.Module, x: Tensor, folder: Path, mode: str = "infer") -> tuple[dict, Path]:
    from safetensors.torch import save_file

    info = {"inputs": [{"name": "arg0", "keyword": False}], "outputs": [{"name": "output"}]}
    program, answer = export(module.train(mode == "train"), {"arg0": x}, info)
    assert program is not None, answer
    (folder / "weights").mkdir(parents=True)
    save_file(
        {k: v.contiguous() for k, v in module.state_dict().items()},
        folder / "weights" / "timed.safetensors",
    )
    return write_graph(
        program,
        module,
        mode,
        ["output"],
        ["arg0"],
        folder,
        lambda name, tensors: save_file(tensors, folder / f"{name}.safetensors"),
    ), folder


@pytest.mark.parametrize("network", [Views, Siblings, Biased, Masked, Chained])
def test_in_place_operations_become_functional(network, tmp_path):
    x = torch.randn(3, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float32)
    answer, folder = captured(network(), x, tmp_path / "bundle")
    assert answer["ok"], answer
    runner = Interpreter(folder)
    assert not [op for op in operations(runner.graph) if op.endswith("_")]
    assert torch.allclose(
        runner.run({"arg0": x})["output"], network()(x.clone()).double(), rtol=1e-6, atol=1e-7
    )


def test_a_slice_that_is_written_is_put_back_into_the_whole(tmp_path):
    _, folder = captured(Biased(), torch.ones(3, 2), tmp_path / "bundle")
    graph = json.loads((folder / "graph.json").read_text())
    assert operations(graph) == [
        "slice_scatter",
        "transpose",
        "unsqueeze",
        "add",
        "select",
        "mul",
        "select_scatter",
    ]


def test_what_depends_on_nothing_is_computed_once(tmp_path):
    _, folder = captured(Masked(), torch.ones(3, 2), tmp_path / "bundle")
    graph = json.loads((folder / "graph.json").read_text())
    assert operations(graph) == ["add", "softmax", "mul"]
    constants = load_file(folder / "graph_constants.safetensors")
    assert constants["scale"].tolist() == [1.0, 3.0]
    assert (
        sorted(one["name"] for one in graph["constants"]) == sorted(constants)
        and len(constants) == 2
    )


def test_a_network_that_changes_a_buffer_in_eval_mode_has_no_graph(tmp_path):
    answer, folder = captured(Counting(), torch.ones(3, 2), tmp_path / "bundle")
    assert (
        not answer["ok"]
        and answer["what"] == "no graph: the network changes its buffer 'calls' in eval mode"
    )
    assert not (folder / "graph.json").exists()


def test_a_training_graph_says_where_the_network_stops_a_gradient(tmp_path):
    x = torch.ones(3, 2)

    def operations(name: str, result: bool, mode: str) -> list[str]:
        answer, folder = captured(Detached(result=result), x, tmp_path / name, mode)
        assert answer["ok"], answer
        graph = json.loads((folder / "graph.json").read_text())
        return [node["op"] for node in graph["nodes"]]

    assert "aten.detach.default" in operations("result", True, "train")
    assert "aten.detach.default" not in operations("inferred", True, "infer")
    # an input gets no gradient anyway
    assert "aten.detach.default" not in operations("input", False, "train")


# --------------------------------------------------------------- in place by an index, and by bits


def put(y: Tensor, x: Tensor) -> None:
    y[:, [0, 1]] = x[:, [1, 0]]


BY_INDEX = {
    "index_put": put,
    "index_add": lambda y, x: y.index_add_(0, torch.tensor([0, 2]), x[:2]),
    "index_copy": lambda y, x: y.index_copy_(0, torch.tensor([0, 2]), x[:2]),
    "scatter": lambda y, x: y.scatter_(1, torch.tensor([[0, 1], [1, 0], [1, 1]])[:, :1], x),
    "scatter_add": lambda y, x: y.scatter_add_(1, torch.tensor([[0, 1], [1, 0], [0, 0]]), x),
    "index_fill": lambda y, x: y.index_fill_(1, torch.tensor([1]), 3.0),
    "masked_fill": lambda y, x: y.masked_fill_(x > 0, 3.0),
}


class ByIndex(nn.Module):
    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        self.change(y, x)
        return y + 1


@pytest.mark.parametrize("operation", BY_INDEX)
def test_what_is_written_by_an_index_becomes_functional(operation, tmp_path):
    x = torch.randn(3, 2, generator=torch.Generator().manual_seed(1))
    network = ByIndex(BY_INDEX[operation])
    answer, folder = captured(network, x, tmp_path / "bundle")
    assert answer["ok"], answer
    runner = Interpreter(folder)
    assert operation in operations(runner.graph)
    assert torch.allclose(runner.run({"arg0": x})["output"], network(x.clone()).double())


def test_what_keeps_another_type_than_its_functional_form_gives_is_refused(tmp_path):
    """lt_ keeps float32, lt gives bool; int.add_(float) does not, and PyTorch refuses it."""
    answer, _ = captured(ByIndex(lambda y, x: y.lt_(x)), torch.ones(3, 2), tmp_path / "bundle")
    assert not answer["ok"] and "keeps torch.float32" in answer["what"], answer
    assert "gives torch.bool" in answer["what"] and "test_graph_capture.py" in answer["where"]


class Bits(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        whole = (x * 100).long()
        y = (whole & 12) | (whole ^ whole.T.contiguous().T)
        y = (y << 2) >> torch.ones_like(y)
        y &= whole | 1
        y |= 8
        y ^= whole
        y <<= 1
        y >>= whole & 1
        return (y > 3) & (x < 1) | (x > 2) ^ (x > 0.5)


def test_operators_on_bits_have_the_names_that_every_level_knows(tmp_path):
    x = torch.rand(3, 2, generator=torch.Generator().manual_seed(1))
    answer, folder = captured(Bits(), x, tmp_path / "bundle")
    assert answer["ok"], answer
    runner = Interpreter(folder)
    assert {op for op in operations(runner.graph) if "bitwise" in op} >= {
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
    }
    assert not [op for op in operations(runner.graph) if op.startswith("__")]
    assert torch.equal(runner.run({"arg0": x})["output"], Bits()(x))


class Bags(nn.Module):
    def __init__(self, mode: str, **options) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(5, 4, mode=mode, **options)

    def forward(self, x: Tensor) -> Tensor:
        places = (x * 3).long() % 5
        in_one_row = places.reshape(-1), torch.arange(0, 12, 2)
        return torch.cat([self.table(places), self.table(*in_one_row)[:3]])


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_size_are_a_lookup_and_a_sum(mode, tmp_path):
    network, x = Bags(mode), torch.rand(3, 4, generator=torch.Generator().manual_seed(1))
    answer, folder = captured(network, x, tmp_path / "bundle")
    assert answer["ok"], answer
    runner = Interpreter(folder)
    assert operations(runner.graph).count("embedding") == 2
    assert "embedding_bag" not in operations(runner.graph)
    assert torch.allclose(runner.run({"arg0": x})["output"], network(x).double(), rtol=1e-6)


@pytest.mark.parametrize("options", [{"mode": "max"}, {"mode": "sum", "padding_idx": 2}])
def test_bags_that_add_up_otherwise_stay_what_they_are(options, tmp_path):
    answer, folder = captured(Bags(**options), torch.rand(3, 4), tmp_path / "bundle")
    assert answer["ok"], answer
    assert operations(json.loads((folder / "graph.json").read_text())).count("embedding_bag") == 2


class Spectrum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.rfft(x).abs()


def test_complex_values_are_refused_with_module_and_line(tmp_path):
    network = nn.Sequential(nn.Identity(), Spectrum())
    answer, _ = captured(network, torch.ones(3, 2), tmp_path / "bundle")
    assert not answer["ok"] and "in 1 (Spectrum) has the type complex64" in answer["what"], answer
    assert "test_graph_capture.py" in answer["where"]
