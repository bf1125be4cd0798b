# SPDX-License-Identifier: Apache-2.0
"""What all results have."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from stratabench.errors import StrataError


class Result:
    """What Comparison and Document have in common.

    Attributes:
        json: all of it, as `--format json` prints it (docs/results_schema.md).
        exit_code: what the command would end with.
        failed: why it ended before its end, or "".
        store: the file where the run lies; None: strata's own.
    """

    def __init__(
        self,
        result: dict[str, Any],
        exit_code: int = 0,
        failed: str = "",
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        self.json, self.exit_code, self.failed = result, exit_code, failed
        self.store = None if store is None else os.path.abspath(store)

    @property
    def run(self) -> str:
        """Its id in the store; "": it has none."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str] = "strata-report.html") -> Path:
        """Writes the whole report as a page and gives its path. The run is read from the store.
        Raises StrataError where nothing is stored of it, or the page cannot be written."""
        from stratabench.asking import write_page

        if not self.run:
            raise StrataError(
                "nothing is stored of this result, and a report is read from the store",
                "r.save(path) keeps it; its tables are in `tables`",
            )
        return write_page(self.run, path, self.store)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON, which `load` reads; at once as a whole, so that a reader never
        sees half of it."""
        path = Path(path)
        half = path.with_name(f".{path.name}.half")
        half.write_text(json.dumps(self.json), encoding="utf-8")
        os.replace(half, path)
        return path
