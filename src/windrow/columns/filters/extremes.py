"""MAX and MIN over windows of many keys, compiled: staircases, and a tree of their steps.

Of each key only the rows count that no later one of it dominates: its staircase, values falling
from old to young. Let rows be numbered as they come, over all keys. The point with number b whose
predecessor on the staircase is a answers for every window that begins at a row in (a, b]: its value
is the key's maximum there. So the keys that reach a value in a window beginning at row q are the
points whose interval (a, b] holds q and whose value reaches it, and every key has one such point or
none: nothing is reported twice.

Rows are taken in blocks. The whole blocks between a and b go into a tree (``stabbing``); the two
blocks at its ends are looked at row by row, when q is in one of them: points at or after q whose
predecessor is before it, and successors of points before q that are beyond the block.

Everything about a row is found under its number, in an array used round and round: its key, its
neighbours on the staircase. An update is amortised O(log N) heaps of O(log N) each, a lookup
O(log N + 2^BITS + output), and there are at most 2·log2(N / 2^BITS) places for a row.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.filters import idle, stabbing
from windrow.columns.filters.idle import (
    BLOCK,
    COUNT,
    DROPPED,
    KNOWN,
    MOVES,
    NEED,
    NEEDS_DROPPED,
    NEEDS_POOL,
    NEEDS_ROWS,
    NEWEST,
    OLDEST,
)
from windrow.columns.filters.levels import oldest_kept
from windrow.columns.filters.pool import give
from windrow.columns.filters.stabbing import (
    BITS,
    END,
    HEAP,
    LEFT,
    NEXT,
    NUMBER,
    OWNER,
    SIZE,
    START,
    TIME,
    VALUE,
)
from windrow.columns.jit import njit

LAST = BLOCK
"""The number of a key's youngest row."""


@njit(cache=True, nogil=True)
def _previous(ranks, slot, rank, kept):
    """The point before this one on its key's staircase; -1 where there is none any more."""
    mask = len(ranks) - 1
    left = ranks[rank & mask, LEFT]
    if left < kept or ranks[left & mask, OWNER] != slot or ranks[left & mask, NEXT] != rank:
        return -1
    return left


@njit(cache=True, nogil=True)
def _drop_idle(keys, state, keep_from, dropped):
    slot = state[OLDEST]
    while slot >= 0 and keys[slot, NEWEST] < keep_from:
        if state[DROPPED] == len(dropped):
            state[NEED] = NEEDS_DROPPED
            return False
        idle.unlink(keys, state, slot)
        keys[slot, LAST] = -1
        keys[slot, COUNT] = 0
        dropped[state[DROPPED]] = slot
        state[DROPPED] += 1
        state[KNOWN] -= 1
        slot = state[OLDEST]
    return True


@njit(cache=True, nogil=True)
def pass_time(keys, state, ends, ranks, keep_from, dropped):
    """Let go of keys and rows before a time; False where ``dropped`` is full."""
    if not _drop_idle(keys, state, keep_from, dropped):
        return False
    mask = len(ranks) - 1
    while ends[START] < ends[END] and ranks[ends[START] & mask, TIME] < keep_from:
        ends[START] += 1
    return True


@njit(cache=True, nogil=True)
def insert(
    keys,
    state,
    ends,
    ranks,
    pool,
    free,
    high,
    low,
    longest,
    slots,
    times,
    values,
    first,
    last,
    dropped,
):
    """Rows ``first`` to ``last``; returns the first not taken, and ``state[NEED]`` says why.

    ``high`` and ``low`` are the nodes of the two trees, for "at least" and "at most"; a tree
    without nodes is not kept.
    """
    mask = len(ranks) - 1
    blocks = len(ranks) >> BITS
    for i in range(first, last):
        slot, time, value = slots[i], times[i], values[i]
        if not pass_time(keys, state, ends, ranks, oldest_kept(time, longest), dropped):
            return i
        rank = ends[END]
        kept = ends[START] >> BITS << BITS
        if (rank >> BITS) - (kept >> BITS) >= blocks:
            state[NEED] = NEEDS_ROWS
            return i
        left = keys[slot, LAST] if keys[slot, COUNT] else -1
        if left < kept:
            left = -1
        while left >= 0 and ranks[left & mask, VALUE] <= value:
            left = _previous(ranks, slot, left, kept)
        start = left if left >= 0 else kept - 1
        x, y = (start >> BITS) + 1, rank >> BITS
        if x < y and not (
            stabbing.has_room(high, pool, free, blocks, x, y)
            and (len(low) == 0 or stabbing.has_room(low, pool, free, blocks, x, y))
        ):
            state[NEED] = NEEDS_POOL
            return i
        gone = keys[slot, LAST] if keys[slot, COUNT] else -1
        if gone < kept:
            gone = -1
        while gone != left:
            before = _previous(ranks, slot, gone, kept)
            ranks[gone & mask, OWNER] = -1
            u, w = (ranks[gone & mask, LEFT] >> BITS) + 1, gone >> BITS
            if u < w:
                stabbing.end(high, ranks, pool, free, blocks, u, w)
                if len(low):
                    stabbing.end(low, ranks, pool, free, blocks, u, w)
            gone = before
        row = ranks[rank & mask]
        row[TIME], row[VALUE], row[OWNER], row[LEFT], row[NEXT] = time, value, slot, start, -1
        if left >= 0:
            ranks[left & mask, NEXT] = rank
        if x < y:
            state[MOVES] += stabbing.add(high, pool, ends, blocks, x, y, value, rank)
            if len(low):
                state[MOVES] += stabbing.add(low, pool, ends, blocks, x, y, ~value, rank)
        ends[END] = rank + 1
        if keys[slot, COUNT]:
            idle.touch(keys, state, slot, time)
        else:
            idle.enter(keys, state, slot, time)
        keys[slot, COUNT] += 1
        keys[slot, LAST] = rank
    return last


@njit(cache=True, nogil=True)
def first_since(ends, ranks, since):
    """The number of the first row at or after a time."""
    mask = len(ranks) - 1
    low, high = ends[START], ends[END]
    while low < high:
        middle = (low + high) >> 1
        if ranks[middle & mask, TIME] < since:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def lookup(ends, ranks, pool, nodes, is_low, since, least, most, out):
    """Keys whose extreme since a time is from ``least`` to ``most``; returns how many.

    The tree of highs reads off what reaches ``least``, that of lows what is not above ``most``; the
    other bound is looked at for each that was read off.
    """
    q = first_since(ends, ranks, since)
    if q == ends[END]:
        return 0
    mask = len(ranks) - 1
    begin = q >> BITS << BITS
    stop = begin + (1 << BITS)
    border = ~most if is_low else least
    found = stabbing.stab(nodes, ranks, pool, len(ranks) >> BITS, q >> BITS, border, out)
    for rank in range(begin, q):
        row = ranks[rank & mask]
        if row[OWNER] >= 0 and row[NEXT] >= stop:
            out[found] = row[NEXT]
            found += 1
    for rank in range(q, min(stop, ends[END])):
        row = ranks[rank & mask]
        if row[OWNER] >= 0 and row[LEFT] < q:
            out[found] = rank
            found += 1
    answered = 0
    for k in range(found):
        row = ranks[out[k] & mask]
        out[answered] = row[OWNER]
        answered += least <= row[VALUE] <= most
    return answered


@njit(cache=True, nogil=True)
def value_since(keys, ends, ranks, slot, since):
    """The row with a key's extreme since a time; -1 where it has none."""
    mask = len(ranks) - 1
    kept = ends[START] >> BITS << BITS
    rank = keys[slot, LAST]
    found = -1
    while rank >= 0 and ranks[rank & mask, TIME] >= since and rank >= ends[START]:
        found = rank
        rank = _previous(ranks, slot, rank, kept)
    return found


@njit(cache=True, nogil=True)
def living(keys, state, ends, ranks, out):
    """The numbers of all rows on some key's staircase, in order; returns how many."""
    mask = len(ranks) - 1
    found = 0
    for rank in range(ends[START], ends[END]):
        if ranks[rank & mask, OWNER] >= 0:
            out[found] = rank
            found += 1
    return found


@njit(cache=True, nogil=True)
def fill(ends, ranks, pool, free, nodes, is_low, from_rank):
    """Build a tree from the staircases; returns the row to go on from where the pool is used up."""
    mask = len(ranks) - 1
    blocks = len(ranks) >> BITS
    for rank in range(from_rank, ends[END]):
        row = ranks[rank & mask]
        if row[OWNER] < 0:
            continue
        x, y = max((row[LEFT] >> BITS) + 1, ends[START] >> BITS), rank >> BITS
        if x < y:
            if not stabbing.has_room(nodes, pool, free, blocks, x, y):
                return rank
            value = ~row[VALUE] if is_low else row[VALUE]
            stabbing.add(nodes, pool, ends, blocks, x, y, value, rank)
    return ends[END]


def new_nodes(blocks: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Nodes of a tree over so many blocks, all empty."""
    return np.full((2 * blocks, stabbing.NODES), -1, np.int64)


@njit(cache=True, nogil=True)
def spread_ranks(ends, old, new):
    """Copy the rows that may still be looked at to a larger array."""
    for rank in range(ends[START] >> BITS << BITS, ends[END]):
        new[rank & (len(new) - 1)] = old[rank & (len(old) - 1)]


@njit(cache=True, nogil=True)
def spread_nodes(ends, pool, free, old, new):
    """Copy nodes to a larger tree, without those that have expired."""
    blocks, more = len(old) // 2, len(new) // 2
    oldest = ends[START] >> BITS
    level = 0
    while blocks >> level:
        first = 2 * blocks - (2 * blocks >> level)
        for at in range(first, first + (blocks >> level)):
            number = old[at, NUMBER]
            if number < 0 or old[at, HEAP] < 0:
                continue
            if (number + 1) << level <= oldest:
                give(pool, free, old[at, HEAP], old[at, SIZE])
            else:
                new[stabbing.node_at(more, level, number)] = old[at]
        level += 1
