"""Sums of floats without any rounding, as the fewest floats that have the same sum.

A list of floats that do not overlap, smallest first, holds any sum exactly; adding a number to it,
word by word, keeps it so (Shewchuk 1997). Sums of alike numbers take one to three words.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.fused import fma
from windrow.columns.jit import njit

_LARGE = 2.0**900
"""Numbers beyond this are added apart, scaled down, so that no sum overflows."""
_DOWN, _UP = 2.0**-200, 2.0**200
_HALF = 2.0**823
_MOST_WORDS = 2200
"""One word for every bit of the range of floats, at worst, before they are compressed."""
_SCALED_BITS = 30


@njit(cache=True, nogil=True)
def squares(x, high, low):
    """Every square in two words."""
    for i in range(len(x)):
        p = x[i] * x[i]
        high[i] = p
        low[i] = fma(x[i], x[i], -p) if np.isfinite(p) else 0.0


@njit(inline="always")
def _add(words, count, v):
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


@njit(inline="always")
def _compress(words, count):
    """The same sum in as few words as hold it, smallest first; how many there are then."""
    if count < 2:
        return count
    place = count - 1
    big = words[place]
    for k in range(count - 2, -1, -1):
        w = words[k]
        s = big + w
        low = w - (s - big)
        if low != 0.0:
            words[place] = s
            place -= 1
            big = low
        else:
            big = s
    words[place] = big
    kept = 0
    big = words[place]
    for k in range(place + 1, count):
        w = words[k]
        s = w + big
        low = big - (s - w)
        if low != 0.0:
            words[kept] = low
            kept += 1
        big = s
    words[kept] = big
    return kept + 1


@njit(cache=True, nogil=True)
def shortest(x, valid, offsets, out, counts):
    """Each run as few floats with the same exact sum; NaN and infinities stand for all.

    There are never more than rows: where a run does not become shorter, it stays as it is.
    """
    words, large = np.empty(_MOST_WORDS), np.empty(_MOST_WORDS)
    place = 0
    for run in range(len(offsets) - 1):
        start = place
        plus = minus = nan = False
        some = count = count_large = 0
        for i in range(offsets[run], offsets[run + 1]):
            if not valid[i]:
                continue
            some += 1
            v = x[i]
            if abs(v) <= _LARGE:
                count = _add(words, count, v)
            elif v != v:
                nan = True
            elif v == np.inf:
                plus = True
            elif v == -np.inf:
                minus = True
            else:
                count_large = _add(large, count_large, v * _DOWN)
        if nan or plus or minus:
            if nan or plus:
                out[place] = np.nan if nan else np.inf
                place += 1
            if minus and not nan:
                out[place] = -np.inf
                place += 1
        elif some:
            count = _compress(words, count)
            count_large = _compress(large, count_large)
            for k in range(count_large):
                w = large[k]
                while abs(w) >= _HALF and place - start < some:  # its sum would overflow
                    out[place] = np.copysign(_HALF * _UP, w)
                    w -= np.copysign(_HALF, w)
                    place += 1
                if w != 0.0 and place - start < some:
                    out[place] = w * _UP
                    place += 1
            for k in range(count):
                if place - start < some:
                    out[place] = words[k]
                place += 1
            if place == start:  # the sum is 0, and there are rows
                out[place] = 0.0
                place += 1
            if place - start >= some:
                place = start
                for i in range(offsets[run], offsets[run + 1]):
                    if valid[i]:
                        out[place] = x[i]
                        place += 1
        counts[run] = place - start
    return place


@njit(cache=True, nogil=True)
def shortest_integers(x, valid, offsets, out, counts):
    """Each run as one integer, or several where one cannot hold their sum."""
    place = 0
    for run in range(len(offsets) - 1):
        start = place
        high = low = np.int64(0)  # high·2**32 + low
        some = 0
        for i in range(offsets[run], offsets[run + 1]):
            if valid[i]:
                high += x[i] >> 32
                low += x[i] & 0xFFFFFFFF
                some += 1
        high += low >> 32
        low &= 0xFFFFFFFF
        step = np.int64(1) << _SCALED_BITS  # 2**62, in units of 2**32
        words = 0
        rest = high
        while not -2 * step <= rest < 2 * step:
            rest -= step if rest > 0 else -step
            words += 1
        if words + 1 >= some:  # it does not become shorter
            for i in range(offsets[run], offsets[run + 1]):
                if valid[i]:
                    out[place] = x[i]
                    place += 1
        else:
            for _ in range(words):
                out[place] = (step if high > 0 else -step) << 32
                place += 1
            out[place] = (rest << 32) + low
            place += 1
        counts[run] = place - start
    return place
