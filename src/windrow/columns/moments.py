"""Variance and deviation of float columns, within one unit in the last place.

Rows far from 0 are first moved towards it by a constant, where that is exact for every one of them
(Sterbenz: x − c is exact for c/2 ≤ x ≤ 2c), which takes most of the cancellation away. The rows
that two-word power sums still cannot decide are done again: equal values give 0, others two passes
around their own mean. Values whose squares leave the range of floats are left to Python's integers.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from windrow.aggregates import StdDev, Variance
from windrow.columns.builtin import kernels
from windrow.columns.fused import fma
from windrow.columns.ranges import Array, Ranges, shared_out
from windrow.columns.sums import spread
from windrow.windows import Recalc

_REGION = 1 << 17
U = np.uint64
_LARGE, _SMALL = 1e140, 1e-140


@njit(cache=True, nogil=True)
def _extent(x, valid, first, last):  # type: ignore[no-untyped-def]
    low, high = np.inf, -np.inf
    for i in range(first, last):
        if valid[i] if len(valid) else True:
            low = min(low, x[i])
            high = max(high, x[i])
    return low, high


@njit(cache=True, nogil=True)
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def _again(x, valid, lo, hi, rows, ddof, root, out, extreme):  # type: ignore[no-untyped-def]
    """Two passes in two words for each of the rows: the mean, then squares around it.

    Rows with values whose squares would leave the range are noted in ``extreme`` instead.
    """
    left_over = 0
    same_from = np.empty(len(x), np.int64)  # where the run of equal values that holds i begins
    start = 0
    for i in range(len(x)):
        if i and x[i] != x[i - 1] and (valid[i] if len(valid) else True):
            start = i
        same_from[i] = start
    for r in range(len(rows)):
        low, high = lo[r], hi[r]
        n = 0
        s = e = 0.0
        odd = far = False
        for j in range(low, high):
            if valid[j] if len(valid) else True:
                n += 1
                a = abs(x[j])
                odd = odd or not np.isfinite(a)
                far = far or a > _LARGE or (a < _SMALL and a != 0.0)
                s, t = _two_sum(s, x[j])
                e += t
        if n <= ddof:
            continue
        if odd:
            out[rows[r]] = np.nan
            continue
        if far:
            extreme[left_over] = r
            left_over += 1
            continue
        if len(valid) == 0 and same_from[high - 1] <= low:
            out[rows[r]] = 0.0
            continue
        mean = (s + e) / n
        # the mean's own error, so that x − mean is right to two words
        rest = 0.0
        for j in range(low, high):
            if valid[j] if len(valid) else True:
                d, t = _two_sum(x[j], -mean)
                rest += d + t
        mean_e = rest / n
        q = f = 0.0
        for j in range(low, high):
            if valid[j] if len(valid) else True:
                d, t = _two_sum(x[j], -mean)
                t -= mean_e
                d, t = _two_sum(d, t)
                q, u = _two_sum(q, d * d)
                f += u + 2.0 * d * t
        v = (q + f) / (n - ddof)
        out[rows[r]] = np.sqrt(v) if root else v
    return left_over


@njit(inline="always")
def _cut(v, magic, magic2):  # type: ignore[no-untyped-def]
    """A row's value and its square, each in a high and a low part."""
    h = (v + magic) - magic
    p = v * v
    h2 = (p + magic2) - magic2
    return h, v - h, h2, (p - h2) + fma(v, v, -p)


@njit(inline="always")
def _spread_of(a1, b1, a2, b2, c2, n, inverse):  # type: ignore[no-untyped-def]
    """Σx² − (Σx)²/n, its leading word, Σx² and the mean."""
    ts = a1 + b1
    te = b1 - (ts - a1)
    tq = a2 + b2
    tf = (b2 - (tq - a2)) + c2
    a = ts * ts
    m = a * inverse
    me = (fma(-m, n, a) + fma(ts, ts, -a) + 2.0 * ts * te) * inverse
    top = tq - m
    return top + (((tq - top) - m) + (tf - me)), top, tq, ts * inverse


@njit(cache=True, nogil=True)
def _running_block(  # type: ignore[no-untyped-def]
    x, width, first, last, magic, magic2, bound1, bound2, ddof, root, out, doubtful
):
    """Power sums of the last ``width`` rows, rows taken out again; ``first`` is at least ``width``.

    Σx and Σx² are kept in a high part, which is exact, and a low part; the low part of Σx² carries
    its rounding errors along. The bounds cover what is lost all the same, for the whole region.
    """
    a1 = b1 = a2 = b2 = c2 = 0.0
    doubts = 0
    for i in range(first - width, first):
        h, low, h2, l2 = _cut(x[U(i)], magic, magic2)
        a1 += h
        b1 += low
        a2 += h2
        b2, t = _two_sum(b2, l2)
        c2 += t
    n = float(width)
    inverse = 1.0 / n
    divisor = max(n - ddof, 1.0)
    for i in range(first, last):
        h, low, h2, l2 = _cut(x[U(i)], magic, magic2)
        g, k, g2, k2 = _cut(x[U(i - width)], magic, magic2)
        a1 += h - g
        b1 += low - k
        a2 += h2 - g2
        b2, t = _two_sum(b2, l2 - k2)
        c2 += t
        squares, top, tq, mean = _spread_of(a1, b1, a2, b2, c2, n, inverse)
        variance = squares / divisor
        out[U(i)] = math.sqrt(max(variance, 0.0)) if root else variance
        if not (top * 2.7e-17 > bound2 + abs(mean) * bound1 + tq * 2e-31):
            doubtful[U(doubts)] = i
            doubts += 1
    return doubts


def _running_units(largest: float, width: int, rows: int) -> tuple[float, float, float, float]:
    """Numbers that round to the two units, and bounds for what the low parts lose in a region.

    With M the largest value and W rows, the high parts of Σx are below 2**52 units of 2**-51·M·W.
    Each of at most ``steps`` additions to the low part of Σx loses less than u·W·unit, which counts
    twice the mean in (Σx)²/n; each to that of Σx² less than u times its unit.
    """
    unit = math.frexp(largest * (width + 1))[1] - 51
    unit2 = math.frexp(largest * largest * (width + 1))[1] - 51
    steps = 2.0 * rows + 2.0 * width + 16
    bound1 = 2 * math.ldexp(1.2e-16 * (width + 1) * steps, unit)
    bound2 = math.ldexp(3.6e-16 * steps, unit2)
    return math.ldexp(1.5, unit + 52), math.ldexp(1.5, unit2 + 52), bound1, bound2


def float_moments(
    x: Array, valid: Array | None, counts: Array | None, ranges: Ranges, ddof: int, root: bool
) -> Array:
    """Variance, or its root, of every range; what is left out for too few rows is arbitrary."""
    mask: Any = np.empty(0, np.bool_) if valid is None else valid
    extents = shared_out(len(x), ranges.threads, lambda a, b: _extent(x, mask, a, b))
    low, high = min(e[0] for e in extents), max(e[1] for e in extents)
    centre = (low + high) / 2
    if low <= high and (low > 0 or high < 0) and np.isfinite(centre):
        sign = 1.0 if low > 0 else -1.0
        near, far = sorted((abs(low), abs(high)))
        if far <= 4 * near:
            shifted = x - sign * min(max(abs(centre), far / 2), 2 * near)
            x = shifted if valid is None else np.where(valid, shifted, 0.0)
    out = np.zeros(len(ranges))
    name = ("deviation" if root else "variance") + ("_nulls" if valid is not None else "")
    prefix: Any = np.empty(0, np.int64) if counts is None else counts
    doubtful: list[Array] = []

    def region(first: int, last: int) -> None:
        smallest, largest = spread(x, *ranges.span(first, last))
        if smallest < _SMALL:
            doubtful.append(np.arange(first, last))
            return
        width = ranges.width
        if width is not None and valid is None and largest < _LARGE and ranges.may_subtract:
            start = min(last, max(first, width))
            rows = np.empty(last - start, np.int64)
            units = _running_units(largest, width, last - start)
            found = _running_block(x, width, start, last, *units, ddof, root, out, rows)
            if found <= (last - start) // 64:
                doubtful.append(rows[:found].copy())
                last = start  # the windows that still grow are left
        rows = np.empty(last - first, np.int64)
        found = ranges.run(kernels(name), (x,), first, last, prefix, ddof, out, rows)
        doubtful.append(rows[:found].copy())

    ranges.in_parallel(region, _REGION)
    rows = np.concatenate(doubtful) if doubtful else np.empty(0, np.int64)
    if len(rows):
        lo, hi = ranges.of(rows)
        extreme = np.empty(len(rows), np.int64)
        left_over = _again(x, mask, lo, hi, rows, ddof, root, out, extreme)
        exactly = (StdDev if root else Variance)(ddof=ddof)
        for r in extreme[:left_over]:
            window = Recalc(exactly)
            for j in range(lo[r], hi[r]):
                window.insert(float(x[j]) if valid is None or valid[j] else None)
            out[rows[r]] = window.query()
    return out
