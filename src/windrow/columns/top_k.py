"""The few largest or smallest values of moving ranges."""

import numpy as np
import pyarrow as pa

from windrow.aggregates import BottomK, TopK
from windrow.columns.bits import lowest
from windrow.columns.jit import njit
from windrow.columns.lists import list_array, offsets_of
from windrow.columns.prepare import Column
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, ordered_bounds
from windrow.columns.task import Task

_ONE = np.uint64(1)
_NOTHING = np.uint64(0)


@njit(cache=True, nogil=True)
def _put(words, upper, place):  # type: ignore[no-untyped-def]
    words[place >> 6] |= _ONE << np.uint64(place & 63)
    upper[place >> 12] |= _ONE << np.uint64(place >> 6 & 63)


@njit(cache=True, nogil=True)
def _drop(words, upper, place):  # type: ignore[no-untyped-def]
    words[place >> 6] ^= _ONE << np.uint64(place & 63)
    if words[place >> 6] == _NOTHING:
        upper[place >> 12] ^= _ONE << np.uint64(place >> 6 & 63)


@njit(cache=True, nogil=True)
def _lowest_few(  # type: ignore[no-untyped-def]
    places, size, first, count, row, lo, hi, width, order, offsets, found
):
    """The lowest places of each range, as many as its list has room for.

    A bit for every row of the window at its place in order, as for quantiles.
    """
    words = np.zeros((size >> 6) + 1, np.uint64)
    upper = np.zeros((size >> 12) + 1, np.uint64)
    low = high = 0
    for i in range(count):
        if width:
            start, end = max(first + i + 1 - width, 0) - row, first + i + 1 - row
        else:
            start, end = np.int64(lo[i]) - row, np.int64(hi[i]) - row
        if start >= end:
            continue
        if start >= high or end <= low:
            for j in range(low, high):
                if places[j] >= 0:
                    _drop(words, upper, places[j])
            low = high = start
        while low > start:
            low -= 1
            if places[low] >= 0:
                _put(words, upper, places[low])
        while high < end:
            if places[high] >= 0:
                _put(words, upper, places[high])
            high += 1
        while low < start:
            if places[low] >= 0:
                _drop(words, upper, places[low])
            low += 1
        while high > end:
            high -= 1
            if places[high] >= 0:
                _drop(words, upper, places[high])
        answer = first + (order[i] if len(order) else i)
        at, last = offsets[answer], offsets[answer + 1]
        j = 0
        while at < last:
            above = upper[j]
            while above != _NOTHING and at < last:
                word = (j << 6) + np.int64(lowest(above))
                above &= above - _ONE
                bits = words[word]
                while bits != _NOTHING and at < last:
                    found[at] = (word << 6) + np.int64(lowest(bits))
                    bits &= bits - _ONE
                    at += 1
            j += 1


def few_answers(task: Task) -> pa.Array:
    """The k largest, or smallest, values of every range."""
    column: Column = task.column
    ranges: Ranges = task.ranges
    aggregate = task.aggregate
    assert isinstance(aggregate, TopK | BottomK)
    largest = isinstance(aggregate, TopK)
    missing = task.missing()
    lo, hi = (bound.astype(np.int64) for bound in ranges.bounds())
    hi = np.maximum(lo, hi)
    if column.valid is not None:
        assert column.counts is not None
        lo, hi = column.counts[lo], column.counts[hi]
    offsets = offsets_of(task, np.minimum(hi - lo, aggregate.k), missing)
    found = np.empty(int(offsets[-1]), np.int64)

    def work(block: Sorted) -> Array:
        span = block.span
        rank = block.rank.astype(np.int64)
        places = np.where(rank < 0, -1, block.size - 1 - rank) if largest else rank
        bounds = ordered_bounds(block, ranges)
        _lowest_few(
            *(places, block.size, span.first, span.last - span.first, span.low, *bounds),
            *(offsets, found),
        )
        here = found[offsets[span.first] : offsets[span.last]]
        return block.values[block.size - 1 - here if largest else here]

    kind = np.float64 if column.is_float else np.int64
    values = np.concatenate([np.empty(0, kind), *blocks_of(task).each(work)])
    return list_array(column, values, offsets, missing)
