# SPDX-License-Identifier: Apache-2.0
"""Losses beside those of labels: part of the captured network, with targets among its inputs, equal
at every level that trains, and refused where they are none."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import pytest
import torch
from captured import captured, differentiated, refused
from client import ROOT, Failed, Worker, prepare
from graph_interpreter import Interpreter
from level_builds import STATIC
from loss_networks import every_loss, inputs_of_every_loss
from safetensors.torch import load_file

from training import about, probe, times_bound

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture, whole  # noqa: E402

NETWORKS = Path(__file__).with_name("loss_networks.py")
NEAR = 1e-10  # relative, in float64
LEVELS = [
    "eager",
    "compile",
    "libtorch",
    "onednn",
    pytest.param("static", marks=pytest.mark.skipif(not STATIC, reason="static is not built")),
]


def spec(build: str, loss: str | None, **fields) -> dict:
    if loss and loss.startswith(":"):
        loss = f"{NETWORKS}{loss}"
    return whole({"model": f"{NETWORKS}:{build}", "mode": "train", "loss": loss} | fields)


@pytest.fixture(scope="module")
def bundle_of(tmp_path_factory):
    """bundle_of(build, loss): its captured bundle, made once."""
    made: dict[tuple, Path] = {}

    def get(build: str, loss: str | None = None) -> Path:
        if (build, loss) not in made:
            made[build, loss] = tmp_path_factory.mktemp("loss") / "bundle"
            capture(spec(build, loss), made[build, loss], lambda _text: None)
        return made[build, loss]

    return get


def test_every_loss_in_a_graph_has_autograds_gradients(tmp_path):
    module, inputs = every_loss()
    bundle = captured(module, inputs, tmp_path / "bundle", gives_loss=True)
    runner = Interpreter(differentiated(bundle, "output", tmp_path / "training"))
    entry = inputs_of_every_loss(5)
    with torch.no_grad():
        found = runner.run(entry)
    wide = copy.deepcopy(module).double()
    loss = wide(*[v.double() if v.is_floating_point() else v for v in entry.values()])["loss"]
    loss.backward()
    assert abs(found["loss"] - loss) <= NEAR * abs(loss)
    for name, parameter in wide.named_parameters():
        assert (found[f"grad:{name}"] - parameter.grad).norm() <= NEAR * parameter.grad.norm(), name


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_takes_the_step_of_a_network_that_gives_its_loss(name, bundle_of, tmp_path):
    bundle = bundle_of("every_loss")
    assert prepare(name, bundle, tmp_path) == {"ok": True}
    with Worker(name, bundle, tmp_path, threads=1) as worker:
        worker.load("probe1")
        for weights in ("probe1", "probe2"):
            assert max(times_bound(probe(worker, weights), bundle, weights).values()) <= 1
        losses = worker.prove([1, 2, 3])
        assert len({float(value) for value in losses.values()}) == 3, "inputs are not read"
        with pytest.raises(Failed, match=r"is its loss|training needs"):
            worker.ask("set_labels", path=str(bundle / "inputs.safetensors"))


@pytest.mark.parametrize("name", ["eager", "compile", "libtorch", "onednn"])
def test_a_level_takes_the_step_of_a_network_with_a_loss_of_a_file(name, bundle_of, tmp_path):
    bundle = bundle_of("rows_with_targets", ":Weighted")
    assert prepare(name, bundle, tmp_path) == {"ok": True}
    with Worker(name, bundle, tmp_path, threads=1) as worker:
        worker.load("probe1")
        found = probe(worker, "probe1")
        assert "grad:loss.scale" in found
        assert max(times_bound(found, bundle, "probe1").values()) <= 1


def test_in_amp_bf16_the_loss_is_proven_at_its_own_precision(bundle_of, tmp_path):
    strict, folder = bundle_of("rows", "mse"), tmp_path / "bundle"
    asked = spec("rows", "mse", precision="amp-bf16")
    capture(asked, folder, lambda _text: None, strict=strict)
    for name in ["eager", *(["static"] if STATIC else [])]:
        assert prepare(name, folder, tmp_path / name) == {"ok": True}
        with Worker(name, folder, tmp_path / name, threads=1) as worker:
            worker.load("probe1")
            found = probe(worker, "probe1")
            assert max(times_bound(found, folder, "probe1", "amp-bf16").values()) <= 1


def test_in_inference_there_are_no_targets(tmp_path):
    asked = spec("rows_with_targets", None) | {"mode": "infer"}
    info = capture(asked, tmp_path / "bundle", lambda _text: None)
    assert [i["name"] for i in info["inputs"]] == ["x"]


def test_torchscript_trains_a_forward_that_returns_its_loss_and_refuses_others(bundle_of, tmp_path):
    own, other = bundle_of("labelled", "output"), bundle_of("rows", "mse")
    assert prepare("torchscript", own, tmp_path) == {"ok": True}
    with Worker("torchscript", own, tmp_path, threads=1) as worker:
        worker.load("probe1")
        assert max(times_bound(probe(worker, "probe1"), own, "probe1").values()) <= 1
    assert "not the module with its loss" in prepare("torchscript", other, tmp_path)["what"]


@pytest.mark.parametrize(
    ("build", "loss", "targets"),
    [
        ("rows", "mse", [("target", "float32", [3, 3])]),
        ("rows", "bce_with_logits", [("target", "float32", [3, 3])]),
        ("sequences", "cross_entropy", [("target", "int64", [2, 5])]),
        ("images", "cross_entropy", [("target", "int64", [2, 6, 6])]),
        ("labelled", "output", [("labels", "int64", [3])]),
        ("rows_with_targets", None, [("target", "float32", [3, 3])]),
        ("rows_with_targets", "smooth_l1", [("target", "float32", [3, 3])]),
        (
            "rows_with_targets",
            ":masked",
            [("target", "float32", [3, 3]), ("mask", "float32", [3, 1])],
        ),
        ("rows_with_targets", ":criterion", [("target", "float32", [3, 3])]),
        ("rows_with_targets", ":Weighted", [("target", "float32", [3, 3])]),
        ("every_loss", None, []),
    ],
)
def test_targets_are_inputs_of_the_captured_network(build, loss, targets, bundle_of):
    bundle = bundle_of(build, loss)
    info = json.loads((bundle / "bundle.json").read_text())
    found = [(i["name"], i["dtype"], i["shape"]) for i in info["inputs"]]
    assert found[len(found) - len(targets) :] == targets
    assert [o["name"] for o in info["outputs"]] == ["loss"] and info["graph"]["ok"]
    assert not (bundle / "labels.safetensors").exists()
    faults = about(bundle)["faults"]
    assert ("targets_moved" in faults) == (bool(targets) and loss != "output")
    assert all(fault["times_bound"] > 10 for fault in faults.values()), faults
    with_scale = {f"grad:{'loss.scale'}"} if loss == ":Weighted" else set()
    names = load_file(bundle / "reference" / "probe1.train.safetensors")
    assert with_scale <= {name.removeprefix("0/") for name in names}


@pytest.mark.parametrize(
    ("name", "target"), [("tagger", "tags"), ("segmentation", "target")], ids=str
)
def test_the_examples_are_captured_with_their_losses(name, target, tmp_path):
    file = ROOT / "examples" / f"{name}.py"
    asked = whole(
        {"model": f"{file}:build", "mode": "train", "loss": f"{file}:loss", "light": True}
    )
    info = capture(asked, tmp_path / "bundle", lambda _text: None)
    assert info["graph"]["ok"] and info["inputs"][-1]["name"] == target
    assert differentiated(tmp_path / "bundle", "output", tmp_path / "training").exists()


def test_shares_are_drawn_from_0_to_1_and_classes_within_the_scores(bundle_of):
    shares = load_file(bundle_of("rows", "bce_with_logits") / "inputs.safetensors")
    assert all(0 <= v.min() and v.max() <= 1 for k, v in shares.items() if "target" in k)
    classes = load_file(bundle_of("images", "cross_entropy") / "inputs.safetensors")
    drawn = torch.cat([v.flatten() for k, v in classes.items() if "target" in k])
    assert set(drawn.tolist()) == {0, 1, 2, 3}


def test_inputs_of_the_command_line_are_targets_by_their_names(tmp_path):
    def given(name: str, shape: list[int], **more) -> dict:
        about = {"name": name, "dtype": "float32", "keyword": bool(name), "shape": shape}
        return about | {"low": None, "high": None} | more

    asked = spec("rows", ":masked") | {
        "inputs": [
            given("x", [2, 6]),
            given("target", [2, 3], low=3.0, high=4.0),
            given("mask", [2, 1], low=1.0, high=1.0),
        ]
    }
    info = capture(asked, tmp_path / "bundle", lambda _text: None)
    assert [i["name"] for i in info["inputs"]] == ["x", "target", "mask"]
    assert load_file(tmp_path / "bundle" / "inputs.safetensors")["0/target"].min() >= 3


@pytest.mark.parametrize(
    ("build", "loss", "words"),
    [
        ("rows", ":masked", "takes 'target', which is neither a target nor an input"),
        ("rows_with_targets", ":of_each", "gives float32 [3, 3]"),
        ("rows_with_targets", ":raises", "loss_networks.py:"),
        ("rows", ":nothing", "takes no arguments"),
        ("rows", ":missing", "no function 'missing'"),
        ("rows", ":Needy", "loss_networks.py:Needy() raised TypeError"),
        ("rows", "hinge", "the loss 'hinge' is not known"),
        ("rows", "output", "gives float32 [3, 3]"),
        ("sequences", None, "mode train needs a network whose first output is [2, classes]"),
    ],
)
def test_what_is_no_loss_is_refused_with_its_place(build, loss, words, tmp_path):
    problem = refused(spec(build, loss), tmp_path)
    assert words in str(problem) and problem.hint, (str(problem), problem.hint)


def test_a_cached_capture_is_read_from_the_file_of_the_loss(bundle_of, tmp_path):
    asked = spec("rows", ":criterion") | {"model": "mnist_convnet", "loss": f"{NETWORKS}:shipped"}
    info = capture(asked, tmp_path / "bundle", lambda _text: None)
    assert str(NETWORKS) in {entry["path"] for entry in info["read"]}
