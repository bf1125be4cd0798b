# SPDX-License-Identifier: Apache-2.0
"""What a capture says of networks that keep, draw or read where nobody looks first
(strange_networks.py), and that those which only seem to are proven."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capturing import captured_from, line_in  # noqa: E402

from strata_sdk.errors import UnsupportedError  # noqa: E402
from strata_sdk.models import (  # noqa: E402
    build_module,
    example_inputs,
    graph_module,
    read_bundle,
)
from strata_sdk.preparing import traced  # noqa: E402

MODELS = Path(__file__).with_name("strange_networks.py")
captured = captured_from(MODELS)
line_of = functools.partial(line_in, MODELS)


def trace_of(folder: Path) -> tuple[torch.jit.ScriptModule, torch.nn.Module]:
    module, names = build_module(folder)
    example = example_inputs(folder)
    bundle = read_bundle(folder)
    inputs = tuple(example[name] for name in names)
    return traced(graph_module(module, bundle), inputs, bundle), module


@pytest.mark.parametrize(
    ("network", "name"),
    [
        ("global_history", "globals 'HISTORY.0', 'HISTORY.1'"),
        ("class_attribute", "attribute 'ClassAttribute.last'"),
        ("closure", "attribute 'smooth.held.y'"),
        ("peaks", "attribute '_peaks.0'"),
        ("counted", "attribute 'calls'"),
    ],
)
def test_state_that_copies_of_a_network_share_or_hide_is_named(network, name, captured):
    info = read_bundle(captured(network))
    assert info["keeps_state"] and f"its {name}" in info["unproven"], info["unproven"]
    assert info["export"]["what"] == info["unproven"]


def test_a_state_that_answers_follow_in_a_later_call_is_named_beside_the_jump(captured):
    why = read_bundle(captured("every_tenth"))["unproven"]
    assert "rounding explains" in why and why.endswith("every call changes its attribute 'calls'")


def test_tables_that_are_made_once_leave_a_network_proven_and_without_tensors_of_an_export(
    captured,
):
    folder = captured("tables")
    info = read_bundle(folder)
    assert info["unproven"] == "" and info["export"]["ok"], info
    assert "its global 'TABLES.8'" in info["weight_source"]
    assert len(info["faults"]) > 0


@pytest.mark.parametrize(
    ("network", "words", "line"),
    [
        ("rare_drop", "rand", "# nearly always"),
        ("sampler", "multinomial", "torch.multinomial(p, 1)"),
        ("own_generator", "rand", "generator=self.torchs"),
        ("own_numpy", "a Generator of its own", "self.numpys.random(x.shape)"),
        ("crop", "Python's random", "# where the crop begins"),
    ],
)
def test_random_numbers_are_named_whoever_draws_them_and_however_seldom_they_show(
    network, words, line, captured
):
    info = read_bundle(captured(network))
    begin = "this network draws random numbers in eval mode: "
    where = f"{words} at strange_networks.py:{line_of(line)}"
    assert info["unproven"] == begin + where and not info["keeps_state"]


def test_draws_that_are_the_same_in_every_call_accuse_nobody(captured):
    assert read_bundle(captured("seeded_mask"))["unproven"] == ""


def test_a_loop_that_ends_by_a_comparison_is_no_trace_and_the_line_is_named(captured):
    folder = captured("settles")
    where = f"a Python value of allclose at strange_networks.py:{line_of('torch.allclose')}"
    assert read_bundle(folder)["reads_values"] == [where]
    with pytest.raises(UnsupportedError) as refused:
        trace_of(folder)
    assert where in refused.value.what


def test_an_extent_that_follows_values_is_traced_unless_it_becomes_a_number(captured):
    for network, words in (
        ("by_the_root", "math.sqrt(distinct)"),
        ("by_a_range", "in range(torch.unique(ids)"),
    ):
        with pytest.raises(UnsupportedError) as refused:
            trace_of(captured(network))
        assert f"strange_networks.py:{line_of(words)}" in refused.value.what, refused.value.what
    script, module = trace_of(captured("by_the_number"))
    others = torch.arange(24).reshape(4, 6) % 3  # three distinct ones, by a plain computation
    with torch.no_grad():
        assert torch.allclose(script(others)[0], module(others), atol=1e-6)
