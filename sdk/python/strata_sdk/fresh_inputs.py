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
        spots = {entry: _find(arrays[entry], places) for entry in set(entries)}
        # in use, the fewest of all entries; 0: some entry has none
        self.places = min(
            (0 if spot is None else len(spot[1]) for spot in spots.values()), default=0
        )
        self._before = [spot for spot in spots.values() if spot is not None]
        numbers = first + numpy.arange(len(entries), dtype=numpy.uint64)
        values = {
            entry: _numbered(spot[2], numbers) for entry, spot in spots.items() if spot is not None
        }
        # all that is computed, so that put() only writes
        self._rows = [
            None if (spot := spots[entry]) is None else (spot[0], spot[1], values[entry][i])
            for i, entry in enumerate(entries)
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
    at: list[int] = []
    for place in places:
        looked = (place % flat.size + numpy.arange(min(flat.size, _LOOKS))) % flat.size
        values = flat[looked]
        good = looked[numpy.isfinite(values) & (numpy.abs(values) > 1e-30)]
        at.extend([int(index) for index in good if int(index) not in at][:1])
    if not at:
        return None
    bits, where = flat.view(_UNSIGNED[array.dtype]), numpy.array(at)
    return bits, where, bits[where].copy()


def _numbered(was: numpy.ndarray, numbers: numpy.ndarray) -> numpy.ndarray:
    """What stands at the places with each number in the last bits, a row a number."""
    shifts = _BITS * numpy.arange(was.size, dtype=numpy.uint64)
    digits = (numbers[:, None] >> shifts) & numpy.uint64(2**_BITS - 1)
    return (was & ~was.dtype.type(2**_BITS - 1)) | digits.astype(was.dtype)
