"""Quantiles and ranks of moving ranges: a bit for every row in the window, found by counting.

A row enters and leaves by one bit of its block's order (``sorted_blocks``); the quantile is the
k-th bit, a step or two from where it was. No part of it grows with the window but the sort, which
is a few nanoseconds a row and doubling. Ranges that move back are answered in an order in which
they move little (Mo's: by groups of beginnings, then by ends), over one sort of all rows.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from windrow.aggregates import Quantile, Rank
from windrow.aggregates.quantile import positions
from windrow.columns.bits import flip, following, made, place_in, popcount, seek
from windrow.columns.prepare import Column, array_of
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Blocks, Sorted, blocks_of, relative_bounds
from windrow.errors import BadValue

_ONE = np.uint64(1)
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
                before += (np.uint64(r) >> np.uint64(6)) < word
                members += 1
        while high < end:
            r = rank[high]
            high += 1
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), 1)
                before += (np.uint64(r) >> np.uint64(6)) < word
                members += 1
        while low < start:
            r = rank[low]
            low += 1
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), -1)
                before -= (np.uint64(r) >> np.uint64(6)) < word
                members -= 1
        while high > end:
            high -= 1
            r = rank[high]
            if r >= 0:
                flip(words, blocks, heaps, np.uint64(r), -1)
                before -= (np.uint64(r) >> np.uint64(6)) < word
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


def in_an_order(lo: Array, hi: Array, ranges: Ranges, rows: int) -> Array | None:
    """Ranges that move back, in an order in which their ends move little; None: as they come."""
    if ranges.monotone:
        return None
    group = max(1, int(rows / max(1.0, len(lo) ** 0.5)))
    groups = lo // group
    ends = np.where(groups & 1, -hi, hi)  # up and down by turns
    return np.lexsort((ends, groups))


def ordered_bounds(block: Sorted, ranges: Ranges) -> tuple[Array, Array, Array | None]:
    """A block's ranges from its first row, in the order to answer them, and that order."""
    lo, hi = relative_bounds(ranges, block.span)
    order = in_an_order(lo, hi, ranges, len(block.rank))
    return (lo, hi, None) if order is None else (lo[order], hi[order], order)


def put_back(out: Array, block: Sorted, found: Array, order: Array | None) -> None:
    """Answers of a block to their places."""
    here = out[block.span.first : block.span.last]
    if order is None:
        here[:] = found
    else:
        here[order] = found


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
    blocks: Blocks = blocks_of(task)
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

    blocks.each(work)
    missing = task.missing()
    return column.arrow(out, missing) if aggregate.picks else array_of(out, missing)


def _most_rows(ranges: Ranges) -> int:
    return max(0, ranges.widest(0, len(ranges)))


def _as_floats(words: pa.Array) -> Array:
    return np.array([0.0 if word is None else float(word) for word in words.to_pylist()] or [0.0])


# --- ranks ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def groups_of(keys):  # type: ignore[no-untyped-def]
    """Of every place in order, the first place with an equal value, and the first after those."""
    size = len(keys)
    first, after = np.empty(size, np.int32), np.empty(size, np.int32)
    for i in range(size):
        first[i] = first[i - 1] if i and keys[i] == keys[i - 1] else i
    for k in range(size):
        i = size - 1 - k
        after[i] = after[i + 1] if k and keys[i] == keys[i + 1] else i + 1
    return first, after


@njit(cache=True, nogil=True)
def _add(tree, word, step):  # type: ignore[no-untyped-def]
    i = word + 1
    while i < len(tree):
        tree[i] += step
        i += i & -i


@njit(cache=True, nogil=True)
def _below(words, tree, number):  # type: ignore[no-untyped-def]
    """How many members are below a number: a Fenwick tree over words, and one word."""
    i = number >> 6
    inside = words[i] & ((_ONE << np.uint64(number & 63)) - _ONE)
    total = np.int64(popcount(inside))
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(cache=True, nogil=True)
def _turn(words, tree, r, step):  # type: ignore[no-untyped-def]
    words[r >> 6] ^= _ONE << np.uint64(r & 63)
    _add(tree, r >> 6, step)


@njit(cache=True, nogil=True)
def _ranks(rank, first, after, lo, hi, method, percent, out):  # type: ignore[no-untyped-def]
    """Method: 0 average, 1 min, 2 max."""
    words = np.zeros((len(first) >> 6) + 2, np.uint64)
    tree = np.zeros(len(words) + 1, np.int64)
    low = high = members = 0
    for i in range(len(lo)):
        start, end = lo[i], hi[i]
        out[i] = 0.0
        if start >= end:
            continue
        if start >= high or end <= low:
            for row in range(low, high):
                if rank[row] >= 0:
                    _turn(words, tree, np.int64(rank[row]), -1)
            members = 0
            low = high = start
        while low > start:
            low -= 1
            if rank[low] >= 0:
                _turn(words, tree, np.int64(rank[low]), 1)
                members += 1
        while high < end:
            if rank[high] >= 0:
                _turn(words, tree, np.int64(rank[high]), 1)
                members += 1
            high += 1
        while low < start:
            if rank[low] >= 0:
                _turn(words, tree, np.int64(rank[low]), -1)
                members -= 1
            low += 1
        while high > end:
            high -= 1
            if rank[high] >= 0:
                _turn(words, tree, np.int64(rank[high]), -1)
                members -= 1
        newest = end - 1
        while newest >= start and rank[newest] < 0:
            newest -= 1
        if newest < start:
            continue
        r = np.int64(rank[newest])
        smaller = _below(words, tree, np.int64(first[r]))
        equal = 1
        if after[r] - first[r] > 1:
            equal = _below(words, tree, np.int64(after[r])) - smaller
        if method == 0:
            found = smaller + (equal + 1) / 2.0
        else:
            found = float(smaller + (1 if method == 1 else equal))
        out[i] = found / members if percent else found


def rank_answers(task: Any) -> pa.Array:
    """The rank of the newest value of every range."""
    aggregate: Rank = task.aggregate
    ranges: Ranges = task.ranges
    out = np.zeros(len(ranges))
    method = ("average", "min", "max").index(aggregate.method)

    def work(block: Sorted) -> None:
        lo, hi, order = ordered_bounds(block, ranges)
        first, after = groups_of(block.keys)
        found = np.empty(len(lo))
        _ranks(block.rank, first, after, lo, hi, method, aggregate.pct, found)
        put_back(out, block, found, order)

    blocks_of(task).each(work)
    return array_of(out, task.missing())
