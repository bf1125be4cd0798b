# SPDX-License-Identifier: Apache-2.0
"""Damages of a store, drawn from a seed: pages as a disk or another program would change them, and
cells as a forger would write them, with right checksums. And what a reading command made of one:
refused, the same numbers, others, crashed."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

SUM_BYTES = 8
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


def sign(path: Path) -> None:
    """Gives every page the checksum that strata would have given it (src/store/page_sums.hpp)."""
    data = bytearray(path.read_bytes())
    size = page_size(data)
    for number, at in enumerate(range(0, len(data), size), 1):
        end = at + size - SUM_BYTES
        content = number.to_bytes(8, "little") + bytes(data[at:end])
        data[end : at + size] = hashlib.sha256(content).digest()[:SUM_BYTES]
    path.write_bytes(data)


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
