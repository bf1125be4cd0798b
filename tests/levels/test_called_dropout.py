# SPDX-License-Identifier: Apache-2.0
"""mnist_classic, whose dropouts no attribute of a layer holds (F.dropout) or draw whole channels
(Dropout2d): it runs and is proven at every level, wrong probabilities are found."""

from __future__ import annotations

import pytest
from client import Worker, compare, prepare
from faulty_eager.copies import plant
from graph_training import make
from level_builds import STATIC
from train_bundle import Eager, losses, start

QUICK = (
    "--batch",
    "16",
    "--threads",
    "1",
    "--restarts",
    "1",
    "--budget",
    "2s",
    "--preset",
    "quick",
    "--order-seed",
    "1",
)
LEVELS = ["eager", "torchscript", "libtorch", "onednn", *(["static"] if STATIC else [])]
FAULTS = ("dropout_less_by_5", "called_dropout_less_by_5", "dropout_by_elements")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    levels = plant(tmp_path_factory.mktemp("faulty"), FAULTS)
    return compare(
        tmp_path_factory.mktemp("store"),
        "mnist_classic",
        "--mode",
        "train",
        *QUICK,
        "--levels",
        ",".join([*LEVELS, *FAULTS]),
        levels=levels,
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_step_with_both_kinds_of_dropout_is_proven(level, trained):
    row = trained[level]
    assert row["state"] == "measured" and not row["proof"]["weak"], (row["reason"], row["proof"])
    [line] = [line for line in row["proof"]["lines"] if line["check"] == "dropout probability"]
    assert (
        line["result"] == "pass"
        and float(line["detail"].split("wrong by ")[1].split(" ")[0]) < 0.03
    ), line["detail"]


@pytest.mark.parametrize("fault", FAULTS)
def test_masks_of_another_probability_or_shape_are_found(fault, trained):
    row = trained[fault]
    assert row["state"] == "unequal" and "dropout" in row["reason"], (row["state"], row["reason"])


def test_every_level_infers_it(tmp_path):
    rows = compare(tmp_path, "mnist_classic", *QUICK, "--levels", ",".join(LEVELS))
    assert {level: row["state"] for level, row in rows.items()} == dict.fromkeys(
        LEVELS, "measured"
    ), {level: row["reason"] for level, row in rows.items()}


@pytest.mark.skipif(not STATIC, reason="static is not built")
def test_static_has_a_fast_kernel_for_convolutions_whose_channels_fill_no_block(tmp_path):
    bundle = make(tmp_path / "bundle", "classic")
    (tmp_path / "cache").mkdir()
    assert prepare("static", bundle, tmp_path / "cache") == {"ok": True}
    with Worker("static", bundle, tmp_path / "cache", threads=1) as worker:
        start(worker)
        eager = Eager(bundle)
        assert losses(worker, [0, 1]) == pytest.approx([eager.step(0), eager.step(1)], rel=2e-5)
        assert worker.ask("report")["facts"]["reference_kernels"] == 0
