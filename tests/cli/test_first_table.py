# SPDX-License-Identifier: Apache-2.0
"""The table that `strata compare` shows while it still measures, and how levels start meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios

import pytest
from conftest import PROGRAM, rows_of, samples


@pytest.fixture
def two(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    return strata


def test_a_table_comes_after_the_first_restart_and_judges_nothing(two):
    done = two.run(*two.arguments("slow", "fast", restarts=4))
    assert done.returncode == 0, done.stderr
    before, early = done.stderr.split("Still running. ")
    assert "restart 1 of 4:" in before and "restart 2 of 4:" not in before
    assert early.startswith("Preliminary, 1 of 4 restarts: differences below 44% say nothing yet")
    table = early.split("[", 1)[0]
    assert "fast" in table and "Move to" not in table and "Next" not in table
    assert done.stdout.startswith("Move to fast") and "Preliminary" not in done.stdout


@pytest.mark.parametrize("more", [("--format", "json"), ("--format", "csv"), ("--format", "md")])
def test_a_program_that_reads_the_answer_gets_no_table_before_it(two, more):
    done = two.run(*two.arguments("slow", "fast", restarts=3), *more)
    assert done.returncode == 0 and "Preliminary" not in done.stderr + done.stdout


def test_a_run_of_one_restart_has_its_table_at_the_end(two):
    done = two.run(*two.arguments("slow", "fast"))
    assert "Still running" not in done.stderr and done.stdout.startswith("Move to fast")


def on_terminal(strata, rows: int, *arguments: str) -> str:
    """What a terminal of so many rows is sent on standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
    process = subprocess.Popen(
        [str(PROGRAM), *arguments],
        env=strata.environment,
        cwd=strata.folder,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # nobody holds the other end any more
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0, seen
    return seen.decode().replace("\r\n", "\n")


def screen_of(sent: str) -> list[str]:
    """The lines that stand on a terminal with endless rows after it was sent this."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", sent):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[J":
            lines[row:] = [""]
        elif part == "\x1b[K":
            lines[row] = ""
        elif not part.startswith("\x1b") and part != "\r":
            lines[row] += part
    return lines


def test_on_a_terminal_the_table_is_drawn_anew_in_its_place(two):
    sent = on_terminal(two, 60, *two.arguments("slow", "fast", restarts=4))
    assert sent.count("Preliminary, 1 of 4") >= 1 and sent.count("Preliminary, 2 of 4") >= 1
    assert "Still running. Move to fast" in sent
    before_last_note = sent[: sent.index("restart 3 of 4:")]
    screen = screen_of(before_last_note)
    assert sum("Still running" in line for line in screen) <= 1, screen
    left = [line for line in screen_of(sent) if line.strip()]
    assert not any("Still running" in line or "Trust" in line for line in left), left
    assert [line.split(":")[0] for line in left if line.startswith("restart ")] == [
        f"restart {n} of 4" for n in (1, 2, 3, 4)
    ]


def test_a_terminal_without_room_for_the_table_gets_it_once(two):
    sent = on_terminal(two, 8, *two.arguments("slow", "fast", restarts=4))
    assert sent.count("Still running") == 1 and not re.search(r"\x1b\[\d+A", sent)


# With one thread all levels share a core, and start one after the other.
SIDE_BY_SIDE = ("--threads", "2")
several_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="it takes two cores")


def compare(strata, *levels: str) -> tuple[str, dict]:
    words = strata.arguments(*levels, restarts=3)[:-2]
    done = strata.run(*words, *SIDE_BY_SIDE, "--format", "json")
    return done.stderr, rows_of(json.loads(done.stdout))


@several_cores
def test_only_the_first_restart_is_a_start_whose_times_count(two):
    _, rows = compare(two, "slow", "fast")
    for row in rows.values():
        assert {block["restart"] for block in row["blocks"]} == {0, 1, 2}
    with contextlib.closing(sqlite3.connect(two.store)) as store:
        stored = store.execute("SELECT start_up FROM level_rows").fetchall()
    starts = [[start["restart"] for start in json.loads(text)] for (text,) in stored]
    assert starts == [[-1, 0], [-1, 0]]


@several_cores
def test_a_level_that_fails_only_beside_others_starts_again_alone(strata):
    """Its process of the second restart dies while it loads; the one after it does not."""
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level(
        "shy",
        rank=2,
        **samples(1_000_000),
        ops={"load": {"signal": 11, "from_start": 3, "to_start": 3}},
    )
    said, rows = compare(strata, "slow", "shy")
    assert rows["shy"]["state"] == "measured", said
    assert {block["restart"] for block in rows["shy"]["blocks"]} == {0, 1, 2}
