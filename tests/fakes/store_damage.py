# SPDX-License-Identifier: Apache-2.0
"""Damages of a store, drawn from a seed: pages as a disk or another program would change them, and
cells as a forger would write them, with right hashes. And what a reading command made of one:
refused, the same numbers, others, crashed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sqlite3
import struct
import subprocess
from pathlib import Path
from typing import Any

TABLES = ("runs", "cases", "run_cases", "level_rows", "blocks", "warnings")
# What no column of a store holds; JSON columns get such a value in place of one of theirs, too.
CELLS: list[Any] = [
    -1,
    2**31 - 1,
    2**62,
    0.5,
    1e308,
    "",
    "x",
    "null",
    "[]",
    "{}",
    "[1]",
    '{"a":1}',
    "[" * 100_000,
    '{"a":' * 5_000,
    b"",
    b"x",
    b"\0" * 8,
    b"\xff" * 16,
    b"\0" * 4096,
    "9" * 400,
    "\x1b[31m",
    "../../x",
    "y" * 1_000_000,
]
LEAVES: list[Any] = [None, True, "x", -1, 1.5, [], {}, [[]], {"a": []}, "1"]


def page_size(data: bytes) -> int:
    size = int.from_bytes(data[16:18], "big")
    return 65536 if size == 1 else size


OWN_ROWS = "row_id IN (SELECT row_id FROM level_rows WHERE run_id=:run) ORDER BY row_id,"
# As src/store/run_parts.hpp has them.
PARTS = (
    "machines WHERE hash IN (SELECT machine_hash FROM runs WHERE run_id=:run)",
    "environments WHERE hash IN (SELECT hash FROM run_environments WHERE run_id=:run) ORDER BY hash",
    "cases WHERE hash IN (SELECT hash FROM run_cases WHERE run_id=:run) ORDER BY hash",
    "runs WHERE run_id=:run",
    "run_environments WHERE run_id=:run ORDER BY name",
    "run_cases WHERE run_id=:run ORDER BY position,hash",
    "restarts WHERE run_id=:run ORDER BY hash,number",
    "level_rows WHERE run_id=:run ORDER BY row_id",
    "warnings WHERE run_id=:run ORDER BY rowid",
    f"blocks WHERE {OWN_ROWS}instance,restart,round",
    f"series WHERE {OWN_ROWS}name,axis,repeat,position",
    f"samples WHERE {OWN_ROWS}place",
)
LIST_PARTS = (
    "SELECT * FROM runs WHERE run_id=:run",
    """SELECT r.hash,r.network,r.verdict,c.id FROM run_cases r LEFT JOIN cases c ON c.hash=r.hash
    WHERE r.run_id=:run ORDER BY r.position,r.hash""",
)


class RunHash:
    """The hash of rows as src/store/run_hash.hpp makes it."""

    def __init__(self, connection: sqlite3.Connection, run: str) -> None:
        self.connection, self.run, self.first_row = connection, run, 0
        self.digest = hashlib.sha256()

    def add(self, sql: str, without: set[str]) -> None:
        cursor = self.connection.execute(sql, {"run": self.run})
        names = [column[0] for column in cursor.description]
        for row in cursor:
            for name, value in zip(names, row, strict=True):
                if name not in without:
                    self.digest.update(self.encoded(name, value))

    def encoded(self, name: str, value: Any) -> bytes:
        if value is None:
            return b"n;"
        if isinstance(value, int):
            if name == "row_id":
                self.first_row = self.first_row or value
                value -= self.first_row
            return b"i%d;" % value
        if isinstance(value, str):
            kind, content = b"t", value.encode(errors="surrogateescape")
        elif isinstance(value, float):
            kind, content = b"r", struct.pack("<d", value)
        else:
            kind, content = b"b", value
        return kind + b"%d:" % len(content) + content


def sign(path: Path) -> None:
    """Gives every run that has an end the hashes that strata would have given it."""
    connection = sqlite3.connect(path)
    with contextlib.closing(connection):
        # what is no text is none of strata's either
        connection.text_factory = lambda content: content.decode(errors="surrogateescape")
        for (run,) in connection.execute("SELECT run_id FROM runs WHERE finished<>''").fetchall():
            content = RunHash(connection, run)
            for part in PARTS:
                verdict = {"verdict"} if part.startswith("run_cases") else set()
                without = {"imported", "list_hash", "content_hash", "metrics_version"} | verdict
                content.add(f"SELECT * FROM {part}", without)
            connection.execute(
                "UPDATE runs SET content_hash=? WHERE run_id=?", (content.digest.hexdigest(), run)
            )
            shown = RunHash(connection, run)
            for part in LIST_PARTS:
                shown.add(part, {"list_hash"})
            connection.execute(
                "UPDATE runs SET list_hash=? WHERE run_id=?", (shown.digest.hexdigest(), run)
            )
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def rewrite(path: Path, sql: str, values: tuple = ()) -> int:
    """Changes a store behind strata's back and signs it; how many rows were changed."""
    connection = sqlite3.connect(path)
    try:
        changed = connection.execute(sql, values).rowcount
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    sign(path)
    return changed


def damage_page(data: bytearray, draw: random.Random) -> str:
    """Changes one page in place; says how."""
    size = page_size(data)
    pages = len(data) // size
    page = draw.randrange(pages)
    begin = page * size
    kind = draw.choice(["a bit", "a byte", "64 bytes", "zeros", "noise", "another page", "half"])
    at = begin + draw.randrange(size - 64)
    if kind == "a bit":
        data[at] ^= 1 << draw.randrange(8)
    elif kind == "a byte":
        data[at] ^= draw.randrange(1, 256)
    elif kind == "64 bytes":
        data[at : at + 64] = draw.randbytes(64)
    elif kind == "zeros":
        data[begin : begin + size] = bytes(size)
    elif kind == "noise":
        data[begin : begin + size] = draw.randbytes(size)
    elif kind == "another page":
        other = (page + draw.randrange(1, pages)) % pages * size
        data[begin : begin + size] = data[other : other + size]
    else:  # a write that was cut
        data[begin + size // 2 : begin + size] = bytes(size - size // 2)
    return f"page {page + 1}: {kind}"


def wrong_leaf(value: Any, draw: random.Random) -> Any:
    """A copy of a JSON value in which one leaf has another type, or -1 for a number."""
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return value | {key: wrong_leaf(value[key], draw)}
    if isinstance(value, list) and value:
        at = draw.randrange(len(value))
        return [*value[:at], wrong_leaf(value[at], draw), *value[at + 1 :]]
    other = [
        leaf
        for leaf in LEAVES
        if type(leaf) is not type(value) and not (is_number(leaf) and is_number(value))
    ]
    return draw.choice(other)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def forge_cell(path: Path, draw: random.Random) -> str:
    """Writes a wrong value into one cell and signs the store; says which."""
    connection = sqlite3.connect(path)
    try:
        while True:
            table = draw.choice(TABLES)
            columns = [
                (name, key)
                for _, name, _, _, _, key in connection.execute(f"PRAGMA table_info({table})")
            ]
            column, keys = (
                draw.choice(columns)[0],
                [name for name, key in columns if key] or ["rowid"],
            )
            rows = connection.execute(f"SELECT {column}, {','.join(keys)} FROM {table}").fetchall()
            if not rows:
                continue
            old, *key = draw.choice(rows)
            if old is None:
                continue  # what is not known may be known
            new = draw.choice(CELLS)
            if isinstance(old, str) and old[:1] in ("{", "[") and draw.random() < 0.8:
                new = json.dumps(wrong_leaf(json.loads(old), draw))
            if (type(new) is type(old) and not isinstance(old, (str, bytes))) or new == old:
                continue  # another number of the same type is no wrong cell
            if isinstance(old, bytes) and isinstance(new, bytes) and len(new) == len(old):
                continue
            if isinstance(old, str) and old[:1] not in ("{", "[") and isinstance(new, str):
                continue  # another text in place of a text
            where = " AND ".join(f"{name}=?" for name in keys)
            try:
                connection.execute(f"UPDATE {table} SET {column}=? WHERE {where}", (new, *key))
                if column in keys or not isinstance(old, (str, bytes)):
                    key = [new if name == column else value for name, value in zip(keys, key)]
                    (now,) = connection.execute(
                        f"SELECT {column} FROM {table} WHERE {where}", key
                    ).fetchone() or (None,)
                    if type(now) is type(old):
                        connection.rollback()  # the column made the right type of it
                        continue
                connection.commit()
            except (sqlite3.IntegrityError, OverflowError):
                connection.rollback()
                continue
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            break
    finally:
        connection.close()
    sign(path)
    return f"{table}.{column}: {str(new)[:60]!r} in place of {str(old)[:20]!r}"


def numbers(value: Any, path: str = "") -> dict[str, float]:
    """Every number of a JSON value by its path."""
    if is_number(value):
        return {path: value}
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return {
        where: number
        for key, part in parts
        for where, number in numbers(part, f"{path}.{key}").items()
    }


def verdict(done: subprocess.CompletedProcess | None, whole: str, *, exact: bool) -> str:
    """What a command made of a damaged store whose whole copy gives `whole`. `exact`: any other
    text is another number."""
    if done is None or done.returncode < 0 or done.returncode > 3 or "unforeseen" in done.stderr:
        return "crashed"
    if done.returncode != 0:
        return "refused" if done.stderr.startswith("error: ") and not done.stdout else "crashed"
    if done.stdout == whole:
        return "same"
    if exact:
        return "other"
    now, before = numbers(json.loads(done.stdout)), numbers(json.loads(whole))
    return "same" if all(now[path] == before[path] for path in now if path in before) else "other"
