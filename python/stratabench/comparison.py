# SPDX-License-Identifier: Apache-2.0
"""What `compare` gives: the result of docs/results_schema.md with types. `json` is the whole of it,
with every number that has no member here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratabench.errors import StrataError
from stratabench.profiles import Profile, read
from stratabench.result import Result

if TYPE_CHECKING:
    import pandas

SCHEMA = "strata.run/1"


@dataclass(frozen=True)
class Speedup:
    """Of a level over the reference level.

    Attributes:
        value: the reference's time divided by the level's: above 1 is faster.
        low: the lower end of its 99% CI; None: there is no interval.
        high: the upper end.
        verdict: "reference", "faster", "slower", "same" or "inconclusive".
    """

    value: float | None
    low: float | None
    high: float | None
    verdict: str

    def __str__(self) -> str:
        if self.value is None or self.verdict == "reference":
            return self.verdict
        ends = (
            "" if self.low is None or self.high is None else f" ({self.low:.2f} to {self.high:.2f})"
        )
        return f"{self.value:.2f}{ends} {self.verdict}"


@dataclass(frozen=True)
class Check:
    """One line of a proof.

    Attributes:
        check: what is checked.
        how: "observed" (by strata), "reported" (by the level) or "assumed".
        result: "pass", "fail" or "not_checked".
        value: what was found, as people read it.
        bound: what is allowed.
        detail: more about it, or "".
    """

    check: str
    how: str
    result: str
    value: str
    bound: str
    detail: str


@dataclass(frozen=True)
class Proof:
    """That a level does the work that the others do. True where it is shown.

    Attributes:
        verdict: "equal", "equal_looser" (equal within wider bounds), "unequal", "mistrusted" or
            "none".
        worst_ratio: its largest error, in units of eager's own rounding.
        checks: every line of it.
    """

    verdict: str
    worst_ratio: float | None
    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return self.verdict in ("equal", "equal_looser")


@dataclass(frozen=True)
class Edge:
    """A step between two levels of the ledger, and what it saves.

    Attributes:
        source: the level that it leaves.
        target: the level that it goes to.
        changes: what differs between the two.
        saves_ms: of one iteration, milliseconds; below 0: it costs; None: no saving is attributed
            to this step.
        low_ms: the lower end of its 99% CI.
        high_ms: the upper end.
        verdict: "faster", "slower", "same" or "inconclusive"; None with `saves_ms`.
    """

    source: str
    target: str
    changes: str
    saves_ms: float | None
    low_ms: float | None
    high_ms: float | None
    verdict: str | None

    def __str__(self) -> str:
        step = f"{self.source} -> {self.target}"
        if self.saves_ms is None:
            return f"{step}: no saving is attributed to it: {self.changes}"
        saved = f"{'saves' if self.saves_ms >= 0 else 'costs'} {abs(self.saves_ms):.3g} ms"
        if self.low_ms is not None and self.high_ms is not None:
            saved += f" (saving {self.low_ms:.3g} to {self.high_ms:.3g})"
        return f"{step}: {saved}: {self.changes}"


class Row:
    """A level (of one environment) in a case. `json` is all of it."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.json = about

    @property
    def name(self) -> str:
        """Level, variant and environment, as "compile", "compile@freezing", "compile[new]"."""
        variant = self.json["variant"]
        named = self.json["level"] + ("" if variant == "default" else f"@{variant}")
        return f"{named}[{self.json['environment']}]" if self.json["environment"] else named

    @property
    def state(self) -> str:
        """One of measured, unavailable, unsupported, unequal, unproven, mistrusted, out_of_memory,
        timeout, crashed, failed, skipped. Only what was measured has numbers."""
        return str(self.json["state"])

    @property
    def reason(self) -> str:
        """Why it has no number, and what to do; "" where it has one."""
        return " ".join(filter(None, (self.json["reason"], self.json["hint"])))

    @property
    def time_ms(self) -> float | None:
        """Milliseconds of one iteration (a batch; in training a step), input included; None: it has
        no number."""
        return (self.json["end_to_end_ms"] or {}).get("estimate")

    @property
    def speedup(self) -> Speedup | None:
        """Over the reference level; None: one of the two has no number."""
        ratio = self.json["ratio"]
        return ratio and Speedup(ratio["value"], ratio["low"], ratio["high"], ratio["verdict"])

    @property
    def peak_memory_bytes(self) -> int | None:
        """Bytes of the process's own memory at its peak, libraries included; None: not measured."""
        return (self.json["memory"] or {}).get("peak_private_bytes")

    @property
    def warm_start_ms(self) -> float | None:
        """Milliseconds from starting the process to the first result, with everything built; None:
        not measured."""
        return (self.json["startup"] or {}).get("warm_start_ms")

    @property
    def proof(self) -> Proof | None:
        """That it does equal work; None: the level did not come to its proof."""
        proof = self.json["proof"]
        if not proof:
            return None
        names = Check.__dataclass_fields__
        checks = tuple(Check(**{name: line[name] for name in names}) for line in proof["lines"])
        return Proof(proof["verdict"], proof["worst_ratio"], checks)

    @property
    def profile(self) -> Profile | None:
        """Where the time of an iteration goes; None: it was not asked for (`profile=True`)."""
        return read(self.json["profile"]) if self.json["profile"] else None

    def __repr__(self) -> str:
        time = f", {self.time_ms:.4g} ms" if self.time_ms is not None else f", {self.state}"
        return f"<{self.name}{time}{f', {self.speedup}' if self.speedup else ''}>"


class Case(Mapping[str, Row]):
    """A network with its mode, batch, size, precision and threads: a mapping of its rows by name.

    Attributes:
        id: what people read, as "resnet50/infer/b8/224x224/fp32/cpu/t2".
        rows: a Row for each level, the reference first.
        json: all of it.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self.json = about
        self.rows = tuple(Row(row) for row in about["rows"])
        self.id: str = about["id"]

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name} is not in {self.id}; it has {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sentence(self) -> str:
        """What to do, in a sentence."""
        return str((self.json["headline"] or {}).get("sentence", ""))

    @property
    def verdict(self) -> str:
        """One of move, stay, undecided, no_data, not_reliable, preliminary."""
        return str((self.json["headline"] or {}).get("verdict", "no_data"))

    @property
    def best(self) -> Row:
        """The level to move to, where one is shown to be faster and proven; else the reference,
        since no other is shown to be better. Raises StrataError where neither has a number."""
        found = self.recommended or self._measured(self.json["reference_level"])
        if found is None:
            raise StrataError(f"no level of {self.id} has a number", self.sentence)
        return found

    @property
    def recommended(self) -> Row | None:
        """The level that is shown to be faster and proven; None: there is none."""
        return self._measured((self.json["headline"] or {}).get("level"))

    def _measured(self, name: str | None) -> Row | None:
        for row in self.rows:
            if row.time_ms is not None and name in (row.name, row.json["level"]):
                return row
        return None

    @property
    def ledger(self) -> tuple[Edge, ...]:
        """What each step down the levels saves."""
        return tuple(_edge(edge) for edge in (self.json["ledger"] or {}).get("edges", []))

    @property
    def certificate(self) -> dict[str, Proof]:
        """The proof of each level that came to one."""
        return {row.name: row.proof for row in self.rows if row.proof}

    @property
    def equal(self) -> bool:
        """Whether every level that came to a number or a proof did equal work."""
        return all(row.state not in ("unequal", "mistrusted", "unproven") for row in self.rows)

    def __repr__(self) -> str:
        return f"<{self.id}: {self.sentence}>"


def _edge(edge: dict[str, Any]) -> Edge:
    saved = edge["difference_ms"] or {"value": None, "low": None, "high": None}
    value, low, high = (
        None if saved[end] is None else -saved[end] for end in ("value", "high", "low")
    )
    return Edge(edge["from"], edge["to"], edge["changes"], value, low, high, edge["verdict"])


class Comparison(Result):
    """A run of `compare`. Of one case it has the rows by name itself, and what the case has; of
    several (`batch=[1, 8]`) those raise StrataError: ask `cases`."""

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every combination of what was given as a list."""
        return tuple(Case(case) for case in self.json["cases"])

    @property
    def case(self) -> Case:
        """The only one. Raises StrataError where there are several."""
        if len(self.cases) != 1:
            names = ", ".join(case.id for case in self.cases)
            raise StrataError(
                f"this run has {len(self.cases)} cases: {names}", "ask one of them, as r.cases[0]"
            )
        return self.cases[0]

    def __getitem__(self, level: str) -> Row:
        return self.case[level]

    @property
    def run(self) -> str:
        """Its id in the store."""
        return str(self.json["run"]["id"])

    @property
    def command(self) -> str:
        """What would be typed to ask for it."""
        return str(self.json["run"]["command"])

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before it was done."""
        return bool(self.json["run"]["interrupted"])

    @property
    def warnings(self) -> list[str]:
        """What makes its numbers less certain, and what to do."""
        return [
            f"{warning['id']}: {warning['what']}; {warning['advice']}"
            for warning in self.json["warnings"]
        ]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Those of the case."""
        return self.case.rows

    @property
    def best(self) -> Row:
        """That of the case."""
        return self.case.best

    @property
    def verdict(self) -> str:
        """That of the case."""
        return self.case.verdict

    @property
    def sentence(self) -> str:
        """That of the case."""
        return self.case.sentence

    @property
    def ledger(self) -> tuple[Edge, ...]:
        """That of the case."""
        return self.case.ledger

    @property
    def certificate(self) -> dict[str, Proof]:
        """That of the case."""
        return self.case.certificate

    def table(self) -> pandas.DataFrame:
        """Gives a frame of pandas: a row a level, or a case and level. Columns have their units in
        their names; `speedup_low` and `speedup_high` are the ends of the 99% CI."""
        from stratabench.frames import comparison

        return comparison(self)

    def operations(self) -> pandas.DataFrame:
        """Gives a frame of pandas of all profiles: a row an operation, in the order of the
        iteration, with its case and level. Columns have their units in their names; `gflops_per_s`
        and `gbytes_per_s` are those of products whose work is known. Raises StrataError where no
        level has a profile: ask for one with `strata.profile`, or `profile=True`."""
        from stratabench.frames import operations

        return operations(self)

    def plot(self, ax: Any = None) -> Any:
        """Draws the time of each level with the 99% CI of its speedup, and gives the figure of
        matplotlib. `ax`: axes to draw the only case on (default: a new figure, axes a case)."""
        from stratabench.figures import comparison

        return comparison(self, ax)

    def _repr_html_(self) -> str:
        from stratabench.html import comparison

        return comparison(self)

    def __repr__(self) -> str:
        return "\n".join(
            [*(f"{case!r}" for case in self.cases), *(f"  {text}" for text in self.warnings)]
        )
