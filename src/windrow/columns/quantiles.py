"""Quantiles of moving ranges: a bit for every row in the window, found by counting.

A row enters and leaves by one bit of its block's order (``sorted_blocks``); the quantile is the
k-th bit, a step or two from where it was. No part of it grows with the window but the sort, which
is a few nanoseconds a row and doubling. Ranges that move back are answered in an order in which
they move little (Mo's: by groups of beginnings, then by ends), over one sort of all rows.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
import pyarrow as pa

from windrow.aggregates import Quantile
from windrow.aggregates.quantile import positions
from windrow.columns.bits import flip, following, made, place_in, seek
from windrow.columns.column import Column, array_of
from windrow.columns.decimals import floats_of
from windrow.columns.jit import njit
from windrow.columns.members import range_at
from windrow.columns.radix import float_of, integer_of
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sorted_blocks import Sorted, blocks_of, moves
from windrow.columns.task import Task
from windrow.errors import BadValue

_NOTHING = np.uint64(0)


FLOATS, INTEGERS, WORDS = 0, 1, 2
"""What keys were made of; numbers of words come from a table."""


@njit(cache=True, nogil=True)
def _number(key, kind, numbers):
    if kind == FLOATS:
        return float_of(key)
    if kind == INTEGERS:
        return float(integer_of(key))
    return numbers[integer_of(key)]


@njit(cache=True, nogil=True)
def _interpolated(a, b, t):
    """As ``windrow.aggregates.quantile.interpolated``, operation by operation."""
    if a == b:
        return a + 0.0
    step = b - a
    if not abs(step) < np.inf:
        return a * (1.0 - t) + b * t + 0.0
    if t >= 0.5:
        return b - step * (1.0 - t) + 0.0
    return a + step * t + 0.0


@njit(inline="always")
def _moved(words, blocks, heaps, rank, low, high, step, word):
    """Put some rows in, or take them out; how many more are in the window, and before a word."""
    members = before = 0
    j = low
    while j < high:
        r = rank[np.uint64(j)]
        j += 1
        if r >= 0:
            flip(words, blocks, heaps, np.uint64(r), step)
            before += step if (np.uint64(r) >> np.uint64(6)) < word else 0
            members += step
    return members, before


@njit(cache=True, nogil=True)
def _slide(
    rank, keys, kind, numbers, first, count, row, lo, hi, width, order, place, fraction, out, picked
):
    """The quantile of every range into ``out``, or as integers into ``picked`` where given."""
    words, blocks, heaps = made(len(keys))
    word, before = _NOTHING, 0
    low = high = members = 0
    for i in range(count):
        start, end = range_at(i, first, row, lo, hi, width)
        if start >= end:
            continue
        if start >= high or end <= low:
            _moved(words, blocks, heaps, rank, low, high, -1, word)
            word, before, members = _NOTHING, 0, 0
            low = high = start
        more, below = _moved(words, blocks, heaps, rank, start, low, 1, word)
        members, before = members + more, before + below
        more, below = _moved(words, blocks, heaps, rank, high, end, 1, word)
        members, before = members + more, before + below
        less, below = _moved(words, blocks, heaps, rank, low, start, -1, word)
        members, before = members + less, before + below
        less, below = _moved(words, blocks, heaps, rank, end, high, -1, word)
        members, before = members + less, before + below
        low, high = start, end
        if members == 0:
            continue
        k = place[np.uint64(members)]
        word, before = seek(words, blocks, heaps, k, word, before)
        found = (word << np.uint64(6)) + place_in(words[word], k - before)
        answer = np.uint64(first + (order[i] if len(order) else i))
        if len(picked):
            picked[answer] = integer_of(keys[found])
            continue
        a = _number(keys[found], kind, numbers)
        t = fraction[np.uint64(members)]
        if t == 0.0:
            out[answer] = a + 0.0
        else:
            b = _number(keys[following(words, blocks, found)], kind, numbers)
            out[answer] = _interpolated(a, b, t)


def require_numbers(aggregate: Quantile, column: Column) -> None:
    """Refuse to interpolate between what is not a number."""
    kind = column.type
    if not column.is_number and not pa.types.is_decimal(kind):
        raise BadValue(
            f"{aggregate!r}: column {column.name!r} has type {kind}, and "
            f"method={aggregate.method!r} interpolates between numbers. Cast it to a number, "
            'or take method="lower", "higher", "nearest" or "inverted_cdf"'
        )


def quantile_answers(task: Task) -> pa.Array:
    """The quantile of every range."""
    aggregate = task.aggregate
    assert isinstance(aggregate, Quantile)
    if not aggregate.picks:
        require_numbers(aggregate, task.column)
    column: Column = task.column
    ranges: Ranges = task.ranges
    whole = aggregate.picks and not column.is_float
    out = np.zeros(0 if whole else len(ranges))
    picked = np.zeros(len(ranges) if whole else 0, np.int64)
    place, fraction = positions(aggregate.method, aggregate.phi, np.arange(_most_rows(ranges) + 1))
    kind = FLOATS if column.is_float else INTEGERS if column.words is None else WORDS
    numbers = _as_floats(column.words) if kind == WORDS and not whole else np.empty(0)

    def work(block: Sorted) -> None:
        _slide(
            *(block.rank, block.keys, kind, numbers),
            *moves(block, ranges),
            *(place, fraction, out, picked),
        )

    blocks_of(task).each(work)
    missing = task.missing()
    answers = picked if whole else out
    return column.arrow(answers, missing) if aggregate.picks else array_of(answers, missing)


def _most_rows(ranges: Ranges) -> int:
    return max(0, ranges.widest(0, len(ranges)))


def _as_floats(words: pa.Array) -> Array:
    if pa.types.is_decimal(words.type) and len(words):
        return floats_of(words)
    return np.array([0.0 if word is None else float(word) for word in words.to_pylist()] or [0.0])
