# SPDX-License-Identifier: Apache-2.0
"""The process of a Python level: its streams, its end, what it imports, its overhead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from client import ROOT, Worker, environment, level_folder
from scale_level import MEASURE


def test_a_chatty_level_does_not_corrupt_the_stream(sample):
    worker = sample(
        "def run(self):\n        print('from print'); os.write(1, b'from fd 1\\n'); os.system('echo from a child'); self.y = self.x"
    )
    worker.load()
    worker.prove([0, 1])
    worker.measure([0, 1])
    worker.ask("bye")
    assert worker.process.wait(5) == 0 and worker.process.stdout.read() == b""
    log = worker.log_text()
    assert "from print" in log and "from fd 1" in log and "from a child" in log


def test_ends_when_its_input_closes_between_requests(sample):
    worker = sample()
    worker.load()
    worker.process.stdin.close()
    assert worker.process.wait(5) == 0


def test_ends_when_its_input_closes_during_a_request(sample):
    worker = sample("def run(self):\n        import time; time.sleep(600)")
    worker.load()
    worker.process.stdin.write(
        json.dumps({"id": 9, "op": "prove", "indices": [0], "out": "x"}).encode() + b"\n"
    )
    worker.process.stdin.flush()
    time.sleep(0.2)
    worker.process.stdin.close()
    assert worker.process.wait(8) == 1
    assert "input was closed" in worker.log_text()


def test_answers_all_that_was_sent_before_its_input_closed(tmp_path):
    folder = level_folder("null_py")
    requests = b"".join(b'{"id":%d,"op":"memory"}\n' % i for i in range(50))
    done = subprocess.run(
        [sys.executable, "-m", "strata_sdk", str(folder)],
        input=requests,
        env=environment(folder),
        stdout=subprocess.PIPE,
        timeout=30,
        cwd=tmp_path,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(
        range(50)
    ) and done.returncode == 0


def test_continues_after_it_was_stopped(sample):
    worker = sample()
    worker.load()
    os.kill(worker.process.pid, signal.SIGSTOP)
    os.kill(worker.process.pid, signal.SIGCONT)
    assert worker.prove([0])["0/output"][0, 0] == 10


def test_a_file_of_the_working_folder_does_not_shadow_a_library(tmp_path, scale_bundle):
    (tmp_path / "safetensors.py").write_text("raise SystemExit('shadowed')")
    folder = level_folder("null_py")
    requests = json.dumps(
        {
            "id": 1,
            "op": "load",
            "case": json.loads((scale_bundle / "bundle.json").read_text())["case"],
            "bundle": str(scale_bundle),
            "weights": "timed",
            "cache": "x",
        }
    )
    requests += (
        "\n"
        + json.dumps({"id": 2, "op": "inputs", "path": str(scale_bundle / "inputs.safetensors")})
        + "\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "strata_sdk", str(folder)],
        input=requests,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        cwd=tmp_path,
    )
    assert [json.loads(line)["ok"] for line in done.stdout.splitlines()] == [True, True]


def test_packages_of_the_overlay_come_last(tmp_path):
    (tmp_path / "only_in_overlay.py").write_text("")
    (tmp_path / "json.py").write_text("raise ImportError")
    code = "import strata_sdk, json, only_in_overlay, sys; print(sys.path[-1])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(ROOT, STRATA_OVERLAY=str(tmp_path)),
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    assert done.stdout.strip() == str(tmp_path)


@pytest.fixture
def null(scale_bundle):
    with Worker("null_py", scale_bundle, threads=1) as worker:
        worker.load()
        yield worker


def test_null_proves_nothing_and_leaves_no_file(null, tmp_path):
    assert null.ask("prove", indices=[0, 1], out=str(tmp_path / "x"))["outputs"] == []
    null.ask("measure", **(MEASURE | {"out": str(tmp_path / "x")}))
    assert not (tmp_path / "x").exists()


def test_the_loop_costs_under_5_microseconds_an_iteration(null):
    null.ask("warm_up", iterations=1000, min_ns=0)
    count = 20000
    answer, _ = null.measure([i % 4 for i in range(count)], check=0)
    assert sorted(answer["wall_ns"])[count // 2] < 5000
    assert answer["cpu_ns"] / count < 5000, "between the recorded spans too"


def test_warm_up_honours_both_bounds_and_returns_few_times(null):
    assert null.ask("warm_up", iterations=7, min_ns=0)["iterations"] == 7
    long = null.ask("warm_up", iterations=1, min_ns=30_000_000)
    assert long["iterations"] > 4096 and len(long["wall_ns"]) == 4096
