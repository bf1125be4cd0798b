# SPDX-License-Identifier: Apache-2.0
"""What a capture says of networks that a proof could be blind to (proof_networks.py): what the user
gave is proven, an answer that jumps where eager's own runs part is no reference, random numbers,
state and values that Python looks at are found and named."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest
import torch
from capturing import QUICK, captured_from, line_in
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

import proof_networks  # noqa: E402
from specs import capture  # noqa: E402

from capture import reference as ref  # noqa: E402
from capture.broken import BROKEN  # noqa: E402
from strata_sdk.errors import UnsupportedError  # noqa: E402
from strata_sdk.models import (  # noqa: E402
    build_module,
    example_inputs,
    graph_module,
    read_bundle,
)
from strata_sdk.preparing import traced  # noqa: E402

MODELS = Path(__file__).with_name("proof_networks.py")


captured = captured_from(MODELS)
line_of = functools.partial(line_in, MODELS)


def ring_of(folder: Path, file: str = "inputs") -> list[dict[str, torch.Tensor]]:
    """Entries in the order of the inputs, whatever forward calls them: `arg0`, `arg1`, ..."""
    tensors = load_file(folder / f"{file}.safetensors")
    names = [declared["name"] for declared in read_bundle(folder)["inputs"]]
    entries = sorted({int(key.split("/")[0]) for key in tensors})
    return [{f"arg{i}": tensors[f"{entry}/{n}"] for i, n in enumerate(names)} for entry in entries]


def envelope_of(folder: Path, name: str = "timed") -> float:
    reference = load_file(folder / "reference" / f"{name}.safetensors")
    runs = load_file(folder / "reference" / f"{name}.envelope.safetensors")
    expected = [{k: v} for k, v in sorted(reference.items())]
    variants = {k.split("/")[0] for k in runs}
    return ref.envelope_error(
        {
            v: [{k: runs[k.replace("f64", v, 1)]} for entry in expected for k in entry]
            for v in variants
        },
        expected,
    )


# -------------------------------------------------------------------------------- compared, rounded

COMPARED = ["masked_sum", "padded_values", "whole_floats", "half_steps"]


@pytest.mark.parametrize("network", COMPARED)
def test_what_the_user_gave_is_one_of_the_inputs_that_are_proven(network, captured):
    _, example = getattr(proof_networks, network)()
    example = example if isinstance(example, tuple) else (example,)
    entry = ring_of(captured(network))[0]
    assert all(torch.equal(entry[f"arg{i}"], value) for i, value in enumerate(example))


@pytest.mark.parametrize(
    ("network", "of"), [("masked_sum", 1), ("whole_floats", 0), ("half_steps", 0)]
)
def test_few_and_whole_values_are_shuffled_and_drawn_and_never_replaced(network, of, captured):
    _, example = getattr(proof_networks, network)()
    values = set((example[of] if isinstance(example, tuple) else example).reshape(-1).tolist())
    ring = [entry[f"arg{of}"] for entry in ring_of(captured(network))]
    assert all(set(value.reshape(-1).tolist()) <= values for value in ring)
    assert len({value.sum().item() for value in ring}) > 1, "sums differ"
    assert len({len(set(value.reshape(-1).tolist())) for value in ring}) > 1, (
        "numbers of values differ"
    )


def test_zeros_between_real_numbers_stay_exact_and_wander(captured):
    ring = [entry["arg0"] for entry in ring_of(captured("padded_values"))]
    assert all(int((value == 0).sum()) == 16 for value in ring)
    assert not torch.equal(ring[0] == 0, ring[1] == 0) and not torch.equal(ring[2], ring[1])


@pytest.mark.parametrize("network", COMPARED)
def test_the_envelope_of_a_network_that_compares_its_input_is_that_of_rounding(network, captured):
    folder = captured(network)
    assert read_bundle(folder)["unproven"] == ""
    assert envelope_of(folder) < 1e-5 and envelope_of(folder, "generic1") < 1e-5


def test_a_network_without_its_mask_is_far_outside_the_envelope(captured):
    """By a plain PyTorch computation, on the very inputs that a level is proven on."""
    folder = captured("masked_sum")
    module, _ = build_module(folder, "timed")
    blind = proof_networks.Pooled(skip_mask=True)
    blind.load_state_dict(module.state_dict())
    expected = load_file(folder / "reference" / "timed.safetensors")["f64/0/output"]
    with torch.no_grad():
        given = blind(*ring_of(folder)[0].values()).double()
    assert (given - expected).norm() / expected.norm() > 1000 * envelope_of(folder)


def test_the_users_file_is_proven_as_it_is_although_it_is_mostly_padding(captured, tmp_path):
    import numpy as np

    mask = np.zeros((12, 10), np.float32)
    mask[:, :3] = 1
    path = tmp_path / "padded.npz"
    np.savez(path, arg0=proof_networks.drawn(12, 10, 6).numpy(), arg1=mask)
    folder = tmp_path / "bundle"
    capture(
        {"model": f"{MODELS}:masked_sum", "threads": 1, "input_file": str(path)},
        folder,
        lambda _text: None,
    )
    assert read_bundle(folder)["unproven"] == "" and envelope_of(folder) < 1e-5
    assert all(np.array_equal(entry["arg1"], mask[:3]) for entry in ring_of(folder))


def test_an_answer_that_jumps_with_the_last_bit_is_no_reference_and_says_where(captured):
    folder = captured("on_the_threshold")
    why = read_bundle(folder)["unproven"]
    assert envelope_of(folder) > BROKEN
    assert "rounding explains at most 0.01" in why and "'output'" in why, why
    assert f"proof_networks.py:{line_of('(x * 3 > 1.5)')}" in why, why


def test_offsets_that_break_when_they_are_shuffled_are_the_example_and_that_is_said(captured):
    folder = captured("growing_offsets")
    _, (ids, offsets) = proof_networks.growing_offsets()
    ring = ring_of(folder)
    assert torch.equal(ring[0]["arg1"], offsets) and torch.equal(ring[0]["arg0"], ids)
    assert all(int(entry["arg1"][0]) == 0 for entry in ring)
    assert (
        "the network does not run on its values in another order"
        in read_bundle(folder)["input_source"]
    )


def test_a_form_of_zeros_is_filled_with_numbers_and_is_one_of_them_itself():
    from capture.case import Input
    from capture.inputs import make_ring

    spec = {"ring": 4, "seed": 3, "synthetic": False, "input_from": None, "input_file": None}
    blank = Input("x", False, "float32", [2, 5], example=torch.zeros(2, 5))
    ring, _ = make_ring(spec, [blank])
    assert bool((ring[1]["x"] == 0).all()) and all(bool(ring[i]["x"].all()) for i in (0, 2, 3))


def test_a_mask_of_which_nothing_is_masked_masks_something_in_other_entries():
    from capture.case import Input
    from capture.inputs import make_ring

    spec = {"ring": 4, "seed": 3, "synthetic": False, "input_from": None, "input_file": None}
    real = Input("x", False, "float32", [2, 9], example=torch.rand(2, 9))
    for dtype in (torch.float32, torch.int64, torch.bool):
        example = torch.ones(2, 9, dtype=dtype)
        mask = Input("m", False, str(dtype).removeprefix("torch."), [2, 9], example=example)
        ring, _ = make_ring(spec, [real, mask])
        assert torch.equal(ring[0]["x"], real.example) and torch.equal(ring[0]["m"], example)
        for entry in ring[1:]:
            assert set(entry["m"].reshape(-1).tolist()) == {0, 1} and entry["m"].dtype == dtype


# ------------------------------------------------------------------------------------------ random


@pytest.mark.parametrize(
    ("network", "words", "line"),
    [
        ("dropout_without_training", "dropout at proof_networks.py", "# forgets training="),
        ("samples", "randn_like at proof_networks.py", "torch.randn_like(spread)"),
        ("dropout_in_a_list", "dropout at proof_networks.py", "self.layers[0](self.first(x))"),
    ],
)
def test_a_network_that_draws_in_eval_mode_is_unproven_by_operation_and_line(
    network, words, line, captured
):
    info = read_bundle(captured(network))
    assert info["unproven"].startswith("this network draws random numbers in eval mode: ")
    assert f"{words}:{line_of(line)}" in info["unproven"], info["unproven"]
    assert not info["keeps_state"]


def test_modules_in_a_plain_list_are_named(captured):
    note = read_bundle(captured("dropout_in_a_list"))["model"]["note"]
    assert "1 module in InAList.layers is in no ModuleList" in note, note
    assert "ModuleList" not in read_bundle(captured("samples"))["model"]["note"]


def test_noise_that_pytorch_does_not_draw_is_found_too(captured):
    assert "numpy.random at proof_networks.py" in read_bundle(captured("numpys_noise"))["unproven"]


def test_a_step_that_is_random_beside_its_dropout_is_unproven_and_dropout_alone_is_not(tmp_path):
    words = {}
    for network in ("noise_in_training", "dropout_without_training"):
        spec = {
            "model": f"{MODELS}:{network}",
            "threads": 1,
            "mode": "train",
            "light": True,
            "generic_sets": 1,
        }
        words[network] = capture(spec, tmp_path / network, lambda _text: None)["unproven"]
    line = line_of("self.fc(x + torch.randn_like(x) if")
    assert f"randn_like at proof_networks.py:{line}" in words["noise_in_training"], words
    assert words["dropout_without_training"] == ""


def test_numbers_that_are_drawn_in_vain_accuse_nobody(captured):
    assert read_bundle(captured("draws_in_vain"))["unproven"] == ""


# ------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize(
    ("network", "name"),
    [
        ("remembers_a_frame", "buffer 'frames'"),
        ("keeps_keys", "attribute 'keys'"),
        ("scales_by_the_first", "attribute 'kept.scale'"),
    ],
)
def test_a_network_whose_answers_follow_its_state_is_named_by_it(network, name, captured):
    info = read_bundle(captured(network))
    assert info["keeps_state"] and f"its {name}" in info["unproven"], info["unproven"]
    assert not info["export"]["ok"] and info["export"]["what"] == info["unproven"]
    assert not info["graph"]["ok"]


def test_state_that_no_answer_follows_is_named_and_the_network_is_proven(captured):
    info = read_bundle(captured("keeps_what_no_answer_follows"))
    assert info["unproven"] == "" and not info["keeps_state"]
    assert "its attributes 'tables.6', 'last'" in info["weight_source"], info["weight_source"]
    assert "FakeTensor" not in info["export"]["what"]


# -------------------------------------------------------------------------- values that Python sees


@pytest.mark.parametrize(
    ("network", "words", "line"),
    [
        ("up_to_the_longest", "int()", "longest = int("),
        ("scaled_by_a_value", "item()", "x.abs().max().item()"),
        ("by_a_list", "tolist()", "ids[0].tolist()"),
    ],
)
def test_a_value_of_the_input_that_python_looks_at_is_named(network, words, line, captured):
    info = read_bundle(captured(network))
    assert info["reads_values"] == [f"{words} at proof_networks.py:{line_of(line)}"]


@pytest.mark.parametrize("network", ["looks_at_shapes", "masked_sum", "growing_offsets"])
def test_shapes_and_own_buffers_are_no_values_of_the_input(network, captured):
    assert read_bundle(captured(network))["reads_values"] == []


def test_inputs_differ_in_the_length_that_a_trace_would_hold(captured):
    lengths = {int((e["arg0"] > 0).sum(1).max()) for e in ring_of(captured("up_to_the_longest"))}
    assert len(lengths) > 1, lengths


# ------------------------------------------------------------------------- what a comparison says


def compared(folder: Path, network: str, *levels: str) -> dict:
    """The first case of one short comparison."""
    from client import compare_all

    model = f"{MODELS}:{network}"
    return compare_all(folder, model, "--levels", ",".join(levels), *QUICK)["cases"][0]


def test_a_random_network_has_no_number_at_any_level_and_the_first_sentence_says_why(tmp_path):
    result = compared(tmp_path, "dropout_without_training", "eager", "torchscript", "onnxruntime")
    assert {row["state"] for row in result["rows"]} == {"unproven"}
    assert all(row["end_to_end_ms"] is None for row in result["rows"])
    where = f"dropout at proof_networks.py:{line_of('# forgets training=')}"
    assert where in result["headline"]["sentence"], result["headline"]


def test_a_network_that_keeps_a_state_is_refused_by_name_at_every_level_but_eager(tmp_path):
    result = compared(tmp_path, "keeps_keys", "eager", "compile", "torchscript", "openvino")
    states = {row["level"]: row["state"] for row in result["rows"]}
    assert states.pop("eager") == "unproven" and set(states.values()) == {"unsupported"}, states
    assert all("its attribute 'keys'" in row["reason"] for row in result["rows"])


def test_a_trace_that_would_hold_a_value_is_refused_with_the_line_although_the_network_exports(
    captured,
):
    for network, line in (
        ("up_to_the_longest", "int() at proof_networks.py:{longest = int(}"),
        ("scaled_by_a_value", "item() at proof_networks.py:{x.abs().max().item()}"),
    ):
        folder = captured(network)
        bundle = read_bundle(folder)
        module, names = build_module(folder)
        example = example_inputs(folder)
        place, _, words = line.partition("{")
        with pytest.raises(UnsupportedError) as refused:
            traced(graph_module(module, bundle), tuple(example[n] for n in names), bundle)
        assert f"{place}{line_of(words.removesuffix('}'))}" in refused.value.what


def test_a_trace_of_a_network_that_looks_at_shapes_is_made(captured):
    folder = captured("looks_at_shapes")
    bundle = read_bundle(folder) | {"export": {"ok": True}}
    module, names = build_module(folder)
    inputs = tuple(example_inputs(folder)[n] for n in names)
    [answer] = traced(graph_module(module, bundle), inputs, bundle)(*inputs)
    assert torch.allclose(answer, module(*inputs), atol=1e-6)


def test_sound_levels_of_a_network_with_a_mask_are_measured(tmp_path):
    result = compared(tmp_path, "masked_sum", "eager", "onnxruntime", "openvino")
    states = {row["level"]: (row["state"], row["reason"]) for row in result["rows"]}
    assert {state for state, _ in states.values()} == {"measured"}, states


@pytest.mark.parametrize("network", ["clips", "pools"])
def test_inputs_that_hold_a_nan_and_an_infinity_have_eagers_answers(network, captured):
    folder = captured(network)
    with_nan, with_infinity = ring_of(folder, "special")
    answers = load_file(folder / "reference" / "special.safetensors")
    assert int(with_nan["arg0"].isnan().sum()) == 1
    assert int(with_infinity["arg0"].isinf().sum()) == 1
    assert bool(answers["0/output"].isnan().any()) and not bool(answers["0/output"].isnan().all())


def test_a_level_that_drops_nan_is_told_and_eager_is_not(tmp_path):
    """By a plain PyTorch computation eager's ReLU keeps NaN; OpenVINO's does not."""
    from client import compare_all

    result = compare_all(
        tmp_path, f"{MODELS}:clips", "--levels", "eager,openvino,onnxruntime", *QUICK
    )
    lines = {
        row["level"]: line
        for row in result["cases"][0]["rows"]
        for line in row["proof"]["lines"]
        if line["check"] == "NaN and infinity in an input"
    }
    assert lines["eager"]["result"] == lines["onnxruntime"]["result"] == "pass", lines
    assert (
        lines["openvino"]["result"] == "fail" and "drops NaN: 4 of 4" in lines["openvino"]["detail"]
    )
    told = [w["what"] for w in result["warnings"] if w["id"] == "W011"]
    assert len(told) == 1 and told[0].startswith("openvino drops NaN"), told


@pytest.mark.parametrize(
    ("network", "flushes"),
    [("subnormal_weights", "openvino"), ("subnormal_inputs", "flushes_subnormals")],
)
def test_a_level_that_flushes_subnormal_numbers_is_told_so_and_what_to_do(
    network, flushes, tmp_path
):
    """By a plain PyTorch computation eager keeps them; OpenVINO does not keep those of weights."""
    from client import compare_all
    from faulty_eager.copies import plant

    levels = plant(tmp_path / "levels", ["flushes_subnormals"])
    names = f"eager,onnxruntime,{flushes}"
    result = compare_all(tmp_path, f"{MODELS}:{network}", "--levels", names, *QUICK, levels=levels)
    by_level = {row["level"]: row for row in result["cases"][0]["rows"]}
    assert by_level["eager"]["state"] == by_level["onnxruntime"]["state"] == "measured", by_level
    refused = by_level[flushes]
    assert refused["state"] == "unequal"
    assert refused["reason_short"] == "subnormal numbers are flushed to zero"
    assert "scale the weights and inputs" in refused["reason"]


def test_answers_with_subnormal_numbers_flushed_are_kept_only_where_they_are_others(captured):
    flushed = captured("subnormal_weights") / "reference" / "timed.flushed.safetensors"
    bias = captured("subnormal_weights") / "weights" / "timed.safetensors"
    expected = load_file(bias)["outer.bias"].expand(4, 4)
    assert torch.equal(load_file(flushed)["0/output"], expected), "the first layer gives zeros"
    assert not list((captured("clips") / "reference").glob("*.flushed*"))


def test_levels_of_other_authors_that_are_refused_and_agree_are_told_of(tmp_path):
    """Two that call themselves peers, with the same fault."""
    from client import compare_all
    from faulty_eager.copies import plant

    levels = plant(tmp_path / "levels", ["bias_zero", "bias_zero:batch=9"])
    for file in levels.glob("*/level.json"):
        text = file.read_text(encoding="utf-8").replace(":batch=9", "")
        file.write_text(text.replace('"peer": false', '"peer": true'), encoding="utf-8")
    names = sorted(folder.name for folder in levels.iterdir())
    model = f"{MODELS}:clips"
    result = compare_all(
        tmp_path, model, "--levels", ",".join(["eager", *names]), *QUICK, levels=levels
    )
    assert {row["state"] for row in result["cases"][0]["rows"] if row["peer"]} == {"unequal"}
    [told] = [w["what"] for w in result["warnings"] if w["id"] == "W012"]
    assert told.startswith(f"{names[0]}, {names[1]}, which share no kernels with eager, agree")


# -------------------------------------------------------------------------------- planted faults


def test_a_fault_that_changes_nothing_says_nothing_of_the_proof(captured):
    """The last bias is that of a layer that no output follows."""
    folder = captured("unused_last")
    info = read_bundle(folder)
    assert set(info["faults"]) == {"relu_dropped", "bias_zero"}
    assert "bias_zero: first.bias = 0" in info["fault_sentences"], "planted elsewhere"
    planted = {"y": load_file(folder / "reference" / "faults.safetensors")["relu_dropped/0/output"]}
    expected = {"y": load_file(folder / "reference" / "generic1.safetensors")["f64/0/output"]}
    assert ref.output_errors(planted, expected)["y"] > 80 * envelope_of(folder, "generic1")


def test_a_fault_that_a_maximum_hides_is_planted_where_it_shows(captured):
    folder = captured("highest")
    info = read_bundle(folder)
    assert "relu_dropped: first (Tanh) left out" in info["fault_sentences"], info["fault_sentences"]
    expected = {"y": load_file(folder / "reference" / "generic1.safetensors")["f64/0/output"]}
    planted = load_file(folder / "reference" / "faults.safetensors")
    bound = 8 * envelope_of(folder, "generic1")
    assert all(ref.output_errors({"y": y}, expected)["y"] > 10 * bound for y in planted.values())


def test_a_network_of_operations_that_no_fault_knows_has_one_in_its_graph(captured):
    info = read_bundle(captured("spectrum"))
    assert info["faults"] == ["result_left_out"] and not info["unproven"], info["fault_sentences"]


def test_answers_that_no_fault_can_change_are_unproven_and_say_so(captured):
    info = read_bundle(captured("constant"))
    assert info["unproven"].startswith("no fault that is planted in it shows"), info
