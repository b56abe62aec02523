"""CI-SUM for values that are not negative, compiled: levels by the weight behind a row.

Let A(r) be the sum of a key's rows from r on and B(r) the same without r itself. A window with sum
W that begins at or before r has W ≥ A(r); one that begins after r has W ≤ B(r). The level (l, j),
l any whole number, has unit u = 2^l, near = u·(p + j) and far = near + u. Its entry is a row with

    A(r) ≥ near   and   B(r) < far.

Then W ≥ far implies that the window holds r, and holding r implies W ≥ near: the guarantee of
CI-COUNT, for any floats, with the same error, because levels follow each other as they do there.

The entry is chosen as the youngest row with A(r) ≥ near, so that B(r) < near. It stays right until
the weight that came since reaches u. So for each key and size the weight since its entries last
moved is added up (``pending``), and when it reaches u all levels of that size move. Each move of a
size pays with a weight of u: in rows of integers that is the paper's bound, a factor of log2 of the
largest value at most.

Rounding: a move comes a millionth early (``_EARLY``), which is more than sums of weights and
differences of running sums can be off; where they could not be trusted that far, rows are added up
from the young end instead.
"""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.filters import idle, ordered, running
from windrow.columns.filters.idle import BLOCK, COUNT, FIRST, LENGTH, NEED, SIZE
from windrow.columns.filters.levels import LOW, drop_idle, oldest_kept, set_entry
from windrow.columns.filters.pool import LEAST, give, take
from windrow.columns.jit import njit

_SMALLEST = 2
_EARLY = 1.0 - 2.0**-20
_TRUSTED = 2.0**-36
# beside a key: its running sum before the first row, rows since that began, whether any was inexact
BASE_HIGH, BASE_LOW, AGE, BLURRED = range(4)
BASES = 4


@njit(cache=True, nogil=True)
def _resize(keys, slot, rows, rows_free, values, highs, lows, size):
    block = take(rows, rows_free, size)
    if block < 0:
        return False
    old, mask, first = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1, keys[slot, FIRST]
    for k in range(keys[slot, LENGTH]):
        at = old + ((first + k) & mask)
        rows[block + k] = rows[at]
        values[block + k] = values[at]
        highs[block + k] = highs[at]
        lows[block + k] = lows[at]
    if old >= 0:
        give(rows, rows_free, old, keys[slot, SIZE])
    keys[slot, BLOCK], keys[slot, SIZE], keys[slot, FIRST] = block, size, 0
    return True


@njit(cache=True, nogil=True)
def _evict(keys, slot, rows, rows_free, values, highs, lows, bases, keep_from):
    block, size, first = keys[slot, BLOCK], keys[slot, SIZE], keys[slot, FIRST]
    mask = (1 << size) - 1
    length = keys[slot, LENGTH]
    while length > 0 and rows[block + (first & mask)] < keep_from:
        bases[slot, BASE_HIGH] = highs[block + (first & mask)]
        bases[slot, BASE_LOW] = lows[block + (first & mask)]
        first += 1
        length -= 1
    keys[slot, FIRST], keys[slot, LENGTH] = first & mask, length
    if size > _SMALLEST and 8 * length < 1 << size:
        _resize(keys, slot, rows, rows_free, values, highs, lows, size - 1)


@njit(cache=True, nogil=True)
def begin_anew(keys, slot, values, highs, lows, bases):
    """Running sums from the first row that is still there."""
    block, mask, first = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1, keys[slot, FIRST]
    high = low = 0.0
    blurred = False
    for k in range(keys[slot, LENGTH]):
        at = block + ((first + k) & mask)
        high, low, lost = running.advance(high, low, values[at])
        blurred = blurred or lost
        highs[at] = high
        lows[at] = low
    bases[slot, BASE_HIGH] = bases[slot, BASE_LOW] = 0.0
    bases[slot, AGE] = keys[slot, LENGTH]
    bases[slot, BLURRED] = 1.0 if blurred else 0.0


@njit(cache=True, nogil=True)
def before(keys, slot, highs, lows, bases, k):
    """The running sum before the k-th row that is there."""
    if k == 0:
        return bases[slot, BASE_HIGH], bases[slot, BASE_LOW]
    mask = (1 << keys[slot, SIZE]) - 1
    at = keys[slot, BLOCK] + ((keys[slot, FIRST] + k - 1) & mask)
    return highs[at], lows[at]


@njit(cache=True, nogil=True)
def entry(keys, slot, rows, values, highs, lows, bases, near):
    """The time of the youngest row with A(r) ≥ near; the least number where there is none."""
    length = keys[slot, LENGTH]
    block, mask, first = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1, keys[slot, FIRST]
    high, low = before(keys, slot, highs, lows, bases, length)
    if bases[slot, BLURRED] != 0.0 and bases[slot, AGE] * running.LOST * high > _TRUSTED * near:
        total = rest = 0.0
        for k in range(length - 1, -1, -1):
            at = block + ((first + k) & mask)
            total, rest, _ = running.advance(total, rest, values[at])
            if total + rest >= near:
                return rows[at]
        return LEAST
    early, later = 0, length  # A(early) ≥ near, A(later) < near
    h, l = before(keys, slot, highs, lows, bases, 0)  # noqa: E741
    if (high - h) + (low - l) < near:
        return LEAST
    while later - early > 1:
        middle = (early + later) >> 1
        h, l = before(keys, slot, highs, lows, bases, middle)  # noqa: E741
        if (high - h) + (low - l) >= near:
            early = middle
        else:
            later = middle
    return rows[block + ((first + early) & mask)]


@njit(cache=True, nogil=True)
def insert(
    keys,
    state,
    rows,
    rows_free,
    values,
    highs,
    lows,
    bases,
    pool,
    free,
    levels,
    indexes,
    nears,
    sizes,
    units,
    pending,
    longest,
    slots,
    times,
    weights,
    first,
    last,
    dropped,
):
    """Rows ``first`` to ``last``; returns the first that was not taken, ``state[NEED]`` says why.

    ``sizes`` says where the levels of each size begin in ``levels``, and the end.
    """
    for i in range(first, last):
        slot, time, weight = slots[i], times[i], weights[i]
        keep_from = oldest_kept(time, longest)
        if not drop_idle(keys, state, rows, rows_free, pool, free, indexes, keep_from, dropped):
            return i
        new = keys[slot, COUNT] == 0
        if new:
            if keys[slot, BLOCK] < 0:
                keys[slot, SIZE], keys[slot, FIRST], keys[slot, LENGTH] = 0, 0, 0
                if not _resize(keys, slot, rows, rows_free, values, highs, lows, _SMALLEST):
                    state[NEED] = idle.NEEDS_ROWS
                    return i
            for k in range(BASES):
                bases[slot, k] = 0.0
        else:
            _evict(keys, slot, rows, rows_free, values, highs, lows, bases, keep_from)
        size = keys[slot, SIZE]
        if keys[slot, LENGTH] == 1 << size and not _resize(
            keys, slot, rows, rows_free, values, highs, lows, size + 1
        ):
            state[NEED] = idle.NEEDS_ROWS
            return i
        for x in range(len(levels)):
            if not ordered.has_room(pool, free, indexes[x]):
                state[NEED] = idle.NEEDS_POOL
                return i
        keys[slot, COUNT] += 1
        length = keys[slot, LENGTH]
        if bases[slot, AGE] >= 2 << keys[slot, SIZE]:
            begin_anew(keys, slot, values, highs, lows, bases)
        high, low = before(keys, slot, highs, lows, bases, length)
        high, low, lost = running.advance(high, low, weight)
        at = keys[slot, BLOCK] + ((keys[slot, FIRST] + length) & ((1 << keys[slot, SIZE]) - 1))
        rows[at], values[at], highs[at], lows[at] = time, weight, high, low
        keys[slot, LENGTH] = length + 1
        bases[slot, AGE] += 1.0
        if lost:
            bases[slot, BLURRED] = 1.0
        if new:
            idle.enter(keys, state, slot, time)
            for x in range(len(levels)):
                if levels[x, LOW]:
                    ordered.put(pool, indexes[x], slot, ~LEAST)
            for c in range(len(units)):
                pending[c, slot] = 0.0
        else:
            idle.touch(keys, state, slot, time)
        for c in range(len(units)):
            waiting = pending[c, slot] + weight
            if waiting < units[c] * _EARLY:
                pending[c, slot] = waiting
                continue
            pending[c, slot] = 0.0
            for x in range(sizes[c], sizes[c + 1]):
                moved = entry(keys, slot, rows, values, highs, lows, bases, nears[x])
                if moved != LEAST:
                    set_entry(pool, indexes[x], levels[x, LOW], slot, moved, state)
    return last


@njit(cache=True, nogil=True)
def fill(keys, state, rows, values, highs, lows, bases, pool, free, level, index, near):
    """Index a level from the rows there are; False where the pool is used up: call it again."""
    slot = state[idle.OLDEST]
    while slot >= 0:
        time = entry(keys, slot, rows, values, highs, lows, bases, near)
        if time != LEAST or level[LOW]:
            if not ordered.has_room(pool, free, index):
                return False
            ordered.put(pool, index, slot, ~time if level[LOW] else time)
        slot = keys[slot, idle.YOUNGER]
    return True
