# SPDX-License-Identifier: Apache-2.0
"""Results as figures of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stratabench.errors import StrataError

if TYPE_CHECKING:
    from stratabench.comparison import Case, Comparison

REFERENCE, OTHER, BEST = "#8a8f98", "#4878a8", "#2a8c5a"


def comparison(result: Comparison, ax: Any = None) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise StrataError(
            "figures need matplotlib, which this environment lacks",
            "pip install matplotlib; r.report() needs nothing",
            exit_code=3,
        ) from None
    cases = result.cases
    if ax is not None:
        _draw(ax, result.case)
        return ax.figure
    heights = [0.9 + 0.34 * max(1, len(_timed(case))) for case in cases]
    figure, axes = pyplot.subplots(
        len(cases),
        figsize=(7, sum(heights)),
        squeeze=False,
        height_ratios=heights,
        layout="constrained",
    )
    for case, one in zip(cases, axes[:, 0]):
        _draw(one, case)
    pyplot.close(figure)  # a notebook shows what a cell gives, and would show an open one again
    return figure


def _timed(case: Case) -> list[Any]:
    return [row for row in case.rows if row.time_ms is not None]


def _draw(ax: Any, case: Case) -> None:
    """Bars of milliseconds; the whiskers are the speedup's interval, from the reference's time."""
    rows = _timed(case)
    ax.set_title(case.id, fontsize=9, loc="left")
    if not rows:
        ax.text(0.5, 0.5, "no level has a number", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    best = case.recommended
    reference = next((row.time_ms for row in rows if row.json["reference"]), None)
    for place, row in enumerate(rows):
        colour = REFERENCE if row.json["reference"] else BEST if row is best else OTHER
        ax.barh(place, row.time_ms, color=colour, height=0.7)
        speedup = row.speedup
        if reference and speedup and speedup.low and speedup.high and not row.json["reference"]:
            ends = reference / speedup.high, reference / speedup.low
            ax.plot(ends, (place, place), color="black", linewidth=1.2)
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("ms for an iteration, whiskers: 99% CI of the speedup")
    ax.spines[["top", "right"]].set_visible(False)
