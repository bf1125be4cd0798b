# SPDX-License-Identifier: Apache-2.0
"""The capture of mode train: what the folder holds, probe weights that stay off the kinks, the
power of the planted faults, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from client import NO_CUDA_DEVICE
from safetensors.torch import load_file
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture  # noqa: E402

from capture.errors import Problem  # noqa: E402
from capture.smooth_weights import MARGIN, SAME, TIE, make_probe  # noqa: E402
from capture.train import WIDEST  # noqa: E402
from capture.train_faults import names_of  # noqa: E402
from capture.training_step import LEAST  # noqa: E402
from strata_sdk.models import build_model, call, example_inputs, read_bundle  # noqa: E402
from strata_sdk.optimiser import DEFAULT  # noqa: E402
from strata_sdk.torch_training import Dropouts  # noqa: E402

TINY = Path(__file__).with_name("tiny.py")
SETS = ("timed", "probe1", "probe2")


@pytest.fixture(params=["train_tiny", "train_mnist"])
def folder(request, bundles) -> Path:
    return bundles(request.param)


def train_json(folder: Path) -> dict:
    return json.loads((folder / "reference" / "train.json").read_text(encoding="utf-8"))


def test_the_folder_holds_what_the_document_says(folder):
    bundle = read_bundle(folder)
    assert bundle["case"]["optimiser"] == DEFAULT and bundle["case"]["loss"] == (
        "nll" if bundle["case"]["model"] == "mnist_convnet" else "cross_entropy"
    )
    assert bundle["case"]["mode"] == "train" and bundle["case"]["batch"] == 4
    labels = load_file(folder / "labels.safetensors")
    assert sorted(labels) == [f"{i}/labels" for i in range(bundle["ring"])]
    assert all(
        v.dtype == torch.int64 and v.shape == (4,) and 0 <= v.min() and v.max() < 10
        for v in labels.values()
    )
    module = build_model(bundle["case"]["model"]).module
    assert {p.stem for p in (folder / "weights").iterdir()} == set(SETS)
    for name in SETS:
        about, tensors = (
            train_json(folder)[name],
            load_file(folder / "reference" / f"{name}.train.safetensors"),
        )
        names = {"0/loss"} | {
            f"0/{kind}:{k}" for kind in ("grad", "stat") for k in about["envelope"][kind]
        }
        names |= {f"{i}/loss" for i in range(1, bundle["ring"])} if name == "probe1" else set()
        assert set(tensors) == names and all(v.dtype == torch.float32 for v in tensors.values())
        assert set(about["envelope"]["grad"]) == {n for n, _ in module.named_parameters()}
        assert set(about["envelope"]["stat"]) == {
            n for n, _ in module.named_buffers() if "running_" in n
        }
        gradients = torch.cat([v.double().reshape(-1) for k, v in tensors.items() if "grad:" in k])
        assert about["grad_floor"] == pytest.approx(
            gradients.square().mean().sqrt().item(), rel=1e-5
        )
        assert set(load_file(folder / "weights" / f"{name}.safetensors")) == set(
            module.state_dict()
        )


def test_envelopes_are_those_of_rounding(folder):
    about = train_json(folder)
    for name in SETS:
        envelope = about[name]["envelope"]
        assert all(LEAST <= e <= 1e-4 for e in [envelope["loss"], *envelope["stat"].values()]), name
        assert all(
            LEAST <= e <= (0.1 if name == "timed" else WIDEST) for e in envelope["grad"].values()
        ), name


def test_no_maximum_of_a_probe_can_flip_by_rounding(bundles):
    # it has a max pooling, whose nearest values a float32 step would exchange
    about = train_json(bundles("train_mnist"))
    assert all(
        max(about[name]["envelope"]["grad"].values()) < 2e-5 for name in ("probe1", "probe2")
    )


def test_every_fault_that_applies_reaches_ten_bounds_and_nothing_is_weak(folder):
    about = train_json(folder)
    without_batch_norm = {"bn_eval", "bn_biased_variance", "shortcut_backward"}
    assert set(names_of(labelled=True)) - set(about["faults"]) == (
        without_batch_norm if "mnist" in folder.parent.name else set()
    )
    assert all(
        fault["times_bound"] >= 10 and fault["sentence"] for fault in about["faults"].values()
    )
    assert about["weak"] == ""


def test_dropout_is_listed_with_eager_s_losses(folder):
    module = build_model(read_bundle(folder)["case"]["model"]).module
    about = train_json(folder)["dropout"]
    assert [{"name": one["name"], "p": one["p"]} for one in about["layers"]] == [
        {"name": n, "p": m.p} for n, m in module.named_modules() if isinstance(m, nn.Dropout)
    ]
    # the error in p that would be found
    assert all(0 < one["visible"] < 0.1 and one["watched"] for one in about["layers"])
    assert len(about["losses"]) == 64 and len(set(about["losses"])) > 32


def relu_inputs(folder: Path, weights: str) -> list[torch.Tensor]:
    """What enters each ReLU in train mode without dropout, on input 0, in order of execution,
    [samples, channels, ...]."""
    bundle = read_bundle(folder)
    module = build_model(bundle["case"]["model"]).module
    module.load_state_dict(load_file(folder / "weights" / f"{weights}.safetensors"))
    Dropouts(module).switch(False)
    seen: list[torch.Tensor] = []
    for layer in module.modules():
        if isinstance(layer, nn.ReLU):
            layer.register_forward_pre_hook(lambda _m, args: seen.append(args[0].detach().clone()))
    call(module.train(), example_inputs(folder), bundle)
    return seen


def test_probe_weights_keep_values_off_the_kinks_and_switch_every_channel_on_once(folder):
    first, second = relu_inputs(folder, "probe1"), relu_inputs(folder, "probe2")
    assert len(first) == 3
    for a, b in zip(first, second):
        assert a.abs().min() > 0.99 * MARGIN and b.abs().min() > 0.99 * MARGIN
        on = [(x.transpose(0, 1).reshape(x.shape[1], -1) > 0) for x in (a, b)]
        assert all(bool((o.all(1) | ~o.any(1)).all()) for o in on), "a channel lies on both sides"
        off = [~o.any(1) for o in on]
        assert int(off[0].sum()) == int(off[1].sum()) == int(0.3 * a.shape[1]) and not bool(
            (off[0] & off[1]).any()
        )


def test_near_maxima_behind_layers_that_are_not_trained_are_left_as_they_are():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3).requires_grad_(False),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 39 * 39, 4),
    ).double()
    found = make_probe(
        module,
        {"arg0": torch.randn(4, 3, 80, 80)},
        {"inputs": [{"name": "arg0", "keyword": False, "shape": [4, 3, 80, 80]}]},
        0,
        False,
    )
    assert found.maxima > 0 and not module[0].weight.requires_grad


def ties_of_poolings(module: nn.Module, image: torch.Tensor) -> list[int]:
    """In how many windows of each 2x2 pooling the two largest values are so near to each other that
    float32 may exchange them."""
    found: list[int] = []

    def look(_pool: nn.Module, args: tuple[torch.Tensor]) -> None:
        first, second = (
            args[0].unfold(-2, 2, 2).unfold(-2, 2, 2).flatten(-2).topk(2).values.unbind(-1)
        )
        gaps = (first - second) / args[0].std()
        found.append(int(((gaps > SAME) & (gaps < TIE)).sum()))

    for layer in module.modules():
        if isinstance(layer, nn.MaxPool2d):
            layer.register_forward_pre_hook(look)
    with torch.no_grad():
        module.train()(image)
    return found


def test_near_maxima_are_parted_pooling_by_pooling_whatever_is_left_in_one_before():
    torch.manual_seed(0)
    # the first pooling has nothing but ties
    image = nn.functional.interpolate(
        torch.randn(4, 3, 48, 48), scale_factor=2
    ) + 1e-7 * torch.randn(4, 3, 96, 96)
    block = [nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    module = nn.Sequential(
        nn.MaxPool2d(2), *block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4)
    ).double()
    make_probe(
        module,
        {"arg0": image},
        {"inputs": [{"name": "arg0", "keyword": False, "shape": [4, 3, 96, 96]}]},
        0,
        False,
    )
    first, second = ties_of_poolings(module, image.double())
    assert first > 500 and second == 0


@pytest.mark.parametrize(
    ("activation", "kinks"),
    [
        (nn.ReLU6(), (0, 6)),
        (nn.Hardswish(), (-3, 3)),
        (nn.LeakyReLU(inplace=True), (0,)),
        (nn.PReLU(), (0,)),
        (nn.Hardsigmoid(), (-3, 3)),
    ],
)
def test_activations_with_other_kinks_are_kept_off_them_too(activation, kinks):
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 20, 3),
        nn.BatchNorm2d(20),
        activation,
        nn.Conv2d(20, 10, 3),
        activation,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(10, 4),
    ).double()
    seen: list[torch.Tensor] = []
    entry = {"arg0": torch.randn(4, 3, 10, 10)}
    found = make_probe(
        module,
        entry,
        {"inputs": [{"name": "arg0", "keyword": False, "shape": [4, 3, 10, 10]}]},
        0,
        False,
    )
    activation.register_forward_pre_hook(lambda _m, args: seen.append(args[0].detach().clone()))
    module.train()(entry["arg0"].double())
    assert found.activations == len(seen) == 2 and found.near == 0
    assert min((x - k).abs().min().item() for x in seen for k in kinks) > 0.99 * MARGIN
    assert all(x.std() > 0.1 for x in seen)


def test_a_network_without_kinks_is_probed_with_drawn_weights(tmp_path):
    capture({"model": f"{TINY}:linear", "mode": "train"}, tmp_path / "bundle", lambda _text: None)
    about = train_json(tmp_path / "bundle")
    assert (
        about["weak"] == ""
        and set(about["faults"])
        == {"labels_off_by_one", "bias_skipped", "label_smoothing", "bf16", "loss_summed"}
        and about["dropout"] == {"layers": [], "losses": [], "groups": 0, "watched": {}}
    )
    sets = [load_file(tmp_path / "bundle" / "weights" / f"{name}.safetensors") for name in SETS]
    assert all(
        not torch.equal(sets[a][k], sets[b][k])
        for k in sets[0]
        for a, b in ((0, 1), (0, 2), (1, 2))
    )


@pytest.mark.parametrize(
    ("function", "fields", "code", "words"),
    [
        ("picture", {}, "unsupported", "first output is \\[2, classes\\]"),
        ("frozen", {}, "unsupported", "no parameter to train"),
        ("only32", {}, "unsupported", "training step in float64.*tiny.py"),
        ("detached", {}, "unsupported", "no parameter has a gradient"),
        ("infinite", {}, "unsupported", "not finite"),
        ("one_value", {}, "unsupported", "more than 1 value per channel"),
        ("linear", {"loss": "nll"}, "usage", "log-probabilities"),
    ],
)
def test_what_cannot_be_trained_or_proven_is_refused(function, fields, code, words, tmp_path):
    with pytest.raises(Problem, match=words) as caught:
        capture(
            {"model": f"{TINY}:{function}", "mode": "train"} | fields,
            tmp_path / "bundle",
            lambda _text: None,
        )
    assert caught.value.code == code and not (tmp_path / "bundle").exists()
    assert caught.value.hint or "allowed" in caught.value.what


def test_a_schedule_and_half_an_optimiser_are_filled(tmp_path):
    schedule = {"name": "step", "every": 30, "gamma": 0.1}
    info = capture(
        {
            "model": f"{TINY}:linear",
            "mode": "train",
            "optimiser": {"lr": 1, "schedule": schedule},
            "loss": "cross_entropy",
        },
        tmp_path / "bundle",
        lambda _text: None,
    )
    assert (
        info["case"]["optimiser"] == DEFAULT | {"lr": 1.0, "schedule": schedule}
        and info["case"]["loss"] == "cross_entropy"
    )


def test_a_model_names_the_optimiser_that_it_is_trained_with(tmp_path):
    own = capture(
        {"model": "mnist_classic", "mode": "train", "batch": 2},
        tmp_path / "own",
        lambda _text: None,
    )
    assert own["case"]["optimiser"] == DEFAULT | {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.0}
    other = capture(
        {"model": "mnist_classic", "mode": "train", "batch": 2, "optimiser": {"lr": 1}},
        tmp_path / "other",
        lambda _text: None,
    )
    assert other["case"]["optimiser"] == DEFAULT | {"lr": 1.0}


def test_a_light_capture_has_one_probe_no_faults_and_the_same_case(tmp_path):
    light = capture(
        {"model": f"{TINY}:linear", "mode": "train", "light": True, "generic_sets": 1},
        tmp_path / "light",
        lambda _text: None,
    )
    about = train_json(tmp_path / "light")
    assert (
        set(about) == {"timed", "probe1", "faults", "weak", "dropout"}
        and about["faults"] == {}
        and about["weak"] == ""
    )
    assert light["spec"]["light"] and "light" not in light["case"]
    assert {p.stem for p in (tmp_path / "light" / "weights").iterdir()} == {"timed", "probe1"}
    whole = capture(
        {"model": f"{TINY}:linear", "mode": "train"}, tmp_path / "whole", lambda _text: None
    )
    assert whole["case"] | {"generic_sets": 1} == light["case"]
    of = train_json(tmp_path / "whole")
    assert (
        light["weight_bytes"] == whole["weight_bytes"]
        and about["probe1"]["grad_floor"] == of["probe1"]["grad_floor"]
    )


def test_a_light_capture_of_inference_has_one_generic_set_and_three_runs_of_eager(tmp_path):
    info = capture(
        {"model": f"{TINY}:linear", "light": True, "generic_sets": 1, "ring": 2},
        tmp_path / "light",
        lambda _text: None,
    )
    assert (
        info["faults"] == [] and info["case"]["generic_sets"] == 1 and "light" not in info["case"]
    )
    references = {p.name for p in (tmp_path / "light" / "reference").iterdir()}
    sets = {
        f"{name}{end}.safetensors" for name in ("timed", "generic1") for end in ("", ".envelope")
    }
    assert references == sets | {"unseen.safetensors"}
    unseen = load_file(tmp_path / "light" / "reference" / "unseen.safetensors")
    assert {key.split("/")[1] for key in unseen if key.startswith("f64/")} == {"2", "3"}
    variants = {
        key.partition("/")[0]
        for key in load_file(tmp_path / "light" / "reference" / "timed.envelope.safetensors")
    }
    assert len(variants) == 3 and "default" in variants


def test_a_fault_that_changes_nothing_at_batch_1_is_not_planted_there(tmp_path):
    capture(
        {"model": f"{TINY}:linear", "mode": "train", "batch": 1},
        tmp_path / "bundle",
        lambda _text: None,
    )
    about = train_json(tmp_path / "bundle")
    assert "loss_summed" not in about["faults"] and about["weak"] == ""


@pytest.mark.gpu
@pytest.mark.skipif(bool(NO_CUDA_DEVICE), reason=NO_CUDA_DEVICE)
def test_a_step_is_captured_on_a_device_as_on_a_processor(bundles, tmp_path):
    on_processor = train_json(bundles("train_mnist"))
    capture(
        {"model": "mnist_convnet", "mode": "train", "batch": 4, "device": "cuda"},
        tmp_path / "bundle",
        lambda _text: None,
    )
    on_device = train_json(tmp_path / "bundle")
    assert on_device.keys() == on_processor.keys()
    assert max(on_device["probe1"]["envelope"]["grad"].values()) <= WIDEST
