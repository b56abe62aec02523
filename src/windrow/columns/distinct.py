"""Distinct values of moving ranges, and how often each occurs: counted up and down."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
import pyarrow as pa

from windrow.aggregates import Distinct, Histogram
from windrow.columns.answer_types import counted_values
from windrow.columns.column import array_of
from windrow.columns.jit import njit
from windrow.columns.lists import list_array, lists_of, offsets_of
from windrow.columns.members import drop, empty_set, lowest_members, put, range_at
from windrow.columns.ranges import Array, Ranges
from windrow.columns.ranks import groups_of
from windrow.columns.sorted_blocks import Sorted, blocks_of, moves
from windrow.columns.task import Task


@njit(cache=True, nogil=True)
def _codes(rank, first, out):
    """Equal for rows of equal values; -1 where there is none."""
    for i in range(len(rank)):
        out[i] = first[rank[i]] if rank[i] >= 0 else -1


@njit(inline="always")
def _moved(times, words, upper, codes, low, high, step):
    """Count the codes of some rows once more, or once less; how many more are in the window."""
    change = 0
    for j in range(low, high):
        code = codes[j]
        if code < 0:
            continue
        times[code] += step
        if step > 0 and times[code] == 1:
            put(words, upper, code)
            change += 1
        elif step < 0 and times[code] == 0:
            drop(words, upper, code)
            change -= 1
    return change


@njit(cache=True, nogil=True)
def _slide(codes, size, first, count, row, lo, hi, width, order, counts, starts, found, often):
    """How many distinct codes each range has; and from ``starts`` on which, where these are given.

    ``often`` is for how often each occurs, if it has room. A code is the first place in order of
    its value, so that codes in order are values in order.
    """
    times = np.zeros(size + 1, np.int32)
    words, upper = empty_set(size)
    low = high = distinct = 0
    for i in range(count):
        start, end = range_at(i, first, row, lo, hi, width)
        if start >= end:
            continue
        if start >= high or end <= low:
            distinct += _moved(times, words, upper, codes, low, high, -1)
            low = high = start
        distinct += _moved(times, words, upper, codes, start, low, 1)
        distinct += _moved(times, words, upper, codes, high, end, 1)
        distinct += _moved(times, words, upper, codes, low, start, -1)
        distinct += _moved(times, words, upper, codes, end, high, -1)
        low, high = start, end
        answer = first + (order[i] if len(order) else i)
        counts[answer] = distinct
        if len(starts) and starts[answer] >= 0:
            lowest_members(words, upper, found, starts[answer], starts[answer] + distinct)
            for k in range(starts[answer], min(starts[answer] + distinct, len(often))):
                often[k] = times[found[k]]


_NOWHERE = np.empty(0, np.int64)


def coded(block: Sorted) -> Array:
    """A code for every row: the first place in order of its value; -1 where there is none."""
    first, _ = groups_of(block.keys)
    codes = np.empty(len(block.rank), np.int64)
    _codes(block.rank, first, codes)
    return codes


def _counted(
    block: Sorted,
    ranges: Ranges,
    counts: Array,
    starts: Array = _NOWHERE,
    found: Array = _NOWHERE,
    often: Array = _NOWHERE,
) -> None:
    _slide(coded(block), block.size, *moves(block, ranges), counts, starts, found, often)


def distinct_answers(task: Task) -> pa.Array:
    """The number of distinct values of every range, or their lists."""
    aggregate = task.aggregate
    assert isinstance(aggregate, Distinct)
    ranges: Ranges = task.ranges
    if aggregate.values:
        missing = task.missing()
        offsets, values, _ = _lists(task, missing, often=False)
        return list_array(task.column, values, offsets, missing)
    out = np.zeros(len(ranges), np.int64)
    blocks_of(task).each(lambda block: _counted(block, ranges, out))
    return array_of(out, task.missing() if task.asked else None)


def histogram_answers(task: Task) -> pa.Array:
    """The values of every range with how often each occurs, the most frequent first."""
    aggregate, column, missing = task.aggregate, task.column, task.missing()
    assert isinstance(aggregate, Histogram)
    offsets, values, often = _lists(task, missing, often=True)
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-often, owner))  # stable: equal ones stay in order of value
    if aggregate.most is not None:
        place = np.arange(len(owner)) - offsets[owner]
        order = order[place < aggregate.most]
        offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(offsets), aggregate.most))])
    parts = [column.arrow(values[order], None), array_of(often[order])]
    inside = pa.StructArray.from_arrays(parts, fields=list(counted_values(column.type)))
    return lists_of(inside, offsets, missing)


def _lists(task: Task, missing: Array | None, often: bool) -> tuple[Array, Array, Array]:
    """Where the values of every range begin; these values, and how often each occurs."""
    column, ranges = task.column, task.ranges
    lengths = np.zeros(len(ranges), np.int64)
    blocks = blocks_of(task, keep=True)
    blocks.each(lambda block: _counted(block, ranges, lengths))
    offsets = offsets_of(task, lengths, missing)
    starts = offsets[:-1].copy()
    if missing is not None:
        starts[missing] = -1
    found, again = np.empty(int(offsets[-1]), np.int64), np.empty(len(lengths), np.int64)
    counts = np.empty(len(found) if often else 0, np.int64)

    def collect(block: Sorted) -> Array:
        _counted(block, ranges, again, starts, found, counts)
        here = found[offsets[block.span.first] : offsets[block.span.last]]
        return block.values[here]

    kind = np.float64 if column.is_float else np.int64
    return offsets, np.concatenate([np.empty(0, kind), *blocks.each(collect)]), counts
