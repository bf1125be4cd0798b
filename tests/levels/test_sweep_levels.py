# SPDX-License-Identifier: Apache-2.0
"""A sweep with real levels, proven lightly away from its corners: faults that only some points of
the grid have."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import preloaded
import pytest
from client import PROGRAM, ROOT
from faulty_eager.copies import name_of, plant

# What is said of a level follows from times, and what a forked worker waits for a core the driver
# does not see: it reads that of the process that it started.
pytestmark = pytest.mark.alone

BATCHES, SIZES = (2, 4, 8, 16), (24, 32)
FAULTS = {  # planted: the mode, and at which points of the grid it is there
    "one_bn_eps:batch=4": ("infer", lambda batch, size: batch == 4),
    "bias_zero:batch>4": ("infer", lambda batch, size: batch > 4),
    "shortcut_dropped:size=24": ("infer", lambda batch, size: size == 24),
    "shortcut_backward:size=24": ("train", lambda batch, size: size == 24),
    "labels_off_by_one:batch=4": ("train", lambda batch, size: batch == 4),
}


def sweep(folder: Path, mode: str) -> tuple[dict[tuple[str, int, int], dict], str]:
    """Rows by level, batch and size."""
    network = {"infer": "strided_network", "train": "residual_network"}[mode]
    levels = plant(folder / "levels", [fault for fault, (of, _) in FAULTS.items() if of == mode])
    names = sorted(path.name for path in levels.iterdir())
    environment = (
        os.environ
        | {
            "STRATA_ROOT": str(ROOT),
            "XDG_DATA_HOME": str(folder),
            "STRATA_PYTHON": preloaded.PYTHON,
            "OMP_WAIT_POLICY": "PASSIVE",
            "STRATA_LEVEL_PATH": str(levels),
        }
        | preloaded.interpreter()
    )
    done = subprocess.run(
        [
            str(PROGRAM),
            "sweep",
            f"{ROOT / 'tests/levels/networks.py'}:{network}",
            "--mode",
            mode,
            "--levels",
            ",".join(["eager", *names]),
            "--threads",
            "1",
            "--batch",
            ",".join(map(str, BATCHES)),
            "--size",
            ",".join(map(str, SIZES)),
            "--restarts",
            "1",
            "--point-time",
            "1s",
            "--order-seed",
            "1",
            "--format",
            "json",
        ],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.stdout, done.stderr[-3000:]
    items = {
        item["id"]: item
        for section in json.loads(done.stdout)["sections"]
        for item in section["items"]
        if "id" in item
    }
    return {
        (row["level"], int(row["batch"]), int(row["size"])): row for row in items["points"]["rows"]
    }, done.stderr


@pytest.fixture(
    scope="module",
    params=[pytest.param(mode, marks=pytest.mark.long) for mode in ("infer", "train")],
)
def swept(request, tmp_path_factory):
    mode = request.param
    return mode, sweep(tmp_path_factory.mktemp(mode), mode)[0]


def test_a_fault_is_found_at_every_point_that_has_it_and_at_no_other(swept):
    mode, rows = swept
    for fault, (of, has_it) in FAULTS.items():
        if of != mode:
            continue
        name = name_of(fault)
        for batch in BATCHES:
            for size in SIZES:
                row = rows[name, batch, size]
                expected = ("unequal", "mistrusted") if has_it(batch, size) else ("measured",)
                assert row["state"] in expected, (fault, batch, size, row["state"], row["reason"])


def test_the_sound_level_is_measured_everywhere(swept):
    _, rows = swept
    sound = {(batch, size): rows["eager", batch, size] for batch in BATCHES for size in SIZES}
    assert {at: row["reason"] for at, row in sound.items() if row["state"] != "measured"} == {}
