"""A set of small numbers as bits, gone through in order; and the ranges that such sets follow.

Two levels: 64 numbers a word, and a bit above for every word that is not empty. Where the k-th
member is asked for, ``bits`` keeps counts too.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.bits import lowest
from windrow.columns.jit import njit

ONE = np.uint64(1)
NOTHING = np.uint64(0)


@njit(cache=True, nogil=True)
def empty_set(size):
    """The two levels for numbers below ``size``."""
    return np.zeros((size >> 6) + 1, np.uint64), np.zeros((size >> 12) + 1, np.uint64)


@njit(cache=True, nogil=True)
def put(words, upper, number):
    """Put a number in."""
    words[number >> 6] |= ONE << np.uint64(number & 63)
    upper[number >> 12] |= ONE << np.uint64(number >> 6 & 63)


@njit(cache=True, nogil=True)
def drop(words, upper, number):
    """Take a member out."""
    words[number >> 6] ^= ONE << np.uint64(number & 63)
    if words[number >> 6] == NOTHING:
        upper[number >> 12] ^= ONE << np.uint64(number >> 6 & 63)


@njit(inline="always")
def lowest_members(words, upper, out, at, last):
    """The lowest members in order, from one place to another; there must be that many."""
    j = 0
    while at < last:
        above = upper[j]
        while above != NOTHING and at < last:
            word = (j << 6) + np.int64(lowest(above))
            above &= above - ONE
            bits = words[word]
            while bits != NOTHING and at < last:
                out[at] = (word << 6) + np.int64(lowest(bits))
                bits &= bits - ONE
                at += 1
        j += 1


@njit(inline="always")
def range_at(i, first, row, lo, hi, width):
    """The i-th range of a block, its rows counted from ``row``; see ``sorted_blocks.moves``."""
    if width:
        return max(first + i + 1 - width, 0) - row, first + i + 1 - row
    return np.int64(lo[i]) - row, np.int64(hi[i]) - row
