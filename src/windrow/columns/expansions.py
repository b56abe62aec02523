"""Sums of floats without any rounding, as the fewest floats that have the same sum.

A list of floats that do not overlap, smallest first, holds any sum exactly; adding a number to it,
word by word, keeps it so (Shewchuk 1997). Sums of alike numbers take one to three words.
"""

import numpy as np
from numba import njit

from windrow.columns.fused import fma

_LARGE = 2.0**1000
_MOST_WORDS = 128


@njit(cache=True, nogil=True)
def squares(x, high, low):  # type: ignore[no-untyped-def]
    """Every square in two words."""
    for i in range(len(x)):
        p = x[i] * x[i]
        high[i] = p
        low[i] = fma(x[i], x[i], -p) if np.isfinite(p) else 0.0


@njit(inline="always")
def _add(words, count, v):  # type: ignore[no-untyped-def]
    """Add a number to a list of words; how many there are then."""
    kept = 0
    for k in range(count):
        w = words[k]
        s = v + w
        t = s - v
        low = (v - (s - t)) + (w - t)
        if low != 0.0:
            words[kept] = low
            kept += 1
        v = s
    if v != 0.0:
        words[kept] = v
        kept += 1
    return kept


@njit(cache=True, nogil=True)
def shortest(x, valid, offsets, out, counts):  # type: ignore[no-untyped-def]
    """Each run as few floats with the same exact sum; NaN and infinities stand for all.

    Runs with numbers near the largest there is stay as they are: adding those could overflow.
    """
    words = np.empty(_MOST_WORDS)
    place = 0
    for run in range(len(offsets) - 1):
        start = place
        plus = minus = nan = plain = some = False
        for i in range(offsets[run], offsets[run + 1]):
            if valid[i]:
                v = x[i]
                some = True
                nan |= v != v
                plus |= v == np.inf
                minus |= v == -np.inf
                plain |= abs(v) > _LARGE
        if nan or plus or minus:
            if nan or plus:
                out[place] = np.nan if nan else np.inf
                place += 1
            if minus and not nan:
                out[place] = -np.inf
                place += 1
        elif plain:
            for i in range(offsets[run], offsets[run + 1]):
                if valid[i]:
                    out[place] = x[i]
                    place += 1
        elif some:
            count = 0
            for i in range(offsets[run], offsets[run + 1]):
                if valid[i]:
                    count = _add(words, count, x[i])
            if count == 0:  # the sum is 0, and there are rows
                words[0] = 0.0
                count = 1
            for k in range(count):
                out[place] = words[k]
                place += 1
        counts[run] = place - start
    return place


@njit(cache=True, nogil=True)
def shortest_integers(x, valid, offsets, out, counts):  # type: ignore[no-untyped-def]
    """Each run as one integer, or several where one cannot hold their sum."""
    place = 0
    for run in range(len(offsets) - 1):
        start = place
        total = np.int64(0)
        some = False
        for i in range(offsets[run], offsets[run + 1]):
            if not valid[i]:
                continue
            v = x[i]
            s = total + v
            if ((total ^ s) & (v ^ s)) < 0:  # it would not fit
                out[place] = total
                place += 1
                s = v
            total = s
            some = True
        if some:
            out[place] = total
            place += 1
        counts[run] = place - start
    return place


@njit(cache=True, nogil=True)
def exact_variances(x, high, low, lo, hi, rows, ddof, root, out):  # type: ignore[no-untyped-def]
    """(n·Σx² − (Σx)²) / (n·(n − ddof)) of each range, the difference without rounding."""
    sums, squared, top = np.empty(_MOST_WORDS), np.empty(_MOST_WORDS), np.empty(8192)
    for i in range(len(lo)):
        n = float(rows[i])
        if rows[i] <= ddof:
            continue
        count = count2 = 0
        odd = False
        for j in range(lo[i], hi[i]):
            odd |= not np.isfinite(x[j]) or not np.isfinite(high[j])
        if odd:
            out[i] = np.nan
            continue
        for j in range(lo[i], hi[i]):
            count = _add(sums, count, x[j])
            count2 = _add(squared, count2, high[j])
            count2 = _add(squared, count2, low[j])
        size = 0
        for k in range(count2):
            p = squared[k] * n
            size = _add(top, size, fma(squared[k], n, -p))
            size = _add(top, size, p)
        for k in range(count):
            for m in range(count):
                p = sums[k] * sums[m]
                size = _add(top, size, -fma(sums[k], sums[m], -p))
                size = _add(top, size, -p)
        total = 0.0
        for k in range(size):
            total += top[k]
        variance = max(total, 0.0) / (n * (n - ddof))
        out[i] = np.sqrt(variance) if root else variance
