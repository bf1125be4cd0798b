# SPDX-License-Identifier: Apache-2.0
"""A small sweep in shards: its network and levels, and the commands of a cluster."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

GRID = (
    "net.py:build",
    "--levels",
    "plain,quick",
    "--threads",
    "1",
    "--batch",
    "1,2",
    "--size",
    "8,10",
    "--restarts",
    "3",
    "--point-time",
    "1s",
)


def send(program, *more: str, folder: str = "shared folder", grid: tuple[str, ...] = GRID):
    return program.run("sweep", *grid, "--on", "slurm", "--folder", folder, *more)


def status(program, folder: str = "shared folder") -> dict:
    return json.loads(program.run("status", folder, "--format", "json").stdout)


def shown(program, store: Path, run: str = "last") -> tuple[dict, dict[str, dict], str]:
    """The document of a stored run, its items by id, and its sentences."""
    done = program.run("show", run, "--store", str(store), "--format", "json")
    document = json.loads(done.stdout)
    items = [item for section in document["sections"] for item in section["items"]]
    return (
        document,
        {item["id"]: item for item in items if "id" in item},
        "\n".join(item.get("paragraph", "") for item in items),
    )


def points_of(items: dict[str, dict]) -> list[tuple[str, str]]:
    return [
        (row.get("batch", ""), row.get("size", ""))
        for row in items["points"]["rows"]
        if row["level"] == "plain"
    ]


def ask(store: Path, sql: str) -> list[tuple]:
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()
