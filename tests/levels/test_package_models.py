# SPDX-License-Identifier: Apache-2.0
"""Networks of packages by name, as `timm:convnext_tiny?in_chans=1`: which are built, what they
take, and what is refused before anything is built. torchvision is the real one; timm and
transformers are stood for by tests/fakes/packages."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from captured import refused
from envelopes import SETS, expect_outputs_within_bounds
from specs import ROOT, capture
from torchvision import models as zoo

from capture import packages as capture_packages
from capture.packages import available_bytes
from strata_sdk import packages
from strata_sdk.models import ModelError, build_model, build_module, flatten_outputs
from strata_sdk.packages import options

FAKES = ("timm", "transformers")
READERS = ("strata_sdk.packages.of_timm", "strata_sdk.packages.of_hf")


@pytest.fixture
def fakes(monkeypatch):
    """timm and transformers are those of tests/fakes, whether or not the real ones are there."""

    def forget() -> None:
        for name in [*sys.modules]:
            if name.partition(".")[0] in FAKES or name in READERS:
                del sys.modules[name]

    forget()
    monkeypatch.syspath_prepend(str(ROOT / "tests/fakes/packages"))
    yield
    forget()


def shapes(model: str) -> dict[str, list[int]]:
    inputs = build_model(model).default_inputs or []
    return {entry["name"] or str(place): entry["shape"] for place, entry in enumerate(inputs)}


# ------------------------------------------------------------------------------------- torchvision


def test_builds_the_network_that_torchvision_builds_with_weights_of_the_seed():
    built = build_model("torchvision:resnet18?num_classes=7", seed=3)
    torch.manual_seed(3)
    own = zoo.resnet18(weights=None, num_classes=7).state_dict()
    assert built.kind == "package" and not built.module.training
    assert built.name == "torchvision:resnet18?num_classes=7" and "torchvision 0." in built.source
    state = built.module.state_dict()
    assert state.keys() == own.keys() and all(torch.equal(state[k], own[k]) for k in own)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", [[1, 3, 224, 224]]),
        ("inception_v3", [[1, 3, 299, 299]]),
        ("vit_b_16?image_size=64", [[1, 3, 64, 64]]),
        ("r3d_18", [[1, 3, 16, 112, 112]]),
        ("swin3d_t", [[1, 3, 16, 224, 224]]),
        ("raft_small", [[1, 3, 128, 128], [1, 3, 128, 128]]),
    ],
)
def test_a_network_of_torchvision_takes_what_its_family_takes(name, expected):
    assert [*shapes(f"torchvision:{name}").values()] == expected


def test_every_backbone_is_built_without_its_weights(monkeypatch):
    def no_download(*_args, **_keywords):
        raise AssertionError("weights were asked for")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", no_download)
    built = build_model("torchvision:lraspp_mobilenet_v3_large")
    with torch.no_grad():
        outputs = flatten_outputs(built.module(torch.rand(1, 3, 64, 64)))
    assert outputs["out"].shape == (1, 21, 64, 64)


def test_the_size_is_that_of_the_network_that_is_built():
    for model in ("torchvision:resnet18", "torchvision:vit_b_16?num_classes=3"):
        size, module = packages.size_of(model), build_model(model).module
        tensors = [*module.parameters(), *module.buffers()]
        assert size is not None
        assert size.parameters == sum(p.numel() for p in module.parameters())
        assert size.bytes == sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize(
    "level", ["eager", pytest.param("compile", marks=pytest.mark.long), "onnxruntime"]
)
def test_a_level_runs_a_network_of_a_package_as_eager_does(level, running):
    worker, _ = running(level, "package")
    for weights in SETS:
        expect_outputs_within_bounds(worker, weights)


def test_its_capture_says_what_it_came_from(bundles):
    info = json.loads((bundles("package") / "bundle.json").read_text())
    assert info["model"]["name"] == "torchvision:mobilenet_v3_small?num_classes=5"
    assert info["model"]["kind"] == "package" and "torchvision 0." in info["model"]["source"]
    read = [Path(entry["path"]).parent.name for entry in info["read"]]
    assert any(re.fullmatch(r"torchvision-[\d.]+.*\.dist-info", name) for name in read), read


# ------------------------------------------------------------------------------ timm, transformers


def test_a_network_of_timm_takes_what_its_configuration_and_its_options_say(fakes):
    assert shapes("timm:tiny_net") == {"0": [1, 3, 16, 16]}
    assert shapes("timm:tiny_net.large") == {"0": [1, 3, 24, 24]}
    assert shapes("timm:tiny_net?in_chans=1&img_size=32") == {"0": [1, 1, 32, 32]}
    assert shapes("timm:tiny_net?img_size=[8,12]") == {"0": [1, 3, 8, 12]}
    assert build_model("timm:tiny_net?num_classes=9").module.head.out_features == 9


def test_a_class_of_transformers_is_made_from_its_configuration(fakes):
    module = build_model("hf:TinyModel?num_hidden_layers=3&hidden_size=6&dropout=0").module
    assert len(module.layers) == 3 and module.config.width == 6 and module.config.dropout == 0
    assert module.config.use_cache is False, "states for a next call would be made in vain"
    assert build_model("hf:TinyModel?use_cache=true").module.config.use_cache is True


def test_inputs_of_transformers_follow_the_configuration(fakes):
    tokens = build_model("hf:TinyModel?vocab_size=9&max_position_embeddings=20").default_inputs
    assert tokens == [
        {"name": "input_ids", "dtype": "int64", "shape": [1, 20], "low": 0, "high": 8}
    ]
    assert shapes("hf:TinyForConditionalGeneration?is_encoder_decoder=true") == {
        "input_ids": [1, 128],
        "decoder_input_ids": [1, 128],
    }
    assert shapes("hf:TinyForImageClassification?image_size=20&num_channels=1") == {
        "pixel_values": [1, 1, 20, 20]
    }
    pair = "hf:TinyPairModel?text_config.width=5&vision_config.image_size=18"
    assert shapes(pair) == {"input_ids": [1, 128], "pixel_values": [1, 3, 18, 18]}
    assert build_model("hf:TinyForUnknownInputModel").default_inputs is None


@pytest.mark.parametrize(
    ("model", "outputs", "batch"),
    [
        ("timm:tiny_net?in_chans=1", {"output": [3, 5]}, 3),
        ("hf:TinyModel", {"last_hidden_state": [2, 128, 8]}, 2),
        (
            "hf:TinyForConditionalGeneration?is_encoder_decoder=true",
            {"logits": [2, 128, 8]},
            2,
        ),
    ],
)
def test_a_package_s_network_is_captured_and_rebuilt_alike(fakes, tmp_path, model, outputs, batch):
    said: list[str] = []
    info = capture({"model": model, "batch": batch, "light": True}, tmp_path / "b", said.append)
    assert {o["name"]: o["shape"] for o in info["outputs"]} == outputs
    assert info["graph"]["ok"] and not info["unproven"]
    assert any(str(ROOT / "tests/fakes/packages") in entry["path"] for entry in info["read"])
    sized = [i for i, text in enumerate(said) if " parameters, " in text]
    assert sized and sized[0] < [text.startswith("building") for text in said].index(True)
    module, names = build_module(tmp_path / "b")
    assert names == [entry["name"] for entry in info["inputs"]]
    assert sum(p.numel() for p in module.parameters()) == info["parameters"]


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("model", "code", "what", "hint"),
    [
        ("tim:tiny_net", "usage", "'tim' in tim:tiny_net is no package", "timm:tiny_net"),
        ("torchvision:resnt18", "usage", "no model 'resnt18'", "did you mean resnet18"),
        ("timm:tiny_nets", "usage", "no model 'tiny_nets'", "did you mean tiny_net"),
        ("hf:TinyModl", "usage", "no model class 'TinyModl'", "did you mean TinyModel"),
        ("hf:AutoModel", "usage", "no model class 'AutoModel'", ""),
        ("torchvision:resnet18?num_clases=3", "usage", "no option 'num_clases'", "num_classes"),
        ("timm:tiny_net?inchans=3", "usage", "no option 'inchans'", "allowed: in_chans, num_cl"),
        ("timm:tiny_net?norm_layer=x", "usage", "no option 'norm_layer'", "allowed"),
        ("hf:TinyModel?layers=3", "usage", "no option 'layers'", "num_hidden_layers"),
        ("hf:TinyPairModel?text_config.wide=3", "usage", "no option", "text_config.width"),
        ("torchvision:resnet18?num_classes=ten", "usage", "takes a whole number, not text", ""),
        ("timm:tiny_net?in_chans=1.5", "usage", "whole number, not a number", "in_chans"),
        ("timm:tiny_net?drop_rate=true", "usage", "a number, not true or false", ""),
        ("hf:TinyModel?num_hidden_layers=none", "usage", "takes a whole number, not none", ""),
        ("hf:TinyModel?num_hidden_layers=0", "usage", "at least one layer is needed", ""),
        ("timm:own_width?width=3", "usage", "'width' is set by the model itself", "leave it"),
        ("timm:tiny_net?in_chans", "usage", "'in_chans' behind the ? is no OPTION=VALUE", ""),
        ("timm:tiny_net?in_chans=1&in_chans=3", "usage", "'in_chans' is given twice", ""),
        ("timm:tiny_net?img_size=[8,", "usage", "img_size=[8, is no list", ""),
        ("timm:tiny_net?pretrained=true", "usage", "would load weights", "--weights"),
        ("torchvision:resnet18?weights=DEFAULT", "usage", "would load weights", "--weights"),
        ("torchvision:fasterrcnn_resnet50_fpn", "unsupported", "a list of images", "file.py"),
        ("torchvision:quantized_resnet18", "unsupported", "int8", "without quantized_"),
        ("timm:downloads", "unsupported", "would be downloaded", "downloads nothing"),
    ],
)
def test_a_name_or_an_option_that_is_none_is_explained(fakes, model, code, what, hint):
    with pytest.raises(ModelError) as caught:
        build_model(model)
    problem = caught.value
    assert problem.code == code and what in problem.what and hint in problem.hint, vars(problem)
    assert model in problem.what or model.partition(":")[0] == "tim"


def test_a_package_that_is_not_installed_says_how_to_install_it(monkeypatch):
    missing = {"scheme": "hf", "package": "transformers_that_nobody_has", "title": ""}
    monkeypatch.setattr(options, "packages", lambda: {"hf": missing})
    with pytest.raises(ModelError) as caught:
        packages.size_of("hf:BertModel")
    assert caught.value.code == "unavailable"
    assert "pip install transformers_that_nobody_has" in caught.value.hint


def test_what_is_too_large_is_refused_before_it_is_built(fakes, tmp_path, monkeypatch):
    problem = refused({"model": "timm:tiny_net?width=1000000"}, tmp_path)
    assert problem.code == "usage"
    assert "1e+03 billion parameters, 4e+03 GB" in problem.what and "are free" in problem.what
    monkeypatch.setattr(capture_packages, "available_bytes", lambda: 100_000)
    capture_packages.check_size({"model": "timm:tiny_net", "mode": "infer"}, None, print)
    with pytest.raises(ModelError, match="holds 10 times as much"):
        capture_packages.check_size(
            {"model": "timm:tiny_net?width=50", "mode": "train"}, None, print
        )


def test_what_a_level_may_not_hold_is_refused_before_it_is_built(fakes):
    spec = {"model": "timm:tiny_net?width=3000", "mode": "infer"}  # 36 MB of weights
    capture_packages.check_size(spec, 0.1, print)
    with pytest.raises(ModelError, match=r"--memory-limit allows 53\.7 MB"):
        capture_packages.check_size(spec, 0.05, print)


def test_a_network_whose_making_needs_numbers_is_built_though_its_size_is_not_known(fakes):
    assert packages.size_of("timm:with_numbers") is None
    assert build_model("timm:with_numbers").module.mix.in_features == 4


def test_the_network_is_reached_again_once_a_network_is_built(fakes):
    import socket

    build_model("timm:tiny_net")
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())


# -------------------------------------------------------------------------------------------- words


def test_a_path_or_a_plain_name_is_no_package_s():
    for model in (
        "net.py:build",
        "/a/net.py:build",
        "a/net.py:build",
        "resnet50",
        "timm:",
        "a.onnx",
    ):
        assert not packages.is_reference(model), model
    assert packages.is_reference("timm:convnext_tiny")


def test_values_have_the_types_that_they_are_written_as():
    text = "hf:X?a=3&b=-1.5e-3&c=true&d=None&e=gelu&f=[1,2]&g=false&h=1.0"
    assert options.reference_of(text).options == {
        "a": 3, "b": -0.0015, "c": True, "d": None, "e": "gelu", "f": [1, 2], "g": False, "h": 1.0,
    }  # fmt: skip


def test_names_of_transformers_are_those_of_model_classes(fakes):
    from strata_sdk.packages.of_hf import MODEL_NAME

    for name in ("BertModel", "BertForMaskedLM", "GPT2LMHeadModel", "CLIPTextModelWithProjection"):
        assert MODEL_NAME.fullmatch(name), name
    for name in ("AutoModelForMaskedLM", "BertConfig", "BertTokenizer", "TFBertModel", "pipeline"):
        assert not MODEL_NAME.fullmatch(name), name


def test_every_listed_package_has_a_reader_and_an_example_that_is_a_name():
    for scheme, entry in options.packages().items():
        assert (ROOT / f"sdk/python/strata_sdk/packages/of_{scheme}.py").is_file()
        assert options.reference_of(entry["example"]).scheme == scheme


def test_memory_is_what_the_machine_and_its_control_groups_leave(tmp_path):
    group = tmp_path / "sys/fs/cgroup/a/b"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    assert available_bytes(tmp_path) is None or available_bytes(tmp_path) > 0
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    1000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    assert available_bytes(tmp_path) == 1000 * 1024
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("5\n")
    (group.parent / "memory.max").write_text("70000\n")
    (group.parent / "memory.current").write_text("20000\n")
    assert available_bytes(tmp_path) == 50000
