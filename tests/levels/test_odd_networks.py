# SPDX-License-Identifier: Apache-2.0
"""Networks that do unusual things (odd_networks.py): what the capture says of them, and that real
levels run them as they are or refuse with a reason."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from capturing import QUICK, captured_from
from client import Worker, compare
from faulty_eager.copies import plant
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

import odd_networks  # noqa: E402
from specs import capture  # noqa: E402

from capture import reference as ref  # noqa: E402
from capture.errors import Problem  # noqa: E402
from strata_sdk.models import read_bundle  # noqa: E402

MODELS = Path(__file__).with_name("odd_networks.py")
captured = captured_from(MODELS)


def compared(
    tmp_path: Path, network: str, *levels: str, more: tuple[str, ...] = ()
) -> dict[str, dict]:
    """Rows by level of one short comparison."""
    return compare(
        tmp_path,
        f"{MODELS}:{network}",
        "--levels",
        ",".join(levels),
        *QUICK,
        "--order-seed",
        "1",
        *more,
    )


def reasons(rows: dict[str, dict]) -> dict[str, tuple[str, str]]:
    return {level: (row["state"], row["reason"]) for level, row in rows.items()}


# ------------------------------------------------------------------------------- in place, states


def test_a_network_that_writes_into_its_input_is_said_to(captured):
    info = read_bundle(captured("normalises_in_place"))
    assert info["writes_inputs"] == ["x"] and "writes into its input x" in info["input_source"]
    assert info["writes_buffers"] == [] and info["export"]["ok"], info["export"]


def test_one_that_writes_what_is_there_already_is_said_to(captured):
    info = read_bundle(captured("returns_its_changed_input"))
    assert info["writes_inputs"] == ["x"]
    assert read_bundle(captured("returns_its_input"))["writes_inputs"] == []


def test_the_ring_and_the_references_are_those_of_inputs_that_nobody_wrote_into(captured):
    folder = captured("normalises_in_place")
    ring, expected = (
        load_file(folder / "inputs.safetensors"),
        load_file(folder / "reference" / "timed.safetensors"),
    )
    network, weights = (
        odd_networks.Normalises(),
        load_file(folder / "weights" / "timed.safetensors"),
    )
    network.load_state_dict(weights)
    for i in range(4):
        with torch.no_grad():
            assert torch.allclose(
                network(ring[f"{i}/x"].clone()).double(), expected[f"f64/{i}/output"], atol=1e-5
            ), i


@pytest.mark.parametrize("level", ["eager", "eager@channels_last", "compile"])
@pytest.mark.parametrize("first", ["warm_up", "measure", "prove"])
def test_a_worker_answers_alike_however_often_the_network_has_run(level, first, captured, tmp_path):
    folder = captured("normalises_in_place")
    plain, _, variant = level.partition("@")
    with Worker(plain, folder, tmp_path, threads=1, variant=variant or "default") as worker:
        worker.load()
        if first == "warm_up":
            worker.ask("warm_up", iterations=9, min_ns=0)
        elif first == "measure":
            worker.ask(
                "measure",
                iterations=9,
                head=2,
                indices=[0, 1, 2, 3, 0, 1, 2, 3, 0],
                region="end_to_end",
            )
        got = [worker.prove([0, 1, 2, 3]) for _ in range(2)][1]
        expected = load_file(folder / "reference" / "timed.safetensors")
        for i in range(4):
            assert np.allclose(
                got[f"{i}/output"], expected[f"f64/{i}/output"].numpy(), atol=1e-5
            ), i


@pytest.mark.parametrize(
    "levels",
    [
        ("libtorch", "onednn", "static", "onnxruntime"),
        pytest.param(("compile", "torchscript", "aoti", "openvino"), marks=pytest.mark.long),
    ],
    ids=["some", "others"],
)
def test_every_level_measures_a_network_that_writes_into_its_input(levels, tmp_path):
    rows = compared(tmp_path, "normalises_in_place", "eager", *levels)
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)
    assert rows["eager"]["reference"], "eager is what the others are compared with"


@pytest.mark.long
def test_training_a_network_that_writes_into_its_input(tmp_path):
    rows = compared(
        tmp_path,
        "normalises_in_place",
        "eager",
        "compile",
        "torchscript",
        "libtorch",
        "onednn",
        more=("--mode", "train"),
    )
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


@pytest.mark.parametrize(
    "levels",
    [("torchscript", "onnxruntime"), pytest.param(("aoti",), marks=pytest.mark.long)],
    ids=["some", "others"],
)
def test_buffers_that_every_call_changes_are_said_and_no_level_is_accused_of_them(
    levels, captured, tmp_path
):
    info = read_bundle(captured("counts_its_calls"))
    assert (
        info["writes_buffers"] == ["calls"]
        and "every call changes its buffer 'calls'" in info["weight_source"]
    )
    rows = compared(tmp_path, "counts_its_calls", "eager", *levels)
    assert (
        all(row["state"] in ("measured", "unsupported") for row in rows.values())
        and rows["eager"]["state"] == "measured"
    ), reasons(rows)


def test_an_answer_that_lies_in_a_buffer_is_copied_before_the_next_call(tmp_path):
    rows = compared(tmp_path, "answers_in_a_buffer", "eager", "compile")
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


def test_a_network_whose_answer_follows_the_calls_before_is_named_by_the_buffer(captured):
    info = read_bundle(captured("remembers_calls"))
    assert info["keeps_state"] and "every call changes its buffer 'mean'" in info["unproven"]
    assert info["export"]["what"] == info["unproven"] and info["writes_buffers"] == ["mean"]


# -------------------------------------------------------------------------------------------- NaN


def test_nan_at_the_same_places_is_equal_and_nan_at_others_is_named():
    nan, inf = math.nan, math.inf
    expected = {"y": torch.tensor([[1.0, nan, inf, -inf, 2.0]], dtype=torch.float64)}
    assert ref.differs({"y": expected["y"].float()}, expected, [], 1e-6) == ""
    for wrong in (
        [1, 2, inf, -inf, 2],
        [nan, nan, inf, -inf, 2],
        [1, nan, -inf, -inf, 2],
        [1, nan, inf, -inf, nan],
    ):
        message = ref.differs({"y": torch.tensor([wrong], dtype=torch.float32)}, expected, [], 1e-6)
        assert "NaN or an infinity at 1 of 5 places" in message, (wrong, message)
    assert "times the envelope" in ref.differs(
        {"y": torch.tensor([[1.5, nan, inf, -inf, 2]])}, expected, [], 1e-6
    )


def test_an_overflow_of_float32_that_legitimate_runs_share_is_no_difference():
    expected, overflow = (
        {"y": torch.tensor([1.0, 1e300], dtype=torch.float64)},
        {"y": torch.tensor([1.0, math.inf])},
    )
    assert (
        ref.differs(overflow, expected, [overflow], 1e-6) == ""
        and ref.differs(overflow, expected, [], 1e-6) != ""
    )
    assert ref.envelope_error({"default": [overflow]}, [expected]) < 1e-5


@pytest.mark.parametrize("name", ["some_nan", "only_nan", "infinite", "large_values"])
def test_a_network_with_values_that_are_not_finite_exports_and_its_generic_weights_are_finite(
    name, captured
):
    folder = captured(name)
    info = read_bundle(folder)
    assert info["export"]["ok"], info["export"]
    for generic in ("generic1", "generic2"):
        weights = load_file(folder / "weights" / f"{generic}.safetensors")
        assert all(bool(w.isfinite().all()) or key == "mask" for key, w in weights.items())


def test_a_network_that_overflows_in_float32_alone_is_unproven_by_its_operation(captured):
    why = read_bundle(captured("large_values"))["unproven"]
    assert why.startswith("float32 overflows: 'output' on input 0 is infinite or NaN at ")
    assert re.search(
        r"where float64 has numbers \(timed weights\), first at pow at odd_networks", why
    )
    assert all(not read_bundle(captured(name))["unproven"] for name in ("some_nan", "infinite"))


@pytest.mark.parametrize(
    ("network", "levels"),
    [
        ("some_nan", ("eager", "torchscript", "libtorch", "onnxruntime")),
        pytest.param("infinite", ("eager", "libtorch", "onnxruntime"), marks=pytest.mark.long),
    ],
)
def test_levels_that_keep_nan_where_it_belongs_are_measured(network, levels, tmp_path):
    rows = compared(tmp_path, network, *levels)
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


def test_answers_that_are_nan_throughout_prove_little_and_that_is_said(tmp_path):
    rows = compared(tmp_path, "only_nan", "eager", "libtorch")
    assert rows["eager"]["state"] == "measured" and rows["eager"]["proof"]["weak"], reasons(rows)


# ---------------------------------------------------------------------------------------- weights


def test_no_weight_of_a_users_network_is_drawn_anew(captured):
    """What is measured, and exported with a certificate, computes what build() gives."""
    folder = captured("constant_weights")
    torch.manual_seed(0)
    network, _ = odd_networks.constant_weights()
    timed = load_file(folder / "weights" / "timed.safetensors")
    assert all(torch.equal(timed[name], value) for name, value in network.state_dict().items())
    info = read_bundle(folder)
    assert (
        info["weight_source"]
        == f"those that build() gave after torch.manual_seed(0), SHA-256 {info['network']['sha256'][:12]}"
    )


@pytest.mark.long
def test_levels_measure_constant_weights_as_they_are(tmp_path):
    rows = compared(
        tmp_path,
        "constant_weights",
        "eager",
        "compile",
        "torchscript",
        "libtorch",
        "aoti",
        "onednn",
        "static",
        "onnxruntime",
        "openvino",
    )
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


@pytest.mark.long
@pytest.mark.parametrize("network", ["no_parameters", "only_buffers"])
def test_every_level_measures_a_network_without_parameters(network, tmp_path):
    rows = compared(
        tmp_path,
        network,
        "eager",
        "compile",
        "torchscript",
        "libtorch",
        "aoti",
        "onednn",
        "static",
        "onnxruntime",
        "openvino",
    )
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


def test_tied_weights_count_once(captured):
    info = read_bundle(captured("tied_weights"))
    assert (
        info["parameters"] == 40 * 16 + 16 * 16 + 16
        and info["weight_bytes"] == 4 * info["parameters"]
    )


@pytest.mark.long
@pytest.mark.parametrize("network", ["tied_weights", "tied_layers"])
def test_every_level_counts_tied_weights_once_and_is_measured(network, tmp_path):
    rows = compared(
        tmp_path,
        network,
        "eager",
        "torchscript",
        "libtorch",
        "aoti",
        "onednn",
        "onnxruntime",
        "openvino",
    )
    allowed = {"measured"} if network == "tied_layers" else {"measured", "unsupported"}
    assert {row["state"] for row in rows.values()} <= allowed and rows["torchscript"][
        "state"
    ] == "measured", reasons(rows)


@pytest.mark.parametrize(
    "levels",
    [
        ("libtorch", "onednn", "static"),
        pytest.param(("compile", "torchscript"), marks=pytest.mark.long),
    ],
    ids=["some", "others"],
)
def test_a_tied_weight_is_trained_once(levels, tmp_path):
    rows = compared(tmp_path, "tied_layers", "eager", *levels, more=("--mode", "train"))
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


# ----------------------------------------------------------------------------- inputs and outputs


def test_one_number_and_one_boolean_are_inputs_that_differ_as_far_as_they_can(captured):
    ring = load_file(captured("one_number") / "inputs.safetensors")
    assert len({v.item() for v in ring.values()}) == 4
    info = read_bundle(captured("one_boolean"))
    assert "a level that answers from memory may stay unseen" in info["input_source"]


def test_an_input_that_can_have_one_value_only_is_allowed_and_said(captured, tmp_path):
    info = read_bundle(captured("one_whole_number"))
    assert "all are equal" in info["input_source"]
    row = compared(tmp_path, "one_whole_number", "eager", "libtorch")["libtorch"]
    assert row["state"] == "measured" and row["proof"]["weak"]


def test_an_input_without_an_element_is_refused(tmp_path):
    with pytest.raises(Problem) as caught:
        capture({"model": f"{MODELS}:without_elements"}, tmp_path / "bundle", lambda _text: None)
    assert caught.value.code == "usage" and "0x8" in caught.value.what


@pytest.mark.parametrize(
    "network",
    [
        pytest.param("returns_its_input", marks=pytest.mark.long),
        "returns_its_changed_input",
        pytest.param("scalar_output", marks=pytest.mark.long),
        "nested_outputs",
        pytest.param("strided_output", marks=pytest.mark.long),
        pytest.param("number_as_parameter", marks=pytest.mark.long),
    ],
)
def test_pytorch_levels_measure_odd_outputs_and_parameters(network, tmp_path):
    rows = compared(tmp_path, network, "eager", "torchscript", "libtorch", "onnxruntime")
    assert {row["state"] for row in rows.values()} == {"measured"}, reasons(rows)


# ---------------------------------------------------------------------------------------- dropout

DROPOUTS = [  # levels, and faults of eager
    (
        ("eager", "libtorch", "onednn", "static"),
        ("dropout_less_by_2", "dropout_more_by_2"),
    ),
    pytest.param(
        (("eager", "compile", "torchscript"), ("dropout_less_by_5",)), marks=pytest.mark.long
    ),
]


@pytest.fixture(scope="module", params=DROPOUTS, ids=["some", "others"])
def dropping(request, tmp_path_factory):
    """(levels, faults, rows of both) on a network with one dropout of 0.5, at batch 16."""
    own, faults = request.param
    levels = plant(tmp_path_factory.mktemp("faulty"), faults)
    rows = compare(
        tmp_path_factory.mktemp("store"),
        f"{MODELS}:drops_half",
        "--mode",
        "train",
        *QUICK,
        "--levels",
        ",".join([*own, *faults]),
        levels=levels,
    )
    return own, faults, rows


def test_a_probability_that_is_wrong_by_two_hundredths_is_found(dropping):
    _, faults, rows = dropping
    for row in (rows[fault] for fault in faults):
        assert row["state"] == "unequal" and "another probability" in row["reason"], (
            row["state"],
            row["reason"],
        )


def test_levels_that_draw_with_the_given_probability_are_not_accused(dropping):
    levels, _, rows = dropping
    for row in (rows[level] for level in levels):
        [line] = [line for line in row["proof"]["lines"] if line["check"] == "dropout probability"]
        assert row["state"] == "measured" and line["result"] == "pass", row["reason"]
        visible = float(line["detail"].split("wrong by ")[1].split(" ")[0])
        assert visible <= 0.02, line["detail"]
