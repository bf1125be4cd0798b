# SPDX-License-Identifier: Apache-2.0
"""Where the time of an iteration goes at a level: the operations of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """A call of an iteration, in the order in which they run.

    Attributes:
        operation: its name, as the level calls it.
        kernel: what computes it; "" where the level does not tell.
        layer: the path of its module; "" is the network itself, None is not known.
        shapes: of its inputs.
        ms: milliseconds that it takes.
        gap_ms: milliseconds since the end of the one before.
        flops: what it computes, of products in inference; None: not known, or no product.
        bytes: the least that it reads and writes, likewise.
    """

    operation: str
    kernel: str
    layer: str | None
    shapes: tuple[tuple[int, ...], ...]
    ms: float
    gap_ms: float
    flops: float | None
    bytes: float | None


@dataclass(frozen=True)
class Profile:
    """Where an iteration's time goes. Times are means over the faster half of those that were
    recorded, so that operations, what lies before each and `after_ms` add up to `profiled_ms`.

    Attributes:
        operations: of an iteration.
        after_ms: milliseconds from the last one's end to the iteration's.
        profiled_ms: milliseconds of an iteration while its operations are recorded.
        plain_ms: of one of the same process while they are not.
        note: why there are no operations; "" where there are.
    """

    operations: tuple[Operation, ...]
    after_ms: float
    profiled_ms: float
    plain_ms: float
    note: str

    @property
    def between_ms(self) -> float:
        """Milliseconds of an iteration in which no operation ran: interpreter, dispatcher,
        allocator, waiting."""
        return self.after_ms + sum(each.gap_ms for each in self.operations)


def read(about: dict[str, Any]) -> Profile:
    names = [name for name in Operation.__dataclass_fields__ if name != "shapes"]
    operations = (
        Operation(
            shapes=tuple(tuple(shape) for shape in each["shapes"]),
            **{name: each.get(name) for name in names},
        )
        for each in about["operations"]
    )
    numbers = {name: about[name] for name in ("after_ms", "profiled_ms", "plain_ms", "note")}
    return Profile(operations=tuple(operations), **numbers)
