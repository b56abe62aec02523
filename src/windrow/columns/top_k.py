"""The few largest or smallest values of moving ranges."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
import pyarrow as pa

from windrow.aggregates import BottomK, TopK
from windrow.columns.column import Column
from windrow.columns.jit import njit
from windrow.columns.lists import list_array, offsets_of
from windrow.columns.members import drop, empty_set, lowest_members, put, range_at
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, moves
from windrow.columns.task import Task


@njit(inline="always")
def _put(words, upper, places, low, high):
    """Put some rows in."""
    for j in range(low, high):
        if places[j] >= 0:
            put(words, upper, places[j])


@njit(inline="always")
def _drop(words, upper, places, low, high):
    """Take some rows out."""
    for j in range(low, high):
        if places[j] >= 0:
            drop(words, upper, places[j])


@njit(cache=True, nogil=True)
def _lowest_few(places, size, first, count, row, lo, hi, width, order, offsets, found):
    """The lowest places of each range, as many as its list has room for.

    A bit for every row of the window at its place in order, as for quantiles.
    """
    words, upper = empty_set(size)
    low = high = 0
    for i in range(count):
        start, end = range_at(i, first, row, lo, hi, width)
        if start >= end:
            continue
        if start >= high or end <= low:
            _drop(words, upper, places, low, high)
            low = high = start
        _put(words, upper, places, start, low)
        _put(words, upper, places, high, end)
        _drop(words, upper, places, low, start)
        _drop(words, upper, places, end, high)
        low, high = start, end
        answer = first + (order[i] if len(order) else i)
        lowest_members(words, upper, found, offsets[answer], offsets[answer + 1])


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
        _lowest_few(places, block.size, *moves(block, ranges), offsets, found)
        here = found[offsets[span.first] : offsets[span.last]]
        return block.values[block.size - 1 - here if largest else here]

    kind = np.float64 if column.is_float else np.int64
    values = np.concatenate([np.empty(0, kind), *blocks_of(task).each(work)])
    return list_array(column, values, offsets, missing)
