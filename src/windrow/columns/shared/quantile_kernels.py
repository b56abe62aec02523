"""Sorted runs: merged as rows come, and searched together for the k-th smallest."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.shared.bits import leading_zeros, trailing_zeros

U = np.uint64
_CHUNK = 1 << 12
MOST_RUNS = 128


@njit(cache=True, nogil=True)
def _merge(source, target, start, half):
    """Two sorted runs, side by side from ``start`` on, as one; without a branch on the values."""
    i, j, at = start, start + half, start
    middle, end = j, j + half
    while i < middle and j < end:
        a, b = source[U(i)], source[U(j)]
        later = b < a
        target[U(at)] = b if later else a
        j += later
        i += 1 - later
        at += 1
    while i < middle:
        target[U(at)] = source[U(i)]
        i += 1
        at += 1
    while j < end:
        target[U(at)] = source[U(j)]
        j += 1
        at += 1


@njit(cache=True, nogil=True)
def append(runs, keys, row):
    """Rows from ``row`` on, and every run of 2**level rows that they complete."""
    levels, capacity = runs.shape
    mask = capacity - 1
    done = 0
    while done < len(keys):
        size = min(_CHUNK, capacity, len(keys) - done)
        first, last = row + done, row + done + size
        for i in range(size):
            runs[0, U((first + i) & mask)] = keys[U(done + i)]
        for level in range(1, levels):
            a, b = first >> level, last >> level
            if a == b:
                break
            for k in range(a, b):
                _merge(runs[level - 1], runs[level], (k << level) & mask, 1 << (level - 1))
        done += size


@njit(cache=True, nogil=True)
def split(left, right, mask, level, low, high):
    """The runs that make up rows ``left`` to ``right``: levels, first and last places; how many."""
    count = 0
    at, end = left, right + 1
    step = at & -at
    while step and at + step <= end:
        level[count] = trailing_zeros(U(step))
        low[count] = at & mask
        high[count] = (at & mask) + step
        count += 1
        at += step
        step = at & -at
    while at < end:
        top = 63 - leading_zeros(U(end - at))
        level[count] = top
        low[count] = at & mask
        high[count] = (at & mask) + (1 << top)
        count += 1
        at += 1 << top
    return count


@njit(cache=True, nogil=True)
def _place(run, low, high, key, equal):
    """The first place whose key is above, or not below, a key; without a branch on the values."""
    size = high - low
    while size > 1:
        half = size >> 1
        probe = run[U(low + half - 1)]
        ahead = probe < key or (equal and probe == key)
        low += half if ahead else 0
        size -= half
    if size == 1:
        probe = run[U(low)]
        low += 1 if probe < key or (equal and probe == key) else 0
    return low


@njit(cache=True, nogil=True)
def _select(runs, level, base, low, high, end, at, count, k):
    """The k-th smallest (from 0) of all runs, and the next one.

    A pivot is taken from the run that has most left, where its share of the rank would be, and is
    placed in every run; equal keys are ordered by run, so that each pivot leaves fewer. Every third
    pivot is a middle one, which bounds the number of them whatever the keys.
    """
    turn = 0
    while True:
        best, most, left, before = 0, 0, 0, 0
        for j in range(count):
            size = high[j] - low[j]
            left += size
            before += low[j] - base[j]
            if size > most:
                best, most = j, size
        turn += 1
        share = most >> 1 if turn % 3 == 0 else min((k - before) * most // left, most - 1)
        place = low[best] + share
        pivot = runs[level[best], place]
        rank = 0
        for j in range(count):
            spot = place
            if j != best:
                spot = _place(runs[level[j]], low[j], high[j], pivot, j < best)
            at[j] = spot
            rank += spot - base[j]
        if rank == k:
            break
        if rank > k:
            for j in range(count):
                high[j] = at[j]
        else:
            for j in range(count):
                low[j] = at[j]
            low[best] = place + 1
    following = pivot
    found = False
    for j in range(count):
        spot = at[j] + 1 if j == best else at[j]
        if spot < end[j]:
            key = runs[level[j], spot]
            if not found or key < following:
                following = key
                found = True
    return pivot, following


@njit(cache=True, nogil=True)
def select(runs, lefts, rights, ranks, out):
    """Of each range, the keys of a rank and of the next; ranks below 0 are left out."""
    mask = runs.shape[1] - 1
    level = np.empty(MOST_RUNS, np.int64)
    low, high = np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64)
    base, end = np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64)
    at = np.empty(MOST_RUNS, np.int64)
    for i in range(len(lefts)):
        if ranks[i] < 0:
            continue
        count = split(lefts[i], rights[i], mask, level, low, high)
        base[:count] = low[:count]
        end[:count] = high[:count]
        out[i, 0], out[i, 1] = _select(runs, level, base, low, high, end, at, count, ranks[i])


@njit(cache=True, nogil=True)
def count_before(runs, lefts, rights, keys, equal, out):
    """Of each range, how many keys are below a key, or not above it."""
    mask = runs.shape[1] - 1
    level = np.empty(MOST_RUNS, np.int64)
    low, high = np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64)
    for i in range(len(lefts)):
        count = split(lefts[i], rights[i], mask, level, low, high)
        found = 0
        for j in range(count):
            found += _place(runs[level[j]], low[j], high[j], keys[i], equal) - low[j]
        out[i] = found
