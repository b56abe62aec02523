"""Keys by the time of their newest row, as a list in arrays: the idlest are first.

Rows come in order of time, so a key that gets a row goes to the end: O(1).
"""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.jit import njit

# what is kept of every key, one cache line; the first three mean what each filter says
COUNT, BLOCK, SIZE, FIRST, LENGTH, OLDER, YOUNGER, NEWEST = range(8)
FIELDS = 8
# what is kept of the whole filter
OLDEST, YOUNGEST, KNOWN, DROPPED, MOVES, SERIAL, NEED = range(7)
STATE = 7
# why a loop over rows stopped before its end
NEEDS_ROWS, NEEDS_POOL, NEEDS_DROPPED = 1, 2, 3


@njit(cache=True, nogil=True)
def touch(keys, state, slot, time):
    """A known key has a new row."""
    keys[slot, NEWEST] = time
    if state[YOUNGEST] != slot:
        unlink(keys, state, slot)
        _append(keys, state, slot)


@njit(cache=True, nogil=True)
def enter(keys, state, slot, time):
    """A key is new."""
    keys[slot, NEWEST] = time
    state[KNOWN] += 1
    _append(keys, state, slot)


@njit(cache=True, nogil=True)
def _append(keys, state, slot):
    last = state[YOUNGEST]
    keys[slot, OLDER] = last
    keys[slot, YOUNGER] = -1
    if last >= 0:
        keys[last, YOUNGER] = slot
    else:
        state[OLDEST] = slot
    state[YOUNGEST] = slot


@njit(cache=True, nogil=True)
def unlink(keys, state, slot):
    """Take a key out of the list."""
    older, younger = keys[slot, OLDER], keys[slot, YOUNGER]
    if older >= 0:
        keys[older, YOUNGER] = younger
    else:
        state[OLDEST] = younger
    if younger >= 0:
        keys[younger, OLDER] = older
    else:
        state[YOUNGEST] = older


@njit(cache=True, nogil=True)
def known(keys, state, since, out):
    """All keys with a row at or after a time, the youngest first; return how many."""
    found = 0
    slot = state[YOUNGEST]
    while slot >= 0 and keys[slot, NEWEST] >= since:
        out[found] = slot
        found += 1
        slot = keys[slot, OLDER]
    return found
