"""CI-COUNT, compiled: a ring of row times for every key, and one index for every level.

Distances are counted from a key's youngest row, which has distance 1. The level (l, j), with p
levels of each size 2^l, holds the distances p·(2^l − 1) + 2^l·j + 1 up to that + 2^l − 1, and its
entry is the time of the one row in it whose position (from the key's first row, 1) is a multiple of
2^l. After the m-th row the entries of size 2^l move exactly when 2^l divides m + p, and then to the
row at the nearest distance of their level.

With the rows at hand (``exact``) that row is read from the ring. Without them a block holds the
entries of all levels in order: those of the sizes that move shift by one, the first is the new row.
"""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.filters import idle, ordered
from windrow.columns.filters.idle import BLOCK, COUNT, FIRST, LENGTH, NEED, NEWEST, SERIAL, SIZE
from windrow.columns.filters.levels import (
    CLASS,
    LOW,
    NEAR,
    NUMBER,
    drop_idle,
    oldest_kept,
    set_entry,
)
from windrow.columns.filters.pool import LEAST, give, take
from windrow.columns.jit import njit

_SMALLEST = 2


@njit(cache=True, nogil=True)
def _resize(keys, slot, rows, rows_free, size):
    """Move a key's ring to a block of another size; False where there is none."""
    block = take(rows, rows_free, size)
    if block < 0:
        return False
    old, mask, first = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1, keys[slot, FIRST]
    for k in range(keys[slot, LENGTH]):
        rows[block + k] = rows[old + ((first + k) & mask)]
    if old >= 0:
        give(rows, rows_free, old, keys[slot, SIZE])
    keys[slot, BLOCK], keys[slot, SIZE], keys[slot, FIRST] = block, size, 0
    return True


@njit(cache=True, nogil=True)
def _evict(keys, slot, rows, rows_free, keep_from):
    """Let go rows that no window reaches any more, and memory that they leave."""
    block, size, first = keys[slot, BLOCK], keys[slot, SIZE], keys[slot, FIRST]
    mask = (1 << size) - 1
    length = keys[slot, LENGTH]
    while length > 0 and rows[block + (first & mask)] < keep_from:
        first += 1
        length -= 1
    keys[slot, FIRST], keys[slot, LENGTH] = first & mask, length
    if size > _SMALLEST and 8 * length < 1 << size:
        _resize(keys, slot, rows, rows_free, size - 1)


@njit(cache=True, nogil=True)
def _shift(keys, slot, rows, moving, time, keep_from):
    """The first ``moving`` entries move up by one; entries that are too old are left out."""
    block, length = keys[slot, BLOCK], keys[slot, LENGTH]
    last = min(length, moving - 1)
    for k in range(last, 0, -1):
        rows[block + k] = rows[block + k - 1]
    rows[block] = time
    length = max(length, last + 1)
    while rows[block + length - 1] < keep_from:
        length -= 1
    keys[slot, LENGTH] = length


@njit(cache=True, nogil=True)
def entry(keys, slot, rows, near, number, exact):
    """The time that a level's entry has just moved to; the least number where there is none."""
    block, length = keys[slot, BLOCK], keys[slot, LENGTH]
    if exact:
        if near > length:
            return LEAST
        mask = (1 << keys[slot, SIZE]) - 1
        return rows[block + ((keys[slot, FIRST] + length - near) & mask)]
    return rows[block + number] if number < length else LEAST


@njit(cache=True, nogil=True)
def insert(
    keys,
    state,
    rows,
    rows_free,
    pool,
    free,
    levels,
    indexes,
    per_size,
    longest,
    exact,
    slots,
    times,
    first,
    last,
    dropped,
):
    """Rows ``first`` to ``last``; returns the first not taken, and ``state[NEED]`` says why."""
    for i in range(first, last):
        slot, time = slots[i], times[i]
        keep_from = oldest_kept(time, longest)
        if not drop_idle(keys, state, rows, rows_free, pool, free, indexes, keep_from, dropped):
            return i
        count = keys[slot, COUNT] + 1
        new = count == 1
        if exact and not new:
            _evict(keys, slot, rows, rows_free, keep_from)
        if new and keys[slot, BLOCK] < 0:
            keys[slot, SIZE], keys[slot, FIRST], keys[slot, LENGTH] = 0, 0, 0
            if not _resize(keys, slot, rows, rows_free, _SMALLEST):
                state[NEED] = idle.NEEDS_ROWS
                return i
        size = keys[slot, SIZE]
        if keys[slot, LENGTH] == 1 << size and not _resize(keys, slot, rows, rows_free, size + 1):
            state[NEED] = idle.NEEDS_ROWS
            return i
        position = count + per_size
        zeros = 0
        while (position >> zeros) & 1 == 0:
            zeros += 1
        for x in range(len(levels)):
            if (new or levels[x, CLASS] <= zeros) and not ordered.has_room(pool, free, indexes[x]):
                state[NEED] = idle.NEEDS_POOL
                return i
        keys[slot, COUNT] = count
        if exact:
            length = keys[slot, LENGTH]
            mask = (1 << keys[slot, SIZE]) - 1
            rows[keys[slot, BLOCK] + ((keys[slot, FIRST] + length) & mask)] = time
            keys[slot, LENGTH] = length + 1
        else:
            _shift(keys, slot, rows, (zeros + 1) * per_size, time, keep_from)
        if new:
            idle.enter(keys, state, slot, time)
            for x in range(len(levels)):
                if levels[x, LOW]:
                    ordered.put(pool, indexes[x], slot, ~LEAST)
        else:
            idle.touch(keys, state, slot, time)
        for x in range(len(levels)):
            if levels[x, CLASS] > zeros:
                break  # levels are in order
            moved = entry(keys, slot, rows, levels[x, NEAR], levels[x, NUMBER], exact)
            if moved != LEAST:
                set_entry(pool, indexes[x], levels[x, LOW], slot, moved, state)
    return last


@njit(cache=True, nogil=True)
def current_entry(keys, slot, rows, level, per_size, exact):
    """The time of a level's entry; the least number where there is none."""
    near = level[NEAR]
    if exact:  # its position is the last multiple of 2^class at or before the nearest
        nearest = keys[slot, COUNT] - near + 1
        if nearest < 1:
            return LEAST
        near += nearest & ((1 << level[CLASS]) - 1)
        if near > keys[slot, COUNT]:
            return LEAST
    return entry(keys, slot, rows, near, level[NUMBER], exact)


@njit(cache=True, nogil=True)
def fill(keys, state, rows, pool, free, level, index, per_size, exact):
    """Index a level from the rows there are; False where the pool is used up: call it again."""
    slot = state[idle.OLDEST]
    while slot >= 0:
        time = current_entry(keys, slot, rows, level, per_size, exact)
        if time != LEAST or level[LOW]:
            if not ordered.has_room(pool, free, index):
                return False
            ordered.put(pool, index, slot, ~time if level[LOW] else time)
        slot = keys[slot, idle.YOUNGER]
    return True


@njit(cache=True, nogil=True)
def reaches(keys, slot, rows, since, count):
    """Whether a key has at least so many rows from a time on: one look at one row."""
    length = keys[slot, LENGTH]
    if count > length:
        return False
    if count <= 0:
        return True
    mask = (1 << keys[slot, SIZE]) - 1
    at = keys[slot, BLOCK] + ((keys[slot, FIRST] + length - count) & mask)
    return rows[at] >= since


@njit(cache=True, nogil=True)
def at_least(keys, state, rows, pool, inner, outer, marks, since, count, out, told):
    """Keys with at least ``count`` rows since a time, exactly; returns how many.

    The inner level gives all candidates. Those whose entry in the outer level is young enough have
    the rows for certain; only the others are looked up.
    """
    state[SERIAL] += 1
    serial = state[SERIAL]
    found = ordered.read_off(pool, outer, since, out)
    for k in range(found):
        marks[out[k]] = serial
    rest = out[found:]
    candidates = ordered.read_off(pool, inner, since, rest)
    told[0], told[1], told[2] = candidates, found, candidates - found
    answered = found
    for k in range(candidates):
        slot = rest[k]
        if marks[slot] != serial and reaches(keys, slot, rows, since, count):
            out[answered] = slot
            answered += 1
    return answered


@njit(cache=True, nogil=True)
def at_most(keys, state, rows, pool, inner, outer, marks, since, kept, count, out, told):
    """Keys that are not idle with at most ``count`` rows since a time, exactly."""
    state[SERIAL] += 1
    serial = state[SERIAL]
    border = ~(since - 1)
    sure = ordered.read_off(pool, inner, border, out)
    answered = 0
    for k in range(sure):
        slot = out[k]
        marks[slot] = serial
        if keys[slot, NEWEST] >= kept:
            out[answered] = slot
            answered += 1
    rest = out[sure:]
    candidates = ordered.read_off(pool, outer, border, rest)
    told[0], told[1], told[2] = candidates, sure, candidates - sure
    for k in range(candidates):
        slot = rest[k]
        if (
            marks[slot] != serial
            and keys[slot, NEWEST] >= kept
            and not reaches(keys, slot, rows, since, count + 1)
        ):
            out[answered] = slot
            answered += 1
    return answered


@njit(cache=True, nogil=True)
def below(keys, rows, since, count, out, found):
    """Of the first ``found`` keys keep those with at most ``count`` rows since a time."""
    kept = 0
    for k in range(found):
        slot = out[k]
        if not reaches(keys, slot, rows, since, count + 1):
            out[kept] = slot
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def count_since(keys, slot, rows, since):
    """R-INT for counts: the rows of a key from a time on, by a search in its ring."""
    block, mask = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1
    first, length = keys[slot, FIRST], keys[slot, LENGTH]
    low, high = 0, length
    while low < high:
        middle = (low + high) >> 1
        if rows[block + ((first + middle) & mask)] < since:
            low = middle + 1
        else:
            high = middle
    return length - low
