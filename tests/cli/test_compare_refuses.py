# SPDX-License-Identifier: Apache-2.0
"""`strata compare` refuses bad usage and stores that are none, before anything runs."""

from __future__ import annotations

import sqlite3

import pytest
from conftest import MODEL
from made_store import schema


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
        connection.executescript(schema() + "PRAGMA user_version=999;")
    done = strata.run("list", "runs", "--store", str(strata.store))
    assert done.returncode == 3 and "999" in done.stderr
