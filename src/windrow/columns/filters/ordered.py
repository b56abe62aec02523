"""The index of a level: the times of many keys, from which all later than a border are read off.

A heap in an array, four children to a node, with the place of every key. All nodes whose value is
at least a border hang together below the root, so reading off k of them looks at no more than
4·k + 1 nodes: O(output), without the logarithm of a search. Adding, changing and removing is
O(log n); a key whose time grows only rises, and stops early.

The same heap over the complements ``~time`` reads off all *earlier* than a border.

Measured against it (``make bench-filters``, first part, 200 of 5,000 keys read off): a tournament
tree over all keys, whose update writes no places and takes a third, but which walks down a path for
every key that it finds and takes 13 times as long for a lookup; and a scan of the level's times,
3 to 4 times as long and growing with the keys.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.filters.pool import LEAST, give, take
from windrow.columns.jit import njit

U = np.uint64
_FIRST = 4
# an index is a row of five numbers; the first half of its nodes are values, the other keys
NODES, NODES_SIZE, LENGTH, PLACES, PLACES_SIZE = range(5)
FIELDS = 5


@njit(cache=True, nogil=True)
def _rise(pool, nodes, half, places, i, value, slot):
    while i > 0:
        parent = (i - 1) >> 2
        above = pool[U(nodes + parent)]
        if above >= value:
            break
        moved = pool[U(nodes + half + parent)]
        pool[U(nodes + i)] = above
        pool[U(nodes + half + i)] = moved
        pool[U(places + moved)] = i
        i = parent
    pool[U(nodes + i)] = value
    pool[U(nodes + half + i)] = slot
    pool[U(places + slot)] = i


@njit(cache=True, nogil=True)
def _sink(pool, nodes, half, places, length, i, value, slot):
    while True:
        child = 4 * i + 1
        if child >= length:
            break
        largest = child
        most = pool[U(nodes + child)]
        for other in range(child + 1, min(child + 4, length)):
            if pool[U(nodes + other)] > most:
                largest = other
                most = pool[U(nodes + other)]
        if most <= value:
            break
        moved = pool[U(nodes + half + largest)]
        pool[U(nodes + i)] = most
        pool[U(nodes + half + i)] = moved
        pool[U(places + moved)] = i
        i = largest
    pool[U(nodes + i)] = value
    pool[U(nodes + half + i)] = slot
    pool[U(places + slot)] = i


@njit(cache=True, nogil=True)
def has_room(pool, free, index):
    """Make room for one more key; False where the pool is used up, and nothing has changed."""
    size, length = index[NODES_SIZE], index[LENGTH]
    half = 1 << (size - 1)
    if length + 5 <= half:
        return True
    block = take(pool, free, size + 1)
    if block < 0:
        return False
    old = index[NODES]
    for k in range(length):
        pool[block + k] = pool[old + k]
        pool[block + 2 * half + k] = pool[old + half + k]
    for k in range(length, 2 * half):
        pool[block + k] = LEAST
    give(pool, free, old, size)
    index[NODES] = block
    index[NODES_SIZE] = size + 1
    return True


@njit(cache=True, nogil=True)
def put(pool, index, slot, value):
    """Give a key a value, its first or another; ``has_room`` was asked before."""
    nodes, places, half = index[NODES], index[PLACES], 1 << (index[NODES_SIZE] - 1)
    i = pool[U(places + slot)]
    if i < 0:
        i = index[LENGTH]
        index[LENGTH] = i + 1
        _rise(pool, nodes, half, places, i, value, slot)
    elif value >= pool[U(nodes + i)]:
        _rise(pool, nodes, half, places, i, value, slot)
    else:
        _sink(pool, nodes, half, places, index[LENGTH], i, value, slot)


@njit(cache=True, nogil=True)
def remove(pool, index, slot):
    """Forget a key, if it is there."""
    nodes, places, half = index[NODES], index[PLACES], 1 << (index[NODES_SIZE] - 1)
    i = pool[places + slot]
    if i < 0:
        return
    last = index[LENGTH] - 1
    index[LENGTH] = last
    pool[places + slot] = -1
    gone = pool[nodes + i]
    value, moved = pool[nodes + last], pool[nodes + half + last]
    pool[nodes + last] = LEAST
    if i == last:
        return
    if value >= gone:
        _rise(pool, nodes, half, places, i, value, moved)
    else:
        _sink(pool, nodes, half, places, last, i, value, moved)


@njit(cache=True, nogil=True)
def read_off(pool, index, border, out):
    """Write the keys whose value is at least the border to ``out``; return how many.

    ``out`` has room for all keys and one more. It is the queue of the walk as well: places that
    wait behind, keys that were found in front. Behind the last node are values below every border,
    so that the four children of a node are looked at without asking whether they exist.
    """
    nodes, length = index[NODES], index[LENGTH]
    if length == 0 or pool[nodes] < border:
        return 0
    slots = nodes + (1 << (index[NODES_SIZE] - 1))
    out[0] = 0
    found = 1
    done = 0
    while done < found:
        i = out[U(done)]
        out[U(done)] = pool[U(slots + i)]
        done += 1
        child = 4 * i + 1
        if child >= length:
            continue
        at = nodes + child
        a, b = pool[U(at)] >= border, pool[U(at + 1)] >= border
        c, d = pool[U(at + 2)] >= border, pool[U(at + 3)] >= border
        out[U(found)] = child
        found += a
        out[U(found)] = child + 1
        found += b
        out[U(found)] = child + 2
        found += c
        out[U(found)] = child + 3
        found += d
    return found


@njit(cache=True, nogil=True)
def value_of(pool, index, slot, missing):
    """A key's value, or what is said to stand for none."""
    i = pool[index[PLACES] + slot]
    return missing if i < 0 else pool[index[NODES] + i]


@njit(cache=True, nogil=True)
def start(pool, free, index, places_size):
    """An empty index for 2^places_size keys; False where the pool is used up."""
    places = take(pool, free, places_size)
    if places < 0:
        return False
    nodes = take(pool, free, _FIRST)
    if nodes < 0:
        give(pool, free, places, places_size)
        return False
    for k in range(1 << places_size):
        pool[places + k] = -1
    for k in range(1 << (_FIRST - 1)):
        pool[nodes + k] = LEAST
    index[NODES], index[NODES_SIZE], index[LENGTH] = nodes, _FIRST, 0
    index[PLACES], index[PLACES_SIZE] = places, places_size
    return True


@njit(cache=True, nogil=True)
def widen(pool, free, indexes, places_size):
    """Places for 2^places_size keys in every index; False where the pool is used up."""
    for index in indexes:
        old, size = index[PLACES], index[PLACES_SIZE]
        if size >= places_size:
            continue
        places = take(pool, free, places_size)
        if places < 0:
            return False
        for k in range(1 << size):
            pool[places + k] = pool[old + k]
        for k in range(1 << size, 1 << places_size):
            pool[places + k] = -1
        give(pool, free, old, size)
        index[PLACES], index[PLACES_SIZE] = places, places_size
    return True


@njit(cache=True, nogil=True)
def is_sound(pool, index):
    """Whether no child is above its parent and every key is where its place says."""
    nodes, places, half = index[NODES], index[PLACES], 1 << (index[NODES_SIZE] - 1)
    for i in range(index[LENGTH]):
        if i and pool[nodes + i] > pool[nodes + ((i - 1) >> 2)]:
            return False
        if pool[places + pool[nodes + half + i]] != i:
            return False
    for i in range(index[LENGTH], half):
        if pool[nodes + i] != LEAST:
            return False
    return True
