# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a result: the sentence to act on, and its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratabench.comparison import Comparison, Row
    from stratabench.documents import Document

NUMBER = "text-align:right;font-variant-numeric:tabular-nums;padding:2px 12px"
TEXT = "text-align:left;padding:2px 12px"


def comparison(result: Comparison) -> str:
    parts = []
    for case in result.cases:
        rows = [_cells(row, row is case.recommended) for row in case.rows]
        heads = ("level", "time", "speedup (99% CI)", "peak memory", "warm start", "")
        parts.append(f"<p><b>{escape(case.sentence)}</b><br><small>{escape(case.id)}</small></p>")
        parts.append(_table(heads, rows))
    parts += [f"<p><small>{escape(text)}</small></p>" for text in result.warnings]
    parts.append(f"<p><small>run {escape(result.run)}; r.report() writes all of it</small></p>")
    return "<div>" + "".join(parts) + "</div>"


def _cells(row: Row, is_best: bool) -> list[str]:
    name = escape(row.name)
    speedup, memory, start = row.speedup, row.peak_memory_bytes, row.warm_start_ms
    return [
        f"<b>{name}</b>" if is_best else name,
        escape(row.state) if row.time_ms is None else f"{row.time_ms:.4g} ms",
        "" if speedup is None else escape(str(speedup)),
        "" if memory is None else f"{memory / 1e6:,.0f} MB",
        "" if start is None else f"{start / 1e3:.2f} s",
        "" if row.state == "measured" else escape(row.json["reason_short"] or row.json["reason"]),
    ]


def document(result: Document) -> str:
    parts = [f"<p><b>{escape(result.title)}</b></p><p>{escape(result.sentence)}</p>"]
    for table in list(result.tables.values())[:1]:
        columns = table.json["columns"]
        rows = [
            [_cell(row.get(column["id"]), column.get("format")) for column in columns]
            for row in table.rows
        ]
        parts.append(_table([column["title"] for column in columns], rows))
    parts += [f"<p><small>{escape(text)}</small></p>" for text in result.warnings]
    stored = f"; run {escape(result.run)}; r.report() writes all of it" if result.run else ""
    parts.append(f"<p><small>tables: {escape(', '.join(result.tables))}{stored}</small></p>")
    return "<div>" + "".join(parts) + "</div>"


def _cell(cell: Any, form: str | None) -> str:
    if not isinstance(cell, dict):
        return "" if cell is None else escape(str(cell))
    value, low, high = (cell.get(end) for end in ("value", "low", "high"))
    if value is None:
        return escape(str(cell.get("reason", "")))
    ends = (
        "" if low is None or high is None else f" ({_number(low, form)} to {_number(high, form)})"
    )
    return _number(value, form) + ends


def _number(value: float, form: str | None) -> str:
    """As src/report/document.hpp says that people read a number of that format."""
    if form == "seconds":
        scales = ((60, 1 / 60, "min"), (1, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us"))
        for least, scale, unit in scales:
            if abs(value) >= least:
                return f"{value * scale:.3g} {unit}"
        return f"{value * 1e9:.3g} ns"
    if form == "bytes":
        for least, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if abs(value) >= least:
                return f"{value / least:.3g} {unit}"
        return f"{value:.0f} B"
    if form == "percent":
        return f"{100 * value:.2f}%"
    if form == "count":
        return f"{value:,.0f}"
    return f"{value:.2f}" if form == "ratio" else f"{value:.4g}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are escaped already."""
    styles = [TEXT, *[NUMBER] * (len(heads) - 1)]
    head = "".join(f'<th style="{style}">{escape(text)}</th>' for style, text in zip(styles, heads))
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
