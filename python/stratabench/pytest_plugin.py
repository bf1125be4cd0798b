# SPDX-License-Identifier: Apache-2.0
"""pytest's fixture `strata`: assertions about the levels of a network. One that cannot be decided
fails as CouldNotTell, unless the test allows it."""

from __future__ import annotations

from typing import Any

import pytest

import stratabench
from stratabench.comparison import Case, Comparison, Row


class CouldNotTell(AssertionError):
    """Neither shown nor refuted: not a failure of the network, and not a proof."""


class Assertions:
    """What the fixture `strata` is.

    Attributes:
        results: the comparisons that were made, for a test that wants to look.
    """

    def __init__(self) -> None:
        self.results: list[Comparison] = []

    def compare(self, model: Any, example_inputs: Any = None, **options: Any) -> Comparison:
        """Compares as stratabench.compare does, without a bar of progress."""
        result = stratabench.compare(model, example_inputs, progress=False, **options)
        self.results.append(result)
        return result

    def assert_equal_work(
        self,
        model: Any,
        example_inputs: Any = None,
        *,
        levels: list[str],
        allow_undecided: bool = False,
        **options: Any,
    ) -> Comparison:
        """Asserts that each of `levels` gives what float64 gives, within its rounding. As little is
        timed as strata times.

        Args:
            model: as of `compare`.
            example_inputs: as of `compare`.
            levels: those that are proven.
            allow_undecided: a level without a verdict (unavailable, unsupported, unproven, out of
                memory) passes.
            **options: of `compare`.

        Raises:
            AssertionError: a level does other work.
            CouldNotTell: a level has no verdict.
        """
        effort = {"restarts": 1, "budget_s": 1.0} | options
        result = self.compare(model, example_inputs, levels=levels, **effort)
        for case in result.cases:
            wrong = [row for row in case.rows if row.state in ("unequal", "mistrusted")]
            if wrong:
                raise AssertionError(f"{case.id}: {_states(wrong)}")
            open_ones = [row for row in case.rows if row.state != "measured"]
            if open_ones and not allow_undecided:
                raise CouldNotTell(f"{case.id}: {_states(open_ones)}")
        return result

    def assert_not_slower(
        self,
        model: Any,
        example_inputs: Any = None,
        *,
        level: str,
        than: str,
        by: float = 0.05,
        allow_undecided: bool = False,
        **options: Any,
    ) -> Comparison:
        """Asserts that `level` takes at most 1 + `by` times as long as `than`, with its whole 99%
        CI.

        Args:
            model: as of `compare`.
            example_inputs: as of `compare`.
            level: the one that must not be slower.
            than: the one that it is compared with.
            by: the share that is allowed.
            allow_undecided: an interval on both sides of the bound, and a level without a number,
                pass.
            **options: of `compare`.

        Raises:
            AssertionError: the whole interval is beyond the bound, or a level does other work.
            CouldNotTell: the interval lies on both sides, or there is none.
        """
        if not by >= 0:
            raise ValueError(f"`by` is {by}; allowed: a share of 0 or more, as 0.05")
        result = self.compare(
            model, example_inputs, levels=[than, level], reference=than, **options
        )
        for case in result.cases:
            _judge(case, level, than, by, allow_undecided)
        return result


def _judge(case: Case, level: str, than: str, by: float, allow_undecided: bool) -> None:
    row, reference = case[level], case[than]
    wrong = [each for each in (row, reference) if each.state in ("unequal", "mistrusted")]
    if wrong:
        raise AssertionError(f"{case.id}: {_states(wrong)}")
    speedup, bound = row.speedup, 1 / (1 + by)
    if speedup is None or speedup.low is None or speedup.high is None:
        words = _states([each for each in (row, reference) if each.state != "measured"])
        verdict = f"there is no interval: {words or case.sentence}"
    elif speedup.high < bound:
        raise AssertionError(
            f"{case.id}: {level} takes {_times(speedup.high)} to {_times(speedup.low)} times as long "
            f"as {than}; allowed: {1 + by:.3g} times"
        )
    elif case.verdict == "not_reliable":
        verdict = case.sentence
    elif speedup.low >= bound:
        return
    else:
        verdict = (
            f"{level} takes {_times(speedup.high)} to {_times(speedup.low)} times as long as {than} "
            f"(99% CI), and {1 + by:.3g} lies between; a longer budget_s or an idle machine decides"
        )
    if not allow_undecided:
        raise CouldNotTell(f"{case.id}: {verdict}")


def _times(speedup: float) -> str:
    return f"{1 / speedup:.3g}" if speedup > 0 else "infinitely many"


def _states(rows: list[Row]) -> str:
    return "; ".join(f"{row.name} is {row.state}: {row.reason}" for row in rows)


@pytest.fixture
def strata() -> Assertions:
    """Assertions about the levels of a network (docs/python.md)."""
    return Assertions()
