# SPDX-License-Identifier: Apache-2.0
"""The levels of the made-up result: those with numbers, and those that ended without one."""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    name: str
    title: str
    rank: int
    language: str
    ms: float
    verdict: str
    idle_mb: int  # private memory
    above_mb: int
    start_ms: tuple[int, int, int, int]  # process, library, load, first iteration
    prepare_ms: int | None = None
    artefact_mb: int = 102
    peer: bool = False
    harness: bool = False
    layout: str = "contiguous"


class Failed(NamedTuple):
    name: str
    rank: int
    state: str
    reason: str
    short: str
    hint: str


LEVELS = [
    Level(
        name="eager",
        title="PyTorch eager",
        rank=1,
        language="python",
        ms=36.94,
        verdict="reference",
        idle_mb=182,
        above_mb=308,
        start_ms=(22, 1480, 310, 182),
    ),
    Level(
        name="compile",
        title="torch.compile",
        rank=2,
        language="python",
        ms=30.12,
        verdict="faster",
        idle_mb=214,
        above_mb=396,
        start_ms=(22, 1510, 420, 6900),
    ),
    Level(
        name="torchscript",
        title="TorchScript from C++",
        rank=3,
        language="c++",
        ms=36.9,
        verdict="same",
        idle_mb=96,
        above_mb=312,
        start_ms=(6, 410, 380, 905),
        prepare_ms=5200,
        artefact_mb=103,
    ),
    Level(
        name="libtorch",
        title="LibTorch, hand-written C++",
        rank=4,
        language="c++",
        ms=36.05,
        verdict="inconclusive",
        idle_mb=95,
        above_mb=301,
        start_ms=(6, 405, 150, 130),
    ),
    Level(
        name="aoti",
        title="AOTInductor from C++",
        rank=4,
        language="c++",
        ms=29.55,
        verdict="faster",
        idle_mb=97,
        above_mb=290,
        start_ms=(6, 402, 210, 88),
        prepare_ms=81500,
        artefact_mb=131,
    ),
    Level(
        name="onnxruntime",
        title="ONNX Runtime",
        rank=5,
        language="python",
        ms=26.04,
        verdict="faster",
        idle_mb=61,
        above_mb=249,
        start_ms=(20, 190, 260, 61),
        prepare_ms=9800,
        peer=True,
        layout="any",
    ),
    Level(
        name="openvino",
        title="OpenVINO",
        rank=5,
        language="python",
        ms=39.87,
        verdict="slower",
        idle_mb=72,
        above_mb=265,
        start_ms=(20, 260, 940, 75),
        prepare_ms=14100,
        peer=True,
        layout="any",
    ),
    Level(
        name="null_cpp",
        title="null level, C++",
        rank=90,
        language="c++",
        ms=0.0011,
        verdict="slower",
        idle_mb=3,
        above_mb=2,
        start_ms=(5, 1, 1, 1),
        artefact_mb=0,
        harness=True,
        layout="any",
    ),
    Level(
        name="null_py",
        title="null level, Python",
        rank=90,
        language="python",
        ms=0.0038,
        verdict="slower",
        idle_mb=9,
        above_mb=5,
        start_ms=(18, 2, 1, 1),
        artefact_mb=0,
        harness=True,
        layout="any",
    ),
]

FAILED = [
    Failed(
        name="compile",
        rank=2,
        state="out_of_memory",
        reason="the worker reached its limit of 6.0 GB of private memory while it compiled",
        short="its limit of memory was reached while compiling",
        hint="raise --memory-limit, or choose a smaller batch",
    ),
    Failed(
        name="torchscript",
        rank=3,
        state="unsupported",
        reason="aten::scaled_dot_product_attention has a data-dependent branch at model.py:41, which tracing would freeze",
        short="data-dependent branch at model.py:41",
        hint="remove the branch, or leave this level out",
    ),
    Failed(
        name="libtorch",
        rank=4,
        state="unavailable",
        reason="no C++ compiler was found, which this level is built with",
        short="no C++ compiler",
        hint="apt-get install g++",
    ),
    Failed(
        name="aoti",
        rank=4,
        state="crashed",
        reason="the worker ended by signal 11 (SIGSEGV) in `measure`",
        short="ended by signal 11 in measure",
        hint="repeat it and look at the log",
    ),
    Failed(
        name="onnxruntime",
        rank=5,
        state="unequal",
        reason="the output differs from the reference by 812 times what float32 explains; first difference at layer1.0.bn1",
        short="output differs 812 times the bound",
        hint="strata show RUN --certificate",
    ),
    Failed(
        name="openvino",
        rank=5,
        state="mistrusted",
        reason="the output did not follow its input in block 31",
        short="output did not follow its input",
        hint="strata show RUN --certificate",
    ),
    Failed(
        name="null_cpp",
        rank=90,
        state="timeout",
        reason="no answer to `load` within 600 s",
        short="no answer to load within 600 s",
        hint="raise --timeout",
    ),
    Failed(
        name="null_py",
        rank=90,
        state="failed",
        reason="the level reported: cannot import strata_sdk <from here>",
        short="cannot import strata_sdk",
        hint="check PYTHONPATH",
    ),
]
