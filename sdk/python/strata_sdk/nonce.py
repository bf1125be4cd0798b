# SPDX-License-Identifier: Apache-2.0
"""Makes the input of every timed iteration one that the level has not seen before, so that an answer which it keeps is no answer to the next question.

The iteration's number stands in the last bits of a few values of an input; the same as sdk/cpp/strata/nonce.hpp.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

_BITS = 3  # of a place: at most seven units in the last place of its value
_LOOKS = 512  # values that are looked at from a place on
_UNSIGNED = {numpy.dtype("float32"): numpy.uint32, numpy.dtype("float64"): numpy.uint64}


class Nonces:
    """Of a block. `first`: the number of its first iteration. `places`: drawn by the driver, each taken modulo the number of values of the entry's first
    input of float32 or float64, and on to the next value that is neither zero nor tiny nor infinite. A context: at its end every value is as it was.
    """

    def __init__(self, arrays: Sequence[tuple[numpy.ndarray, ...]], indices: Sequence[int], first: int, places: Sequence[int]) -> None:
        found = {entry: _find(arrays[entry], places) for entry in set(indices)}
        self.used = min((0 if one is None else len(one[1]) for one in found.values()), default=0)  # places, the fewest of all entries; 0: some entry has none
        self._before = [one for one in found.values() if one is not None]
        numbers = first + numpy.arange(len(indices), dtype=numpy.uint64)
        values = {entry: _numbered(one[2], numbers) for entry, one in found.items() if one is not None}
        # all that is computed, so that put() only writes
        self._rows = [None if (one := found[entry]) is None else (one[0], one[1], values[entry][i]) for i, entry in enumerate(indices)]

    def __enter__(self) -> Nonces:
        return self

    def __exit__(self, *_: object) -> None:
        for bits, at, was in self._before:
            bits[at] = was

    def put(self, iteration: int) -> None:
        """The number of this iteration of the block into its entry's input."""
        row = self._rows[iteration]
        if row is not None:
            bits, at, values = row
            bits[at] = values


def _find(inputs: tuple[numpy.ndarray, ...], places: Sequence[int]) -> tuple[Any, Any, Any] | None:
    """The input's bits, where a number may stand in them, and what stands there."""
    array = next((array for array in inputs if array.dtype in _UNSIGNED and array.size and array.flags.c_contiguous), None)
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
