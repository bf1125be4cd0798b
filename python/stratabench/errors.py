# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import Any


class StrataError(Exception):
    """What strata refused or could not do.

    Attributes:
        what: a sentence: what is wrong, what was got, what is allowed.
        fix: what to do about it, or "".
        where: the argument or path, where it is known as a value, else "".
        got: what stands there, as JSON, shortened, else "".
        allowed: bounds, or words with ", " between them, else "".
        exit_code: what the command `strata` would end with: 2 wrong usage, 3 something is missing,
            1 anything else.
        run: the id of the run that holds what was measured until then, or "".
    """

    def __init__(
        self,
        what: str,
        fix: str = "",
        *,
        where: str = "",
        got: str = "",
        allowed: str = "",
        exit_code: int = 1,
        run: str = "",
    ) -> None:
        super().__init__(f"{what}. {fix}" if fix else what)
        self.what, self.fix = what, fix
        self.where, self.got, self.allowed = where, got, allowed
        self.exit_code, self.run = exit_code, run

    @classmethod
    def of(cls, error: dict[str, Any], run: str | None) -> StrataError:
        """From the `error` of an answer (docs/engine.md)."""
        return cls(
            error["what"],
            error.get("fix", ""),
            where=error.get("where", ""),
            got=error.get("got", ""),
            allowed=error.get("allowed", ""),
            exit_code=error["exit_code"],
            run=run or "",
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a notebook's stop button.

    Attributes:
        result: what was measured until then; None: nothing was.
        run: the id of the run of the store that holds it, too, or "".
    """

    def __init__(self, result: Any = None, run: str = "") -> None:
        super().__init__(
            f"interrupted; what was measured is run {run} of the store"
            if run
            else "interrupted before anything was measured"
        )
        self.result, self.run = result, run
