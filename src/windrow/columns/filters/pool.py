"""Blocks of 2^c words out of one array: rings, heaps and lists that grow, each by its own.

A block that is given back waits in the list of its size, whose links are in the blocks themselves.
Nothing here makes the array larger: ``take`` then says -1, its caller leaves everything as it was
and returns, and Python (``grown``) doubles the array and calls again with the same row.
"""

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.ranges import Array

TOP = 0
"""Where the part that was never used begins; behind it the heads of the lists of blocks."""
SIZES = 48
LEAST = np.iinfo(np.int64).min


def new_pool(words: int) -> tuple[Array, Array]:
    """An array to take blocks from, and what is free of it."""
    free = np.full(1 + SIZES, -1, np.int64)
    free[TOP] = 0
    return np.empty(words, np.int64), free


def grown(array: Array, words: int = 0) -> Array:
    """Twice as long, or at least so long, with the same beginning."""
    out = np.empty(max(2 * len(array), words), array.dtype)
    out[: len(array)] = array
    return out


@njit(cache=True, nogil=True)
def take(pool, free, size):  # type: ignore[no-untyped-def]
    """A block of 2^size words; -1 where the array is used up."""
    block = free[1 + size]
    if block >= 0:
        free[1 + size] = pool[block]
        return block
    top = free[TOP]
    if top + (1 << size) > len(pool):
        return -1
    free[TOP] = top + (1 << size)
    return top


@njit(cache=True, nogil=True)
def give(pool, free, block, size):  # type: ignore[no-untyped-def]
    """Take a block back."""
    pool[block] = free[1 + size]
    free[1 + size] = block
