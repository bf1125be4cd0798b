# SPDX-License-Identifier: Apache-2.0
"""Sweeps and trainings in shards: by hand, and on a cluster whose Slurm is a fake
(tests/fakes/fake_slurm.py): what is sent, what became of it, what is sent again, one report."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from training_program import Training

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
from cluster_commands import GRID, ask, points_of, send, shown, status
from fake_slurm import FakeSlurm

POINTS = {(batch, size) for batch in ("1", "2") for size in ("8", "10")}


@pytest.fixture
def slurm(grid_program, tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    grid_program.environment["PATH"] = fake.path
    return fake


def shard(grid_program, which: str, *more: str):
    return grid_program.run(
        "sweep", *GRID, "--shard", which, "--store", str(grid_program.store), *more
    )


def states(grid_program) -> list[str]:
    return [one["state"] for one in status(grid_program)["shards"]]


def test_shards_by_hand_do_every_point_once_and_are_shown_as_one(grid_program):
    for which in ("1/2", "2/2"):
        done = shard(grid_program, which, "--order-seed", "5")
        assert done.returncode == 0, done.stderr
    runs = ask(
        grid_program.store,
        "SELECT json_extract(settings,'$.shard'), json_extract(settings,'$.cases'), json_extract(settings,'$.parts') FROM runs ORDER BY started, rowid",
    )
    assert runs == [("1/2", 2, 4), ("2/2", 2, 4)]
    _, items, words = shown(grid_program, grid_program.store)
    assert sorted(points_of(items)) == sorted(POINTS)
    assert [row["shard"] for row in items["shards"]["rows"]] == [
        "1/2",
        "2/2",
    ] and "points were reached" not in words
    assert items["fastest1"]["labels"] == [["quick", "quick"], ["quick", "quick"]]
    page = grid_program.run("report", "last", "--store", str(grid_program.store), "-o", "page.html")
    assert page.returncode == 0 and "Who did which part" in (
        grid_program.folder / "page.html"
    ).read_text(encoding="utf-8")


def test_a_shard_alone_is_shown_as_a_part_and_goes_on_where_it_is(grid_program):
    assert shard(grid_program, "2/3").returncode == 0
    _, items, words = shown(grid_program, grid_program.store)
    assert (
        len(points_of(items)) == 1
        and "1 of 4 points were reached" in words
        and "no run of shard 1/3, 3/3" in words
    )
    again = shard(grid_program, "2/3", "--resume")
    assert again.returncode == 0 and again.stdout.startswith("shard 2/3 is done: ./strata show "), (
        again
    )
    assert ask(grid_program.store, "SELECT count(*) FROM runs") == [(1,)]


def test_a_shard_that_was_measured_twice_counts_once_and_that_is_said(grid_program):
    for _ in range(2):
        assert shard(grid_program, "1/4").returncode == 0
    newer = ask(grid_program.store, "SELECT run_id FROM runs ORDER BY started DESC, rowid DESC")[0][
        0
    ]
    _, items, words = shown(grid_program, grid_program.store)
    assert (
        len(points_of(items)) == 1
        and "1 point was measured more than once; the newer whole one is shown" in words
    )
    assert items["shards"]["rows"][-1]["run"] == newer


def test_a_shard_that_was_cut_off_is_gone_on_with(grid_program):
    first = shard(grid_program, "1/2", "--budget", "1s")  # one of its two points
    assert first.returncode == 0 and "1 of 2 points were reached" in first.stderr + first.stdout
    again = shard(grid_program, "1/2", "--budget", "60s", "--resume")
    assert "continuing run" in again.stderr, again.stderr
    assert ask(grid_program.store, "SELECT count(*) FROM runs") == [(1,)]
    assert ask(grid_program.store, "SELECT count(*) FROM run_cases WHERE finished=1") == [(2,)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shard", "0/2"], ["allowed: 1/2 to 2/2"]),
        (["--shard", "two"], ["as 2/8"]),
        (["--shard", "1/5"], ["there are 4 points to split", "--shard 1/4"]),
        (["--resume"], ["--resume means nothing without --shard"]),
        (["--partition", "long"], ["--partition means nothing without --on"]),
        (["--on", "slurm", "--shard", "1/2"], ["exclude each other"]),
        (["--on", "slrm"], ["--on slrm: unknown", "allowed: slurm"]),
        (["--on", "slurm", "--nodes", "0"], ["--nodes 0: allowed: 1 to"]),
    ],
)
def test_what_cannot_be_split_is_refused(grid_program, words, message):
    done = grid_program.run("sweep", *GRID, *words, "--store", str(grid_program.store))
    assert done.returncode == 2 and all(one in done.stderr for one in message), done.stderr
    assert not grid_program.store.exists()


def test_an_array_is_sent_a_failed_task_is_sent_again_alone_and_one_report_has_all(
    grid_program, slurm
):
    slurm.fate(2, "crash")
    done = send(
        grid_program,
        "--nodes",
        "3",
        "--partition",
        "long",
        "--constraint",
        "amd",
        "--sbatch",
        "time=2:00:00",
        "--sbatch",
        "--mem=0",
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.startswith("job 101: 3 of 3 shards of 4 points")
        and "./strata status" in done.stdout
    )
    [call] = slurm.calls("sbatch")
    assert {
        "--parsable",
        "--array=1-3",
        "--exclusive",
        "--nodes=1",
        "--partition=long",
        "--constraint=amd",
        "--time=2:00:00",
        "--mem=0",
    } <= set(call)
    nothing = send(grid_program)
    assert (
        nothing.returncode == 0
        and "nothing to send: all shards are done or under way" in nothing.stdout
    )
    slurm.wait()
    done = grid_program.run("status", "shared folder")
    assert done.returncode == 1 and "2 of 3 shards done, 1 failed; 3 of 4 points" in done.stdout, (
        done.stdout
    )
    assert (
        "no such file on this node" in done.stdout
        and "shard 2 is sent again by the same command" in done.stdout
    )
    early = grid_program.run(
        "status", "shared folder", "--merge", "--store", str(grid_program.store)
    )
    assert (
        early.returncode == 2
        and "not done: shard 2" in early.stderr
        and not grid_program.store.exists()
    )
    again = send(grid_program)
    assert again.stdout.startswith("job 102: 1 of 3 shards"), again
    assert "--array=2" in slurm.calls("sbatch")[-1]
    slurm.wait()
    whole = status(grid_program)
    assert whole["whole"] and whole["missing"] == [] and (whole["done"], whole["parts"]) == (4, 4)
    assert [one["node"] for one in whole["shards"]] == ["n1", "n2", "n3"] and {
        one["state"] for one in whole["shards"]
    } == {"finished"}
    third = send(grid_program)
    assert (
        third.returncode == 0
        and "nothing to send: all shards are done" in third.stdout
        and len(slurm.calls("sbatch")) == 2
    )
    merged = grid_program.run(
        "status", "shared folder", "--merge", "--store", str(grid_program.store)
    )
    assert (
        merged.returncode == 0
        and "3 runs copied into" in merged.stdout
        and "./strata show " in merged.stdout
    ), merged
    _, items, words = shown(grid_program, grid_program.store)
    assert sorted(points_of(items)) == sorted(POINTS) and "measured more than once" not in words
    assert {row["machine"] for row in items["points"]["rows"]} == {"n1", "n2", "n3"}


def test_a_node_that_vanishes_costs_the_point_that_it_was_at_and_nothing_else(grid_program, slurm):
    slurm.fate(1, "vanish")
    assert send(grid_program, "--nodes", "2").returncode == 0
    slurm.wait()
    assert states(grid_program) == ["node failure", "finished"]
    store = grid_program.folder / "shared folder" / "shard-1.db"
    shard = status(grid_program)["shards"][0]
    assert shard["done"] == 1 and shard["of"] == 2
    assert send(grid_program).stdout.startswith("job 102: 1 of 2 shards")
    slurm.wait()
    assert states(grid_program) == ["finished", "finished"]
    assert ask(store, "SELECT run_id FROM runs") == [(shard["run"],)], "it went on with its run"
    assert ask(store, "SELECT count(*), sum(finished) FROM run_cases") == [(2, 2)]
    assert "continuing run " + shard["run"] in (
        grid_program.folder / "shared folder" / "shard-1.log"
    ).read_text(encoding="utf-8")


def test_a_task_that_ran_out_of_time_is_known_when_the_queue_has_forgotten_it(grid_program, slurm):
    slurm.fate(1, "limit")
    slurm.fate(2, "crash")
    assert send(grid_program, "--nodes", "2").returncode == 0
    slurm.wait()
    assert states(grid_program) == ["timed out", "failed"]
    slurm.forget()
    assert states(grid_program) == ["timed out", "lost"]
    done = grid_program.run("status", "shared folder")
    assert done.returncode == 1 and "shards 1-2 are sent again" in done.stdout, done.stdout
    elsewhere = grid_program.run("status", "shared folder", PATH="/nowhere")
    assert (
        elsewhere.returncode == 1
        and "squeue is not on PATH" in elsewhere.stdout
        and "unknown" in elsewhere.stdout
        and "sent again" not in elsewhere.stdout
    )
    unasked = send(grid_program, "--nodes", "2")
    assert "job 102: 2 of 2 shards" in unasked.stdout
    slurm.wait()
    grid_program.environment["PATH"] = "/nowhere"
    blind = send(grid_program)
    assert (
        blind.returncode == 3
        and "is not known" in blind.stderr
        and "nothing was sent" in blind.stderr
    )


def test_without_a_number_of_nodes_there_are_as_many_shards_as_the_partition_has(
    grid_program, slurm
):
    done = send(grid_program, "--dry-run", "--partition", "short")
    assert done.returncode == 0 and "would send 3 of 3 shards of 4 points" in done.stdout, done
    assert slurm.calls("sinfo") == [
        ["--noheader", "--format=%D", "--partition=short"]
    ] and not slurm.calls("sbatch")
    assert "would send 4 of 4 shards" in send(grid_program, "--dry-run", "--nodes", "9").stdout
    assert not (grid_program.folder / "shared folder").exists()


def test_what_slurm_refuses_is_shown_and_nothing_is_kept_as_sent(grid_program, slurm):
    slurm.refuse("invalid partition specified: long")
    done = send(grid_program, "--nodes", "2", "--partition", "long")
    assert (
        done.returncode == 3
        and "sbatch refuses the job" in done.stderr
        and "invalid partition specified: long" in done.stderr
    )
    done = grid_program.run("status", "shared folder")
    assert done.returncode == 2 and "nothing was sent" in done.stderr


def test_a_folder_of_another_sweep_or_that_cannot_be_written_is_refused(grid_program, slurm):
    (grid_program.folder / "file").write_text("", encoding="utf-8")
    done = send(grid_program, "--nodes", "2", folder="file/sub")
    assert (
        done.returncode == 2
        and "cannot be written" in done.stderr
        and "--folder DIR" in done.stderr
    )
    slurm.fate(1, "crash")
    assert send(grid_program, "--nodes", "1").returncode == 0
    slurm.wait()
    other = send(grid_program, "--retry", "--mode", "infer", "--precision", "bf16")
    assert other.returncode == 2 and "is the folder of another sweep" in other.stderr
    split = send(grid_program, "--nodes", "2")
    assert split.returncode == 2 and "was split into 1 shards" in split.stderr


def test_a_machine_without_slurm_says_what_to_do_by_hand(grid_program):
    done = grid_program.run(
        "sweep", *GRID, "--on", "slurm", "--nodes", "2", "--folder", "f", PATH="/nowhere"
    )
    assert (
        done.returncode == 3
        and "sbatch is not on PATH" in done.stderr
        and "--shard 1/N" in done.stderr
    ), done.stderr
    wrong = grid_program.run(
        "sweep", *GRID[:1], "--levels", "plian", "--on", "slurm", "--nodes", "2", "--folder", "f"
    )
    assert wrong.returncode == 2 and "did you mean 'plain'" in wrong.stderr


def test_what_is_under_way_can_be_cancelled(grid_program, slurm):
    slurm.fate(1, "crash")
    assert send(grid_program, "--nodes", "1").returncode == 0
    slurm.wait()
    done = grid_program.run("status", "shared folder", "--cancel")
    assert (
        done.returncode == 0 and "0 shards cancelled" in done.stdout and not slurm.calls("scancel")
    )
    (slurm.folder / "jobs" / "101" / "1").write_text("RUNNING|n1", encoding="utf-8")
    done = grid_program.run("status", "shared folder", "--cancel")
    assert done.returncode == 0 and slurm.calls("scancel") == [["101_1"]]


def test_a_script_of_a_task_sets_what_is_meant_and_runs_nothing_else(grid_program, slurm, tmp_path):
    touched, value = tmp_path / "touched", "it's $(touch x)\n\x1b[31m`touch y`\\"
    grid_program.environment |= {f"STRATA_N;touch {touched};A": "1", "STRATA_VALUE": value}
    slurm.fate(1, "crash")
    assert send(grid_program, "--nodes", "1").returncode == 0
    script = (grid_program.folder / "shared folder" / "task.sh").read_text(encoding="utf-8")
    settings, _ = script.split("\ncd ", 1)
    done = subprocess.run(
        ["sh", "-c", settings + '\nprintf %s "$STRATA_VALUE"'],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == value and done.stderr == ""
    assert not touched.exists() and not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["job%j", "a\\b", "a\nb"])
def test_a_folder_that_sbatch_would_read_as_another_one_is_refused(grid_program, slurm, name):
    done = send(grid_program, "--nodes", "1", folder=name)
    assert done.returncode == 2 and "sbatch reads" in done.stderr, done
    assert not slurm.calls("sbatch") and not (grid_program.folder / name).exists()


@pytest.mark.parametrize("job", ["--name=all", "101 102", "", "1;2"])
def test_a_job_that_is_no_number_never_reaches_slurm(grid_program, slurm, job):
    slurm.fate(1, "crash")
    assert send(grid_program, "--nodes", "1").returncode == 0
    slurm.wait()
    about = grid_program.folder / "shared folder" / "split.json"
    split = json.loads(about.read_text(encoding="utf-8"))
    split["submissions"][0]["job"] = job
    about.write_text(json.dumps(split), encoding="utf-8")
    calls = slurm.calls("squeue")
    done = grid_program.run("status", "shared folder", "--cancel")
    assert done.returncode != 0 and '"job"' in done.stderr, done
    assert slurm.calls("squeue") == calls and not slurm.calls("scancel")


def test_a_log_that_is_no_file_of_its_own_is_not_read(grid_program, slurm, tmp_path):
    slurm.fate(1, "crash")
    assert send(grid_program, "--nodes", "1").returncode == 0
    slurm.wait()
    log = grid_program.folder / "shared folder" / "shard-1.log"
    secret = tmp_path / "secret"
    secret.write_text("error: the password\n", encoding="utf-8")
    for make in (
        lambda: os.mkfifo(log),
        lambda: log.symlink_to("/dev/zero"),
        lambda: log.symlink_to(secret),
    ):
        log.unlink(missing_ok=True)
        make()
        done = grid_program.run("status", "shared folder", timeout=30)
        assert done.returncode == 1 and "password" not in done.stdout, done


def test_a_suite_cannot_say_that_it_is_split(grid_program):
    (grid_program.folder / "s.toml").write_text(
        'title = "t"\n[[entry]]\nverb = "sweep"\nmodel = "net.py:build"\nshard = "1/2"\n',
        encoding="utf-8",
    )
    done = grid_program.run("run", "s.toml", "--dry-run")
    assert done.returncode == 2 and "shard is not an option of entries" in done.stderr


@pytest.fixture
def training(tmp_path):
    return Training(tmp_path / "grid_program with spaces")


def test_repeats_of_a_training_need_one_seed_to_be_split(training):
    training.level("one", rank=1)
    done = training.run(
        "train",
        "net",
        "--dataset",
        "digits",
        "--repeats",
        "2",
        "--shard",
        "1/2",
        "--store",
        str(training.store),
    )
    assert done.returncode == 2 and "--order-seed" in done.stderr
    done = training.run(
        "train",
        "net",
        "--dataset",
        "digits",
        "--repeats",
        "2",
        "--shard",
        "1/3",
        "--order-seed",
        "1",
        "--store",
        str(training.store),
    )
    assert done.returncode == 2 and "there are 2 repeats to split" in done.stderr


def test_repeats_of_a_training_are_sent_with_one_seed_for_all(training, tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    training.environment["PATH"] = fake.path
    training.level("one", rank=1)
    for task in (1, 2):
        fake.fate(task, "crash")
    done = training.run(
        "train",
        "net",
        "--dataset",
        "digits",
        "--repeats",
        "3",
        "--on",
        "slurm",
        "--nodes",
        "2",
        "--folder",
        "f",
    )
    assert done.returncode == 0 and done.stdout.startswith("job 101: 2 of 2 shards of 3 repeats"), (
        done
    )
    script = (training.folder / "f" / "task.sh").read_text(encoding="utf-8")
    seed = json.loads((training.folder / "f" / "split.json").read_text(encoding="utf-8"))[
        "order_seed"
    ]
    assert (
        f"'train' 'net' '--dataset' 'digits' '--repeats' '3' '--order-seed' '{seed}'"
        ' --shard "$task/2" --resume --store "$shard.db"' in script
    )
    assert "--on" not in script and "STRATA_WORKER" not in script
    fake.wait()
    done = training.run("status", "f")
    assert (
        done.returncode == 1
        and "0 of 3 repeats" in done.stdout
        and "shards 1-2 are sent again" in done.stdout
    )
