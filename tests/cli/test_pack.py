# SPDX-License-Identifier: Apache-2.0
"""What a pack for a machine without a network does there (setup/pack/run.py), by a plan of small
programs in place of the steps of bench/gpu: limits, results at once, going on, what differs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "setup" / "pack"))

import assemble  # noqa: E402

STEPS = """
import sys
from dataclasses import dataclass, field

TITLE, ASSUMED = "small programs", {"python": "3.12", "torch": "2.11.0"}


@dataclass
class Command:
    name: str
    words: list
    limit_s: float
    environment: dict = field(default_factory=dict)
    states: dict = field(default_factory=lambda: {0: "done", 77: "skipped"})
    page: bool = False


@dataclass
class Step:
    number: int
    title: str
    commands: list


def program(text):
    return [sys.executable, "-c", text]


def steps(pack, python, device, rehearse):
    touch = f"open({str(pack / 'touched')!r}, 'a').write('x')"
    return [
        Step(1, "first", [
            Command("json", program("print('{\\"answer\\": 42}')"), 60),
            Command("page", program("print('# read me')"), 60, page=True),
            Command("once", program(touch), 60),
        ]),
        Step(2, "second", [
            Command("fails", program("import sys; print('why', file=sys.stderr); sys.exit(3)"), 60),
            Command("skips", program("import sys; sys.exit(77)"), 60),
            Command("no such tool", ["/no/such/tool"], 60),
            Command("sleeps", program("import time; print('awake', flush=True); time.sleep(600)"), 1),
        ]),
    ]
"""


@pytest.fixture
def pack(tmp_path) -> Path:
    """A pack with neither programs nor a tree; its `python` only says what it is."""
    folder = tmp_path / "pack"
    (folder / "bin").mkdir(parents=True)
    shutil.copy2(ROOT / "setup" / "pack" / "run.py", folder / "run")
    (folder / "steps.py").write_text(STEPS)
    (folder / "commit").write_text("0123456789\n")
    answer = json.dumps([str(tmp_path), {"python": "3.12.3", "torch": "2.12.0", "device": ""}])
    (folder / "python").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (folder / "python").chmod(0o755)
    return folder


def run(pack: Path, *options: str) -> tuple[int, str, dict]:
    """Exit code, what was printed, and the commands of results.json."""
    done = subprocess.run(
        [
            sys.executable,
            pack / "run",
            "--python",
            pack / "python",
            "--out",
            pack / "out",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    results = pack / "out" / "results.json"
    commands = json.loads(results.read_text())["commands"] if results.exists() else {}
    return done.returncode, done.stdout + done.stderr, commands


def test_every_command_has_a_result_and_one_that_hangs_is_ended_by_its_limit(pack):
    begin = time.monotonic()
    code, text, commands = run(pack)
    assert code == 1 and time.monotonic() - begin < 30
    assert {name: entry["state"] for name, entry in commands.items()} == {
        "json": "done",
        "page": "done",
        "once": "done",
        "fails": "failed (3)",
        "skips": "skipped",
        "no such tool": "skipped: [Errno 2] No such file or directory: '/no/such/tool'",
        "sleeps": "out of time",
    }
    assert commands["json"]["result"] == {"answer": 42}
    assert commands["fails"]["end_of_log"] == "why\n" and "| why" in text
    assert "2 not: ['fails', 'sleeps']" in text
    assert gzip.open(pack / "out" / "logs.txt.gz", "rt").read().count("==== ") == 7
    page = (pack / "out" / "results.md").read_text()
    assert (
        "# read me" in page and "- differs: torch is 2.12.0, the pack was made for 2.11.0" in page
    )
    assert "differs: PyTorch sees no CUDA device" in text


def test_a_second_run_goes_on_after_what_had_ended(pack):
    assert run(pack, "--only", "1")[0] == 0
    _, text, commands = run(pack)
    assert text.count("done earlier") == 3 and len(commands) == 7
    assert (pack / "touched").read_text() == "x"


def test_what_the_limit_of_the_whole_run_ended_is_tried_again(pack):
    steps = (pack / "steps.py").read_text()
    (pack / "steps.py").write_text(steps.replace('time.sleep(600)"), 1)', 'time.sleep(600)"), 60)'))
    _, _, commands = run(pack, "--commands", "sleeps", "--minutes", "0.26")
    assert commands["sleeps"]["state"] == "out of time" and not commands["sleeps"]["ended"]
    _, text, _ = run(pack, "--commands", "sleeps", "--minutes", "0.1")
    assert "no time is left" in text and "done earlier" not in text


def test_a_step_or_command_that_there_is_not_is_refused_with_those_that_there_are(pack):
    for options, message in [
        (("--only", "7"), "--only: there is no step 7; steps: 1 to 2"),
        (("--commands", "jason"), "--commands: there is no 'jason'; there are: json; page"),
    ]:
        code, text, commands = run(pack, *options)
        assert code == 1 and message in text and not commands


def test_an_interpreter_without_pytorch_is_named(pack):
    (pack / "python").write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    code, text, _ = run(pack)
    assert code == 1 and f"{pack / 'python'} has no PyTorch that works: no torch here" in text


def test_the_plan_of_bench_gpu_names_each_command_once_and_files_that_the_pack_has():
    listed = subprocess.run(
        [sys.executable, "-c", PLAN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    commands = [json.loads(line) for line in listed.stdout.splitlines()]
    names = [name for name, _, _ in commands]
    assert len(names) == len(set(names)) > 8
    for _, words, limit_s in commands:
        assert 0 < limit_s <= 600
        for word in words:
            if word.startswith("/pack/tree/"):
                assert (ROOT / word.removeprefix("/pack/tree/")).exists(), word
            if word.startswith("/pack/bin/"):
                assert word.removeprefix("/pack/bin/") in ("strata", *assemble.PROGRAMS), word


PLAN = """
import json, pathlib, sys
sys.path.insert(0, "bench/gpu")
import steps
for step in steps.steps(pathlib.Path("/pack"), "python3", "cuda", False):
    for command in step.commands:
        print(json.dumps([command.name, [str(word) for word in command.words], command.limit_s]))
"""


def test_the_target_has_compiler_and_nvidia_libraries_and_the_pack_brings_the_others():
    for name in (
        "libc.so.6",
        "libstdc++.so.6",
        "libgomp-a34b3233.so.1",
        "libcudart.so.13",
        "libcublasLt.so.13",
        "libcudnn.so.9",
        "libcupti.so.13",
        "libnccl.so.2",
        "libnvrtc.so.13",
        "libtorch_cuda.so",
        "ld-linux-x86-64.so.2",
    ):
        assert assemble.FROM_TARGET.match(name), name
    for name in ("libcrypto.so.3", "libfmt.so.9", "libsqlite3.so.0", "libpng16.so.16", "libz.so.1"):
        assert not assemble.FROM_TARGET.match(name), name
    assert os.access(ROOT / "bench" / "gpu" / "make", os.X_OK)
