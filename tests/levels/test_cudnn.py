# SPDX-License-Identifier: Apache-2.0
"""The level cudnn. On any machine: everything but NVIDIA's libraries, by a stand-in with loops in
their place (cudnn_host); that it builds and links; and whether cuDNN has plans for an H200. On a
machine with a device (marked gpu): the level itself, against the same references."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from client import NO_CUDA_DEVICE, Failed, Worker, level_folder
from envelopes import SETS, expect_outputs_within_bounds
from level_builds import BUILD, CUDNN_IS_BUILT, ON_A_GPU
from safetensors.numpy import load_file, save_file

LEVELS = ["cudnn_host", pytest.param("cudnn", marks=ON_A_GPU)]
LAYOUTS = {"default": "contiguous", "channels_last": "channels_last"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("variant", LAYOUTS)
@pytest.mark.parametrize("name", ["image_operations", "token_operations", "residual"])
def test_computes_every_family_of_operations_on_odd_shapes(name, variant, level, bundles):
    with Worker(level, bundles(name), variant=variant) as worker:
        settings = worker.load()["settings"]
        assert settings["layout"] == LAYOUTS[variant] and settings["graph"] == "exported"
        for weights in (*SETS, "timed"):  # and back again
            expect_outputs_within_bounds(worker, weights)


def test_the_operations_of_level_json_are_those_that_the_code_knows_and_onednn_has_them_too():
    written = json.loads((level_folder("cudnn") / "level.json").read_text())["operations"]
    with Worker("cudnn_host") as worker:
        assert worker.ask("hello")["operations"] == written
    onednn = json.loads((level_folder("onednn") / "level.json").read_text())["operations"]
    assert set(written) <= set(onednn)


def test_weights_are_handed_back_as_pytorch_has_them_whatever_their_layout(bundles):
    with Worker("cudnn_host", bundles("residual"), variant="channels_last") as worker:
        worker.load()
        file = load_file(bundles("residual") / "weights" / "timed.safetensors")
        read = worker.ask("read_weights")["sha256"]
    assert read == {name: hashlib.sha256(file[name].tobytes()).hexdigest() for name in read}
    assert file.keys() - read.keys() == {name for name in file if "num_batches_tracked" in name}


def test_images_come_in_the_layout_of_the_variant_so_that_a_run_reorders_little(bundles):
    moves = {}
    for variant in LAYOUTS:
        with Worker("cudnn_host", bundles("residual"), variant=variant) as worker:
            worker.load()
            facts = worker.ask("report")["facts"]
        assert (
            facts["weight_bytes"] > 0
            and facts["buffer_bytes"] > 0
            and sum(facts["kernels"].values()) == facts["primitives"]
        )
        moves[variant] = facts["reorders"]
    assert moves["default"] == 0 and moves["channels_last"] <= 1, moves


def test_a_lookup_beyond_the_table_fails_and_names_the_row_and_the_next_run_is_sound(
    bundles, tmp_path
):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("token_operations"), bundle)
    path = bundle / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    tensors["index"][3] = 9
    save_file(tensors, path)
    with Worker("cudnn_host", bundle) as worker:
        worker.load()
        with pytest.raises(Failed) as failed:
            worker.prove([0])
        worker.ask("weights", weights="generic1")
        worker.prove([0])
    assert failed.value.code == "failed" and "row 9 in a table of 9" in failed.value.what


def test_a_nan_comes_out_as_nan(bundles, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("residual"), bundle)
    path = bundle / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    tensors[next(name for name, value in tensors.items() if value.ndim == 4)][0, 0, 0, 0] = np.nan
    save_file(tensors, path)
    with Worker("cudnn_host", bundle) as worker:
        worker.load()
        assert all(np.isnan(value).any() for value in worker.prove([0]).values())


@CUDNN_IS_BUILT
def test_without_a_device_it_says_so_in_cudas_words(bundles):
    if not NO_CUDA_DEVICE:
        pytest.skip("there is a device")
    with Worker("cudnn", bundles("residual")) as worker:
        hello = worker.ask("hello")
        assert hello["devices"] == ["cuda"] and re.fullmatch(
            r"9\.\d+\.\d+", hello["versions"]["cudnn"]
        )
        with pytest.raises(Failed) as failed:
            worker.load()
    assert (
        failed.value.code == "unavailable"
        and "no CUDA device" in failed.value.what
        and "driver" in failed.value.what
    )


@CUDNN_IS_BUILT
def test_cudnn_has_plans_for_the_convolutions_of_networks_on_an_h200():
    done = subprocess.run(
        [BUILD / "cudnn_plans", "--for", Path(__file__).parent / "cudnn_plans" / "h200.json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len({tuple(row[:4]) for row in rows}) == len(rows) and {
        tuple(row[1:4]) for row in rows
    } == {
        (direction, layout, precision)
        for direction in ("forward", "of_input", "of_weight")
        for layout in ("contiguous", "channels_last")
        for precision in ("fp32", "tf32", "bf16")
    }
    assert len({row[0] for row in rows}) >= 10
    assert not [row for row in rows if row[4] != "yes"]
    kernels = {tuple(row[:4]): row[5] for row in rows}
    # strict float32 is another kernel
    assert all(
        kernels["3x3", direction, layout, "fp32"] != kernels["3x3", direction, layout, "tf32"]
        for _, direction, layout, _ in kernels
    )
