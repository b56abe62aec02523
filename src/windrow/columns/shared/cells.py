"""Partials as words in arrays, and ⊕ on them, chosen by the array's type when a kernel is compiled.

    int64,  one word    the larger                     Max, Min (all bits turned), First, Last
    int64,  two words   (key, n): the larger key's n   MaxCount (n ≥ 0 of equal keys are added),
                                                       ArgMax (n = ~row: the largest is the oldest)
    uint64, one word    the sum, modulo 2**64          Count
    uint64, two words   the sum, modulo 2**128         Sum and Mean of integers

So each structure's kernels are written once. Two words are a record, whose places are a constant
apart: with a second dimension every place would be multiplied out. Sums wrap around without harm:
only the sum of the rows that are asked for must fit.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from windrow.columns.ranges import Array

U = np.uint64
PAIR = np.dtype([("low", np.int64), ("high", np.int64)])
WIDE = np.dtype([("low", np.uint64), ("high", np.uint64)])
LEAST = np.iinfo(np.int64).min
"""What never wins: the key of a row that is missing."""


def load(cells: Array, i: Any) -> Any:
    """The partial in a place."""
    raise NotImplementedError


def store(cells: Array, i: Any, partial: Any) -> None:
    """Put a partial into a place."""
    raise NotImplementedError


def lift(cells: Array, items: Array, i: Any) -> Any:
    """The partial of a row."""
    raise NotImplementedError


def identity(cells: Array) -> Any:
    """The partial of no rows."""
    raise NotImplementedError


def combine(a: Any, b: Any) -> Any:
    """⊕."""
    raise NotImplementedError


def inverse(total: Any, oldest: Any) -> Any:
    """Taking rows out again, where ⊕ is addition."""
    raise NotImplementedError


@overload(load)
def _load(cells, i):
    if isinstance(cells.dtype, types.Record):
        return lambda cells, i: (cells[U(i)].low, cells[U(i)].high)
    return lambda cells, i: cells[U(i)]


@overload(store)
def _store(cells, i, partial):
    if isinstance(cells.dtype, types.Record):

        def two(cells, i, partial):
            cells[U(i)].low = partial[0]
            cells[U(i)].high = partial[1]

        return two

    def one(cells, i, partial):
        cells[U(i)] = partial

    return one


def _signed(cells: Any) -> bool:
    kind = cells.dtype
    return bool((kind.typeof("low") if isinstance(kind, types.Record) else kind).signed)


@overload(lift)
def _lift(cells, items, i):
    if not isinstance(items.dtype, types.Integer):
        return None  # floats need a grid
    two = isinstance(cells.dtype, types.Record)
    if _signed(cells):
        if two:
            return lambda cells, items, i: (items[U(i), U(0)], items[U(i), U(1)])
        return lambda cells, items, i: items[U(i)]
    if two:
        return lambda cells, items, i: (U(items[U(i)]), U(items[U(i)] >> 63))
    return lambda cells, items, i: U(items[U(i)])


@overload(identity)
def _identity(cells):
    two = isinstance(cells.dtype, types.Record)
    if _signed(cells):
        if two:
            return lambda cells: (np.int64(LEAST), np.int64(LEAST))
        return lambda cells: np.int64(LEAST)
    if two:
        return lambda cells: (U(0), U(0))
    return lambda cells: U(0)


@overload(combine)
def _combine(a, b):
    if isinstance(a, types.Integer):
        if a.signed:
            return lambda a, b: a if a > b else b
        return lambda a, b: a + b
    if a.dtype.signed:

        def pair(a, b):
            if a[0] != b[0]:
                return a if a[0] > b[0] else b
            if a[1] < 0 or b[1] < 0:  # places, or nothing on one side
                return (a[0], max(a[1], b[1]))
            return (a[0], a[1] + b[1])

        return pair

    def wide(a, b):
        low = a[0] + b[0]
        return (low, a[1] + b[1] + U(low < a[0]))

    return wide


@overload(inverse)
def _inverse(total, oldest):
    if isinstance(total, types.Integer):
        return lambda total, oldest: total - oldest

    def wide(total, oldest):
        return (
            total[0] - oldest[0],
            total[1] - oldest[1] - U(total[0] < oldest[0]),
        )

    return wide


def no_cells(kind: str, size: int) -> Array:
    """Places for ``size`` partials of a kind, each of no rows."""
    if kind == "larger":
        return np.full(size, LEAST, np.int64)
    if kind == "pair":
        return np.full((size, 2), LEAST, np.int64).view(PAIR)[:, 0]
    return np.zeros(size, np.uint64 if kind == "count" else WIDE)


def words(cells: Array) -> Array:
    """The two words of each cell, side by side."""
    flat: Array = cells.view(cells.dtype["low"])
    return flat.reshape(-1, 2)
