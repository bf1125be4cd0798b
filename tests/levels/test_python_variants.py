# SPDX-License-Identifier: Apache-2.0
"""Variants of Python levels in inference, and what the compiler did."""

from __future__ import annotations

import json

import pytest
from client import ROOT, Failed, Worker, error
from envelopes import SETS, envelope, reference


@pytest.mark.parametrize(
    "level",
    ["eager@channels_last", "compile@channels_last", "compile@freezing", "compile@max-autotune"],
)
def test_a_variant_infers_within_the_envelope_for_every_set(level, bundles, running_variant):
    worker, loaded = running_variant(level, "in_place")
    settings = {
        "eager@channels_last": {"layout": "channels_last"},
        "compile@channels_last": {"layout": "channels_last", "graph": "compiled"},
        "compile@freezing": {"freezing": True},
        "compile@max-autotune": {"autotune": True, "freezing": False},
    }[level]
    assert settings.items() <= loaded["settings"].items()
    for weights in SETS:
        worker.ask("weights", weights=weights)
        assert error(worker.prove([0, 1]), reference(bundles("in_place"), weights)) <= 8 * envelope(
            bundles("in_place"), weights
        )
    if level != "compile@freezing":
        assert worker.ask("read_weights")["sha256"]
        return
    with pytest.raises(Failed, match="part of its code") as failure:
        worker.ask("read_weights")
    assert failure.value.code == "unsupported"


@pytest.mark.parametrize(
    ("level", "bundle", "what"),
    [
        ("eager@turbo", "in_place", "no variant turbo"),
        ("eager@fused", "in_place", "eager@fused has no mode infer"),
        ("eager@cudagraph", "in_place", "eager@cudagraph has no device cpu"),
        ("compile@freezing", "train_tiny", "compile@freezing has no mode train"),
    ],
)
def test_a_variant_beyond_level_json_is_unsupported(level, bundle, what, bundles):
    plain, _, variant = level.partition("@")
    with (
        Worker(plain, bundles(bundle), threads=1, variant=variant) as worker,
        pytest.raises(Failed, match=what) as failure,
    ):
        worker.load()
    assert failure.value.code == "unsupported" and failure.value.hint.startswith("it has: ")


def test_graph_breaks_are_told_with_file_and_line(bundles, running_variant):
    _, loaded = running_variant("compile", "branching")
    found = loaded["settings"]["compile"]
    file, _, line = found["graph_breaks"][0]["where"].rpartition(":")
    source = (ROOT / "tests" / "levels" / "networks.py").read_text(encoding="utf-8").splitlines()
    assert (
        file.endswith("networks.py")
        and "if x.sum()" in source[int(line) - 1]
        and found["graph_breaks"][0]["reason"]
    )
    assert found["graphs"] >= 2 and found["guards"] > 0 and json.dumps(found["recompiles"])
