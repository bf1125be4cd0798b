# SPDX-License-Identifier: Apache-2.0
"""What the pack of bench/gpu/make does on its machine (bench/gpu/run_steps.py), by a plan of small
programs in place of its steps: limits, results at once, going on, what differs."""

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
from commands import ROOT, executable
from packed import DRIVER, compiled

sys.path.insert(0, str(ROOT / "bench/gpu"))

import assemble
from stratabench.pack import lay
from stratabench.pack.facts import machine

STEPS = """
import sys
from dataclasses import dataclass, field

TITLE = "small programs"


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


def steps(pack, strata, programs, python, device, rehearse):
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


ABOUT = {
    "id": "0123456789abcdef",
    "machine": machine(),
    "device": "cuda",
    "glibc": "2.17",
    "python": "3.12.1",
    "torch": "2.11.0",
    "cuda": "13.0",
    "levels": {},
    "programs": {},
    "compile_there": [],
    "instructions": [],
    "modules": {},
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    return compiled(tmp_path_factory.mktemp("driver") / "strata", DRIVER)


@pytest.fixture
def pack(tmp_path, driver) -> Path:
    """A pack of a driver alone; its `python` only says what it is."""
    folder = tmp_path / "pack"
    for name in ("bin", "lib", "fallback"):
        (folder / name).mkdir(parents=True)
    shutil.copy2(driver, folder / "bin")
    shutil.copytree(ROOT / "python/stratabench", folder / "python/stratabench")
    shutil.copy2(ROOT / "bench/gpu/run_steps.py", folder)
    (folder / "pack.json").write_text(json.dumps(ABOUT))
    (folder / "steps.py").write_text(STEPS)
    (folder / "commit").write_text("0123456789\n")
    versions = {"python": "3.12.3", "torch": "2.12.0", "cuda": "13.0", "device": ""}
    facts = {
        "python": "3.12.3",
        "torch": "2.12.0",
        "cuda": "13.0",
        "packages": "",
        "hidden": [],
        "modules": [],
    }
    executable(
        folder / "python3",
        f"""#!/bin/sh
case "$2" in
  *importlib.metadata*) echo '{json.dumps(versions)}' ;;
  *) echo '{json.dumps(facts)}' ;;
esac
""",
    )
    return folder


def run(pack: Path, *options: str) -> tuple[int, str, dict]:
    """Exit code, what was printed, and the commands of results.json."""
    done = subprocess.run(
        [
            sys.executable,
            pack / "run_steps.py",
            "--python",
            pack / "python3",
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
    assert "# read me" in page
    assert f"- differs: {pack / 'python3'} has PyTorch 2.12.0, the pack was made for 2.11.0" in page
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
    (pack / "python3").write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    code, text, _ = run(pack)
    assert code == 1 and f"{pack / 'python3'} has no PyTorch that works: no torch here" in text


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
                assert word.removeprefix("/pack/bin/") in ("strata", *assemble.CHECKS), word


PLAN = """
import json, pathlib, sys
sys.path.insert(0, "bench/gpu")
import steps
pack = pathlib.Path("/pack")
for step in steps.steps(pack, pack / "bin/strata", pack / "bin", "python3", "cuda", False):
    for command in step.commands:
        print(json.dumps([command.name, [str(word) for word in command.words], command.limit_s]))
"""


def test_its_levels_come_with_their_programs():
    assert assemble.level("static").programs == ("level_static", "strata_generate")
    assert assemble.level("eager").programs == ()
    assert os.access(ROOT / "bench/gpu/make", os.X_OK)
    assert {"tests/levels", "bench/gpu"} <= {*assemble.TREE} and not {*assemble.TREE} & {*lay.TREE}
