"""Correctly rounded sums of float columns, by the cheapest way proven for a region of rows.

1. Rows on a grid that is not too fine: running sums of three parts, rows taken out exactly
   (``exact_units``, ``strip_kernels``).
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
from windrow.columns.strip_kernels import strip_kernels

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
        start, end = ranges.touched(first, last)
        smallest, largest = spread(x, start, end)
        if largest == 0.0:
            out[first:last] = 0.0
            return
        if math.isfinite(largest):
            widest = float(ranges.widest(first, last))
            most_added = widest if ranges.width is not None else float(end - start)
            units = exact_units(smallest, largest, most_added)
            if units is not None and ranges.may_subtract:
                module = strip_kernels("total", ((1,),))
                rest = (first, last, np.empty(0, np.int64), units, (0.0,), float(mean), 1.0, out)
                if ranges.width is not None:
                    module.running(x, ranges.width, *rest)
                else:
                    module.moving(x, ranges.lo, ranges.hi, *rest)
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
