"""The index of a level: the times of many keys, from which all later than a border are read off.

A heap in an array, four children to a node, with the place of every key. All nodes whose value is
at least a border hang together below the root, so reading off k of them looks at no more than
4·k + 1 nodes: O(output), without the logarithm of a search. Adding, changing and removing is
O(log n); a key whose time grows only rises, and stops early.

The same heap over the complements ``~time`` reads off all *earlier* than a border.

Measured against it (``make bench-filters``, first part): a tournament tree over all keys, whose
update writes no places and is a little quicker, but which walks down a path for every key that it
finds; and a plain scan of the level's times.
"""

from numba import njit

from windrow.columns.filters.pool import give, take

# an index is a row of five numbers
NODES, NODES_SIZE, LENGTH, PLACES, PLACES_SIZE = range(5)
FIELDS = 5


@njit(cache=True, nogil=True)
def _rise(pool, nodes, places, i, value, slot):  # type: ignore[no-untyped-def]
    while i > 0:
        parent = (i - 1) >> 2
        above = nodes + 2 * parent
        if pool[above] >= value:
            break
        here = nodes + 2 * i
        pool[here] = pool[above]
        moved = pool[above + 1]
        pool[here + 1] = moved
        pool[places + moved] = i
        i = parent
    pool[nodes + 2 * i] = value
    pool[nodes + 2 * i + 1] = slot
    pool[places + slot] = i


@njit(cache=True, nogil=True)
def _sink(pool, nodes, places, length, i, value, slot):  # type: ignore[no-untyped-def]
    while True:
        child = 4 * i + 1
        if child >= length:
            break
        largest = child
        most = pool[nodes + 2 * child]
        for other in range(child + 1, min(child + 4, length)):
            if pool[nodes + 2 * other] > most:
                largest = other
                most = pool[nodes + 2 * other]
        if most <= value:
            break
        moved = pool[nodes + 2 * largest + 1]
        pool[nodes + 2 * i] = most
        pool[nodes + 2 * i + 1] = moved
        pool[places + moved] = i
        i = largest
    pool[nodes + 2 * i] = value
    pool[nodes + 2 * i + 1] = slot
    pool[places + slot] = i


@njit(cache=True, nogil=True)
def has_room(pool, free, index):  # type: ignore[no-untyped-def]
    """Make room for one more key; False where the pool is used up, and nothing has changed."""
    size = index[NODES_SIZE]
    if 2 * index[LENGTH] + 2 <= 1 << size:
        return True
    block = take(pool, free, size + 1)
    if block < 0:
        return False
    old = index[NODES]
    for k in range(2 * index[LENGTH]):
        pool[block + k] = pool[old + k]
    give(pool, free, old, size)
    index[NODES] = block
    index[NODES_SIZE] = size + 1
    return True


@njit(cache=True, nogil=True)
def put(pool, index, slot, value):  # type: ignore[no-untyped-def]
    """Give a key a value, its first or another; ``has_room`` was asked before."""
    nodes, places = index[NODES], index[PLACES]
    i = pool[places + slot]
    if i < 0:
        i = index[LENGTH]
        index[LENGTH] = i + 1
        _rise(pool, nodes, places, i, value, slot)
    elif value >= pool[nodes + 2 * i]:
        _rise(pool, nodes, places, i, value, slot)
    else:
        _sink(pool, nodes, places, index[LENGTH], i, value, slot)


@njit(cache=True, nogil=True)
def remove(pool, index, slot):  # type: ignore[no-untyped-def]
    """Forget a key, if it is there."""
    nodes, places = index[NODES], index[PLACES]
    i = pool[places + slot]
    if i < 0:
        return
    last = index[LENGTH] - 1
    index[LENGTH] = last
    pool[places + slot] = -1
    if i == last:
        return
    gone = pool[nodes + 2 * i]
    value, moved = pool[nodes + 2 * last], pool[nodes + 2 * last + 1]
    if value >= gone:
        _rise(pool, nodes, places, i, value, moved)
    else:
        _sink(pool, nodes, places, last, i, value, moved)


@njit(cache=True, nogil=True)
def read_off(pool, index, border, out):  # type: ignore[no-untyped-def]
    """Write the keys whose value is at least the border to ``out``; return how many.

    ``out`` has room for all keys and one more. It is the queue of the walk as well: places that
    wait behind, keys that were found in front.
    """
    nodes, length = index[NODES], index[LENGTH]
    if length == 0 or pool[nodes] < border:
        return 0
    out[0] = 0
    found = 1
    done = 0
    while done < found:
        i = out[done]
        out[done] = pool[nodes + 2 * i + 1]
        done += 1
        child = 4 * i + 1
        for other in range(child, min(child + 4, length)):
            out[found] = other
            found += pool[nodes + 2 * other] >= border
    return found


@njit(cache=True, nogil=True)
def value_of(pool, index, slot, missing):  # type: ignore[no-untyped-def]
    """A key's value, or what is said to stand for none."""
    i = pool[index[PLACES] + slot]
    return missing if i < 0 else pool[index[NODES] + 2 * i]


@njit(cache=True, nogil=True)
def start(pool, free, index, places_size):  # type: ignore[no-untyped-def]
    """An empty index for 2^places_size keys; False where the pool is used up."""
    places = take(pool, free, places_size)
    if places < 0:
        return False
    nodes = take(pool, free, 3)
    if nodes < 0:
        give(pool, free, places, places_size)
        return False
    for k in range(1 << places_size):
        pool[places + k] = -1
    index[NODES], index[NODES_SIZE], index[LENGTH] = nodes, 3, 0
    index[PLACES], index[PLACES_SIZE] = places, places_size
    return True


@njit(cache=True, nogil=True)
def widen(pool, free, indexes, places_size):  # type: ignore[no-untyped-def]
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
def is_sound(pool, index):  # type: ignore[no-untyped-def]
    """Whether no child is above its parent and every key is where its place says."""
    nodes, places = index[NODES], index[PLACES]
    for i in range(index[LENGTH]):
        if i and pool[nodes + 2 * i] > pool[nodes + 2 * ((i - 1) >> 2)]:
            return False
        if pool[places + pool[nodes + 2 * i + 1]] != i:
            return False
    return True
