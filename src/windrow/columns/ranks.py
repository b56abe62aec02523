"""Ranks of the newest value of moving ranges: how many bits are set below its own."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
import pyarrow as pa

from windrow.aggregates import Rank
from windrow.columns.bits import popcount
from windrow.columns.column import array_of
from windrow.columns.jit import njit
from windrow.columns.members import range_at
from windrow.columns.ranges import Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, moves
from windrow.columns.task import Task

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def groups_of(keys):
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
def _add(tree, word, step):
    i = word + 1
    while i < len(tree):
        tree[i] += step
        i += i & -i


@njit(cache=True, nogil=True)
def _below(words, tree, number):
    """How many members are below a number: a Fenwick tree over words, and one word."""
    i = number >> 6
    inside = words[i] & ((_ONE << np.uint64(number & 63)) - _ONE)
    total = np.int64(popcount(inside))
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(inline="always")
def _moved(words, tree, rank, low, high, step):
    """Put some rows in (step 1), or take them out (step -1); how many more are in the window."""
    change = 0
    for j in range(low, high):
        r = np.int64(rank[j])
        if r >= 0:
            words[r >> 6] ^= _ONE << np.uint64(r & 63)
            _add(tree, r >> 6, step)
            change += step
    return change


@njit(cache=True, nogil=True)
def _ranks(rank, firsts, afters, first, count, row, lo, hi, width, order, method, percent, out):
    """As for quantiles; method: 0 average, 1 min, 2 max."""
    words = np.zeros((len(firsts) >> 6) + 2, np.uint64)
    tree = np.zeros(len(words) + 1, np.int64)
    low = high = members = 0
    for i in range(count):
        start, end = range_at(i, first, row, lo, hi, width)
        if start >= end:
            continue
        if start >= high or end <= low:
            members += _moved(words, tree, rank, low, high, -1)
            low = high = start
        members += _moved(words, tree, rank, start, low, 1)
        members += _moved(words, tree, rank, high, end, 1)
        members += _moved(words, tree, rank, low, start, -1)
        members += _moved(words, tree, rank, end, high, -1)
        low, high = start, end
        newest = end - 1
        while newest >= start and rank[newest] < 0:
            newest -= 1
        if newest < start:
            continue
        r = np.int64(rank[newest])
        smaller = _below(words, tree, np.int64(firsts[r]))
        equal = 1
        if afters[r] - firsts[r] > 1:
            equal = _below(words, tree, np.int64(afters[r])) - smaller
        if method == 0:
            found = smaller + (equal + 1) / 2.0
        else:
            found = float(smaller + (1 if method == 1 else equal))
        answer = first + (order[i] if len(order) else i)
        out[answer] = found / members if percent else found


def rank_answers(task: Task) -> pa.Array:
    """The rank of the newest value of every range."""
    aggregate = task.aggregate
    assert isinstance(aggregate, Rank)
    ranges: Ranges = task.ranges
    out = np.zeros(len(ranges))
    method = ("average", "min", "max").index(aggregate.method)

    def work(block: Sorted) -> None:
        first, after = groups_of(block.keys)
        _ranks(block.rank, first, after, *moves(block, ranges), method, aggregate.pct, out)

    blocks_of(task).each(work)
    return array_of(out, task.missing())
