# SPDX-License-Identifier: Apache-2.0
"""Stores that are damaged, forged, locked, read-only or left by a run that was killed: what is
shown is right, or refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import no_locks
import pytest
from conftest import MODEL, PROGRAM, ROOT, Strata, rows_of
from running_program import wait_for_blocks

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage

SHOW = ("show", "last", "--format", "json")
READING = (SHOW, ("export-data", "last", "--format", "json"), ("list", "runs", "--format", "json"))


def read(place, store: Path, *words: str, **keywords) -> subprocess.CompletedProcess:
    return place.run(*words, "--store", str(store), **keywords)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A place with a store that holds a finished run of two levels, and what each reading command
    says of it."""
    folder = tmp_path_factory.mktemp("stores")
    place = Strata(folder / "place", folder / "cache")
    place.level("one", rank=1)
    place.level("two", rank=2)
    done, _ = place.compare("one", "two", budget="1s")
    assert done.returncode == 0, done.stderr
    place.whole = {words: read(place, place.store, *words).stdout for words in READING}
    assert all(place.whole.values())
    return place


def verdicts(place, store: Path, *, exact: bool) -> dict[tuple, str]:
    return {
        words: store_damage.verdict(
            read(place, store, *words, timeout=60), place.whole[words], exact=exact
        )
        for words in READING
    }


def test_single_damaged_pages_never_give_other_numbers(measured, tmp_path):
    draw = random.Random(1)
    data = measured.store.read_bytes()
    for number in range(12):
        store = tmp_path / f"{number}.db"
        damaged = bytearray(data)
        how = store_damage.damage_page(damaged, draw)
        store.write_bytes(damaged)
        found = set(verdicts(measured, store, exact=True).values())
        assert found <= {"refused", "same"}, (how, found)


def test_wrong_cells_with_right_hashes_never_give_other_numbers(measured, tmp_path):
    draw = random.Random(2)
    for number in range(10):
        store = tmp_path / f"{number}.db"
        shutil.copy(measured.store, store)
        how = store_damage.forge_cell(store, draw)
        found = set(verdicts(measured, store, exact=False).values())
        assert found <= {"refused", "same"}, (how, found)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE blocks SET latency_ns=substr(latency_ns,1,8)", "latency_ns"),
        ("UPDATE blocks SET round=2000000000 WHERE round=0", "round"),
        ("UPDATE blocks SET round=90000000 WHERE round=0", "places"),
        ("UPDATE blocks SET wall_ns=x'00'", "wall_ns"),
        ("UPDATE level_rows SET info='[]'", "info"),
        ('UPDATE run_cases SET trust=\'{"process_sigma":"x"}\'', "process_sigma"),
        (
            'UPDATE run_cases SET trust=\'{"learned":[{"levels":["a","b"],"variance":-1}]}\'',
            "variance",
        ),
        ("UPDATE cases SET canonical=replace(hex(zeroblob(50000)),'0','[')", "nested"),
        ("UPDATE runs SET settings='7'", "settings"),
        ("UPDATE level_rows SET state='fine'", "state"),
        ("UPDATE level_rows SET run_id='another' WHERE level='two'", "no run has"),
        ("UPDATE level_rows SET hash='another' WHERE level='two'", "no run has"),
        ("CREATE VIEW more AS SELECT 1", "view more"),
        ("CREATE TRIGGER later AFTER INSERT ON runs BEGIN SELECT 1; END", "trigger later"),
        ("CREATE TABLE beside(x)", "table beside"),
    ],
    ids=lambda value: value if " " not in value else value.split()[1],
)
def test_what_strata_does_not_write_is_refused_with_where_it_stands(measured, tmp_path, sql, words):
    store = tmp_path / "s.db"
    shutil.copy(measured.store, store)
    store_damage.rewrite(store, sql)
    done = read(measured, store, *SHOW, timeout=60)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith(f"error: store {store}: ") and words in done.stderr, done.stderr


def test_an_endless_view_in_place_of_a_table_is_refused_at_once(measured, tmp_path):
    store = tmp_path / "s.db"
    shutil.copy(measured.store, store)
    connection = sqlite3.connect(store)
    connection.executescript(
        "DROP TABLE warnings; CREATE VIEW warnings(run_id,id,what,advice) AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT 'x',i,i,i FROM n;"
    )
    connection.close()
    done = read(measured, store, "show", "last", timeout=20)
    assert done.returncode == 1 and "view warnings" in done.stderr


@pytest.mark.parametrize("name", ["../../x", "x/../y", "", "a b", "$(x)", "\x1b[31m", "-o"])
def test_a_run_id_from_a_store_is_no_path_and_no_text_of_its_own(measured, tmp_path, name):
    store = tmp_path / "s.db"
    shutil.copy(measured.store, store)
    for table in ("runs", "run_cases", "level_rows", "warnings"):
        store_damage.rewrite(store, f"UPDATE {table} SET run_id=?", (name,))
    before = sorted(measured.folder.iterdir())
    for words in (("report", "last"), ("show", "last"), ("list", "runs")):
        done = read(measured, store, *words)
        assert done.returncode == 1 and done.stdout == "" and "\x1b" not in done.stderr, done
    assert sorted(measured.folder.iterdir()) == before


def test_the_database_of_another_program_is_not_written_to(measured, tmp_path):
    store = tmp_path / "s.db"
    connection = sqlite3.connect(store)
    connection.executescript("CREATE TABLE runs(x); PRAGMA user_version=1;")
    connection.close()
    data = store.read_bytes()
    for words in (SHOW, ("compare", MODEL, "--levels", "one", "--budget", "1s", "--restarts", "1")):
        done = read(measured, store, *words)
        assert done.returncode == 1 and "of another program" in done.stderr, done
    assert store.read_bytes() == data


def test_any_sqlite_tool_may_open_a_store_also_after_a_kill(strata):
    strata.level("one", rank=1)
    process = strata.start(*strata.arguments("one", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 20)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    tool = sqlite3.connect(strata.store)
    [(blocks,)] = tool.execute("SELECT count(*) FROM blocks").fetchall()
    tool.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # as who closes it last does
    tool.close()
    row = rows_of(json.loads(read(strata, strata.store, *SHOW).stdout))["one"]
    assert row["state"] == "measured" and blocks >= 20
    assert strata.compare("one", budget="1s")[0].returncode == 0


def test_a_store_of_an_older_strata_is_refused_and_stays_as_it_is(strata):
    strata.level("one", rank=1)
    connection = sqlite3.connect(strata.store)
    connection.executescript(
        "CREATE TABLE runs(run_id TEXT); CREATE TABLE level_rows(x); PRAGMA user_version=8;"
    )
    connection.close()
    data = strata.store.read_bytes()
    shown = read(strata, strata.store, *SHOW)
    assert shown.returncode == 3 and "before 0.1" in shown.stderr, shown
    done = strata.run(*strata.arguments("one"))
    assert done.returncode == 3 and "before 0.1" in done.stderr, done
    assert strata.store.read_bytes() == data


# ---------------------------------------------------------------------------- runs without an end


def test_what_a_killed_run_measured_is_shown_and_the_run_is_called_interrupted(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 20)
    listed = read(strata, strata.store, "list", "runs", "--format", "json")
    assert json.loads(listed.stdout)[0]["state"] == "running"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    result = json.loads(read(strata, strata.store, *SHOW).stdout)
    for row in rows_of(result).values():
        assert (
            row["state"] == "measured"
            and row["end_to_end_ms"]["samples"] > 0
            and row["reason"] == ""
        )
        assert "the end of the run" in [
            line["check"] for line in row["proof"]["lines"] if line["result"] == "not_checked"
        ]
    assert result["run"]["interrupted"] and "W005" in [
        warning["id"] for warning in result["warnings"]
    ]
    assert "interrupted" in read(strata, strata.store, "show", "last").stdout
    assert (
        json.loads(read(strata, strata.store, "list", "runs", "--format", "json").stdout)[0][
            "state"
        ]
        == "interrupted"
    )


def test_a_level_that_was_wrong_while_timing_has_no_number_after_a_kill(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01, "only_in": "measure"})
    process = strata.start(*strata.arguments("right", "wrong", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 20)
    process.kill()
    process.communicate(timeout=30)
    rows = rows_of(json.loads(read(strata, strata.store, *SHOW).stdout))
    assert rows["wrong"]["state"] == "unequal" and rows["wrong"]["end_to_end_ms"] is None
    assert rows["right"]["state"] == "measured"


def test_a_store_that_another_program_holds_is_waited_for_and_the_run_goes_on(strata):
    strata.level("one", rank=1)
    process = strata.start(*strata.arguments("one", restarts=1, budget="3s"), "--format", "json")
    wait_for_blocks(strata.store, 5)
    holder = sqlite3.connect(strata.store, isolation_level=None, timeout=30)
    holder.execute("BEGIN IMMEDIATE")
    time.sleep(7)
    holder.execute("ROLLBACK")
    holder.close()
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert rows_of(json.loads(out))["one"]["state"] == "measured"
    assert errors.count("another program holds the store") == 1 and str(strata.store) in errors


def test_a_file_system_without_locks_is_no_other_program(strata, tmp_path):
    store = tmp_path / "there/s.db"
    store.parent.mkdir()
    with sqlite3.connect(store) as database:
        database.execute("CREATE TABLE runs(run_id TEXT)")
    done = strata.run(
        *("list", "runs", "--store", str(store)), **no_locks.below(store.parent, tmp_path)
    )
    assert done.returncode == 3 and "another program" not in done.stderr
    assert f"store {store}: " in done.stderr
    assert "has no locks (No locks available)" in done.stderr and "--store PATH" in done.stderr
    assert [path.name for path in store.parent.iterdir()] == [store.name]


def test_a_store_that_a_full_disk_left_empty_has_no_runs(strata, tmp_path):
    store = tmp_path / "s.db"
    store.touch()
    done = strata.run("list", "runs", "--store", str(store))
    assert "it is an empty database, with no run in it" in done.stderr
    assert "compare something first" in done.stderr and "damaged" not in done.stderr


def test_waiting_for_a_store_ends_with_the_first_signal(measured, tmp_path):
    store = tmp_path / "s.db"
    shutil.copy(measured.store, store)
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE runs SET name=name")
    process = measured.start("show", "last", "--store", str(store))
    time.sleep(1.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    holder.close()
    assert process.returncode != 0 and time.monotonic() - begin < 5, errors
    assert "another program holds the store" in errors


# --------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize(
    "more",
    [("--seed", "-1"), ("--input-from", "/etc"), ("--dynamic", "batch=2..8", "--batch", "1")],
    ids=lambda m: m[0],
)
def test_what_cannot_begin_leaves_no_run(strata, more):
    strata.level("one", rank=1)
    done = strata.run(
        "compare", MODEL, "--levels", "one", "--threads", "1", "--store", str(strata.store), *more
    )
    assert done.returncode != 0
    listed = read(strata, strata.store, "list", "runs", "--format", "json")
    assert strata.store.exists() is False or json.loads(listed.stdout or "[]") == [], listed
    shown = read(strata, strata.store, "show", "last")
    assert (
        shown.returncode == 2 and "no run is stored yet" in shown.stderr
    ) or "no such file" in shown.stderr


def test_a_model_that_raises_leaves_the_run_before_it_the_last(strata):
    strata.level("one", rank=1)
    strata.compare("one")
    before = json.loads(read(strata, strata.store, *SHOW).stdout)["run"]["id"]
    model = strata.folder / "raises.py"
    model.write_text("def build():\n    raise ValueError('no')\n", encoding="utf-8")
    done = strata.run(
        "compare",
        f"{model}:build",
        "--levels",
        "one",
        "--threads",
        "1",
        "--store",
        str(strata.store),
    )
    assert done.returncode != 0
    assert json.loads(read(strata, strata.store, *SHOW).stdout)["run"]["id"] == before
    assert (
        len(json.loads(read(strata, strata.store, "list", "runs", "--format", "json").stdout)) == 1
    )


def test_a_list_of_runs_has_a_verdict_and_says_how_to_begin_where_there_is_none(measured, tmp_path):
    [run] = json.loads(measured.whole[READING[2]])
    headline = json.loads(measured.whole[SHOW])["cases"][0]["headline"]
    assert (
        run["verdict"]
        and (headline["level"] or headline["verdict"]).split("_")[0] in run["verdict"]
    )
    done = measured.run("list", "runs", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "no runs yet; ./strata compare MODEL makes one\n")
    done = measured.run("list", "runs", "--format", "json", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert measured.run("list", "runs", "--store", str(tmp_path / "typo.db")).returncode == 2


def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    strata, measured, tmp_path
):
    missing = str(tmp_path / "missing" / "x.html")
    for place in (missing, str(tmp_path)):
        done = strata.run("compare", MODEL, "--levels", "nosuch", "-o", place)
        assert done.returncode == 2 and f"-o {place}" in done.stderr, done.stderr
        for words in (("report", "last"), ("export-data", "last")):
            done = read(measured, measured.store, *words, "-o", place)
            assert done.returncode == 2 and f"-o {place}" in done.stderr, done.stderr
    assert not (tmp_path / "missing").exists()


def test_a_page_that_cannot_be_written_beside_the_store_loses_nothing(strata):
    strata.level("one", rank=1)
    (strata.store.parent / "reports").write_text("no folder", encoding="utf-8")
    done = strata.run(*strata.arguments("one", budget="1s"))
    assert done.returncode == 0 and "the run is stored: ./strata report " in done.stderr, done
    assert read(strata, strata.store, *SHOW).returncode == 0


# ------------------------------------------------------------------------ without rights to write


def as_somebody_else(words: list[str], place) -> subprocess.CompletedProcess:
    """Runs a command without the rights of this user, where this user is root; else as it is."""
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = place.environment | {"TMPDIR": "/tmp"}
    return subprocess.run(
        words, env=environment, cwd="/", capture_output=True, text=True, timeout=60, **user
    )


def test_reading_needs_no_right_to_write(measured):
    # below /tmp, as pytest's own folders are closed to others
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        program = folder / "strata"
        shutil.copy(PROGRAM, program)
        for log in (False, True):
            store = folder / f"{log}.db"
            shutil.copy(measured.store, store)
            # what a killed program leaves: a log that is not yet in the file, and no index of it
            if log:
                connection = sqlite3.connect(store)
                connection.execute(
                    "UPDATE runs SET name='from-the-log', finished='', list_hash='', content_hash=''"
                )
                connection.commit()
                parts = {suffix: Path(str(store) + suffix).read_bytes() for suffix in ("", "-wal")}
                connection.close()
                for suffix, content in parts.items():
                    Path(str(store) + suffix).write_bytes(content)
                Path(str(store) + "-shm").unlink(missing_ok=True)
        for file in folder.iterdir():
            file.chmod(0o555 if file == program else 0o444)
        folder.chmod(0o555)
        try:
            for store, run in (("False.db", "last"), ("True.db", "from-the-log")):
                for verb in (["show", run], ["list", "runs"], ["export-data", run]):
                    done = as_somebody_else(
                        [str(program), *verb, "--store", str(folder / store)], measured
                    )
                    assert done.returncode == 0, (store, verb, done.stderr)
            assert sorted(f.name for f in folder.iterdir()) == [
                "False.db",
                "True.db",
                "True.db-wal",
                "strata",
            ]
        finally:
            folder.chmod(0o755)
