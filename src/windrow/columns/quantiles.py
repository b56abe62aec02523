"""Quantiles of moving ranges: a bit for every row in the window, found by counting.

A row enters and leaves by one bit of its block's order (``sorted_blocks``); the quantile is the
k-th bit, a step or two from where it was. No part of it grows with the window but the sort, which
is a few nanoseconds a row and doubling. Ranges that move back are answered in an order in which
they move little (Mo's: by groups of beginnings, then by ends), over one sort of all rows.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from windrow.aggregates import Quantile
from windrow.aggregates.quantile import positions
from windrow.columns.bits import flip, following, made, place_in, seek
from windrow.columns.prepare import Column, array_of
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, ordered_bounds, put_back
from windrow.errors import BadValue

_NOTHING = np.uint64(0)


@njit(cache=True, nogil=True)
def _slide(rank, size, lo, hi, place, fraction, low_place, high_place, between):  # type: ignore[no-untyped-def]
    """For every range the places, in order, of the two values that its quantile lies between."""
    words, blocks, heaps = made(size)
    word, before = _NOTHING, 0
    low = high = members = 0
    for i in range(len(lo)):
        start, end = lo[i], hi[i]
        if start >= end:
            low_place[i] = -1
            continue
        if start >= high or end <= low:
            for row in range(low, high):
                r = rank[row]
                if r >= 0:
                    flip(words, blocks, heaps, np.uint64(r), -1)
            word, before, members = _NOTHING, 0, 0
            low = high = start
        while low > start:
            low -= 1
            r = rank[low]
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), 1)
                before += 1 if (np.uint64(r) >> np.uint64(6)) < word else 0
                members += 1
        while high < end:
            r = rank[high]
            high += 1
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), 1)
                before += 1 if (np.uint64(r) >> np.uint64(6)) < word else 0
                members += 1
        while low < start:
            r = rank[low]
            low += 1
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), -1)
                before -= 1 if (np.uint64(r) >> np.uint64(6)) < word else 0
                members -= 1
        while high > end:
            high -= 1
            r = rank[high]
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), -1)
                before -= 1 if (np.uint64(r) >> np.uint64(6)) < word else 0
                members -= 1
        if members == 0:
            low_place[i] = -1
            continue
        k = place[members]
        word, before = seek(words, blocks, heaps, k, word, before)
        found = (word << np.uint64(6)) + place_in(words[word], k - before)
        low_place[i] = np.int64(found)
        t = fraction[members]
        between[i] = t
        if t != 0.0:
            high_place[i] = np.int64(following(words, blocks, found))


@njit(cache=True, nogil=True)
def _interpolate(values, low_place, high_place, between, out):  # type: ignore[no-untyped-def]
    """As ``windrow.aggregates.quantile.interpolated``, operation by operation."""
    for i in range(len(low_place)):
        if low_place[i] < 0:
            out[i] = 0.0
            continue
        a = values[low_place[i]]
        t = between[i]
        if t == 0.0:
            out[i] = a + 0.0
            continue
        b = values[high_place[i]]
        if a == b:
            out[i] = a + 0.0
            continue
        step = b - a
        if not abs(step) < np.inf:
            out[i] = a * (1.0 - t) + b * t + 0.0
        elif t >= 0.5:
            out[i] = b - step * (1.0 - t) + 0.0
        else:
            out[i] = a + step * t + 0.0


@njit(cache=True, nogil=True)
def _picked(values, low_place, out):  # type: ignore[no-untyped-def]
    for i in range(len(low_place)):
        out[i] = values[low_place[i]] if low_place[i] >= 0 else values.dtype.type(0)


def require_numbers(task: Any) -> None:
    """Refuse to interpolate between what is not a number."""
    kind = task.column.type
    if not task.column.is_number and not pa.types.is_decimal(kind):
        raise BadValue(
            f"{task.aggregate!r}: column {task.column.name!r} has type {kind}, and "
            f"method={task.aggregate.method!r} interpolates between numbers. Cast it to a number, "
            'or take method="lower", "higher", "nearest" or "inverted_cdf"'
        )


def quantile_answers(task: Any) -> pa.Array:
    """The quantile of every range."""
    aggregate: Quantile = task.aggregate
    if not aggregate.picks:
        require_numbers(task)
    column: Column = task.column
    ranges: Ranges = task.ranges
    size = len(ranges)
    out = np.zeros(size, np.float64 if column.is_float or not aggregate.picks else np.int64)
    most = _most_rows(ranges)
    place, fraction = positions(aggregate.method, aggregate.phi, np.arange(most + 1))
    floats = None if column.words is None or aggregate.picks else _as_floats(column.words)

    def work(block: Sorted) -> None:
        lo, hi, order = ordered_bounds(block, ranges)
        low, high = np.empty(len(lo), np.int64), np.zeros(len(lo), np.int64)
        between = np.zeros(len(lo))
        _slide(block.rank, block.size, lo, hi, place, fraction, low, high, between)
        values = block.values()
        found = np.empty(len(lo), out.dtype)
        if aggregate.picks:
            _picked(values, low, found)
        else:
            values = values.astype(np.float64) if floats is None else floats[values]
            _interpolate(values, low, high, between, found)
        put_back(out, block, found, order)

    blocks_of(task).each(work)
    missing = task.missing()
    return column.arrow(out, missing) if aggregate.picks else array_of(out, missing)


def _most_rows(ranges: Ranges) -> int:
    return max(0, ranges.widest(0, len(ranges)))


def _as_floats(words: pa.Array) -> Array:
    return np.array([0.0 if word is None else float(word) for word in words.to_pylist()] or [0.0])
