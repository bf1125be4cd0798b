# SPDX-License-Identifier: Apache-2.0
"""Programs side by side: `strata compare --command`, and `stratabench.timeit`."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import MODEL, PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "python"))

import stratabench


def table_of(done: subprocess.CompletedProcess) -> dict[str, dict]:
    assert done.stdout, done.stderr
    items = json.loads(done.stdout)["sections"][0]["items"]
    table = next(item for item in items if item["kind"] == "table")
    return {row["command"]: row for row in table["rows"]}


def compared(strata, *commands: str, more: tuple[str, ...] = ("--runs", "5")):
    return strata.run("compare", "--command", *commands, *more, "--format", "json")


def test_a_command_that_sleeps_longer_is_slower_and_the_first_is_the_reference(strata):
    done = compared(strata, "sleep 0.02", "sleep 0.1")
    rows = table_of(done)
    assert done.returncode == 0 and rows["sleep 0.02"]["verdict"] == "reference"
    slow = rows["sleep 0.1"]
    assert slow["time"]["value"] >= 0.1 and slow["runs"]["value"] == 5
    assert slow["speedup"]["value"] < 0.6 and slow["speedup"]["low"] < slow["speedup"]["high"]
    assert slow["verdict"] in ("slower", "inconclusive"), "inconclusive beside other programs"
    assert slow["peak_memory"]["value"] > 0 and slow["processor_time"]["value"] < 0.1
    text = strata.run("compare", "--command", "sleep 0.02", "sleep 0.1", "--runs", "3").stdout
    assert "sleep 0.1 is" in text or "whether sleep 0.1 is" in text
    assert "Nothing is proven" in text


def test_a_page_and_csv_have_every_command(strata):
    done = strata.run(
        *("compare", "--command", "true", "sleep 0.01", "--runs", "3"),
        *("--format", "csv", "-o", "page.html"),
    )
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["command"] for row in rows if row.get("command")][:2] == ["true", "sleep 0.01"]
    assert "sleep 0.01" in (strata.folder / "page.html").read_text(encoding="utf-8")


def test_what_fails_is_killed_or_hangs_is_left_out_with_what_it_said_and_the_others_go_on(strata):
    failing = "sh -c 'echo no such thing >&2; exit 3'"
    killed, hangs = "sh -c 'kill -9 $$'", "sleep 60"
    more = ("--runs", "3", "--timeout", "1s")
    done = compared(strata, "true", failing, killed, hangs, "/no/such/program", more=more)
    rows = table_of(done)
    assert done.returncode == 1 and rows["true"]["state"] == "measured"
    states = {name: (row["state"], row["reason"]) for name, row in rows.items()}
    assert states["true"] == ("measured", "")
    assert states[failing] == ("failed", "exited with code 3: no such thing")
    assert states[killed][0] == "crashed" and "SIGKILL" in states[killed][1]
    assert states[hangs] == ("timeout", "it ran longer than 1 s (--timeout)")
    assert states["/no/such/program"][0] == "unavailable"
    assert "speedup" not in rows[failing] or rows[failing]["speedup"] is None


def test_a_command_that_prints_without_end_fills_neither_memory_nor_disk(strata):
    noisy = "sh -c 'head -c 300000000 /dev/zero; head -c 30000000 /dev/zero >&2'"
    done = compared(strata, "true", noisy, more=("--runs", "1", "--warmup", "0"))
    assert table_of(done)[noisy]["state"] == "measured"


def test_set_up_and_warm_up_run_before_and_are_not_timed(strata):
    log = strata.folder / "log"
    done = compared(
        *(strata, f"sh -c 'echo a >>\"{log}\"'", f"sh -c 'echo b >>\"{log}\"'"),
        more=("--runs", "3", "--warmup", "2", "--setup", f"sh -c 'sleep 0.05; echo s >>\"{log}\"'"),
    )
    lines = log.read_text().split()
    assert lines[::2] == ["s"] * 10 and sorted(lines[1::2]) == ["a"] * 5 + ["b"] * 5
    assert all(row["time"]["value"] < 0.05 for row in table_of(done).values())
    refused = compared(strata, "true", "true", more=("--runs", "1", "--setup", "false"))
    assert table_of(refused)["true"]["reason"] == "--setup: exited with code 1"


def test_what_only_a_shell_understands_goes_to_one(strata):
    done = compared(strata, "echo a | grep -q a", "test -d . && true", "A=1 true")
    assert done.returncode == 0, [row.get("reason") for row in table_of(done).values()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--command", "true"), "two or more"),
        (("--command", "true", "true", "--levels", "eager"), "--levels means nothing with"),
        ((MODEL, "--command", "true", "true"), "model means nothing with --command"),
        (("--setup", "true", MODEL), "--setup means nothing without --command"),
        (("--command", "true", "true", "--runs", "-1"), "--runs"),
        ((), "model is required"),
    ],
)
def test_what_cannot_be_compared_is_wrong_usage(strata, arguments, words):
    done = strata.run("compare", *arguments)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_ctrl_c_ends_with_what_was_measured(strata):
    process = strata.start(
        "compare", "--command", "sleep 0.05", "sleep 0.06", "--budget", "300s", "--format", "json"
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert '"runs"' in out and json.loads(out)["title"] == "strata compare: 2 commands"


# ---- functions of Python ------------------------------------------------------------------------


@pytest.fixture
def timed(strata, monkeypatch):
    for name, value in (strata.environment | {"STRATA_PROGRAM": str(PROGRAM)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(strata.folder)

    def timeit(*what, **more):
        return stratabench.timeit(*what, **({"budget_s": 1, "progress": False} | more))

    return timeit


def test_functions_run_in_processes_of_their_own_and_the_slower_one_is_told(timed):
    here = os.getpid()

    def short():
        assert os.getpid() != here
        time.sleep(0.002)

    def long():
        print("not an answer")
        time.sleep(0.006)

    result = timed(short, long, runs=3)
    rows = {row["command"]: row for row in result.tables["commands"].rows}
    assert rows["long"]["speedup"]["value"] < 0.6, rows
    assert result.exit_code == 0 and "long" in result.sentence
    assert list(result.table()["command"]) == ["short", "long"]


def test_a_function_that_raises_or_keeps_what_belongs_to_a_process_is_told(timed):
    def bad():
        raise RuntimeError("it is mine")

    result = timed(lambda: None, bad, lambda: None, runs=1)
    rows = {row["command"]: row for row in result.tables["commands"].rows}
    assert result.exit_code == 1 and "it is mine" in rows["bad"]["reason"]
    assert rows["lambda 1"]["state"] == rows["lambda 3"]["state"] == "measured"
    lock = threading.Lock()
    with pytest.raises(stratabench.StrataError, match="cannot be carried"):
        timed(lock.locked, lock.locked)


def test_a_function_sees_what_its_set_up_made(timed):
    names: dict = {"__name__": "__main__"}  # as of a script or a notebook
    exec(
        "def prepare():\n    global numbers\n    numbers = [1, 2]\n"
        "def first():\n    return numbers[0]\ndef last():\n    return numbers[-1]\n",
        names,
    )
    result = timed(names["first"], names["last"], setup=names["prepare"], runs=1)
    rows = result.tables["commands"].rows
    assert [row["state"] for row in rows] == ["measured"] * 2, rows


def test_set_up_of_functions_is_called_once_in_each_process(timed):
    log = Path("log")
    path = str(log.resolve())

    def prepare():
        with open(path, "a") as file:
            print(os.getpid(), file=file)

    timed(lambda: None, lambda: None, setup=prepare, runs=2)
    assert len(set(log.read_text().split())) == len(log.read_text().split()) == 4


@pytest.mark.parametrize(
    ("what", "more", "words"),
    [
        ((len,), {}, "two or more"),
        ((len, "true"), {}, "1 functions and 1 commands"),
        ((len, 3), {}, "not of type int"),
        ((len, len), {"setup": "true"}, "`setup` is a text"),
        (("true", "true"), {"setup": len}, "`setup` is a function"),
        (("true", "true"), {"names": ["a"]}, "2 commands and 1 names"),
    ],
)
def test_what_cannot_be_timed_is_refused(timed, what, more, words):
    with pytest.raises(stratabench.StrataError, match=words):
        timed(*what, **more)


def test_commands_are_timed_from_python_too(timed):
    result = timed("sleep 0.02", "sleep 0.1", runs=3, names=["short", "long"])
    assert list(result.table()["command"]) == ["short", "long"]
