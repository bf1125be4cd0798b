# SPDX-License-Identifier: Apache-2.0
"""What a capture says of a PyTorch that is there and cannot be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT

LIBRARIES = [
    (
        "ImportError('/env/lib/libstdc++.so.6: version `GLIBCXX_3.4.30\\' not found')",
        "ImportError: /env/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found",
        "conda install -c conda-forge 'libstdcxx-ng>=12'",
    ),
    (
        "OSError('libcudart.so.13: cannot open shared object file: No such file or directory')",
        "OSError: libcudart.so.13: cannot open shared object file",
        "-m pip install --force-reinstall torch",
    ),
    ("RuntimeError('no such thing')", "RuntimeError: no such thing", "-c 'import torch'"),
]


def capture(folder: Path, raises: str, words: list[str], text: str = "") -> list[dict]:
    """The answers of a capture in an interpreter whose PyTorch raises that."""
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text(f"raise {raises}\n")
    path = f"{folder}:{ROOT / 'src'}:{ROOT / 'sdk/python'}"
    done = subprocess.run(
        [sys.executable, "-m", "capture", *words],
        input=text,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("raises", "what", "hint"), LIBRARIES)
def test_a_pytorch_that_cannot_be_imported_is_told_in_its_own_words(tmp_path, raises, what, hint):
    answer = capture(tmp_path, raises, ["--spec", "{}", "--out", str(tmp_path / "out")])[-1]
    assert answer["code"] == "unavailable" and hint in answer["hint"]
    assert answer["what"].startswith(f"PyTorch cannot be imported in {sys.executable}: {what}")


def test_each_of_several_captures_gets_the_reason_of_the_first_import(tmp_path):
    spec = json.dumps({"arguments": ["--spec", '{"model": "a.py:b"}'], "log": os.devnull})
    answers = capture(tmp_path, LIBRARIES[0][0], ["--serve"], f"{spec}\n{spec}\n")
    reasons = [answer["what"] for answer in answers if "what" in answer]
    assert len(reasons) == 2 and reasons[0] == reasons[1] and LIBRARIES[0][1] in reasons[0]
    assert [each["exit_code"] for each in answers if "exit_code" in each] == [1, 1]


def test_a_module_that_is_missing_beside_pytorch_is_named(tmp_path):
    raises = "ModuleNotFoundError('No module named \\'numpy\\'', name='numpy')"
    answer = capture(tmp_path, raises, ["--spec", "{}", "--out", str(tmp_path / "out")])[-1]
    assert answer["what"] == "this Python lacks a module: No module named 'numpy'"
    assert "needs torch, numpy and safetensors" in answer["hint"]
