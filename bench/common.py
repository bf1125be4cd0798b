# SPDX-License-Identifier: Apache-2.0
"""Runs ./strata compare and gives its result object; for the scripts beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def compare(*arguments: str) -> dict:
    """The result (docs/results_schema.md) of one comparison; ends the script with strata's own
    message if there is none."""
    done = subprocess.run(
        [str(ROOT / "strata"), "compare", *arguments, "--format", "json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not done.stdout:
        sys.exit(done.returncode or 1)
    return json.loads(done.stdout)
