# SPDX-License-Identifier: Apache-2.0
"""Exports of a real network: built, run and tested by the commands that the README of the folder
gives, without strata."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """exported(level) -> the folder of the MNIST convnet at that level; one capture for all, and
    artefacts from other comparisons of this session."""
    place = tmp_path_factory.mktemp("exports")
    environment = os.environ | {
        "STRATA_ROOT": str(ROOT),
        "XDG_DATA_HOME": str(place),
        "STRATA_PYTHON": sys.executable,
        "STRATA_TOOLS_PYTHON": sys.executable,
    }

    def get(level: str) -> Path:
        folder = place / level
        if not folder.exists():
            done = subprocess.run(
                [
                    str(PROGRAM),
                    "export",
                    "mnist_convnet",
                    "--level",
                    level,
                    "--threads",
                    "1",
                    "-o",
                    str(folder),
                ],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            assert "nothing is proven" in done.stderr
        return folder

    return get


def commands(folder: Path) -> list[str]:
    """The commands of the README: build, test, run."""
    return (folder / "README.md").read_text(encoding="utf-8").split("```\n")[1].splitlines()


def follow(command: str, folder: Path) -> subprocess.CompletedProcess:
    # what was exported needs none of these
    alone = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STRATA_", "PYTHON"))
    }
    build = {"CMAKE_BUILD_TYPE": "None", "CXXFLAGS": "-O0"} | (
        {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    )
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=alone | build | {"OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("level", ["aoti", "torchscript", "openvino", "onnxruntime"])
def test_an_export_is_built_run_and_proven_equal_by_its_own_commands_and_finds_a_wrong_artefact(
    level, exported
):
    folder = exported(level)
    build, test, run = commands(folder)
    for command in (build, test):
        done = follow(command, folder)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
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
