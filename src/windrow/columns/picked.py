"""Rows that stand for a run: the few largest or smallest, or the four corners of M4.

Partials of these aggregates are made of the run's own values, so that a few of its rows have the
same partial as all of them.
"""

import numpy as np

from windrow.aggregates import M4, Aggregate, BottomK, TopK
from windrow.columns.column import Column
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.turned import ordered

FEW = (TopK, BottomK)
SEVERAL = (*FEW, M4)
"""Aggregates for which some rows of a run stand for it."""


def falling(values: Array) -> Array:
    """Numbers in the opposite order."""
    return -values if values.dtype == np.float64 else ~values


@njit(cache=True, nogil=True)
def _few(x, valid, offsets, k, out, counts):  # type: ignore[no-untyped-def]
    """The rows of the k smallest values of each run, in the order of the rows."""
    best = np.empty(k, np.int64)
    size = 0
    for run in range(len(offsets) - 1):
        held = 0
        for i in range(offsets[run], offsets[run + 1]):
            if not valid[i] or (held == k and not x[i] < x[best[held - 1]]):
                continue
            place = held if held < k else k - 1
            held = min(held + 1, k)
            while place > 0 and x[i] < x[best[place - 1]]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = i
        best[:held].sort()
        out[size : size + held] = best[:held]
        counts[run] = held
        size += held
    return size


@njit(cache=True, nogil=True)
def _corners(x, valid, offsets, out):  # type: ignore[no-untyped-def]
    """The rows of the first, smallest, largest and last value of each run; -1 where there is none.

    Of equal ones the oldest.
    """
    for run in range(len(offsets) - 1):
        first = low = high = last = -1
        for i in range(offsets[run], offsets[run + 1]):
            if not valid[i]:
                continue
            if first < 0:
                first = low = high = i
            if x[i] < x[low]:
                low = i
            if x[i] > x[high]:
                high = i
            last = i
        out[run, 0], out[run, 1], out[run, 2], out[run, 3] = first, low, high, last


def corner_rows(column: Column, valid: Array, offsets: Array) -> Array:
    """For each run the rows of its four corners."""
    out = np.empty((len(offsets) - 1, 4), np.int64)
    _corners(ordered(column, 1)[0], valid, offsets, out)
    return out


def picked_rows(
    aggregate: Aggregate, columns: list[Column], valid: Array, offsets: Array
) -> tuple[Array, Array]:
    """The rows that stand for each run, one run after the other, and how many of them."""
    if isinstance(aggregate, M4):
        corners = corner_rows(columns[0], valid, offsets)
        some = corners[:, 0] >= 0
        return corners[some].ravel(), 4 * some.astype(np.int64)
    assert isinstance(aggregate, FEW)
    values, _ = ordered(columns[0], 1)
    values = falling(values) if isinstance(aggregate, TopK) else values
    counts = np.zeros(len(offsets) - 1, np.int64)
    out = np.empty(len(values), np.int64)
    k = min(aggregate.k, max(1, len(values)))
    size = _few(values, valid, offsets, k, out, counts)
    return out[:size], counts
