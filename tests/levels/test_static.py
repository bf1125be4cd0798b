# SPDX-License-Identifier: Apache-2.0
"""The level static: generated programs on odd shapes against float64, weights that change, what is
refused and how it is said, memory and allocations."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from captured import captured
from client import ROOT, Failed, Worker, compare_all, error, level_folder, prepare
from envelopes import SETS, bounds, reference
from level_builds import BUILD, STATIC
from recorded_operations import lacking
from safetensors.numpy import load_file, save_file
from torch import nn

if not STATIC:
    pytest.skip((BUILD / "level_static.missing").read_text(), allow_module_level=True)


@pytest.mark.parametrize(
    "name",
    [
        "image_operations",
        "image_sizes",
        "recurrent_operations",
        "typed_operations",
        "place_operations",
        "part_operations",
        "function_operations",
        "residual_operations",
        "kernel_operations",
        "block_operations",
    ],
)
def test_computes_what_eager_computes_on_odd_shapes_with_every_weight_set(name, bundles, running):
    bundle = bundles(name)
    worker, loaded = running("static", name)
    assert loaded["settings"]["layout"] == "any" and loaded["settings"]["graph"] == "exported"
    for weights in (*SETS, "timed"):  # and back again: the load steps run for every set
        worker.ask("weights", weights=weights)
        outputs, bound = worker.prove([0, 1]), bounds(bundle, weights)
        assert {key.split("/")[1] for key in outputs} == bound.keys()
        wrong = {
            key: found
            for key, value in outputs.items()
            if not (found := error({key: value}, reference(bundle, weights)))
            <= bound[key.split("/")[1]]
        }
        assert not wrong, (
            weights,
            {key: (found, bound[key.split("/")[1]]) for key, found in wrong.items()},
        )


def test_gives_convolutions_to_the_kernels_that_are_faster_and_says_so_in_the_program(
    bundles, artefacts
):
    program = "".join(
        path.read_text()
        for path in sorted(
            (artefacts("static", "kernel_operations") / "program" / "stages").iterdir()
        )
    )
    called = {
        name: re.findall(r'p\.step\("inner\.([^"]+)"\);(?:\n.+)*?\n  ' + name + r"\(p,", program)
        for name in ("winograd_convolution", "direct_convolution", "direct_linear", "convolution")
    }
    assert called == {
        "winograd_convolution": ["wide", "same", "same", "inner"],
        "direct_convolution": ["halved", "quarter", "point", "last", "one"],
        "direct_linear": ["hidden"],
        "convolution": ["stem"],
    }
    residual = next(
        part
        for part in program.split("p.step(")
        if part.startswith('"inner.same"') and "plus(" in part
    )
    over, result = (
        re.search(r"plus\((v::\w+)\)", residual)[1],
        re.search(r"\.result = (v::\w+)", residual)[1],
    )
    plan = (artefacts("static", "kernel_operations") / "program" / "plan.hpp").read_text()
    offset = {
        name: re.search(rf"Tensor {name[3:]} = (\w+)\((\d+),", plan).groups()
        for name in (over, result)
    }
    assert offset[over] == offset[result]  # in place: the case that the proof above must hold for


def test_the_variant_measured_times_every_kernel_where_it_can_run_and_takes_the_fastest(
    bundles, tmp_path
):
    assert prepare("static", bundles("kernel_operations"), tmp_path, variant="measured") == {
        "ok": True
    }
    times = json.loads((tmp_path / "kernels.json").read_text())
    assert {kernel for found in times.values() for kernel in found} == {
        "library",
        "winograd",
        "direct",
    }
    assert all("library" in found and min(found.values()) > 0 for found in times.values())
    program = "".join(path.read_text() for path in (tmp_path / "program" / "stages").iterdir())
    # of equal times the first
    fastest = [
        min(
            (kernel for kernel in ("library", "winograd", "direct") if kernel in found),
            key=found.get,
        )
        for found in times.values()
    ]
    for kernel, calls in (
        ("library", ("convolution(p,", "linear(p,")),
        ("winograd", ("winograd_convolution(p,",)),
        ("direct", ("direct_convolution(p,", "direct_linear(p,")),
    ):
        assert sum(program.count(f"  {call}") for call in calls) == fastest.count(kernel), (
            kernel,
            times,
        )
    with Worker("static", bundles("kernel_operations"), tmp_path, variant="measured") as worker:
        assert worker.load()["settings"]["autotune"] is True
        for weights in ("generic1", "timed"):
            worker.ask("weights", weights=weights)
            assert error(
                worker.prove([0, 1]), reference(bundles("kernel_operations"), weights)
            ) <= max(bounds(bundles("kernel_operations"), weights).values())


def test_fuses_what_onednn_does_one_by_one_and_says_what_memory_it_needs(bundles, running):
    facts = running("static", "resnet18")[0].ask("report")["facts"]
    with Worker("onednn", bundles("resnet18")) as other:
        other.load()
        one_by_one = other.ask("report")["facts"]
    assert facts["primitives"] < one_by_one["primitives"] / 2 and facts["reference_kernels"] == 0
    assert 0 < facts["least_arena_bytes"] <= facts["arena_bytes"] < one_by_one["buffer_bytes"] / 4
    folded = (
        4800  # of a batch norm's two numbers a channel one is left, the bias of the convolution
    )
    assert facts["weight_bytes"] >= 4 * (
        json.loads((bundles("resnet18") / "bundle.json").read_text())["parameters"] - folded
    )


def test_counts_the_library_and_the_weights_as_what_must_be_shipped(bundles, artefacts, running):
    loaded = running("static", "resnet18")[1]
    library = artefacts("static", "resnet18") / "network.so"
    assert (
        loaded["artefact_bytes"]
        == library.stat().st_size
        + (bundles("resnet18") / "weights" / "timed.safetensors").stat().st_size
    )


def test_the_operations_of_level_json_are_those_that_the_generator_knows():
    known = json.loads(
        subprocess.run(
            [BUILD / "strata_generate", "--operations"], capture_output=True, check=True
        ).stdout
    )
    assert (
        json.loads((level_folder("static") / "level.json").read_text())["operations"] == known
        and len(known) > 50
    )


def test_has_every_operation_that_torchvisions_classifiers_use_in_inference():
    assert not lacking("static")


def test_an_operation_that_it_lacks_is_unsupported_with_its_place(bundles, tmp_path):
    answer = prepare("static", bundles("unknown_operation"), tmp_path)
    assert (
        answer["ok"] is False
        and answer["code"] == "unsupported"
        and re.search(r"no operation median \(.*primitive_networks\.py:\d+", answer["what"])
    )


@pytest.mark.parametrize("level", ["static", "onednn"])
def test_an_index_out_of_range_is_an_error_with_its_layer_and_is_never_read(
    level, bundles, artefacts, tmp_path
):
    bundle = bundles("keywords")
    inputs = load_file(bundle / "inputs.safetensors")
    inputs["0/ids"][1, 2] = 50
    save_file(inputs, tmp_path / "beyond.safetensors")
    with Worker(level, bundle, cache=artefacts(level, "keywords")) as worker:
        worker.load()
        worker.ask("inputs", path=str(tmp_path / "beyond.safetensors"))
        with pytest.raises(Failed, match=r"index 50 .*number 14.* out of range for the 50") as told:
            worker.prove([0])
        assert level == "onednn" or ": embed: " in str(told.value)
        worker.ask("inputs", path=str(bundle / "inputs.safetensors"))
        assert worker.prove([0])  # and goes on


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids).sum(1) + (ids > 3).sum(-1, keepdim=True)


def test_what_the_library_computes_with_floats_alone_is_unsupported_of_whole_numbers(tmp_path):
    bundle = captured(Counting(), {"ids": torch.arange(6).view(2, 3)}, tmp_path / "bundle")
    answer = prepare("static", bundle, tmp_path)
    assert answer["ok"] is False and answer["code"] == "unsupported", answer
    assert "(sum)" in answer["what"] and "whole numbers or truths" in answer["what"], answer


def test_a_network_that_does_not_export_is_unsupported_with_its_place(bundles, tmp_path):
    answer = prepare("static", bundles("branching"), tmp_path)
    assert (
        answer["ok"] is False
        and answer["code"] == "unsupported"
        and "networks.py:" in answer["what"] + answer["hint"]
    )


def test_without_a_compiler_it_is_unavailable_and_says_what_to_install(bundles, tmp_path):
    answer = prepare("static", bundles("mnist"), tmp_path, CXX="/nowhere/c++")
    assert (
        answer["ok"] is False
        and answer["code"] == "unavailable"
        and "/nowhere/c++" in answer["what"]
        and "CXX" in answer["hint"]
    )


def damaged(bundle: Path, folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> Path:
    """A copy of the bundle with other weights."""
    shutil.copytree(bundle, folder)
    path = folder / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    change(tensors)
    save_file(tensors, path)
    return folder


REFUSED = {
    "lacks": (lambda t: t.pop("same.bias"), "failed", "lacks the weight 'same.bias'"),
    "shape": (
        lambda t: t.update({"same.bias": t["same.bias"][:7].copy()}),
        "failed",
        "'same.bias'.*is needed",
    ),
    "type": (
        lambda t: t.update({"same.bias": t["same.bias"].astype(np.float64)}),
        "failed",
        "'same.bias'.*is needed",
    ),
    "nan": (lambda t: t["same.bias"].put(3, np.nan), "unsupported", "'same.bias'.*holds NaN"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_refuses_weights_that_do_not_fit(change, bundles, artefacts, tmp_path):
    damage, code, says = REFUSED[change]
    with (
        Worker(
            "static",
            damaged(bundles("residual_operations"), tmp_path / "bundle", damage),
            artefacts("static", "residual_operations"),
        ) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert failed.value.code == code and re.search(says, failed.value.what)


LISTS = {
    "lacks": (lambda t: t.pop("index"), "lacks the weight 'index'"),
    "shape": (
        lambda t: t.update({"index": t["index"][:3].copy()}),
        r"'index'.*I64 \[3, 4\]; I64 \[4, 4\] is needed",
    ),
    "type": (
        lambda t: t.update({"index": t["index"].astype(np.int32)}),
        "'index'.*I32.*I64 .* is needed",
    ),
    "row": (lambda t: t["index"].put(3, 9), "index 9 "),
}


@pytest.mark.parametrize("change", LISTS)
def test_refuses_lists_of_rows_that_do_not_fit(change, bundles, artefacts, tmp_path):
    damage, says = LISTS[change]
    with (
        Worker(
            "static",
            damaged(bundles("block_operations"), tmp_path / "bundle", damage),
            artefacts("static", "block_operations"),
        ) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert failed.value.code == "failed" and re.search(says, failed.value.what)


def test_an_input_without_elements_is_refused(tmp_path):
    bundle = captured(nn.Conv2d(3, 4, 3), {"x": torch.zeros(0, 3, 8, 8)}, tmp_path / "bundle")
    answer = prepare("static", bundle, tmp_path)
    assert (
        answer["ok"] is False
        and answer["code"] == "unsupported"
        and "'x' is float32 [0, 3, 8, 8], which has no elements" in answer["what"]
    )


def test_runs_on_one_openmp_and_without_pytorch(bundles, artefacts):
    with Worker("static", bundles("mnist"), artefacts("static", "mnist"), threads=1) as worker:
        assert worker.load()["settings"]["threads"] == 1
        worker.prove([0])
        libraries = {
            line.split()[-1]
            for line in Path(f"/proc/{worker.process.pid}/maps").read_text().splitlines()
            if ".so" in line
        }
        threads = len(list(Path(f"/proc/{worker.process.pid}/task").iterdir()))
    assert (
        len([one for one in libraries if re.search(r"lib(gomp|iomp|omp)", one)]) == 1
        and threads == 1
    )
    assert not any("torch" in one for one in libraries)


def test_a_thousand_runs_of_the_program_allocate_nothing(bundles, artefacts, tmp_path):
    here = Path(__file__).resolve().parent
    counter = tmp_path / "count_allocations.so"
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O1",
            "-shared",
            "-fPIC",
            here / "count_allocations.cpp",
            "-o",
            counter,
            "-ldl",
        ],
        check=True,
    )
    done = subprocess.run(
        [
            sys.executable,
            here / "count_allocations.py",
            artefacts("static", "mnist") / "network.so",
            bundles("mnist") / "weights" / "timed.safetensors",
            "1000",
        ],
        env=os.environ | {"LD_PRELOAD": str(counter), "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        check=True,
    )
    counted = json.loads(done.stdout)
    assert counted["network.so"] == 0
    # the counter works: oneDNN allocates in every execution, whoever calls it
    assert counted["libdnnl"] > 0


def test_a_comparison_proves_it_and_draws_the_step_from_onednn(tmp_path):
    case = compare_all(
        tmp_path,
        "resnet18",
        "--input",
        "1x3x32x32",
        "--levels",
        "eager,onednn,static",
        "--restarts",
        "1",
        "--budget",
        "1s",
        afresh=True,
    )["cases"][0]
    rows = {row["level"]: row for row in case["rows"]}
    assert rows["static"]["state"] == "measured", rows["static"]["reason"]
    edge = next(edge for edge in case["ledger"]["edges"] if edge["to"] == "static")
    assert edge["from"] == "onednn" and edge["kind"] == "step" and not edge["differs"], edge


def test_passes_the_conformance_suite():
    done = subprocess.run(
        [
            os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"),
            "level",
            "check",
            level_folder("static"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
