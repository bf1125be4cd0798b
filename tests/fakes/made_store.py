# SPDX-License-Identifier: Apache-2.0
"""Stores made by hand: the schema that strata has, filled with rows whose answers are known, and
signed where strata is to read them."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import store_damage

ROOT = Path(__file__).resolve().parents[2]


def schema() -> str:
    """What src/store/schema.hpp makes of an empty file."""
    text = (ROOT / "src" / "store" / "schema.hpp").read_text(encoding="utf-8")
    [tables] = re.findall(r'R"sql\((.*?)\)sql"', text, re.DOTALL)
    [application] = re.findall(r"kApplication = (0x[0-9a-f]+);", text)
    [version] = re.findall(r"kVersion = (\d+);", text)
    header = f"PRAGMA application_id={int(application, 16)};PRAGMA user_version={version};"
    return tables + header


class MadeStore:
    """`connection` has the schema. Each method adds a line and gives back its key; what is not said
    has a plain value."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.count = 0

    @classmethod
    def in_memory(cls) -> MadeStore:
        connection = sqlite3.connect(":memory:")
        connection.executescript(schema())
        return cls(connection)

    @classmethod
    def in_file(cls, path: Path) -> MadeStore:
        connection = sqlite3.connect(path)
        connection.executescript(schema())
        return cls(connection)

    def put(self, table: str, **values: Any) -> int:
        names = ",".join(values)
        places = ",".join("?" * len(values))
        cursor = self.connection.execute(
            f"INSERT INTO {table}({names}) VALUES({places})", tuple(values.values())
        )
        return cursor.lastrowid or 0

    def machine(self, name: str, **more: Any) -> str:
        self.put(
            "machines",
            **(
                {
                    "hash": f"m-{name}",
                    "cpu": name,
                    "cores": 2,
                    "processors": 4,
                    "memory_gib": 8,
                    "gpu": "",
                    "gpus": 0,
                }
                | more
            ),
        )
        return f"m-{name}"

    def environment(self, torch: str, **more: Any) -> str:
        self.put(
            "environments",
            **({"hash": f"e-{torch}", "python": "3.11.2", "torch": torch, "packages": ""} | more),
        )
        return f"e-{torch}"

    def run(self, machine: str = "", environment: str = "", **more: Any) -> str:
        self.count += 1
        run_id = f"20260101-{self.count:06d}-0000"
        day = f"2026-01-{1 + self.count // 86400 % 28:02d}"
        time = f"{self.count // 3600 % 24:02d}:{self.count // 60 % 60:02d}:{self.count % 60:02d}"
        fields = {
            "run_id": run_id,
            "name": "",
            "started": f"{day}T{time}Z",
            "finished": f"{day}T{time}Z",
            "interrupted": 0,
            "command": "./strata compare m",
            "version": "0.1.0",
            "seed": 0,
            "settings": "{}",
            "machine": "{}",
            "environments": "[]",
            "machine_hash": machine,
        }
        self.put("runs", **(fields | more))
        if environment:
            self.put("run_environments", run_id=run_id, name="", hash=environment)
        return run_id

    def case(
        self, run_id: str, model: str = "m", batch: int = 1, network: str = "n", **more: Any
    ) -> str:
        key = f"{model}-b{batch}"
        if not self.connection.execute("SELECT 1 FROM cases WHERE hash=?", (key,)).fetchone():
            self.put(
                "cases",
                hash=key,
                id=f"{model}/infer/b{batch}",
                model=model,
                mode="infer",
                batch=batch,
                precision="fp32",
                device="cpu",
                threads=2,
                canonical=json.dumps(
                    {
                        "model": model,
                        "mode": "infer",
                        "batch": batch,
                        "threads": 2,
                        "precision": "fp32",
                    }
                ),
            )
        fields = {
            "run_id": run_id,
            "hash": key,
            "bundle": "{}",
            "limits": "{}",
            "trust": "{}",
            "reference_level": "eager",
            "network": network,
            "finished": 1,
            "metrics_version": 1,
        }
        self.put("run_cases", **(fields | more))
        return key

    def row(
        self, run_id: str, case: str, level: str, metrics: dict[str, Any] | None = None, **more: Any
    ) -> int:
        """`metrics`: a value, or (value, low, high), by name or "name setting"."""
        fields = {
            "run_id": run_id,
            "hash": case,
            "level": level,
            "variant": "default",
            "state": "measured",
            "reason": "",
            "hint": "",
            "log_tail": "",
            "repeat": "",
            "info": "{}",
            "settings": "{}",
            "memory": "null",
            "start_up": "[]",
            "proof": "null",
            "judged": 1,
        }
        row_id = self.put("level_rows", **(fields | more))
        for name, value in (metrics or {}).items():
            number, low, high = value if isinstance(value, tuple) else (value, None, None)
            name, _, setting = name.partition(" ")
            self.put(
                "metrics",
                row_id=row_id,
                **{"pass": "time"},
                name=name,
                setting=setting,
                unit="1",
                value=number,
                low=low,
                high=high,
                method="made",
            )
        return row_id

    def close(self, path: Path) -> None:
        """Gives every run its hashes."""
        self.connection.commit()
        self.connection.close()
        store_damage.sign(path)
