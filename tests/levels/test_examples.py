# SPDX-License-Identifier: Apache-2.0
"""`strata level check` and `strata level new`, on the examples, the skeletons, and workers that
break one rule each."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build/release/strata"))
FAKE = ROOT / "tests/fakes/fake_worker.py"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

# Nothing the fake says takes real time: short samples fit the driver's clock, and one long first
# iteration is warm-up enough.
QUICK = {"samples": {"median_ns": 1}, "first_ns": 2_000_000}


def strata(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess:
    environment = (
        os.environ
        | {
            "STRATA_ROOT": str(ROOT),
            "STRATA_PYTHON": sys.executable,
            "STRATA_TOOLS_PYTHON": sys.executable,
        }
        | variables
    )
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )


def lines(done: subprocess.CompletedProcess, mark: str) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith(mark + "  ")]


def fake(tmp_path: Path, script: dict) -> Path:
    """A program that acts out `script`."""
    program = tmp_path / "fake"
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -IS {FAKE} '{json.dumps(script)}'\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")
def test_the_level_in_perl_keeps_the_protocol():
    done = strata("level", "check", ROOT / "examples/perl_level")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines(done, "FAIL") == []
    assert [line for line in lines(done, "skip") if "optional" not in line] == []
    assert len(lines(done, "pass")) >= 34


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")
def test_the_level_in_perl_refuses_another_network(bundles):
    done = strata("level", "check", ROOT / "examples/perl_level", "--bundle", bundles("one_thread"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(
        "unsupported: only the network of examples/tiny_mlp.py" in line
        for line in lines(done, "skip")
    )


def test_the_example_network_is_the_one_that_the_suite_computes(tmp_path):
    """eager builds examples/tiny_mlp.py and loads the suite's weights: its results must meet the
    suite's reference."""
    done = strata("level", "check", "eager", **preloaded.interpreter())
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("computes what the reference says" in line for line in lines(done, "pass")), (
        done.stdout
    )


def test_a_faultless_worker_passes(tmp_path):
    done = strata("level", "check", fake(tmp_path, QUICK))
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines(done, "FAIL") == []


def test_lines_of_progress_before_an_answer_break_no_rule(tmp_path):
    progress_script = {
        "ops": {op: {"progress": ["this", "that"]} for op in ("hello", "load", "warm_up")}
    }
    done = strata("level", "check", fake(tmp_path, QUICK | progress_script))
    assert done.returncode == 0, done.stdout + done.stderr


BROKEN = {
    "junk instead of an answer": ({"ops": {"hello": {"junk": "hi"}}}, "starts and answers hello"),
    "a field of hello missing": ({"extra_hello": {"devices": None}}, "says in hello what it is"),
    "an operation missing from ops": (
        {"extra_hello": {"ops": ["hello", "bye"]}},
        "says in hello what it is",
    ),
    "an unprotected stream": ({"leave_stdout": True}, "points fd 1 at fd 2"),
    "a wrong id": ({"ops": {"memory": {"id": 99}}}, "carries the id"),
    "two answers to one request": ({"ops": {"memory": {"twice": True}}}, "FAIL"),
    "a crash": ({"ops": {"prove": {"signal": 11, "after": 2}}}, "SIGSEGV"),
    "life after its input closed": ({"ignore_eof": True}, "ends within 5 s when its input closes"),
    "other numbers": ({"outputs": {"scale": 1.01}}, "computes what the reference says"),
    "the same result for every input": ({"same_output": True}, "computes what the reference says"),
    "weights that never change": ({"outputs": {"from": "timed"}}, "computes with other weights"),
    "latency longer than the iteration": (
        {"ops": {"measure": {"answer": {"latency_ns": [10**15] * 7}}}},
        "measures blocks",
    ),
    "times that do not fit the clock": (
        {"samples": {"median_ns": 10**13}, "first_ns": 1},
        "measures blocks",
    ),
    "a debug build that lies about settings": (
        {"ops": {"load": {"answer": {"settings": {}}}}},
        "loads the network",
    ),
    "a failure without a known code": (
        {"ops": {"load": {"error": {"code": "sad", "what": "no"}}}},
        "loads the network",
    ),
    "a wrong count of inputs": (
        {"ops": {"inputs": {"answer": {"count": 1}, "after": 2}}},
        "takes the ring of inputs",
    ),
    "a bye that does not exit": ({"ops": {"bye": {"hang": True}}}, "answers bye"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_worker_that_breaks_one_rule_is_found_out(tmp_path, name):
    script, expected = BROKEN[name]
    done = strata("level", "check", fake(tmp_path, QUICK | script), "--timeout", "5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(expected in line for line in lines(done, "FAIL")) or (
        expected == "FAIL" and lines(done, "FAIL")
    ), done.stdout


def test_a_level_that_cannot_run_the_network_is_not_blamed(tmp_path):
    done = strata("level", "check", fake(tmp_path, QUICK | {"unsupported": "no linear"}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("unsupported: no linear" in line for line in lines(done, "skip"))


def test_a_bundle_for_training_is_wrong_usage(tmp_path):
    (tmp_path / "bundle.json").write_text(
        json.dumps(
            {"bundle": 2, "case": {"mode": "train"}, "outputs": [], "parameters": 0, "ring": 4}
        ),
        encoding="utf-8",
    )
    done = strata("level", "check", fake(tmp_path, QUICK), "--bundle", tmp_path)
    assert (
        done.returncode == 2
        and "is a bundle of mode train, and the checks are of inference" in done.stderr
        and "capture" in done.stderr
    )


def test_a_program_that_does_not_exist_is_wrong_usage():
    done = strata("level", "check", "eagre")
    assert done.returncode == 2
    assert "eager" in done.stderr


def test_arguments_after_two_dashes_reach_the_program(tmp_path):
    done = strata(
        "level", "check", FAKE, "--timeout", "5", "--", json.dumps({"ops": {"hello": {"exit": 5}}})
    )
    assert done.returncode == 1
    assert "exited with code 5" in done.stdout


def test_a_new_python_level_passes_at_once(tmp_path):
    new_level = strata("level", "new", "new_python", "--language", "python", "--into", tmp_path)
    assert new_level.returncode == 0, new_level.stderr
    done = strata("level", "check", tmp_path / "new_python")
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("new_python runs no network yet" in line for line in lines(done, "skip"))
    again = strata("level", "new", "new_python", "--language", "python", "--into", tmp_path)
    assert again.returncode == 2
    assert "exists; nothing was written" in again.stderr


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("ninja") is None, reason="no cmake or ninja here"
)
def test_a_new_cpp_level_passes_once_it_is_built(tmp_path):
    new_level = strata("level", "new", "new_cpp", "--language", "c++", "--into", tmp_path)
    assert new_level.returncode == 0, new_level.stderr
    folder = tmp_path / "new_cpp"
    # NDEBUG as in the real flags: the suite tells a debug build apart.
    subprocess.run(
        [
            "cmake",
            "-S",
            folder,
            "-B",
            folder / "build",
            "-G",
            "Ninja",
            f"-DSTRATA_ROOT={ROOT}",
            "-DCMAKE_UNITY_BUILD=ON",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG",
            *launcher(),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    subprocess.run(
        ["ninja", "-C", folder / "build"], check=True, stdout=subprocess.DEVNULL, timeout=280
    )
    done = strata("level", "check", folder)
    assert done.returncode == 0, done.stdout + done.stderr


def launcher() -> list[str]:
    return ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("Bad-Id", "--language", "python"), "a-z"),
        (("fine", "--language", "cpp"), "did you mean c++"),
        (("fine", "--language", "cobol"), "c++, python"),
    ],
)
def test_a_new_level_with_a_bad_name_or_language_is_wrong_usage(tmp_path, arguments, expected):
    done = strata("level", "new", *arguments, "--into", tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert list(tmp_path.iterdir()) == []
