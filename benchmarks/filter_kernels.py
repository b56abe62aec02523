"""Compiled loops for ``benchmarks.filters``: rows and lookups in turn, and what they compare with.

The naive way keeps what the filters keep of each key (a ring of times, with running sums, or a
staircase) and visits every key in a lookup: one R-INT for each. ``probing`` is the naive way with
the filters' own insight, that v rows since a time is one look at the v-th row from the end.
"""

import numpy as np

from windrow.columns.filters import counts, extremes, idle, ordered, stabbing, sum_lookups
from windrow.columns.jit import njit

U = np.uint64


@njit(cache=True, nogil=True)
def count_filter(  # type: ignore[no-untyped-def]
    store, levels, indexes, per_size, span, marks, queries, slots, times, first, last, out, told
):
    """A row, then a lookup; returns the row reached, answers are counted in told[3]."""
    keys, state, rows, rows_free, pool, free, dropped = store
    for i in range(first, last):
        row = counts.insert(
            keys, state, rows, rows_free, pool, free, levels, indexes, per_size, span, True,
            slots, times, i, i + 1, dropped,
        )  # fmt: skip
        if row == i:
            return i
        query = queries[i % len(queries)]
        since = times[i] - query[0] + 1
        if query[2] == query[3]:
            told[3] += ordered.read_off(pool, indexes[query[2]], since, out)
        else:
            told[3] += counts.at_least(
                keys, state, rows, pool, indexes[query[2]], indexes[query[3]], marks, since,
                query[1], out, told,
            )  # fmt: skip
    return last


@njit(cache=True, nogil=True)
def searched(keys, slot, rows, since):  # type: ignore[no-untyped-def]
    """R-INT for counts as quick as it gets: halves without a branch that could be mispredicted."""
    block, mask = keys[slot, idle.BLOCK], (1 << keys[slot, idle.SIZE]) - 1
    first, length = keys[slot, idle.FIRST], keys[slot, idle.LENGTH]
    low, left = 0, length
    while left > 0:
        half = (left + 1) >> 1
        early = rows[U(block + ((first + low + half - 1) & mask))] < since
        low += half if early else 0
        left = left - half if early else half - 1
    return length - low


@njit(cache=True, nogil=True)
def count_naive(  # type: ignore[no-untyped-def]
    store,
    levels,
    indexes,
    span,
    queries,
    slots,
    times,
    first,
    last,
    probing,
    choosy,
    size,
    out,
    told,
):
    """As above with one R-INT for each key: a search in its ring, or only one look.

    ``choosy`` passes over keys that have not had so many rows in the longest window.
    """
    keys, state, rows, rows_free, pool, free, dropped = store
    for i in range(first, last):
        row = counts.insert(
            keys, state, rows, rows_free, pool, free, levels, indexes, 1, span, True,
            slots, times, i, i + 1, dropped,
        )  # fmt: skip
        if row == i:
            return i
        query = queries[i % len(queries)]
        since, least = times[i] - query[0] + 1, query[1]
        found = 0
        if probing:
            for slot in range(size):
                out[found] = slot
                found += counts.reaches(keys, slot, rows, since, least)
        elif choosy:
            for slot in range(size):
                if keys[slot, idle.LENGTH] >= least:
                    out[found] = slot
                    found += searched(keys, slot, rows, since) >= least
        else:
            for slot in range(size):
                out[found] = slot
                found += searched(keys, slot, rows, since) >= least
        told[3] += found
    return last


@njit(cache=True, nogil=True)
def updates(  # type: ignore[no-untyped-def]
    store, levels, indexes, per_size, span, slots, times, first, last
):
    """Rows only."""
    keys, state, rows, rows_free, pool, free, dropped = store
    return counts.insert(
        keys, state, rows, rows_free, pool, free, levels, indexes, per_size, span, True,
        slots, times, first, last, dropped,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def many_sum_lookups(  # type: ignore[no-untyped-def]
    store, ring, pool, indexes, marks, queries, limits, now, first, last, naive, size, out, told
):
    """Lookups one after the other, each for another threshold, with the filter or without."""
    keys, state = store
    rows, values, highs, lows, bases = ring
    for i in range(first, last):
        query, limit = queries[i % len(queries)], limits[i % len(queries)]
        since = now - query[0] + 1
        if not naive:
            told[3] += sum_lookups.at_least(
                keys, state, rows, values, highs, lows, bases, pool, indexes[query[2]],
                indexes[query[3]], marks, since, limit, out, told,
            )  # fmt: skip
            continue
        found = 0
        for slot in range(size):
            out[found] = slot
            found += (
                sum_lookups.sign(keys, slot, rows, values, highs, lows, bases, since, limit) >= 0
            )
        told[3] += found
    return last


@njit(cache=True, nogil=True)
def staircases(keys, ends, ranks, size):  # type: ignore[no-untyped-def]
    """Each key's staircase in one piece: where it begins, times, values."""
    mask = len(ranks) - 1
    start = ends[stabbing.START]
    offsets = np.zeros(size + 1, np.int64)
    for rank in range(start, ends[stabbing.END]):
        if ranks[rank & mask, stabbing.OWNER] >= 0:
            offsets[ranks[rank & mask, stabbing.OWNER] + 1] += 1
    for slot in range(size):
        offsets[slot + 1] += offsets[slot]
    place = offsets.copy()
    steps = np.empty((offsets[size], 2), np.int64)
    for rank in range(start, ends[stabbing.END]):
        row = ranks[rank & mask]
        if row[stabbing.OWNER] >= 0:
            steps[place[row[stabbing.OWNER]], 0] = row[stabbing.TIME]
            steps[place[row[stabbing.OWNER]], 1] = row[stabbing.VALUE]
            place[row[stabbing.OWNER]] += 1
    return offsets, steps


@njit(cache=True, nogil=True)
def many_max_lookups(  # type: ignore[no-untyped-def]
    offsets, steps, ends, ranks, pool, nodes, queries, now, first, last, naive, size, out, told
):
    """As above for the largest value; naive: a search in each key's staircase."""
    for i in range(first, last):
        query = queries[i % len(queries)]
        since, least = now - query[0] + 1, query[1]
        if not naive:
            most = np.iinfo(np.int64).max - 1
            told[3] += extremes.lookup(ends, ranks, pool, nodes, False, since, least, most, out)
            continue
        found = 0
        for slot in range(size):
            low, end = offsets[slot], offsets[slot + 1]
            high = end
            while low < high:
                middle = (low + high) >> 1
                if steps[middle, 0] < since:
                    low = middle + 1
                else:
                    high = middle
            out[found] = slot
            found += low < end and steps[low, 1] >= least
        told[3] += found
    return last


# --- the index, against others --------------------------------------------------------------------


@njit(cache=True, nogil=True)
def heap_updates(pool, free, index, slots, values):  # type: ignore[no-untyped-def]
    """New values for keys, in the heap."""
    for i in range(len(slots)):
        if not ordered.has_room(pool, free, index):
            return False
        ordered.put(pool, index, slots[i], values[i])
    return True


@njit(cache=True, nogil=True)
def heap_lookups(pool, index, borders, out):  # type: ignore[no-untyped-def]
    """Everything beyond each border, from the heap."""
    found = 0
    for border in borders:
        found += ordered.read_off(pool, index, border, out)
    return found


@njit(cache=True, nogil=True)
def tournament_updates(tree, slots, values):  # type: ignore[no-untyped-def]
    """New, larger values for keys, in a tree whose nodes hold the larger of two below."""
    half = len(tree) // 2
    for i in range(len(slots)):
        at, value = half + slots[i], values[i]
        while at and tree[at] < value:
            tree[at] = value
            at >>= 1


@njit(cache=True, nogil=True)
def tournament_lookups(tree, borders, stack, out):  # type: ignore[no-untyped-def]
    """Everything beyond each border, down only where there is something."""
    half = len(tree) // 2
    found = 0
    for border in borders:
        one = 0
        if tree[1] >= border:
            stack[0] = 1
            depth = 1
            while depth:
                depth -= 1
                at = stack[depth]
                if at >= half:
                    out[one] = at - half
                    one += 1
                    continue
                stack[depth] = 2 * at + 1
                depth += tree[2 * at + 1] >= border
                stack[depth] = 2 * at
                depth += tree[2 * at] >= border
        found += one
    return found


@njit(cache=True, nogil=True)
def scan_lookups(times, borders, out):  # type: ignore[no-untyped-def]
    """Everything beyond each border, by looking at all."""
    found = 0
    for border in borders:
        one = 0
        for slot in range(len(times)):
            out[one] = slot
            one += times[slot] >= border
        found += one
    return found


def store_of(filter):  # type: ignore[no-untyped-def]
    """The arrays of a CiCount that the loops take together."""
    dropped = np.empty(len(filter._keys) + 1_000_000, np.int64)
    filter._state[idle.DROPPED] = 0
    return (
        filter._keys,
        filter._state,
        filter._rows,
        filter._rows_free,
        filter._pool,
        filter._free,
        dropped,
    )
