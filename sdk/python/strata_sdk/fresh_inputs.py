# SPDX-License-Identifier: Apache-2.0
"""Keeps a level from answering a timed iteration with what it kept (docs/protocol.md, measure):
each iteration's number stands in the last bits of a few values of its input, so that no input was
seen before, and one iteration finds the input of another entry in its memory. The same as
sdk/cpp/strata/fresh_inputs.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

_BITS = 3  # of a place: at most seven units in the last place of its value
_LOOKS = 512  # values that are looked at from a place on
_NEAR = 16  # of these, as many as are looked at for all places at once
_UNSIGNED = {numpy.dtype("float32"): numpy.uint32, numpy.dtype("float64"): numpy.uint64}


class FreshInputs:
    """Of a block. `arrays`: the inputs of each entry of the ring, and of others behind it; `first`:
    the number of the block's first iteration; `places`: drawn by the driver, each taken modulo the
    number of values of the entry's first input of float32 or float64, and on to the next value that
    is finite and neither zero nor tiny; each holds three bits. In iteration `at` the entry holds
    what entry `other` does (None: what it always does; always in training, where labels stay). A
    context: at its end the ring is as it was.
    """

    def __init__(
        self,
        arrays: Sequence[tuple[numpy.ndarray, ...]],
        indices: Sequence[int],
        first: int,
        places: Sequence[int],
        at: int,
        other: int | None,
    ) -> None:
        entries = list(indices)
        self._exchange_at, self._exchanged = -1, False
        if other is not None and other != entries[at]:
            self._exchange_at, self._pairs = at, list(zip(arrays[entries[at]], arrays[other]))
            entries[at] = other
        # of all entries: what a request takes must not grow with its iterations
        spots = [_find(inputs, places) for inputs in arrays]
        # in use, the fewest of all entries; 0: some entry has none
        self.places = min((0 if spot is None else spot[1].size for spot in spots), default=0)
        self._before = [spot for spot in spots if spot is not None]
        digits = _digits(first + numpy.arange(len(entries), dtype=numpy.uint64), len(places))
        # all that is computed, so that put() only writes
        self._rows = [
            None if (spot := spots[entry]) is None else (spot[0], spot[1], _numbered(spot[2], row))
            for entry, row in zip(entries, digits)
        ]

    def __enter__(self) -> FreshInputs:
        return self

    def __exit__(self, *_: object) -> None:
        if self._exchanged:
            self._exchange()
        for bits, at, was in self._before:
            bits[at] = was

    def put(self, iteration: int) -> None:
        """Before the iteration of the block, outside of its time."""
        if self._exchanged:
            self._exchange()
        row = self._rows[iteration]
        if row is not None:
            bits, at, values = row
            bits[at] = values
        if iteration == self._exchange_at:
            self._exchange()

    def _exchange(self) -> None:
        for spot, other in self._pairs:
            before = spot.copy()
            spot[...] = other
            other[...] = before
        self._exchanged = not self._exchanged


def _find(inputs: tuple[numpy.ndarray, ...], places: Sequence[int]) -> tuple[Any, Any, Any] | None:
    """The input's bits, where a number may stand in them, and what stands there."""
    array = next(
        (
            array
            for array in inputs
            if array.dtype in _UNSIGNED and array.size and array.flags.c_contiguous
        ),
        None,
    )
    if array is None:
        return None
    flat = array.reshape(-1)
    size = flat.size
    starts = [place % size for place in places]

    def look(start: Any, looks: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        where = (start + numpy.arange(min(size, looks))) % size
        values = flat[where]
        return where, numpy.isfinite(values) & (numpy.abs(values) > 1e-30)

    at: list[int] = []
    near, can_hold = look(numpy.array(starts, dtype=numpy.int64)[:, None], _NEAR)
    for start, where, good in zip(starts, near, can_hold):
        index = _first(where[good], at)
        if index is None:
            where, good = look(start, _LOOKS)
            index = _first(where[good], at)
        if index is not None:
            at.append(index)
    if not at:
        return None
    bits, places_in_use = flat.view(_UNSIGNED[array.dtype]), numpy.array(at)
    return bits, places_in_use, bits[places_in_use].copy()


def _first(indices: numpy.ndarray, taken: Sequence[int]) -> int | None:
    """That is not taken: one of the first few, since few are."""
    return next((i for i in indices[: len(taken) + 1].tolist() if i not in taken), None)


def _digits(numbers: numpy.ndarray, places: int) -> numpy.ndarray:
    """A row a number: its last bits for each place."""
    shifts = _BITS * numpy.arange(places, dtype=numpy.uint64)
    return (numbers[:, None] >> shifts) & numpy.uint64(2**_BITS - 1)


def _numbered(was: numpy.ndarray, digits: numpy.ndarray) -> numpy.ndarray:
    """What stands at the places with a number in the last bits."""
    return (was & ~was.dtype.type(2**_BITS - 1)) | digits[: was.size].astype(was.dtype)
