# SPDX-License-Identifier: Apache-2.0
"""Makes each fault a level of its own, so that one comparison meets all of them."""

import json
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent


def name_of(fault: str) -> str:
    """Of the level: `bias_zero:batch=8` is bias_zero_batch_is_8."""
    return fault.replace(":", "_").replace("=", "_is_").replace(">", "_above_")


def plant(levels: Path, faults: Iterable[str]) -> Path:
    """A folder for STRATA_LEVEL_PATH with a level per fault, called by the fault's name."""
    about = json.loads((HERE / "level.json").read_text(encoding="utf-8"))
    for fault in faults:
        name = name_of(fault)
        folder = levels / name
        folder.mkdir(parents=True)
        start = ["/usr/bin/env", f"STRATA_FAULT={fault}", "{python}", "-m", "strata_sdk", str(HERE)]
        (folder / "level.json").write_text(
            json.dumps(about | {"id": name, "start": start}), encoding="utf-8"
        )
    return levels
