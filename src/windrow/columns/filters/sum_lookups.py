"""CI-SUM, compiled: sums of one key since a time, and what lookups do with candidates."""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.filters import ordered, running
from windrow.columns.filters.idle import BLOCK, FIRST, LENGTH, NEWEST, SERIAL, SIZE
from windrow.columns.filters.sums import AGE, BLURRED, before
from windrow.columns.jit import njit


@njit(cache=True, nogil=True)
def first_since(keys, slot, rows, since):
    """How many of a key's rows are before a time."""
    block, mask = keys[slot, BLOCK], (1 << keys[slot, SIZE]) - 1
    first = keys[slot, FIRST]
    low, high = 0, keys[slot, LENGTH]
    while low < high:
        middle = (low + high) >> 1
        if rows[block + ((first + middle) & mask)] < since:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def sign(keys, slot, rows, values, highs, lows, bases, since, limit):
    """The sign of the exact sum of a key's rows since a time less a limit."""
    k, length = first_since(keys, slot, rows, since), keys[slot, LENGTH]
    if k == length:
        return -1 if limit > 0.0 else 1 if limit < 0.0 else 0
    high, low = before(keys, slot, highs, lows, bases, length)
    h, l = before(keys, slot, highs, lows, bases, k)  # noqa: E741
    whole = (high - h) - limit
    rest = whole + (low - l)
    doubt = 2.0**-50 * (abs(high - h) + abs(limit) + abs(low) + abs(l))
    blur = 0.0
    if bases[slot, BLURRED] != 0.0:
        blur = 2.0 * bases[slot, AGE] * running.LOST * high
    if rest > doubt + blur:
        return 1
    if rest < -doubt - blur:
        return -1
    if blur != 0.0:
        first = keys[slot, FIRST]
        mask = (1 << keys[slot, SIZE]) - 1
        return running.sign_of_rows(
            values, keys[slot, BLOCK], mask, first + k, first + length, limit
        )
    return running.sign_of_five(high, low, -h, -l, -limit)


@njit(cache=True, nogil=True)
def at_least(
    keys,
    state,
    rows,
    values,
    highs,
    lows,
    bases,
    pool,
    inner,
    outer,
    marks,
    since,
    limit,
    out,
    told,
):
    """Keys with a sum of at least the limit since a time, exactly; returns how many."""
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
        if (
            marks[slot] != serial
            and sign(keys, slot, rows, values, highs, lows, bases, since, limit) >= 0
        ):
            out[answered] = slot
            answered += 1
    return answered


@njit(cache=True, nogil=True)
def at_most(
    keys,
    state,
    rows,
    values,
    highs,
    lows,
    bases,
    pool,
    inner,
    outer,
    marks,
    since,
    kept,
    limit,
    out,
    told,
):
    """Keys that are not idle with a sum of at most the limit since a time, exactly."""
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
            and sign(keys, slot, rows, values, highs, lows, bases, since, limit) <= 0
        ):
            out[answered] = slot
            answered += 1
    return answered


@njit(cache=True, nogil=True)
def compared(keys, rows, values, highs, lows, bases, since, limit, above, out, found):
    """Of the first ``found`` keys keep those with sums at least (``above``) or at most a limit."""
    kept = 0
    for k in range(found):
        slot = out[k]
        way = sign(keys, slot, rows, values, highs, lows, bases, since, limit)
        if way == 0 or (way > 0) == above:
            out[kept] = slot
            kept += 1
    return kept
