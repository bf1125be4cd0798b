# SPDX-License-Identifier: Apache-2.0
"""`strata compare` of a file: what is no network is wrong usage (exit 2), and a changed file is another case."""
from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(("name", "content", "words"), [
    ("net.pt2", None, ["net.pt2", "no such file"]),
    ("net.pt2", b"this is no network\n" * 50, ["net.pt2", "no torch.export file"]),
    ("net.pt", b"\x80\x04K\x01.", ["net.pt", "no TorchScript archive"]),
    ("net.onnx", b"this is no network\n" * 50, ["net.onnx", "no ONNX file"]),
])
def test_a_file_that_is_no_network_is_wrong_usage(strata, name, content, words):
    strata.level("one", rank=1)
    if content is not None:
        (strata.folder / name).write_bytes(content)
    done = strata.run("compare", name, "--levels", "one", "--threads", "1", "--store", str(strata.store))
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr


def test_a_file_that_changed_is_another_case(strata):
    import torch

    strata.level("one", rank=1)
    hashes = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        torch.export.save(torch.export.export(torch.nn.Linear(6, 3).eval(), (torch.ones(2, 6),)), str(strata.folder / "net.pt2"))
        done = strata.run("compare", "net.pt2", "--levels", "one", "--threads", "1", "--restarts", "1", "--budget", "1s", "--store", str(strata.store), "--format", "json")
        assert done.returncode == 0, done.stderr
        hashes.append(json.loads(done.stdout)["cases"][0]["hash"])
    assert hashes[0] != hashes[1]
