"""Moments by running sums, correctly rounded, region by region; NaN where a row is not certain.

What is certain costs a fifth of what ``power_kernels`` take. Rows that are not (answers next to 0,
because large terms cancel; small values in a region with very large ones) are left to those.
"""

import math

import numpy as np

from windrow.aggregates.power_sums import PowerSums
from windrow.columns.jit import njit
from windrow.columns.power_kernels import PARTS
from windrow.columns.ranges import Array, Ranges
from windrow.columns.strip_formulas import FORMULAS
from windrow.columns.strip_kernels import ROUNDED, ROUNDED_PARTS, strip_kernels
from windrow.columns.sums import spread

_REGION, _SMALLEST = 1 << 17, 1 << 12
_U = 2.0**-53
_MOST = 1e290


def strip_answers(
    aggregate: PowerSums,
    freedom: int,
    inputs: list[Array],
    parts: bool,
    counts: Array | None,
    ranges: Ranges,
) -> tuple[Array, Array]:
    """Answers of all ranges, NaN where not certain, and which those are.

    Those of too few rows are arbitrary.
    ``counts``: how many rows there are before each, where that is not its place.
    """
    out = np.empty(len(ranges))
    doubtful: list[Array] = []
    name = f"sample_{aggregate.name}"
    name = name if freedom == 1 and name in FORMULAS else aggregate.name
    module = strip_kernels(name, aggregate.monomials, parts)
    prefix = np.empty(0, np.int64) if counts is None else counts

    def region(first: int, last: int) -> None:
        start, end = ranges.span(first, last)
        end = max(end, ranges.span(last - 1, last)[0])  # the last range may be empty
        rows = end - start if ranges.width is None else ranges.width
        largest = _largest(aggregate, inputs, parts, start, end)
        units, bounds = _units(aggregate, largest, parts, rows, end - start)
        if units is None:
            out[first:last] = np.nan
            doubtful.append(np.arange(first, last))
            return
        rest = (first, last, prefix, units, bounds, float(freedom), float(aggregate.fewest), out)
        if ranges.width is not None:
            doubts = module.running(*inputs, ranges.width, *rest)
        else:
            doubts = module.moving(*inputs, ranges.lo, ranges.hi, *rest)
        size = last - first
        if 8 * doubts > size > _SMALLEST and size > 2 * ranges.widest(first, last):
            middle = (first + last) // 2  # one large row spoils a region
            region(first, middle)
            region(middle, last)
        elif doubts:
            doubtful.append(np.flatnonzero(np.isnan(out[first:last])) + first)

    ranges.in_parallel(region, _REGION)
    return out, np.sort(np.concatenate(doubtful)) if doubtful else np.empty(0, np.int64)


def _largest(
    aggregate: PowerSums, inputs: list[Array], parts: bool, start: int, end: int
) -> list[float]:
    """No monomial of these rows is larger."""
    sizes = [spread(x, start, end)[1] for x in inputs]
    if not parts:
        return [math.prod(s**p for s, p in zip(sizes, m, strict=True)) for m in aggregate.monomials]
    found = []
    for monomial in aggregate.monomials:
        count = PARTS[sum(monomial)]
        found.append(sum(sizes[:count]))
        sizes = sizes[count:]
    return found


def _units(
    aggregate: PowerSums, largest: list[float], parts: bool, rows: int, steps: int
) -> tuple[tuple[float, ...] | None, tuple[float, ...]]:
    """Numbers that round to the units of each monomial, and how far its sums may be off.

    M is the largest value, at most R rows are in a sum. Sums of first parts stay below 2**52 units
    of 2**-51·M·R, those of second parts below 2**52 of the finer unit, 2**-51·R·unit: neither ever
    rounds. A third part is at most C, half the finer unit and what p + q rounds off; adding it up
    rounds by u·R·C at each step, on both sides of a range. What p + q itself leaves out of a
    monomial of three or four factors is there once for each row of a range.
    """
    units: list[float] = []
    bounds = []
    many = float(rows + 1)
    rounded = ROUNDED_PARTS if parts else ROUNDED
    for monomial, size in zip(aggregate.monomials, largest, strict=True):
        if not size * many < _MOST:
            return None, ()
        unit = math.frexp(size * many)[1] - 51
        finer = math.frexp(math.ldexp(many, unit))[1] - 51
        third = 1.01 * (math.ldexp(0.5, finer) + math.ldexp(_U, unit))
        bound = 4.0 * _U * (steps + rows + 16.0) * (many + 4.0) * third
        bounds.append(bound + many * rounded[sum(monomial)] * _U * _U * size)
        units += [math.ldexp(1.5, unit + 52), math.ldexp(1.5, finer + 52)]
    return tuple(units), tuple(bounds)


@njit(cache=True, nogil=True)
def unchanging(x, valid, lo, hi, out):  # type: ignore[no-untyped-def]
    """Which ranges have one and the same value in all rows that are there."""
    since = np.zeros(len(x), np.int64)  # from where on all rows up to i are alike
    start, newest = 0, -1
    for i in range(len(x)):
        if valid[i] if len(valid) else True:
            if newest >= 0 and x[i] != x[newest]:
                start = newest + 1
            newest = i
        since[i] = start
    for i in range(len(lo)):
        out[i] = hi[i] > lo[i] and since[hi[i] - 1] <= lo[i]
