"""Correctly rounded sums of float columns, by the cheapest way proven for a region of rows.

1. The last W rows, on a grid that is not too fine: three running parts, rows taken out exactly
   (``exact_units``). With moving bounds the two unpredictable loops cost more than a flip.
2. Two words, Two-Stacks, where all rounding errors add up exactly (``builtin.total``).
3. Two words with a proof for every row (``builtin.checked_total``).
4. Rows without a proof: exact accumulators (``columns.exact``).
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from windrow.columns import exact
from windrow.columns.builtin import kernels
from windrow.columns.jit import njit
from windrow.columns.ranges import Array, Ranges

_REGION = 1 << 17
U = np.uint64


_NOT_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
_INFINITE = 0x7FF0000000000000


@njit(cache=True, nogil=True)
def _extreme_bits(bits, first, last):
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


_STRIP = 1024


@njit(inline="always")
def _two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def _running_block(x, width, first, last, magic, finer, mean, out):
    """Subtract on evict, exact: see ``exact_units``; the last ``width`` rows of one run.

    Rows are cut into three parts, and the sums of the three are kept. Strips of rows are worked on
    in three loops, of which only the middle one depends on the row before: the others vectorise.
    """
    high = middle = low = 0.0
    for j in range(max(first - width, 0), max(first, min(last, width))):  # windows that grow
        v = x[U(j)]
        a = (v + magic) - magic
        b = ((v - a) + finer) - finer
        high += a
        middle += b
        low += (v - a) - b
        if j >= first:
            s, t = _two_sum(high, middle)
            r = s + (t + low)
            out[U(j)] = r / (j + 1) + 0.0 if mean else r  # a tiny mean must not be -0.0
    divisor = float(width) if mean else 1.0
    highs, middles, lows = np.empty(_STRIP), np.empty(_STRIP), np.empty(_STRIP)
    start = max(first, width)
    while start < last:
        size = min(_STRIP, last - start)
        young, old = x[start : start + size], x[start - width : start - width + size]
        for k in range(size):
            v, w = young[U(k)], old[U(k)]
            a, c = (v + magic) - magic, (w + magic) - magic
            b, d = ((v - a) + finer) - finer, ((w - c) + finer) - finer
            highs[U(k)] = a - c
            middles[U(k)] = b - d
            lows[U(k)] = ((v - a) - b) - ((w - c) - d)
        for k in range(size):
            high += highs[U(k)]
            middle += middles[U(k)]
            low += lows[U(k)]
            highs[U(k)] = high
            middles[U(k)] = middle
            lows[U(k)] = low
        answers = out[start : start + size]
        for k in range(size):
            s, t = _two_sum(highs[U(k)], middles[U(k)])
            answers[U(k)] = (s + (t + lows[U(k)])) / divisor + 0.0
        start += size


def exact_units(smallest: float, largest: float, widest: float) -> tuple[float, float] | None:
    """Two units that cut every row into three parts whose window sums are exact, or None.

    Rows are multiples of G, the last bit of the smallest. The high part of a row is its nearest
    multiple of the first unit, the middle part that of the rest and the second unit, the low part
    what is left. While no window sum of a part reaches 2**52 of its units (of G, for the low part),
    adding and taking out rows rounds nothing. The answer is high + middle + low: s + t is high +
    middle exactly, t + low is exact where all of it is below 2**52·G, and the last addition is the
    one rounding. Subtracting floats, proven exact. What is returned are the numbers that round to
    the units when they are added and taken away.
    """
    if largest * (widest + 1) > 1e300:
        return None
    rows = math.frexp(widest + 1)[1]
    grid = math.frexp(smallest)[1] - 53
    unit = math.frexp(largest)[1] + rows - 51
    finer = max(unit + rows - 51, grid)
    if finer + rows - 52 > grid or unit - 1 > grid + 51 or grid < -1000 or unit > 900:
        return None
    return math.ldexp(1.5, unit + 52), math.ldexp(1.5, finer + 52)


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
            units = exact_units(smallest, largest, widest)
            if units is not None and ranges.width is not None and ranges.may_subtract:
                _running_block(x, ranges.width, first, last, *units, mean, out)
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
