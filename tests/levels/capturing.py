# SPDX-License-Identifier: Apache-2.0
"""Bundles of a file's networks, each captured once by the real capture, and lines of that file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from client import ROOT

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture  # noqa: E402

# of a comparison that decides states, not times
QUICK = ("--preset", "quick", "--threads", "1", "--restarts", "1", "--budget", "2s")


def captured_from(models: Path):
    """The fixture captured(network, fields of the spec) -> the bundle's folder."""

    @pytest.fixture(scope="module")
    def captured(tmp_path_factory):
        bundles: dict[str, Path] = {}

        def get(name: str, **fields) -> Path:
            if name not in bundles:
                bundles[name] = tmp_path_factory.mktemp(name) / "bundle"
                spec = {"model": f"{models}:{name}", "threads": 1} | fields
                capture(spec, bundles[name], lambda _text: None)
            return bundles[name]

        return get

    return captured


def line_in(models: Path, words: str) -> int:
    """The number of the one line with these words."""
    lines = models.read_text(encoding="utf-8").splitlines()
    [number] = [i for i, line in enumerate(lines, 1) if words in line]
    return number
