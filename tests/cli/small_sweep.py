# SPDX-License-Identifier: Apache-2.0
"""A sweep of a small network of images, as JSON."""

from __future__ import annotations

import json

from conftest import IMAGES


def sweep(strata, levels: str, *more: str):
    (strata.folder / "net.py").write_text(IMAGES, encoding="utf-8")
    done = strata.run(
        "sweep",
        "net.py:build",
        "--levels",
        levels,
        "--threads",
        "1",
        "--store",
        str(strata.store),
        "--order-seed",
        "3",
        "--format",
        "json",
        *more,
    )
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    return (
        done,
        document,
        {
            item["id"]: item
            for section in document["sections"]
            for item in section["items"]
            if "id" in item
        },
    )


SHORT = ("--restarts", "3", "--point-time", "1s")
