# SPDX-License-Identifier: Apache-2.0
"""`strata cache list|clear`: what lies in the cache, and that nothing else is ever removed."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest


@pytest.fixture
def filled(strata, tmp_path) -> Path:
    """A cache of two captures and an artefact; one capture was last used ten days ago."""
    cache = tmp_path / "own cache"
    for number, days in ((1, 10), (2, 0)):
        bundle = cache / "bundles" / f"361bb32b84e492df24d1efa8.{number:016x}"
        bundle.mkdir(parents=True, mode=0o700)
        (bundle / "bundle.json").write_text(json.dumps({"id": f"net/infer/b{number}"}))
        (bundle / "weights.safetensors").write_bytes(b"x" * 2_000_000)
        used = time.time() - days * 86400
        os.utime(bundle / "bundle.json", (used, used))
    artefact = cache / "artefacts" / "compile-freezing-67ff2877549ce2884c42d68b-9df9955d4deb-23b6a200"
    artefact.mkdir(parents=True, mode=0o700)
    (artefact / "network.so").write_bytes(b"x" * 1_000_000)
    for folder in (cache, cache / "bundles", cache / "artefacts"):
        folder.chmod(0o700)
    strata.environment["STRATA_CACHE"] = str(cache)
    return cache


def test_lists_captures_by_case_and_artefacts_by_level_with_their_size(strata, filled):
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert {(row["kind"], row["what"], row["size"]) for row in rows} == {
        ("capture", "net/infer/b1", "2.00 MB"),
        ("capture", "net/infer/b2", "2.00 MB"),
        ("artefact", "compile-freezing", "1.00 MB"),
    }
    assert rows[-1]["what"] == "net/infer/b1", "the last used stands first"
    assert "3 folders" in strata.run("cache", "list").stderr


def test_clears_what_was_not_used_for_so_long_or_everything_and_nothing_else(strata, filled, tmp_path):
    (filled / "headers").mkdir()
    (filled / "bundles" / "notes.txt").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (filled / "artefacts" / "link").symlink_to(tmp_path / "elsewhere")
    done = strata.run("cache", "clear", "--older-than", "3")
    assert done.returncode == 0 and "removed 1 folders" in done.stdout and "2.00 MB" in done.stdout
    assert len(list((filled / "bundles").iterdir())) == 2
    assert strata.run("cache", "clear").returncode == 0
    assert [path.name for path in (filled / "bundles").iterdir()] == ["notes.txt"]
    assert (filled / "headers").is_dir() and (tmp_path / "elsewhere").is_dir()
    assert json.loads(strata.run("cache", "list", "--format", "json").stdout) == []


def test_clears_nothing_while_a_run_measures(strata, filled):
    mark = Path(strata.environment["XDG_DATA_HOME"]) / "strata" / "measuring"
    mark.parent.mkdir(parents=True, mode=0o700)
    with mark.open("w") as held:
        held.write("1234\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = strata.run("cache", "clear")
    assert done.returncode == 1 and "pid 1234" in done.stderr
    assert len(list((filled / "bundles").iterdir())) == 2


def test_a_cache_that_is_not_there_yet_is_empty(strata, tmp_path):
    strata.environment["STRATA_CACHE"] = str(tmp_path / "none")
    assert json.loads(strata.run("cache", "list", "--format", "json").stdout) == []
    assert strata.run("cache", "clear").returncode == 0 and not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [("cache",), ("cache", "clear", "--older-than", "0"), ("cache", "clear", "--older-than", "x")])
def test_wrong_usage_is_told(strata, arguments):
    assert strata.run(*arguments).returncode == 2
