# SPDX-License-Identifier: Apache-2.0
"""What `train`, `sweep` and a suite give: a document of tables (docs/results_schema.md)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratabench.errors import StrataError
from stratabench.result import Result

if TYPE_CHECKING:
    import pandas

SCHEMA = "strata.document/1"


class Table:
    """A table of a document.

    Attributes:
        id: its name in the document.
        title: what it shows.
        note: what to know beside it, or "".
        rows: dicts by column; a number is {"value": x}, with "low" and "high" where it has a 99%
            CI.
        json: all of it; `json["columns"]` says which unit a column has, or which `format`: seconds,
            bytes, a percent (as a share of one), ratio, count or digits.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self.json = about
        self.id: str = about["id"]
        self.title: str = about["title"]
        self.note: str = about.get("note", "")
        self.rows: list[dict[str, Any]] = about["rows"]

    def frame(self) -> pandas.DataFrame:
        """Gives a frame of pandas: columns by their ids; of a number with an interval also
        `<id>_low` and `<id>_high`."""
        from stratabench.frames import of_table

        return of_table(self.json)

    def __repr__(self) -> str:
        return f"<table {self.id}: {self.title}, {len(self.rows)} rows>"


class Document(Result):
    """A run of `train`, `sweep`, `timeit` or a suite: tables, with the answer in words."""

    @property
    def title(self) -> str:
        """What was asked."""
        return str(self.json["title"])

    @property
    def sentence(self) -> str:
        """The answer, in a sentence or two."""
        return str(self.json["summary"])

    @cached_property
    def facts(self) -> dict[str, str]:
        """The machine, the PyTorch, the command and the like."""
        return {fact["name"]: fact["value"] for fact in self.json["facts"]}

    @cached_property
    def tables(self) -> dict[str, Table]:
        """All of them, by their ids."""
        return {item["id"]: Table(item) for item in self._items() if item["kind"] == "table"}

    def _items(self) -> Iterator[dict[str, Any]]:
        for section in self.json["sections"]:
            yield from section["items"]

    @property
    def run(self) -> str:
        """Its id in the store; "": nothing is stored of it."""
        return str(self.facts.get("run", ""))

    @property
    def command(self) -> str:
        """What would be typed to ask for it."""
        return str(self.facts.get("command", ""))

    @property
    def warnings(self) -> list[str]:
        """What makes its numbers less certain, and what to do."""
        return [item["paragraph"] for item in self._items() if item["kind"] == "warning"]

    def table(self, name: str = "") -> pandas.DataFrame:
        """Gives one of `tables` as a frame of pandas; default: the first. Raises StrataError where
        there is none of that name."""
        if not self.tables:
            raise StrataError(f"{self.title} has no table", self.sentence)
        name = name or next(iter(self.tables))
        if name not in self.tables:
            raise StrataError(
                f"there is no table {name!r}", f"allowed: {', '.join(self.tables)}", where="name"
            )
        return self.tables[name].frame()

    def _repr_html_(self) -> str:
        from stratabench.html import document

        return document(self)

    def __repr__(self) -> str:
        return f"<{self.title}: {self.sentence}>"
