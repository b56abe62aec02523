"""Rows in blocks, each sorted once: a row's place in that order stands for its value.

The answers are cut into blocks, a few times as many as a window has rows, and the rows that the
windows of a block look at are sorted (``radix``). Every row then is one number, no two the same,
and a window a set of small numbers: see ``bits``.

A sort may serve several aggregates, and several windows: those whose ranges it covers, unless they
are much shorter than those it was made for (members would lie too far apart).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from windrow.columns.column import Column
from windrow.columns.radix import keyed, restored, sort
from windrow.columns.ranges import Array, Ranges
from windrow.columns.task import Task

LEAST = 1 << 12
MOST = 1 << 17
TIMES = 16
"""A block has this many times the rows of a window, between ``LEAST`` and ``MOST``."""
MOST_SHORTER = 32


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

    @cached_property
    def values(self) -> Array:
        """The values in order, as the column has them."""
        out = np.empty(self.size, np.int64)
        restored(self.keys, self.is_float, out)
        return out.view(np.float64) if self.is_float else out


_NO_MASK = np.empty(0, np.bool_)
_NO_ROWS = np.empty(0, np.int32)
NO_BOUNDS = np.empty(0, np.int32)
NO_ORDER = np.empty(0, np.int64)


def sort_rows(column: Column, span: Span) -> Sorted:
    """The rows of a span in order."""
    bits = column.values[span.low : span.high].view(np.int64)
    size = len(bits)
    keys, rows, valid = np.empty(size, np.uint64), _NO_ROWS, _NO_MASK
    if column.valid is not None:
        valid, rows = column.valid[span.low : span.high], np.empty(size, np.int32)
    count = keyed(bits, valid, column.is_float, keys, rows)
    rank = np.empty(size, np.int32)
    ordered = sort(keys[:count], rows[:count], column.is_float, rank)
    return Sorted(span, rank, ordered, column.is_float)


def in_an_order(lo: Array, hi: Array, ranges: Ranges, rows: int) -> Array | None:
    """Ranges that move back, in an order in which their ends move little; None: as they come."""
    if ranges.monotone:
        return None
    group = max(1, int(rows / max(1.0, len(lo) ** 0.5)))
    groups = lo // group
    ends = np.where(groups & 1, -hi, hi)  # up and down by turns
    return np.lexsort((ends, groups))


Moves = tuple[int, int, int, Array, Array, int, Array]


def moves(block: Sorted, ranges: Ranges) -> Moves:
    """A block's ranges as kernels take them: first, count, row, lo, hi, width, order.

    Answers are ``first`` and the ``count`` from there on; rows are counted from ``row``. Of the
    last ``width`` rows no bounds are stored: ``members.range_at`` knows them (0: they are). Where
    ranges are gone through in another order, the i-th is that of answer ``order[i]``.
    """
    span = block.span
    where = span.first, span.last - span.first, span.low
    if ranges.width is not None:
        return *where, NO_BOUNDS, NO_BOUNDS, ranges.width, NO_ORDER
    assert ranges.lo is not None
    assert ranges.hi is not None
    lo, hi = ranges.lo[span.first : span.last], ranges.hi[span.first : span.last]
    order = in_an_order(lo, hi, ranges, len(block.rank))
    if order is None:
        return *where, lo, hi, 0, NO_ORDER
    return *where, lo[order], hi[order], 0, order


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


def blocks_of(task: Task, keep: bool = False) -> Blocks:
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
