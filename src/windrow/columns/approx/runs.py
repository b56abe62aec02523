"""Counters over sorted rows: each run of rows feeds one counter, and every row gets an estimate."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.approx.bank import estimate, estimate_with, skip, take
from windrow.columns.approx.fields import FACTOR, SHIFT, W
from windrow.columns.jit import njit

NEVER = np.iinfo(np.int64).min
"""The tick of a counter that no row has come to."""


@njit(cache=True, nogil=True)
def over_rows(rows, stride, p, scale, slots, offsets, values, first, last, out):
    """Every row is one value. ``slots``: which counter each run has; none: a new one for each."""
    half = (np.int64(1) << p[SHIFT]) >> 1
    for run in range(first, last):
        if len(slots):
            start = slots[run] * stride
        else:
            start = np.int64(0)
            rows[:] = 0
        for i in range(offsets[run], offsets[run + 1]):
            take(rows, start, p, (values[i] * p[FACTOR] + half) >> p[SHIFT], np.uint8(1))
            out[i] = estimate(rows, start, p) * scale


@njit(cache=True, nogil=True, inline="always")
def moved(rows, start, stride, p, now, opened, tick):
    """The open tick ends and time goes on to another; after a whole window nothing is left."""
    if tick - now < p[W]:
        half = (np.int64(1) << p[SHIFT]) >> 1
        take(rows, start, p, (opened * p[FACTOR] + half) >> p[SHIFT], np.uint8(1))
        skip(rows, start, p, tick - now - 1)
    else:
        rows[start : start + stride] = 0


@njit(cache=True, nogil=True)
def over_ticks(
    rows, stride, p, scale, slots, nows, opens, limit, length, offsets, time, values, first, last,
    out, beyond,
):  # fmt: skip
    """All rows of a tick are one value; rows of equal time have one estimate.

    ``beyond``: where a tick has come to more than the limit, which then counts. How many there are.
    """
    half = (np.int64(1) << p[SHIFT]) >> 1
    too_large = 0
    for run in range(first, last):
        if len(slots):
            slot = slots[run]
            now, opened = nows[slot], opens[slot]
        else:
            slot = np.int64(0)
            rows[:] = 0
            now, opened = NEVER, np.int64(0)
        start = slot * stride
        i, end = offsets[run], offsets[run + 1]
        while i < end:
            t = time[i]
            tick = t // length
            if tick != now:
                if now != NEVER:
                    moved(rows, start, stride, p, now, opened, tick)
                now, opened = tick, np.int64(0)
            following = i
            while following < end and time[following] == t:
                opened = min(opened + values[following], limit + 1)
                following += 1
            wrong = opened > limit
            opened = min(opened, limit)
            units = (opened * p[FACTOR] + half) >> p[SHIFT]
            answer = estimate_with(rows, start, p, units) * scale
            for j in range(i, following):
                out[j] = answer
                beyond[j] = wrong
            too_large += (following - i) * wrong
            i = following
        if len(slots):
            nows[slot], opens[slot] = now, opened
    return too_large
