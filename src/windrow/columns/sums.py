"""Correctly rounded sums of float columns, by the cheapest way proven for a region of rows.

1. The last W rows, on a grid that is not too fine: two running parts, rows taken out exactly
   (``exact_unit``). With moving bounds the two unpredictable loops cost more than a flip.
2. Two words, Two-Stacks, where all rounding errors add up exactly (``builtin.total``).
3. Two words with a proof for every row (``builtin.checked_total``).
4. Rows without a proof: exact accumulators (``columns.exact``).
"""

import math

import numpy as np
from numba import njit

from windrow.columns import exact
from windrow.columns.builtin import kernels
from windrow.columns.ranges import Array, Ranges

_REGION = 1 << 17
U = np.uint64


_NOT_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
_INFINITE = 0x7FF0000000000000


@njit(cache=True, nogil=True)
def _extreme_bits(bits, first, last):  # type: ignore[no-untyped-def]
    """Bits of the smallest |x| that is not 0, less one, and of the largest; as integers, fast."""
    smallest, largest = U(0xFFFFFFFFFFFFFFFF), U(0)
    for i in range(first, last):
        b = bits[U(i)] & _NOT_SIGN
        largest = max(largest, b)
        smallest = min(smallest, b - U(1))  # 0 becomes the largest number there is
    return smallest, largest


def spread(x: Array, first: int, last: int) -> tuple[float, float]:
    """The smallest and largest absolute value that is not 0; the largest is inf with odd values."""
    low, high = (int(b) for b in _extreme_bits(x.view(np.uint64), first, last))
    if high >= _INFINITE:
        return 0.0, math.inf
    if high == 0:
        return math.inf, 0.0
    smallest, largest = np.array([low + 1, high], np.uint64).view(np.float64)
    return float(smallest), float(largest)


@njit(cache=True, nogil=True)
def _slide_block(x, width, first, last, magic, mean, out):  # type: ignore[no-untyped-def]
    """Subtract on evict, exact: see ``exact_unit``; the last ``width`` rows of one run."""
    high_sum = low_sum = 0.0
    for j in range(max(first - width + 1, 0), first):
        v = x[U(j)]
        high = (v + magic) - magic
        high_sum += high
        low_sum += v - high
    for i in range(first, min(last, width)):
        v = x[U(i)]
        high = (v + magic) - magic
        high_sum += high
        low_sum += v - high
        r = high_sum + low_sum
        out[U(i)] = r / (i + 1) if mean else r
    begin = max(first, width)
    if begin == first and first < last:  # the row that leaves with the first one is not in yet
        v = x[U(first - width)]
        high = (v + magic) - magic
        high_sum += high
        low_sum += v - high
    divisor = float(width) if mean else 1.0
    for i in range(begin, last):
        v = x[U(i)]
        w = x[U(i - width)]
        high = (v + magic) - magic
        gone = (w + magic) - magic
        high_sum += high - gone
        low_sum += (v - high) - (w - gone)
        out[U(i)] = (high_sum + low_sum) / divisor


def exact_unit(smallest: float, largest: float, widest: float) -> float | None:
    """A unit that cuts every row into two parts whose window sums are exact floats, or None.

    Rows are multiples of G, the last bit of the smallest. The high part of a row is its nearest
    multiple of the unit, the low part the rest. While no window sum of high parts reaches 2**52
    units and none of low parts 2**52·G, adding and taking out rows rounds nothing, and the one
    rounding is that of their sum at the end: subtracting floats, proven exact.
    """
    if largest * (widest + 1) > 1e300:
        return None
    grid = math.frexp(smallest)[1] - 53
    unit = math.frexp(largest * (widest + 1))[1] - 51
    needed = math.frexp(widest + 1)[1] + unit - grid
    if needed > 52 or grid < -1000 or unit > 900:
        return None
    return math.ldexp(1.5, unit + 52)


def float_sums(x: Array, ranges: Ranges, mean: bool = False) -> Array:
    """The correctly rounded sum of every range of rows, or that divided by the number of rows.

    x holds 0 where a value is missing; only sums of it make sense then.
    """
    out = np.empty(len(ranges))
    doubtful: list[Array] = []
    checked: list[tuple[int, int]] = []  # not divided yet

    def region(first: int, last: int) -> None:
        smallest, largest = spread(x, *ranges.span(first, last))
        if largest == 0.0:
            out[first:last] = 0.0
            return
        if math.isfinite(largest):
            widest = float(ranges.widest(first, last))
            magic = exact_unit(smallest, largest, widest)
            if magic is not None and ranges.width is not None and ranges.may_subtract:
                _slide_block(x, ranges.width, first, last, magic, mean, out)
                return
            grid = math.ldexp(1.0, max(math.frexp(smallest)[1] - 53, -1074))
            most = ranges.run(kernels("mean" if mean else "total"), (x,), first, last, out)
            if most < grid * 2.0**51 and widest * largest < min(grid * 2.0**103, 1e308):
                return
        rows = np.empty(last - first, np.int64)
        count = ranges.run(kernels("checked_total"), (x,), first, last, out, rows)
        checked.append((first, last))
        if count:
            doubtful.append(rows[:count].copy())

    if ranges.monotone:
        ranges.in_parallel(region, _REGION)
    else:
        doubtful.append(np.arange(len(ranges)))
        checked.append((0, len(ranges)))
    if doubtful:
        rows = np.concatenate(doubtful)
        lo, hi = ranges.of(rows)
        answers = np.empty(len(rows))
        exact.decide(x, exact.checkpoints(x), lo, hi, np.arange(len(rows)), len(rows), answers)
        out[rows] = answers
    if mean:
        for first, last in checked:
            lo, hi = ranges.of(np.arange(first, last))
            out[first:last] /= np.maximum(hi - lo, 1)
            out[first:last] += 0.0
    return out
