"""A radix sort of values of any kind, with the rows they came from: three passes where those do.

Values become unsigned keys in the same order. Passes go by eleven bits of their distance from the
smallest, of which the upper 33 nearly always decide: what is left is put in order by insertion if
that is little, or else by all bits.
"""

import numpy as np
from numba import njit

_DIGIT = 11
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64((1 << 64) - 1)


@njit(cache=True, nogil=True)
def restored(keys, is_float, out):  # type: ignore[no-untyped-def]
    """Keys as the bits of the values that they were made of."""
    for i in range(len(keys)):
        key = keys[i]
        if is_float and key < _SIGN:
            out[i] = np.int64(key ^ _ALL)
        else:
            out[i] = np.int64(key ^ _SIGN)


@njit(cache=True, nogil=True)
def _keyed(bits, valid, is_float, keys, rows):  # type: ignore[no-untyped-def]
    """Unsigned keys in the order of the values, of the rows that have one; NaN is the largest."""
    infinite = np.int64(0x7FF0000000000000)
    count = 0
    for i in range(len(bits)):
        if len(valid) and not valid[i]:
            continue
        b = bits[i]
        if is_float:
            if b & np.int64(0x7FFFFFFFFFFFFFFF) > infinite:
                key = np.uint64(0x7FF8000000000000) ^ _SIGN
            elif b == np.int64(-0x8000000000000000):  # -0.0
                key = _SIGN
            elif b < 0:
                key = np.uint64(b) ^ _ALL
            else:
                key = np.uint64(b) ^ _SIGN
        else:
            key = np.uint64(b) ^ _SIGN
        keys[count] = key
        rows[count] = i
        count += 1
    return count


@njit(cache=True, nogil=True)
def _pass(keys, rows, low, shift, counts, out_keys, out_rows):  # type: ignore[no-untyped-def]
    """One stable pass by eleven bits; False where all rows have the same."""
    mask = np.uint64((1 << _DIGIT) - 1)
    move = np.uint64(shift)
    counts[:] = 0
    for i in range(len(keys)):
        counts[((keys[i] - low) >> move) & mask] += 1
    if len(keys) and counts[((keys[0] - low) >> move) & mask] == len(keys):
        return False
    total = 0
    for digit in range(1 << _DIGIT):
        here = counts[digit]
        counts[digit] = total
        total += here
    for i in range(len(keys)):
        key = keys[i]
        digit = ((key - low) >> move) & mask
        place = np.uint64(counts[digit])
        counts[digit] += 1
        out_keys[place] = key
        out_rows[place] = rows[i]
    return True


@njit(cache=True, nogil=True)
def _disorder(keys, low, shift):  # type: ignore[no-untyped-def]
    """A bound on how far values must move that are in order only down to a bit."""
    move = np.uint64(shift)
    start, total = 0, 0
    largest = np.uint64(0)
    for i in range(len(keys)):
        if i == 0 or (keys[i] - low) >> move != (keys[i - 1] - low) >> move:
            start, largest = i, keys[i]
        elif keys[i] < largest:
            total += i - start
        else:
            largest = keys[i]
    return total


@njit(cache=True, nogil=True)
def _inserted(keys, rows):  # type: ignore[no-untyped-def]
    """Insertion sort, of what is nearly in order."""
    for i in range(1, len(keys)):
        key, row, j = keys[i], rows[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            rows[j] = rows[j - 1]
            j -= 1
        if j < i:
            keys[j] = key
            rows[j] = row


@njit(cache=True, nogil=True)
def sort(bits, valid, is_float, rank):  # type: ignore[no-untyped-def]
    """Each row's place in order into ``rank``; the ordered keys."""
    size = len(bits)
    keys, rows = np.empty(size, np.uint64), np.empty(size, np.int32)
    other_keys, other_rows = np.empty(size, np.uint64), np.empty(size, np.int32)
    count = _keyed(bits, valid, is_float, keys, rows)
    keys, rows = keys[:count], rows[:count]
    other_keys, other_rows = other_keys[:count], other_rows[:count]
    low, high = _ALL, np.uint64(0)
    for i in range(count):
        low = min(low, keys[i])
        high = max(high, keys[i])
    width = 0
    if count:
        spread = high - low
        while width < 64 and spread >> np.uint64(width) != 0:
            width += 1
    counts = np.empty(1 << _DIGIT, np.int64)
    start = max(0, width - 3 * _DIGIT)  # more bits than that seldom decide
    for attempt in range(2):
        shift = start
        while shift < width:
            if _pass(keys, rows, low, shift, counts, other_keys, other_rows):
                keys, other_keys = other_keys, keys
                rows, other_rows = other_rows, rows
            shift += _DIGIT
        if start == 0 or attempt == 1:
            break
        if _disorder(keys, low, start) <= 8 * count:
            _inserted(keys, rows)
            break
        start = 0  # they do here
    for i in range(size):
        rank[i] = -1
    for i in range(count):
        rank[rows[i]] = i
    return keys
