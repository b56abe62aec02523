"""How often values occur in moving ranges: the most frequent, and the entropy.

As for distinct values, a value's code is its first place in the order of its block, and codes are
counted up and down as rows come and go. Mode keeps the largest count of every group of codes in a
tree: O(log rows) for a row that comes or goes. Entropy keeps how many values occur how often, and
adds up over the different counts, of which a window of n rows has at most √(2n).
"""

import math

import numpy as np
import pyarrow as pa

from windrow.aggregates import Entropy
from windrow.columns.bits import lowest
from windrow.columns.distinct import coded
from windrow.columns.jit import njit
from windrow.columns.prepare import array_of
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, ordered_bounds
from windrow.columns.task import Task

_ONE = np.uint64(1)
_NOTHING = np.uint64(0)
_NO_TREE = np.empty(0, np.int32)


@njit(cache=True, nogil=True)
def _climb(tree, leaf):  # type: ignore[no-untyped-def]
    """Bring the larger of two counts up from a leaf that changed."""
    node = leaf >> 1
    while node:
        most = max(tree[2 * node], tree[2 * node + 1])
        if tree[node] == most:
            return
        tree[node] = most
        node >>= 1


@njit(cache=True, nogil=True)
def _first_most(tree, leaves):  # type: ignore[no-untyped-def]
    """The lowest code with the largest count."""
    node = 1
    while node < leaves:
        node = 2 * node if tree[2 * node] == tree[1] else 2 * node + 1
    return node - leaves


@njit(cache=True, nogil=True)
def _move(tree, leaves, many, words, upper, code, step):  # type: ignore[no-untyped-def]
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
            words[old >> 6] ^= _ONE << np.uint64(old & 63)
            if words[old >> 6] == _NOTHING:
                upper[old >> 12] ^= _ONE << np.uint64(old >> 6 & 63)
    if new:
        many[new] += 1
        if many[new] == 1:
            words[new >> 6] |= _ONE << np.uint64(new & 63)
            upper[new >> 12] |= _ONE << np.uint64(new >> 6 & 63)


@njit(cache=True, nogil=True)
def _entropy(many, words, upper, rows):  # type: ignore[no-untyped-def]
    """As ``Entropy.lower``, operation by operation; in nats."""
    total = 0.0
    for j in range(len(upper)):
        above = upper[j]
        while above != _NOTHING:
            word = (j << 6) + np.int64(lowest(above))
            above &= above - _ONE
            bits = words[word]
            while bits != _NOTHING:
                n = (word << 6) + np.int64(lowest(bits))
                bits &= bits - _ONE
                total += many[n] * (n / rows) * math.log1p((rows - n) / n)
    return total


@njit(cache=True, nogil=True)
def _slide(  # type: ignore[no-untyped-def]
    codes, size, widest, first, count, row, lo, hi, width, order, modes, entropies
):
    """The most frequent code of each range, or its entropy, whichever has room."""
    leaves = 1
    while leaves < size:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.int32)
    room = widest + 1 if len(entropies) else 0
    many = np.zeros(room, np.int64)
    words = np.zeros((room >> 6) + 1, np.uint64)
    upper = np.zeros((room >> 12) + 1, np.uint64)
    low = high = rows = 0
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
                    _move(tree, leaves, many, words, upper, codes[j], -1)
            rows = 0
            low = high = start
        while low > start:
            low -= 1
            if codes[low] >= 0:
                _move(tree, leaves, many, words, upper, codes[low], 1)
                rows += 1
        while low < start and low < high:
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
    span = block.span
    lo, hi, width, order = ordered_bounds(block, ranges)
    _slide(
        *(coded(block), block.size, ranges.widest(0, len(ranges))),
        *(span.first, span.last - span.first, span.low, lo, hi, width, order),
        *(modes, entropies),
    )


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
