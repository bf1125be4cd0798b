# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of ./test that are named, counts from the runners' own reports, and closes with `N
passed, N failed, N skipped`.

A part that ends without a report (crashed, timed out) counts as one failure, a test that was
skipped although this machine can run it (skips.py) as another. With --resume a part that passed is
not repeated until a source changes. Started by ./test after set-up.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing
import xml.etree.ElementTree
from collections.abc import Callable

import skips

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
FUZZ_SECONDS = 30
PART_LIMIT_SECONDS = 2400
# thousands of draws through functions that other tests call too: under the sanitizers they add
# minutes and no line of code
MANY_DRAWS = "simulated_runs.*:process_effect.i*"


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def start(
    command: list[str], output: typing.IO | None = None, /, **environment: str
) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def finish(process: subprocess.Popen) -> int:
    """The exit code; a command that runs into the limit is ended with its whole process group
    (124)."""
    try:
        return process.wait(PART_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"ended after {PART_LIMIT_SECONDS} s: {process.args!r}", flush=True)
        return 124
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(command: list[str], output: typing.IO | None = None) -> int:
    return finish(start(command, output))


def processes() -> int:
    """Two a core: much of a test is waiting for a process that starts, or one that is meant to
    hang."""
    return 2 * min(4, len(os.sched_getaffinity(0)))


def settle(counts: Counts, exit_code: int, what: str) -> Counts:
    """A runner that failed although its report shows no failure failed itself."""
    if exit_code != 0 and counts.failed == 0:
        print(f"FAILED: {what} ended with exit code {exit_code}", flush=True)
        return counts + Counts(failed=1)
    return counts


def of_skip(test: str, reason: str) -> Counts:
    if skips.may_skip(reason):
        return Counts(skipped=1)
    print(
        f"FAILED: {test} was skipped, and nothing here says that it cannot run: {reason}",
        flush=True,
    )
    return Counts(failed=1)


class Gtest:
    """A test program in several processes, as much of its time is waiting for workers that are
    meant to hang. They run until counts() is asked for."""

    def __init__(
        self, program: pathlib.Path, reports: pathlib.Path, *options: str, **environment: str
    ) -> None:
        self.name = str(program.relative_to(ROOT))
        shards = range(3 * processes())
        self.files = [reports / f"gtest-{program.parent.name}-{shard}.json" for shard in shards]
        for file in self.files:
            file.unlink(missing_ok=True)
        self.running = [
            start(
                [str(program), "--gtest_brief=1", f"--gtest_output=json:{file}", *options],
                GTEST_TOTAL_SHARDS=str(len(shards)),
                GTEST_SHARD_INDEX=str(shard),
                **environment,
            )
            for shard, file in enumerate(self.files)
        ]

    def counts(self) -> Counts:
        exit_code = max(abs(finish(process)) for process in self.running)
        counts = Counts()
        for report in self.files:
            if not report.exists():
                counts = settle(counts, 1, report.name)
                continue
            for suite in json.loads(report.read_text())["testsuites"]:
                for test in suite["testsuite"]:
                    if test["result"] == "SKIPPED":
                        reason = " ".join(skip["message"] for skip in test.get("skipped", []))
                        # gtest before 1.13 gives no reason
                        counts += (
                            of_skip(f"{suite.get('name')}.{test.get('name')}", reason)
                            if reason
                            else Counts(skipped=1)
                        )
                    elif test["status"] == "RUN":
                        counts += Counts(failed=1) if test.get("failures") else Counts(passed=1)
        return settle(counts, exit_code, self.name)


def pytest(folder: pathlib.Path, report: pathlib.Path, *options: str) -> Counts:
    report.unlink(missing_ok=True)
    exit_code = run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "--tb=short",
            "--durations=5",
            "--durations-min=5",
            f"--junitxml={report}",
            *options,
            str(folder),
        ]
    )
    counts = Counts()
    if report.exists():
        root = xml.etree.ElementTree.parse(report).getroot()
        for suite in root.iter("testsuite"):
            number = {
                key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")
            }
            bad = number["failures"] + number["errors"]
            counts += Counts(number["tests"] - bad - number["skipped"], bad)
        for case in root.iter("testcase"):
            for skip in case.iter("skipped"):
                counts += of_skip(
                    f"{case.get('classname')}.{case.get('name')}",
                    f"{skip.get('message', '')} {skip.text or ''}",
                )
    return settle(counts, 0 if exit_code == 5 else exit_code, f"pytest {folder.relative_to(ROOT)}")


def fuzz() -> Counts:
    """tests/fuzz/run says `inputs tried: N` for each target that survived; each counts as one
    test."""
    log = BUILD / "test-reports/fuzz.log"
    with open(log, "w") as output:
        exit_code = run(["sh", str(ROOT / "tests/fuzz/run"), str(FUZZ_SECONDS)], output=output)
    printed = log.read_text()
    print(printed, end="", flush=True)
    if exit_code == 3:
        print("SKIPPED fuzzing: clang is not installed", flush=True)
        return Counts(skipped=1)
    return settle(Counts(passed=printed.count("inputs tried:")), exit_code, "tests/fuzz/run")


def unit(reports: pathlib.Path) -> Counts:
    """The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, and beside them the
    fuzzers, which use one core. As they are built for use they run in `fast` and, with what takes
    thousands of draws, in `long`."""
    sanitized = Gtest(
        BUILD / "asan/strata_unit",
        reports,
        f"--gtest_filter=-{MANY_DRAWS}",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        ASAN_OPTIONS="detect_stack_use_after_return=1",
    )
    return fuzz() + sanitized.counts()


def fast(reports: pathlib.Path) -> Counts:
    """What needs no PyTorch and no long draws: the unit tests, the launchers and set-up steps, and
    the form of all sources."""
    units = Gtest(BUILD / "release/strata_unit", reports, f"--gtest_filter=-{MANY_DRAWS}")
    counts = pytest(
        ROOT / "tests/style",
        reports / "fast.xml",
        "-n",
        str(processes()),
        *(str(ROOT / f"tests/cli/test_{name}.py") for name in ("launcher", "setup", "run_tests")),
    )
    return counts + units.counts()


def command(name: str, words: list[str], **environment: str) -> Counts:
    """A script of bench/ that ends with 1 if what it looks for was found; one test."""
    print(f"{name}: {' '.join(words)}", flush=True)
    return (
        settle(Counts(), code, name)
        if (code := finish(start([sys.executable, *words], **environment)))
        else Counts(passed=1)
    )


def random_networks(reports: pathlib.Path, seed: int) -> Counts:
    return pytest(ROOT / "tests/levels/test_random_networks.py", reports / f"random-{seed}.xml")


# what ./test all adds; each is resumed by itself
LONG: dict[str, Callable[[pathlib.Path], Counts]] = {
    **{
        f"random-{seed}": functools.partial(random_networks, seed=seed)
        for seed in range(1000, 7000, 1000)
    },
    "levels-long": lambda reports: pytest(
        ROOT / "tests/levels", reports / "levels-long.xml", "-m", "long"
    ),
    "package": lambda reports: pytest(ROOT / "tests/package", reports / "package.xml"),
    "unit-release": lambda reports: Gtest(BUILD / "release/strata_unit", reports).counts(),
    "sanitizers": lambda reports: Gtest(
        BUILD / "asan/strata_unit",
        reports,
        f"--gtest_filter={MANY_DRAWS}:Report.*any_json*",
        STRATA_EVERY_VALUE="1",
    ).counts(),
    "clang-tidy": lambda reports: pytest(
        ROOT / "tests/tidy", reports / "tidy.xml", "-n", str(processes()), "--dist", "load"
    ),
    "faults": lambda _: command("planted faults", ["bench/planted_faults.py", "mnist_convnet"]),
    "faults-train": lambda _: command(
        "planted faults in training",
        ["bench/planted_faults.py", "--mode", "train", "mnist_convnet", "--batch", "4"],
    ),
    "accusations": lambda _: command("sound levels accused", ["bench/false_accusations.py"]),
    "trainings": lambda _: command("whole trainings", ["bench/digits_accuracy.py"]),
}
NETWORKS_IN_A_PART = 50
# by file, since what a file sets up is shared; the one file of report marks what shares a page, and
# the tests of style share nothing
DISTRIBUTION = {"report": "loadgroup", "style": "load"}


def run_part(part: str, reports: pathlib.Path) -> Counts:
    """Files in several processes, since much of it is starting and waiting; then by themselves the
    tests that compare times (marker `alone`). What takes minutes and is a further example of what
    another test shows is for LONG (marker `long`)."""
    if part == "unit":
        return unit(reports)
    if part == "fast":
        return fast(reports)
    if part in LONG:
        os.environ["STRATA_RANDOM_NETWORKS"] = (
            f"{part.removeprefix('random-')}:{NETWORKS_IN_A_PART}"
            if part.startswith("random")
            else "0:40"
        )
        return LONG[part](reports)
    folder = ROOT / "tests" / ("levels" if part == "compat" else part)
    # in the order of conftest.py, not those of many tests first
    together = [
        "-n",
        str(processes()),
        "--max-worker-restart=0",
        "--dist",
        DISTRIBUTION.get(part, "loadscope"),
        "--no-loadscope-reorder",
    ]
    if folder.name != "levels":
        return pytest(folder, reports / f"{folder.name}.xml", *together)
    return pytest(
        folder, reports / "levels.xml", "-m", "not alone and not long", *together
    ) + pytest(folder, reports / "levels-alone.xml", "-m", "alone and not long")


def fingerprint() -> str:
    """Of all files that a test's result may depend on, and of the PyTorch that is tested."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split("\0")
    every = hashlib.sha256(os.environ.get("STRATA_LEVEL_BUILD", "").encode())
    for name in sorted(filter(None, listed)):
        file = ROOT / name
        if file.is_file() and file.suffix != ".md":
            every.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    return every.hexdigest()


class Finished:
    """The parts that passed with these sources, kept in a file, so that a run that was stopped goes
    on from there."""

    def __init__(self, file: pathlib.Path, sources: str) -> None:
        self.file, self.sources = file, sources
        stored = json.loads(file.read_text()) if file.exists() else {}
        self.parts: dict[str, dict] = (
            stored.get("parts", {}) if stored.get("sources") == sources else {}
        )

    def get(self, part: str) -> Counts | None:
        return Counts(**self.parts[part]) if part in self.parts else None

    def add(self, part: str, counts: Counts) -> None:
        if counts.failed:
            return
        self.parts[part] = dataclasses.asdict(counts)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"sources": self.sources, "parts": self.parts}))
        new.replace(self.file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set-up-seconds", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument(
        "parts",
        nargs="+",
        choices=["fast", "style", "unit", "cli", "levels", "report", "compat", "long"],
    )
    options = parser.parse_args()
    total, begin = Counts(), time.monotonic()
    reports = BUILD / "test-reports"
    reports.mkdir(parents=True, exist_ok=True)
    finished = Finished(BUILD / "test-finished.json", fingerprint()) if options.resume else None
    lines = []
    for part in [
        each for named in options.parts for each in (LONG if named == "long" else [named])
    ]:
        counts = finished.get(part) if finished else None
        if counts:
            lines.append(f"{part:12} {counts}, by an earlier run of the same sources")
        else:
            print(f"\n== {part}", flush=True)
            started = time.monotonic()
            counts = run_part(part, reports)
            lines.append(f"{part:12} {counts} in {time.monotonic() - started:.0f} s")
            if finished:
                finished.add(part, counts)
        total += counts
    print("\n" + "\n".join(lines))
    print(f"set-up took {options.set_up_seconds} s, the tests {time.monotonic() - begin:.0f} s")
    if total.passed + total.failed == 0:
        print("no test ran", file=sys.stderr)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
