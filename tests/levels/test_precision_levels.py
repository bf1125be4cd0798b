# SPDX-License-Identifier: Apache-2.0
"""Precisions with real levels on a tiny network: each computes in the mode that the case asks for,
no other, and the comparison says so."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from client import FAULTY, Failed, Worker, error, prepare
from client import compare_all as compare
from safetensors.numpy import load_file

from training import about, in_mode, probe, state, step_error, times_bound

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("STRATA_LEVEL_BUILD", ROOT / "build" / "none"))
NETWORK = str(ROOT / "tests" / "levels" / "networks.py") + ":residual_network"
MODES = ("bf16", "amp-bf16")
# The levels for CUDA with loops in place of what only a device runs, and what is built of them.
WITHOUT_A_DEVICE = {
    "static_in_host_memory": "strata_generate_in_host_memory",
    "cudnn_host": "level_cudnn_host",
}
OPTIMISER = {
    "name": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.1,
    "nesterov": False,
    "schedule": None,
}


def bounds(bundle: Path, precision: str, weights: str) -> tuple[float, float]:
    """The largest and the least error of eager's legitimate runs in the mode."""
    truth = load_file(bundle / "reference" / f"{weights}.safetensors")
    runs = load_file(bundle / "reference" / f"{weights}.{precision}.envelope.safetensors")
    found = [error({name.split("/", 1)[1]: value}, truth) for name, value in runs.items()]
    return max(found), min(found)


@pytest.mark.parametrize("precision", MODES)
def test_the_bundle_of_a_mode_shares_everything_with_the_strict_one_and_adds_its_envelope(
    bundles, precision
):
    strict, own = bundles("tiny_strict"), bundles(f"tiny_{precision}")
    about, other = (json.loads((folder / "bundle.json").read_text()) for folder in (own, strict))
    assert (
        about["case"]["precision"] == about["spec"]["precision"] == precision
        and other["case"]["precision"] == "fp32"
    )
    for name in (
        "inputs",
        "weights/timed",
        "weights/generic1",
        "reference/timed",
        "reference/generic2.envelope",
    ):
        assert (own / f"{name}.safetensors").read_bytes() == (
            strict / f"{name}.safetensors"
        ).read_bytes(), name
    for weights in ("timed", "generic1", "generic2"):
        most, least = bounds(own, precision, weights)
        assert 2**-13 < least <= most < 0.2
        assert (
            len(
                {
                    name.split("/")[0]
                    for name in load_file(
                        own / "reference" / f"{weights}.{precision}.envelope.safetensors"
                    )
                }
            )
            >= 5
        )


@pytest.mark.parametrize("precision", MODES)
@pytest.mark.parametrize("level", ["eager", "compile", "torchscript", "aoti"])
def test_a_level_computes_in_the_mode_of_the_case(level, precision, bundles, tmp_path):
    if level in ("torchscript", "aoti") and not (BUILT / f"level_{level}").exists():
        pytest.skip(f"level_{level} is not built")
    bundle = bundles(f"tiny_{precision}")
    assert prepare(level, bundle, tmp_path) == {"ok": True}
    with Worker(level, bundle, tmp_path, threads=1) as worker:
        loaded = worker.load()
        assert loaded["settings"]["precision"] == precision
        for weights in ("generic1", "timed"):
            worker.ask("weights", weights=weights)
            outputs = worker.prove([0, 1])
            assert {str(value.dtype) for value in outputs.values()} == {"float32"}
            most, least = bounds(bundle, precision, weights)
            assert (
                least / 64
                < error(outputs, load_file(bundle / "reference" / f"{weights}.safetensors"))
                <= 8 * most
            )


@pytest.mark.parametrize(
    ("level", "precision"),
    [*(("libtorch", precision) for precision in MODES), ("cudnn_host", "amp-bf16")],
)
def test_a_level_without_an_artefact_computes_in_the_mode_of_the_case(level, precision, bundles):
    if not (BUILT / f"level_{level}").exists():
        pytest.skip(f"level_{level} is not built")
    bundle = bundles(f"mnist_{precision}")
    with Worker(level, bundle, threads=1) as worker:
        assert worker.load()["settings"]["precision"] == precision
        most, least = bounds(bundle, precision, "timed")
        assert (
            least / 64
            < error(worker.prove([0, 1]), load_file(bundle / "reference" / "timed.safetensors"))
            <= 8 * most
        )


@pytest.mark.parametrize(
    "name", ["image_operations_bf16", "residual_operations_bf16", "block_operations_bf16"]
)
@pytest.mark.parametrize("level", ["static", "static_in_host_memory"])
def test_static_computes_in_bfloat16_with_every_output_alone_as_near_to_float64_as_eagers_or_says_that_the_processor_has_none(
    level, name, bundles, artefacts
):
    if not (BUILT / "level_static").exists():
        pytest.skip((BUILT / "level_static.missing").read_text())
    bundle = bundles(name)
    with Worker(level, bundle, artefacts(level, name), threads=2) as worker:
        if level == "static" and "avx512bw" not in Path("/proc/cpuinfo").read_text():
            with pytest.raises(Failed, match="no bfloat16 on this processor") as refused:
                worker.load()
            assert refused.value.code == "unsupported"
            return
        assert worker.load()["settings"]["precision"] == "bf16"
        for weights in ("generic1", "timed"):
            worker.ask("weights", weights=weights)
            truth, runs = (
                load_file(bundle / "reference" / f"{weights}.safetensors"),
                load_file(bundle / "reference" / f"{weights}.bf16.envelope.safetensors"),
            )
            for key, value in worker.prove([0, 1]).items():
                output = key.split("/", 1)[1]
                errors = [
                    error({run.split("/", 1)[1]: one}, truth)
                    for run, one in runs.items()
                    if run.split("/", 2)[2] == output
                ]
                # on a GPU what has no layer is in float32
                least = 0 if level == "static_in_host_memory" else min(errors) / 64
                assert value.dtype == "float32" and least < error({key: value}, truth) <= 8 * max(
                    2**-9, *errors
                ), (weights, key)
        facts = worker.ask("report")["facts"]
    with Worker(
        level,
        bundles(name.removesuffix("_bf16")),
        artefacts(level, name.removesuffix("_bf16")),
        threads=2,
    ) as worker:
        worker.load()
        assert facts["weight_bytes"] < 0.7 * worker.ask("report")["facts"]["weight_bytes"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """One comparison in two modes: eager, a copy that stays in float32, and one that always
    computes in bf16."""
    levels = tmp_path_factory.mktemp("faulty")
    about = json.loads((FAULTY / "level.json").read_text(encoding="utf-8"))
    for fault in ("ignores_precision", "bf16"):
        (levels / fault).mkdir()
        start = [
            "/usr/bin/env",
            f"STRATA_FAULT={fault}",
            "{python}",
            "-m",
            "strata_sdk",
            str(FAULTY),
        ]
        (levels / fault / "level.json").write_text(
            json.dumps(about | {"id": fault, "start": start}), encoding="utf-8"
        )
    found = compare(
        tmp_path_factory.mktemp("store"),
        NETWORK,
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--precision",
        "fp32,bf16",
        "--levels",
        "eager,ignores_precision,bf16",
        levels=levels,
    )
    return {
        (case["case"]["precision"], row["level"]): row
        for case in found["cases"]
        for row in case["rows"]
    }


def test_a_level_that_ran_in_float32_though_the_case_says_bf16_gets_no_number(cases):
    assert cases["fp32", "ignores_precision"]["state"] == "measured"
    row = cases["bf16", "ignores_precision"]
    assert (
        row["state"] == "mistrusted"
        and "higher precision" in row["reason"]
        and row["end_to_end_ms"] is None
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_level_that_runs_in_bf16_whatever_the_case_says_gets_no_number(cases, precision):
    row = cases[precision, "bf16"]
    assert row["state"] == "unequal" and row["end_to_end_ms"] is None and row["reason"]


def test_eager_is_measured_in_both(cases):
    assert cases["fp32", "eager"]["state"] == cases["bf16", "eager"]["state"] == "measured"


def test_a_network_that_eager_cannot_run_in_the_mode_is_told_with_its_line(tmp_path):
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]
    from specs import capture

    from capture.errors import Problem

    path = tmp_path / "fixed.py"
    path.write_text(
        "import torch\nclass Fixed(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = torch.nn.Parameter(torch.randn(4, 4))\n"
        "    def forward(self, x):\n        return x @ torch.eye(4) @ self.w.to(torch.float32)\ndef build():\n    return Fixed(), torch.randn(2, 4)\n",
        encoding="utf-8",
    )
    with pytest.raises(Problem, match="eager does not run the network in bf16") as failure:
        capture(
            {"model": f"{path}:build", "precision": "bf16"}, tmp_path / "bundle", lambda _: None
        )
    assert (
        failure.value.code == "unsupported"
        and "fixed.py:7" in failure.value.what
        and not (tmp_path / "bundle").exists()
    )


def test_the_training_bundle_of_a_mode_adds_what_eagers_steps_err_in_it(bundles):
    bundle = bundles("train_tiny_amp")
    strict, in_precision = about(bundle), in_mode(bundle, "amp-bf16")
    assert json.loads((bundle / "bundle.json").read_text())["case"]["precision"] == "amp-bf16"
    for weights in ("timed", "probe1", "probe2"):
        assert (
            set(in_precision[weights]["envelope"]["grad"])
            == set(in_precision[weights]["least"])
            == set(strict[weights]["envelope"]["grad"])
        )
        assert 2.0**-9 <= in_precision[weights]["envelope"]["loss"] < 0.1
        for name, off in in_precision[weights]["envelope"]["grad"].items():
            assert (
                2.0**-9 <= off < 1
                and 16 * strict["probe1"]["envelope"]["grad"][name]
                < in_precision[weights]["least"][name]
                <= off
            ), (weights, name)


@pytest.mark.parametrize(
    ("level", "name"),
    [
        *(
            (level, "train_tiny_amp")
            for level in (
                "eager",
                "compile",
                "torchscript",
                "libtorch",
                "static",
                *WITHOUT_A_DEVICE,
            )
        ),
        *((level, "train_wide_amp") for level in ("static", *WITHOUT_A_DEVICE)),
        ("static_in_host_memory", "train_odd_amp"),
        ("cudnn_host", "train_odd_amp"),
    ],
)
def test_a_level_takes_training_steps_in_amp_bf16_with_parameters_in_float32(
    level, name, bundles, artefacts
):
    if (
        level not in ("eager", "compile")
        and not (BUILT / WITHOUT_A_DEVICE.get(level, f"level_{level}")).exists()
    ):
        pytest.skip(f"level_{level} is not built")
    if level == "static" and "avx512bw" not in Path("/proc/cpuinfo").read_text():
        pytest.skip(
            "this processor has no AVX-512, without which static has no bfloat16 (asked of /proc/cpuinfo)"
        )
    bundle = bundles(name)
    with Worker(level, bundle, artefacts(level, name), threads=2) as worker:
        assert worker.load()["settings"]["precision"] == "amp-bf16"
        worker.ask("set_labels", path=str(bundle / "labels.safetensors"))
        for weights in ("timed", "probe1", "probe2"):
            found = probe(worker, weights)
            assert {str(value.dtype) for value in found.values()} == {"float32"}
            times = times_bound(found, bundle, weights, "amp-bf16")
            assert max(times.values()) <= 1, (
                weights,
                max(times, key=times.get),
                max(times.values()),
            )
        strict = times_bound(found, bundle, "probe2")
        assert sorted(strict.values())[len(strict) // 2] > 4, "it computes in float32"
        before, _ = state(worker)
        assert step_error(worker, before, OPTIMISER, 1, OPTIMISER["lr"]) < 1e-4


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_a_trace_lets_convolutions_round_to_tf32_in_that_precision_alone(
    precision, bundles, tmp_path
):
    import torch

    bundle = shutil.copytree(bundles("tiny_strict"), tmp_path / "bundle")
    about = json.loads((bundle / "bundle.json").read_text())
    about["case"]["precision"] = precision
    (bundle / "bundle.json").write_text(json.dumps(about))
    assert prepare("torchscript", bundle, tmp_path) == {"ok": True}
    graph = torch.jit.load(tmp_path / "script.pt").inlined_graph
    permitted = [
        list(node.inputs())[-1].toIValue() for node in graph.findAllNodes("aten::_convolution")
    ]
    assert permitted and set(permitted) == {precision == "tf32"}
