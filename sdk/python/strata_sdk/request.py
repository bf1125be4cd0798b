# SPDX-License-Identifier: Apache-2.0
"""Requests of the driver, one JSON object a line (docs/protocol.md)."""

from __future__ import annotations

import json
from typing import Any

from .errors import BadRequest


class Request(dict):
    """A request whose missing fields are the sender's mistake."""

    def __missing__(self, name: str) -> Any:
        raise BadRequest(
            f"the request lacks the field `{name}`",
            "docs/protocol.md lists the fields of every operation",
        )


def parse(line: bytes) -> Request:
    """One request. Raises BadRequest."""
    try:
        request = json.loads(line)
    except ValueError as error:  # UnicodeDecodeError included
        raise BadRequest(f"the line is not JSON: {error}", "one JSON object a line") from None
    except RecursionError:
        raise BadRequest("the line is nested too deeply", "one JSON object a line") from None
    if not isinstance(request, dict):
        raise BadRequest(
            f"the line is a JSON {type(request).__name__}, not an object", "one JSON object a line"
        )
    return Request(request)


def natural(request: Request, name: str, least: int = 0, most: int | None = None) -> int:
    """A field that is an integer from `least`, to `most` if given. Raises BadRequest."""
    value = request[name]
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < least
        or (most is not None and value > most)
    ):
        raise BadRequest(
            f"`{name}` is {value!r}",
            f"allowed: an integer from {least}" + (f" to {most}" if most is not None else ""),
        )
    return value
