"""Intervals of blocks with values, and all that hold a block and reach a value: a tree of heaps.

An interval is cut into at most two dyadic ranges of blocks of each size, and each range (a node)
keeps a heap of the values of its intervals. A block lies in one node of each size: their heaps are
walked from the top as far as values reach. Nodes of size 2^L lie in a row of B >> L places, used
round and round: what is found there under another number has expired, and is cleared.

An interval that ends early (its point is dominated) stays in its heaps as dead. A walk that meets
a dead one moves it to the bottom, once; a heap of which more than half is dead is made anew. So the
dead cost what they cost when they were added, and a walk sees living ones only.
"""

# mypy: disable-error-code="no-untyped-def"

from windrow.columns.filters.pool import LEAST, give, take
from windrow.columns.jit import njit

# a row: a point of some key's staircase
TIME, VALUE, OWNER, LEFT, NEXT = range(5)
RANKS = 5
# a node
NUMBER, HEAP, SIZE, LENGTH, DEAD = range(5)
NODES = 5
# of all rows: the number of the next, of the oldest in the longest window; the fullest heap so far
END, START, FULLEST = range(3)
ENDS = 3
BITS = 6
"""Rows are taken in blocks of 2^BITS: fewer nodes, and no interval within one block needs any."""


@njit(cache=True, nogil=True)
def node_at(blocks, level, number):
    """Where a node is, or would be."""
    return 2 * blocks - (2 * blocks >> level) + (number & ((blocks >> level) - 1))


@njit(cache=True, nogil=True)
def _room(nodes, pool, free, at, number):
    """Room for one more in this node's heap; False where the pool is used up."""
    node = nodes[at]
    if node[NUMBER] != number:
        if node[HEAP] >= 0:
            give(pool, free, node[HEAP], node[SIZE])
        node[NUMBER], node[HEAP], node[LENGTH], node[DEAD] = number, -1, 0, 0
    if node[HEAP] < 0:
        heap = take(pool, free, 2)
        if heap < 0:
            return False
        node[HEAP], node[SIZE] = heap, 2
    size = node[SIZE]
    if 2 * node[LENGTH] + 2 > 1 << size:
        heap = take(pool, free, size + 1)
        if heap < 0:
            return False
        for k in range(2 * node[LENGTH]):
            pool[heap + k] = pool[node[HEAP] + k]
        give(pool, free, node[HEAP], size)
        node[HEAP], node[SIZE] = heap, size + 1
    return True


@njit(cache=True, nogil=True)
def has_room(nodes, pool, free, blocks, x, y):
    """Room for an interval of the blocks x to y - 1; False where the pool is used up."""
    level = 0
    while x < y:
        if x & 1:
            if not _room(nodes, pool, free, node_at(blocks, level, x), x):
                return False
            x += 1
        if y & 1:
            y -= 1
            if not _room(nodes, pool, free, node_at(blocks, level, y), y):
                return False
        x >>= 1
        y >>= 1
        level += 1
    return True


@njit(cache=True, nogil=True)
def _push(pool, heap, i, value, rank):
    while i > 0:
        parent = (i - 1) >> 2
        if pool[heap + 2 * parent] >= value:
            break
        pool[heap + 2 * i] = pool[heap + 2 * parent]
        pool[heap + 2 * i + 1] = pool[heap + 2 * parent + 1]
        i = parent
    pool[heap + 2 * i] = value
    pool[heap + 2 * i + 1] = rank


@njit(cache=True, nogil=True)
def _add(node, pool, ends, value, rank):
    _push(pool, node[HEAP], node[LENGTH], value, rank)
    node[LENGTH] += 1
    ends[FULLEST] = max(ends[FULLEST], node[LENGTH])


@njit(cache=True, nogil=True)
def add(nodes, pool, ends, blocks, x, y, value, rank):
    """An interval of the blocks x to y - 1; ``has_room`` was asked before. Returns its ranges."""
    level = ranges = 0
    while x < y:
        if x & 1:
            _add(nodes[node_at(blocks, level, x)], pool, ends, value, rank)
            ranges += 1
            x += 1
        if y & 1:
            y -= 1
            _add(nodes[node_at(blocks, level, y)], pool, ends, value, rank)
            ranges += 1
        x >>= 1
        y >>= 1
        level += 1
    return ranges


@njit(cache=True, nogil=True)
def _bury(node, number, ranks, pool, free):
    """One more of a node's intervals is dead; make the heap anew if most are."""
    if node[NUMBER] != number or node[HEAP] < 0:
        return
    node[DEAD] += 1
    if 2 * node[DEAD] <= node[LENGTH]:
        return
    mask = len(ranks) - 1
    heap, alive = node[HEAP], 0
    for k in range(node[LENGTH]):
        value, rank = pool[heap + 2 * k], pool[heap + 2 * k + 1]
        if rank >= 0 and ranks[rank & mask, OWNER] >= 0:
            _push(pool, heap, alive, value, rank)  # never beyond k: what is ahead is unread
            alive += 1
    node[LENGTH], node[DEAD] = alive, 0
    size = node[SIZE]
    while size > 2 and 4 * alive + 4 <= 1 << (size - 1):  # room for one more has been promised
        size -= 1
    if size < node[SIZE]:
        block = take(pool, free, size)
        if block >= 0:
            for k in range(2 * alive):
                pool[block + k] = pool[heap + k]
            give(pool, free, heap, node[SIZE])
            node[HEAP], node[SIZE] = block, size


@njit(cache=True, nogil=True)
def end(nodes, ranks, pool, free, blocks, x, y):
    """An interval of the blocks x to y - 1 is dead: its row has no owner any more."""
    level = 0
    while x < y:
        if x & 1:
            _bury(nodes[node_at(blocks, level, x)], x, ranks, pool, free)
            x += 1
        if y & 1:
            y -= 1
            _bury(nodes[node_at(blocks, level, y)], y, ranks, pool, free)
        x >>= 1
        y >>= 1
        level += 1


@njit(cache=True, nogil=True)
def _lower(pool, heap, length, i):
    """The dead one at i goes to the bottom for good; larger children move up."""
    while True:
        child = 4 * i + 1
        if child >= length:
            break
        largest = child
        for other in range(child + 1, min(child + 4, length)):
            if pool[heap + 2 * other] > pool[heap + 2 * largest]:
                largest = other
        pool[heap + 2 * i] = pool[heap + 2 * largest]
        pool[heap + 2 * i + 1] = pool[heap + 2 * largest + 1]
        i = largest
    pool[heap + 2 * i] = LEAST
    pool[heap + 2 * i + 1] = -1


@njit(cache=True, nogil=True)
def _walk(node, ranks, pool, border, out):
    heap, length = node[HEAP], node[LENGTH]
    mask = len(ranks) - 1
    out[0] = 0
    waiting, done, found = 1, 0, 0
    while done < waiting:
        i = out[done]
        done += 1
        while pool[heap + 2 * i] >= border:
            rank = pool[heap + 2 * i + 1]
            if ranks[rank & mask, OWNER] >= 0:
                out[found] = rank  # found is at most done - 1: that place has been read
                found += 1
                child = 4 * i + 1
                for other in range(child, min(child + 4, length)):
                    out[waiting] = other
                    waiting += pool[heap + 2 * other] >= border
                break
            _lower(pool, heap, length, i)
    return found


@njit(cache=True, nogil=True)
def stab(nodes, ranks, pool, blocks, block, border, out):
    """Write the rows whose intervals hold a block and reach a border to ``out``; how many.

    ``out`` has room for all keys, the fullest heap, and one more.
    """
    found = level = 0
    while blocks >> level:
        node = nodes[node_at(blocks, level, block >> level)]
        if node[NUMBER] == block >> level and node[HEAP] >= 0 and node[LENGTH] > 0:
            found += _walk(node, ranks, pool, border, out[found:])
        level += 1
    return found
