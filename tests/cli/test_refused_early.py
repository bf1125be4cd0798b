# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a question is told by `--dry-run` as by the run, and before PyTorch is loaded
where the words alone decide it."""

from __future__ import annotations

import pytest
from conftest import MODEL

LOADING = "loading PyTorch"
WORDS = ["compare", "--levels", "one", "--threads", "1"]
TRAIN = ["train", "mnist_convnet", "--levels", "learns", "--threads", "1"]
DIGITS = [*TRAIN, "--dataset", "digits"]


@pytest.fixture
def place(strata):
    """Beside a level for each verb: what is no store, no data set and no network."""
    strata.level("one", rank=1)
    strata.level("learns", rank=2, json_fields={"modes": ["train"]})
    (strata.folder / "folder").mkdir()
    (strata.folder / "notes.txt").write_text("a page of notes\n" * 20, encoding="utf-8")
    (strata.folder / "bad.safetensors").write_bytes(b"not")
    with (strata.folder / "sparse.pt2").open("wb") as file:
        file.truncate(300 << 30)
    return strata


def refused_by_both(place, words: list[str], code: int) -> str:
    """What a run and a plan of it both say."""
    errors = set()
    for more in (["--dry-run"], []):
        done = place.run(*words, *more)
        assert done.returncode == code and not done.stdout, (more, done.stdout, done.stderr)
        error = done.stderr[done.stderr.index("error: ") :]
        assert "  try: " in error, error
        errors.add(error)
        if LOADING in done.stderr:
            errors.add(LOADING)
        assert not more or not (place.folder / "data" / "strata" / "strata.db").exists()
    assert len(errors - {LOADING}) == 1, errors
    return "\n".join(sorted(errors))


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        ([*WORDS, "resnet5"], "no model is called 'resnet5'", 2),
        ([*WORDS, MODEL, "--store", "folder"], "no regular file but a folder", 2),
        ([*WORDS, MODEL, "--store", "notes.txt"], "a file of text, no store", 2),
        ([*WORDS, MODEL, "--store", "notes.txt/s.db"], "notes.txt cannot be written", 2),
        ([*WORDS, MODEL, "--ci-width", "0.01%"], "8 restarts can reach", 2),
        ([*WORDS, "sparse.pt2"], "sparse.pt2 has 322122547200 bytes", 2),
        ([*WORDS, MODEL, "--mode", "train"], "one: no mode train", 3),
        ([*WORDS, MODEL, "--weights", "sparse.pt2"], "sparse.pt2 has 322122547200 bytes", 2),
        (["sweep", *WORDS[1:], MODEL, "--store", "notes.txt"], "a file of text, no store", 2),
        (["sweep", *WORDS[1:], MODEL, "--find-batch", "foo"], "--find-batch foo", 2),
        ([*DIGITS, "--init", "foo"], "--init foo: no such scheme", 2),
        ([*DIGITS, "--init", "torch;normal:-1"], "-1 is no standard deviation", 2),
        ([*DIGITS, "--init", "bad.safetensors"], "bad.safetensors", 2),
        ([*DIGITS, "--store", "notes.txt"], "a file of text, no store", 2),
        ([*TRAIN, "--dataset", "nosuch"], "nosuch: unknown", 2),
        ([*TRAIN, "--dataset", "./folder"], "neither train.txt nor a folder train", 2),
        (
            ["train", "mnist_convnet", "--dataset", "digits", "--levels", "one"],
            "one: no mode train",
            3,
        ),
    ],
)
def test_what_the_words_decide_is_told_by_a_plan_too_and_without_pytorch(place, words, says, code):
    error = refused_by_both(place, words, code)
    assert says in error and LOADING not in error, error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*WORDS, MODEL, "--input", "1x3"], "the model does not run on its inputs"),
        ([*WORDS, MODEL, "--size", "64"], "has no input that is an image"),
        ([*WORDS, MODEL, "--weights", "bad.safetensors"], "not a readable safetensors file"),
        (["sweep", *WORDS[1:], MODEL, "--input", "1x3"], "the model does not run on its inputs"),
        ([*DIGITS, "--size", "7"], "the model does not run on its inputs"),
    ],
)
def test_what_only_the_network_decides_is_told_by_a_plan_too(place, words, says):
    assert says in refused_by_both(place, words, 2)


def test_a_plan_of_a_training_refuses_a_network_that_takes_no_image(place):
    words = ["train", MODEL, "--dataset", "digits", "--levels", "learns", "--threads", "1"]
    assert "takes no image" in refused_by_both(place, words, 2)


def test_a_plan_of_a_set_that_is_not_here_says_what_it_is_made_from(place):
    done = place.run(*TRAIN, "--dataset", "mnist", "--dry-run")
    assert done.returncode == 0 and "as many images as published" in done.stdout, done.stderr
    done = place.run(*TRAIN, "--dataset", "mnist")
    assert done.returncode == 3 and LOADING not in done.stderr, done.stderr
