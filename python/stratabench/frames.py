# SPDX-License-Identifier: Apache-2.0
"""Results as tables of pandas."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stratabench.errors import StrataError

if TYPE_CHECKING:
    import pandas

    from stratabench.comparison import Comparison


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise StrataError(
            "tables need pandas, which this environment lacks",
            "pip install pandas; rows are also in `.rows` and `.json`",
            exit_code=3,
        ) from None
    return pandas


def comparison(result: Comparison) -> pandas.DataFrame:
    rows = []
    for case in result.cases:
        for row in case.rows:
            speedup, memory = row.speedup, row.peak_memory_bytes
            rows.append(
                {
                    "case": case.id,
                    "level": row.name,
                    "state": row.state,
                    "time_ms": row.time_ms,
                    "speedup": speedup and speedup.value,
                    "speedup_low": speedup and speedup.low,
                    "speedup_high": speedup and speedup.high,
                    "verdict": speedup.verdict if speedup else None,
                    "peak_memory_mb": None if memory is None else memory / 1e6,
                    "warm_start_ms": row.warm_start_ms,
                    "proof": row.proof.verdict if row.proof else None,
                    "reason": row.reason,
                }
            )
    frame = _pandas().DataFrame(rows).set_index(["case", "level"])
    numbers = [name for name in frame if name.startswith(("time", "speedup", "peak", "warm"))]
    frame = frame.astype(dict.fromkeys(numbers, float))
    return frame.droplevel("case") if len(result.cases) == 1 else frame


def operations(result: Comparison) -> pandas.DataFrame:
    rows = [
        {"case": case.id, "level": row.name}
        | asdict(each)
        | {
            "gflops_per_s": each.flops / each.ms * 1e-6 if each.flops and each.ms else None,
            "gbytes_per_s": each.bytes / each.ms * 1e-6 if each.bytes and each.ms else None,
        }
        for case in result.cases
        for row in case.rows
        for each in (row.profile.operations if row.profile else ())
    ]
    if not rows:
        notes = [f"{r.name}: {r.profile.note}" for c in result.cases for r in c.rows if r.profile]
        raise StrataError(
            "no level has a profile" + (f": {'; '.join(notes)}" if notes else ""),
            "ask for one: strata.profile(...), or compare(..., profile=True)",
        )
    numbers = ["flops", "bytes", "gflops_per_s", "gbytes_per_s"]
    return _pandas().DataFrame(rows).astype(dict.fromkeys(numbers, float))


def of_table(table: dict[str, Any]) -> pandas.DataFrame:
    rows = []
    for row in table["rows"]:
        flat: dict[str, Any] = {}
        for column in table["columns"]:
            cell = row.get(column["id"])
            if not isinstance(cell, dict):
                flat[column["id"]] = cell
                continue
            flat[column["id"]] = cell.get("value")
            for end in ("low", "high"):
                if end in cell:
                    flat[f"{column['id']}_{end}"] = cell[end]
        rows.append(flat)
    return _pandas().DataFrame(rows)
