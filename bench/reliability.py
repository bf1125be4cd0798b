#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often does the driver hold against what comes from outside? Prints a Markdown table of
counts; exit code 1 if anything did not hold.

Kills: the driver is ended by SIGKILL at a random moment of a comparison; then the store must be
sound, hold at least
what it held before, be readable, and no worker may live. Answers: a level gives one field of one
answer a random wrong
value; the comparison must end by itself with a state for its row, and the level beside it must be
measured.
Stores: one page of a finished store is damaged, or one cell gets a value that no column has, with
right hashes; what
`show`, `export-data` and `list runs` say is then refused or the same, never other numbers. Bundles:
one file of a captured
network is damaged; it must be noticed, and a level that answers zeros must never be measured.
Levels are tests/fakes/fake_worker.py, so that a comparison takes seconds."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from common import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fakes"))
import store_damage

MODEL = str(ROOT / "examples" / "tiny_mlp.py") + ":build"
PROGRAM = os.environ.get("STRATA_PROGRAM", str(ROOT / "strata"))
FAKE = ROOT / "tests" / "fakes" / "fake_worker.py"
# Fields of the answers that the driver reads in a comparison, by operation.
FIELDS = {
    "hello": "api level language versions build devices modes precisions ops library_ns ok id".split(),
    "load": "phases settings parameters artefact_bytes deterministic ok id".split(),
    "inputs": ["count", "ok", "id"],
    "warm_up": "iterations first_ns wall_ns ok id".split(),
    "measure": "wall_ns latency_ns cpu_ns start_ns runq_ns ok id".split(),
    "prove": ["ok", "id"],
    "memory": ["device_peak_bytes", "ok"],
    "weights": ["ok", "id"],
    "bye": ["ok", "id"],
}
VALUES: list[Any] = [
    None,
    True,
    "x",
    "measured",
    -1,
    0,
    0.5,
    1e300,
    2**63,
    2**64 - 1,
    10**19,
    [],
    {},
    [None],
    ["x", 1],
    [-1, -1],
    [10**18] * 10,
    {"a": 1},
    {"build_ns": "x"},
    [[[[]]]],
    "\ud800",
    "\u001b[31m",
    "y" * 100_000,
]


class Place:
    """A folder with a store and levels of its own; the cache is shared."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.store, self.levels = folder, folder / "strata.db", folder / "levels"
        self.levels.mkdir(parents=True)
        self.environment = os.environ | {
            "STRATA_LEVEL_PATH": str(self.levels),
            "STRATA_CACHE": str(cache),
            "XDG_DATA_HOME": str(folder),
            "STRATA_SHOW_REFERENCES": "1",  # which the fakes answer with
        }

    def level(self, name: str, rank: int, **script: Any) -> None:
        folder = self.levels / name
        folder.mkdir(exist_ok=True)
        about = {
            "id": name,
            "title": f"fake {name}",
            "rank": rank,
            "language": "python",
            "api": 2,
            "devices": ["cpu"],
            "modes": ["infer"],
            "precisions": ["fp32"],
            "start": ["{tools_python}", str(FAKE), "{level}/script.json"],
            "environment": False,
            "needs": [],
        }
        (folder / "script.json").write_text(json.dumps({"name": name} | script), encoding="utf-8")
        (folder / "level.json").write_text(json.dumps(about), encoding="utf-8")

    def strata(self, *words: str) -> list[str]:
        return [PROGRAM, *words, "--store", str(self.store)]

    def compare(self, budget: str) -> list[str]:
        return self.strata(
            "compare",
            MODEL,
            "--levels",
            "right,other",
            "--restarts",
            "1",
            "--budget",
            budget,
            "--threads",
            "1",
            "--timeout",
            "20s",
            "--format",
            "json",
        )

    def workers(self) -> list[str]:
        processes = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                text = environ.read_bytes()
            except OSError:
                continue
            if str(self.levels).encode() in text and b"STRATA_WORKER=" in text:
                processes.append(environ.parent.name)
        return processes


def stored(store: Path) -> tuple[str, int, int]:
    """What SQLite says of the store's soundness, and how many runs and blocks it holds."""
    if not store.exists():
        return "ok", 0, 0
    with contextlib.closing(sqlite3.connect(store)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        try:
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
            (blocks,) = connection.execute("SELECT count(*) FROM blocks").fetchone()
        except sqlite3.OperationalError:
            runs = blocks = 0  # killed before the first table was there
    return verdict, runs, blocks


def kill_once(place: Place, moment: float) -> list[str]:
    """What did not hold."""
    _, runs, blocks = stored(place.store)
    driver = subprocess.Popen(
        place.compare("60s"),
        env=place.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(moment)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wrong = []
    until = time.monotonic() + 5
    while place.workers() and time.monotonic() < until:
        time.sleep(0.02)
    if place.workers():
        wrong.append("a worker lives on")
    verdict, runs_now, blocks_now = stored(place.store)
    if verdict != "ok":
        wrong.append(f"the store is damaged: {verdict}")
    if runs_now < runs or blocks_now < blocks:
        wrong.append("something stored is gone")
    if runs_now:
        shown = subprocess.run(
            place.strata("show", "last", "--format", "json"),
            env=place.environment,
            capture_output=True,
            check=False,
        )
        if shown.returncode != 0:
            wrong.append(f"show ends with {shown.returncode}")
    return wrong


def answer_once(place: Place, draw: random.Random) -> tuple[str, list[str]]:
    """The state of the level's row, and what did not hold."""
    op = draw.choice(list(FIELDS))
    trouble: dict[str, Any] = {"answer": {draw.choice(FIELDS[op]): draw.choice(VALUES)}}
    if op == "measure":
        trouble["after"] = draw.choice([1, 8])
    place.level("other", 2, ops={op: trouble})
    try:
        done = subprocess.run(
            place.compare("1s"),
            env=place.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return "none", [f"{op} {json.dumps(trouble)[:80]}: no end within 120 s"]
    what = f"{op} {json.dumps(trouble)[:80]}"
    if done.returncode not in (0, 1, 3):
        return "none", [f"{what}: exit code {done.returncode}"]
    rows = {row["level"]: row for row in json.loads(done.stdout)["cases"][0]["rows"]}
    wrong = []
    if rows["right"]["state"] != "measured":
        wrong.append(f"{what}: the level beside it is {rows['right']['state']}")
    if rows["other"]["state"] != "measured" and not rows["other"]["reason"]:
        wrong.append(f"{what}: no reason")
    return rows["other"]["state"], wrong


def store_once(
    place: Place, whole: dict[tuple[str, str, str, str], str], draw: random.Random, kind: str
) -> Counter[str]:
    """What the reading commands made of a damaged copy of the store; what did not hold is in it as
    text."""
    store = place.folder / "damaged.db"
    data = bytearray(place.store.read_bytes())
    how = store_damage.damage_page(data, draw) if kind == "page" else ""
    store.write_bytes(data)
    if kind == "cell":
        how = store_damage.forge_cell(store, draw)
    processes: Counter[str] = Counter()
    for words, right in whole.items():
        done: subprocess.CompletedProcess[str] | None
        try:
            done = subprocess.run(
                [PROGRAM, *words, "--store", str(store)],
                env=place.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            done = None
        what = store_damage.verdict(done, right, exact=kind == "page")
        processes[what] += 1
        if what in ("crashed", "other"):
            processes[f"! {what}: {words[0]} after {how}"] += 1
    return processes


def damage_stores(place: Place, options: argparse.Namespace, draw: random.Random) -> list[str]:
    """A line of the table for each kind of damage; what did not hold."""
    subprocess.run(place.compare("1s"), env=place.environment, capture_output=True, check=False)
    whole = {}
    for words in (
        ("show", "last", "--format", "json"),
        ("export-data", "last", "--format", "json"),
        ("list", "runs", "--format", "json"),
    ):
        done = subprocess.run(
            place.strata(*words), env=place.environment, capture_output=True, text=True, check=True
        )
        whole[words] = done.stdout
    failures = []
    for kind, tries in (("page", options.pages), ("cell", options.cells)):
        processes: Counter[str] = Counter()
        for _ in range(tries):
            processes += store_once(place, whole, draw, kind)
        counts = ", ".join(
            f"{processes[what]} {what}" for what in ("refused", "same", "other", "crashed")
        )
        held = processes["refused"] + processes["same"]
        print(
            f"| a {kind} of a store damaged, read by {len(whole)} commands ({counts}) | {tries * len(whole)} | {held} |",
            flush=True,
        )
        failures += [what for what in processes if what.startswith("!")]
    return failures


def damage_file(path: Path, draw: random.Random) -> str:
    """Changes one file in place; says how."""
    data = bytearray(path.read_bytes())
    kind = draw.choice(["a bit", "shorter", "longer", "missing", "zeros", "noise"])
    at = draw.randrange(max(1, len(data)))
    if kind == "missing":
        path.unlink()
        return kind
    if kind == "a bit" and data:
        data[at] ^= 1 << draw.randrange(8)
    elif kind == "shorter":
        del data[at:]
    elif kind == "longer":
        data += draw.randbytes(16)
    elif kind == "zeros":
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif kind == "noise":
        data[at : at + 64] = draw.randbytes(len(data[at : at + 64]))
    path.write_bytes(data)
    return kind


def bundle_once(place: Place, cache: Path, draw: random.Random) -> tuple[str, list[str]]:
    """What became of a damaged bundle (noticed, same, refused), and what did not hold."""
    places = [cache / "bundles", cache / "references"]
    files = sorted(
        file
        for folder in places
        for file in folder.rglob("*")
        if file.is_file() and file.parent != folder
    )
    path = draw.choice(files)
    before = path.read_bytes()
    what = f"{path.name}: {damage_file(path, draw)}"
    unchanged = path.exists() and path.read_bytes() == before
    try:
        done = subprocess.run(
            place.compare("1s"),
            env=place.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
    except subprocess.TimeoutExpired:
        return "no end", [f"{what}: no end within 180 s"]
    if done.returncode not in (0, 1, 2, 3) or "unforeseen" in done.stderr:
        return "crashed", [f"{what}: exit code {done.returncode}: {done.stderr[-200:]}"]
    if not done.stdout:
        return "refused", []
    rows = {row["level"]: row for row in json.loads(done.stdout)["cases"][0]["rows"]}
    wrong = []
    if rows["other"]["state"] == "measured":
        wrong.append(f"{what}: zeros are measured")
    if rows["right"]["state"] != "measured":
        wrong.append(
            f"{what}: the right level is {rows['right']['state']}: {rows['right']['reason']}"
        )
    return (
        "same" if unchanged else "noticed" if "captured again" in done.stderr else "not noticed",
        wrong,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--cells", type=int, default=50)
    parser.add_argument("--bundles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    failures: list[str] = []
    print("| what | tried | held |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="strata_reliability_") as folder:
        cache = Path(folder) / "cache"
        if options.pages or options.cells:
            read = Place(Path(folder) / "read", cache)
            for name, rank in (("right", 1), ("other", 2)):
                read.level(name, rank)
            failures += damage_stores(read, options, draw)
        if options.bundles:
            proven = Place(Path(folder) / "proven", cache)
            proven.level("right", 1)
            proven.level("other", 2, outputs={"scale": 0.0})
            # captures
            subprocess.run(
                proven.compare("1s"), env=proven.environment, capture_output=True, check=False
            )
            ends: Counter[str] = Counter()
            held = 0
            for _ in range(options.bundles):
                end, wrong = bundle_once(proven, cache, draw)
                ends[end] += 1
                held += not wrong
                failures += wrong
            counts = ", ".join(f"{count} {end}" for end, count in ends.most_common())
            print(
                f"| a file of a bundle damaged ({counts}) | {options.bundles} | {held} |",
                flush=True,
            )
        killed = Place(Path(folder) / "killed", cache)
        for name, rank in (("right", 1), ("other", 2)):
            killed.level(name, rank, helper=True)
        # captures
        subprocess.run(
            killed.compare("1s"), env=killed.environment, capture_output=True, check=False
        )
        held = 0
        for _ in range(options.kills):
            wrong = kill_once(killed, draw.uniform(0.05, 8))
            held += not wrong
            failures += wrong
        print(f"| the driver killed | {options.kills} | {held} |", flush=True)
        answering = Place(Path(folder) / "told", cache)
        answering.level("right", 1)
        states: Counter[str] = Counter()
        held = 0
        for _ in range(options.answers):
            state, wrong = answer_once(answering, draw)
            states[state] += 1
            held += not wrong
            failures += wrong
        ended = ", ".join(f"{count} {state}" for state, count in states.most_common())
        print(f"| a wrong answer ({ended}) | {options.answers} | {held} |", flush=True)
    for failure in failures:
        print(failure, file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
