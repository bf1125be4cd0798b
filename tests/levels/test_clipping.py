# SPDX-License-Identifier: Apache-2.0
"""`--optimiser sgd:clip_norm=1`: every level that trains clips the gradients to a norm of all
together, is proven to, and one that does not is found."""

from __future__ import annotations

import pytest
from client import Failed, compare
from faulty_eager.copies import plant
from graph_training import NEAR, worst
from level_builds import PRIMITIVES, STATIC
from train_bundle import ADAMW, SGD, expect_four_steps_of_eager
from train_verb import NETWORK

if not (PRIMITIVES and STATIC):
    pytest.skip("onednn or static is not built", allow_module_level=True)

LEVELS = ("eager", "compile", "torchscript", "libtorch", "onednn", "static")


@pytest.fixture(scope="module", params=["onednn", "static", "cudnn_host"])
def level(request):
    return request.param


def compared(folder, optimiser: str, levels: tuple[str, ...]) -> dict[str, dict]:
    (folder / "net.py").write_text(NETWORK)
    (folder / "store").mkdir()
    return compare(
        folder / "store",
        f"{folder / 'net.py'}:build",
        *("--mode", "train", "--batch", "8", "--optimiser", optimiser, "--threads", "1"),
        *("--restarts", "1", "--budget", "3s", "--order-seed", "1"),
        *("--levels", ",".join([*levels, "no_clipping"])),
        levels=plant(folder / "faulty", ["no_clipping"]),
    )


@pytest.mark.parametrize(
    "optimiser",
    [
        pytest.param("sgd:clip_norm=0.5,lr=0.05", marks=pytest.mark.long),
        "adamw:clip_norm=0.5,lr=0.003",
    ],
)
def test_every_level_that_trains_clips_and_one_that_does_not_is_refused(optimiser, tmp_path):
    rows = compared(tmp_path, optimiser, LEVELS)
    for level in LEVELS:
        assert rows[level]["state"] == "measured", (level, rows[level]["reason"])
        lines = {line["check"]: line for line in rows[level]["proof"]["lines"]}
        assert lines["optimiser: gradient clipping"]["result"] == "pass"
        assert lines["a step after timing"]["result"] == "pass"
    wrong = rows["no_clipping"]
    assert wrong["state"] == "unequal" and "clipped" in wrong["reason"], wrong
    assert wrong["end_to_end_ms"] is None


@pytest.mark.parametrize("optimiser", [SGD, ADAMW], ids=lambda o: o["name"])
def test_four_clipped_steps_are_those_of_eager_where_a_level_clips(level, optimiser, graph_worker):
    clipping = optimiser | {"clip_norm": 0.1}
    if level == "onednn":  # eager adds the norm up in float32
        expect_four_steps_of_eager(graph_worker("mnist"), clipping, 5 * NEAR, worst)
    else:  # a program is made for a case that clips, or that does not
        with pytest.raises(Failed, match=r"does not clip gradients"):
            graph_worker("mnist").ask("set_optimiser", optimiser=clipping)
