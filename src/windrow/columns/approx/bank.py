"""A bank's kernels: find a key's row through a small index, and run the machine on its bits.

Rows lie one behind the other, ``stride`` bytes each: one bit that says whether the row was touched
since the last ``drop_idle``, then the counter's fields. The index has a row number or −1 in each
place; a key's place is its hash, scaled to the index's length, or the next free one.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.approx.fields import (
    B_AT,
    CELL,
    CELLS,
    FACTOR,
    INDEX,
    INDEX_AT,
    M_AT,
    SHIFT,
    SURPLUS,
    THETA,
    WORD,
    Y_AT,
    B,
    K,
    M,
    N,
    V,
    W,
    Y,
    get,
    put,
)
from windrow.columns.jit import njit

CHUNK = 512


@njit(cache=True, nogil=True, inline="always")
def place(key, length):
    """Where in an index of ``length`` places a key is looked for first (splitmix64)."""
    h = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(31)
    return ((h >> np.uint64(32)) * np.uint64(length)) >> np.uint64(32)


@njit(cache=True, nogil=True, inline="always")
def find(index, keys, key):
    """The key's row, or −1."""
    length = np.uint64(len(index))
    at = place(key, length)
    while True:
        row = index[at]
        if row < 0 or keys[row] == key:
            return row
        at += np.uint64(1)
        if at == length:
            at = np.uint64(0)


@njit(cache=True, nogil=True, inline="always")
def enter(index, key, row):
    """Put a row in the first free place for its key."""
    length = np.uint64(len(index))
    at = place(key, length)
    while index[at] >= 0:
        at += np.uint64(1)
        if at == length:
            at = np.uint64(0)
    index[at] = row


@njit(cache=True, nogil=True)
def build_index(index, keys, used):
    """Enter all rows in an index that is all −1."""
    for row in range(used):
        enter(index, keys[row], row)


@njit(cache=True, nogil=True, inline="always")
def cell_of(p, y):
    """What the cell of a block takes that ends with y."""
    if p[CELL] == 1:
        return np.int64(1 if y >= p[THETA] else 0)
    return np.int64(np.uint64(y) // np.uint64(p[THETA]))


@njit(cache=True, nogil=True, inline="always")
def close(rows, start, p, y):
    """The open block ends: its cell takes the place of the oldest one's; what is left of y."""
    cell = cell_of(p, y)
    if p[WORD] == 2:
        for j in range(p[K] - 1):
            at = p[CELLS] + j * p[CELL]
            put(rows, start, at, p[CELL], get(rows, start, at + p[CELL], p[CELL]))
        put(rows, start, p[CELLS] + (p[K] - 1) * p[CELL], p[CELL], cell)
    elif p[WORD]:
        blocks = get(rows, start, p[CELLS], p[K])
        put(rows, start, p[CELLS], p[K], (blocks >> 1) | (cell << (p[K] - 1)))
    else:
        i = get(rows, start, p[INDEX_AT], p[INDEX])
        at = p[CELLS] + i * p[CELL]
        total = get(rows, start, p[B_AT], p[B]) + cell - get(rows, start, at, p[CELL])
        put(rows, start, at, p[CELL], cell)
        put(rows, start, p[B_AT], p[B], total)
        put(rows, start, p[INDEX_AT], p[INDEX], i + 1 if i + 1 < p[K] else 0)
    return y - cell * p[THETA]


@njit(cache=True, nogil=True, inline="always")
def take(rows, start, p, units, mark):
    """One value for the counter at byte ``start``, whose first bits get a mark."""
    rows[start] |= mark
    y = get(rows, start, p[Y_AT], p[Y]) + units
    m = get(rows, start, p[M_AT], p[M]) + 1
    if m == p[N]:
        m = 0
        y = close(rows, start, p, y)
    put(rows, start, p[Y_AT], p[Y], y)
    put(rows, start, p[M_AT], p[M], m)


@njit(cache=True, nogil=True)
def skip(rows, start, p, count):
    """So many zeros, fewer than the window has: no more steps than there are blocks."""
    m = get(rows, start, p[M_AT], p[M]) + count
    if m >= p[N]:
        y = get(rows, start, p[Y_AT], p[Y])
        while m >= p[N]:
            m -= p[N]
            y = close(rows, start, p, y)
        put(rows, start, p[Y_AT], p[Y], y)
    put(rows, start, p[M_AT], p[M], m)


@njit(cache=True, nogil=True)
def insert(index, keys, rows, used, stride, p, new_keys, values):
    """Take pairs until they or the free rows end: how many were taken, and the rows in use.

    Rows are looked up for a chunk of pairs before any is changed, so that the processor waits for
    many places of memory at once.
    """
    found = np.empty(CHUNK, np.int64)
    half = (np.int64(1) << p[SHIFT]) >> 1
    done, capacity = 0, len(keys)
    while done < len(new_keys):
        chunk = min(CHUNK, len(new_keys) - done)
        full = False
        for j in range(chunk):
            key = new_keys[done + j]
            row = find(index, keys, key)
            if row < 0:
                if used == capacity:
                    chunk, full = j, True
                    break
                row = used
                keys[row] = key
                enter(index, key, row)
                used += 1
            found[j] = row * stride
        for j in range(chunk):
            units = (np.int64(values[done + j]) * p[FACTOR] + half) >> p[SHIFT]
            take(rows, found[j], p, units, np.uint8(1))
        done += chunk
        if full:
            break
    return done, used


@njit(cache=True, nogil=True, inline="always")
def doubled(p, y, lost, total, oldest, following):
    """Twice the estimate in units, within what is possible."""
    gone = lost * oldest
    if lost >= p[N]:
        gone = p[N] * oldest + (lost - p[N]) * following
    twice = 2 * (p[THETA] * total + y - p[V] * gone) - (p[THETA] - 1)
    return min(max(twice, 0), 2 * p[W] * p[V])


@njit(cache=True, nogil=True, inline="always")
def ones(word):
    """How many bits of a word are set."""
    count = np.int64(0)
    while word:
        word &= word - 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def in_pieces(rows, start, p, closes, cell):
    """Sum, oldest and following cell of a long word; after it has taken a cell, or as it is."""
    total = oldest = following = np.int64(0)
    first = np.int64(1 if closes else 0)
    for j in range(first, p[K] + first):
        one = cell if j == p[K] else get(rows, start, p[CELLS] + j * p[CELL], p[CELL])
        total += one
        if j == first:
            oldest = one
        elif j == first + 1:
            following = one
    return total, oldest, following


@njit(cache=True, nogil=True)
def estimate_with(rows, start, p, units):
    """Twice the estimate as it would be after one more value; nothing is written."""
    y = get(rows, start, p[Y_AT], p[Y]) + units
    m = get(rows, start, p[M_AT], p[M]) + 1
    closes = m == p[N]
    cell = cell_of(p, y) if closes else np.int64(0)
    y -= cell * p[THETA]
    lost = (0 if closes else m) + p[SURPLUS]
    if p[WORD] == 2:
        total, oldest, following = in_pieces(rows, start, p, closes, cell)
        return doubled(p, y, lost, total, oldest, following)
    if p[WORD]:
        blocks = get(rows, start, p[CELLS], p[K])
        if closes:
            blocks = (blocks >> 1) | (cell << (p[K] - 1))
        return doubled(p, y, lost, ones(blocks), blocks & 1, (blocks >> 1) & 1)
    total = get(rows, start, p[B_AT], p[B])
    i = get(rows, start, p[INDEX_AT], p[INDEX])
    if closes:
        total += cell - get(rows, start, p[CELLS] + i * p[CELL], p[CELL])
        i = i + 1 if i + 1 < p[K] else 0
    oldest = following = np.int64(0)
    if lost:  # then there are two blocks or more, so that the new cell is not the oldest
        oldest = get(rows, start, p[CELLS] + i * p[CELL], p[CELL])
        i = i + 1 if i + 1 < p[K] else 0
        following = get(rows, start, p[CELLS] + i * p[CELL], p[CELL])  # not used where one closed
    return doubled(p, y, lost, total, oldest, following)


@njit(cache=True, nogil=True, inline="always")
def estimate(rows, start, p):
    """Twice the estimate in units, within what is possible."""
    y, m = get(rows, start, p[Y_AT], p[Y]), get(rows, start, p[M_AT], p[M])
    lost = m + p[SURPLUS]
    if p[WORD] == 2:
        total, oldest, following = in_pieces(rows, start, p, False, 0)
    elif p[WORD]:
        blocks = get(rows, start, p[CELLS], p[K])
        oldest, following, total = blocks & 1, (blocks >> 1) & 1, ones(blocks)
    else:
        total = get(rows, start, p[B_AT], p[B])
        i = get(rows, start, p[INDEX_AT], p[INDEX])
        oldest = following = np.int64(0)
        if lost:
            oldest = get(rows, start, p[CELLS] + i * p[CELL], p[CELL])
            i = i + 1 if i + 1 < p[K] else 0
            following = get(rows, start, p[CELLS] + i * p[CELL], p[CELL])
    return doubled(p, y, lost, total, oldest, following)


@njit(cache=True, nogil=True)
def take_all(rows, stride, p, found, values):
    """Take pairs whose rows are known."""
    half = (np.int64(1) << p[SHIFT]) >> 1
    for j in range(len(found)):
        units = (values[j] * p[FACTOR] + half) >> p[SHIFT]
        take(rows, found[j] * stride, p, units, np.uint8(1))


@njit(cache=True, nogil=True)
def query(rows, stride, p, found, scale, out):
    """Estimates for rows; 0 where there is none."""
    for j in range(len(found)):
        out[j] = 0.0 if found[j] < 0 else estimate(rows, found[j] * stride, p) * scale
