# SPDX-License-Identifier: Apache-2.0
"""Environments that levels bring: when they are installed, what is said of them, and what is left
when that fails. A tree of its own, with an uv that downloads nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import FAKE, PROGRAM, ROOT, Strata, rows_of

UV = f"""#!/bin/sh
here=$(dirname "$0")/../..
case $1 in
  cache) echo "$here"; exit ;;
  --no-config) shift ;;
esac
echo "$@" >>"$here/asked"
for last; do :; done
case "$1 $(cat "$here/uv_does" 2>/dev/null)" in
  venv*) mkdir -p "$last/bin" && ln -s '{sys.executable}' "$last/bin/python" ;;
  *offline) echo "error sending request for url"; exit 1 ;;
  *full) echo "No space left on device"; exit 1 ;;
  *waits) touch "$here/waiting"; exec sleep 60 ;;
esac
"""


@pytest.fixture
def tree(tmp_path, cache):
    """A Strata whose root is a folder of the test's own: the level `own` brings an environment,
    `plain` does not."""
    root = tmp_path / "root of it"
    (root / "levels").mkdir(parents=True)
    shutil.copytree(ROOT / "setup", root / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sdk", "src", "models", "requirements", "examples"):
        (root / name).symlink_to(ROOT / name)
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(sys.executable)
    (root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    (root / ".venv/strata-uv").write_text(
        hashlib.sha256((ROOT / "requirements/uv.txt").read_bytes()).hexdigest()[:16] + "\n"
    )
    (root / ".venv/bin/uv").write_text(UV)
    (root / ".venv/bin/uv").chmod(0o755)
    strata = Strata(tmp_path / "place with spaces", cache)
    strata.root = root
    strata.environment = strata.environment | {"STRATA_ROOT": str(root)}
    strata.level("plain")
    strata.level(
        "own",
        rank=6,
        json_fields={
            "start": ["{level_python}", str(FAKE), "{level}/script.json"],
            "environment": False,
        },
    )
    (strata.levels / "own/requirements.txt").write_text(
        "# 3 MB to download, 7 MB on disk\nnumpy==1 --hash=sha256:0\n"
    )
    return strata


def uv_does(tree, what: str) -> None:
    (tree.root / "uv_does").write_text(what)


def installer_calls(tree) -> list[str]:
    file = tree.root / "asked"
    return file.read_text().splitlines() if file.exists() else []


def environments(tree) -> list[str]:
    folder = tree.root / "build/environments"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def plain_compare(tree) -> tuple[subprocess.CompletedProcess, dict]:
    """Without --levels: all that are found."""
    words = tree.arguments("plain")
    at = words.index("--levels")
    done = tree.run(*words[:at], *words[at + 2 :], "--format", "json")
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


def test_a_level_that_is_named_has_its_environment_installed_once_and_is_measured(tree):
    done, result = tree.compare("plain", "own")
    assert done.returncode == 0, done.stderr
    [folder] = environments(tree)
    assert (
        f"the level own brings an environment of its own, into {tree.root}/build/environments/{folder} (3 MB to download, 7 MB on disk)"
        in done.stderr
    )
    assert {row["state"] for row in rows_of(result).values()} == {"measured"}
    assert any("--no-deps --require-hashes" in line for line in installer_calls(tree))
    before = installer_calls(tree)
    done, _ = tree.compare("plain", "own")
    assert (
        done.returncode == 0
        and installer_calls(tree) == before
        and "environment of its own" not in done.stderr
    )


def test_a_comparison_that_does_not_name_it_installs_nothing_and_says_the_command(tree):
    done, result = plain_compare(tree)
    assert done.returncode == 0, done.stderr
    rows = rows_of(result)
    assert rows["plain"]["state"] == "measured"
    assert rows["own"]["state"] == "unavailable" and "not installed" in rows["own"]["reason"]
    assert "./strata level install own" in json.dumps(rows["own"])
    assert not installer_calls(tree) and not environments(tree)
    assert tree.run("level", "install", "own").returncode == 0
    done, result = plain_compare(tree)
    assert done.returncode == 0 and rows_of(result)["own"]["state"] == "measured"


@pytest.mark.parametrize(
    "trouble, says, advice",
    [
        ("offline", "could not be installed", "check the network"),
        ("full", "could not be installed", "the disk is full"),
    ],
)
def test_without_network_or_space_the_level_is_unavailable_with_the_reason_and_the_others_are_measured(
    tree, trouble, says, advice
):
    uv_does(tree, trouble)
    done, result = tree.compare("plain", "own")
    assert done.returncode == 3, done.stderr
    rows = rows_of(result)
    assert rows["plain"]["state"] == "measured"
    assert (
        rows["own"]["state"] == "unavailable"
        and says in rows["own"]["reason"]
        and advice in json.dumps(rows["own"])
    )
    assert [name for name in environments(tree) if not name.endswith(".failed")] == []
    doctor = tree.run("doctor").stdout
    assert advice in doctor and "level install own` tries again" in doctor
    uv_does(tree, "")
    assert tree.run("level", "install", "own").returncode == 0
    assert len(environments(tree)) == 1 and "failed" not in environments(tree)[0]


def test_ctrl_c_while_it_is_installed_leaves_no_environment(tree):
    uv_does(tree, "waits")
    child = subprocess.Popen(
        [str(PROGRAM), "level", "install", "own"],
        env=tree.environment,
        cwd=tree.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (tree.root / "waiting").exists():
            break
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 130, errors
    assert environments(tree) == []
    uv_does(tree, "")
    assert tree.run("level", "install", "own").returncode == 0 and len(environments(tree)) == 1


def test_what_was_killed_half_way_is_noticed_and_made_again(tree):
    assert tree.run("level", "install", "own").returncode == 0
    [name] = environments(tree)
    folder = tree.root / "build/environments" / name
    folder.rename(f"{folder}.part")  # as a kill leaves it
    (Path(f"{folder}.part") / "half").touch()
    assert "is not complete" in tree.run("doctor").stdout
    done, result = tree.compare("plain", "own")
    assert done.returncode == 0 and rows_of(result)["own"]["state"] == "measured"
    assert environments(tree) == [name] and not (folder / "half").exists()


def test_another_list_of_packages_is_another_environment_in_the_place_of_the_old_one(tree):
    assert tree.run("level", "install", "own").returncode == 0
    before = environments(tree)
    (tree.levels / "own/requirements.txt").write_text("numpy==2 --hash=sha256:0\n")
    assert (
        "own" in tree.run("list", "levels").stdout
        and "level install own" in tree.run("list", "levels").stdout
    )
    assert tree.run("level", "install", "own").returncode == 0
    assert len(environments(tree)) == 1 and environments(tree) != before


def test_list_and_doctor_name_the_environment(tree):
    assert (
        "environment not installed: ./strata level install own" in tree.run("list", "levels").stdout
    )
    missing = tree.run("doctor").stdout
    assert (
        "not installed (a run that names it with --levels installs it)" in missing
        and "3 MB to download, 7 MB on disk" in missing
    )
    assert (
        "not installed (a run that names it with --levels installs it); `./strata level install own`"
        in tree.run("list", "environments").stdout
    )
    installed = tree.run("level", "install", "own", "plain")
    assert "plain: brings no environment of its own" in installed.stdout
    [name] = environments(tree)
    assert name in installed.stdout and name in tree.run("doctor").stdout
    assert (
        "level install own"
        not in tree.run("list", "levels").stdout + tree.run("list", "environments").stdout
    )


def test_an_unknown_level_is_refused_before_anything_is_installed(tree):
    done = tree.run("level", "install", "onw")
    assert (
        done.returncode == 2
        and "did you mean 'own'" in done.stderr
        and "--levels" not in done.stderr.split("\n")[0]
    )
    assert not installer_calls(tree)


def test_a_level_with_its_own_environment_is_checked_in_it(tree):
    done = tree.run("level", "check", str(tree.levels / "own"))
    assert "environments/own-" in done.stdout, done.stderr
    assert len(environments(tree)) == 1
