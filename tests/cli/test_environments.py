# SPDX-License-Identifier: Apache-2.0
"""`compare --env NAME=PATH`: levels that need PyTorch take part once in each environment, in one
run. The environments are the tests' interpreter under two names; in the one called new the fake
levels have scripts of their own where there are any (new.json)."""

from __future__ import annotations

import csv
import io
import json

import pytest
from conftest import FAKE, MODEL, Strata

IN_NEW = """#!/bin/sh
for word do
  shift
  case $word in */script.json) [ ! -e "${word%script.json}new.json" ] || word=${word%script.json}new.json ;; esac
  set -- "$@" "$word"
done
"""
FAST = {"median_ns": 500_000, "jitter": 0.01, "seed": 3, "restart": 0.0}


def interpreter(folder, python: str, script: str = "#!/bin/sh\n"):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").write_text(script + f'exec "{python}" "$@"\n')
    (folder / "bin/python").chmod(0o755)
    return folder / "bin/python"


def add_level(strata: Strata, name: str, rank: int, **fields) -> None:
    strata.level(
        name,
        rank=rank,
        json_fields={"environment": True, "start": ["{python}", str(FAKE), "{level}/script.json"]}
        | fields,
    )


def in_new(strata: Strata, name: str, **changes) -> None:
    script = json.loads((strata.levels / name / "script.json").read_text())
    (strata.levels / name / "new.json").write_text(json.dumps(script | changes))


def prepared(folder, cache) -> Strata:
    """Levels one and two, which need PyTorch, two twice as fast in new; plain, which does not."""
    strata = Strata(folder, cache)
    python = strata.environment["STRATA_PYTHON"]
    add_level(strata, "one", 1)
    add_level(strata, "two", 2, **{"from": "one", "changes": "something"})
    strata.level("plain", rank=3, json_fields={"from": "two", "changes": "nothing of PyTorch"})
    in_new(strata, "two", samples=FAST)
    strata.old = interpreter(strata.folder / "old env", python)
    strata.new = interpreter(strata.folder / "new", python, IN_NEW)
    return strata


def named(strata: Strata) -> tuple[str, ...]:
    return ("--env", f"old={strata.old.parent.parent}", "--env", f"new={strata.new}")


@pytest.fixture(scope="module")
def compared(tmp_path_factory, cache):
    strata = prepared(tmp_path_factory.mktemp("environments") / "place", cache)
    done, result = strata.compare(
        "one", "two", "plain", restarts=3, budget="2s", more=(*named(strata), "--name", "upgrade")
    )
    assert done.returncode == 0, done.stderr
    return strata, result


@pytest.fixture
def environments(tmp_path, cache):
    return prepared(tmp_path / "place with spaces", cache)


def name_of(row: dict) -> str:
    return row["level"] + (f"[{row['environment']}]" if row["environment"] else "")


def rows(result: dict) -> dict[str, dict]:
    return {name_of(row): row for row in result["cases"][0]["rows"]}


def test_a_level_that_needs_pytorch_is_measured_once_in_each_environment_and_others_once(compared):
    _, result = compared
    assert list(rows(result)) == ["one[old]", "one[new]", "two[old]", "two[new]", "plain"]
    assert {row["state"] for row in rows(result).values()} == {"measured"}
    assert {row["proof"]["verdict"] for row in rows(result).values()} == {"equal"}
    assert result["cases"][0]["reference_level"] == "one[old]"


def test_what_the_other_environment_costs_or_gains_is_said_level_by_level_first(compared):
    _, result = compared
    one, two = result["cases"][0]["across_environments"]
    assert (one["level"], one["from"], one["to"], two["level"], two["from"], two["to"]) == (
        "one",
        "old",
        "new",
        "two",
        "old",
        "new",
    )
    assert (
        two["ratio"]["verdict"] == "faster"
        and 1.9 < two["ratio"]["low"] <= two["ratio"]["value"] <= two["ratio"]["high"] < 2.1
    )
    assert one["ratio"]["verdict"] != "faster" and 0.95 < one["ratio"]["value"] < 1.05
    sentence = result["cases"][0]["headline"]["sentence"]
    assert (
        sentence.startswith("one is ")
        and " times as fast in new as in old" in sentence
        and "Move to two[new]: " in sentence
    )


def test_the_environments_are_stored_by_name_with_their_packages_and_the_report_says_where_it_was_captured(
    compared,
):
    strata, result = compared
    old, new = result["environments"]
    assert (old["name"], old["python"], new["name"], new["python"]) == (
        "old",
        str(strata.old),
        "new",
        str(strata.new),
    )
    assert old["torch"] and old["packages"]["torch"] == old["torch"] and "numpy" in new["packages"]
    shown = strata.run("show", "upgrade", "--store", str(strata.store)).stdout
    assert (
        "captured in old" in " ".join(shown.split()) and "two[new]" in shown and "two[old]" in shown
    )
    written = strata.run(
        "report", "upgrade", "--store", str(strata.store), "-o", str(strata.folder / "page.html")
    )
    assert written.returncode == 0, written.stderr
    text = (strata.folder / "page.html").read_text(encoding="utf-8")
    assert "The Python environment old" in text and "The Python environment new" in text


def test_edges_of_the_ledger_stay_within_an_environment(compared):
    _, result = compared
    edges = [(edge["from"], edge["to"]) for edge in result["cases"][0]["ledger"]["edges"]]
    assert edges == [("one[old]", "two[old]"), ("one[new]", "two[new]"), ("two[old]", "plain")]


def test_every_format_names_the_environment(compared):
    strata, _ = compared
    lines = list(
        csv.DictReader(
            io.StringIO(
                strata.run(
                    "show", "upgrade", "--store", str(strata.store), "--format", "csv"
                ).stdout
            )
        )
    )
    assert [line["environment"] for line in lines] == ["old", "new", "old", "new", ""]
    markdown = strata.run("show", "upgrade", "--store", str(strata.store), "--format", "md").stdout
    assert "two[new]" in markdown.replace("\\", "")
    samples = list(
        csv.DictReader(
            io.StringIO(strata.run("export-data", "upgrade", "--store", str(strata.store)).stdout)
        )
    )
    assert {(line["level"], line["environment"]) for line in samples} == {
        ("one", "old"),
        ("one", "new"),
        ("two", "old"),
        ("two", "new"),
        ("plain", ""),
    }
    blocks = json.loads(
        strata.run(
            "export-data", "upgrade", "--store", str(strata.store), "--format", "json"
        ).stdout
    )["blocks"]
    assert {(block["level"], block["environment"]) for block in blocks} == {
        ("one", "old"),
        ("one", "new"),
        ("two", "old"),
        ("two", "new"),
        ("plain", None),
    }


def test_a_diff_of_two_runs_compares_a_level_with_itself_in_the_same_environment(compared):
    strata, _ = compared
    again, _ = strata.compare("two", more=(*named(strata), "--name", "again"))
    assert again.returncode == 0, again.stderr
    difference = json.loads(
        strata.run(
            "diff", "again", "upgrade", "--store", str(strata.store), "--format", "json"
        ).stdout
    )
    assert [name_of(level) for level in difference["levels"]] == ["two[old]", "two[new]"]
    assert " in old, " in difference["before"]["torch"] and difference["notes"] == []
    assert [
        0.8 < level["ratio"]["value"] < 1.25 for level in difference["levels"] if level["ratio"]
    ] in ([], [True, True])


def test_the_command_that_repeats_a_row_names_all_environments(compared):
    strata, result = compared
    repeat = rows(result)["two[new]"]["repeat"]
    assert (
        "--levels eager,two" in repeat
        and f"--env 'old={strata.old}'" in repeat
        and f"--env new={strata.new}" in repeat
        and "--python" not in repeat
    )


def test_resume_wants_the_same_environments(compared):
    strata, _ = compared
    store = ("--store", str(strata.store))
    refused = strata.run("resume", "upgrade", *store)
    assert refused.returncode == 2 and f"--env new={strata.new}" in refused.stderr
    other = strata.run(
        "resume", "upgrade", *store, "--env", f"old={strata.new}", "--env", f"new={strata.old}"
    )
    assert other.returncode == 2
    done = strata.run("resume", "upgrade", *store, *named(strata))
    assert done.returncode == 0 and "measured already" in done.stderr, done.stderr


def test_a_dry_run_lists_participants(environments):
    done = environments.run(
        *environments.arguments("one", "plain"),
        *named(environments),
        "--dry-run",
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["points"][0]["levels"] == ["one[old]", "one[new]", "plain"]


def test_one_environment_has_levels_without_its_name(environments):
    done = environments.run(
        *environments.arguments("one"),
        "--env",
        f"old={environments.old}",
        "--dry-run",
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["points"][0]["levels"] == ["one"]


def test_the_reference_is_in_the_environment_that_is_named_or_the_first(environments):
    dry = (*environments.arguments("one"), *named(environments), "--dry-run")
    assert environments.run(*dry, "--reference", "one[new]").returncode == 0
    assert environments.run(*dry, "--reference", "one").returncode == 0
    refused = environments.run(*dry, "--reference", "one[newer]")
    assert refused.returncode == 2 and "one[old]" in refused.stderr and "one[new]" in refused.stderr


def test_a_level_that_cannot_run_in_one_environment_takes_nothing_from_the_other(environments):
    in_new(
        environments,
        "one",
        ops={"load": {"error": {"code": "unsupported", "what": "too old", "hint": ""}}},
    )
    done, result = environments.compare("one", more=named(environments))
    assert done.returncode == 3, done.stderr
    assert rows(result)["one[old]"]["state"] == "measured"
    assert rows(result)["one[new]"]["state"] == "unsupported"
    assert result["cases"][0]["across_environments"] == []


@pytest.mark.parametrize(
    "words, says",
    [
        (["--env", "old=OLD", "--python", "OLD"], "exclude each other"),
        (["--env", "old=OLD", "--env", "old=NEW"], "given twice"),
        (["--env", "old=OLD", "--env", "new=OLD"], "the same interpreter"),
        (["--env", "old=OLD", "--env", "new=FOLDER"], "the same interpreter"),
        (["--env", "=OLD"], "the name is ''"),
        (["--env", "Old=OLD"], "the name is 'Old'"),
        (["--env", "OLD"], "the name is missing"),
        (["--env", "old="], "the path is missing"),
        (["--env", "old=/no/such/python"], "there is no such file"),
        (["--env", "old=MODEL"], "it cannot be run"),
        (["--env", "old=/bin/false"], "/bin/false does not work"),
        (["--env", "old=/bin/true"], "/bin/true does not work"),
    ],
)
def test_wrong_environments_are_refused_before_anything_runs(environments, words, says):
    stands_for = {
        "OLD": str(environments.old),
        "NEW": str(environments.new),
        "FOLDER": str(environments.old.parent.parent),
        "MODEL": MODEL.removesuffix(":build"),
    }
    for short, long in stands_for.items():
        words = [word.replace(short, long) if word.endswith(short) else word for word in words]
    done = environments.run(*environments.arguments("one"), *words)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not environments.store.exists()
