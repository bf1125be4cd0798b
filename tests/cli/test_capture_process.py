# SPDX-License-Identifier: Apache-2.0
"""All captures of one call of strata are made by one process, which loads PyTorch once."""

from __future__ import annotations

import re
from pathlib import Path

from preloaded import PYTHON

NETWORK = """
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)), torch.linspace(-1, 1, 16).reshape(2, 8)
"""


def test_captures_of_two_precisions_are_made_by_one_process(strata, tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    starts = tmp_path / "starts"
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"-m capture"*) echo "$*" >> "{starts}";; esac\nexec "{PYTHON}" "$@"\n'
    )
    python.chmod(0o755)
    strata.environment |= {"STRATA_PYTHON": str(python), "STRATA_CACHE": str(tmp_path / "cache")}
    strata.level("one", rank=1)
    done = strata.run(
        "compare",
        f"{tmp_path / 'net.py'}:build",
        "--precision",
        "fp32,bf16",
        "--levels",
        "one",
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
    )
    captures = list((tmp_path / "cache" / "bundles").iterdir())
    assert len(captures) == 2, done.stderr
    assert len(starts.read_text().splitlines()) == 1
    weights = {(folder / "weights" / "timed.safetensors").stat().st_ino for folder in captures}
    assert len(weights) == 1 and len(list((tmp_path / "cache" / "networks").iterdir())) == 1
    assert not list((tmp_path / "cache" / "bundles").glob("*.log"))


FRAIL = """
import torch

class Frail(torch.nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 20:
            raise RuntimeError("called too often")
        return super().forward(x)

def build():
    return Frail(8, 4), torch.ones(2, 8)
"""


def test_what_a_network_raises_in_the_middle_is_told_with_a_log_that_stays(strata):
    (strata.folder / "net.py").write_text(FRAIL)
    strata.level("one", rank=1)
    done = strata.run("compare", "net.py:build", "--levels", "one", "--threads", "1")
    assert done.returncode == 1 and "RuntimeError: called too often" in done.stderr
    log = re.search(r"the whole log is (.+\.log)$", done.stderr, re.MULTILINE)
    assert log, done.stderr
    text = Path(log[1]).read_text(encoding="utf-8")
    assert "Traceback" in text and "net.py" in text and "in forward" in text
