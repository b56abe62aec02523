"""A radix sort of values of any kind, with the rows they came from: two passes where those do.

Values become unsigned keys in the same order. Mostly two passes of eleven bits are enough, by a
*code* of 22 bits: how far the value lies from the smallest to the largest, in equal steps. Keys of
equal codes are then put in order by insertion. Where too many would have the same code (outliers,
long tails), three passes go by the upper 33 bits of the keys' distances; and where these do not
decide either, as many as there are bits.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from windrow.columns.jit import njit

_DIGIT = 11
_DIGITS = 1 << _DIGIT
_MASK = np.uint64(_DIGITS - 1)
_CODES = 1 << 2 * _DIGIT
_ROW = np.uint64(32)
"""A code stands above this bit, the row's number below."""
_ROWS = np.uint64((1 << 32) - 1)
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64((1 << 64) - 1)
_NAN = np.uint64(0x7FF8000000000000 | 1 << 63)
_MOST_MOVES = 8
"""Insertion sort is left alone where keys would move further than this, on average."""


@intrinsic  # type: ignore[untyped-decorator]
def as_float(typing_context: Any, bits: Any) -> Any:
    """The float with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.uint64), generate


@njit(cache=True, nogil=True)
def float_of(key):
    """The float that a key was made of."""
    return as_float(key ^ (_ALL if key < _SIGN else _SIGN))


@njit(cache=True, nogil=True)
def integer_of(key):
    """The integer that a key was made of."""
    return np.int64(key ^ _SIGN)


@njit(cache=True, nogil=True)
def restored(keys, is_float, out):
    """The bits of the values that keys were made of."""
    for i in range(len(keys)):
        key = keys[i]
        out[i] = np.int64(key ^ (_ALL if is_float and key < _SIGN else _SIGN))


@njit(cache=True, nogil=True)
def keyed(bits, valid, is_float, keys, rows):
    """Unsigned keys in the order of the values, of the rows that have one; NaN is the largest.

    How many there are; ``rows`` is filled only where some have none.
    """
    infinite = np.int64(0x7FF0000000000000)
    count = 0
    for i in range(len(bits)):
        if len(valid) and not valid[i]:
            continue
        b = bits[i]
        key = np.uint64(b) ^ _SIGN
        if is_float:
            if b & np.int64(0x7FFFFFFFFFFFFFFF) > infinite:
                key = _NAN
            elif b < 0:
                # -0.0 is 0.0
                key = np.uint64(b) ^ _ALL if b != np.int64(-0x8000000000000000) else _SIGN
        keys[count] = key
        if len(valid):
            rows[count] = i
        count += 1
    return count


@njit(cache=True, nogil=True)
def _coded(keys, low, high, is_float, packed, lower, upper):
    """Codes over row numbers, counted by both digits; False where codes would not do.

    Also: whether equal codes mean equal keys.
    """
    lower[:] = 0
    upper[:] = 0
    exact = False
    if is_float:
        least, most = float_of(low), float_of(high)
        scale = (_CODES - 1) / (most - least) if most > least else 0.0
        if not (scale > 0.0 and scale < np.inf):
            return False, exact
        for i in range(len(keys)):
            code = np.uint64((float_of(keys[i]) - least) * scale)
            packed[i] = code << _ROW | np.uint64(i)
            lower[code & _MASK] += 1
            upper[code >> np.uint64(_DIGIT)] += 1
    else:
        shift = np.uint64(0)
        while (high - low) >> shift >= np.uint64(_CODES):
            shift += np.uint64(1)
        exact = shift == np.uint64(0)
        for i in range(len(keys)):
            code = (keys[i] - low) >> shift
            packed[i] = code << _ROW | np.uint64(i)
            lower[code & _MASK] += 1
            upper[code >> np.uint64(_DIGIT)] += 1
    crowd = 0.0
    for digit in range(_DIGITS):
        crowd += float(upper[digit]) * float(upper[digit])
    return exact or crowd / _DIGITS <= _MOST_MOVES * len(keys), exact


@njit(cache=True, nogil=True)
def _scattered(packed, shift, counts, out):
    """A stable pass by one digit that was counted; False where all rows have the same."""
    move = np.uint64(shift)
    if counts[(packed[0] >> move) & _MASK] == len(packed):
        return False
    total = 0
    for digit in range(_DIGITS):
        here = counts[digit]
        counts[digit] = total
        total += here
    for i in range(len(packed)):
        entry = packed[i]
        digit = (entry >> move) & _MASK
        out[np.uint64(counts[digit])] = entry
        counts[digit] += 1
    return True


@njit(cache=True, nogil=True)
def _moves(packed):
    """A bound on how far keys must move that are in order of their codes."""
    start, total = 0, 0
    for i in range(1, len(packed)):
        if packed[i] >> _ROW != packed[i - 1] >> _ROW:
            start = i
        total += i - start
    return total


@njit(cache=True, nogil=True)
def _by_code(keys, low, high, is_float, ordered, places):
    """Keys in order and their places, by codes; False where those do not decide enough."""
    packed, other = np.empty(len(keys), np.uint64), ordered
    lower, upper = np.empty(_DIGITS, np.int64), np.empty(_DIGITS, np.int64)
    good, exact = _coded(keys, low, high, is_float, packed, lower, upper)
    if not good:
        return False
    if _scattered(packed, 32, lower, other):
        packed, other = other, packed
    if _scattered(packed, 32 + _DIGIT, upper, other):
        packed, other = other, packed
    if not exact and _moves(packed) > _MOST_MOVES * len(keys):
        return False
    for i in range(len(keys)):
        place = packed[i] & _ROWS
        key = keys[place]
        j = i  # ordered may be packed itself: entry i is read, and those before it are done
        while not exact and j > 0 and ordered[j - 1] > key:
            ordered[j] = ordered[j - 1]
            places[j] = places[j - 1]
            j -= 1
        ordered[j] = key
        places[j] = np.int32(place)
    return True


@njit(cache=True, nogil=True)
def _pass(keys, rows, low, shift, counts, out_keys, out_rows):
    """One stable pass by eleven bits; False where all rows have the same."""
    move = np.uint64(shift)
    counts[:] = 0
    for i in range(len(keys)):
        counts[((keys[i] - low) >> move) & _MASK] += 1
    if counts[((keys[0] - low) >> move) & _MASK] == len(keys):
        return False
    total = 0
    for digit in range(_DIGITS):
        here = counts[digit]
        counts[digit] = total
        total += here
    for i in range(len(keys)):
        key = keys[i]
        digit = ((key - low) >> move) & _MASK
        place = np.uint64(counts[digit])
        counts[digit] += 1
        out_keys[place] = key
        out_rows[place] = rows[i]
    return True


@njit(cache=True, nogil=True)
def _disorder(keys, low, shift):
    """A bound on how far keys must move that are in order only down to a bit."""
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
def _by_bits(keys, low, high, places):
    """Keys in order, and their places, by the bits of their distances."""
    count = len(keys)
    other = np.empty(count, np.uint64)
    rows, other_rows = places, np.empty(count, np.int32)
    for i in range(count):
        rows[i] = i
    width = 0
    while width < 64 and (high - low) >> np.uint64(width) != 0:
        width += 1
    counts = np.empty(_DIGITS, np.int64)
    start = max(0, width - 3 * _DIGIT)
    for attempt in range(2):
        for shift in range(start, width, _DIGIT):
            if _pass(keys, rows, low, shift, counts, other, other_rows):
                keys, other = other, keys
                rows, other_rows = other_rows, rows
        if start == 0 or attempt == 1:
            break
        if _disorder(keys, low, start) <= _MOST_MOVES * count:
            for i in range(1, count):
                key, row, j = keys[i], rows[i], i
                while j > 0 and keys[j - 1] > key:
                    keys[j] = keys[j - 1]
                    rows[j] = rows[j - 1]
                    j -= 1
                keys[j] = key
                rows[j] = row
            break
        start = 0
    return keys, rows


@njit(cache=True, nogil=True)
def sort(keys, rows, is_float, rank):
    """Each row's place in order into ``rank``, -1 where it has no key; the ordered keys.

    ``rows`` says which row each key is of; empty, where all rows have one.
    """
    count = len(keys)
    if count < len(rank):
        rank[:] = -1
    if not count:
        return keys
    low = high = keys[0]
    for i in range(count):
        low = min(low, keys[i])
        high = max(high, keys[i])
    ordered, places = np.empty(count, np.uint64), np.empty(count, np.int32)
    if not _by_code(keys, low, high, is_float, ordered, places):
        ordered, places = _by_bits(keys, low, high, places)
    if len(rows):
        for i in range(count):
            rank[rows[places[i]]] = i
    else:
        for i in range(count):
            rank[places[i]] = i
    return ordered
