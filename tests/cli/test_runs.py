# SPDX-License-Identifier: Apache-2.0
"""`strata runs`: whole runs leave a store, come to another one, and get their metrics."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from conftest import PROGRAM, ROOT, Strata, rows_of
from running_program import wait_for_blocks

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage


def runs(place, verb: str, *words: str, store: Path | None = None):
    return place.run("runs", verb, *map(str, words), *(["--store", str(store)] if store else []))


def listed(place, store: Path) -> list[str]:
    return [
        run["run"]
        for run in json.loads(runs(place, "list", "--format", "json", store=store).stdout)
    ]


def ask(store: Path, sql: str) -> list[tuple]:
    connection = sqlite3.connect(store)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A place with a store of two runs, of two levels each, and the results that compare gave."""
    folder = tmp_path_factory.mktemp("runs")
    place = Strata(folder / "place", folder / "cache")
    place.level("one", rank=1)
    place.level("two", rank=2)
    place.results = [place.compare("one", "two", restarts=3)[1] for _ in range(2)]
    return place


@pytest.fixture
def store(measured, tmp_path):
    copy = tmp_path / "store" / "strata.db"
    copy.parent.mkdir()
    shutil.copy(measured.store, copy)
    return copy


def test_a_comparison_stores_the_numbers_that_it_prints_as_metrics(measured):
    for result in measured.results:
        found = {
            (level, name): (value, low, high)
            for level, name, value, low, high in ask(
                measured.store,
                f"""
            SELECT level, name, value, low, high FROM metrics JOIN level_rows USING (row_id) WHERE run_id='{result["run"]["id"]}'""",
            )
        }
        for level, row in rows_of(result).items():
            assert found[level, "iteration_time"][0] == row["end_to_end_ms"]["estimate"]
            assert found[level, "speedup"] == tuple(
                row["ratio"][part] for part in ("value", "low", "high")
            )
            assert found[level, "peak_memory"][0] == row["memory"]["peak_private_bytes"]
            assert found[level, "warm_start"][0] == row["startup"]["warm_start_ms"]
            assert found[level, "proof_ratio"][0] == row["proof"]["worst_ratio"]
    [(cpu, torch, count)] = ask(
        measured.store,
        """
        SELECT machines.cpu, environments.torch, count(*) FROM runs JOIN machines ON machines.hash=machine_hash
        JOIN run_environments USING (run_id) JOIN environments ON environments.hash=run_environments.hash GROUP BY 1, 2""",
    )
    assert (cpu, torch, count) == (
        measured.results[0]["machine"]["cpu"],
        measured.results[0]["environments"][0]["torch"],
        2,
    )


def test_list_runs_and_runs_list_are_one(measured):
    words = ("--store", str(measured.store), "--format", "json")
    assert (
        measured.run("list", "runs", *words).stdout == measured.run("runs", "list", *words).stdout
    )


def test_lists_runs_by_name_model_and_date_before_it_counts_them(measured):
    def found(*words: str) -> list[str]:
        done = measured.run(
            "list", "runs", "--store", str(measured.store), "--format", "json", *words
        )
        return [run["run"] for run in json.loads(done.stdout)]

    first, second = (result["run"]["id"] for result in measured.results)
    model = measured.results[0]["cases"][0]["id"].split("/")[0]
    assert found("--model", model) == found("--since", "2026-01-01") == [second, first]
    assert found("--model", model, "--limit", "1") == [second]
    assert found("--model", "nosuch") == found("--since", "9999-01-01") == []
    assert found("--name", "nosuch") == []


def test_a_list_of_runs_is_as_wide_as_the_terminal(measured):
    words = [str(PROGRAM), "list", "runs", "--store", str(measured.store)]
    for width in (60, 80, 100, 140):
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        subprocess.run(words, stdout=theirs, check=True, env=measured.environment)
        os.close(theirs)
        lines = os.read(ours, 1 << 16).decode().splitlines()
        os.close(ours)
        assert len(lines) == 3 and max(map(len, lines)) <= width, lines
        assert all(result["run"]["id"] in "".join(lines) for result in measured.results)
        assert ("command" in lines[0]) == (width >= 100), lines


def test_a_long_name_leaves_the_list_of_runs_as_wide_as_the_terminal(strata):
    strata.level("one")
    strata.compare("one", more=("--name", "a name that is longer than any column " * 2))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = [str(PROGRAM), "list", "runs", "--store", str(strata.store)]
    subprocess.run(words, stdout=theirs, check=True, env=strata.environment)
    os.close(theirs)
    lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert len(lines) == 2 and max(map(len, lines)) <= 80 and "a name" in lines[1], lines


def test_an_exported_run_is_a_store_that_shows_the_same_and_comes_back_once(
    measured, store, tmp_path
):
    first, second = (result["run"]["id"] for result in measured.results)
    file = tmp_path / "one.db"
    done = runs(measured, "export", first, file, store=store)
    assert (done.returncode, done.stdout) == (0, f"{file}\n"), done.stderr
    assert listed(measured, file) == [first]
    shown = [
        measured.run("show", first, "--format", "json", "--store", str(path)).stdout
        for path in (store, file)
    ]
    assert shown[0] == shown[1] and shown[0]
    again = runs(measured, "export", first, file, store=store)
    assert again.returncode == 2 and "there is such a file" in again.stderr
    assert runs(measured, "delete", first, store=store).returncode == 0
    assert listed(measured, store) == [second]
    for words in ("1 run copied", "0 runs copied"):
        done = runs(measured, "import", file, store=store)
        assert done.returncode == 0 and done.stdout.startswith(words), done
    assert "1 run there already" in done.stdout
    assert listed(measured, store) == [second, first] or listed(measured, store) == [first, second]
    assert measured.run("show", first, "--format", "json", "--store", str(store)).stdout == shown[0]
    assert (
        len(
            ask(
                store,
                f"SELECT 1 FROM metrics JOIN level_rows USING (row_id) WHERE run_id='{first}'",
            )
        )
        > 20
    )


def test_a_deleted_run_takes_its_logs_and_its_report_along_and_says_what_that_freed(
    measured, store
):
    first, second = (result["run"]["id"] for result in measured.results)
    for run in (first, second):
        for file in (
            store.parent / "logs" / run / "key" / "one.log",
            store.parent / "reports" / f"{run}.html",
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x" * 1000, encoding="utf-8")
    before = store.stat().st_size
    done = runs(measured, "delete", first, store=store)
    assert done.returncode == 0 and done.stdout.splitlines()[0] == f"deleted {first}", done
    assert "of the store, and 2" in done.stdout and done.stdout.startswith("deleted"), done.stdout
    assert store.stat().st_size < before
    assert (
        not (store.parent / "logs" / first).exists()
        and not (store.parent / "reports" / f"{first}.html").exists()
    )
    assert (store.parent / "logs" / second / "key" / "one.log").exists() and (
        store.parent / "reports" / f"{second}.html"
    ).exists()
    assert listed(measured, store) == [second]


def test_every_table_of_a_run_is_one_that_is_copied_and_deleted(store):
    """A table that is added later and holds what belongs to a run would otherwise be left
    behind."""
    of_runs = [
        table
        for (table,) in ask(store, "SELECT name FROM sqlite_master WHERE type='table'")
        if {"run_id", "row_id"}
        & {column[1] for column in ask(store, f"PRAGMA table_info({table})")}
    ]
    text = (ROOT / "src" / "store" / "run_parts.hpp").read_text(encoding="utf-8")
    for table in of_runs:
        assert f'RunPart{{"{table}"' in text, table
    assert len(of_runs) >= 10


def test_runs_that_are_not_there_delete_nothing(measured, store):
    done = runs(measured, "delete", "last", "nosuch", store=store)
    assert done.returncode == 2 and "nosuch" in done.stderr and len(listed(measured, store)) == 2
    missing = store.parent / "typo.db"
    for verb, words in (
        ("delete", ["last"]),
        ("refresh", []),
        ("export", ["last", store.parent / "x.db"]),
    ):
        done = runs(measured, verb, *words, store=missing)
        assert (
            done.returncode == 2 and "there is no such file" in done.stderr and not missing.exists()
        ), done


def test_stores_are_merged_and_a_run_that_differs_ends_it(measured, store, tmp_path):
    ids = {result["run"]["id"] for result in measured.results}
    parts = []
    for run in sorted(ids):
        parts.append(tmp_path / f"{run}.db")
        assert runs(measured, "export", run, parts[-1], store=store).returncode == 0
    into = tmp_path / "all.db"
    done = runs(measured, "merge", *parts, store, into)
    assert (
        done.returncode == 0 and done.stdout == f"2 runs copied into {into}; 2 runs there already\n"
    ), done
    assert set(listed(measured, into)) == ids
    store_damage.rewrite(parts[0], "UPDATE level_rows SET hint='another'")
    done = runs(measured, "merge", parts[0], into)
    assert done.returncode == 1 and "is another one" in done.stderr, done
    done = runs(measured, "merge", into, into)
    assert done.returncode == 2, done


def test_a_damaged_or_a_newer_store_is_not_taken_in(measured, store, tmp_path):
    into = tmp_path / "into.db"
    damaged, newer = tmp_path / "damaged.db", tmp_path / "newer.db"
    shutil.copy(store, damaged)
    store_damage.rewrite(damaged, "UPDATE blocks SET wall_ns=x'00'")
    done = runs(measured, "merge", damaged, into)
    assert done.returncode == 1 and "wall_ns" in done.stderr, done
    shutil.copy(store, newer)
    store_damage.rewrite(newer, "PRAGMA user_version=99")
    done = runs(measured, "merge", newer, into)
    assert done.returncode == 3 and "newer strata" in done.stderr, done
    assert listed(measured, into) == []


def test_the_command_of_an_imported_run_is_never_executed(measured, store, tmp_path):
    touched = tmp_path / "touched"
    model = tmp_path / "theirs.py"
    model.write_text(f"open({str(touched)!r}, 'w')\n", encoding="utf-8")
    theirs = tmp_path / "theirs.db"
    assert runs(measured, "export", "last", theirs, store=store).returncode == 0
    words = json.dumps(["compare", f"{model}:build", "--levels", "one"])
    store_damage.rewrite(
        theirs,
        "UPDATE runs SET run_id='theirs', started='2999-01-01T00:00:00Z', finished='', "
        "list_hash='', content_hash='', settings=json_set(settings, '$.arguments', json(?))",
        (words,),
    )
    for table in ("run_cases", "level_rows", "warnings", "restarts", "run_environments"):
        store_damage.rewrite(theirs, f"UPDATE {table} SET run_id='theirs'")
    into = tmp_path / "own" / "strata.db"
    into.parent.mkdir()
    shutil.copy(store, into)
    own = listed(measured, into)
    assert runs(measured, "import", theirs, store=into).returncode == 0
    assert "theirs" in listed(measured, into)
    shown = measured.run("show", "last", "--format", "json", "--store", str(into))
    assert json.loads(shown.stdout)["run"]["id"] in own
    for file, run in ((into, "theirs"), (theirs, "last")):
        done = measured.run("resume", run, "--store", str(file))
        assert done.returncode == 2 and "came from another store" in done.stderr, done
    assert not touched.exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("null", "does not say what it was asked"),
        ("[]", "does not say what it was asked"),
        ('"compare"', "does not say what it was asked"),
        ("{}", "the request's version is null"),
        ('{"verb":"compare","version":1}', "names no model"),
        ('{"verb":"compare","version":1,"model":"--dry-run"}', "does not begin with -"),
        ('{"verb":"compare","version":1,"model":"m","batch":["8"]}', "member batch is"),
        ('{"verb":"export","version":1,"model":"m","level":"aoti","output":"x"}', "makes no run"),
    ],
)
def test_a_stored_request_that_is_none_is_refused(measured, store, asked, words):
    store_damage.rewrite(
        store, "UPDATE runs SET settings=json_set(settings,'$.request',json(?))", (asked,)
    )
    done = measured.run("resume", "last", "--store", str(store))
    assert done.returncode == 2 and words in done.stderr, done


def test_refresh_computes_what_an_older_strata_did_not_store(measured, store):
    before = ask(store, "SELECT * FROM metrics ORDER BY row_id, name, setting")
    store_damage.rewrite(store, "DELETE FROM metrics")
    store_damage.rewrite(store, "UPDATE run_cases SET metrics_version=0")
    done = runs(measured, "refresh", store=store)
    assert (done.returncode, done.stdout) == (0, "metrics of 2 runs computed\n"), done
    assert ask(store, "SELECT * FROM metrics ORDER BY row_id, name, setting") == before
    assert runs(measured, "refresh", store=store).stdout == "metrics of 0 runs computed\n"
    assert runs(measured, "refresh", "last", store=store).stdout == "metrics of 1 run computed\n"


def test_a_killed_run_gets_the_metrics_of_what_it_measured(strata):
    strata.level("one", rank=1)
    process = strata.start(*strata.arguments("one", restarts=1, budget="600s"))
    wait_for_blocks(strata.store, 20)
    running = runs(strata, "delete", "last", store=strata.store)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert running.returncode == 2 and "is being measured" in running.stderr, running
    assert ask(strata.store, "SELECT count(*) FROM metrics") == [(0,)]
    assert runs(strata, "refresh", store=strata.store).stdout == "metrics of 1 run computed\n"
    shown = rows_of(
        json.loads(
            strata.run("show", "last", "--store", str(strata.store), "--format", "json").stdout
        )
    )
    assert ask(strata.store, "SELECT value FROM metrics WHERE name='iteration_time'") == [
        (shown["one"]["end_to_end_ms"]["estimate"],)
    ]
