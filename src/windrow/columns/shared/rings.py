"""Rings: row r is in place r & (capacity − 1), the capacity being a power of two."""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.ranges import Array

U = np.uint64


def power_of_two(least: int) -> int:
    """The smallest power of two that is not below."""
    return 1 << max(least - 1, 0).bit_length()


def write_ring(ring: Array, row: int, values: Array) -> None:
    """Put rows from ``row`` on in their places; of more than fit, the last stay."""
    capacity = len(ring)
    if len(values) > capacity:
        row += len(values) - capacity
        values = values[-capacity:]
    start = row & (capacity - 1)
    head = min(capacity - start, len(values))
    ring[start : start + head] = values[:head]
    ring[: len(values) - head] = values[head:]


def read_ring(ring: Array, first: int, last: int) -> Array:
    """Rows ``first`` to ``last``, the last not included."""
    rows: Array = ring[np.arange(first, last) & (len(ring) - 1)]
    return rows


@njit(cache=True, nogil=True)
def _not_later(times, first, last, moment):
    mask = len(times) - 1
    while first < last:
        middle = (first + last) >> 1
        if times[middle & mask] <= moment:
            first = middle + 1
        else:
            last = middle
    return first


def not_later(times: Array, rows: range, moment: int) -> int:
    """The first of some rows that is later than a moment, or the end; times do not fall."""
    limits = np.iinfo(np.int64)
    if moment < limits.min:
        return rows.start
    if moment > limits.max:
        return rows.stop
    return int(_not_later(times, rows.start, rows.stop, moment))


@njit(cache=True, nogil=True)
def first_outside(lefts, rights, first, last):
    """The first pair that is not within rows ``first`` to ``last``, or -1."""
    for i in range(len(lefts)):
        if lefts[U(i)] < first or rights[U(i)] >= last or lefts[U(i)] > rights[U(i)]:
            return i
    return -1


@njit(cache=True, nogil=True)
def mark(marks, row, size, valid, floats):
    """Running counts before each row: present rows, NaN, +inf, -inf; they wrap without harm."""
    mask = len(marks) - 1
    here = row & mask
    present, nans = np.int64(marks[here, 0]), np.int64(marks[here, 1])
    plus, minus = np.int64(marks[here, 2]), np.int64(marks[here, 3])
    for i in range(size):
        if len(valid) == 0 or valid[i]:
            present += 1
            if len(floats):
                x = floats[i]
                if x != x:
                    nans += 1
                elif x == np.inf:
                    plus += 1
                elif x == -np.inf:
                    minus += 1
        row += 1
        here = row & mask
        marks[here, 0] = np.uint32(present & 0xFFFFFFFF)
        marks[here, 1] = np.uint32(nans & 0xFFFFFFFF)
        marks[here, 2] = np.uint32(plus & 0xFFFFFFFF)
        marks[here, 3] = np.uint32(minus & 0xFFFFFFFF)


def all_present(capacity: int, rows: range) -> Array:
    """Marks for rows of which none is missing or odd."""
    marks = np.zeros((capacity, 4), np.uint32)
    numbers = np.arange(rows.start, rows.stop + 1)
    marks[numbers & (capacity - 1), 0] = numbers.astype(np.uint32)
    return marks


def since(marks: Array, lefts: Any, rights: Any, column: int) -> Array:
    """How many rows of each range have a mark."""
    mask = len(marks) - 1
    counts: Array = marks[(rights + 1) & mask, column] - marks[lefts & mask, column]
    return counts.astype(np.int64)
