# SPDX-License-Identifier: Apache-2.0
"""./test itself: its counts, what it skips and how it goes on."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

from commands import ROOT, executable, run


def load_runner():
    if str(ROOT / "setup") not in sys.path:
        sys.path.insert(0, str(ROOT / "setup"))
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "setup/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_tests"] = module
    spec.loader.exec_module(module)
    return module


def run_tests(tmp_path, body: str, *options: str):
    runner = tmp_path / "setup/run_tests.py"
    runner.parent.mkdir(exist_ok=True)
    for name in ("run_tests.py", "skips.py"):
        shutil.copy(ROOT / "setup" / name, runner.parent)
    (tmp_path / "tests/cli").mkdir(parents=True, exist_ok=True)
    (tmp_path / "tests/cli/test_x.py").write_text(body)
    return run(
        [sys.executable, runner, "--set-up-seconds", "5", *options, "cli"],
        PYTHONDONTWRITEBYTECODE="1",
    )


def test_closes_with_the_counts_and_names_what_was_skipped(tmp_path):
    result = run_tests(
        tmp_path,
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\ndef test_c(): pytest.skip('no file system can be mounted here without rights')\n",
    )
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 1 skipped"
    assert "no file system" in result.stdout and "set-up took 5 s" in result.stdout


def test_a_test_that_is_skipped_although_this_machine_can_run_it_is_a_failure(tmp_path):
    result = run_tests(
        tmp_path,
        "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('the level static is not built')\n",
    )
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert (
        "test_b was skipped, and nothing here says that it cannot run: the level static is not built"
        in result.stdout.replace("Skipped: ", "")
    )


def test_every_reason_to_skip_is_looked_up_on_the_machine(monkeypatch):
    load_runner()
    import skips

    monkeypatch.setattr(skips, "has_cuda_device", lambda: True)
    assert not skips.may_skip("there is no CUDA driver")
    monkeypatch.setattr(skips, "has_cuda_device", lambda: False)
    assert skips.may_skip("there is no CUDA driver")
    monkeypatch.setattr(skips, "has_level_environments", lambda: True)
    assert not skips.may_skip("the environment of ncnn is not installed")
    monkeypatch.setattr(skips, "has_level_environments", lambda: False)
    assert skips.may_skip("the environment of ncnn is not installed")
    monkeypatch.setattr(skips, "processor_has", lambda *_: True)
    assert not skips.may_skip(
        "this processor has no AVX-512, without which static has no bfloat16 (asked of /proc/cpuinfo)"
    ) and not skips.may_skip("for no reason that is known")


def test_a_run_that_was_stopped_goes_on_until_a_source_changes(tmp_path):
    passes, fails = "def test_a(): pass\n", "def test_a(): assert False\n"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("build\n.pytest_cache\n")
    assert run_tests(tmp_path, fails, "--resume").returncode == 1
    # what failed is not finished
    assert "by an earlier run" not in run_tests(tmp_path, fails, "--resume").stdout
    assert "by an earlier run" not in run_tests(tmp_path, passes, "--resume").stdout
    again = run_tests(tmp_path, passes, "--resume")
    assert (
        "by an earlier run of the same sources" in again.stdout
        and again.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    )
    assert run_tests(tmp_path, fails, "--resume").returncode == 1


def test_a_broken_test_file_is_a_failure(tmp_path):
    result = run_tests(tmp_path, "import there_is_no_such_module\n")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_fails_when_no_test_ran(tmp_path):
    result = run_tests(tmp_path, "")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"


def test_a_runner_that_dies_without_a_report_is_a_failure(tmp_path):
    result = run_tests(tmp_path, "import os\ndef test_a(): os.kill(os.getpid(), 9)\n")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_counts_a_cpp_test_program_by_its_report(tmp_path):
    module = load_runner()
    report = (
        '{"testsuites":[{"testsuite":[{"status":"RUN","result":"COMPLETED"},{"status":"RUN","result":"COMPLETED","failures":[{}]},'
        '{"status":"RUN","result":"SKIPPED"},{"status":"NOTRUN","result":"SUPPRESSED"}]}]}'
    )
    # its tests lie in the first shard
    program = executable(
        tmp_path / "p",
        f"#!/bin/sh\n[ $GTEST_SHARD_INDEX = 0 ] || exit 0\nfor a; do case $a in --gtest_output=json:*) echo '{report}' >\"${{a#--gtest_output=json:}}\";; esac; done; exit 1\n",
    )
    module.ROOT = tmp_path
    assert str(module.Gtest(program, tmp_path).counts()) == "1 passed, 1 failed, 1 skipped"
    silent = executable(tmp_path / "q", "#!/bin/sh\nexit 139\n")
    assert str(module.Gtest(silent, tmp_path).counts()) == "0 passed, 1 failed, 0 skipped"


def test_an_unknown_part_is_refused():
    result = run([ROOT / "test", "unti"])
    assert (
        result.returncode == 2
        and "fast, style, unit, cli, levels, report, all and compat" in result.stderr
    )
