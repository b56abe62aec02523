"""Packed fields in compiled code, and a counter's layout as numbers for it."""

import numpy as np

from windrow.approx.layout import Layout
from windrow.columns.jit import njit
from windrow.columns.ranges import Array

N, THETA, K, CELL, WORD, FACTOR, SHIFT, V, W, SURPLUS = range(10)
Y_AT, Y, M_AT, M, INDEX_AT, INDEX, B_AT, B, CELLS = range(10, 19)


def numbers(layout: Layout, before: int = 0) -> Array:
    """What the kernels need of a layout whose state starts after ``before`` other bits.

    ``WORD`` is 0 for cells in a ring, 1 for bits in a machine word, 2 for longer words.
    """
    y = before
    m = y + layout.y_bits
    i = m + layout.m_bits
    b = i + layout.i_bits
    n, k, word = layout.n, layout.k, int(layout.word) + layout.in_pieces
    return np.array(
        [
            *(n, layout.theta, k, layout.cell_bits, word, layout.factor, layout.shift, layout.V),
            *(layout.W, layout.surplus, y, layout.y_bits, m, layout.m_bits, i, layout.i_bits),
            *(b, layout.B_bits, before + layout.head_bits),
        ],
        np.int64,
    )


@njit(cache=True, nogil=True, inline="always")
def get(data, start, offset, width):  # type: ignore[no-untyped-def]
    """The number in ``width`` ≤ 56 bits, ``offset`` bits after byte ``start``."""
    first = np.uint64(start + (offset >> 3))
    shift = np.uint64(offset & 7)
    count = np.uint64((np.int64(shift) + width + 7) >> 3)
    word = np.uint64(0)
    for j in range(count):
        word |= np.uint64(data[first + j]) << (np.uint64(8) * j)
    return np.int64((word >> shift) & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@njit(cache=True, nogil=True, inline="always")
def put(data, start, offset, width, value):  # type: ignore[no-untyped-def]
    """Write a number that fits; the neighbours stay."""
    first = np.uint64(start + (offset >> 3))
    shift = np.uint64(offset & 7)
    count = np.uint64((np.int64(shift) + width + 7) >> 3)
    mask = ((np.uint64(1) << np.uint64(width)) - np.uint64(1)) << shift
    word = np.uint64(value) << shift
    for j in range(count):
        at = np.uint64(8) * j
        kept = np.uint64(data[first + j]) & ~(mask >> at)
        data[first + j] = np.uint8((kept | (word >> at)) & np.uint64(255))
