# SPDX-License-Identifier: Apache-2.0
"""Every Python level as the driver meets it: its outputs against the float64 reference, what it
reports, and that planted faults show."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from client import ROOT, Failed, Worker, error, level_folder, prepare
from envelopes import LEVELS, SETS, envelope, reference
from safetensors.numpy import load_file

BAKING = ("onnxruntime", "openvino")


@pytest.mark.parametrize("name", ["mnist", "residual", "keywords"])
@pytest.mark.parametrize("level", LEVELS)
def test_outputs_lie_in_the_envelope_for_every_weight_set(level, name, bundles, running):
    worker, _ = running(level, name)
    for weights in (*SETS, "timed"):  # and back again
        worker.ask("weights", weights=weights)
        outputs = worker.prove([0, 1])
        names = {
            o["name"] for o in json.loads((bundles(name) / "bundle.json").read_text())["outputs"]
        }
        assert set(outputs) == {f"{i}/{output}" for i in (0, 1) for output in names}
        assert error(outputs, reference(bundles(name), weights)) <= 8 * envelope(
            bundles(name), weights
        ), weights


@pytest.mark.parametrize("level", LEVELS)
def test_the_checked_output_of_a_block_belongs_to_its_ring_index(level, bundles, running):
    worker, _ = running(level, "mnist")
    worker.ask("weights", weights="timed")
    warm = worker.ask("warm_up", iterations=3, min_ns=0)
    assert warm["iterations"] == 3 and len(warm["wall_ns"]) == 3 and warm["first_ns"] > 0
    truth, bound = reference(bundles("mnist"), "timed"), 8 * envelope(bundles("mnist"), "timed")
    seen = []
    for check, index in enumerate([2, 0, 3, 1]):
        answer, outputs = worker.measure([2, 0, 3, 1], check=check)
        assert list(outputs) == [f"{index}/output"]
        assert error(outputs, truth) <= bound
        assert len(answer["wall_ns"]) == len(answer["latency_ns"]) == 4
        assert all(
            0 < latency <= wall for latency, wall in zip(answer["latency_ns"], answer["wall_ns"])
        )
        assert (
            answer["cpu_ns"] > 0
            and answer["start_ns"] > 0
            and (answer["runq_ns"] is None or answer["runq_ns"] >= 0)
        )
        seen.append(outputs[f"{index}/output"])
    assert all(not np.array_equal(seen[0], other) for other in seen[1:])


@pytest.mark.parametrize("level", LEVELS)
def test_reports_what_it_is_and_how_it_is_set(level, bundles, running):
    worker, loaded = running(level, "mnist")
    hello = worker.ask("hello")
    assert (
        hello["api"] == 2
        and hello["level"] == level
        and hello["language"] == "python"
        and hello["build"]["type"] == "release"
    )
    assert (
        "cpu" in hello["devices"]
        and hello["modes"] == (["infer"] if level in BAKING else ["infer", "train"])
        and hello["precisions"]
        == json.loads((level_folder(level) / "level.json").read_text(encoding="utf-8"))[
            "precisions"
        ]
        and hello["library_ns"] > 0
        and len(hello["versions"]) >= 2
    )
    assert ("read_weights" in hello["ops"]) == (level not in BAKING)
    settings = loaded["settings"]
    assert (
        settings["threads"] == 2
        and settings["precision"] == "fp32"
        and settings["inference_mode"] is True
        and settings["autotune"] is False
    )
    assert settings["freezing"] == (level in BAKING)
    assert settings["graph"] == {"eager": "none", "compile": "compiled"}.get(level, "exported")
    assert settings["layout"] in ("contiguous", "channels_last", "blocked", "any")
    assert loaded["artefact_bytes"] > 4000 and loaded["phases"]["build_ns"] > 0
    parameters = json.loads((bundles("mnist") / "bundle.json").read_text())["parameters"]
    assert loaded["parameters"] == (0 if level in BAKING else parameters)
    if level == "compile":
        assert settings["graphs"] == 1 and settings["graph_breaks"] == 0


@pytest.mark.parametrize("level", ["eager", "compile"])
def test_weights_are_read_back_from_the_framework(level, bundles, running):
    worker, _ = running(level, "mnist")
    for weights in ("generic1", "timed"):
        worker.ask("weights", weights=weights)
        file = load_file(bundles("mnist") / "weights" / f"{weights}.safetensors")
        assert worker.ask("read_weights")["sha256"] == {
            name: hashlib.sha256(value.tobytes()).hexdigest() for name, value in file.items()
        }


@pytest.mark.parametrize("level", BAKING)
def test_peers_do_not_load_pytorch(level, running):
    worker, _ = running(level, "mnist")
    maps = Path(f"/proc/{worker.process.pid}/maps").read_text()
    assert "libtorch" not in maps
    assert level in maps


@pytest.mark.parametrize("level", LEVELS)
def test_deep_outputs_follow_the_real_ones(level, bundles, running):
    worker, _ = running(level, "mnist_deep")
    worker.ask("weights", weights="generic1")
    outputs = worker.prove([0])  # taps have a reference for this set and index alone
    described = [
        o["name"]
        for o in json.loads((bundles("mnist_deep") / "bundle.json").read_text())["outputs"]
    ]
    assert described[0] == "output" and any(name.startswith("tap:") for name in described)
    assert set(outputs) == {f"0/{name}" for name in described}
    assert error(outputs, reference(bundles("mnist_deep"), "generic1")) <= 8 * envelope(
        bundles("mnist_deep"), "generic1"
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_network_that_writes_into_its_input_gets_a_copy(level, bundles, running):
    worker, _ = running(level, "in_place")
    truth, bound = (
        reference(bundles("in_place"), "timed"),
        8 * envelope(bundles("in_place"), "timed"),
    )
    for _ in range(2):
        assert error(worker.prove([0, 1]), truth) <= bound
    _, outputs = worker.measure([0, 1, 0, 1, 0], check=4, head=2)
    assert error(outputs, truth) <= bound


def test_a_network_that_does_not_export_is_unsupported_by_graph_levels_only(
    bundles, running, tmp_path
):
    assert not json.loads((bundles("branching") / "bundle.json").read_text())["export"]["ok"]
    worker, _ = running("eager", "branching")
    assert error(worker.prove([0, 1]), reference(bundles("branching"), "timed")) <= 8 * envelope(
        bundles("branching"), "timed"
    )
    worker, loaded = running("compile", "branching")
    assert loaded["settings"]["graph_breaks"] >= 1
    assert error(worker.prove([0, 1]), reference(bundles("branching"), "timed")) <= 8 * envelope(
        bundles("branching"), "timed"
    )
    for level in BAKING:
        answer = prepare(level, bundles("branching"), tmp_path)
        assert answer["code"] == "unsupported" and "networks.py:" in answer["what"], answer


@pytest.mark.parametrize("level", BAKING)
def test_says_when_the_artefact_is_missing(level, bundles, tmp_path):
    with (
        Worker(level, bundles("mnist"), tmp_path) as worker,
        pytest.raises(Failed, match=r"timed.* is missing") as failure,
    ):
        worker.load()
    assert failure.value.code == "failed" and "prepare" in failure.value.hint


def test_openvino_left_to_itself_is_unequal_where_it_takes_bf16(bundles, running):
    pinned, _ = running("openvino", "residual")
    with Worker("openvino", bundles("residual"), pinned.cache, variant="bf16") as worker:
        loaded = worker.load()
        if loaded["settings"]["precision"] == "fp32":
            pytest.skip(
                "this CPU has no bf16, so OpenVINO's own precision is float32 (asked of the compiled model's INFERENCE_PRECISION_HINT)"
            )
        worker.ask("weights", weights="generic1")
        assert error(
            worker.prove([0, 1]), reference(bundles("residual"), "generic1")
        ) > 100 * envelope(bundles("residual"), "generic1")


def test_openvino_refuses_a_variant_that_it_does_not_know(bundles, tmp_path):
    with (
        Worker("openvino", bundles("mnist"), tmp_path, variant="turbo") as worker,
        pytest.raises(Failed, match="no variant turbo") as failure,
    ):
        worker.load()
    assert failure.value.code == "unsupported" and "bf16" in failure.value.hint


@pytest.mark.parametrize("level", BAKING)
def test_a_peer_writes_nothing_into_the_home(level, bundles, tmp_path):
    home, cache = tmp_path / "home", tmp_path / "cache"
    for folder in (home, cache):
        folder.mkdir()
    # some report to their publishers in no CI
    where = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "CI": "", "TF_BUILD": ""}
    answer = prepare(level, bundles("mnist"), cache, **where)
    assert answer["ok"], answer
    with Worker(level, bundles("mnist"), cache, **where) as worker:
        worker.load()
        worker.prove([0])
    assert [str(path.relative_to(home)) for path in home.rglob("*")] == []


# --------------------------------------------------------------------------------- planted faults

NETWORK_FAULTS = (
    "relu_dropped",
    "shortcut_dropped",
    "stride_moved",
    "ceil_mode",
    "bn_mean_zero",
    "bn_var_one",
    "bn_beta_zero",
    "bn_gamma_one",
    "bias_zero",
    "bn_eps",
    "one_bn_eps",
    "bn_train_mode",
    "bf16",
    "tf32_emulated",
)
LEVEL_FAULTS = (
    "stale_input",
    "memo",
    "un_normalised_input",
    "other_batch",
    "wrong_seed",
    "constant_output",
    "nan_output",
    "one_element",
)


@pytest.fixture(scope="module")
def faulty(bundles, tmp_path_factory):
    """One worker of faulty_eager; faulty(name) loads it anew with that fault, generic1 weights."""
    choice = tmp_path_factory.mktemp("fault") / "fault"
    choice.write_text("none")
    with Worker("faulty_eager", bundles("resnet18"), STRATA_FAULT=f"@{choice}") as worker:

        def get(fault: str) -> Worker:
            worker.ask("unload")
            choice.write_text(fault)
            worker.load(weights="generic1")
            return worker

        yield get


def test_faulty_eager_without_a_fault_is_eager(faulty, bundles):
    worker = faulty("none")
    for weights in SETS:
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles("resnet18"), weights)) <= 8 * envelope(
            bundles("resnet18"), weights
        )


@pytest.mark.parametrize("fault", [*NETWORK_FAULTS, *LEVEL_FAULTS])
def test_a_planted_fault_leaves_the_envelope(fault, faulty, bundles):
    assert not error(
        faulty(fault).prove([0, 1]), reference(bundles("resnet18"), "generic1")
    ) <= 8 * envelope(bundles("resnet18"), "generic1")


def test_baked_weights_show_under_a_second_weight_set(faulty, bundles):
    worker = faulty("baked_weights")
    assert error(worker.prove([0]), reference(bundles("resnet18"), "generic1")) <= 8 * envelope(
        bundles("resnet18"), "generic1"
    )
    worker.ask("weights", weights="generic2")
    assert error(worker.prove([0]), reference(bundles("resnet18"), "generic2")) > 100 * envelope(
        bundles("resnet18"), "generic2"
    )


def test_a_network_fault_survives_a_change_of_weights(faulty, bundles):
    worker = faulty("bn_mean_zero")
    worker.ask("weights", weights="generic2")
    assert error(worker.prove([0]), reference(bundles("resnet18"), "generic2")) > 8 * envelope(
        bundles("resnet18"), "generic2"
    )


def test_every_tenth_output_is_wrong_in_a_block(faulty, bundles):
    worker = faulty("every_tenth")
    truth, bound = (
        reference(bundles("resnet18"), "generic1"),
        8 * envelope(bundles("resnet18"), "generic1"),
    )
    wrong = [
        not error(worker.measure([i % 2 for i in range(10)], check=check, head=0)[1], truth)
        <= bound
        for check in range(10)
    ]
    assert wrong == [False] * 9 + [True]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("wrong_dtype", (np.float64, (2, 1000))), ("wrong_shape", (np.float32, (1, 2, 1000)))],
)
def test_dtype_and_shape_are_passed_on_as_the_level_gives_them(fault, expected, faulty):
    output = faulty(fault).prove([0])["0/output"]
    assert (output.dtype, output.shape) == expected


def test_an_unknown_fault_is_refused(faulty):
    with pytest.raises(Failed, match="STRATA_FAULT is 'no_such'") as failure:
        faulty("no_such")
    assert failure.value.code == "unsupported" and "relu_dropped" in failure.value.hint


def test_every_fault_of_the_capture_is_planted_here():
    text = (ROOT / "src" / "capture" / "faults.py").read_text()
    inside = text[text.index("FAULTS: dict") : text.index("POWER =")]
    names = {
        line.split('"')[i] for line in inside.splitlines()[1:] for i in range(1, line.count('"'), 2)
    }
    not_in_resnet = {"ln_beta_zero", "dropout_train_mode"}
    assert names - {
        "BatchNorm",
        "LayerNorm",
        "running_mean",
        "running_var",
        "bias",
        "weight",
    } - not_in_resnet == set(NETWORK_FAULTS)
