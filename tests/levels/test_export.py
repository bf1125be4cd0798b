# SPDX-License-Identifier: Apache-2.0
"""Exports of a real network: built, run and tested by the commands that the README of the folder
gives, without strata."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from written_folders import PROGRAM, commands, follow, libraries_of, write

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """exported(level) -> the folder of the MNIST convnet at that level."""
    place = tmp_path_factory.mktemp("exports")
    return lambda level: write(place, level, "export", "--level", level)


@pytest.mark.parametrize(
    "level",
    [pytest.param("aoti", marks=pytest.mark.long), "torchscript", "openvino", "onnxruntime"],
)
def test_an_export_is_built_run_and_proven_equal_by_its_own_commands_and_finds_a_wrong_artefact(
    level, exported
):
    folder = exported(level)
    build, test, run = commands(folder)
    for command in (build, test):
        done = follow(command, folder)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "libpython" not in libraries_of(folder / "build" / "serve")
    ran = follow(run, folder)
    assert ran.returncode == 0, ran.stderr
    outputs = [
        line
        for line in ran.stdout.splitlines()
        if line.startswith(("0/output", "1/output", "2/output", "3/output"))
    ]
    # four inputs, four results
    assert len(outputs) == 4 and len({line.split("/", 1)[1] for line in outputs}) == 4
    refuses_what_it_was_not_made_for(level, folder, run)
    swap_inputs(folder)
    wrong = follow(test, folder)
    assert wrong.returncode != 0 and "is off by" in wrong.stdout


def tensor_files(folder: Path):
    """The module that the export ships."""
    sys.path.insert(0, str(folder))
    try:
        import tensor_files
    finally:
        sys.path.remove(str(folder))
    return tensor_files


def refuses_what_it_was_not_made_for(level: str, folder: Path, run: str) -> None:
    """Inputs of another type, shape, name or number, weights likewise, and files of the artefact
    that were cut short (bench/hostile_inputs.py gives many more)."""
    import numpy as np

    files, wrong = tensor_files(folder), folder / "test" / "wrong.safetensors"
    right = files.read_safetensors(folder / "test" / "inputs.safetensors")["0/x"]
    takes = "; this artefact takes F32 [" + ",".join(map(str, right.shape)) + "]"
    for tensors, message in (
        (
            {"0/x": right.astype("f8")},
            f"input x is F64 [{','.join(map(str, right.shape))}]{takes}",
        ),
        ({"0/x": right[:0]}, takes),
        ({"0/x": np.concatenate([right, right])}, takes),
        ({"0/x": right[..., 1:]}, takes),
        ({"0/x": np.zeros((0, 4), "f4")}, "input x is F32 [0,4]" + takes),
        ({"0/x": right.reshape(-1)[:1]}, "input x is F32 [1]" + takes),
        ({"0/x": right, "1/x": right[:, :0]}, "input 1/x" + " is"),
        ({"0/x": right, "0/more": right}, "'0/more'"),
        ({"0/other": right}, "lack '0/x'"),
        ({}, "lack '0/x'"),
    ):
        files.write_safetensors(wrong, tensors)
        done = follow(run.replace("inputs.safetensors", "wrong.safetensors"), folder)
        assert done.returncode == 1 and message in done.stderr and not done.stdout, (
            message,
            done.stdout,
            done.stderr,
        )
    for name in ("package.pt2", "script.pt", "model.bin", "model.onnx"):
        if (folder / name).exists():
            whole = (folder / name).read_bytes()
            (folder / name).write_bytes(whole[:-1])
            done = follow(run, folder)
            (folder / name).write_bytes(whole)
            assert (
                done.returncode == 1
                and f"{name} has {len(whole) - 1} bytes; this artefact's has {len(whole)}"
                in done.stderr
            ), done.stderr
    if level != "aoti":
        return
    weights = folder / "weights.safetensors"
    data, stored = weights.read_bytes(), dict(files.read_safetensors(weights))
    for changed, message in (
        (
            {"conv1.weight": stored["conv1.weight"].view("i4")},
            "conv1.weight of ./weights.safetensors is I32",
        ),
        ({"conv1.weight": np.concatenate([stored["conv1.weight"]] * 9)}, "this artefact takes F32"),
        ({"conv1.weight": None}, "lacks the weight 'conv1.weight'"),
        ({"more": np.zeros(1, "f4")}, "'more'"),
    ):
        files.write_safetensors(
            weights,
            {name: value for name, value in (stored | changed).items() if value is not None},
        )
        done = follow(run, folder)
        weights.write_bytes(data)
        assert done.returncode == 1 and message in done.stderr and not done.stdout, (
            message,
            done.stdout,
            done.stderr,
        )


def swap_inputs(folder: Path) -> None:
    """Exchanges the first two inputs, so that the program's results belong to other ones."""
    files = tensor_files(folder)
    path = folder / "test" / "inputs.safetensors"
    inputs = dict(files.read_safetensors(path))
    for name in {name.split("/", 1)[1] for name in inputs}:
        inputs[f"0/{name}"], inputs[f"1/{name}"] = inputs[f"1/{name}"], inputs[f"0/{name}"]
    files.write_safetensors(path, inputs)


def test_a_program_says_what_is_wrong_with_its_input(exported, tmp_path):
    folder = exported("torchscript")
    program = folder / "build" / "serve"
    assert program.exists(), "the test before builds it"
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes((folder / "test" / "inputs.safetensors").read_bytes()[:1000])
    named_otherwise = tmp_path / "other.safetensors"
    header = json.dumps(
        {"0/other": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    ).encode()
    named_otherwise.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    for words, message in (
        ([], "usage"),
        ([folder, "/nowhere"], "/nowhere cannot be read"),
        ([folder, damaged], "outside the file"),
        ([folder, named_otherwise], "the inputs lack '0/x'"),
        ([tmp_path, damaged], "script.pt"),
    ):
        done = subprocess.run(
            [str(program), *map(str, words)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and message in done.stderr, (words, done.stderr)


# a release of ONNX Runtime as its CMake files describe it, and all that this one has: its version
OLD_LIBRARY = """
static const void* const* table(unsigned version) { return 0; }
static const char* version(void) { return "1.8.1"; }
static const struct { const void* const* (*table)(unsigned); const char* (*version)(void); }
    base = {table, version};
const void* OrtGetApiBase(void) { return &base; }
"""
OLD_RELEASE = """
add_library(onnxruntime::onnxruntime SHARED IMPORTED)
set_target_properties(onnxruntime::onnxruntime PROPERTIES
  IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libonnxruntime.so.1")
"""


def test_a_release_of_onnxruntime_that_is_named_is_linked_and_one_that_is_too_old_refused(
    exported, tmp_path
):
    folder = exported("onnxruntime")
    (tmp_path / "old.c").write_text(OLD_LIBRARY, encoding="utf-8")
    (tmp_path / "onnxruntimeConfig.cmake").write_text(OLD_RELEASE, encoding="utf-8")
    words = ["-shared", "-fPIC", "-Wl,-soname,libonnxruntime.so.1", "-o", "libonnxruntime.so.1"]
    subprocess.run(["gcc", *words, "old.c"], cwd=tmp_path, check=True)
    build = f"cmake -S . -B '{tmp_path}/build' -Donnxruntime_DIR='{tmp_path}'"
    built = follow(f"{build} && cmake --build '{tmp_path}/build'", folder)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    ran = follow(f"'{tmp_path}/build/serve' . test/inputs.safetensors", folder)
    assert ran.returncode == 1 and "ONNX Runtime 1.8.1 is linked" in ran.stderr, ran.stderr


def test_without_a_library_of_onnxruntime_the_build_says_what_to_install(exported, tmp_path):
    build = f"cmake -S . -B '{tmp_path}/build' -DSTRATA_PYTHON=/nowhere/python"
    done = follow(build, exported("onnxruntime"))
    assert done.returncode != 0 and "pip install onnxruntime" in done.stderr, done.stderr


def test_a_network_for_cuda_is_refused_where_the_library_of_onnxruntime_has_none(
    exported, tmp_path
):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    folder = tmp_path / "on_cuda"
    shutil.copytree(exported("onnxruntime"), folder, ignore=shutil.ignore_patterns("build"))
    case = folder / "case.hpp"
    text = case.read_text(encoding="utf-8")
    case.write_text(text.replace('kDevice = "cpu"', 'kDevice = "cuda"'), encoding="utf-8")
    build, _, run = commands(folder)
    assert follow(build, folder).returncode == 0
    ran = follow(run, folder)
    assert ran.returncode == 1 and "CUDA execution provider is not enabled" in ran.stderr, (
        ran.stdout + ran.stderr
    )
