"""Moments by running sums, correctly rounded, region by region; NaN where a row is not certain.

What is certain costs a fifth of what ``power_kernels`` take. Rows that are not (answers next to 0,
because large terms cancel; small values in a region with very large ones) are left to those.
"""

import numpy as np

from windrow.aggregates.power_sums import PowerSums
from windrow.columns.jit import njit
from windrow.columns.power_formulas import FORMULAS
from windrow.columns.ranges import Array, Ranges
from windrow.columns.strip_kernels import strip_kernels
from windrow.columns.sums import spread

_REGION, _SMALLEST = 1 << 17, 1 << 12


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
    bounds = (ranges.lo, ranges.hi)

    def region(first: int, last: int) -> None:
        start, end = ranges.touched(first, last)
        width = ranges.width
        sizes = [spread(x, start, end)[1] for x in inputs]
        fine, *found = module.units_of(*sizes, width or end - start, end - start)
        asked = (float(freedom), float(aggregate.fewest), out)
        doubts = size = last - first
        if not fine:
            out[first:last] = np.nan
        elif width is not None:
            doubts = module.running(*inputs, width, first, last, prefix, *found, *asked)
        else:
            doubts = module.moving(*inputs, *bounds, first, last, prefix, *found, *asked)
            if 8 * doubts > size:  # one large row spoils a region
                doubts = module.pieces(*inputs, *bounds, first, last, prefix, *asked)
        if 8 * doubts > size > _SMALLEST and size > 2 * ranges.widest(first, last):
            step = -(-size // 8)
            for part in range(first, last, step):
                region(part, min(part + step, last))
        elif doubts:
            doubtful.append(np.flatnonzero(np.isnan(out[first:last])) + first)

    ranges.in_parallel(region, _REGION)
    return out, np.sort(np.concatenate(doubtful)) if doubtful else np.empty(0, np.int64)


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
