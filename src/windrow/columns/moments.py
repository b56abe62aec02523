"""Variance and deviation of float columns, within one unit in the last place.

Rows far from 0 are first moved towards it by a constant, where that is exact for every one of them
(Sterbenz: x − c is exact for c/2 ≤ x ≤ 2c), which takes most of the cancellation away. The rows
that two-word power sums still cannot decide are done again: equal values give 0, others two passes
around their own mean. Values whose squares leave the range of floats are left to Python's integers.
"""

# mypy: disable-error-code="no-untyped-def"

import math
from typing import Any

import numpy as np

from windrow.aggregates import StdDev, Variance, exact
from windrow.columns.builtin import kernels
from windrow.columns.fused import fma
from windrow.columns.jit import njit
from windrow.columns.ranges import Array, Ranges, shared_out
from windrow.columns.sums import spread
from windrow.windows import Recalc

_REGION = 1 << 17
U = np.uint64
_LARGE, _SMALL = 1e140, 1e-140


@njit(cache=True, nogil=True)
def _extent(x, valid, first, last):
    low, high = np.inf, -np.inf
    for i in range(first, last):
        if valid[i] if len(valid) else True:
            low = min(low, x[i])
            high = max(high, x[i])
    return low, high


@njit(cache=True, nogil=True)
def _two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def _again(x, valid, lo, hi, rows, ddof, root, out, extreme):
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
def _cut(v, magic, magic2):
    """A row's value and its square, each in a high and a low part."""
    h = (v + magic) - magic
    p = v * v
    h2 = (p + magic2) - magic2
    return h, v - h, h2, (p - h2) + fma(v, v, -p)


@njit(inline="always")
def _spread_of(a1, b1, a2, b2, c2, n, inverse):
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
def _running_block(x, width, first, last, magic, magic2, bound1, bound2, ddof, root, out, doubtful):
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


@njit(inline="always")
def _plus(a, b, c, d):
    """Two numbers of two words each, added."""
    s, t = _two_sum(a, c)
    t += b + d
    high = s + t
    return high, t - (high - s)


@njit(inline="always")
def _around(x, c):
    """x − c and its square, in two words each."""
    d, e = _two_sum(x, -c)
    p = d * d
    q = fma(d, d, -p) + 2.0 * d * e
    high = p + q
    return d, e, high, q - (high - p)


@njit(cache=True, nogil=True)
def _segment(x, valid, lo, hi, place, rows, c, s1, e1, s2, e2, ddof, out):
    """Suffixes of the rows before ``place``, then the middle, then prefixes; False: not certain."""
    low = place
    for i in range(len(lo)):
        low = min(low, lo[i])
    size = place - low + 1
    suffix = np.zeros((size, 4))
    a, b, p, q = 0.0, 0.0, 0.0, 0.0
    for back in range(1, size):
        j = place - back
        if valid[j] if len(valid) else True:
            d, e, dd, de = _around(x[j], c)
            a, b = _plus(a, b, d, e)
            p, q = _plus(p, q, dd, de)
        suffix[back, 0], suffix[back, 1], suffix[back, 2], suffix[back, 3] = a, b, p, q
    high = place
    for i in range(len(lo)):
        while high < hi[i]:
            if valid[high] if len(valid) else True:
                d, e, dd, de = _around(x[high], c)
                s1, e1 = _plus(s1, e1, d, e)
                s2, e2 = _plus(s2, e2, dd, de)
            high += 1
        k = place - lo[i]
        a, b = _plus(suffix[k, 0], suffix[k, 1], s1, e1)
        p, q = _plus(suffix[k, 2], suffix[k, 3], s2, e2)
        n = float(rows[i])
        if n <= ddof:
            continue
        square = a * a
        m = square / n
        rest = (fma(-m, n, square) + fma(a, a, -square) + 2.0 * a * b) / n
        top = p - m
        spread = top + (((p - top) - m) + (q - rest))
        if p != 0.0 and not spread >= p * 1e-6:
            return False
        out[i] = spread / (n - ddof) + 0.0
    return True


def segment_moments(
    x: Array,
    valid: Array | None,
    lo: Array,
    hi: Array,
    place: int,
    rows: Array,
    middle: tuple[int, int, int],
    ddof: int,
) -> Array | None:
    """Variances of ranges around a middle known by its exact power sums; None: left to Python.

    Everything is moved by the middle's own mean, and kept in two words: with 2**21 rows the error
    is below 2**-80 of Σx², so that the loss of a million in the difference leaves an ulp to spare.
    """
    count, total, squares = middle
    largest = float(np.abs(x).max()) if len(x) else 0.0
    odd = exact.special(total) is not None or exact.unit(total) != exact.FLOAT_UNIT
    if odd or not largest < _LARGE or abs(exact.to_float(total)) >= _LARGE:
        return None
    centre = exact.to_float(total) / count
    unit = exact.FLOAT_UNIT
    shift = exact.of_float(centre) >> exact.MARK_BITS  # in units of 2**-1074, as the total is
    first = (total >> exact.MARK_BITS) - count * shift
    plain = total >> exact.MARK_BITS
    second = (squares >> exact.MARK_BITS) - 2 * shift * plain + count * shift * shift
    s1, e1 = _two_words(first, unit)
    s2, e2 = _two_words(second, unit * unit)
    if s2 < _SMALL and second:
        return None
    out = np.zeros(len(lo))
    mask: Any = np.empty(0, np.bool_) if valid is None else valid
    sure = _segment(x, mask, lo, hi, place, rows, centre, s1, e1, s2, e2, ddof, out)
    return out if sure else None


def _two_words(numerator: int, denominator: int) -> tuple[float, float]:
    high = exact.ratio(numerator, denominator)
    whole, below = high.as_integer_ratio()
    rest = numerator * below - whole * denominator
    return high, exact.ratio(rest, denominator * below)
