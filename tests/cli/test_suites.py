# SPDX-License-Identifier: Apache-2.0
"""`strata run`: what a suite's file may say, its entries one after the other in one run, and going
on with it; plans of trainings."""

from __future__ import annotations

import json
import os
import re

import pytest
from conftest import IMAGES, MODEL, ROOT

NETWORK = """import torch

def build():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 10))
    return net.eval(), torch.rand(2, 1, 8, 8)
"""
QUICK = f"""
[defaults]
verb = "compare"
model = '{MODEL}'
levels = ["one"]
restarts = 1
budget = "1s"
threads = 1
"""
SUITES = sorted((ROOT / "suites").rglob("*.toml"))


def write(strata, text: str, title: str = 'title = "A suite"\n') -> str:
    (strata.folder / "suite.toml").write_text(title + text, encoding="utf-8")
    return "suite.toml"


def entries_of(done) -> list[dict]:
    assert done.stdout, done.stderr
    entries, commands = (item["rows"] for item in json.loads(done.stdout)["sections"][0]["items"])
    return [entry | command for entry, command in zip(entries, commands, strict=True)]


def run(strata, text: str, *more: str):
    return strata.run(
        "run", write(strata, text), "--store", str(strata.store), "--format", "json", *more
    )


def stored(strata) -> list[dict]:
    done = strata.run("list", "runs", "--format", "json", "--store", str(strata.store))
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = '--help'", "begins with -"),
        (f"model = '{MODEL}'\nlevels = ['one', '--dry-run']", "begins with -"),
        ("a" + ".a" * 200_000 + " = 1", "dots in one line"),
        ("[" + ".".join('"="' for _ in range(200_000)) + "]\nx = 1", "dots in one line"),
        (
            "\n".join(
                f"{name} = {[f'{n}{end}' for n in range(1, 3000)]}"
                for name, end in (("timeout", "s"), ("budget", "s"), ("name", "x"))
            ),
            "combinations",
        ),
    ],
    ids=["an option", "an option in a list", "deep key", "deep header", "many"],
)
def test_what_no_suite_has_is_refused_with_its_line(strata, text, words):
    written = write(strata, f"[[entry]]\nverb = 'compare'\n{text}\n")
    done = strata.run("run", written, "--dry-run", timeout=30)
    assert done.returncode == 2 and words in done.stderr, done
    assert re.match(r"error: .*suite\.toml:\d+: ", done.stderr), done.stderr


def test_every_entry_is_run_and_found_again_below_its_suite(strata):
    strata.level("one", rank=1)
    done = run(strata, QUICK + "[[entry]]\n[[entry]]\norder-seed = [3, 4]\n")
    assert done.returncode == 0, done.stderr
    rows = entries_of(done)
    assert [row["state"] for row in rows] == ["done"] * 3 and "--order-seed 4" in rows[2]["command"]
    assert "entry 2 of 3" in done.stderr and "left" in done.stderr
    assert all(
        row["took"]["value"] > 0
        and row["predicted"]["value"] > 0
        and row["report"].endswith(".html")
        for row in rows
    ), rows
    suite = json.loads(done.stdout)
    assert suite["summary"].startswith("3 entries: 3 done; ") and "predicted" in suite["summary"]
    run_id = next(fact["value"] for fact in suite["facts"] if fact["name"] == "run")
    shown = strata.run("show", run_id, "--format", "json", "--store", str(strata.store))
    assert json.loads(shown.stdout) == suite
    one = json.loads(
        strata.run("show", rows[2]["run"], "--format", "json", "--store", str(strata.store)).stdout
    )
    assert one["run"]["command"] == rows[2]["command"] and "--store" in rows[2]["command"]
    page = strata.folder / "suite.html"
    assert (
        strata.run("report", run_id, "--store", str(strata.store), "-o", str(page)).returncode == 0
    )
    assert "A suite" in page.read_text(encoding="utf-8")


def test_an_entry_that_fails_does_not_keep_the_others_from_running(strata):
    strata.level("one", rank=1)
    strata.level(
        "broken",
        rank=2,
        ops={"load": {"error": {"code": "failed", "what": "no such luck", "hint": ""}}},
    )
    done = run(
        strata,
        QUICK + '[[entry]]\nlevels = "broken"\n[[entry]]\nmodel = "absent.py:build"\n[[entry]]\n',
    )
    assert done.returncode == 2 and "suite.toml" in done.stderr, (
        "a network that is not there is found before anything runs"
    )
    assert not strata.store.exists()
    (strata.folder / "raises.py").write_text(
        "def build():\n    raise RuntimeError('not today')\n", encoding="utf-8"
    )
    done = run(
        strata,
        QUICK + '[[entry]]\nlevels = "broken"\n[[entry]]\nmodel = "raises.py:build"\n[[entry]]\n',
    )
    rows = entries_of(done)
    assert done.returncode == 1 and [row["state"] for row in rows] == [
        "failed",
        "failed",
        "done",
    ], done.stderr
    assert rows[0]["run"] and not rows[1]["run"] and "not today" in rows[1]["result"]


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_a_device_that_is_not_here_is_recorded_and_ends_nothing(strata):
    strata.level("one", rank=1, json_fields={"devices": ["cpu", "cuda"]})
    done = run(strata, QUICK + '[[entry]]\ndevice = ["cuda", "cpu"]\n')
    rows = entries_of(done)
    assert done.returncode == 0 and [row["state"] for row in rows] == ["unavailable", "done"], (
        done.stderr
    )
    assert "no device cuda: " in rows[0]["result"]
    done = run(strata, QUICK + '[[entry]]\ndevice = "cuda"\n')
    assert done.returncode == 3, "nothing could run"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            QUICK + "[[entry]]\nrestart = 1\n",
            [
                "suite.toml:11: unknown key 'restart' of compare (did you mean 'restarts'?); allowed: ",
                "batch",
            ],
        ),
        (
            QUICK + "restart = 1\n[[entry]]\n",
            ["suite.toml:10: unknown key 'restart' of compare (did you mean 'restarts'?)"],
        ),
        (
            QUICK + 'epoch = 1\n[[entry]]\nverb = "train"\n[[entry]]\n',
            [
                "unknown key 'epoch' of train, compare (did you mean 'epochs'?)",
                "strata train --help",
            ],
        ),
        (QUICK + "epochs = 1\n[[entry]]\n", ["suite.toml:10: unknown key 'epochs' of compare"]),
        (
            QUICK + '[[entry]]\nverb = "trian"\n',
            [
                "suite.toml:10: unknown verb 'trian' (did you mean 'train'?); allowed: compare, sweep, train"
            ],
        ),
        (QUICK + "[[entry]]\nrestarts = 0\n", ["suite.toml:10: --restarts 0: allowed: 1 to 100"]),
        (QUICK + "[[entry]]\ntuned = 3\n", ["suite.toml:11: tuned is true or false"]),
        (QUICK + "[[entry]]\nrestarts = true\n", ["suite.toml:11: restarts takes a value"]),
        (QUICK + "[[entry]]\nrestarts = []\n", ["suite.toml:11: restarts is an empty list"]),
        (QUICK + "[[entry]]\nrestarts = [1, 1]\n", ["suite.toml:11: restarts: 1 is given twice"]),
        (
            QUICK + '[[entry]]\nstore = "x.db"\n',
            ["suite.toml:11: store is not an option of entries"],
        ),
        (
            '\n[defaults]\nverb = "train"\n[[entry]]\ndata-dir = "x"\n',
            ["suite.toml:6: data-dir is not an option of entries"],
        ),
        (QUICK + "[[entry]]\nrestarts = \n", ["suite.toml:11: "]),
        (QUICK, ["a suite has entries"]),
        ("[[entry]]\nmodel = 'x'\n", ["suite.toml:2: an entry without a verb"]),
        (
            "[[enrty]]\n",
            [
                "suite.toml:2: unknown key 'enrty' (did you mean 'entry'?); allowed: title, about, source, defaults, entry"
            ],
        ),
    ],
)
def test_what_no_suite_may_say_is_refused_with_its_line(strata, text, words):
    strata.level("one")
    done = strata.run("run", write(strata, text), "--store", str(strata.store))
    assert done.returncode == 2 and "  try: " in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not strata.store.exists()


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: str(path.relative_to(ROOT / "suites")))
def test_every_suite_of_strata_asks_what_its_verbs_take(strata, suite):
    # entries are read in order, so that what is refused is the one that was added
    (strata.folder / "suite.toml").write_text(
        suite.read_text(encoding="utf-8") + '\n[[entry]]\nverb = "nonsense"\n', encoding="utf-8"
    )
    done = strata.run("run", "suite.toml", "--store", str(strata.store))
    assert done.returncode == 2 and "unknown verb 'nonsense'" in done.stderr, done.stderr


def test_a_suite_is_found_by_its_name(strata):
    done = strata.run("run", "paper-2020/minst")
    assert (
        done.returncode == 2
        and "did you mean 'paper-2020/mnist'?" in done.stderr
        and "digits" in done.stderr
    )


@pytest.mark.parametrize("command", ["resume", "run"])
def test_a_suite_that_was_killed_goes_on_where_it_stopped(strata, command):
    strata.level("one", rank=1)
    name = write(strata, QUICK + '[[entry]]\n[[entry]]\nrestarts = 3\nbudget = "9s"\n')
    words = ["--store", str(strata.store)]
    process = strata.start("run", name, *words)
    for line in process.stderr:
        if line.startswith("restart 2 of 3"):
            break
    process.kill()
    process.communicate()
    first = [one for one in stored(strata) if one["cases"]]
    assert len(first) == 2
    if command == "run":
        done = strata.run("run", name, "--resume", "--format", "json", *words)
    else:
        suite = next(one for one in stored(strata) if " run " in one["command"])
        done = strata.run("resume", suite["run"], "--format", "json", *words)
    rows = entries_of(done)
    assert done.returncode == 0 and [row["state"] for row in rows] == ["done", "done"], done.stderr
    assert {row["run"] for row in rows} == {one["run"] for one in first}, "no run was begun anew"
    assert "entry 1 of 2" not in done.stderr and "restart 1 of 3" not in done.stderr
    suites = [one for one in stored(strata) if " run " in one["command"]]
    assert [one["verdict"][0].startswith("2 entries: 2 done") for one in suites] == [True], suites
    again = strata.run("run", name, "--resume", "--format", "json", *words)
    assert (
        again.returncode == 0
        and "entry 1 of 2" not in again.stderr
        and "entry 2 of 2" not in again.stderr
    )


def test_a_suite_shows_which_level_ran_which_network_and_why_others_did_not(strata):
    strata.level("one", rank=1)
    lacking = {"code": "unsupported", "what": "no operation median", "hint": ""}
    strata.level("two", rank=2, ops={"load": {"error": lacking}})
    done = run(strata, QUICK.replace('["one"]', '["one", "two"]') + "[[entry]]\n")
    counts, states, reasons = (
        item["rows"] for item in json.loads(done.stdout)["sections"][1]["items"]
    )
    assert counts == [
        {"level": "one", "infer": "1 of 1"},
        {"level": "two", "infer": "0 of 1"},
    ], counts
    shown = [(row["network"], row["mode"], row["one"], row["two"]) for row in states]
    assert shown == [("tiny_mlp:build", "infer", "measured", "unsupported")], states
    assert "no operation median" in reasons[0]["reason"] and reasons[0]["level"] == "two", reasons


def test_a_part_of_a_suite_is_chosen_by_its_models_and_resumed_by_itself(strata):
    strata.level("one", rank=1)
    (strata.folder / "nets").mkdir()
    (strata.folder / "nets" / "small.py").write_text(NETWORK, encoding="utf-8")
    text = QUICK + '[[entry]]\n[[entry]]\nmodel = "{here}/nets/small.py:build"\n'
    refused = run(strata, text, "--model", "large")
    assert refused.returncode == 2 and "nets/small.py:build" in refused.stderr, refused.stderr
    part = run(strata, text, "--model", "small")
    assert ["nets/small.py:build" in row["command"] for row in entries_of(part)] == [True]
    whole = run(strata, text, "--resume")
    assert "a new one begins" in whole.stderr and len(entries_of(whole)) == 2
    again = run(strata, text, "--model", "small", "--resume")
    assert "entry 1 of 1" not in again.stderr and "begins" not in again.stderr


def test_a_suite_that_changed_is_begun_anew(strata):
    strata.level("one", rank=1)
    assert run(strata, QUICK + "[[entry]]\n").returncode == 0
    done = run(strata, QUICK + "# changed\n[[entry]]\n", "--resume")
    assert (
        done.returncode == 0 and "a new one begins" in done.stderr and "entry 1 of 1" in done.stderr
    )


def test_a_dry_run_prints_every_entry_and_runs_none(strata):
    strata.level("one", rank=1)
    name = write(strata, QUICK + "[[entry]]\norder-seed = [1, 2]\n")
    done = strata.run("run", name, "--dry-run", "--store", str(strata.store))
    assert (
        done.returncode == 0 and "2 entries: about " in done.stdout and "assumed" in done.stdout
    ), done.stderr
    plan = json.loads(
        strata.run(
            "run", name, "--dry-run", "--format", "json", "--store", str(strata.store)
        ).stdout
    )
    assert [one["levels"] for one in plan["entries"]] == ["one", "one"] and plan["predicted_s"] > 10
    assert not strata.store.exists()


@pytest.mark.parametrize("verb", ["compare", "sweep"])
def test_batches_and_sizes_from_lists_are_axes_of_one_entry(strata, verb):
    strata.level("one", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    name = write(
        strata,
        f'[[entry]]\nverb = "{verb}"\nmodel = "net.py:build"\nlevels = ["one"]\nbatch = [1, 2]\nsize = [8, 10]\n',
    )
    done = strata.run("run", name, "--dry-run", "--format", "json", "--store", str(strata.store))
    assert [one["amount"] for one in json.loads(done.stdout)["entries"]] == ["4 cases"], done.stderr


def test_a_suite_takes_an_option_under_its_other_spelling(strata):
    strata.level("one", rank=1)
    text = QUICK + """[[entry]]\nmode = "train"\noptimizer = ["sgd", "sgf"]\n"""
    done = strata.run("run", write(strata, text), "--store", str(strata.store))
    assert done.returncode == 2 and "--optimiser sgf" in done.stderr, done.stderr


def test_a_sweep_is_planned_to_end_after_its_budget(strata):
    strata.level("one", rank=1)
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    sweep = [
        "sweep",
        "net.py:build",
        "--levels",
        "one",
        "--batch",
        "1..4*2",
        "--size",
        "8,10",
        "--restarts",
        "1",
        "--dry-run",
        "--store",
        str(strata.store),
    ]

    def predicted_s(*more: str) -> float:
        return json.loads(strata.run(*sweep, "--format", "json", *more).stdout)["predicted_s"]

    assert predicted_s("--budget", "60m") == pytest.approx(3600)
    assert predicted_s("--budget", "24h", "--point-time", "10s") < 600, (
        "each of six points has its time"
    )
    assert predicted_s() > 6 * 120, "without a budget a point has the preset's time"
    assert "ends after its budget of 1 min" in strata.run(*sweep, "--budget", "60s").stdout
    name = write(
        strata,
        '[[entry]]\nverb = "sweep"\nmodel = "net.py:build"\nlevels = ["one"]\nbatch = "1..4*2"\nbudget = "60m"\n',
    )
    done = strata.run("run", name, "--dry-run", "--format", "json", "--store", str(strata.store))
    assert json.loads(done.stdout)["predicted_s"] == pytest.approx(3600)


@pytest.fixture
def learner(strata):
    strata.level("one", rank=1, json_fields={"modes": ["infer", "train"]})
    (strata.folder / "net.py").write_text(NETWORK, encoding="utf-8")
    return strata


def plan_of(strata, *more: str) -> dict:
    done = strata.run(
        "train",
        "net.py:build",
        "--dataset",
        "digits",
        "--levels",
        "one",
        "--batch",
        "32",
        "--dry-run",
        "--format",
        "json",
        "--store",
        str(strata.store),
        *more,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_plan_of_a_training_counts_steps_and_predicts_from_operations(learner):
    plan = plan_of(learner, "--epochs", "3", "--repeats", "2")
    assert (
        plan["epochs"],
        plan["repeats"],
        plan["train_images"],
        plan["test_images"],
        plan["steps_an_epoch"],
    ) == (3, 2, 1437, 360, 44)
    (level,) = plan["levels"]
    assert (
        level["level"] == "one"
        and level["step_s"] > 0
        and re.search(
            r"estimated: .*FLOP a step at \d+% of this machine's \d+ GFLOP/s", level["from"]
        )
    )
    assert (
        plan["predicted_s"] > level["predicted_s"] > 0
        and plan["disk_bytes"] > 0
        and plan["scaled"] is None
    )
    assert not learner.store.exists()


@pytest.mark.parametrize(
    ("scale", "left", "words"),
    [
        (
            "epochs=0.1,repeats=0.3,images=0.5",
            (10, 3, 719),
            "scaled: 10 of 100 epochs, 3 of 10 repeats, 719 of 1437 images",
        ),
        ("0.01", (100, 1, 144), "scaled: 100 of 100 epochs, 1 of 10 repeats, 144 of 1437 images"),
        ("repeats=0.5", (100, 5, 1437), "scaled: 100 of 100 epochs, 5 of 10 repeats"),
    ],
)
def test_a_scaled_training_says_what_is_left_of_it(learner, scale, left, words):
    plan = plan_of(learner, "--epochs", "100", "--repeats", "10", "--scale", scale)
    assert (plan["epochs"], plan["repeats"], plan["train_images"]) == left and plan[
        "scaled"
    ] == words


def test_what_takes_more_than_a_day_wants_to_be_agreed_to(learner):
    text = '[[entry]]\nverb = "train"\nmodel = "net.py:build"\ndataset = "digits"\nlevels = "one"\nepochs = 100000\nrepeats = 1000\n'
    name = write(learner, text)
    done = learner.run("run", name, "--store", str(learner.store))
    assert (
        done.returncode == 2
        and re.search(r"about \d+ days, more than a day", done.stderr)
        and "--scale" in done.stderr
        and "--yes" in done.stderr
    ), done.stderr
    assert not learner.store.exists()
    plan = learner.run("run", name, "--dry-run", "--scale", "1e-7", "--store", str(learner.store))
    assert (
        plan.returncode == 0 and "scaled: 1000 of 100000 epochs, 1 of 1000 repeats" in plan.stdout
    ), plan.stdout


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ("2", ["--scale 2: no share"]),
        ("epoch=0.1", ["did you mean 'epochs'"]),
        ("images=0", ["no share in 'images=0'"]),
    ],
)
def test_a_scale_that_is_none_is_refused(learner, scale, words):
    done = learner.run(
        "train",
        "net.py:build",
        "--dataset",
        "digits",
        "--scale",
        scale,
        "--store",
        str(learner.store),
    )
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert (
        learner.run("run", "digits", "--scale", scale, "--store", str(learner.store)).returncode
        == 2
    )
    assert not learner.store.exists()
