# SPDX-License-Identifier: Apache-2.0
"""`strata cache list|prune|limit`: what lies in the cache, and that nothing else is ever
removed."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest
from running_program import wait_for_blocks


def captured(batch: int) -> str:
    """A bundle.json."""
    case = {
        "model": "net",
        "mode": "infer",
        "batch": batch,
        "inputs": [
            {
                "name": "x",
                "keyword": True,
                "dtype": "float32",
                "shape": [batch, 8],
                "low": None,
                "high": None,
            }
        ],
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "seed": 0,
    }
    return json.dumps({"bundle": 2, "model": {"name": "net"}, "case": case})


def name(batch: int) -> str:
    return f"net/infer/b{batch}/8/fp32/cpu/t1"


@pytest.fixture
def filled(strata, tmp_path) -> Path:
    """A cache of two captures and an artefact; one capture was last used ten days ago."""
    cache = tmp_path / "own cache"
    for number, days in ((1, 10), (2, 0)):
        bundle = cache / "bundles" / f"361bb32b84e492df24d1efa8.{number:016x}"
        bundle.mkdir(parents=True, mode=0o700)
        (bundle / "bundle.json").write_text(captured(number))
        (bundle / "weights.safetensors").write_bytes(b"x" * 2_000_000)
        used = time.time() - days * 86400
        os.utime(bundle / "bundle.json", (used, used))
    artefact = (
        cache / "artefacts" / "compile-freezing-67ff2877549ce2884c42d68b-9df9955d4deb-23b6a200"
    )
    artefact.mkdir(parents=True, mode=0o700)
    (artefact / "network.so").write_bytes(b"x" * 1_000_000)
    for folder in (cache, cache / "bundles", cache / "artefacts"):
        folder.chmod(0o700)
    strata.environment["STRATA_CACHE"] = str(cache)
    return cache


def test_lists_captures_by_case_and_artefacts_by_level_with_their_size(strata, filled):
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert {(row["kind"], row["what"], row["size"]) for row in rows} == {
        ("capture", name(1), "2.00 MB"),
        ("capture", name(2), "2.00 MB"),
        ("artefact", "compile-freezing", "1.00 MB"),
    }
    assert rows[-1]["what"] == name(1), "the last used stands first"
    assert "3 folders" in strata.run("cache", "list").stderr


def test_prunes_what_was_not_used_for_so_long_or_everything_and_nothing_else(
    strata, filled, tmp_path
):
    (filled / "headers").mkdir()
    (filled / "bundles" / "notes.txt").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (filled / "artefacts" / "link").symlink_to(tmp_path / "elsewhere")
    done = strata.run("cache", "prune", "--older-than", "3")
    assert done.returncode == 0 and "removed 1 folders" in done.stdout and "2.00 MB" in done.stdout
    assert len(list((filled / "bundles").iterdir())) == 2
    assert strata.run("cache", "prune").returncode == 0
    assert [path.name for path in (filled / "bundles").iterdir()] == ["notes.txt"]
    assert (filled / "headers").is_dir() and (tmp_path / "elsewhere").is_dir()
    assert json.loads(strata.run("cache", "list", "--format", "json").stdout) == []


def test_references_that_lie_apart_are_counted_and_removed_with_their_capture(strata, filled):
    for bundle in sorted((filled / "bundles").iterdir()):
        apart = filled / "references" / bundle.name / "reference"
        apart.mkdir(parents=True, mode=0o700)
        (apart / "timed.safetensors").write_bytes(b"x" * 500_000)
        (bundle / "reference").symlink_to(os.path.relpath(apart, bundle))
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert {row["size"] for row in rows if row["kind"] == "capture"} == {"2.50 MB"}
    done = strata.run("cache", "prune", "--older-than", "3")
    assert "removed 1 folders" in done.stdout and "2.50 MB" in done.stdout
    assert [path.name for path in (filled / "references").iterdir()] == [
        path.name for path in (filled / "bundles").iterdir()
    ]


def test_images_of_data_sets_are_listed_by_set_and_removed(strata, filled):
    folder = filled / "images" / "5f3a-64" / "mnist"
    folder.mkdir(parents=True)
    (folder / "00000.png").write_bytes(b"x" * 500_000)
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert [(row["kind"], row["what"], row["size"]) for row in rows if row["kind"] == "images"] == [
        ("images", "mnist", "500 kB")
    ]
    assert strata.run("cache", "prune").returncode == 0
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["programs", "packs"])
def test_programs_that_a_package_or_a_pack_made_ready_are_listed_and_removed(strata, filled, kind):
    folder = filled / kind / "ac25f748fc81" / "cf7c0210da24"
    folder.mkdir(parents=True)
    (folder / "level_static").write_bytes(b"x" * 500_000)
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert [(row["what"], row["size"]) for row in rows if row["kind"] == kind] == [
        ("ac25f748fc81", "500 kB")
    ]
    assert strata.run("cache", "prune").returncode == 0
    assert not folder.exists()


def test_networks_that_were_objects_of_python_are_listed_by_their_class_and_removed(strata, filled):
    folder = filled / "live" / "ac25f748fc81"
    folder.mkdir(parents=True)
    (folder / "Net.py").write_bytes(b"x" * 500_000)
    rows = json.loads(strata.run("cache", "list", "--format", "json").stdout)
    assert [row["what"] for row in rows if row["kind"] == "live"] == ["Net"]
    assert strata.run("cache", "prune").returncode == 0
    assert not folder.exists()


def test_removes_nothing_while_a_run_measures(strata, filled):
    mark = Path(strata.environment["XDG_DATA_HOME"]) / "strata" / "measuring"
    mark.parent.mkdir(parents=True, mode=0o700)
    with mark.open("w") as held:
        held.write("1234\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = strata.run("cache", "prune")
    assert done.returncode == 1 and "pid 1234" in done.stderr
    assert len(list((filled / "bundles").iterdir())) == 2


def test_removes_nothing_that_a_command_uses_whether_it_measures_or_not(strata):
    strata.level("one", rank=1)
    words = strata.arguments("one", restarts=1, budget="600s")
    process = strata.start(*words)
    try:
        wait_for_blocks(strata.store, 1)
        mark = Path(strata.environment["XDG_DATA_HOME"]) / "strata" / "measuring"
        mark.unlink()  # as if it had not begun to measure
        done = strata.run("cache", "prune")
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert done.returncode == 1 and "uses what lies in the cache" in done.stderr, done


def test_a_cache_that_is_not_there_yet_is_empty(strata, tmp_path):
    strata.environment["STRATA_CACHE"] = str(tmp_path / "none")
    assert json.loads(strata.run("cache", "list", "--format", "json").stdout) == []
    assert strata.run("cache", "prune").returncode == 0 and not (tmp_path / "none").exists()


@pytest.fixture
def shared(filled) -> Path:
    """The same with a network, whose weights the newer capture and one of three days ago link
    to."""
    weights = filled / "networks" / "0a1b2c3d4e5f60718293a4b5" / "weights"
    weights.mkdir(parents=True, mode=0o700)
    (filled / "networks").chmod(0o700)
    (weights / "timed.safetensors").write_bytes(b"x" * 5_000_000)
    (weights.parent / "network.json").write_text('{"network": 1, "model": "resnet18"}')
    middle = filled / "bundles" / "461bb32b84e492df24d1efa8"
    middle.mkdir(mode=0o700)
    (middle / "bundle.json").write_text(captured(3))
    (middle / "inputs.safetensors").write_bytes(b"x" * 500_000)
    for folder in (middle, filled / "bundles" / f"361bb32b84e492df24d1efa8.{2:016x}"):
        (folder / "weights").mkdir()
        (folder / "weights" / "timed.safetensors").hardlink_to(weights / "timed.safetensors")
    for path, days in (
        (middle / "bundle.json", 3),
        (weights.parent / "network.json", 20),
        (
            filled
            / "artefacts"
            / "compile-freezing-67ff2877549ce2884c42d68b-9df9955d4deb-23b6a200",
            5,
        ),
    ):
        os.utime(path, (time.time() - days * 86400,) * 2)
    return filled


def listed(strata) -> dict[str, str]:
    return {
        row["what"]: row["size"]
        for row in json.loads(strata.run("cache", "list", "--format", "json").stdout)
    }


def test_weights_that_captures_share_are_counted_once_as_the_networks(strata, shared):
    assert listed(strata) == {
        name(1): "2.00 MB",
        name(2): "2.00 MB",
        name(3): "500 kB",
        "compile-freezing": "1.00 MB",
        "resnet18": "5.00 MB",
    }
    assert "10.5 MB in all" in strata.run("cache", "list").stderr
    assert list(listed(strata))[1] == "resnet18", "a network is in use as its captures are"


def test_the_limit_removes_what_was_not_used_for_longest_until_the_rest_fits(strata, shared):
    done = strata.run("cache", "limit", "20MB")
    assert done.returncode == 0 and "removed 0 folders" in done.stdout and len(listed(strata)) == 5
    done = strata.run("cache", "limit", "9MB")
    assert (
        done.returncode == 0
        and "removed 1 folders" in done.stdout
        and "8.50 MB are left" in done.stdout
    )
    assert name(1) not in listed(strata)
    assert strata.run("cache", "limit", "7600kB").returncode == 0 and list(listed(strata)) == [
        name(2),
        "resnet18",
        name(3),
    ]
    assert strata.run("cache", "limit", "7MiB").returncode == 0 and list(listed(strata)) == [
        name(2),
        "resnet18",
    ]
    done = strata.run("cache", "limit", "1MB")
    assert (
        "removed 2 folders" in done.stdout
        and "7.00 MB; 0 B are left" in done.stdout
        and not listed(strata)
    )
    assert not list((shared / "networks").iterdir()) and not list((shared / "bundles").iterdir())


def test_weights_of_a_network_that_is_gone_count_with_the_captures_that_have_them(strata, shared):
    for path in (shared / "networks").rglob("*"):
        if path.is_file():
            path.unlink()
    (shared / "networks" / "0a1b2c3d4e5f60718293a4b5" / "weights").rmdir()
    (shared / "networks" / "0a1b2c3d4e5f60718293a4b5").rmdir()
    assert "10.5 MB in all" in strata.run("cache", "list").stderr
    assert strata.run("cache", "limit", "3MB").returncode == 0 and not listed(strata)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cache", "limit"),
        ("cache", "limit", "much"),
        ("cache", "limit", "-1"),
        ("cache",),
        ("cache", "prune", "--older-than", "0"),
        ("cache", "prune", "--older-than", "x"),
    ],
)
def test_wrong_usage_is_told(strata, arguments):
    assert strata.run(*arguments).returncode == 2
