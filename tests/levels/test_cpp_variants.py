# SPDX-License-Identifier: Apache-2.0
"""The variants of the levels: equal work with a setting changed, truthfully reported; refused where
they do not belong."""

from __future__ import annotations

import json
import shutil

import level_builds  # noqa: F401  finds the level binaries, or skips
import pytest
from client import ROOT, Failed, Worker, error, prepare
from envelopes import envelope, reference


def declared(level: str) -> dict[str, dict]:
    return json.loads((ROOT / "levels" / level / "level.json").read_text(encoding="utf-8")).get(
        "variants", {}
    )


@pytest.fixture
def variant(bundles, tmp_path):
    """variant("level@name", bundle name) -> (a worker that was prepared and loaded, its answer to
    load)."""
    started: list[Worker] = []

    def get(level_and_name: str, name_of_bundle: str) -> tuple[Worker, dict]:
        level, name = level_and_name.split("@")
        assert name in declared(level)
        cache, bundle = tmp_path / name, tmp_path / "bundle"
        shutil.copytree(bundles(name_of_bundle), bundle)
        # a set more to compile, and nothing more to see
        (bundle / "weights" / "generic2.safetensors").unlink()
        answer = prepare(level, bundle, cache, variant=name)
        assert answer == {"ok": True}, answer
        started.append(Worker(level, bundle, cache, variant=name))
        return started[-1], started[-1].load()

    yield get
    for worker in started:
        worker.__exit__()


@pytest.mark.parametrize(
    ("name", "bundle", "settings"),
    [
        (
            "libtorch@channels_last",
            "mnist",
            {"layout": "channels_last", "freezing": False, "autotune": False},
        ),
        (
            "libtorch@channels_last",
            "resnet18",
            {"layout": "channels_last", "freezing": False, "autotune": False},
        ),
        (
            "torchscript@optimize_for_inference",
            "resnet18",
            {"layout": "any", "freezing": True, "autotune": False},
        ),
        ("aoti@freezing", "in_place", {"layout": "any", "freezing": True, "autotune": False}),
        ("aoti@max-autotune", "in_place", {"layout": "any", "freezing": False, "autotune": True}),
    ],
)
def test_outputs_lie_in_the_envelope_for_every_weight_set(name, bundle, settings, variant, bundles):
    worker, loaded = variant(name, bundle)
    assert {key: loaded["settings"][key] for key in settings} == settings
    assert (
        loaded["settings"]["threads"] == 2
        and loaded["settings"]["precision"] == "fp32"
        and loaded["settings"]["inference_mode"] is True
    )
    for weights in ("generic1", "timed"):
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles(bundle), weights)) <= 8 * envelope(
            bundles(bundle), weights
        ), weights
    bakes = declared(name.split("@")[0])[name.split("@")[1]].get(
        "bakes_weights", name.startswith("torchscript")
    )
    if not bakes:
        assert worker.ask("read_weights")["sha256"]
        return
    with pytest.raises(Failed) as failed:
        worker.ask("read_weights")
    assert failed.value.code == "unsupported"


def test_torchscript_does_not_train_a_graph_that_is_optimised_for_inference(bundles, tmp_path):
    with (
        Worker(
            "torchscript", bundles("mnist"), tmp_path, variant="optimize_for_inference"
        ) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load(mode="train")
    assert failed.value.code == "unsupported" and "optimize_for_inference" in failed.value.what


def test_aoti_refuses_the_package_of_another_variant(bundles, tmp_path):
    (tmp_path / "package.json").write_text(
        json.dumps({"device": "cpu", "threads": 2, "variant": "max-autotune"})
    )
    with (
        Worker("aoti", bundles("mnist"), tmp_path, variant="freezing") as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert (
        failed.value.code == "unavailable"
        and "max-autotune" in failed.value.what
        and "freezing" in failed.value.what
    )


def test_aoti_prepares_no_variant_that_it_does_not_know(bundles, tmp_path):
    answer = prepare("aoti", bundles("mnist"), tmp_path, variant="turbo")
    assert (
        answer["code"] == "unsupported"
        and "turbo" in answer["what"]
        and "freezing" in answer["hint"]
    )


def test_onnxruntime_says_that_tensorrt_is_not_for_a_cpu(bundles, tmp_path):
    with (
        Worker("onnxruntime", bundles("mnist"), tmp_path, variant="tensorrt") as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert (
        failed.value.code == "unsupported"
        and "no device cpu" in failed.value.what
        and "cuda" in failed.value.hint
    )
