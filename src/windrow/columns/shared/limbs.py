"""Fixed-point totals of any number of words, so that floats are added and taken out exactly.

A float is a whole multiple of 2**grid, where the grid is not above the last bit of any row; running
totals are such multiples, modulo 2**(64·words). Wrapping around does no harm: only the sum of the
rows asked for must fit, which is its difference of two running totals. Two words do for 20 decades.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.shared.bits import float_of, leading_zeros, product

U = np.uint64
_FRACTION = (1 << 52) - 1
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def parts(b, floats):
    """Magnitude, exponent of its last bit, sign; of a float's bits, or of an integer."""
    if not floats:
        return (U(b) if b >= 0 else U(0) - U(b)), 0, b < 0
    exponent = (b >> 52) & 0x7FF
    magnitude = b & _FRACTION
    if exponent:
        magnitude |= 1 << 52
    else:
        exponent = 1
    return U(magnitude), exponent - 1075, b < 0


@njit(cache=True, nogil=True)
def _add(words, first, last, low, high, top, negative):
    """Add or subtract three words from ``first`` on; what goes beyond ``last`` is let go."""
    carry = U(0)
    for j in range(first, last):
        part = low if j == first else high if j == first + 1 else top if j == first + 2 else U(0)
        before = words[U(j)]
        if negative:
            middle = before - part
            now = middle - carry
            carry = U(before < part) | U(middle < carry)
        else:
            middle = before + part
            now = middle + carry
            carry = U(middle < part) | U(now < carry)
        words[U(j)] = now
        if carry == U(0) and j >= first + 2:
            break


@njit(cache=True, nogil=True)
def append(totals, row, bits, floats, grid, words, squares):
    """The running totals after each row: Σx in ``words``, and Σx² in twice as many behind it."""
    mask = len(totals) - 1
    size = totals.shape[1]
    running = totals[row & mask].copy()
    for i in range(len(bits)):
        m, exponent, negative = parts(bits[U(i)], floats)
        if m != U(0):
            shift = exponent - grid
            bit = U(shift & 63)
            low, high = m << bit, (m >> U(1)) >> (U(63) - bit)
            _add(running, shift >> 6, words, low, high, U(0), negative)
            if squares:
                s0, s1 = product(m, m)
                shift *= 2
                bit = U(shift & 63)
                low = s0 << bit
                high = (s1 << bit) | ((s0 >> U(1)) >> (U(63) - bit))
                top = (s1 >> U(1)) >> (U(63) - bit)
                _add(running, words + (shift >> 6), size, low, high, top, False)
        row += 1
        slot = U(row & mask)
        for k in range(size):
            totals[slot, U(k)] = running[U(k)]


@njit(cache=True, nogil=True)
def two_words(b, grid):
    """A float, given its bits, in two words; without a branch on its value."""
    exponent = (b >> 52) & 0x7FF
    m = U((b & _FRACTION) | (np.int64(exponent > 0) << 52))
    shift = max(exponent, 1) - 1075 - grid
    bit = U(shift & 63)
    low = m << bit
    high = (m >> U(1)) >> (U(63) - bit)
    upper = shift >= 64
    high = low if upper else high
    low = U(0) if upper else low
    sign = U(b >> 63)  # all ones where negative
    one = sign & U(1)
    low = (low ^ sign) + one
    return low, (high ^ sign) + (one & U(low == U(0)))


@njit(cache=True, nogil=True)
def append_two(totals, row, bits, grid):
    """The same as ``append`` for floats in two words."""
    mask = len(totals) - 1
    low, high = totals[row & mask, 0], totals[row & mask, 1]
    for i in range(len(bits)):
        a, c = two_words(bits[U(i)], grid)
        low += a
        high += c + U(low < a)
        row += 1
        totals[U(row & mask), U(0)] = low
        totals[U(row & mask), U(1)] = high


@njit(cache=True, nogil=True)
def differences(totals, lefts, rights, words, out):
    """Running totals after the right row less those before the left one, part by part."""
    mask = len(totals) - 1
    size = totals.shape[1]
    for i in range(len(lefts)):
        last, first = U((rights[U(i)] + 1) & mask), U(lefts[U(i)] & mask)
        borrow = U(0)
        for k in range(size):
            if k == words:
                borrow = U(0)
            a, b = totals[last, U(k)], totals[first, U(k)]
            middle = a - b
            out[U(i), U(k)] = middle - borrow
            borrow = U(a < b) | U(middle < borrow)


@njit(cache=True, nogil=True)
def times_power(x, exponent):
    """x·2**exponent, in two steps where one factor would leave the range; x is not subnormal."""
    if -1022 <= exponent <= 1023:
        return x * float_of((exponent + 1023) << 52)
    half = exponent >> 1
    return x * float_of((half + 1023) << 52) * float_of((exponent - half + 1023) << 52)


@njit(cache=True, nogil=True)
def round_two(low, high, exponent):
    """The float nearest to (high·2**64 + low)·2**exponent, ties to even."""
    bits = 128 - leading_zeros(high) if high else 64 - leading_zeros(low)
    drop = bits - 53
    if drop <= 0:
        whole, drop = low, 0
    elif drop < 64:
        d = U(drop)
        whole = (low >> d) | (high << (U(64) - d))
        rest = low & ((U(1) << d) - U(1))
        half = U(1) << (d - U(1))
        if rest > half or (rest == half and whole & U(1)):
            whole += U(1)
    else:
        d = U(drop - 64)
        whole = high >> d
        rest = ((high << U(1)) | (low >> U(63))) & ((U(2) << d) - U(1))
        half = U(1) << d
        sticky = (low << U(1)) != U(0)
        if rest > half or (rest == half and (sticky or whole & U(1))):
            whole += U(1)
    return times_power(np.float64(np.int64(whole)), exponent + drop)


@njit(cache=True, nogil=True)
def rounded(words, grid, out):
    """Each total, a row of words, as the nearest float; overwrites the words."""
    size = words.shape[1]
    for i in range(len(words)):
        r = U(i)
        negative = words[r, U(size - 1)] >> U(63)
        if negative:
            carry = U(1)
            for k in range(size):
                now = (words[r, U(k)] ^ _ONES) + carry
                carry &= U(now == U(0))
                words[r, U(k)] = now
        top = size - 1
        while top > 1 and words[r, U(top)] == U(0):
            top -= 1
        low, high = words[r, U(top - 1)], words[r, U(top)]
        sticky = False
        for k in range(top - 1):
            sticky = sticky or words[r, U(k)] != U(0)
        if sticky:  # below half a unit: high is not 0 here
            low |= U(1)
        value = round_two(low, high, grid + 64 * (top - 1))
        out[r] = -value if negative and value != 0.0 else value
