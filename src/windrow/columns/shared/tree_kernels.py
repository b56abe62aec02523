"""A balanced search tree of rows (AVL) in arrays, each node with its subtree's partial.

For comparison only: it is what PSoup keeps. Rows are found by their number, as in any search tree;
nodes are numbered from 1, and 0 is no node.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.shared.cells import combine, identity, lift, load, store
from windrow.columns.shared.mixed import no_batch, parted

U = np.uint64
HEIGHT, LEFT, RIGHT = 0, 1, 2
ROOT, OLDEST, NEXT, FREE, USED = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def _pull(nodes, own, total, v):
    """A node's height and partial from its children's."""
    a, b = nodes[v, LEFT], nodes[v, RIGHT]
    nodes[v, HEIGHT] = max(nodes[a, HEIGHT], nodes[b, HEIGHT]) + 1
    store(total, v, combine(combine(load(total, a), load(own, v)), load(total, b)))


@njit(cache=True, nogil=True)
def _turned(nodes, own, total, v, heavy, light):
    """A rotation: the child on the heavy side becomes the root of the two."""
    w = nodes[v, heavy]
    nodes[v, heavy] = nodes[w, light]
    nodes[w, light] = v
    _pull(nodes, own, total, v)
    _pull(nodes, own, total, w)
    return w


@njit(cache=True, nogil=True)
def _balanced(nodes, own, total, v):
    """The root of a subtree whose children changed."""
    difference = nodes[nodes[v, LEFT], HEIGHT] - nodes[nodes[v, RIGHT], HEIGHT]
    if -1 <= difference <= 1:
        _pull(nodes, own, total, v)
        return v
    heavy, light = (LEFT, RIGHT) if difference > 1 else (RIGHT, LEFT)
    w = nodes[v, heavy]
    if nodes[nodes[w, light], HEIGHT] > nodes[nodes[w, heavy], HEIGHT]:
        nodes[v, heavy] = _turned(nodes, own, total, w, light, heavy)
    return _turned(nodes, own, total, v, heavy, light)


@njit(cache=True, nogil=True)
def _repair(nodes, own, total, state, path, depth, v):
    """Put ``v`` below the last node of a path, and balance from there to the root."""
    for d in range(depth - 1, -1, -1):
        above = path[d] >> 1
        nodes[above, RIGHT if path[d] & 1 else LEFT] = v
        v = _balanced(nodes, own, total, above)
    state[ROOT] = v


@njit(cache=True, nogil=True)
def insert(nodes, keys, own, total, state, path, partial):
    """Add the next row; ``path`` is scratch."""
    v = state[FREE]
    if v:
        state[FREE] = nodes[v, LEFT]
    else:
        state[USED] += 1
        v = state[USED]
    key = state[NEXT]
    state[NEXT] += 1
    keys[v] = key
    nodes[v, LEFT] = nodes[v, RIGHT] = 0
    nodes[v, HEIGHT] = 1
    store(own, v, partial)
    store(total, v, partial)
    depth = 0
    u = state[ROOT]
    while u:
        right = key > keys[u]
        path[depth] = 2 * u + right
        depth += 1
        u = nodes[u, RIGHT] if right else nodes[u, LEFT]
    _repair(nodes, own, total, state, path, depth, v)


@njit(cache=True, nogil=True)
def delete_oldest(nodes, keys, own, total, state, path):
    """Remove the oldest row."""
    key = state[OLDEST]
    state[OLDEST] += 1
    depth = 0
    u = state[ROOT]
    while keys[u] != key:
        right = key > keys[u]
        path[depth] = 2 * u + right
        depth += 1
        u = nodes[u, RIGHT] if right else nodes[u, LEFT]
    below = nodes[u, RIGHT]  # the oldest has nothing on its left
    nodes[u, LEFT] = state[FREE]
    state[FREE] = u
    _repair(nodes, own, total, state, path, depth, below)


@njit(cache=True, nogil=True)
def ranged(nodes, keys, own, total, root, left, right):
    """The partial of rows ``left`` to ``right``: down to where they part, then along both sides."""
    v = root
    while keys[v] < left or keys[v] > right:
        v = nodes[v, RIGHT] if keys[v] < left else nodes[v, LEFT]
    before, after = identity(own), identity(own)
    u = nodes[v, LEFT]
    while u:
        if keys[u] >= left:
            before = combine(combine(load(own, u), load(total, nodes[u, RIGHT])), before)
            u = nodes[u, LEFT]
        else:
            u = nodes[u, RIGHT]
    u = nodes[v, RIGHT]
    while u:
        if keys[u] <= right:
            after = combine(after, combine(load(total, nodes[u, LEFT]), load(own, u)))
            u = nodes[u, RIGHT]
        else:
            u = nodes[u, LEFT]
    return combine(combine(before, load(own, v)), after)


@njit(cache=True, nogil=True)
def append(nodes, keys, own, total, state, items, longest):
    """Rows one after the other; beyond the longest, the oldest goes."""
    path = np.empty(128, np.int64)
    for i in range(len(items)):
        if state[NEXT] - state[OLDEST] == longest:
            delete_oldest(nodes, keys, own, total, state, path)
        insert(nodes, keys, own, total, state, path, lift(own, items, i))


@njit(cache=True, nogil=True)
def look_up(nodes, keys, own, total, state, lefts, rights, out):
    """The partials of many ranges."""
    for i in range(len(lefts)):
        store(out, i, ranged(nodes, keys, own, total, state[ROOT], lefts[i], rights[i]))


@njit(cache=True, nogil=True)
def mixed(nodes, keys, own, total, state, longest, updates, items, widths, out):
    """Updates and lookups of the last rows, one at a time in the order given."""
    path = np.empty(128, np.int64)
    for i in range(len(updates)):
        if updates[U(i)]:
            if state[NEXT] - state[OLDEST] == longest:
                delete_oldest(nodes, keys, own, total, state, path)
            insert(nodes, keys, own, total, state, path, lift(own, items, i))
        else:
            row = state[NEXT]
            left = row - widths[U(i)]
            store(out, i, ranged(nodes, keys, own, total, state[ROOT], left, row - 1))


@njit(cache=True, nogil=True)
def mixed_batches(nodes, keys, own, total, state, longest, updates, items, widths, out, size):
    """The same, ``size`` operations at a time: their rows, then their lookups where they were."""
    rows, lefts, rights = no_batch(items, size)
    asked = 0
    for start in range(0, len(updates), size):
        row = state[NEXT]
        count, lookups = parted(updates, items, widths, start, row, rows, lefts, rights)
        append(nodes, keys, own, total, state, rows[:count], longest)
        answers = out[asked : asked + lookups]
        look_up(nodes, keys, own, total, state, lefts[:lookups], rights[:lookups], answers)
        asked += lookups
    return asked
