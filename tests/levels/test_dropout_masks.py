# SPDX-License-Identifier: Apache-2.0
"""Dropout's generator in the state of every level that trains: a seed gives the same masks in every
process, a state that is put back goes on with the same ones, and layers differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from client import Worker, prepare
from graph_training import make
from level_builds import STATIC
from train_bundle import load_state, losses, start, whole_state

LEVELS = [
    "eager",
    "compile",
    "torchscript",
    "libtorch",
    "onednn",
    pytest.param("static", marks=pytest.mark.skipif(not STATIC, reason="static is not built")),
    "cudnn_host",
    pytest.param(
        "static_in_host_memory", marks=pytest.mark.skipif(not STATIC, reason="static is not built")
    ),
]
# the loss of two_masks where both layers draw alike, and of whole_channels
SAME_MASKS = math.log(10)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make(tmp_path_factory.mktemp("masks") / "bundle", "masks")


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    return request.param


@pytest.fixture(scope="module")
def cache(level, bundle, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"{level}-masks")
    prepare_for(level, bundle, folder)
    return folder


def prepare_for(level, bundle, folder) -> None:
    if level.startswith(("torchscript", "libtorch", "static")):
        assert prepare(level, bundle, folder) == {"ok": True}


def begun(level, bundle, cache) -> Worker:
    worker = Worker(level, bundle, cache, threads=1)
    start(worker, dropout=True)
    return worker


def test_masks_follow_from_the_seed_and_go_on_with_the_state(level, bundle, cache):
    with begun(level, bundle, cache) as worker:
        first = {
            name: value
            for name, value in whole_state(worker)[0].items()
            if not name.startswith("generator:")
        }
        assert any(name.startswith("generator:") for name in whole_state(worker)[0])
        load_state(worker, first, 0, seed=5)
        drawn = losses(worker, [0, 0, 0])
        assert len(set(drawn)) == 3 and all(abs(loss - SAME_MASKS) > 1e-4 for loss in drawn), (
            "two layers draw the same mask"
        )
        load_state(worker, first, 0, seed=6)
        assert losses(worker, [0, 0, 0]) != drawn
        load_state(worker, first, 0, seed=5)
        assert losses(worker, [0]) == drawn[:1]
        saved, step, _ = whole_state(worker)
        assert (
            saved["count:norm.num_batches_tracked"] == first["count:norm.num_batches_tracked"] + 1
        )
        assert losses(worker, [0, 0]) == drawn[1:]
        later = whole_state(worker)[0]
        load_state(worker, saved, step)
        again = whole_state(worker)[0]
        assert set(again) == set(saved) and all(
            np.array_equal(again[name], saved[name]) for name in saved
        )
        assert losses(worker, [0, 0]) == drawn[1:] and all(
            np.array_equal(value, later[name]) for name, value in whole_state(worker)[0].items()
        )
        load_state(worker, first, 0)  # which says nothing of masks: they go on
        assert losses(worker, [0]) != drawn[:1]
        others = {"generator:of_another_kind": np.zeros(3, np.uint8)}
        load_state(worker, first | others, 0)
    with begun(level, bundle, cache) as worker:
        losses(worker, [1, 2])
        load_state(worker, first, 0, seed=5)
        assert losses(worker, [0, 0, 0]) == drawn, "in a process of its own"
        load_state(worker, saved, step)
        assert losses(worker, [0, 0]) == drawn[1:]


def test_channel_wise_dropout_draws_once_for_each_channel_of_a_sample(level, tmp_path):
    bundle = make(tmp_path / "bundle", "whole_channels")
    (tmp_path / "cache").mkdir()
    prepare_for(level, bundle, tmp_path / "cache")
    with begun(level, bundle, tmp_path / "cache") as worker:
        assert losses(worker, [0, 1]) == pytest.approx([SAME_MASKS] * 2, abs=1e-5)
