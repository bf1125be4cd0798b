# SPDX-License-Identifier: Apache-2.0
"""Every C++ level as the driver meets it, with the programs of a build folder: STRATA_LEVEL_BUILD,
or the newest build/env-*."""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from client import ROOT, Failed, Worker, error, prepare
from envelopes import SETS, envelope, reference
from level_builds import PRIMITIVES, STATIC, TORCH
from safetensors.numpy import load_file, save_file

BUFFERS_ONLY_FOR_TRAINING = "num_batches_tracked"


def outputs_of(bundle: Path) -> list[str]:
    return [o["name"] for o in json.loads((bundle / "bundle.json").read_text())["outputs"]]


@pytest.mark.parametrize(
    ("level", "name"),
    [
        *(
            (level, name)
            for level in (*PRIMITIVES, *STATIC)
            for name in ("mnist", "resnet18", "residual")
        ),
        *((level, "keywords") for level in PRIMITIVES),
        ("libtorch", "mnist"),
        ("libtorch", "resnet18"),
        ("torchscript", "mnist"),
        ("torchscript", "resnet18"),
        ("torchscript", "keywords"),
        ("aoti", "mnist"),
        ("aoti", "residual"),
        ("aoti", "keywords"),
    ],
)
def test_outputs_lie_in_the_envelope_for_every_weight_set(level, name, bundles, running):
    worker, _ = running(level, name)
    for weights in (*SETS, "timed"):  # and back again
        worker.ask("weights", weights=weights)
        outputs = worker.prove([0, 1])
        assert set(outputs) == {
            f"{i}/{output}" for i in (0, 1) for output in outputs_of(bundles(name))
        }
        assert error(outputs, reference(bundles(name), weights)) <= 8 * envelope(
            bundles(name), weights
        ), weights


@pytest.mark.parametrize("level", [*TORCH, *PRIMITIVES, *STATIC])
def test_the_checked_output_of_a_block_belongs_to_its_ring_index(level, bundles, running):
    worker, _ = running(level, "mnist")
    worker.ask("weights", weights="timed")
    warm = worker.ask("warm_up", iterations=3, min_ns=0)
    assert warm["iterations"] == 3 and len(warm["wall_ns"]) == 3 and warm["first_ns"] > 0
    truth, bound = reference(bundles("mnist"), "timed"), 8 * envelope(bundles("mnist"), "timed")
    seen = []
    for check, index in enumerate([2, 0, 3, 1]):
        answer, outputs = worker.measure([2, 0, 3, 1], check=check)
        assert list(outputs) == [f"{index}/output"]
        assert error(outputs, truth) <= bound
        assert len(answer["wall_ns"]) == len(answer["latency_ns"]) == 4
        assert all(
            0 < latency <= wall for latency, wall in zip(answer["latency_ns"], answer["wall_ns"])
        )
        assert (
            answer["cpu_ns"] > 0
            and answer["start_ns"] > 0
            and (answer["runq_ns"] is None or answer["runq_ns"] >= 0)
        )
        seen.append(outputs[f"{index}/output"])
    assert all(not np.array_equal(seen[0], other) for other in seen[1:])


@pytest.mark.parametrize("level", TORCH)
def test_reports_what_it_is_and_how_it_is_set(level, bundles, running):
    worker, loaded = running(level, "mnist")
    hello = worker.ask("hello")
    assert (
        hello["api"] == 2
        and hello["level"] == level
        and hello["language"] == "c++"
        and hello["build"]["type"] == "release"
    )
    assert (
        "cpu" in hello["devices"]
        and hello["modes"] == (["infer"] if level == "aoti" else ["infer", "train"])
        and hello["precisions"] == ["fp32", "tf32", "bf16", "amp-bf16"]
        and hello["library_ns"] > 0
        and hello["versions"]["torch"]
    )
    assert ("read_weights" in hello["ops"]) == (level != "torchscript")
    settings = loaded["settings"]
    assert (
        settings["threads"] == 2
        and settings["precision"] == "fp32"
        and settings["inference_mode"] is True
        and settings["autotune"] is False
    )
    assert settings["freezing"] == (level == "torchscript")
    assert (
        settings["graph"]
        == {"libtorch": "none", "torchscript": "traced", "aoti": "exported"}[level]
    )
    assert settings["layout"] == ("any" if level == "aoti" else "contiguous")
    assert (
        loaded["parameters"]
        == json.loads((bundles("mnist") / "bundle.json").read_text())["parameters"]
    )
    assert loaded["artefact_bytes"] > 4_000_000 and min(loaded["phases"].values()) > 0
    assert worker.ask("memory")["device_peak_bytes"] is None


@pytest.mark.parametrize(("level", "name"), [("libtorch", "resnet18"), ("aoti", "residual")])
def test_weights_read_back_are_those_of_the_file(level, name, bundles, running):
    worker, _ = running(level, name)
    for weights in ("generic1", "timed"):
        worker.ask("weights", weights=weights)
        file = load_file(bundles(name) / "weights" / f"{weights}.safetensors")
        hashes = {
            tensor: hashlib.sha256(value.tobytes()).hexdigest() for tensor, value in file.items()
        }
        if level == "aoti":  # a package leaves out what eval mode does not read
            hashes = {
                tensor: value
                for tensor, value in hashes.items()
                if not tensor.endswith(BUFFERS_ONLY_FOR_TRAINING)
            }
        assert worker.ask("read_weights")["sha256"] == hashes


# aoti runs the same exported program, deep or not, and costs a compilation
@pytest.mark.parametrize("level", ["libtorch", "torchscript"])
def test_deep_outputs_follow_the_real_ones(level, bundles, running):
    worker, _ = running(level, "mnist_deep")
    worker.ask("weights", weights="generic1")
    outputs = worker.prove([0])
    taps = [name for name in outputs_of(bundles("mnist_deep")) if name.startswith("tap:")]
    assert (
        taps[0] == "tap:conv1"
        and taps[-1] == "tap:fc2"
        and set(outputs) == {f"0/{name}" for name in ("output", *taps)}
    )
    assert error(outputs, reference(bundles("mnist_deep"), "generic1")) <= 8 * envelope(
        bundles("mnist_deep"), "generic1"
    )


def test_libtorch_taps_a_residual_network_at_the_same_places_as_python(bundles, tmp_path, fresh):
    sys.path.append(str(ROOT / "sdk" / "python"))
    import torch

    from strata_sdk import models

    bundle = tmp_path / "deep"
    shutil.copytree(bundles("resnet18"), bundle)
    module, _ = models.build_module(bundle, "generic1", deep=True)
    with torch.inference_mode():
        expected = models.call(module, models.example_inputs(bundle), models.read_bundle(bundle))
    assert "tap:layer2.0.downsample.1" in expected and "tap:layer4.1.relu#2" in expected
    about = json.loads((bundle / "bundle.json").read_text())
    about["outputs"] = [
        {"name": name, "dtype": "float32", "shape": list(value.shape)}
        for name, value in expected.items()
    ]
    about["case"]["deep"] = True
    (bundle / "bundle.json").write_text(json.dumps(about))
    worker = fresh("libtorch", bundle)
    worker.load("generic1")
    outputs = worker.prove([0])
    assert (
        error(
            outputs, {f"f64/0/{name}": value.double().numpy() for name, value in expected.items()}
        )
        < 1e-4
    )


@pytest.mark.parametrize("level", ["torchscript", "aoti", *PRIMITIVES, *STATIC])
def test_a_network_that_writes_into_its_input_gets_copies(level, bundles, running):
    worker, _ = running(level, "in_place")
    first, again = worker.prove([0, 1]), worker.prove([0, 1])
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert error(first, reference(bundles("in_place"), "timed")) <= 8 * envelope(
        bundles("in_place"), "timed"
    )


@pytest.mark.parametrize("level", ["torchscript", "aoti"])
def test_a_path_that_depends_on_the_input_is_unsupported_with_its_place(level, bundles, tmp_path):
    answer = prepare(level, bundles("branching"), tmp_path)
    assert answer["ok"] is False and answer["code"] == "unsupported"
    assert "networks.py:" in answer["what"]


@pytest.mark.parametrize("level", ["torchscript", "aoti"])
def test_a_missing_artefact_is_unavailable_and_says_what_to_run(level, fresh):
    with pytest.raises(Failed) as failed:
        fresh(level).load()
    assert failed.value.code == "unavailable" and "prepare.py" in failed.value.hint


def test_aoti_refuses_a_package_that_was_compiled_for_other_threads(bundles, running):
    prepared, _ = running("aoti", "mnist")
    with (
        Worker("aoti", bundles("mnist"), prepared.cache, threads=1) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert failed.value.code == "unavailable" and "2 threads" in failed.value.what


def test_a_killed_aoti_worker_leaves_no_unpacked_copy(bundles, running):
    prepared, _ = running("aoti", "mnist")
    (prepared.cache / "unpacked-999999999").mkdir()  # of a worker that died while it loaded
    with Worker("aoti", bundles("mnist"), prepared.cache) as worker:
        worker.load()
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait(10)
    assert not list(prepared.cache.glob("unpacked-*"))


def test_libtorch_refuses_an_input_that_does_not_fit_the_network(fresh):
    with pytest.raises(Failed) as failed:
        fresh("libtorch").load(model="resnet18")
    assert (
        failed.value.code == "unsupported"
        and "[N, 3, H, W]" in failed.value.what
        and "4, 1, 28, 28" in failed.value.what
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [("lacks", "lacks 'fc1.bias'"), ("extra", "'fc9.bias'"), ("shape", "needs F32 [128]")],
)
def test_libtorch_refuses_weights_that_do_not_fit(change, says, bundles, tmp_path, fresh):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("mnist"), bundle)
    path = bundle / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    if change == "lacks":
        del tensors["fc1.bias"]
    elif change == "extra":
        tensors["fc9.bias"] = np.zeros(3, np.float32)
    else:
        tensors["fc1.bias"] = tensors["fc1.bias"][:7].copy()
    save_file(tensors, path)
    with pytest.raises(Failed) as failed:
        fresh("libtorch", bundle).load()
    assert (
        failed.value.code == "failed"
        and says in failed.value.what
        and "timed.safetensors" in failed.value.what
    )


@pytest.mark.parametrize("level", ["libtorch", *PRIMITIVES])
def test_memory_that_runs_out_is_said_to_have_run_out(level, bundles, fresh):
    worker = fresh(level, bundles("resnet18"))
    worker.ask("hello")
    used = (
        int(
            next(
                line
                for line in Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
                if line.startswith("VmData")
            ).split()[1]
        )
        * 1024
    )
    limit = used + 40_000_000  # the network's weights alone need 46
    resource.prlimit(worker.process.pid, resource.RLIMIT_DATA, (limit, limit))
    with pytest.raises(Failed) as failed:
        worker.load()
    assert failed.value.code == "out_of_memory", str(failed.value)
