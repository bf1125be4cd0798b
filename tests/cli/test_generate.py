# SPDX-License-Identifier: Apache-2.0
"""`strata generate`: a folder of C++ that is built and run without PyTorch, Python and strata."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from generated import entries_of


def test_the_program_equals_the_reference_that_is_stored_with_it(program):
    done = subprocess.run(
        [program / "build" / "network", "--check"], capture_output=True, text=True
    )
    assert (
        done.returncode == 0
        and " with 1 threads, " in done.stdout  # as generate was told
        and "output: error" in done.stdout
        and "equal" in done.stdout
        and "first result" in done.stdout
    ), done.stdout + done.stderr


def test_the_program_notices_other_weights(program, tmp_path):
    import numpy as np
    from safetensors.numpy import load_file, save_file

    tensors = {
        name: np.array(value) for name, value in load_file(program / "weights.safetensors").items()
    }
    tensors["conv1.weight"][0] *= 1.1
    save_file(tensors, tmp_path / "other.safetensors")
    done = subprocess.run(
        [program / "build" / "network", "--check", "--weights", tmp_path / "other.safetensors"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "WRONG" in done.stdout
    done = subprocess.run(
        [program / "build" / "network", "--check", "--weights", tmp_path / "none.safetensors"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "none.safetensors" in done.stderr


def test_the_program_needs_onednn_and_nothing_of_python_or_pytorch(program):
    libraries = subprocess.run(
        ["ldd", program / "build" / "network"], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[0] for line in libraries.splitlines()]  # folders may be called anything
    assert any("libdnnl" in name for name in names) and "not found" not in libraries, libraries
    assert not [name for name in names for word in ("torch", "python", "strata") if word in name]


def test_classifies_a_photograph_and_refuses_what_is_none(program):
    photograph = (
        Path(importlib.util.find_spec("sklearn").submodule_search_locations[0])
        / "datasets"
        / "images"
        / "china.jpg"
    )
    done = subprocess.run(
        [program / "build" / "network", photograph], capture_output=True, text=True
    )
    if "without libjpeg" in done.stderr:
        pytest.skip("no libjpeg headers here")
    scores = [float(line.split()[0]) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(scores) == 5 and scores == sorted(scores, reverse=True), (
        done.stdout + done.stderr
    )
    done = subprocess.run([program / "build" / "network", __file__], capture_output=True, text=True)
    assert done.returncode == 1 and "JPEG" in done.stderr
    content = photograph.read_bytes()
    # height and width follow
    frame = next(content.index(mark) for mark in (b"\xff\xc0", b"\xff\xc2") if mark in content) + 5
    claiming = program / "claims.jpg"
    claiming.write_bytes(content[:frame] + b"\xff\xdc\xff\xdc" + content[frame + 4 :])
    done = subprocess.run([program / "build" / "network", claiming], capture_output=True, text=True)
    assert done.returncode == 1 and "65500 x 65500 pixels; allowed are 100 million" in done.stderr
    cut = program / "cut.jpg"
    cut.write_bytes(content[: len(content) // 2])
    done = subprocess.run([program / "build" / "network", cut], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "") and "Premature end" in done.stderr, done


def test_names_of_a_foreign_file_do_nothing_to_a_terminal(program, tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    foreign = tmp_path / "foreign.safetensors"
    image = np.zeros((1, 1, 28, 28), np.float32)
    save_file({"0/x": image, "0/\x1b[31m\x9b2Jx": np.zeros(1, np.float32)}, foreign)
    done = subprocess.run([program / "build" / "network", foreign], capture_output=True)
    assert done.returncode == 1 and b"[31m" in done.stderr, done
    assert b"\x1b" not in done.stdout + done.stderr and b"\x9b" not in done.stdout + done.stderr


def test_the_code_names_the_users_layers_shapes_and_bytes(program):
    stage = next((program / "stages").glob("*conv2.cpp")).read_text()
    assert (
        "// conv2 (Conv2d, model.py:" in stage
        and "bytes" in stage
        and 'p.weight("conv2.weight", {64, 32, 3, 3})' in stage
        and "relu()" in stage
    )
    assert (
        "arena_bytes" in (program / "plan.hpp").read_text()
        and "conv1.weight" not in (program / "README.md").read_text()
    )


def test_the_program_runs_the_tensors_of_a_file_and_writes_what_they_give(program, tmp_path):
    import numpy as np
    from safetensors.numpy import load_file

    results = tmp_path / "outputs.safetensors"
    done = subprocess.run(
        [program / "build" / "network", entries_of(program, tmp_path), results, "--threads", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.count("output F32 [") == 2, (
        done.stdout + done.stderr
    )
    outputs, reference = load_file(results), load_file(program / "reference.safetensors")
    assert outputs.keys() == {"0/output", "1/output"}
    off = np.linalg.norm(outputs["0/output"] - reference["output/output"]) / np.linalg.norm(
        reference["output/output"]
    )
    assert off <= reference["bound/output"] and not np.array_equal(
        outputs["0/output"], outputs["1/output"]
    )


def test_the_program_refuses_tensors_of_another_type_shape_name_or_number_and_damaged_files(
    program, tmp_path
):
    import numpy as np

    network, right = (
        program / "build" / "network",
        np.zeros(
            [
                int(n)
                for n in re.search(
                    r"inputs\[\] = \{\{\"x\", \{([\d, ]+)\}", (program / "plan.hpp").read_text()
                )[1].split(",")
            ],
            np.float32,
        ),
    )
    takes = "; the network takes F32 [" + ",".join(map(str, right.shape))
    for changed, message in (
        ({"0_x": right.astype(np.float64)}, "'0/x' is F64"),
        ({"0_x": right[:, :, 1:]}, takes),
        ({"1_x": right[:0]}, takes),
        ({"0_x": right.reshape(-1)[:1]}, "'0/x' is F32 [1]" + takes),
        ({"0_x": None}, "lacks '0/x'"),
        ({"0_other": right}, "'0/other'"),
        ({"2_xx": right}, "'2/xx'"),
        ({"3_x": right}, "'3/x'"),
    ):
        done = subprocess.run(
            [network, entries_of(program, tmp_path, **changed)], capture_output=True, text=True
        )
        assert done.returncode == 1 and message in done.stderr and not done.stdout, (
            changed.keys(),
            done.stdout,
            done.stderr,
        )
    whole = entries_of(program, tmp_path).read_bytes()
    for damaged in (
        whole[:-1],
        whole[:100],
        whole[:4],
        whole + b"x",
        whole.replace(b'"data_offsets":[0,', b'"data_offsets":[4,'),
    ):
        (tmp_path / "damaged.safetensors").write_bytes(damaged)
        done = subprocess.run(
            [network, tmp_path / "damaged.safetensors"], capture_output=True, text=True
        )
        assert done.returncode == 1 and "damaged.safetensors" in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_a_program_says_how_it_is_used(program, words):
    done = subprocess.run([program / "build" / "network", *words], capture_output=True, text=True)
    assert (
        done.returncode == 0 and "INPUTS.safetensors" in done.stdout and "--profile" in done.stdout
    )
    refused = subprocess.run(
        [program / "build" / "network", "--chek"], capture_output=True, text=True
    )
    assert refused.returncode == 2 and "not understood: --chek" in refused.stderr


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("output/output", lambda t: t.repeat(50, 0)),
        ("output/output", lambda t: t[:, :1]),
        ("output/output", lambda t: t.astype("f4")),
        ("bound/output", lambda t: t.reshape(-1)[:0]),
        ("input/x", lambda t: t[:0]),
    ],
)
def test_a_reference_of_another_shape_is_refused_before_anything_reads_it(
    program, tmp_path, name, change
):
    from safetensors.numpy import load_file, save_file

    copy = tmp_path / "copy"
    copy.mkdir()
    for file in ("build/network", "build/libmodel.so", "weights.safetensors"):
        shutil.copy(program / file, copy)
    tensors = load_file(program / "reference.safetensors")
    save_file(tensors | {name: change(tensors[name]).copy()}, copy / "reference.safetensors")
    done = subprocess.run([copy / "network", "--check"], capture_output=True, text=True)
    assert (
        done.returncode == 1
        and f"'{name}' is" in done.stderr
        and "the network takes" in done.stderr
        and not done.stdout
    ), done.stdout + done.stderr


def test_a_program_can_be_moved_copied_and_installed(program, tmp_path):
    """Neither the build folder's place nor strata's oneDNN is needed by what was installed."""
    moved = tmp_path / "moved"
    shutil.copytree(program, moved, symlinks=True)
    done = subprocess.run(
        [moved / "build" / "network", "--check", "--threads", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    libraries = subprocess.run(
        ["ldd", moved / "build" / "network"], capture_output=True, text=True, check=True
    ).stdout
    assert str(moved / "build" / "libmodel.so") in libraries
    installed = subprocess.run(
        ["cmake", "--install", program / "build", "--prefix", tmp_path / "image"],
        capture_output=True,
        text=True,
    )
    assert installed.returncode == 0, installed.stderr
    shutil.move(tmp_path / "image", tmp_path / "elsewhere")
    names = {one.name for one in (tmp_path / "elsewhere").iterdir()}
    assert {
        "network",
        "libmodel.so",
        "weights.safetensors",
        "reference.safetensors",
    } <= names and [name for name in names if "dnnl" in name] == ["libdnnl.so.3"]
    libraries = subprocess.run(
        ["ldd", tmp_path / "elsewhere" / "network"], capture_output=True, text=True, check=True
    ).stdout
    assert (
        str(ROOT) not in libraries
        and str(program) not in libraries
        and "not found" not in libraries
    )
    done = subprocess.run(
        [tmp_path / "elsewhere" / "network", "--check", "--threads", "1"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_names_no_place_of_this_machine_and_may_be_read_by_all(program):
    for path in program.iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o777 == 0o666 & ~umask(), path
            assert path.suffix == ".safetensors" or str(ROOT).encode() not in path.read_bytes(), (
                path
            )
    assert (
        (program / "kit").stat().st_mode & 0o777
        == program.stat().st_mode & 0o777
        == 0o777 & ~umask()
    )


def umask() -> int:
    hidden = os.umask(0)
    os.umask(hidden)
    return hidden


def test_only_those_files_of_the_kit_go_along_that_the_program_calls(program, trainer):
    kits = [{path.name for path in (one / "kit").iterdir()} for one in (program, trainer)]
    assert not kits[0] & {
        "losses.cpp",
        "gradients.cpp",
        "batch_norm.cpp",
        "layer_norm.cpp",
        "descend_product.cpp",
    }
    assert {"losses.cpp", "gradients.cpp", "batch_norm.cpp"} <= kits[1]


def test_a_readme_offers_photographs_to_networks_that_take_images_alone(strata, program, tmp_path):
    images = (program / "README.md").read_text()
    assert (
        "photograph.jpg" in images and "mean 0.1307" in images and not re.search(r"\dF\b", images)
    )
    done = strata.run(
        "generate",
        f"{ROOT / 'examples' / 'tiny_mlp.py'}:build",
        "-o",
        str(tmp_path / "mlp"),
        "--threads",
        "1",
    )
    assert done.returncode == 0, done.stderr
    readme = (tmp_path / "mlp" / "README.md").read_text()
    assert (
        "photograph" not in readme
        and "INPUTS.safetensors" in readme
        and "@" not in readme
        and "cmake --install build" in readme
    )
