# SPDX-License-Identifier: Apache-2.0
"""The level onednn: every family of operations on odd shapes against float64, its layouts and
reorders, what it refuses and how it says so."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from client import Failed, Worker, compare_all, level_folder
from envelopes import SETS, expect_outputs_within_bounds
from level_builds import BUILD, PRIMITIVES
from recorded_operations import lacking
from safetensors.numpy import load_file, save_file

if not PRIMITIVES:
    pytest.skip((BUILD / "level_onednn.missing").read_text(), allow_module_level=True)


@pytest.mark.parametrize("variant", ["default", "contiguous"])
@pytest.mark.parametrize(
    "name",
    [
        "image_operations",
        "image_sizes",
        "recurrent_operations",
        "token_operations",
        "typed_operations",
        "place_operations",
        "part_operations",
        "function_operations",
    ],
)
def test_computes_every_family_of_operations_on_odd_shapes(name, variant, bundles):
    bundle = bundles(name)
    with Worker("onednn", bundle, variant=variant) as worker:
        settings = worker.load()["settings"]
        assert (
            settings["layout"] == {"default": "any", "contiguous": "contiguous"}[variant]
            and settings["graph"] == "exported"
        )
        for weights in (*SETS, "timed"):  # and back again
            expect_outputs_within_bounds(worker, weights)


def test_the_operations_of_level_json_are_those_that_the_code_knows():
    written = json.loads((level_folder("onednn") / "level.json").read_text())["operations"]
    with Worker("onednn") as worker:
        assert worker.ask("hello")["operations"] == written
    assert len(set(written)) == len(written) > 50


def test_has_every_operation_that_torchvisions_classifiers_use_in_inference():
    assert not lacking("onednn")


def test_an_operation_that_it_lacks_is_unsupported_with_its_place(bundles):
    with Worker("onednn", bundles("unknown_operation")) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert failed.value.code == "unsupported" and re.search(
        r"no operation median \(.*primitive_networks\.py:\d+", failed.value.what
    )


def test_a_network_that_does_not_export_is_unsupported_with_its_place(bundles):
    with Worker("onednn", bundles("branching")) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert (
        failed.value.code == "unsupported"
        and "graph" in failed.value.what
        and "networks.py:" in failed.value.what + failed.value.hint
    )


def test_counts_reorders_and_keeping_layouts_saves_them(bundles):
    facts = {}
    for variant in ("default", "contiguous"):
        with Worker("onednn", bundles("residual"), variant=variant) as worker:
            worker.load()
            facts[variant] = worker.ask("report")["facts"]
    graph = json.loads((bundles("residual") / "graph.json").read_text())
    computing = sum(
        node["op"].split(".")[1] not in ("flatten", "view", "reshape") for node in graph["nodes"]
    )
    for found in facts.values():
        assert (
            found["primitives"] - found["reorders"]
            == computing
            == sum(
                count
                for kernel, count in found["kernels"].items()
                if not kernel.startswith("reorder")
            )
        )
        assert found["weight_bytes"] >= 4 * sum(
            np.prod(graph["values"][one["value"]]["shape"]) for one in graph["parameters"]
        )
    assert (
        facts["contiguous"]["reorders"] > facts["default"]["reorders"]
        and facts["contiguous"]["reorder_bytes"] > facts["default"]["reorder_bytes"]
    )


def test_runs_on_one_openmp_and_without_pytorch(bundles):
    with Worker("onednn", bundles("mnist"), threads=1) as worker:
        assert worker.load()["settings"]["threads"] == 1
        worker.prove([0])
        libraries = {
            line.split()[-1]
            for line in Path(f"/proc/{worker.process.pid}/maps").read_text().splitlines()
            if ".so" in line
        }
        threads = len(list(Path(f"/proc/{worker.process.pid}/task").iterdir()))
    assert len([one for one in libraries if re.search(r"lib(gomp|iomp|omp)", one)]) == 1 and any(
        "/.venv/lib/libdnnl" in one for one in libraries
    )
    assert not any("torch" in one for one in libraries) and threads == 1


@pytest.mark.parametrize("name", ["resnet18", "token_operations"])
def test_weights_read_back_from_its_layouts_are_those_of_the_file(name, bundles, running):
    worker, loaded = running("onednn", name)
    graph = json.loads((bundles(name) / "graph.json").read_text())
    for weights in ("generic1", "timed"):
        worker.ask("weights", weights=weights)
        file = load_file(bundles(name) / "weights" / f"{weights}.safetensors")
        read = worker.ask("read_weights")["sha256"]
        assert read == {
            tensor: hashlib.sha256(file[tensor].tobytes()).hexdigest() for tensor in read
        }
        # is broadcast while it is loaded
        assert {one["name"] for one in graph["parameters"]} - read.keys() <= {"token"}
    assert (
        loaded["parameters"]
        == json.loads((bundles(name) / "bundle.json").read_text())["parameters"]
    )


@pytest.mark.parametrize(("change", "says"), [("lacks", "norm.bias"), ("shape", "norm.bias")])
def test_refuses_weights_that_do_not_fit(change, says, bundles, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("token_operations"), bundle)
    tensors = {
        name: np.array(value)
        for name, value in load_file(bundle / "weights" / "timed.safetensors").items()
    }
    if change == "lacks":
        del tensors["norm.bias"]
    else:
        tensors["norm.bias"] = tensors["norm.bias"][:7].copy()
    save_file(tensors, bundle / "weights" / "timed.safetensors")
    with Worker("onednn", bundle) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert (
        failed.value.code == "failed"
        and says in failed.value.what
        and "timed.safetensors" in failed.value.what
    )


def test_a_nan_among_the_weights_is_refused_since_the_library_would_drop_it(bundles, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("residual"), bundle)
    path = bundle / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    name = next(name for name, value in tensors.items() if value.ndim == 4)
    tensors[name][1, 2, 0, 0] = np.nan
    save_file(tensors, path)
    with Worker("onednn", bundle) as worker, pytest.raises(Failed) as failed:
        worker.load()
    assert (
        failed.value.code == "unsupported"
        and f"'{name}'" in failed.value.what
        and "NaN" in failed.value.what
    )


def test_a_lookup_beyond_the_table_fails_and_names_the_row(bundles, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(bundles("token_operations"), bundle)
    path = bundle / "weights" / "timed.safetensors"
    tensors = {name: np.array(value) for name, value in load_file(path).items()}
    tensors["index"][3] = 9
    save_file(tensors, path)
    with Worker("onednn", bundle) as worker:
        worker.load()
        with pytest.raises(Failed) as failed:
            worker.prove([0])
    assert failed.value.code == "failed" and "index 9 " in failed.value.what


def test_a_comparison_proves_it_and_draws_the_step_from_libtorch(tmp_path):
    case = compare_all(
        tmp_path,
        "resnet18",
        "--input",
        "1x3x32x32",
        "--levels",
        "eager,libtorch,onednn",
        "--restarts",
        "1",
        "--budget",
        "1s",
    )["cases"][0]
    rows = {row["level"]: row for row in case["rows"]}
    assert rows["onednn"]["state"] == "measured", rows["onednn"]["reason"]
    edge = next(edge for edge in case["ledger"]["edges"] if edge["to"] == "onednn")
    assert edge["from"] == "libtorch" and edge["kind"] == "step" and not edge["differs"], edge
    assert rows["onednn"]["facts"]["reorders"] >= 1 and rows["onednn"]["memory"]
