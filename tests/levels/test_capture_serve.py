# SPDX-License-Identifier: Apache-2.0
"""Many captures by one process, each a fork of it: they answer as captures of their own do, see
nothing of each other, and end with what asked for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from preloaded import PYTHON
from specs import whole

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "levels" / "tiny.py"
COUNTS = """
import os, time, torch
from torch import nn
calls = []
def build():
    calls.append(1)
    assert len(calls) == 1 and torch.initial_seed() == 0
    return nn.Linear(6, 3), torch.linspace(-1, 1, 12).reshape(2, 6)
def dies():
    os.kill(os.getpid(), 9)
def waits():
    time.sleep(600)
"""


@pytest.fixture
def server():
    process = subprocess.Popen(
        [PYTHON, "-m", "capture", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}"},
    )
    yield process
    process.kill()
    process.wait()


def ask(server, folder: Path, name: str, model: str) -> None:
    spec = {"model": model, "threads": 1} | (
        {"inputs": [{"name": "", "dtype": "float32", "shape": [2, 6]}]}
        if model.startswith(str(TINY))
        else {}
    )
    server.stdin.write(
        json.dumps(
            {
                "arguments": [
                    "--spec",
                    json.dumps(whole(spec)),
                    "--out",
                    str(folder / name),
                    "--networks",
                    str(folder / "networks"),
                ],
                "log": str(folder / f"{name}.log"),
            }
        )
        + "\n"
    )
    server.stdin.flush()


def answer(server) -> tuple[dict, int]:
    """The last line of a capture, and its exit code."""
    last: dict = {}
    for line in server.stdout:
        message = json.loads(line)
        if "exit_code" in message:
            return last, message["exit_code"]
        last = message
    raise AssertionError("the process ended")


def test_captures_of_one_process_see_nothing_of_each_other(server, tmp_path):
    (tmp_path / "net.py").write_text(COUNTS, encoding="utf-8")
    for name in ("first", "second"):
        ask(server, tmp_path, name, f"{tmp_path}/net.py:build")
        assert answer(server) == ({"ok": True}, 0)
    first, second = (
        (tmp_path / name / "weights" / "timed.safetensors").stat().st_ino
        for name in ("first", "second")
    )
    assert first == second
    assert [
        entry
        for name in ("first", "second")
        for entry in json.loads((tmp_path / name / "bundle.json").read_text())["read"]
        if entry["path"].endswith("net.py")
    ]


def test_what_goes_wrong_in_one_capture_is_answered_and_the_next_one_runs(server, tmp_path):
    (tmp_path / "net.py").write_text(COUNTS, encoding="utf-8")
    ask(server, tmp_path, "none", f"{tmp_path}/none.py:build")
    last, code = answer(server)
    assert code == 1 and last["ok"] is False and "does not exist" in last["what"]
    ask(server, tmp_path, "dies", f"{tmp_path}/net.py:dies")
    assert answer(server)[1] == -signal.SIGKILL
    ask(server, tmp_path, "chatty", f"{TINY}:build")
    assert answer(server) == ({"ok": True}, 0) and "chatty" in (tmp_path / "chatty.log").read_text()
    assert not (tmp_path / "dies").exists() and not (tmp_path / "none").exists()


def test_a_capture_ends_with_the_process_that_serves_it(server, tmp_path):
    (tmp_path / "net.py").write_text(COUNTS, encoding="utf-8")
    ask(server, tmp_path, "waits", f"{tmp_path}/net.py:waits")
    while not (half := list(tmp_path.glob(".waits.partial-*"))):
        time.sleep(0.02)
    pid = int(half[0].name.rpartition("-")[2])
    server.kill()
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
