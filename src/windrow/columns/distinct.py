"""Distinct values of moving ranges: how often each is in the window, counted up and down."""

import numpy as np
import pyarrow as pa

from windrow.aggregates import Distinct
from windrow.columns.bits import lowest
from windrow.columns.jit import njit
from windrow.columns.lists import list_array, offsets_of
from windrow.columns.prepare import array_of
from windrow.columns.ranges import Array, Ranges
from windrow.columns.ranks import groups_of
from windrow.columns.sorted_blocks import Sorted, blocks_of, ordered_bounds
from windrow.columns.task import Task

_ONE = np.uint64(1)
_NOTHING = np.uint64(0)


@njit(cache=True, nogil=True)
def _codes(rank, first, out):  # type: ignore[no-untyped-def]
    """Equal for rows of equal values; -1 where there is none."""
    for i in range(len(rank)):
        out[i] = first[rank[i]] if rank[i] >= 0 else -1


@njit(cache=True, nogil=True)
def _more(times, words, upper, code):  # type: ignore[no-untyped-def]
    times[code] += 1
    if times[code] > 1:
        return 0
    words[code >> 6] |= _ONE << np.uint64(code & 63)
    upper[code >> 12] |= _ONE << np.uint64(code >> 6 & 63)
    return 1


@njit(cache=True, nogil=True)
def _less(times, words, upper, code):  # type: ignore[no-untyped-def]
    times[code] -= 1
    if times[code] > 0:
        return 0
    words[code >> 6] ^= _ONE << np.uint64(code & 63)
    if words[code >> 6] == _NOTHING:
        upper[code >> 12] ^= _ONE << np.uint64(code >> 6 & 63)
    return 1


@njit(cache=True, nogil=True)
def _slide(  # type: ignore[no-untyped-def]
    codes, size, first, count, row, lo, hi, width, order, counts, starts, found
):
    """How many distinct codes each range has; and from ``starts`` on which, where these are given.

    A code is the first place in order of its value, so that codes in order are values in order.
    """
    times = np.zeros(size + 1, np.int32)
    words = np.zeros((size >> 6) + 1, np.uint64)
    upper = np.zeros((size >> 12) + 1, np.uint64)
    low = high = distinct = 0
    for i in range(count):
        if width:
            start, end = max(first + i + 1 - width, 0) - row, first + i + 1 - row
        else:
            start, end = np.int64(lo[i]) - row, np.int64(hi[i]) - row
        if start >= end:
            continue
        if start >= high or end <= low:
            for j in range(low, high):
                if codes[j] >= 0:
                    _less(times, words, upper, codes[j])
            distinct = 0
            low = high = start
        while low > start:
            low -= 1
            if codes[low] >= 0:
                distinct += _more(times, words, upper, codes[low])
        while high < end:
            if codes[high] >= 0:
                distinct += _more(times, words, upper, codes[high])
            high += 1
        while low < start:
            if codes[low] >= 0:
                distinct -= _less(times, words, upper, codes[low])
            low += 1
        while high > end:
            high -= 1
            if codes[high] >= 0:
                distinct -= _less(times, words, upper, codes[high])
        answer = first + (order[i] if len(order) else i)
        counts[answer] = distinct
        if len(starts) and starts[answer] >= 0:
            place = starts[answer]
            for j in range(len(upper)):
                above = upper[j]
                while above != _NOTHING:
                    word = (j << 6) + np.int64(lowest(above))
                    above &= above - _ONE
                    bits = words[word]
                    while bits != _NOTHING:
                        found[place] = (word << 6) + np.int64(lowest(bits))
                        bits &= bits - _ONE
                        place += 1


def coded(block: Sorted) -> Array:
    """A code for every row: the first place in order of its value; -1 where there is none."""
    first, _ = groups_of(block.keys)
    codes = np.empty(len(block.rank), np.int64)
    _codes(block.rank, first, codes)
    return codes


_NOWHERE = np.empty(0, np.int64)


def _counted(block: Sorted, ranges: Ranges, counts: Array, starts: Array, found: Array) -> None:
    span = block.span
    lo, hi, width, order = ordered_bounds(block, ranges)
    _slide(
        *(coded(block), block.size),
        *(span.first, span.last - span.first, span.low, lo, hi, width, order),
        *(counts, starts, found),
    )


def distinct_answers(task: Task) -> pa.Array:
    """The number of distinct values of every range, or their lists."""
    aggregate = task.aggregate
    assert isinstance(aggregate, Distinct)
    ranges: Ranges = task.ranges
    if aggregate.values:
        return _lists(task)
    out = np.zeros(len(ranges), np.int64)
    blocks_of(task).each(lambda block: _counted(block, ranges, out, _NOWHERE, _NOWHERE))
    return array_of(out, task.missing() if task.asked else None)


def _lists(task: Task) -> pa.Array:
    column, ranges = task.column, task.ranges
    missing = task.missing()
    lengths = np.zeros(len(ranges), np.int64)
    blocks = blocks_of(task, keep=True)
    blocks.each(lambda block: _counted(block, ranges, lengths, _NOWHERE, _NOWHERE))
    offsets = offsets_of(task, lengths, missing)
    starts = offsets[:-1].copy()
    if missing is not None:
        starts[missing] = -1
    found, again = np.empty(int(offsets[-1]), np.int64), np.empty(len(lengths), np.int64)

    def collect(block: Sorted) -> Array:
        _counted(block, ranges, again, starts, found)
        here = found[offsets[block.span.first] : offsets[block.span.last]]
        return block.values[here]

    kind = np.float64 if column.is_float else np.int64
    values = np.concatenate([np.empty(0, kind), *blocks.each(collect)])
    return list_array(column, values, offsets, missing)
