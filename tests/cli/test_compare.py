# SPDX-License-Identifier: Apache-2.0
"""`strata compare` from end to end with fake levels: ratios, states, exit codes, interruption, a
killed driver."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import MODEL, PROGRAM, ROOT, rows_of

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage


def samples(median_ns: int, **more) -> dict:
    return {"samples": {"median_ns": median_ns, "jitter": 0.01, "seed": 1, "restart": 0.0} | more}


def test_recovers_the_ratio_of_two_levels_and_calls_the_faster_one_faster(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done, result = strata.compare("slow", "fast", restarts=3)
    assert done.returncode == 0, done.stderr
    rows = rows_of(result)
    assert rows["slow"]["ratio"]["verdict"] == "reference"
    assert rows["fast"]["ratio"]["value"] == pytest.approx(2.0, rel=0.03)
    assert rows["fast"]["ratio"]["low"] < 2.0 < rows["fast"]["ratio"]["high"]
    assert rows["fast"]["ratio"]["verdict"] == "faster"
    assert result["cases"][0]["headline"]["level"] == "fast"


def test_any_level_can_be_the_one_that_others_are_compared_with(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done, result = strata.compare("slow", "fast", more=("--reference", "fast"))
    assert done.returncode == 0, done.stderr
    rows = rows_of(result)
    assert rows["fast"]["ratio"]["verdict"] == "reference" and rows["slow"]["ratio"][
        "value"
    ] == pytest.approx(0.5, rel=0.03)
    assert result["cases"][0]["headline"]["verdict"] == "stay"
    done = strata.run(*strata.arguments("slow", "fast"), "--reference", "fats")
    assert (
        done.returncode == 2
        and "--reference fats: no such level is compared; there are slow, fast" in done.stderr
        and "did you mean fast?" in done.stderr
    )


def test_does_not_claim_a_difference_that_is_not_there(strata):
    strata.level("one", rank=1, **samples(1_000_000))
    strata.level("two", rank=2, **samples(1_000_000, seed=2))
    _, result = strata.compare("one", "two")
    assert rows_of(result)["two"]["ratio"]["verdict"] in ("same", "inconclusive")
    assert result["cases"][0]["headline"]["verdict"] in ("stay", "undecided")


def test_a_level_with_other_outputs_is_unequal_and_has_no_number(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01})
    done, result = strata.compare("right", "wrong")
    row = rows_of(result)["wrong"]
    assert (done.returncode, row["state"], row["end_to_end_ms"], row["ratio"]) == (
        1,
        "unequal",
        None,
        None,
    )
    assert rows_of(result)["right"]["state"] == "measured"
    assert "output" in row["reason"]


def test_a_level_that_answers_every_input_alike_is_mistrusted(strata):
    strata.level("right", rank=1)
    strata.level("stale", rank=2, same_output=True)
    _, result = strata.compare("right", "stale")
    row = rows_of(result)["stale"]
    assert row["state"] in ("mistrusted", "unequal") and row["end_to_end_ms"] is None
    assert "input" in row["reason"]


def test_a_level_that_is_right_before_it_is_timed_and_wrong_while_it_is_gets_no_number(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01, "only_in": "measure"})
    done, result = strata.compare("right", "wrong")
    row = rows_of(result)["wrong"]
    assert (done.returncode, row["state"], row["end_to_end_ms"], row["ratio"]) == (
        1,
        "unequal",
        None,
        None,
    )
    assert row["reason"].startswith("while timing: ")
    with sqlite3.connect(strata.store) as store:  # the block that gave it away is kept, with why
        assert [
            check
            for (check,) in store.execute(
                "SELECT check_result FROM blocks WHERE check_result LIKE 'while timing%'"
            )
        ] == [row["reason"]]


def test_weights_that_are_baked_in_are_named(strata):
    strata.level("right", rank=1)
    strata.level("baked", rank=2, outputs={"from": "timed"})
    _, result = strata.compare("right", "baked")
    row = rows_of(result)["baked"]
    assert row["state"] == "unequal" and "weights" in row["reason"]


@pytest.mark.parametrize(
    ("ops", "state", "word"),
    [
        ({"load": {"signal": 11}}, "crashed", "SIGSEGV"),
        ({"measure": {"signal": 6, "after": 2}}, "crashed", "SIGABRT"),
        ({"load": {"exit": 3}}, "crashed", "3"),
        ({"prove": {"junk": "hello"}}, "failed", "hello"),
        ({"measure": {"id": 99}}, "failed", "99"),
        (
            {"load": {"error": {"code": "out_of_memory", "what": "no memory for it", "hint": ""}}},
            "out_of_memory",
            "no memory for it",
        ),
        (
            {
                "load": {
                    "error": {"code": "unsupported", "what": "no such operation: foo", "hint": ""}
                }
            },
            "unsupported",
            "foo",
        ),
        ({"measure": {"answer": {"wall_ns": []}}}, "failed", "wall_ns"),
    ],
)
def test_a_worker_that_goes_wrong_costs_its_row_and_no_other(strata, ops, state, word):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, ops=ops)
    done, result = strata.compare("right", "wrong")
    rows = rows_of(result)
    assert rows["wrong"]["state"] == state, rows["wrong"]["reason"]
    assert word in rows["wrong"]["reason"]
    assert rows["right"]["state"] == "measured"
    assert done.returncode == (3 if state == "unsupported" else 1)
    assert "--levels" in rows["wrong"]["repeat"]


def test_a_worker_that_hangs_is_timed_out(strata):
    strata.level("right", rank=1)
    strata.level("hangs", rank=2, ops={"prove": {"hang": True}})
    done, result = strata.compare("right", "hangs", more=("--timeout", "3s"))
    assert (
        rows_of(result)["hangs"]["state"],
        rows_of(result)["right"]["state"],
        done.returncode,
    ) == ("timeout", "measured", 1)


def test_what_a_level_says_that_it_is_doing_is_shown_with_its_name(strata):
    strata.level(
        "slow", rank=1, ops={"load": {"progress": ["compiling 1 of 2", "compiling 2 of 2"]}}
    )
    done, result = strata.compare("slow")
    assert rows_of(result)["slow"]["state"] == "measured"
    assert "slow: compiling 1 of 2" in done.stderr and "slow: compiling 2 of 2" in done.stderr


def test_a_worker_of_another_protocol_version_is_refused(strata):
    strata.level("right", rank=1)
    strata.level("old", rank=2, api=1)
    _, result = strata.compare("right", "old")
    assert (
        rows_of(result)["old"]["state"] == "unavailable"
        and "version 1" in rows_of(result)["old"]["reason"]
    )


def test_a_debug_build_is_timed_only_when_asked_for(strata):
    strata.level("debug", rank=1, build="debug")
    strata.level("right", rank=2)
    _, result = strata.compare("debug", "right")
    assert (
        rows_of(result)["debug"]["state"] == "unavailable"
        and "debug" in rows_of(result)["debug"]["reason"]
    )
    _, result = strata.compare("debug", "right", more=("--allow-debug",))
    assert rows_of(result)["debug"]["state"] == "measured"


def test_a_program_that_does_not_exist_is_unavailable_and_a_named_level_makes_exit_3(strata):
    strata.level("right", rank=1)
    strata.level("gone", rank=2, json_fields={"start": ["/nowhere/level"]})
    done, result = strata.compare("right", "gone")
    assert (rows_of(result)["gone"]["state"], done.returncode) == ("unavailable", 3)


def test_restarts_that_do_not_agree_are_warned_of(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    _, result = strata.compare("steady", "moody", restarts=3)
    (warning,) = [warning for warning in result["warnings"] if warning["id"] == "W007"]
    assert "moody" in warning["what"] and "steady" not in warning["what"]
    ratios = [math.log(ratio) for ratio in rows_of(result)["moody"]["ratio"]["by_restart"]]
    assert (
        f"moody: {100 * statistics.stdev(ratios):.1f}% between restarts, 2.1% assumed"
        in warning["what"]
    )
    assert "disturbed" not in warning["what"], "the other cause does not hold"


def test_a_level_whose_restarts_part_is_not_called_faster(strata):
    strata.level("steady", rank=1, **samples(1_150_000))
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.1))
    _, result = strata.compare("steady", "moody", restarts=4)
    ratio = rows_of(result)["moody"]["ratio"]
    assert (
        ratio["rests_on"] == "restarts"
        and ratio["verdict"] == "inconclusive"
        and len(ratio["by_restart"]) == 4
    )


def test_a_run_learns_from_those_before_it_how_much_restarts_part_and_keeps_what_it_learned(strata):
    strata.level("slow", rank=1, **samples(1_000_000, restart=0.005))
    strata.level("fast", rank=2, **samples(970_000, seed=2, restart=0.005))
    _, first = strata.compare("slow", "fast", restarts=4)
    assert rows_of(first)["fast"]["ratio"]["learned"] is None
    for _ in range(2):
        strata.compare("slow", "fast", restarts=4)
    # whether this machine is quiet now is not what is tested
    assert (
        store_damage.rewrite(strata.store, "UPDATE run_cases SET trust=json_remove(trust,'$.load')")
        == 3
    )
    _, last = strata.compare("slow", "fast", restarts=4)
    ratio = rows_of(last)["fast"]["ratio"]
    assert ratio["rests_on"] == "learned" and (
        ratio["learned"]["runs"],
        ratio["learned"]["restarts"],
    ) == (3, 12), ratio
    assert 0.1 < ratio["learned"]["process_effect_percent"] < 1.5
    strata.compare("slow", "fast", restarts=4)
    shown = json.loads(
        strata.run(
            "show", last["run"]["id"], "--store", str(strata.store), "--format", "json"
        ).stdout
    )
    assert rows_of(shown)["fast"]["ratio"] == ratio, "what comes later changes nothing"
    text = " ".join(
        strata.run("show", last["run"]["id"], "--store", str(strata.store)).stdout.split()
    )
    assert (
        f"(learned from {ratio['learned']['restarts']} restarts in {ratio['learned']['runs']} earlier runs)"
        in text
    )


def test_after_two_restarts_it_is_said_how_many_an_unsteady_level_would_take(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    done, _ = strata.compare("steady", "moody", restarts=3)
    (line,) = [
        line for line in done.stderr.splitlines() if "would give an interval of +-5%" in line
    ]
    assert re.search(
        r"moody: [0-9.]+% between its first restarts: (about [0-9]+|over 10,000) restarts", line
    ), line


def test_one_restart_claims_only_what_no_process_effect_explains_and_says_so(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("faster", rank=2, **samples(1_700_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("slow", "faster", "fast", restarts=1)
    rows = rows_of(result)
    assert [rows[name]["ratio"]["verdict"] for name in ("faster", "fast")] == [
        "inconclusive",
        "faster",
    ]
    assert (
        rows["fast"]["ratio"]["rests_on"] == "most" and result["cases"][0]["trust"]["restarts"] == 1
    )
    shown = " ".join(strata.run("show", "last", "--store", str(strata.store)).stdout.split())
    assert (
        "1 restart (fewer than 3 show no spread of their own: 10% between processes is assumed)"
        in shown
    )


def test_the_progress_of_a_restart_shows_that_restarts_numbers(strata):
    strata.level("steady", rank=1)
    strata.level("moody", rank=2, **samples(1_000_000, restart=0.4))
    done, result = strata.compare("steady", "moody", restarts=3)
    said = re.findall(r"restart (\d) of 3:.* moody ([0-9.]+) ms", done.stderr)
    blocks = rows_of(result)["moody"]["blocks"]
    seen = [
        statistics.median(block["median_ms"] for block in blocks if block["restart"] == restart)
        for restart in range(3)
    ]
    assert [float(ms) for _, ms in said] == [pytest.approx(ms, rel=0.02) for ms in seen] and max(
        seen
    ) > 1.1 * min(seen)


def test_aa_runs_every_level_against_itself(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    _, result = strata.compare("one", "two", more=("--aa",))
    assert result["cases"][0]["aa"]["comparisons"] == 2
    assert result["cases"][0]["aa"]["false_alarms"] == 0
    assert rows_of(result)["one"]["aa"]["verdict"] in ("same", "inconclusive")


def test_a_run_is_stored_shown_listed_and_exported(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    _, result = strata.compare("one", "two", more=("--name", "first"))
    run = result["run"]["id"]
    again = strata.run("show", "first", "--format", "json", "--store", str(strata.store))
    assert json.loads(again.stdout) == result  # every statistic again from the store
    assert run in strata.run("list", "runs", "--store", str(strata.store)).stdout
    certificate = strata.run("show", run, "--certificate", "--store", str(strata.store)).stdout
    assert "observed" in certificate and "generic weights" in certificate
    csv = strata.run("export-data", "last", "--store", str(strata.store)).stdout.splitlines()
    assert len(csv) - 1 == sum(row["end_to_end_ms"]["samples"] for row in rows_of(result).values())
    page = strata.folder / "page.html"
    assert strata.run("report", run, "--store", str(strata.store), "-o", str(page)).returncode == 0
    assert "<html" in page.read_text(encoding="utf-8")[:2000]
    for style, word in (("md", "|"), ("csv", "one"), ("text", "Trust")):
        assert (
            word in strata.run("show", run, "--format", style, "--store", str(strata.store)).stdout
        )


def test_pages_beside_the_store_share_one_script_and_one_that_is_passed_on_carries_it(strata):
    strata.level("one", rank=1)
    for name in ("first", "second"):
        strata.compare("one", restarts=1, more=("--name", name))
    reports = strata.store.parent / "reports"
    pages, (script,) = list(reports.glob("*.html")), reports.glob("plotly-*.min.js")
    assert len(pages) == 2 and all(page.stat().st_size < 300_000 for page in pages)
    assert all(
        f'<script src="{script.name}"></script>' in page.read_text(encoding="utf-8")
        for page in pages
    )
    alone = strata.folder / "alone.html"
    assert (
        strata.run("report", "first", "--store", str(strata.store), "-o", str(alone)).returncode
        == 0
    )
    assert (
        " src=" not in alone.read_text(encoding="utf-8").split("<script", 1)[0]
        and alone.stat().st_size > script.stat().st_size
    )


def test_a_case_that_cannot_be_captured_takes_nothing_from_the_others(strata):
    strata.level("one", rank=1)
    model = strata.folder / "no_three.py"
    model.write_text(
        "import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n        assert len(x) != 3, 'not three'\n        return super().forward(x)\n\n"
        "def build():\n    return Net(4, 2).eval(), torch.ones(2, 4)\n"
    )
    words = strata.arguments("one", restarts=1)
    words[1] = f"{model}:build"
    done = strata.run(*words, "--batch", "3,2", "--format", "json")
    assert done.returncode == 2 and "not three" in done.stderr.splitlines()[-2], done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert case["case"]["batch"] == 2 and case["rows"][0]["state"] == "measured"


def test_ctrl_c_keeps_what_was_measured_and_ends_the_workers(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=2, budget="600s"))
    wait_for_blocks(strata.store, 20)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    shown = json.loads(
        strata.run("show", "last", "--format", "json", "--store", str(strata.store)).stdout
    )
    assert shown["run"]["interrupted"] and rows_of(shown)["one"]["state"] == "measured"
    assert "W005" in [warning["id"] for warning in shown["warnings"]]
    assert workers_of(strata) == []


def test_a_killed_driver_leaves_a_clean_store_and_no_worker(strata):
    strata.level("one", rank=1, helper=True)
    strata.level("two", rank=2)
    process = strata.start(*strata.arguments("one", "two", restarts=2, budget="600s"))
    committed = wait_for_blocks(strata.store, 20)
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while workers_of(strata) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers_of(strata) == []
    assert count_blocks(strata.store) >= committed
    assert "interrupted" in strata.run("list", "runs", "--store", str(strata.store)).stdout
    assert (
        strata.run("show", "last", "--format", "json", "--store", str(strata.store)).returncode == 0
    )


def count_blocks(store: Path) -> int:
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for_blocks(store: Path, at_least: int) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (found := count_blocks(store)) >= at_least:
            return found
        time.sleep(0.1)
    raise AssertionError("no block was committed within 120 s")


def workers_of(strata) -> list[str]:
    """Command lines of living processes that were started for this test's levels."""
    found = []
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            if (
                str(strata.levels).encode() in status.read_bytes()
                and b"STRATA_LEVEL_DIR" in status.read_bytes()
            ):
                found.append(status.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], ["model"]),
        (["compar", "resnet50"], ["unknown verb", "compare"]),
        (
            ["compare", MODEL, "--levels", "onee"],
            ["unknown level 'onee'", "did you mean 'one'", "known"],
        ),
        (["compare", MODEL, "--levels", "one@fast"], ["unknown variant", "one has: hugepages"]),
        (
            ["compare", MODEL, "--levels", "one@bf16"],
            ["bf16 is a precision", "--precision fp32,bf16"],
        ),
        (["compare", MODEL, "--batch", "many"], ["--batch many"]),
        (["compare", MODEL, "--batch", "0"], ["--batch 0", "allowed"]),
        (["compare", MODEL, "--budget", "soon"], ["--budget soon", "60s"]),
        (["compare", MODEL, "--ci-width", "200%"], ["--ci-width", "allowed"]),
        (["compare", MODEL, "--input", "1x3xfoo"], ["'foo'", "1x3x224x224"]),
        (["compare", MODEL, "--input", "ids=int46:1x8"], ["int46", "did you mean 'int64'"]),
        (["compare", MODEL, "--input", "99999999x99999999x9999"], ["elements"]),
        (["compare", MODEL, "--preset", "quik"], ["did you mean 'quick'"]),
        (["compare", MODEL, "--device", "gpu"], ["allowed: cpu, cuda"]),
        (["compare", MODEL, "--mode", "trian"], ["did you mean 'train'"]),
        (["compare", MODEL, "--format", "jsn"], ["did you mean 'json'"]),
        (
            ["compare", MODEL, "--weights", "/nowhere.safetensors"],
            ["/nowhere.safetensors", "no such file"],
        ),
        (["compare", MODEL, "--input-from", "/nowhere"], ["no such folder"]),
        (["compare", MODEL, "--synthetic", "--input-from", "/"], ["exclude each other"]),
        (["compare", "/nowhere.py:build"], ["no such file"]),
        (["compare", MODEL.split(":")[0]], ["function is missing"]),
        (["compare", MODEL, "--restart", "3"], ["unknown argument", "--restarts"]),
        (["show", "nothing"], ["no such file", "strata compare"]),
    ],
)
def test_bad_usage_is_told_before_anything_runs(strata, arguments, words):
    strata.level("one")
    done = strata.run(
        *arguments,
        *(
            ["--store", str(strata.store)]
            if len(arguments) > 1 and arguments[0] in ("compare", "show")
            else []
        ),
    )
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert done.stderr.count("\n") <= 4 and not strata.store.exists()


def test_a_precision_that_no_number_of_iterations_reaches_is_refused_with_the_one_that_can(strata):
    strata.level("one")
    done = strata.run(
        "compare", MODEL, "--levels", "one", "--ci-width", "0.1%", "--store", str(strata.store)
    )
    assert (
        done.returncode == 2 and "8 restarts can reach" in done.stderr and "assumed" in done.stderr
    )


def test_an_unknown_model_suggests_the_nearest(strata):
    strata.level("one")
    done = strata.run("compare", "resnet5", "--levels", "one", "--store", str(strata.store))
    assert done.returncode == 2 and "resnet50" in done.stderr


@pytest.mark.parametrize(
    "content", [b"this is not a database, but it is long enough to be looked at", b""]
)
def test_a_store_that_is_no_store_is_left_alone(strata, content):
    strata.level("one")
    strata.store.write_bytes(content)
    done = strata.run("show", "last", "--store", str(strata.store))
    assert done.returncode != 0 and str(strata.store) in done.stderr
    if content:
        assert strata.store.read_bytes() == content


def test_a_store_of_a_newer_strata_is_refused(strata):
    with sqlite3.connect(strata.store) as connection:
        connection.execute("PRAGMA user_version=999")
    done = strata.run("list", "runs", "--store", str(strata.store))
    assert done.returncode == 3 and "999" in done.stderr


def small_disk(folder: Path, kilobytes: int) -> list[str]:
    """The words before a command that gives it a file system of that size at `folder`, seen by no
    other process."""
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size={kilobytes}k none "$0" && exec "$@"',
        str(folder),
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], capture_output=True).returncode != 0
    ):
        pytest.skip("no file system can be mounted here without rights")
    return words


def test_a_full_disk_under_the_store_ends_the_run_with_a_reason_and_no_worker_left(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    disk = strata.folder / "disk"
    disk.mkdir()
    words = small_disk(disk, 700)
    arguments = strata.arguments("one", "two", restarts=1, budget="600s")
    arguments[arguments.index("--store") + 1] = str(disk / "strata.db")
    # what is left of the disk is looked at before the file system goes with its last process
    script = '"$@"; code=$?; "$1" list runs --store "$0/strata.db"; exit $code'
    done = subprocess.run(
        [*words, "sh", "-c", script, str(disk), str(PROGRAM), *arguments],
        env=strata.environment,
        cwd=strata.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode not in (0, 2) and done.returncode > 0, done.stderr
    assert "full" in done.stderr and str(disk) in done.stderr
    assert "interrupted" in done.stdout  # the store opens, with what was committed
    assert workers_of(strata) == []


def test_a_report_that_cannot_be_written_says_so_and_keeps_the_run(strata):
    strata.level("one", rank=1)
    strata.level("two", rank=2)
    done = strata.run(*strata.arguments("one", "two", restarts=1), "-o", "/dev/full")
    assert done.returncode == 1 and "/dev/full" in done.stderr
    assert "finished" in strata.run("list", "runs", "--store", str(strata.store)).stdout


def test_a_broken_level_hides_no_other(strata):
    strata.level("one", rank=1)
    (strata.levels / "broken").mkdir()
    (strata.levels / "broken" / "level.json").write_text("{", encoding="utf-8")
    _, result = strata.compare("one", restarts=1)
    assert rows_of(result)["one"]["state"] == "measured"
    assert "W006" in [warning["id"] for warning in result["warnings"]]


def test_the_first_line_says_that_the_reference_has_no_number_and_what_stands_in_for_it(strata):
    strata.level("wrong", rank=1, outputs={"scale": 1.01})
    strata.level("right", rank=2, **samples(2_000_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("wrong", "right", "fast")
    case = result["cases"][0]
    assert (
        case["reference_level"],
        case["reference_instead_of"]["level"],
        case["reference_instead_of"]["state"],
    ) == ("right", "wrong", "unequal")
    assert (
        case["headline"]["sentence"].startswith("wrong has no number (unequal: ")
        and "; compared with right instead. Move to fast" in case["headline"]["sentence"]
    )
    assert strata.run("show", "last", "--store", str(strata.store)).stdout.startswith(
        "wrong has no number"
    )


def test_a_reference_that_is_lost_while_it_is_timed_is_replaced_and_it_is_said(strata):
    strata.level("lost", rank=1, ops={"measure": {"signal": 6, "after": 2}})
    strata.level("right", rank=2, **samples(2_000_000))
    strata.level("fast", rank=3, **samples(1_000_000))
    _, result = strata.compare("lost", "right", "fast")
    case = result["cases"][0]
    assert (
        case["headline"]["sentence"].startswith("lost has no number (crashed: ")
        and case["headline"]["level"] == "fast"
    )
