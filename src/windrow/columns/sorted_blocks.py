"""Rows in blocks, each sorted once: a row's place in that order stands for its value.

The answers are cut into blocks, a few times as many as a window has rows, and the rows that the
windows of a block look at are sorted (radix, three passes of eleven bits in the usual case). Every
row then is one number, no two the same, and a window a set of small numbers: see ``bits``.

A sort may serve several aggregates, and several windows: those whose ranges it covers, unless they
are much shorter than those it was made for (members would lie too far apart).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from windrow.columns.prepare import Column
from windrow.columns.ranges import Array, Ranges

LEAST = 1 << 12
MOST = 1 << 20
TIMES = 16
"""A block has this many times the rows of a window, between ``LEAST`` and ``MOST``."""
MOST_SHORTER = 32
_DIGIT = 11
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64((1 << 64) - 1)


@dataclass(frozen=True)
class Span:
    """The answers [first, last), and the rows [low, high) that they look at."""

    first: int
    last: int
    low: int
    high: int


@dataclass(frozen=True)
class Sorted:
    """The rows of a span: each one's place in order (-1 where missing), and the ordered keys."""

    span: Span
    rank: Array
    keys: Array
    is_float: bool

    @property
    def size(self) -> int:
        """How many rows have a value."""
        return len(self.keys)

    def values(self) -> Array:
        """The values in order, as the column has them."""
        out = np.empty(self.size, np.int64)
        _restored(self.keys, self.is_float, out)
        return out.view(np.float64) if self.is_float else out


@njit(cache=True, nogil=True)
def _restored(keys, is_float, out):  # type: ignore[no-untyped-def]
    for i in range(len(keys)):
        key = keys[i]
        if is_float and key < _SIGN:
            out[i] = np.int64(key ^ _ALL)
        else:
            out[i] = np.int64(key ^ _SIGN)


@njit(cache=True, nogil=True)
def _keyed(bits, valid, is_float, keys, rows):  # type: ignore[no-untyped-def]
    """Unsigned keys in the order of the values, of the rows that have one; NaN is the largest."""
    infinite = np.int64(0x7FF0000000000000)
    count = 0
    for i in range(len(bits)):
        if len(valid) and not valid[i]:
            continue
        b = bits[i]
        if is_float:
            if b & np.int64(0x7FFFFFFFFFFFFFFF) > infinite:
                key = np.uint64(0x7FF8000000000000) ^ _SIGN
            elif b == np.int64(-0x8000000000000000):  # -0.0
                key = _SIGN
            elif b < 0:
                key = np.uint64(b) ^ _ALL
            else:
                key = np.uint64(b) ^ _SIGN
        else:
            key = np.uint64(b) ^ _SIGN
        keys[count] = key
        rows[count] = i
        count += 1
    return count


@njit(cache=True, nogil=True)
def _pass(keys, rows, low, shift, counts, out_keys, out_rows):  # type: ignore[no-untyped-def]
    """One stable pass by eleven bits; False where all rows have the same."""
    mask = np.uint64((1 << _DIGIT) - 1)
    move = np.uint64(shift)
    counts[:] = 0
    for i in range(len(keys)):
        counts[((keys[i] - low) >> move) & mask] += 1
    if len(keys) and counts[((keys[0] - low) >> move) & mask] == len(keys):
        return False
    total = 0
    for digit in range(1 << _DIGIT):
        here = counts[digit]
        counts[digit] = total
        total += here
    for i in range(len(keys)):
        key = keys[i]
        digit = ((key - low) >> move) & mask
        place = np.uint64(counts[digit])
        counts[digit] += 1
        out_keys[place] = key
        out_rows[place] = rows[i]
    return True


@njit(cache=True, nogil=True)
def _disorder(keys, low, shift):  # type: ignore[no-untyped-def]
    """A bound on how far values must move that are in order only down to a bit."""
    move = np.uint64(shift)
    start, total = 0, 0
    largest = np.uint64(0)
    for i in range(len(keys)):
        if i == 0 or (keys[i] - low) >> move != (keys[i - 1] - low) >> move:
            start, largest = i, keys[i]
        elif keys[i] < largest:
            total += i - start
        else:
            largest = keys[i]
    return total


@njit(cache=True, nogil=True)
def _inserted(keys, rows):  # type: ignore[no-untyped-def]
    """Insertion sort, of what is nearly in order."""
    for i in range(1, len(keys)):
        key, row, j = keys[i], rows[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            rows[j] = rows[j - 1]
            j -= 1
        if j < i:
            keys[j] = key
            rows[j] = row


@njit(cache=True, nogil=True)
def _sort(bits, valid, is_float, rank):  # type: ignore[no-untyped-def]
    """Each row's place in order into ``rank``; the ordered keys."""
    size = len(bits)
    keys, rows = np.empty(size, np.uint64), np.empty(size, np.int32)
    other_keys, other_rows = np.empty(size, np.uint64), np.empty(size, np.int32)
    count = _keyed(bits, valid, is_float, keys, rows)
    keys, rows = keys[:count], rows[:count]
    other_keys, other_rows = other_keys[:count], other_rows[:count]
    low, high = _ALL, np.uint64(0)
    for i in range(count):
        low = min(low, keys[i])
        high = max(high, keys[i])
    width = 0
    if count:
        spread = high - low
        while width < 64 and spread >> np.uint64(width) != 0:
            width += 1
    counts = np.empty(1 << _DIGIT, np.int64)
    start = max(0, width - 3 * _DIGIT)  # more bits than that seldom decide
    for attempt in range(2):
        shift = start
        while shift < width:
            if _pass(keys, rows, low, shift, counts, other_keys, other_rows):
                keys, other_keys = other_keys, keys
                rows, other_rows = other_rows, rows
            shift += _DIGIT
        if start == 0 or attempt == 1:
            break
        if _disorder(keys, low, start) <= 8 * count:
            _inserted(keys, rows)
            break
        start = 0  # they do here
    for i in range(size):
        rank[i] = -1
    for i in range(count):
        rank[rows[i]] = i
    return keys


_NO_MASK = np.empty(0, np.bool_)


def sort_rows(column: Column, span: Span) -> Sorted:
    """The rows of a span in order."""
    # copies: kernels are compiled for arrays of one kind only
    bits = np.array(column.values[span.low : span.high]).view(np.int64)
    valid = _NO_MASK
    if column.valid is not None:
        valid = np.array(column.valid[span.low : span.high])
    rank = np.empty(len(bits), np.int32)
    keys = _sort(bits, valid, column.is_float, rank)
    return Sorted(span, rank, keys, column.is_float)


def relative_bounds(ranges: Ranges, span: Span) -> tuple[Array, Array]:
    """The ranges of a span's answers, counted from its first row."""
    if ranges.width is not None:
        rows = np.arange(span.first, span.last)
        return np.maximum(rows - (ranges.width - 1), 0) - span.low, rows + (1 - span.low)
    assert ranges.lo is not None
    assert ranges.hi is not None
    lo, hi = ranges.lo[span.first : span.last], ranges.hi[span.first : span.last]
    return np.subtract(lo, span.low, dtype=np.int64), np.subtract(hi, span.low, dtype=np.int64)


def _width_at(ranges: Ranges, answer: int) -> int:
    if ranges.width is not None:
        return ranges.width
    return int(ranges.hi[answer]) - int(ranges.lo[answer])  # type: ignore[index]


def _span(ranges: Ranges, first: int, last: int) -> Span:
    if ranges.width is not None:
        return Span(first, last, max(first - ranges.width + 1, 0), last)
    assert ranges.lo is not None
    assert ranges.hi is not None
    low = int(ranges.lo[first:last].min())
    return Span(first, last, low, max(low, int(ranges.hi[first:last].max())))


def spans_of(ranges: Ranges) -> list[Span]:
    """The answers cut into blocks; one block where ranges move back."""
    size = len(ranges)
    if not size:
        return []
    if not ranges.monotone:
        return [_span(ranges, 0, size)]
    pieces = ranges.threads if size > LEAST else 1
    found = []
    step = -(-size // pieces)
    for start in range(0, size, step):
        end = first = min(start + step, size)
        first = start
        while first < end:
            last = min(first + LEAST, end)
            while last < end and last - first < MOST:
                wide = max(_width_at(ranges, first), _width_at(ranges, last - 1))
                if last - first >= TIMES * wide:
                    break
                last = min(first + 2 * (last - first), end)
            wide = _width_at(ranges, last - 1)
            last = end if end - last < wide else max(last, min(first + 2 * wide, end))
            found.append(_span(ranges, first, last))
            first = last
    return found


class Blocks:
    """The blocks of some ranges over a column, sorted when they are asked for."""

    def __init__(self, column: Column, ranges: Ranges, keep: bool) -> None:
        self.column, self.ranges, self.threads = column, ranges, ranges.threads
        self.spans = spans_of(ranges)
        self._kept: list[Sorted | None] | None = [None] * len(self.spans) if keep else None

    def serves(self, ranges: Ranges) -> bool:
        """Whether the same sort will do for other ranges."""
        if ranges is self.ranges:
            return True
        if (
            not self.spans
            or not (ranges.monotone and self.ranges.monotone)
            or (self.spans[-1].last != len(ranges))
        ):
            return False
        shortest = widest = 0
        for span in self.spans:
            other = _span(ranges, span.first, span.last)
            if other.low < span.low or other.high > span.high:
                return False
            shortest = max(shortest, _width_at(ranges, span.last - 1))
            widest = max(widest, span.high - span.low - (span.last - span.first))
        return shortest * MOST_SHORTER >= widest

    def each(self, work: Callable[[Sorted], Any]) -> list[Any]:
        """Do some work for every block, on all threads; what it gives, in order."""

        def done(place: int) -> Any:
            kept = self._kept
            block = kept[place] if kept is not None else None
            if block is None:
                block = sort_rows(self.column, self.spans[place])
                if kept is not None:
                    kept[place] = block
            return work(block)

        if self.threads == 1 or len(self.spans) <= 1:
            return [done(place) for place in range(len(self.spans))]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(done, range(len(self.spans))))


def blocks_of(task: Any, keep: bool = False) -> Blocks:
    """The blocks of a task's ranges, sorted before where another aggregate needed the same.

    ``keep``: they are gone through more than once.
    """
    column, ranges, table = task.column, task.ranges, task.table
    key = (column.name, task.aggregate.nan)
    known: dict[Any, Blocks] | None = None if task.weighted else table.sorts
    if known is None or key not in table.sorted_for:
        return Blocks(column, ranges, keep)
    if key not in known or not known[key].serves(ranges):
        known.clear()  # one sort at a time: it takes twelve bytes a row
        known[key] = Blocks(column, ranges, keep=True)
    return known[key]
