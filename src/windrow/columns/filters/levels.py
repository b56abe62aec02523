"""What counts and sums share: the table of levels that are indexed, and how idle keys leave.

A level is indexed from the first time that it is asked for. Until then it costs nothing: its
entries can be read from the rows that each key keeps.
"""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.filters import idle, ordered
from windrow.columns.filters.idle import BLOCK, COUNT, DROPPED, LENGTH, NEED, NEWEST, OLDEST, SIZE
from windrow.columns.filters.pool import LEAST, give
from windrow.columns.jit import njit

# a level: its size is 2^CLASS, its nearest distance NEAR (of counts), its number from the end;
# LOW says that its index is read off from the early side
CLASS, NEAR, NUMBER, LOW = range(4)
FIELDS = 4


@njit(cache=True, nogil=True)
def oldest_kept(time, longest):
    """The first time that is still within the longest window."""
    return time - longest + 1 if time >= LEAST + longest else LEAST


@njit(cache=True, nogil=True)
def drop_idle(keys, state, rows, rows_free, pool, free, indexes, keep_from, dropped):
    """Forget keys without a row from a time on; False where ``dropped`` is full."""
    slot = state[OLDEST]
    while slot >= 0 and keys[slot, NEWEST] < keep_from:
        if state[DROPPED] == len(dropped):
            state[NEED] = idle.NEEDS_DROPPED
            return False
        idle.unlink(keys, state, slot)
        if keys[slot, BLOCK] >= 0:
            give(rows, rows_free, keys[slot, BLOCK], keys[slot, SIZE])
        keys[slot, BLOCK] = -1
        keys[slot, COUNT] = keys[slot, LENGTH] = 0
        for index in indexes:
            ordered.remove(pool, index, slot)
        dropped[state[DROPPED]] = slot
        state[DROPPED] += 1
        state[idle.KNOWN] -= 1
        slot = state[OLDEST]
    return True


@njit(cache=True, nogil=True)
def set_entry(pool, index, low, slot, time, state):
    """A level's entry of a key moves to a row of this time."""
    ordered.put(pool, index, slot, ~time if low else time)
    state[idle.MOVES] += 1
