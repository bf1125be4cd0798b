# SPDX-License-Identifier: Apache-2.0
"""`strata engine`: requests in, events and results out, as lines of JSON (docs/engine.md)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import MODEL, PROGRAM, ROOT, samples


@pytest.fixture
def engine(strata):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    with subprocess.Popen(
        [str(PROGRAM), "engine", "--store", str(strata.store)],
        env=strata.environment,
        cwd=strata.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def send(engine, **line) -> None:
    engine.stdin.write(json.dumps(line) + "\n")
    engine.stdin.flush()


def asked(**members) -> dict:
    return {
        "verb": "compare",
        "version": 1,
        "model": MODEL,
        "levels": ["slow", "fast"],
        "threads": [1],
        "restarts": 1,
        "budget_s": 1,
    } | members


def answer_to(engine, request_id) -> tuple[list[dict], dict]:
    """The events of a request, and its answer."""
    events = []
    for line in engine.stdout:
        answer = json.loads(line)
        assert answer["id"] == request_id, answer
        if "event" not in answer:
            return events, answer
        events.append(answer)
    raise AssertionError(engine.stderr.read())


def test_answers_several_requests_one_after_another_with_events_and_results(engine, strata):
    send(engine, id=1, request=asked())
    send(engine, id="grid", request=asked(verb="sweep", batch=[1, 2]))
    events, answer = answer_to(engine, 1)
    assert {"progress", "note"} <= {event["event"] for event in events}
    assert answer["exit_code"] == 0 and not answer["cancelled"], answer
    rows = {row["level"]: row for row in answer["result"]["cases"][0]["rows"]}
    assert rows["fast"]["ratio"]["value"] == pytest.approx(2, rel=0.05)
    events, answer = answer_to(engine, "grid")
    plan = next(event for event in events if event["event"] == "plan")
    assert len(plan["points"]) == 2 and answer["exit_code"] == 0
    engine.stdin.close()
    assert engine.wait(30) == 0
    shown = strata.run("show", answer["run"], "--store", str(strata.store), "--format", "json")
    assert json.loads(shown.stdout) == answer["result"]


def test_an_engine_needs_the_levels_alone_that_it_is_started_for(strata):
    def needs(*words):
        return json.loads(strata.run("--needs", "json", "engine", *words).stdout)

    every = needs()["environments"][0]["programs"]
    assert {"level_onednn", "level_libtorch"} <= set(every)
    few = needs("--levels", "onednn,eager@channels_last,no_such_level")
    assert few["set_up"] and few["environments"][0]["programs"] == ["level_onednn"]
    none = needs("--levels", "none")
    assert not none["set_up"] and not none["environments"][0]["programs"]


def test_a_run_of_the_engine_has_the_command_that_asks_for_it(engine, strata):
    send(engine, id=1, request=asked(name="by the engine"))
    run = answer_to(engine, 1)[1]["result"]["run"]
    words = ["compare", MODEL, "--levels", "slow,fast", "--threads", "1", "--restarts", "1"]
    assert run["command"].startswith("./strata " + " ".join(words)), run["command"]
    assert "--name 'by the engine'" in run["command"]


def test_a_request_is_cancelled_at_any_time_and_the_next_one_runs(engine):
    send(engine, id=1, request=asked(budget_s=300))
    send(engine, id=2, request=asked())
    send(engine, id=3, request=asked())
    send(engine, cancel=2)
    for line in engine.stdout:
        if "measuring" in json.loads(line).get("doing", ""):
            break
    send(engine, cancel=1)
    answer = answer_to(engine, 1)[1]
    assert answer["cancelled"] and answer["exit_code"] == 130, answer
    assert answer["result"]["run"]["interrupted"]
    assert answer_to(engine, 2)[1]["error"]["what"] == "cancelled before it began"
    assert answer_to(engine, 3)[1]["exit_code"] == 0


def test_what_cannot_be_answered_is_an_error_and_the_next_request_runs(engine):
    send(engine, id=1, request=asked(model="no_such_net"))
    send(engine, id=2, request=asked(device="gpu"))
    send(engine, id=3, request=asked(threads=[0]))
    send(engine, id=4, request=asked(levels=["slow", "fats"]))
    send(engine, id=6, request=asked(python=sys.executable))
    send(engine, id=5, request=asked())
    assert "no model is called" in answer_to(engine, 1)[1]["error"]["what"]
    for request_id in (2, 3, 4):
        assert answer_to(engine, request_id)[1]["error"]["exit_code"] == 2
    assert "another interpreter" in answer_to(engine, 6)[1]["error"]["what"]
    assert answer_to(engine, 5)[1]["exit_code"] == 0


@pytest.mark.parametrize(
    ("line", "where", "got", "allowed"),
    [
        ({"request": asked(thread=1)}, "request", '"thread"', "synthetic, weights, seed"),
        (
            {"request": asked(threads="all")},
            "threads",
            '"all"',
            "a list of different whole numbers",
        ),
        ({"request": asked(restarts=101)}, "restarts", "101", "a whole number, 1 to 100"),
        ({"request": asked(device="gpu")}, "device", '"gpu"', "one of cpu, cuda"),
        ({"request": asked(mode="infer,trian")}, "mode", '"trian"', "infer, train"),
        ({"request": asked(levels=["slow", "fats"])}, "levels", '"fats"', "slow"),
        ({"request": asked(model="no_such_net")}, "model", '"no_such_net"', None),
        ({"request": asked(weights="no.pt")}, "weights", '"no.pt"', "a file"),
        ({"request": asked(input_from="none")}, "input_from", '"none"', "a folder"),
        ({"request": asked(size="9x9x9")}, "size", '"9x9x9"', None),
        ({"request": [1]}, "request", "[1]", "an object"),
        ({"request": {"verb": "show", "version": 1}}, "$store", None, "a store"),
        ({"id": [3]}, "line 1, id", "[3]", "a whole number, or a text"),
    ],
)
def test_an_error_says_where_what_was_got_and_what_is_allowed(
    engine, strata, line, where, got, allowed
):
    send(engine, **{"id": 1, "request": asked()} | line)
    error = answer_to(engine, None if "id" in line else 1)[1]["error"]
    assert error["where"] == where.replace("$store", str(strata.store)), error
    assert error.get("got") == got, error
    assert allowed in error["allowed"] if allowed else "allowed" not in error, error
    assert error["what"] and error["exit_code"] == 2, error


def test_a_line_that_is_no_json_is_named_by_its_number(engine):
    engine.stdin.write("\n{\n" + "[" * (2 << 20) + "\n")
    engine.stdin.flush()
    for number, allowed in ((2, "JSON"), (3, "up to 1048576 bytes")):
        error = answer_to(engine, None)[1]["error"]
        assert error["where"] == f"line {number}" and error["allowed"] == allowed, error


def test_what_is_stored_is_asked_for_by_the_same_door(engine, strata):
    send(engine, id=1, request=asked(name="before"))
    send(engine, id=2, request=asked(name="after"))
    first, second = answer_to(engine, 1)[1], answer_to(engine, 2)[1]
    send(engine, id=3, request={"verb": "runs", "version": 1, "limit": 5, "name": "aft"})
    send(engine, id=4, request={"verb": "show", "version": 1, "run": "before"})
    send(engine, id=5, request={"verb": "diff", "version": 1, "before": "before", "after": "after"})
    send(engine, id=6, request={"verb": "diff", "version": 1, "before": "before"})
    send(engine, id=7, request={"verb": "show", "version": 1, "run": "nosuch"})
    [listed] = answer_to(engine, 3)[1]["result"]
    assert listed["run"] == second["run"] and listed["state"] == "finished", listed
    shown = answer_to(engine, 4)[1]
    assert shown["result"] == first["result"] and shown["exit_code"] == 0 and shown["run"] is None
    difference = answer_to(engine, 5)[1]
    typed = strata.run("diff", "before", "after", "--store", str(strata.store), "--format", "json")
    assert difference["result"] == json.loads(typed.stdout)
    assert difference["exit_code"] == typed.returncode
    assert "names no after" in answer_to(engine, 6)[1]["error"]["what"]
    assert "no run is called 'nosuch'" in answer_to(engine, 7)[1]["error"]["what"]


SUITE = f"""title = "Two entries"
[defaults]
verb = "compare"
model = '{MODEL}'
levels = ["slow", "fast"]
restarts = 1
threads = 1
"""


def suite(strata, text: str) -> dict:
    (strata.folder / "suite.toml").write_text(SUITE + text, encoding="utf-8")
    return {"verb": "run", "version": 1, "suite": "suite.toml"}


def test_a_suite_runs_entry_by_entry_and_its_result_is_what_show_prints(engine, strata):
    request = suite(strata, "[[entry]]\nbudget = '1s'\n[[entry]]\nbudget = '1s'\nbatch = 2\n")
    send(engine, id=1, request=request | {"name": "both"})
    send(engine, id=2, request={"verb": "runs", "version": 1})
    events, answer = answer_to(engine, 1)
    assert answer["exit_code"] == 0 and not answer["cancelled"] and not answer["failed"], answer
    assert any(event.get("text", "").startswith("entry 2 of 2") for event in events), events
    shown = strata.run("show", answer["run"], "--store", str(strata.store), "--format", "json")
    assert json.loads(shown.stdout) == answer["result"]
    runs = answer_to(engine, 2)[1]["result"]
    assert len(runs) == 3 and all(run["state"] == "finished" for run in runs), runs
    [whole] = [run for run in runs if run["run"] == answer["run"]]
    words = f"./strata run suite.toml --name both --store '{strata.store}'"
    assert whole["command"] == words, whole


def test_a_suite_that_is_cancelled_keeps_the_entries_that_are_done(engine, strata):
    request = suite(strata, "[[entry]]\nbudget = '1s'\n[[entry]]\nbudget = '300s'\nbatch = 2\n")
    send(engine, id=1, request=request)
    second = False
    for line in engine.stdout:
        event = json.loads(line)
        second = second or event.get("text", "").startswith("entry 2 of 2")
        if second and "measuring" in event.get("doing", ""):
            break
    send(engine, cancel=1)
    answer = answer_to(engine, 1)[1]
    assert answer["cancelled"] and answer["exit_code"] == 130, answer
    rows = answer["result"]["sections"][0]["items"][0]["rows"]
    assert [row["state"] for row in rows] == ["done", "interrupted"], rows


def measured_rows(answer: dict) -> list:
    items = [item for section in answer["result"]["sections"] for item in section["items"]]
    [points] = [item for item in items if item.get("id") == "points"]
    return points["rows"]


def test_a_shard_of_a_sweep_has_its_points_and_the_whole_as_far_as_it_is_stored(engine):
    grid = asked(verb="sweep", batch=[1, 2], order_seed=1)
    send(engine, id=1, shard="1/2", request=grid)
    send(engine, id=2, shard="2/2", request=grid)
    events, first = answer_to(engine, 1)
    [plan] = [event for event in events if event["event"] == "plan"]
    assert len(plan["points"]) == 1 and first["exit_code"] == 0, first
    events, second = answer_to(engine, 2)
    [plan] = [event for event in events if event["event"] == "plan"]
    assert len(plan["points"]) == 1 and second["run"] != first["run"]
    send(engine, id=3, shard="1/2", request=grid)
    again = answer_to(engine, 3)[1]
    assert again["run"] == first["run"] and again["exit_code"] == 0, "it is done already"
    send(engine, id=4, request={"verb": "runs", "version": 1})
    commands = [run["command"] for run in answer_to(engine, 4)[1]["result"]]
    assert len(commands) == 2 and commands[-1].endswith("--shard 1/2"), commands
    assert len(measured_rows(first)) == 2 and len(measured_rows(second)) == 4  # of two levels


@pytest.mark.parametrize(
    ("shard", "members", "words"),
    [
        ("1/2", {}, "is not split into shards"),
        ("1/2", {"verb": "show", "version": 1}, "is not split into shards"),
        ("3/2", {"verb": "sweep", "batch": [1, 2]}, "--shard 3/2"),
        ("1/3", {"verb": "sweep", "batch": [1, 2]}, "there are 2 points to split"),
        (2, {"verb": "sweep", "batch": [1, 2]}, '"shard" is 2'),
    ],
)
def test_a_shard_that_is_none_is_an_error(engine, shard, members, words):
    send(engine, id=1, shard=shard, request=asked(**members))
    answer = answer_to(engine, None if shard == 2 else 1)[1]
    assert words in answer["error"]["what"] and answer["error"]["exit_code"] == 2, answer


@pytest.mark.parametrize(
    ("request_members", "what", "where"),
    [
        ({}, "unknown key 'lvels'", "suite.toml:9"),
        ({"suite": "nosuch.toml"}, "there is no suite 'nosuch.toml'", "suite"),
        ({"scale": "2"}, "scale", None),
        ({"sclae": "0.1"}, "which is not known", "request"),
    ],
)
def test_a_suite_that_is_none_is_an_error_and_nothing_is_run(
    engine, strata, request_members, what, where
):
    request = suite(strata, "[[entry]]\nlvels = ['slow']\n")
    send(engine, id=1, request=request | request_members)
    error = answer_to(engine, 1)[1]["error"]
    assert what in error["what"] and error["exit_code"] == 2, error
    assert error.get("where") == where, error
    assert not strata.store.exists()


def test_data_sets_are_listed_read_fetched_and_shown_by_the_same_door(engine, strata):
    data = {"verb": "data", "version": 1}
    digits = data | {"name": "digits"}
    send(engine, id=1, request=data | {"action": "list", "data_dir": "sets"})
    send(engine, id=2, request=digits | {"action": "verify"})
    send(engine, id=3, request=digits | {"action": "info"})
    send(engine, id=4, request=digits | {"action": "fetch"})
    send(engine, id=5, request=digits | {"action": "show", "count": 4, "output": "page.html"})
    send(engine, id=6, request=data | {"action": "verify", "name": "mnist", "data_dir": "sets"})
    send(engine, id=7, request=data | {"action": "fetch", "name": "mnits"})
    states = {row["set"]: row["state"] for row in answer_to(engine, 1)[1]["result"]}
    assert states["digits"] == "part of strata" and states["mnist"].startswith("missing: ")
    for request_id, action in ((2, "verify"), (3, "info")):
        typed = json.loads(strata.run("data", action, "digits", "--format", "json").stdout)
        result = answer_to(engine, request_id)[1]["result"]
        assert result | {"all_s": 0} == typed | {"all_s": 0}
    assert answer_to(engine, 4)[1]["result"] == {"folder": None, "fetched_now": False}
    page = strata.folder / "page.html"
    assert answer_to(engine, 5)[1]["result"] == {"file": str(page)} and page.is_file()
    missing = answer_to(engine, 6)[1]["error"]
    assert missing["exit_code"] == 3 and "t10k-images-idx3-ubyte" in missing["what"], missing
    unknown = answer_to(engine, 7)[1]["error"]
    assert "did you mean 'mnist'" in unknown["what"] and unknown["where"] == "name", unknown


def test_a_program_is_generated_and_a_level_exported_or_neither_and_why(engine, strata):
    generate = {"verb": "generate", "version": 1, "model": MODEL, "threads": 1, "output": "program"}
    send(engine, id=1, request=generate)
    send(engine, id=2, request=generate)
    export = {"verb": "export", "version": 1, "model": MODEL, "output": "exported"}
    send(engine, id=3, request=export | {"level": "torchscript", "threads": 1})
    send(engine, id=4, request=export | {"level": "eager"})
    done = answer_to(engine, 1)[1]
    assert done["exit_code"] == 0 and "steps a run" in done["result"]["summary"], done
    assert (strata.folder / "program/CMakeLists.txt").is_file()
    assert done["result"]["folder"] == str(strata.folder / "program")
    assert "the folder is not empty" in answer_to(engine, 2)[1]["error"]["what"]
    exported = answer_to(engine, 3)[1]["result"]
    assert exported["certificate"] is None and "no stored run" in exported["note"], exported
    assert (
        exported["prove"].startswith("./strata compare")
        and (strata.folder / "exported/README.md").is_file()
    )
    assert "no artefact that could be shipped" in answer_to(engine, 4)[1]["error"]["what"]


def test_what_runs_in_one_environment_is_refused_by_an_engine_of_several(strata):
    export = {"verb": "export", "version": 1, "model": MODEL, "level": "torchscript", "output": "x"}
    done = subprocess.run(
        [str(PROGRAM), "engine", "--env", f"own={sys.executable}"],
        env=strata.environment,
        cwd=strata.folder,
        input=json.dumps({"id": 1, "request": export}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert "one environment" in error["what"] and "--python" in error["fix"], error


def test_a_client_that_goes_away_ends_what_it_asked_for(engine):
    send(engine, id=1, request=asked(budget_s=300))
    engine.stdout.readline()
    engine.stdout.close()
    assert engine.wait(60) == 141


def test_what_a_killed_engine_measured_is_kept_and_resume_goes_on(engine, strata):
    send(engine, id=1, request=asked(restarts=3, budget_s=3))
    first = next(line for line in map(json.loads, engine.stdout) if line.get("event") == "restart")
    assert (first["done"], first["planned"]) == (1, 3)
    engine.kill()
    engine.wait()
    store = ("--store", str(strata.store))
    (listed,) = json.loads(strata.run("list", "runs", *store, "--format", "json").stdout)
    assert (listed["run"], listed["state"]) == (first["run"], "interrupted")
    before = json.loads(strata.run("show", "last", *store, "--format", "json").stdout)
    resumed = strata.run("resume", first["run"], *store, "--format", "json")
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    samples_of = {
        name: [row["end_to_end_ms"]["samples"] for row in told["cases"][0]["rows"]]
        for name, told in (("before", before), ("after", result))
    }
    assert all(a > b > 0 for a, b in zip(samples_of["after"], samples_of["before"])), samples_of
    assert not result["run"]["interrupted"]


def test_two_engines_share_a_store(strata, engine):
    other = subprocess.run(
        [str(PROGRAM), "engine", "--store", str(strata.store)],
        env=strata.environment,
        cwd=strata.folder,
        input=json.dumps({"id": 1, "request": asked()}) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert '"exit_code":0' in other.stdout.splitlines()[-1], other.stdout[-500:]
    send(engine, id=1, request=asked())
    assert answer_to(engine, 1)[1]["exit_code"] == 0


def test_the_example_shows_progress_cancels_and_reads_results(strata, tmp_path):
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    done = subprocess.run(
        [sys.executable, ROOT / "examples/engine_client.py", PROGRAM, MODEL, "slow,fast"],
        env=strata.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "short fast measured" in done.stdout and "long fast" in done.stdout, done.stdout
