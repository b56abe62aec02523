"""Every window of every row as a half-open range of rows [lo, hi).

Rows are sorted by key, then time, so a key is a run of rows and both ends of its windows only move
forward: over the whole table ``lo`` and ``hi`` never fall, and no kernel behind this one needs to
know about keys. Each function fills the rows ``first`` to ``last``, so that threads can share.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.jit import njit

U = np.uint64


@njit(cache=True, nogil=True)
def row_bounds(offsets, before, ending, after, first, last, lo, hi):
    """The last ``before`` rows up to ``ending`` rows ago, and ``after`` rows more."""
    if first >= last:
        return
    run = np.searchsorted(offsets, first, side="right") - 1
    start, end = offsets[run], offsets[run + 1]
    for i in range(first, last):
        while i >= end:
            run += 1
            start, end = offsets[run], offsets[run + 1]
        high = min(max(i - ending + 1 + after, start), end)
        lo[i] = min(max(i - ending - before + 1, start), high)
        hi[i] = high


@njit(cache=True, nogil=True)
def cut_older(time, queries, age, first, last, lo, hi):
    """Take out of ranges that only move forward the rows ``age`` or more older than the query."""
    low = 0
    for i in range(first, last):
        low = max(low, lo[i])
        while low < hi[i] and time[low] <= queries[i] - age:
            low += 1
        lo[i] = low


@njit(inline="always")
def _first_from(time, place, end, wanted):
    """The first row from ``place`` on whose time is not before ``wanted``.

    Looking four rows ahead without branching, before the loop that is right for any distance, makes
    irregular times three times as fast: their steps cannot be predicted.
    """
    if place < end - 4:
        place += (
            np.int64(time[U(place)] < wanted)
            + np.int64(time[U(place + 1)] < wanted)
            + np.int64(time[U(place + 2)] < wanted)
            + np.int64(time[U(place + 3)] < wanted)
        )
    while place < end and time[U(place)] < wanted:
        place += 1
    return place


@njit(cache=True, nogil=True)
def time_bounds(offsets, time, length, ending, after, with_start, with_end, first, last, lo, hi):
    """Times from t − ending − length to t − ending + after, the ends included or not.

    Each half of a run has a pointer of its own, moved in turns: one step waits for memory while the
    other one's is under way.
    """
    if first >= last:
        return
    # Integer times: "after start" is "from start + 1 on", and likewise at the end.
    from_shift = -ending - length + (0 if with_start else 1)
    to_shift = -ending + after + (1 if with_end else 0)
    follows = ending == 0 and after == 0  # then hi is where the row's own peers end, or start
    run = np.searchsorted(offsets, first, side="right") - 1
    i = first
    while i < last:
        start, end = offsets[run], offsets[run + 1]
        stop = min(end, last)
        own = time[start:end]
        high = start + np.searchsorted(own, time[i] + to_shift)
        half = (stop - i) // 2
        one = start + np.searchsorted(own, time[i] + from_shift)
        two = start + np.searchsorted(own, time[i + half] + from_shift)
        for step in range(half):
            one = _first_from(time, one, end, time[U(i + step)] + from_shift)
            two = _first_from(time, two, end, time[U(i + half + step)] + from_shift)
            lo[U(i + step)] = one
            lo[U(i + half + step)] = two
        if i + 2 * half < stop:
            lo[stop - 1] = _first_from(time, two, end, time[stop - 1] + from_shift)
        if follows and with_end:
            high = stop
            while high < end and time[U(high)] == time[U(stop - 1)]:
                high += 1
            for back in range(stop - i):
                row = stop - 1 - back
                if back and time[U(row)] != time[U(row + 1)]:
                    high = row + 1
                hi[U(row)] = high
        else:
            for row in range(i, stop):
                to_time = time[U(row)] + to_shift
                while high < end and time[U(high)] < to_time:
                    high += 1
                hi[U(row)] = high
                lo[U(row)] = min(lo[U(row)], high)
        i = stop
        run += 1


@njit(cache=True, nogil=True)
def tick_bounds(offsets, time, tick_offsets, ticks, length, ending, with_start, with_end, lo, hi):
    """As ``time_bounds``, for ticks that are not rows: ``tick_offsets`` are their runs of keys."""
    low_add = 0 if with_start else 1
    high_add = 1 if with_end else 0
    for run in range(len(offsets) - 1):
        low = high = offsets[run]
        end = offsets[run + 1]
        for i in range(tick_offsets[run], tick_offsets[run + 1]):
            from_time = ticks[i] - ending - length + low_add
            to_time = ticks[i] - ending + high_add
            while low < end and time[low] < from_time:
                low += 1
            while high < end and time[high] < to_time:
                high += 1
            hi[i] = high
            lo[i] = min(low, high)


@njit(cache=True, nogil=True)
def session_bounds(starts, stops, time, query_offsets, queries, gap, with_end, lo, hi):
    """The rows up to each query since the last pause longer than ``gap``; a query ends them too.

    Run by run: the rows from ``starts`` to ``stops``, and the queries from one of their offsets on.
    """
    for run in range(len(starts)):
        start, stop = starts[run], stops[run]
        begin = high = start
        for i in range(query_offsets[run], query_offsets[run + 1]):
            until = queries[i] + (1 if with_end else 0)
            while high < stop and time[high] < until:
                if high > start and time[high] - time[high - 1] > gap:
                    begin = high
                high += 1
            hi[i] = high
            lo[i] = begin if high > start and queries[i] - time[high - 1] <= gap else high


@njit(cache=True, nogil=True)
def column_bounds(offsets, time, low, high, first, last, lo, hi):
    """Times from a row's own ``low`` to its own ``high``, both included, found by bisection."""
    if first >= last:
        return
    run = np.searchsorted(offsets, first, side="right") - 1
    start, end = offsets[run], offsets[run + 1]
    for i in range(first, last):
        while i >= end:
            run += 1
            start, end = offsets[run], offsets[run + 1]
        own = time[start:end]
        hi[i] = start + np.searchsorted(own, high[i], side="right")
        lo[i] = min(start + np.searchsorted(own, low[i], side="left"), hi[i])


@njit(cache=True, nogil=True)
def is_monotone(lo, hi):
    """Whether neither end ever moves back."""
    for i in range(1, len(lo)):
        if lo[i] < lo[i - 1] or hi[i] < hi[i - 1]:
            return False
    return True
