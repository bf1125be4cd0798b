# SPDX-License-Identifier: Apache-2.0
"""`strata train` on the digits in a folder of its own, for the tests of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import preloaded
from client import FAULTY, PROGRAM, ROOT
from safetensors.numpy import load_file

NETWORK = '''
import torch
from torch import nn

class Net(nn.Module):
    """Digits (N, 1, 8, 8) -> logits (N, 10)."""

    def __init__(self, dropout):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8 * 4 * 4, 10)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn(self.conv(x))), 2)
        return self.fc(self.dropout(torch.flatten(x, 1)))

def build():
    return Net(0.0), torch.zeros(1, 1, 8, 8)

def with_dropout():
    return Net(0.3), torch.zeros(1, 1, 8, 8)

class Plain(nn.Module):
    """The same without what brings a signal back to its size."""

    def __init__(self):
        super().__init__()
        self.conv, self.hidden, self.fc = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(8 * 4 * 4, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.fc(torch.relu(self.hidden(torch.flatten(x, 1))))

def plain():
    return Plain(), torch.zeros(1, 1, 8, 8)
'''
LEVELS = "eager,torchscript,libtorch,onednn,static"


class Trained:
    """A finished `strata train`: its exit code, its document, its tables by id."""

    def __init__(self, done: subprocess.CompletedProcess) -> None:
        self.code, self.errors = done.returncode, done.stderr
        self.document = json.loads(done.stdout) if done.stdout else {}
        items = [item for section in self.document.get("sections", []) for item in section["items"]]
        self.tables = {item["id"]: item for item in items if item["kind"] == "table"}
        self.figures = {item["id"]: item for item in items if item["kind"] == "figure"}
        self.maps = {item["id"]: item for item in items if item["kind"] == "heat_map"}

    def row(self, table: str, level: str) -> dict:
        return next(row for row in self.tables[table]["rows"] if row["level"] == level)


def train_command(levels: str, *more: str, model: str = "net.py:build") -> tuple[str, ...]:
    """A training on the digits, in JSON."""
    settings = "--dataset digits --batch 32 --threads 1 --order-seed 5 --format json".split()
    return ("train", model, "--levels", levels, *settings, *more)


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "net.py").write_text(NETWORK)
        self.environment = (
            os.environ
            | preloaded.interpreter()
            | {
                "STRATA_ROOT": str(ROOT),
                "XDG_DATA_HOME": str(folder),
                "OMP_WAIT_POLICY": "PASSIVE",
                "STRATA_LEVEL_PATH": str(FAULTY.parent),
            }
        )

    def start(self, *arguments: str, **more: str) -> subprocess.Popen:
        return subprocess.Popen(
            [str(PROGRAM), *arguments],
            env=self.environment | more,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **more: str) -> Trained:
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=600)
        return Trained(subprocess.CompletedProcess(arguments, process.returncode, out, err))

    def train(
        self, levels: str, *more: str, model: str = "net.py:build", **environment: str
    ) -> Trained:
        return self.run(*train_command(levels, *more, model=model), **environment)

    def checkpoint(self, name: str) -> dict[str, np.ndarray]:
        """Of the last run that has it."""
        return load_file(
            max(
                (self.folder / "strata" / "trainings").glob(f"*/{name}.safetensors"),
                key=lambda path: path.stat().st_mtime_ns,
            )
        )
