# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of ./test that are named, counts from the runners' own reports, and closes with `N passed, N failed`.

A part that ends without a report (crashed, timed out) counts as one failure. Started by ./test after set-up.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
FUZZ_SECONDS = 30
PART_LIMIT_SECONDS = 2400
MANY_DRAWS = "simulated_runs.*:process_effect.i*"  # thousands of draws through functions that other tests call too: under the sanitizers they add minutes and no line of code


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def start(command: list[str], output: typing.IO | None = None, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def finish(process: subprocess.Popen) -> int:
    """The exit code; a command that runs into the limit is ended with its whole process group (124)."""
    try:
        return process.wait(PART_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"ended after {PART_LIMIT_SECONDS} s: {process.args}", flush=True)
        return 124
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(command: list[str], output: typing.IO | None = None) -> int:
    return finish(start(command, output))


def processes() -> int:
    """Two a core: much of a test is waiting for a process that starts, or one that is meant to hang."""
    return 2 * min(4, len(os.sched_getaffinity(0)))


def settle(counts: Counts, exit_code: int, what: str) -> Counts:
    """A runner that failed although its report shows no failure failed itself."""
    if exit_code != 0 and counts.failed == 0:
        print(f"FAILED: {what} ended with exit code {exit_code}", flush=True)
        return counts + Counts(failed=1)
    return counts


class Gtest:
    """A test program in several processes, as much of its time is waiting for workers that are meant to hang. They run until counts() is asked for."""

    def __init__(self, program: pathlib.Path, reports: pathlib.Path, *options: str, **environment: str) -> None:
        self.name = str(program.relative_to(ROOT))
        shards = range(3 * processes())
        self.files = [reports / f"gtest-{program.parent.name}-{shard}.json" for shard in shards]
        for file in self.files:
            file.unlink(missing_ok=True)
        self.running = [start([str(program), "--gtest_brief=1", f"--gtest_output=json:{file}", *options], GTEST_TOTAL_SHARDS=str(len(shards)), GTEST_SHARD_INDEX=str(shard), **environment)
                        for shard, file in enumerate(self.files)]

    def counts(self) -> Counts:
        exit_code = max(abs(finish(one)) for one in self.running)
        counts = Counts()
        for report in self.files:
            if not report.exists():
                counts = settle(counts, 1, report.name)
                continue
            for suite in json.loads(report.read_text())["testsuites"]:
                for test in suite["testsuite"]:
                    if test["result"] == "SKIPPED":
                        counts.skipped += 1
                    elif test["status"] == "RUN":
                        counts += Counts(failed=1) if test.get("failures") else Counts(passed=1)
        return settle(counts, exit_code, self.name)


def pytest(folder: pathlib.Path, report: pathlib.Path, *options: str) -> Counts:
    report.unlink(missing_ok=True)
    exit_code = run([sys.executable, "-m", "pytest", "-q", "-rs", "--tb=short", "--durations=5", "--durations-min=5", f"--junitxml={report}", *options, str(folder)])
    counts = Counts()
    if report.exists():
        for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
            number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
            bad = number["failures"] + number["errors"]
            counts += Counts(number["tests"] - bad - number["skipped"], bad, number["skipped"])
    return settle(counts, 0 if exit_code == 5 else exit_code, f"pytest {folder.relative_to(ROOT)}")


def fuzz() -> Counts:
    """tests/fuzz/run says `inputs tried: N` for each target that survived; each counts as one test."""
    log = BUILD / "test-reports/fuzz.log"
    with open(log, "w") as output:
        exit_code = run(["sh", str(ROOT / "tests/fuzz/run"), str(FUZZ_SECONDS)], output=output)
    said = log.read_text()
    print(said, end="", flush=True)
    if exit_code == 3:
        print("SKIPPED fuzzing: clang is not installed", flush=True)
        return Counts(skipped=1)
    return settle(Counts(passed=said.count("inputs tried:")), exit_code, "tests/fuzz/run")


def unit(reports: pathlib.Path) -> Counts:
    """The unit tests as they are, the same under AddressSanitizer and UndefinedBehaviorSanitizer, and beside them the fuzzers, which use one core."""
    sanitized = Gtest(BUILD / "asan/strata_unit", reports, f"--gtest_filter=-{MANY_DRAWS}", UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1", ASAN_OPTIONS="detect_stack_use_after_return=1")
    counts = Gtest(BUILD / "release/strata_unit", reports).counts()
    return fuzz() + counts + sanitized.counts()


def run_part(part: str, reports: pathlib.Path) -> Counts:
    """Files in several processes, since much of it is starting and waiting; then by themselves the tests that compare times (marker `alone`)."""
    if part == "unit":
        return unit(reports)
    folder = ROOT / "tests" / ("levels" if part == "compat" else part)
    together = ["-n", str(processes()), "--max-worker-restart=0", "--dist", "loadgroup" if part == "report" else "loadscope",  # its one file marks what shares a page
                "--no-loadscope-reorder"]  # in the order of conftest.py, not those of many tests first
    if folder.name != "levels":
        return pytest(folder, reports / f"{folder.name}.xml", *together)
    return pytest(folder, reports / "levels.xml", "-m", "not alone", *together) + pytest(folder, reports / "levels-alone.xml", "-m", "alone")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set-up-seconds", type=int, default=0)
    parser.add_argument("parts", nargs="+", choices=["unit", "cli", "levels", "report", "compat"])
    options = parser.parse_args()
    total, begin = Counts(), time.monotonic()
    reports = BUILD / "test-reports"
    reports.mkdir(parents=True, exist_ok=True)
    lines = []
    for part in options.parts:
        print(f"\n== {part}", flush=True)
        started = time.monotonic()
        counts = run_part(part, reports)
        lines.append(f"{part:8} {counts} in {time.monotonic() - started:.0f} s")
        total += counts
    print("\n" + "\n".join(lines))
    print(f"set-up took {options.set_up_seconds} s, the tests {time.monotonic() - begin:.0f} s")
    if total.passed + total.failed == 0:
        print("no test ran", file=sys.stderr)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
