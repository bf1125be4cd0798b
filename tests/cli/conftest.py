# SPDX-License-Identifier: Apache-2.0
"""The built program with levels that do as they are told, a store and a cache of the test's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))
FAKE = ROOT / "tests" / "fakes" / "fake_worker.py"
sys.path.insert(0, str(ROOT / "tests" / "preloaded"))

import preloaded  # noqa: E402
from preloaded import pytest_configure  # noqa: E402, F401

MODEL = str(ROOT / "examples" / "tiny_mlp.py") + ":build"
# a network of images of any size, as a file
IMAGES = """import torch

def build():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2))
    return net.eval(), torch.rand(2, 3, 12, 12)
"""


class Strata:
    """Runs the program in a folder of its own. Levels are added as scripts of
    tests/fakes/fake_worker.py."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.levels, self.store = folder, folder / "levels", folder / "strata.db"
        self.levels.mkdir(parents=True)
        # levels of these tests answer with the references
        self.environment = (
            os.environ
            | {
                "STRATA_SHOW_REFERENCES": "1",
                "STRATA_ROOT": str(ROOT),
                "STRATA_LEVEL_PATH": str(self.levels),
                "STRATA_CACHE": str(cache),
                "XDG_DATA_HOME": str(folder / "data"),
                "STRATA_TOOLS_PYTHON": os.environ.get("STRATA_TOOLS_PYTHON", sys.executable),
            }
            | preloaded.interpreter()
        )

    def level(self, name: str, *, rank: int = 5, json_fields: dict | None = None, **script) -> None:
        folder = self.levels / name
        folder.mkdir()
        script = {
            "name": name,
            "samples": {"median_ns": 1_000_000, "jitter": 0.01, "seed": 1, "restart": 0.0},
        } | script
        about = {
            "id": name,
            "title": f"fake {name}",
            "rank": rank,
            "language": "python",
            "api": 2,
            "devices": ["cpu"],
            "modes": ["infer"],
            "precisions": ["fp32"],
            "start": [sys.executable, str(FAKE), "{level}/script.json"],
            "environment": False,
            "needs": [],
        }
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        (folder / "level.json").write_text(
            json.dumps(about | (json_fields or {})), encoding="utf-8"
        )

    def run(
        self, *arguments: str, timeout: float = 240, **environment: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(PROGRAM), *arguments],
            env=self.environment | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [str(PROGRAM), *arguments],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def arguments(self, *levels: str, restarts: int = 1, budget: str = "1s") -> list[str]:
        return [
            "compare",
            MODEL,
            "--levels",
            ",".join(levels),
            "--restarts",
            str(restarts),
            "--budget",
            budget,
            "--store",
            str(self.store),
            "--order-seed",
            "7",
            "--threads",
            "1",
        ]

    def compare(
        self, *levels: str, more: tuple[str, ...] = (), **keywords
    ) -> tuple[subprocess.CompletedProcess, dict]:
        """The finished process and the case's rows by level."""
        done = self.run(*self.arguments(*levels, **keywords), "--format", "json", *more)
        assert done.stdout, done.stderr
        return done, json.loads(done.stdout)


def pytest_collection_modifyitems(items):
    """The longest files first: a process that gets one of them last works alone at the end."""
    longest = (
        "sweep",
        "slurm",
        "cluster",
        "generate",
        "plan",
        "suites",
        "clients",
        "tuned",
        "compare",
        "setup",
        "train",
    )
    place = {f"test_{name}.py": i for i, name in enumerate(longest)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


# Started by nohup, this process ignores SIGHUP, and so would all that it starts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One for all processes of the test session, so that a network is captured once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def program(cache):
    from generated import mnist_program

    return mnist_program(cache)


@pytest.fixture(scope="session")
def trainer(cache):
    from generated import residual_trainer

    return residual_trainer(cache)


@pytest.fixture
def strata(tmp_path, cache):
    return Strata(tmp_path / "place with spaces", cache)


@pytest.fixture
def grid_program(strata):
    """A folder with two levels and a network of images."""
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    strata.level("plain", rank=1)
    strata.level("quick", **samples(100_000))
    return strata


def samples(
    median_ns: int, *, jitter: float = 0.01, seed: int = 1, restart: float = 0.0
) -> dict[str, Any]:
    """The field of a fake level's script that says how long its iterations take."""
    return {"samples": {"median_ns": median_ns, "jitter": jitter, "seed": seed, "restart": restart}}


def rows_by_name(result: dict) -> dict[str, dict]:
    return {
        row["level"] + ("" if row["variant"] == "default" else "@" + row["variant"]): row
        for row in result["cases"][0]["rows"]
    }


def rows_of(result: dict) -> dict[str, dict]:
    return {row["level"]: row for row in result["cases"][0]["rows"]}
