# SPDX-License-Identifier: Apache-2.0
"""`import stratabench` in processes that are not as usual: forked ones beside threads, and such
that are interrupted or fail in the middle of a question."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import MODEL, PROGRAM, ROOT, samples

sys.path.insert(0, str(ROOT / "python"))

import stratabench
from stratabench import engine

FORKS = """
import multiprocessing, threading
import torch
import stratabench as strata

net = torch.nn.Sequential(torch.nn.Conv2d(64, 128, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
net = net.to(memory_format=torch.channels_last)
example = torch.rand(2, 64, 16, 16).to(memory_format=torch.channels_last)
torch.set_num_threads(2)
for _ in range(3):
    net(example)  # threads of OpenMP, which a forked process lacks
    torch.rand(64, 1 << 14).t().contiguous()
ended = threading.Event()
threads = [threading.Thread(target=ended.wait, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()


def one():
    return 1


def two():
    return 2


def ask(answers):
    r = strata.compare(net, example, levels=["slow", "fast"], threads=1, restarts=1, budget_s=1.0, store="own.db", progress=False)
    timed = strata.timeit(one, two, runs=1, budget_s=0.5, progress=False)
    with strata.meters() as m:
        one()
    rows = [row["state"] for row in timed.tables["commands"].rows]
    answers.put([[row.state for row in r.rows], rows, m.wall_s > 0])


context = multiprocessing.get_context("fork")
answers = context.SimpleQueue()
child = context.Process(target=ask, args=(answers,))
child.start()
child.join(60)
child.kill()
child.join()
print(child.exitcode, None if answers.empty() else answers.get())
ended.set()
"""


@pytest.fixture
def script(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))

    def run(text):
        file = strata.folder / "script.py"
        file.write_text(text)
        return subprocess.run(
            [sys.executable, file],
            env=strata.environment
            | {"STRATA_PROGRAM": str(PROGRAM), "PYTHONPATH": str(ROOT / "python")},
            cwd=strata.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_forked_process_beside_threads_asks_as_any_other(script):
    done = script(FORKS)
    expected = [["measured"] * 2, ["measured"] * 2, True]
    assert done.stdout == f"0 {expected}\n", done.stdout + done.stderr[-3000:]


def test_an_error_of_who_is_told_of_progress_ends_the_question_at_once(script, strata, monkeypatch):
    for name, value in (strata.environment | {"STRATA_PROGRAM": str(PROGRAM)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "is_own", lambda python: True)
    raised = []

    def listen(event):
        if "measuring" in event.text:
            raised.append(time.monotonic())
            raise ZeroDivisionError("in a progress function")

    store = strata.folder / "own.db"
    with pytest.raises(ZeroDivisionError):
        stratabench.compare(
            MODEL, levels=["slow", "fast"], budget_s=300, threads=1, progress=listen, store=store
        )
    assert time.monotonic() - raised[0] < 8
    assert stratabench.open_store(store).runs()[0]["state"] == "interrupted"


LINGERS = """#!/bin/sh
read line
echo '{"id": 1, "result": [], "run": null, "exit_code": 0, "cancelled": false, "failed": null}'
echo ready >&2
trap '' INT
exec sleep 300
"""


def test_an_interrupt_after_the_answer_is_the_callers_and_leaves_no_process(tmp_path, monkeypatch):
    program = tmp_path / "lingers"
    program.write_text(LINGERS)
    program.chmod(0o755)
    monkeypatch.setenv("STRATA_PROGRAM", str(program))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), engine.Engine() as process:
            assert process.ask({"verb": "runs"}).result == []
            threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.process.returncode == -signal.SIGKILL


def test_a_process_that_was_forked_meanwhile_does_not_hold_the_question_up(
    script, strata, monkeypatch
):
    for name, value in (strata.environment | {"STRATA_PROGRAM": str(PROGRAM)}).items():
        monkeypatch.setenv(name, value)
    with engine.Engine(strata.folder / "own.db", levels=["none"]) as process:
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        assert process.ask({"verb": "data"}).exit_code == 0
        begin = time.monotonic()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert time.monotonic() - begin < 8 and process.process.returncode != -signal.SIGKILL
