# SPDX-License-Identifier: Apache-2.0
"""The levels onednn and static on recurrent networks: what a run consists of, and what is refused.
That they compute what eager does, test_onednn.py, test_static.py and test_graph_train.py prove."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import torch
from captured import captured
from client import ROOT, Failed, Worker, prepare
from level_builds import BUILD, PRIMITIVES, STATIC
from several_programs import onednn
from torch import Tensor, nn

if not PRIMITIVES:
    pytest.skip((BUILD / "level_onednn.missing").read_text(), allow_module_level=True)

LEVELS = [
    "onednn",
    pytest.param("static", marks=pytest.mark.skipif(not STATIC, reason="static is not built")),
]


@pytest.mark.parametrize("level", LEVELS)
def test_weights_are_packed_when_they_are_loaded_and_not_in_a_run(level, running):
    worker, _ = running(level, "gates_in_order")
    facts = worker.ask("report")["facts"]
    # a layer in each direction; its sequences joined, and its last states
    assert facts["primitives"] == 4, facts


def refusal(level: str, bundle, tmp_path) -> str:
    if level == "static":
        answer = prepare("static", bundle, tmp_path)
        assert answer["ok"] is False and answer["code"] == "unsupported", answer
        return answer["what"]
    with Worker(level, bundle) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert failed.value.code == "unsupported"
    return failed.value.what


@pytest.mark.parametrize("level", LEVELS)
def test_an_lstm_with_projections_is_unsupported_and_named_so(level, bundles, tmp_path):
    what = refusal(level, bundles("projected_lstm"), tmp_path)
    assert re.search(r"lstm.*recurrent_networks\.py:\d+.*projections \(proj_size\)", what), what


class Cells(nn.Module):
    """One cell at every step of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state


@pytest.mark.parametrize("level", LEVELS)
def test_a_cell_that_is_called_at_every_step_has_its_weights_once(level, tmp_path):
    held = {}
    for steps in (2, 12):
        bundle = captured(Cells().eval(), {"x": torch.randn(2, steps, 4)}, tmp_path / str(steps))
        cache = tmp_path / f"cache{steps}"
        if level == "static":
            assert prepare(level, bundle, cache) == {"ok": True}
        with Worker(level, bundle, cache) as worker:
            worker.load()
            held[steps] = worker.ask("report")["facts"]["weight_bytes"]
    assert held[2] == held[12], held


@pytest.mark.parametrize("instructions", ["ALL", "AVX2", "SSE41"])
def test_the_library_keeps_no_more_for_gradients_than_programs_plan_for(instructions, tmp_path):
    program, own = tmp_path / "workspaces", ROOT / "tests" / "levels" / "recurrent_workspaces.cpp"
    compiler = re.search(
        r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M
    )[1]
    lib = onednn() / "lib"
    subprocess.run(
        [
            *(compiler, "-std=c++20", "-O0", "-fopenmp", "-I", ROOT / "runtime"),
            *("-isystem", onednn() / "include", own, lib / "libdnnl.so", f"-Wl,-rpath,{lib}"),
            *("-o", program),
        ],
        check=True,
        timeout=300,
    )
    done = subprocess.run(
        [program],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": instructions},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == "400 shapes\n", done.stdout
