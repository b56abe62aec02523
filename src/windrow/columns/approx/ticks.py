"""A bank's counters over time: the open tick and what it has come to, beside each counter."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.approx.bank import estimate_with, skip, take
from windrow.columns.approx.fields import FACTOR, SHIFT, W
from windrow.columns.approx.runs import NEVER, moved
from windrow.columns.filters.factorise import ticks_of
from windrow.columns.jit import njit

__all__ = ["NEVER", "check", "estimates", "insert", "ticks_of"]


@njit(cache=True, nogil=True)
def check(found, ticks, values, nows, opens, limit, clamp):
    """The first pair that goes back in time, or comes to too much; ``nows``, ``opens`` are lost."""
    for j in range(len(found)):
        row = found[j]
        if ticks[j] < nows[row]:
            return j, True
        if ticks[j] > nows[row]:
            nows[row], opens[row] = ticks[j], 0
        opens[row] = min(opens[row] + values[j], limit + 1)
        if opens[row] > limit and not clamp:
            return j, False
    return -1, False


@njit(cache=True, nogil=True)
def insert(rows, stride, p, nows, opens, found, ticks, values, limit):
    """Take pairs whose rows and ticks are known, and checked."""
    for j in range(len(found)):
        row, tick = found[j], ticks[j]
        start = row * stride
        if tick != nows[row]:
            if nows[row] != NEVER:
                moved(rows, start, stride, p, nows[row], opens[row], tick)
            nows[row], opens[row] = tick, 0
        opens[row] = min(opens[row] + values[j], limit)
        rows[start] |= np.uint8(1)


@njit(cache=True, nogil=True)
def estimates(rows, stride, p, scale, nows, opens, found, tick, out):
    """Estimates for the windows that end with a tick; a row before it is first moved on, aside."""
    half = (np.int64(1) << p[SHIFT]) >> 1
    aside = np.empty(stride, np.uint8)
    for j in range(len(found)):
        row = found[j]
        if row < 0 or tick - nows[row] >= p[W]:
            out[j] = 0.0
            continue
        start = np.int64(row) * stride
        units = (opens[row] * p[FACTOR] + half) >> p[SHIFT]
        if tick <= nows[row]:
            out[j] = estimate_with(rows, start, p, units) * scale
            continue
        aside[:] = rows[start : start + stride]
        take(aside, 0, p, units, np.uint8(0))
        skip(aside, 0, p, tick - nows[row] - 1)
        out[j] = estimate_with(aside, 0, p, 0) * scale
