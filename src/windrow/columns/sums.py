"""Correctly rounded sums of float columns: two words where they are proven enough, else exact."""

import math
from typing import Any

import numpy as np
from numba import njit

from windrow.columns import exact
from windrow.columns.builtin import kernels
from windrow.columns.ranges import Ranges

_REGION = 1 << 17


@njit(cache=True, nogil=True)
def spread(x, first, last):  # type: ignore[no-untyped-def]
    """The smallest and largest absolute value that is not 0; the largest is inf with odd values."""
    smallest, largest = np.inf, 0.0
    for i in range(first, last):
        a = abs(x[i])
        if a > 0.0 and a < smallest:
            smallest = a
        if not (a <= largest):
            largest = a if a == a else np.inf
    return smallest, largest


def float_sums(x: np.ndarray[Any, Any], ranges: Ranges) -> np.ndarray[Any, Any]:
    """The correctly rounded sum of every range of rows; x holds 0 where a value is missing."""
    out = np.empty(len(ranges))
    doubtful: list[np.ndarray[Any, Any]] = []

    def region(first: int, last: int) -> None:
        start, end = ranges.span(first, last)
        smallest, largest = spread(x, start, end)
        if math.isfinite(largest):
            if largest == 0.0:
                out[first:last] = 0.0
                return
            grid = math.ldexp(1.0, max(math.frexp(smallest)[1] - 53, -1074))
            most = ranges.run(kernels("total"), (x,), first, last, out)
            widest = float(ranges.widest(first, last))
            if most < grid * 2.0**51 and widest * largest < min(grid * 2.0**103, 1e308):
                return
        rows = np.empty(last - first, np.int64)
        count = ranges.run(kernels("checked_total"), (x,), first, last, out, rows)
        if count:
            doubtful.append(rows[:count].copy())

    if ranges.monotone:
        ranges.in_parallel(region, _REGION)
    else:
        doubtful.append(np.arange(len(ranges)))
    if doubtful:
        rows = np.concatenate(doubtful)
        lo, hi = ranges.of(rows)
        answers = np.empty(len(rows))
        exact.decide(x, exact.checkpoints(x), lo, hi, np.arange(len(rows)), len(rows), answers)
        out[rows] = answers
    out += 0.0  # -0.0 comes out as 0.0
    return out
