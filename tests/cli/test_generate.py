# SPDX-License-Identifier: Apache-2.0
"""`strata generate`: a folder of C++ that is built and run without PyTorch, Python and strata, and
what is refused before anything is written."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

RESIDUAL = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:residual_network"
DROPPING = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:dropping_network"
UNKNOWN = f"{ROOT / 'tests' / 'levels' / 'primitive_networks.py'}:unknown_operation"


@pytest.fixture(scope="module")
def place(tmp_path_factory, cache):
    from conftest import Strata

    return Strata(tmp_path_factory.mktemp("generate") / "place", cache)


def build(folder: Path, like: Path | None = None) -> None:
    """`like`: a folder that was built; what both have of the kit need not be compiled again."""
    steps = [
        [
            "cmake",
            "-S",
            folder,
            "-B",
            folder / "build",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
            f"-DDNNL_ROOT={ROOT / '.venv'}",
        ],
        ["cmake", "--build", folder / "build", "-j2"],
    ]
    for command in steps:
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
        if like and command is steps[0]:
            kits = [
                {path.name: path.read_bytes() for path in (one / "kit").iterdir()}
                for one in (folder, like)
            ]
            assert all(kits[0][name] == kits[1][name] for name in kits[0].keys() & kits[1].keys())
            objects = Path("build", "CMakeFiles", "model.dir", "kit")
            (folder / objects).mkdir(parents=True, exist_ok=True)
            for one in (like / objects).glob("*.o"):
                if one.name.removesuffix(".o") in kits[0]:
                    shutil.copyfile(one, folder / objects / one.name)


@pytest.fixture(scope="module")
def program(place):
    """A generated MNIST network, built."""
    if not (ROOT / ".venv" / "lib" / "libdnnl.so").exists():
        pytest.skip("no oneDNN in strata's own environment")
    folder = place.folder / "mnist"
    done = place.run("generate", "mnist_convnet", "-o", str(folder), "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout and "cmake -S" in done.stdout
    build(folder)
    return folder


def test_the_program_equals_the_reference_that_is_stored_with_it(program):
    done = subprocess.run(
        [program / "build" / "network", "--check", "--threads", "1"], capture_output=True, text=True
    )
    assert (
        done.returncode == 0
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
    assert "libdnnl" in libraries and not any(
        word in libraries for word in ("torch", "python", "strata", "not found")
    )


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


def entries_of(program: Path, folder: Path, **changed) -> Path:
    """A file of two entries made of the stored input; `changed`: by name, None takes one away."""
    from safetensors.numpy import load_file, save_file

    given = load_file(program / "reference.safetensors")["input/arg0"]
    tensors = {"0/arg0": given, "1/arg0": given * 0.5} | {
        name.replace("_", "/"): value for name, value in changed.items()
    }
    save_file(
        {name: value for name, value in tensors.items() if value is not None},
        folder / "inputs.safetensors",
    )
    return folder / "inputs.safetensors"


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
                    r"inputs\[\] = \{\{\"arg0\", \{([\d, ]+)\}", (program / "plan.hpp").read_text()
                )[1].split(",")
            ],
            np.float32,
        ),
    )
    takes = "; the network takes F32 [" + ",".join(map(str, right.shape))
    for changed, said in (
        ({"0_arg0": right.astype(np.float64)}, "'0/arg0' is F64"),
        ({"0_arg0": right[:, :, 1:]}, takes),
        ({"1_arg0": right[:0]}, takes),
        ({"0_arg0": right.reshape(-1)[:1]}, "'0/arg0' is F32 [1]" + takes),
        ({"0_arg0": None}, "lacks '0/arg0'"),
        ({"0_other": right}, "'0/other'"),
        ({"2_arg0x": right}, "'2/arg0x'"),
        ({"3_arg0": right}, "'3/arg0'"),
    ):
        done = subprocess.run(
            [network, entries_of(program, tmp_path, **changed)], capture_output=True, text=True
        )
        assert done.returncode == 1 and said in done.stderr and not done.stdout, (
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
        ("input/arg0", lambda t: t[:0]),
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
    } <= names and any(name.startswith("libdnnl.so") for name in names)
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


def test_a_readme_offers_photographs_to_networks_that_take_images_alone(place, program, tmp_path):
    images = (program / "README.md").read_text()
    assert (
        "photograph.jpg" in images and "mean 0.1307" in images and not re.search(r"\dF\b", images)
    )
    done = place.run(
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


@pytest.fixture(scope="module")
def trainer(place, program):
    """A generated training step of a residual network with batch norms, built."""
    folder = place.folder / "trainer"
    done = place.run("generate", RESIDUAL, "-o", str(folder), "--threads", "1", "--train")
    assert done.returncode == 0, done.stderr
    build(folder, like=program)
    return folder


def test_a_training_step_has_the_loss_and_gradients_of_the_reference_and_notices_other_weights(
    trainer, tmp_path
):
    import numpy as np
    from safetensors.numpy import load_file, save_file

    network = trainer / "build" / "network"
    done = subprocess.run([network, "--check", "--threads", "1"], capture_output=True, text=True)
    gradients = sum(
        name.startswith("output/grad:") for name in load_file(trainer / "reference.safetensors")
    )
    assert (
        done.returncode == 0
        and gradients >= 8
        and f"{gradients + 1} of {gradients + 1} tensors equal" in done.stdout
    ), done.stdout + done.stderr
    tensors = {
        name: np.array(value) for name, value in load_file(trainer / "weights.safetensors").items()
    }
    first = next(name for name in tensors if tensors[name].ndim == 4)
    tensors[first][0] *= 1.1
    save_file(tensors, tmp_path / "other.safetensors")
    done = subprocess.run(
        [network, "--check", "--weights", tmp_path / "other.safetensors"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "grad:" in done.stdout and "WRONG" in done.stdout


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_a_training_program_lowers_the_loss_and_saves_what_it_trained_by_pytorchs_names(
    trainer, tmp_path, optimiser
):
    import numpy as np
    from safetensors.numpy import load_file

    saved = tmp_path / "trained.safetensors"
    done = subprocess.run(
        [
            trainer / "build" / "network",
            "--steps",
            "40",
            "--optimiser",
            optimiser,
            "--lr",
            "0.05" if optimiser == "sgd" else "0.003",
            "--threads",
            "1",
            "--save",
            saved,
        ],
        capture_output=True,
        text=True,
    )
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and losses[-1] < 0.5 * losses[0], done.stdout + done.stderr
    before, after = load_file(trainer / "weights.safetensors"), load_file(saved)
    assert set(after) == set(before) and all(
        after[name].shape == before[name].shape and not np.array_equal(after[name], before[name])
        for name in after
    )
    assert {
        int(value) for name, value in after.items() if name.endswith("num_batches_tracked")
    } == {40}


def build_with_kit(folder: Path, built: Path) -> Path:
    """The program in `folder`; what the folder of another has of the kit's objects, which are the
    same for all, is not compiled again."""
    flags = dict(
        line.split(" = ", 1)
        for line in (built / "build" / "CMakeFiles" / "model.dir" / "flags.make")
        .read_text()
        .splitlines()
        if " = " in line
    )
    library = next(
        line.split("=", 1)[1]
        for line in (built / "build" / "CMakeCache.txt").read_text().splitlines()
        if line.startswith("DNNL_LIBRARY:")
    )
    words = shlex.split(" ".join(flags[f"CXX_{key}"] for key in ("DEFINES", "INCLUDES", "FLAGS")))
    objects = {
        path.name.removesuffix(".o"): path
        for path in (built / "build" / "CMakeFiles" / "model.dir" / "kit").glob("*.o")
    }
    more = [path for path in sorted((folder / "kit").glob("*.cpp")) if path.name not in objects]
    (folder / "all.cpp").write_text(
        "".join(
            f'#include "{path.relative_to(folder)}"\n'
            for path in [
                *sorted(folder.glob("[impt]*.cpp")),
                *sorted((folder / "stages").iterdir()),
            ]
        )
    )
    command = [
        "c++",
        f"-I{folder}",
        *words,
        folder / "all.cpp",
        *more,
        *objects.values(),
        library,
        f"-Wl,-rpath,{Path(library).parent}",
        "-o",
        folder / "network",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "network"


def test_a_training_step_under_its_least_memory_budget_trains_to_the_same_bytes(
    place, trainer, tmp_path
):
    words = ("generate", DROPPING, "--threads", "1", "--train", "-o")
    whole = place.run(*words, str(tmp_path / "whole"))
    refused = place.run(*words, str(tmp_path / "none"), "--memory-budget", "1%")
    assert (
        whole.returncode == 0
        and refused.returncode == 1
        and "cannot be met" in refused.stderr
        and not (tmp_path / "none").exists()
    ), whole.stderr + refused.stderr
    least, every = map(
        int,
        re.search(
            r"the least found is (\d+) bytes, (\d+) with every result kept", refused.stderr
        ).groups(),
    )
    lean = place.run(*words, str(tmp_path / "lean"), "--memory-budget", f"{least}B")
    assert (
        lean.returncode == 0
        and f"{least} bytes for activations" in lean.stdout
        and "steps of the forward phase are repeated" in lean.stdout
        and f"{every} bytes" in whole.stdout
    ), lean.stderr
    code = "".join(path.read_text() for path in (tmp_path / "lean" / "stages").iterdir())
    assert "(BatchNorm2d) with relu, again" in code and "dropout_again(p, " in code
    saved = []
    for name in ("whole", "lean"):
        network = build_with_kit(tmp_path / name, trainer)
        checked = subprocess.run(
            [network, "--check", "--threads", "1"], capture_output=True, text=True
        )
        trained = subprocess.run(
            [
                network,
                "--steps",
                "4",
                "--lr",
                "0.1",
                "--threads",
                "1",
                "--save",
                tmp_path / f"{name}.safetensors",
            ],
            capture_output=True,
            text=True,
        )
        assert checked.returncode == 0 and trained.returncode == 0, (
            checked.stdout + checked.stderr + trained.stderr
        )
        saved.append((tmp_path / f"{name}.safetensors").read_bytes())
    assert saved[0] == saved[1]
    from safetensors.numpy import load

    before = load((tmp_path / "lean" / "weights.safetensors").read_bytes())
    assert all((before[name] != value).any() for name, value in load(saved[1]).items())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda t: t[:-1]),
        ("labels", lambda t: t.astype("i4")),
        ("output/loss", lambda t: t.repeat(9)),
        ("grad", lambda t: t.repeat(9, 0)),
        ("input/arg0", lambda t: t.astype("f8")),
    ],
)
def test_a_batch_of_another_shape_is_refused_before_a_step_reads_it(
    trainer, tmp_path, name, change
):
    from safetensors.numpy import load_file, save_file

    for file in ("build/network", "build/libmodel.so", "weights.safetensors"):
        shutil.copy(trainer / file, tmp_path)
    tensors = load_file(trainer / "reference.safetensors")
    name = (
        next(key for key in tensors if key.startswith("output/grad:") and tensors[key].ndim == 4)
        if name == "grad"
        else name
    )
    save_file(
        tensors
        | {
            name: change(
                tensors[name].reshape(-1) if not tensors[name].ndim else tensors[name]
            ).copy()
        },
        tmp_path / "reference.safetensors",
    )
    done = subprocess.run([tmp_path / "network", "--check"], capture_output=True, text=True)
    assert done.returncode == 1 and f"'{name}' is" in done.stderr and not done.stdout, (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--steps"],
        ["--steps", "0"],
        ["--steps", "5", "--lr", "fast"],
        ["--steps", "5", "--optimiser", "adan"],
        ["--steps", "5", "--beta1", "1"],
        ["--chek"],
        ["--threads", "-1", "--check"],
    ],
)
def test_a_training_program_refuses_words_that_it_does_not_know(trainer, words):
    done = subprocess.run([trainer / "build" / "network", *words], capture_output=True, text=True)
    assert done.returncode == 2 and "--check | --steps N" in done.stderr


def test_a_program_in_bfloat16_is_within_the_errors_of_eager_in_that_mode_or_says_that_the_processor_has_none(
    place, program, tmp_path
):
    done = place.run(
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
    more, place, tmp_path
):
    done = place.run(
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


def test_tune_times_the_kernels_once_and_writes_the_program_with_the_fastest(place, tmp_path):
    if not Path(os.environ.get("STRATA_LEVEL_BUILD", ""), "strata_generate").exists():
        pytest.skip("the level static is not built")
    began = []
    for name in ("first", "second"):
        done = place.run(
            "generate", RESIDUAL, "-o", str(tmp_path / name), "--threads", "1", "--tune"
        )
        assert done.returncode == 0, done.stderr
        (times,) = Path(place.environment["STRATA_CACHE"]).glob(
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
    place, tmp_path
):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch in the tests' own environment")
    folder = tmp_path / "calls"
    done = place.run(
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
    checked = subprocess.run(
        [folder / "build" / "network", "--check", "1"], capture_output=True, text=True
    )
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

    for changed, said in (
        ({}, ""),
        (
            {"0_arg0": np.zeros((1, 2), np.float64)},
            "input arg0 is F64 [1,2]; this artefact takes F32 [",
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
        assert ran.returncode == (1 if said else 0) and said in ran.stderr, ran.stdout + ran.stderr


@pytest.mark.parametrize("mode", [[], ["--train"]], ids=["infer", "train"])
def test_the_target_cuda_gives_a_folder_that_holds_all_it_includes_and_calls_no_other_library(
    mode, place, tmp_path
):
    folder = tmp_path / "gpu"
    done = place.run(
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
        (["--train", "--loss", "mse"], "--loss"),
        (["--memory-budget", "1MB"], "add --train"),
        (["--train", "--memory-budget", "2XB"], "unknown unit 'XB'"),
        (["-o", "{full}"], "not empty"),
        (["-o", "{file}"], "this is a file"),
        (["-o", "{missing}/r"], "is not there"),
        (["--bach", "2"], "--bach"),
    ],
)
def test_refuses_bad_options_before_anything_starts(arguments, says, place, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    words = [
        word.format(full=tmp_path / "full", file=tmp_path / "file", missing=tmp_path / "missing")
        for word in arguments
    ]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "new")]
    done = place.run("generate", RESIDUAL, *words)
    assert done.returncode == 2 and says in done.stderr and not (tmp_path / "new").exists(), (
        done.stderr
    )
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["mine"]


def test_an_operation_that_cannot_be_written_is_named_with_its_place(place, tmp_path):
    done = place.run("generate", UNKNOWN, "-o", str(tmp_path / "new"), "--threads", "1")
    assert (
        done.returncode == 3
        and "sort" in done.stderr
        and "primitive_networks.py:" in done.stderr
        and not any(tmp_path.iterdir())
    ), done.stderr


def test_an_empty_folder_is_filled(place, tmp_path):
    (tmp_path / "empty").mkdir()
    done = place.run("generate", RESIDUAL, "-o", str(tmp_path / "empty"), "--threads", "1")
    assert done.returncode == 0 and (tmp_path / "empty" / "plan.hpp").exists(), done.stderr
    assert not list(tmp_path.glob("*.partial*"))
    shutil.rmtree(tmp_path / "empty")
