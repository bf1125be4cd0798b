# SPDX-License-Identifier: Apache-2.0
"""`strata generate`: other precisions and targets, tuned kernels, and what is refused before
anything is written."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from generated import build_with_kit, entries_of

RESIDUAL = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:residual_network"


UNKNOWN = f"{ROOT / 'tests' / 'levels' / 'primitive_networks.py'}:unknown_operation"


def test_a_program_in_bfloat16_is_within_the_errors_of_eager_in_that_mode_or_says_that_the_processor_has_none(
    strata, program, tmp_path
):
    done = strata.run(
        "generate",
        "mnist_convnet",
        "-o",
        str(tmp_path / "half"),
        "--threads",
        "1",
        "--precision",
        "bf16",
    )
    assert done.returncode == 0, done.stderr
    network = build_with_kit(tmp_path / "half", program)
    checked = subprocess.run([network, "--check", "--threads", "1"], capture_output=True, text=True)
    if "avx512bw" not in Path("/proc/cpuinfo").read_text():
        assert checked.returncode == 1 and "no bfloat16 on this processor" in checked.stderr
        return
    assert checked.returncode == 0 and "equal" in checked.stdout, checked.stdout + checked.stderr
    off, allowed = (
        float(number)
        for number in re.search(
            r"output: error (\S+) against the float64 reference, allowed (\S+):", checked.stdout
        ).groups()
    )
    assert 2**-13 < off <= allowed < 0.5  # in float32 it is off by less than 2^-20
    weights = [
        int(
            re.search(
                r"weights (\d+)",
                subprocess.run(
                    [one, "--check", "--threads", "1"], capture_output=True, text=True
                ).stdout,
            )[1]
        )
        for one in (network, program / "build" / "network")
    ]
    assert weights[0] < 0.6 * weights[1]


@pytest.mark.parametrize("more", [["--precision", "tf32"], ["--train", "--precision", "amp-bf16"]])
def test_a_program_for_cuda_in_another_mode_says_without_a_gpu_why_it_needs_one(
    more, strata, tmp_path
):
    done = strata.run(
        "generate",
        "mnist_convnet",
        "-o",
        str(tmp_path / "cuda"),
        "--threads",
        "1",
        "--target",
        "cuda",
        *more,
    )
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert (
        done.returncode == 3
        and "no CUDA device" in done.stderr
        and f"{more[-1]} needs a GPU" in done.stderr
        and "--precision fp32" in done.stderr
        and "--device" not in done.stderr
    )


def test_tune_times_the_kernels_once_and_writes_the_program_with_the_fastest(strata, tmp_path):
    if not Path(os.environ.get("STRATA_LEVEL_BUILD", ""), "strata_generate").exists():
        pytest.skip("the level static is not built")
    began = []
    for name in ("first", "second"):
        done = strata.run(
            "generate", RESIDUAL, "-o", str(tmp_path / name), "--threads", "1", "--tune"
        )
        assert done.returncode == 0, done.stderr
        (times,) = Path(strata.environment["STRATA_CACHE"]).glob(
            "artefacts/static-measured-*/kernels.json"
        )
        began.append(times.stat().st_mtime_ns)
    assert began[0] == began[1], "timed again"
    assert json.loads(times.read_text())
    stages = [
        {path.name: path.read_text() for path in (tmp_path / name / "stages").iterdir()}
        for name in ("first", "second")
    ]
    assert stages[0] == stages[1] and stages[0]


def test_the_target_libtorch_gives_calls_of_aten_that_build_and_equal_the_reference(
    strata, tmp_path
):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch in the tests' own environment")
    folder = tmp_path / "calls"
    done = strata.run(
        "generate", RESIDUAL, "-o", str(folder), "--threads", "1", "--target", "libtorch"
    )
    assert done.returncode == 0 and "each a call of ATen" in done.stdout, done.stderr
    for command in (
        [
            "cmake",
            "-S",
            folder,
            "-B",
            folder / "build",
            f"-DSTRATA_PYTHON={sys.executable}",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
        ],
        ["cmake", "--build", folder / "build", "-j2"],
    ):
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    # without a number of its own: as many threads as it was generated for
    checked = subprocess.run(
        [folder / "build" / "network", "--check"], capture_output=True, text=True
    )
    assert "with 1 threads" in checked.stdout, checked.stdout
    assert (
        checked.returncode == 0 and "equal" in checked.stdout and "WRONG" not in checked.stdout
    ), checked.stdout + checked.stderr
    wrong = subprocess.run(
        [folder / "build" / "network", "nowhere.safetensors", "out.safetensors"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert wrong.returncode == 1 and "nowhere.safetensors cannot be read" in wrong.stderr
    import numpy as np

    for changed, message in (
        ({}, ""),
        (
            {"0_input": np.zeros((1, 2), np.float64)},
            "input input is F64 [1,2]; this artefact takes F32 [",
        ),
        ({"0_other": np.zeros(1, np.float32)}, "'0/other'"),
    ):
        ran = subprocess.run(
            [
                folder / "build" / "network",
                entries_of(folder, tmp_path, **changed),
                "out.safetensors",
                "1",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == (1 if message else 0) and message in ran.stderr, (
            ran.stdout + ran.stderr
        )


@pytest.mark.parametrize("mode", [[], ["--train"]], ids=["infer", "train"])
def test_the_target_cuda_gives_a_folder_that_holds_all_it_includes_and_calls_no_other_library(
    mode, strata, tmp_path
):
    folder = tmp_path / "gpu"
    done = strata.run(
        "generate", "mnist_convnet", "-o", str(folder), "--threads", "1", "--target", "cuda", *mode
    )
    assert done.returncode == 0 and "cmake -S" in done.stdout, done.stderr
    files = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.suffix in (".cpp", ".hpp", ".cu", ".h", ".txt", ".md")
    }
    assert {
        "kit_cuda/libraries.cpp",
        "kit_cuda/graph.cu",
        "kit_cuda/kernels/elementwise.cu",
        "kit/operations.hpp",
        "CMakeLists.txt",
    } <= files.keys()
    assert not [
        name
        for name, text in files.items()
        if "dnnl" in text or ("@" in text.replace("@%", "") and name.endswith((".txt", ".md")))
    ], "a library for processors, or a name that was not filled in"
    assert (
        not [name for name in files if "_host." in name or "winograd" in name]
        and "blocked" not in files["plan.hpp"]
    )
    stages = [
        name
        for name in files
        if name.startswith("stages/")
        or name in ("program.cpp", "model.cpp", "training.cpp", "main.cpp")
    ]
    assert ("training.cpp" in stages) == bool(mode)
    unit = folder / "all.cpp"
    unit.write_text("".join(f'#include "{name}"\n' for name in stages))
    # these know nothing of CUDA
    checked = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-I", folder, unit], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr[-3000:]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "onedn"], "did you mean 'onednn'?"),
        (["--precision", "tf32"], "--target onednn has fp32, bf16, amp-bf16"),
        (["--target", "cuda", "--train", "--precision", "bf16"], "has fp32, tf32, amp-bf16"),
        (["--target", "libtorch", "--precision", "bf16"], "has fp32"),
        (["--train", "--precision", "bf16"], "--target onednn --train has fp32"),
        (["--target", "cuda", "--tune"], "no kernels to choose from"),
        (["--target", "libtorch", "--tune"], "no kernels to choose from"),
        (["--target", "libtorch", "--train"], "autograd can train"),
        (["--train", "--tune"], "no kernels to choose from"),
        (["--loss", "nll"], "add --train"),
        (["--train", "--loss", "hinge"], "--loss hinge: unknown"),
        (["--memory-budget", "1MB"], "add --train"),
        (["--train", "--memory-budget", "2XB"], "unknown unit 'XB'"),
        (["-o", "{full}"], "not empty"),
        (["-o", "{file}"], "this is a file"),
        (["-o", "{missing}/r"], "is not there"),
        (["--bach", "2"], "--bach"),
    ],
)
def test_refuses_bad_options_before_anything_starts(arguments, says, strata, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    words = [
        word.format(full=tmp_path / "full", file=tmp_path / "file", missing=tmp_path / "missing")
        for word in arguments
    ]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "new")]
    done = strata.run("generate", RESIDUAL, *words)
    assert done.returncode == 2 and says in done.stderr and not (tmp_path / "new").exists(), (
        done.stderr
    )
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["mine"]


def test_an_operation_that_cannot_be_written_is_named_with_its_place(strata, tmp_path):
    done = strata.run("generate", UNKNOWN, "-o", str(tmp_path / "new"), "--threads", "1")
    assert (
        done.returncode == 3
        and "median" in done.stderr
        and "primitive_networks.py:" in done.stderr
        and not list(tmp_path.glob("new*"))
    ), done.stderr


def test_an_empty_folder_is_filled(strata, tmp_path):
    (tmp_path / "empty").mkdir()
    done = strata.run("generate", RESIDUAL, "-o", str(tmp_path / "empty"), "--threads", "1")
    assert done.returncode == 0 and (tmp_path / "empty" / "plan.hpp").exists(), done.stderr
    assert not list(tmp_path.glob("*.partial*"))
    shutil.rmtree(tmp_path / "empty")
