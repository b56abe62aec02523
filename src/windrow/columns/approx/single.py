"""One counter, many values: the fields stay in registers, blocks are summed as wholes."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.approx.layout import Layout
from windrow.columns.approx.bank import take
from windrow.columns.approx.fields import (
    B_AT,
    CELL,
    CELLS,
    FACTOR,
    INDEX,
    INDEX_AT,
    M_AT,
    SHIFT,
    THETA,
    WORD,
    Y_AT,
    B,
    K,
    M,
    N,
    Y,
    get,
    numbers,
    put,
)
from windrow.columns.jit import njit
from windrow.columns.ranges import Array


def insert_many(state: bytearray, layout: Layout, values: Array) -> None:
    """Run the machine over the values; ``state`` is changed in place."""
    data = np.frombuffer(state, np.uint8)
    if layout.in_pieces:
        insert_each(data, numbers(layout), values)
    elif layout.n == 1 and not layout.word:
        insert_cells(data, numbers(layout), values)
    else:
        insert_blocks(data, numbers(layout), values)


@njit(cache=True, nogil=True)
def insert_each(data, p, values):
    """One by one, where cells are a long word."""
    half = (np.int64(1) << p[SHIFT]) >> 1
    for j in range(len(values)):
        take(data, 0, p, (np.int64(values[j]) * p[FACTOR] + half) >> p[SHIFT], np.uint8(0))


@njit(cache=True, nogil=True)
def insert_blocks(data, p, values):
    """Algorithms 1 and 2: sum to the end of the block, then close it."""
    n, theta, k, word = p[N], p[THETA], p[K], p[WORD]
    factor, shift = p[FACTOR], p[SHIFT]
    half = (np.int64(1) << shift) >> 1
    y, m = get(data, 0, p[Y_AT], p[Y]), get(data, 0, p[M_AT], p[M])
    i, total = get(data, 0, p[INDEX_AT], p[INDEX]), get(data, 0, p[B_AT], p[B])
    blocks = get(data, 0, p[CELLS], k) if word else np.int64(0)
    position, length = 0, len(values)
    while position < length:
        taken = min(n - m, length - position)
        block = values[position : position + taken]
        if shift:
            for j in range(taken):
                y += (np.int64(block[j]) * factor + half) >> shift
        else:
            for j in range(taken):
                y += np.int64(block[j])
        m += taken
        position += taken
        if m == n:
            m = 0
            cell = np.int64(1 if y >= theta else 0)
            y -= theta * cell
            if word:
                blocks = (blocks >> 1) | (cell << (k - 1))
            else:
                at = p[CELLS] + i
                byte, bit = np.uint64(at >> 3), np.uint8(at & 7)
                old = data[byte]
                total += cell - np.int64((old >> bit) & np.uint8(1))
                data[byte] = (old & ~(np.uint8(1) << bit)) | (np.uint8(cell) << bit)
                i += 1
                if i == k:
                    i = 0
    put(data, 0, p[Y_AT], p[Y], y)
    put(data, 0, p[M_AT], p[M], m)
    put(data, 0, p[INDEX_AT], p[INDEX], i)
    put(data, 0, p[B_AT], p[B], total)
    if word:
        put(data, 0, p[CELLS], k, blocks)


@njit(cache=True, nogil=True)
def insert_cells(data, p, values):
    """Blocks of one value: Algorithm 3 and exact storage."""
    theta, k, width = p[THETA], p[K], p[CELL]
    factor, shift = p[FACTOR], p[SHIFT]
    half = (np.int64(1) << shift) >> 1
    y, i = get(data, 0, p[Y_AT], p[Y]), get(data, 0, p[INDEX_AT], p[INDEX])
    total = get(data, 0, p[B_AT], p[B])
    for j in range(len(values)):
        y += (np.int64(values[j]) * factor + half) >> shift
        cell = y
        if theta > 1:
            cell = np.int64(np.uint64(y) // np.uint64(theta))
        y -= cell * theta
        at = p[CELLS] + i * width
        total += cell - get(data, 0, at, width)
        put(data, 0, at, width, cell)
        i += 1
        if i == k:
            i = 0
    put(data, 0, p[Y_AT], p[Y], y)
    put(data, 0, p[INDEX_AT], p[INDEX], i)
    put(data, 0, p[B_AT], p[B], total)
