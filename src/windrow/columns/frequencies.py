"""How often values occur in moving ranges: the most frequent, and the entropy.

As for distinct values, a value's code is its first place in the order of its block, and codes are
counted up and down as rows come and go. Mode keeps the largest count of every group of codes in a
tree: O(log rows) for a row that comes or goes. Entropy keeps how many values occur how often, and
adds up over the different counts, of which a window of n rows has at most √(2n).
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
import pyarrow as pa

from windrow.aggregates import Entropy
from windrow.columns.bits import lowest
from windrow.columns.column import array_of
from windrow.columns.distinct import coded
from windrow.columns.jit import njit
from windrow.columns.members import NOTHING, ONE, drop, empty_set, put, range_at
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, moves
from windrow.columns.task import Task


@njit(cache=True, nogil=True)
def _climb(tree, leaf):
    """Bring the larger of two counts up from a leaf that changed."""
    node = leaf >> 1
    while node:
        most = max(tree[2 * node], tree[2 * node + 1])
        if tree[node] == most:
            return
        tree[node] = most
        node >>= 1


@njit(cache=True, nogil=True)
def _first_most(tree, leaves):
    """The lowest code with the largest count."""
    node = 1
    while node < leaves:
        node = 2 * node if tree[2 * node] == tree[1] else 2 * node + 1
    return node - leaves


@njit(cache=True, nogil=True)
def _move(tree, leaves, many, words, upper, code, step):
    """Count a code once more, or once less; the leaves of the tree are the counts."""
    old = tree[leaves + code]
    new = old + step
    tree[leaves + code] = new
    if not len(many):
        _climb(tree, leaves + code)
        return
    if old:
        many[old] -= 1
        if many[old] == 0:
            drop(words, upper, old)
    if new:
        many[new] += 1
        if many[new] == 1:
            put(words, upper, new)


@njit(cache=True, nogil=True)
def _entropy(many, words, upper, rows):
    """As ``Entropy.lower``, operation by operation; in nats."""
    total = 0.0
    for j in range(len(upper)):
        above = upper[j]
        while above != NOTHING:
            word = (j << 6) + np.int64(lowest(above))
            above &= above - ONE
            bits = words[word]
            while bits != NOTHING:
                n = (word << 6) + np.int64(lowest(bits))
                bits &= bits - ONE
                total += many[n] * (n / rows) * math.log1p((rows - n) / n)
    return total


@njit(cache=True, nogil=True)
def _slide(codes, size, widest, first, count, row, lo, hi, width, order, modes, entropies):
    """The most frequent code of each range, or its entropy, whichever has room."""
    leaves = 1
    while leaves < size:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.int32)
    room = widest + 1 if len(entropies) else 0
    many = np.zeros(room, np.int64)
    words, upper = empty_set(room)
    low = high = rows = 0
    for i in range(count):
        start, end = range_at(i, first, row, lo, hi, width)
        if start >= end:
            continue
        # Tried and lost, by a sixth: a function for these loops, as for distinct values.
        if start >= high or end <= low:
            for j in range(low, high):
                if codes[j] >= 0:
                    _move(tree, leaves, many, words, upper, codes[j], -1)
            rows = 0
            low = high = start
        while low > start:
            low -= 1
            if codes[low] >= 0:
                _move(tree, leaves, many, words, upper, codes[low], 1)
                rows += 1
        while low < start:
            if codes[low] >= 0:
                _move(tree, leaves, many, words, upper, codes[low], -1)
                rows -= 1
            low += 1
        while high > end:
            high -= 1
            if codes[high] >= 0:
                _move(tree, leaves, many, words, upper, codes[high], -1)
                rows -= 1
        while high < end:
            if codes[high] >= 0:
                _move(tree, leaves, many, words, upper, codes[high], 1)
                rows += 1
            high += 1
        if rows:
            answer = first + (order[i] if len(order) else i)
            if len(modes):
                modes[answer] = _first_most(tree, leaves)
            else:
                entropies[answer] = _entropy(many, words, upper, rows)


def _slid(block: Sorted, ranges: Ranges, modes: Array, entropies: Array) -> None:
    widest = ranges.widest(0, len(ranges))
    _slide(coded(block), block.size, widest, *moves(block, ranges), modes, entropies)


def mode_answers(task: Task) -> pa.Array:
    """The most frequent value of every range; of several the smallest."""
    column, ranges = task.column, task.ranges
    out = np.zeros(len(ranges), np.float64 if column.is_float else np.int64)
    codes = np.full(len(ranges), -1, np.int64)

    def work(block: Sorted) -> None:
        span = block.span
        _slid(block, ranges, codes, np.empty(0))
        here = codes[span.first : span.last]
        known = here >= 0
        out[span.first : span.last][known] = block.values[here[known]]

    blocks_of(task).each(work)
    missing = task.missing()
    if column.words is not None and missing is not None and not len(column.words):
        return pa.nulls(len(out), column.type)
    return column.arrow(out, missing)


def entropy_answers(task: Task) -> pa.Array:
    """The entropy of every range."""
    aggregate = task.aggregate
    assert isinstance(aggregate, Entropy)
    out = np.zeros(len(task.ranges))
    nothing = np.empty(0, np.int64)
    blocks_of(task).each(lambda block: _slid(block, task.ranges, nothing, out))
    return array_of(out / math.log(aggregate.base), task.missing())
