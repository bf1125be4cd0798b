# SPDX-License-Identifier: Apache-2.0
"""Networks that come as a file: each level that can read one computes what the file says, the
others say why not; damaged and foreign files are told apart."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from client import Failed, Worker, error, prepare
from conftest import capture
from envelopes import SETS, envelope, reference
from safetensors.numpy import load_file
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.case import resolve_inputs  # noqa: E402
from strata_sdk.models import ModelError, build_model  # noqa: E402


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


def network() -> Net:
    torch.manual_seed(7)
    net = Net()
    with torch.no_grad():  # as if it had been trained: nothing is 0 or 1
        net(torch.randn(16, 3, 12, 12))
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return net.eval()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """net.pt2, net.pt and net.onnx: one network in three kinds of file."""
    folder = tmp_path_factory.mktemp("files")
    net, example = network(), torch.randn(2, 3, 12, 12)
    program = torch.export.export(net, (example,))
    torch.export.save(program, str(folder / "net.pt2"))
    torch.jit.trace(net, example).save(str(folder / "net.pt"))
    torch.onnx.export(
        program, dynamo=True, verbose=False, input_names=["x"], output_names=["scores"]
    ).save(str(folder / "net.onnx"))
    return folder


@pytest.fixture(scope="module")
def bundle_of(files, tmp_path_factory):
    """bundle_of("pt2") -> the bundle of net.pt2."""
    written: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in written:
            place = tmp_path_factory.mktemp(kind)
            inputs = (
                [{"name": "", "dtype": "float32", "shape": [2, 3, 12, 12]}] if kind == "pt" else []
            )
            capture(
                place / "spec.json",
                place / "bundle",
                {"model": str(files / f"net.{kind}"), "inputs": inputs, "threads": 1},
            )
            written[kind] = place / "bundle"
        return written[kind]

    return get


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        *(
            ("pt2", level)
            for level in ("eager", "compile", "torchscript", "aoti", "onnxruntime", "openvino")
        ),
        ("pt", "eager"),
        ("pt", "torchscript"),
        ("onnx", "onnxruntime"),
        ("onnx", "openvino"),
    ],
)
def test_a_level_computes_what_the_file_says_with_every_weight_set(
    kind, level, bundle_of, tmp_path
):
    bundle = bundle_of(kind)
    assert prepare(level, bundle, tmp_path) == {"ok": True}
    with Worker(level, bundle, tmp_path, threads=1) as worker:
        worker.load()
        for weights in SETS:
            worker.ask("weights", weights=weights)
            outputs = worker.prove([0, 1])
            assert error(outputs, reference(bundle, weights)) <= 8 * envelope(bundle, weights), (
                weights
            )


@pytest.mark.parametrize(
    ("kind", "level", "word"),
    [
        ("pt", "compile", "TorchScript"),
        ("pt", "aoti", "TorchScript"),
        ("pt", "onnxruntime", "TorchScript"),
        ("onnx", "eager", "ONNX"),
        ("onnx", "compile", "ONNX"),
        ("onnx", "torchscript", "ONNX"),
        ("onnx", "aoti", "ONNX"),
    ],
)
def test_a_level_that_cannot_read_the_file_is_unsupported_and_says_why(
    kind, level, word, bundle_of, tmp_path
):
    answer = prepare(level, bundle_of(kind), tmp_path)
    if answer["ok"]:  # a level that prepares nothing says it when it loads
        with (
            Worker(level, bundle_of(kind), tmp_path, threads=1) as worker,
            pytest.raises(Failed) as failed,
        ):
            worker.load()
        answer = {"code": failed.value.code, "what": failed.value.what}
    assert answer["code"] == "unsupported" and word in answer["what"]


@pytest.mark.parametrize("kind", ["pt2", "pt", "onnx"])
def test_the_bundle_holds_the_files_own_weights_and_the_numbers_of_the_network_in_float64(
    kind, bundle_of
):
    bundle = bundle_of(kind)
    about = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert (
        about["model"]["kind"] == {"pt2": "pt2", "pt": "torchscript", "onnx": "onnx"}[kind]
        and about["model"]["name"] == f"net.{kind}"
    )
    assert about["weight_source"].startswith("the file's own (net.") and about["case"][
        "weights_label"
    ].startswith(f"net.{kind}:")
    assert about["reference"] == "float64", about["reference_note"]
    from safetensors.torch import load_file

    ring, truth, net = (
        load_file(bundle / "inputs.safetensors"),
        load_file(bundle / "reference" / "timed.safetensors"),
        network().double(),
    )
    name, output = about["inputs"][0]["name"], about["outputs"][0]["name"]
    for i in range(4):
        with torch.no_grad():
            right = net(ring[f"{i}/{name}"].double())
        # an ONNX file may hold weights that were folded together in float32
        assert torch.allclose(
            truth[f"f64/{i}/{output}"],
            right,
            rtol=1e-5 if kind == "onnx" else 1e-9,
            atol=1e-6 if kind == "onnx" else 1e-9,
        )


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def rewritten(source: Path, target: Path, change) -> Path:
    """A copy of an archive, `change(name, content)` applied to each member; None leaves a member
    out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target


def make_damaged(kind: str, files: Path, folder: Path) -> Path:
    """A file that is wrong in one way."""
    path = folder / (
        "net.pt2" if kind.startswith("pt2") else "net.onnx" if kind.startswith("onnx") else "net.pt"
    )
    whole = (files / path.name).read_bytes()
    if kind.endswith("truncated"):
        path.write_bytes(whole[: len(whole) * 2 // 3])
    elif kind.endswith("foreign"):
        path.write_bytes(b"this is no network\n" * 100)
    elif kind.endswith("empty"):
        path.write_bytes(b"")
    elif kind == "pt2 of another PyTorch":

        def older(name, content):
            if "/models/" in name and name.endswith(".json"):
                about = json.loads(content)
                about["torch_version"], about["schema_version"] = "1.99.0", {"major": 1, "minor": 1}
                return json.dumps(about)
            return content

        rewritten(files / "net.pt2", path, older)
    elif kind == "pt2 AOTInductor package":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("net/data/aotinductor/model/model.so", b"")
    elif kind == "pt state dict":
        torch.save(network().state_dict(), str(path))
    elif kind == "pt whole pickle":
        torch.save({"bomb": Bomb(folder / "exploded")}, str(path))
    elif kind == "pt2 pickled weights":
        buffer = io.BytesIO()
        torch.save({"bomb": Bomb(folder / "exploded")}, buffer)
        rewritten(
            files / "net.pt2",
            path,
            lambda name, content: buffer.getvalue() if "sample_inputs" in name else content,
        )
    return path


@pytest.mark.parametrize(
    ("kind", "what", "hint"),
    [
        ("pt2 truncated", "no torch.export file, or not all of it", "torch.export.save"),
        ("pt2 foreign", "no torch.export file", "torch.export.save"),
        ("pt2 empty", "no torch.export file", "torch.export.save"),
        (
            "pt2 of another PyTorch",
            r"was written by PyTorch 1\.99\.0, and PyTorch .* cannot read it",
            "export it again",
        ),
        ("pt2 AOTInductor package", "AOTInductor package", "torch.export.save"),
        ("pt2 pickled weights", "cannot be read as an exported program", ""),
        ("pt truncated", "no TorchScript archive, or not all of it", "torch.jit.save"),
        ("pt foreign", "no TorchScript archive", "torch.jit.save"),
        ("pt state dict", "pickle of torch.save, no TorchScript archive", "--weights"),
        ("pt whole pickle", "pickle of torch.save, no TorchScript archive", "file.py:build"),
        ("onnx truncated", "no ONNX file", "export or download it again"),
        ("onnx foreign", "no ONNX file", "export or download it again"),
        ("onnx empty", "no ONNX file", "export or download it again"),
    ],
)
def test_a_file_that_is_damaged_foreign_or_dangerous_is_refused_with_what_it_is(
    kind, what, hint, files, tmp_path
):
    with pytest.raises(ModelError) as raised:
        build_model(str(make_damaged(kind, files, tmp_path)))
    assert raised.value.code == "usage"
    assert re.search(what, raised.value.what), raised.value.what
    assert hint in raised.value.hint
    assert not (tmp_path / "exploded").exists()


def test_the_bomb_of_these_tests_does_explode_where_pickles_are_run(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("kind", ["pt2", "pt", "onnx"])
def test_a_file_is_not_trained(kind, files):
    with pytest.raises(ModelError) as raised:
        resolve_inputs(
            {"mode": "train", "inputs": [], "batch": None}, build_model(str(files / f"net.{kind}"))
        )
    assert raised.value.code == "unsupported" and "file.py:build" in raised.value.hint


def test_an_exported_program_refuses_another_batch_than_its_own(files):
    module = build_model(str(files / "net.pt2")).module
    with torch.no_grad():
        assert module(torch.zeros(2, 3, 12, 12)).shape == (2, 5)
        with pytest.raises(Exception, match=r"shape|size|[Gg]uard"):
            module(torch.zeros(3, 3, 12, 12))


def test_an_onnx_network_is_changed_by_its_weights_and_copied_whole(files):
    import copy

    module = build_model(str(files / "net.onnx")).module
    x = torch.randn(2, 3, 12, 12)
    with torch.no_grad():
        before = module(x=x)["scores"]
        twin = copy.deepcopy(module)
        for parameter in twin.parameters():
            parameter.mul_(1.5)
        assert not torch.allclose(twin(x=x)["scores"], before)
        assert np.array_equal(module(x=x)["scores"].numpy(), before.numpy())
        assert torch.allclose(
            copy.deepcopy(module).double()(x=x.double())["scores"].float(),
            before,
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize("kind", ["pt2", "pt", "onnx"])
def test_faults_are_planted_in_the_graph_of_a_file_and_seen(kind, bundle_of):
    bundle = bundle_of(kind)
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["faults"] == ["activation_left_out", "bias_left_out"], info["fault_sentences"]
    faults = load_file(bundle / "reference" / "faults.safetensors")
    for name in info["faults"]:
        planted = {k.split("/", 1)[1]: v for k, v in faults.items() if k.startswith(name)}
        shown = error(planted, reference(bundle, "generic1"))
        assert shown > 80 * envelope(bundle, "generic1"), name


def test_an_onnx_graph_of_other_operations_has_a_result_left_out(tmp_path):
    from onnx import TensorProto, helper, save

    nodes = [
        helper.make_node("Abs", ["x"], ["sizes"]),
        helper.make_node("Sqrt", ["sizes"], ["roots"]),
        helper.make_node("Sin", ["roots"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 8]) for n in "xy")
    opset = [helper.make_opsetid("", 17)]
    graph = helper.make_graph(nodes, "waves", [x], [y])
    save(helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "waves.onnx")
    model = {"model": str(tmp_path / "waves.onnx"), "threads": 1}
    capture(tmp_path / "spec.json", tmp_path / "bundle", model)
    info = json.loads((tmp_path / "bundle" / "bundle.json").read_text(encoding="utf-8"))
    assert info["fault_sentences"] == [
        "result_left_out: the result of Sqrt left out, 2 of 3 such operations"
    ]
