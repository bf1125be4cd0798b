# SPDX-License-Identifier: Apache-2.0
"""Options: what is wrong is refused before anything runs, with what is allowed; what helps says
defaults, values, codes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys

import pytest
from conftest import MODEL, ROOT

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage

VERBS = [
    ["compare"],
    ["sweep"],
    ["train"],
    ["run"],
    ["list", "levels"],
    ["list", "models"],
    ["list", "environments"],
    ["list", "runs"],
    ["show"],
    ["report"],
    ["export-data"],
    ["export"],
    ["graph"],
    ["generate"],
    ["pack"],
    ["level", "new"],
    ["level", "check"],
    ["doctor"],
    ["cache", "list"],
    ["cache", "prune"],
    ["cache", "limit"],
    ["resume"],
    ["status"],
    ["diff"],
    ["data", "list"],
    ["data", "info"],
    ["data", "verify"],
    ["data", "fetch"],
    ["data", "show"],
    ["runs", "list"],
    ["runs", "delete"],
    ["runs", "export"],
    ["runs", "import"],
    ["runs", "merge"],
    ["runs", "refresh"],
]
PROCESSORS = len(os.sched_getaffinity(0))


def refused(done, *words: str) -> None:
    assert done.returncode == 2 and not done.stdout, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and "  try: " in done.stderr, done.stderr


def test_a_flag_can_be_said_to_be_off(strata):
    strata.level("one")
    done = strata.run(
        "compare",
        MODEL,
        "--deep=false",
        "--mode",
        "train",
        "--dry-run",
        "--aa=true",
        "--format",
        "json",
    )
    assert "--deep" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["points"][0]["mode"] == "train"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--levels", ""], ["--levels: the value is empty", "leave the option out"]),
        (["--levels="], ["--levels: the value is empty"]),
        (["--levels", "one,one"], ["--levels one,one: one is given twice"]),
        (["--levels", "one,"], ["--levels one,: an entry is empty"]),
        (["--batch", "1,1"], ["--batch 1,1: 1 is given twice"]),
        (["--weights", ""], ["--weights: the value is empty"]),
        (["--name", ""], ["--name: the value is empty"]),
        (["--name=-x"], ["--name -x: allowed: a text that is not empty and does not begin with -"]),
        (["--threads", "0"], ["--threads 0: allowed: 1 to "]),
        (["--threads", "-2"], ["--threads -2: allowed: 1 to "]),
        (["--threads", "two"], ["--threads two: allowed: 1 to "]),
        (
            ["--threads", str(4 * PROCESSORS + 1)],
            [f"allowed: 1 to {4 * PROCESSORS} (4 for each of the {PROCESSORS} processor"],
        ),
        (["--seed", "-1"], ["--seed -1: allowed: 0 or more"]),
        (["--order-seed", "-1"], ["--order-seed -1: allowed: 0 or more"]),
        (["--restarts", "0"], ["--restarts 0: allowed: 1 to 100"]),
        (["--restarts", "2.5"], ["--restarts 2.5: not a whole number; allowed: 1 to 100"]),
        (["--weight-sets", "1"], ["--weight-sets 1: allowed: 2 to 200"]),
        (["--memory-limit", "-1"], ["--memory-limit -1: allowed: a number above 0"]),
        (["--timeout", "-5s"], ["--timeout -5s: write a time"]),
        (["--timeout", "0"], ["--timeout 0: write a time"]),
        (["--budget", "soon"], ["--budget soon: write a time as 60s or 2m"]),
        (["--budget", "nan"], ["--budget nan: write a time as 60s or 2m"]),
        (["--timeout", "inf"], ["--timeout inf: write a time"]),
        (["--ci-width", "nan%"], ["--ci-width nan%: allowed: a share as 1%"]),
        (["--memory-limit", "nan"], ["--memory-limit nan: allowed: a number above 0"]),
        (["--max-expansion", "0"], ["--max-expansion 0: allowed: a number above 0"]),
        (["--max-megapixels", "5"], ["--max-megapixels means nothing without --input-from"]),
        (["--dynamic", "batch=2..8", "--deep"], ["--deep", "--dynamic", "exclude each other"]),
        (["--device", "gpu"], ["--device gpu: unknown", "allowed: cpu, cuda"]),
        (
            ["--mode", "train", "--loss", "hinge"],
            ["--loss hinge: unknown", "allowed: cross_entropy, nll, bce"],
        ),
        (["--threads", "1", "--threads", "2"], ["--threads is given 2 times"]),
        (
            ["--threads"],
            ["--threads: the value is missing; what follows is --store", "try: --threads N"],
        ),
    ],
)
def test_compare_refuses_what_it_used_to_ignore_or_leave_to_the_capture(strata, arguments, words):
    strata.level("one")
    refused(strata.run("compare", MODEL, *arguments, "--store", str(strata.store)), *words)
    assert not strata.store.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "runs", "--limit", "-1"], ["--limit -1: allowed: 0 to "]),
        (["list", "levels", "--python", "/usr/bin/python3"], ["unknown argument '--python'"]),
        (["list"], ["list needs a verb: levels, models, environments, runs"]),
        (["graph", MODEL, "--target", "tpu"], ["--target tpu: unknown; allowed: onednn, cuda"]),
        (
            ["graph", MODEL, "--target", "cuda"],
            ["--target means nothing without --dump-after", "leave --target out"],
        ),
        (["graph", MODEL, "--block", "8"], ["--block means nothing without --dump-after"]),
        (["graph", MODEL, "--threads", "0"], ["--threads 0: allowed: 1 to "]),
        (
            ["show", "last", "--certificate", "--format", "json"],
            ["--certificate means nothing with --format json"],
        ),
        (
            ["show", "last", "--ledger", "--format", "csv"],
            ["--ledger means nothing with --format csv"],
        ),
        (
            ["show", "last", "--level", "eager"],
            ["--level means nothing without --certificate or --operations"],
        ),
        (["show", "last", "--ledger", "--certificate"], ["exclude each other"]),
        (["show", ""], ["the value is empty"]),
        (["report", "--from-json", "x.json", "last"], ["--from-json", "exclude each other"]),
        (
            ["report", "--from-json", "x.json", "--store", "x.db"],
            ["--from-json", "exclude each other"],
        ),
        (
            ["export-data", "last", "--format", "md"],
            ["--format md: unknown", "allowed: csv, json, trace"],
        ),
        (
            ["export", MODEL, "--level", "aoti", "-o", "x", "--threads", "0"],
            ["--threads 0: allowed: 1 to "],
        ),
        (["generate", MODEL, "-o", "x", "--loss", "nll"], ["--loss means nothing without --train"]),
        (["doctor", "--store", "x.db"], ["--store means nothing without --calibrate"]),
        (["doctor", "--calibrate", "--format", "json"], ["exclude each other"]),
        (["level", "check", "x", "--timeout", "-1"], ["--timeout -1: write a time"]),
        (["cache", "prune", "--older-than", "0"], ["--older-than 0: allowed: a number above 0"]),
        (["cache", "list", "--format", "xml"], ["--format xml", "text", "md"]),
    ],
)
def test_every_verb_refuses_options_that_mean_nothing_there(strata, arguments, words):
    refused(strata.run(*arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["list", "runs", "--limt", "3"], "./strata list runs --help"),
        (["level", "check"], "./strata level check --help"),
        (["level", "new"], "./strata level new --help"),
        (["compare", "--nothing"], "./strata compare --help"),
        (["nothing"], "./strata --help"),
    ],
)
def test_the_command_that_a_hint_names_is_there(strata, arguments, command):
    done = strata.run(*arguments)
    assert done.returncode == 2 and f"try: {command}" in done.stderr, done.stderr
    assert strata.run(*command.split()[1:]).returncode == 0


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_names_values_defaults_and_exit_codes(strata, verb):
    text = strata.run(*verb, "--help").stdout
    assert "Exit codes: 0 " in text and not re.search(
        r"\b(TEXT|INT|UINT|FLOAT|REQUIRED)\b", text
    ), text
    assert max(map(len, text.splitlines())) <= 100, text


def test_help_says_what_a_preset_is_and_what_is_taken_by_default(strata):
    text = " ".join(strata.run("compare", "--help").stdout.split())
    assert (
        "quick: 4 restarts, 20 s measured a case" in text and "thorough: 12 restarts, 360 s" in text
    )
    for option, default in [
        ("--preset", "standard"),
        ("--format", "text"),
        ("--seed", "0"),
        ("--device", "cpu"),
        ("--mode", "infer"),
        ("--precision", "fp32"),
        ("--weight-sets", "2"),
    ]:
        about = text.split(f" {option} ", 1)[1].split(" --", 1)[0]
        assert f"(default: {default})" in about, about
    assert "level@variant" in text and "not with --dynamic" in text and "not with --deep" in text


def test_the_optimiser_has_its_other_spelling(strata):
    strata.level("one")
    for option in ("--optimiser", "--optimizer"):
        done = strata.run("compare", MODEL, "--levels", "one", "--mode", "train", option, "sgf")
        assert done.returncode == 2 and "--optimiser sgf" in done.stderr, done.stderr
    twice = ["--optimiser", "sgd", "--optimizer", "adam"]
    done = strata.run("compare", MODEL, "--levels", "one", "--mode", "train", *twice)
    assert done.returncode == 2 and "--optimiser is given 2 times" in done.stderr, done.stderr


def test_help_all_has_the_options_of_every_verb(strata):
    done = strata.run("--help-all")
    assert done.returncode == 0 and "--order-seed" in done.stdout and "--dump-after" in done.stdout
    assert "--order-seed" in strata.run("compare", "--help-all").stdout


def test_lists_as_json_hold_numbers_and_lists_and_keys_without_spaces(strata):
    strata.level("one", rank=7)
    rows = json.loads(strata.run("list", "levels", "--format", "json").stdout)
    one = next(row for row in rows if row["level"] == "one")
    assert one["rank"] == 7 and one["devices"] == ["cpu"] and one["modes"] == ["infer"]
    assert one["what_it_is"] == "fake one"
    assert not [key for row in rows for key in row if " " in key]
    text = strata.run("list", "levels").stdout.splitlines()
    assert text[0].split()[-3:] == ["what", "it", "is"]
    table = list(csv.reader(io.StringIO(strata.run("list", "levels", "--format", "csv").stdout)))
    assert "what_it_is" in table[0] and all(len(row) == len(table[0]) for row in table)


def test_a_level_is_not_made_under_a_name_that_is_taken(strata, tmp_path):
    for name in ("eager", "static"):
        done = strata.run("level", "new", name, "--language", "python", "--into", str(tmp_path))
        assert done.returncode == 2 and f"there is a level {name} already" in done.stderr, (
            done.stderr
        )
    assert not (tmp_path / "eager").exists()


def test_no_bundle_is_said_without_a_command_that_nobody_has(strata):
    done = strata.run("level", "check", "static", "--bundle", "/nowhere")
    assert (
        done.returncode == 2
        and "leave --bundle out" in done.stderr
        and "python -m" not in done.stderr
    )


def test_a_file_of_an_unknown_kind_is_told_which_there_are(strata):
    strata.level("one")
    (strata.folder / "net.bin").write_bytes(b"x")
    done = strata.run(
        "compare",
        str(strata.folder / "net.bin"),
        "--levels",
        "one",
        "--threads",
        "1",
        "--store",
        str(strata.store),
    )
    assert done.returncode == 2, done.stderr
    for word in ("net.bin", ".pt2", ".onnx", "file.py:build"):
        assert word in done.stderr, done.stderr


def hostile_run(strata) -> None:
    """A stored run whose names hold escape sequences and formulas, as a foreign store could."""
    strata.level("one")
    done = strata.run(*strata.arguments("one"))
    assert done.returncode == 0, done.stderr
    store_damage.rewrite(
        strata.store, "UPDATE level_rows SET level = ?", ("=\x1b[31m\x1b]0;hit\x07cmd",)
    )


def controls(text: str) -> set[str]:
    return {one for one in text if (ord(one) < 32 and one not in "\n\t") or 0x7F <= ord(one) < 0xA0}


def test_nothing_that_is_printed_moves_a_terminal_and_no_cell_is_a_formula(strata):
    hostile_run(strata)
    store = ("--store", str(strata.store))
    for arguments in (
        ["show", "last", "--format", "csv"],
        ["export-data", "last"],
        ["show", "last"],
        ["show", "last", "--format", "md"],
        ["show", "last", "--format", "json"],
        ["show", "last", "--certificate", "--level", "\x1b[1m"],
        ["list", "runs", "--format", "csv"],
    ):
        done = strata.run(*arguments, *store)
        assert done.returncode == 0 and not controls(done.stdout + done.stderr), (
            arguments,
            done.stdout,
            done.stderr,
        )
    samples = list(csv.DictReader(io.StringIO(strata.run("export-data", "last", *store).stdout)))
    assert samples and all(row["level"].startswith("'=") for row in samples)
    assert all(int(row["wall_ns"]) > 0 for row in samples)
    assert (
        json.loads(strata.run("show", "last", "--format", "json", *store).stdout)["cases"][0][
            "rows"
        ][0]["level"][1]
        == "\x1b"
    )
    page = strata.run("report", "last", "-o", "a\x1b[31mb.html", *store)
    assert page.returncode == 0 and page.stdout == "a?[31mb.html\n"
    assert (strata.folder / "a\x1b[31mb.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "\x1b[31m"],
        ["compare", "\x1b]0;hit\x07"],
        ["\x1b[2J"],
        ["list", "runs", "--\x9bX"],
        ["compare", "x", "--device", "\x1b[1mgpu"],
    ],
)
def test_an_error_moves_no_terminal(strata, arguments):
    done = strata.run(*arguments)
    assert done.returncode != 0 and done.stderr and not controls(done.stderr), done.stderr


def test_a_failed_level_is_repeated_as_it_was_run(strata):
    strata.level("right", rank=1)
    strata.level("wrong", rank=2, outputs={"scale": 1.01})
    _, result = strata.compare("right", "wrong", more=("--preset", "quick"))
    row = next(row for row in result["cases"][0]["rows"] if row["level"] == "wrong")
    for words in ("--preset quick", "--budget 1s", "--restarts 1", "--order-seed 7", "--threads 1"):
        assert words in row["repeat"], row["repeat"]


def test_a_level_that_cannot_run_makes_exit_3_where_it_was_named_and_0_in_the_default_set(
    strata, tmp_path
):
    root = tmp_path / "root"  # strata without levels of its own
    root.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("levels", ".git"):
            (root / entry.name).symlink_to(entry)
    (root / "levels").mkdir()
    strata.level("right", rank=1)
    strata.level("lacking", rank=2, json_fields={"start": ["/nowhere/program"]})
    words = strata.arguments("right", "lacking")
    named = strata.run(*words, STRATA_ROOT=str(root))
    assert named.returncode == 3, named.stderr
    at = words.index("--levels")
    default = strata.run(*words[:at], *words[at + 2 :], STRATA_ROOT=str(root))
    assert default.returncode == 0, default.stderr
    assert "lacking" in default.stdout
