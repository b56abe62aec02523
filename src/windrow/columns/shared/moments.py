"""Variances from exact power sums, correctly rounded wherever two words can prove it."""

import numpy as np

from windrow.columns.fused import fma
from windrow.columns.jit import njit
from windrow.columns.shared.bits import leading_zeros, product
from windrow.columns.shared.limbs import times_power

U = np.uint64
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_MOST_ROWS = 1 << 31
_UNSURE = 2.0**-97
"""More than the relative error of a quotient, or a root, of numbers of 105 bits in two words."""


@njit(cache=True, nogil=True)
def _spread(words, row, size, count, sums, spread):  # type: ignore[no-untyped-def]
    """n·Σx² − (Σx)² of one range, in 2·size + 1 words."""
    negative = words[row, U(size - 1)] >> U(63)
    carry = negative
    turn = U(0) - negative
    for k in range(size):
        now = (words[row, U(k)] ^ turn) + carry
        carry &= U(now == U(0))
        sums[U(k)] = now
    carry = U(0)
    for k in range(2 * size):
        low, high = product(words[row, U(size + k)], count)
        low += carry
        carry = high + U(low < carry)
        spread[U(k)] = low
    spread[U(2 * size)] = carry
    for i in range(size):
        if sums[U(i)] == U(0):
            continue
        borrow = U(0)  # what is to be taken from the next word, beside the product
        for j in range(size):
            low, high = product(sums[U(i)], sums[U(j)])
            low += borrow
            high += U(low < borrow)
            before = spread[U(i + j)]
            spread[U(i + j)] = before - low
            borrow = high + U(before < low)
        k = i + size
        while borrow != U(0) and k <= 2 * size:
            before = spread[U(k)]
            spread[U(k)] = before - borrow
            borrow = U(before < borrow)
            k += 1


@njit(cache=True, nogil=True)
def moments(words, size, grid, counts, ddof, root, out, doubtful):  # type: ignore[no-untyped-def]
    """Variances or their roots; the ranges for which that is not proven are counted and listed."""
    sums = np.empty(size, np.uint64)
    spread = np.empty(2 * size + 1, np.uint64)
    doubts = 0
    for i in range(len(words)):
        n = counts[i]
        if n <= ddof:
            continue
        if n >= _MOST_ROWS:
            doubtful[doubts] = i
            doubts += 1
            continue
        _spread(words, U(i), size, U(n), sums, spread)
        top = 2 * size
        while top >= 0 and spread[top] == U(0):
            top -= 1
        if top < 0:
            out[i] = 0.0
            continue
        zeros = leading_zeros(spread[top])
        z = U(zeros)
        middle = spread[top - 1] if top > 0 else U(0)
        under = spread[top - 2] if top > 1 else U(0)
        high, low = spread[top], middle
        if zeros:
            high = (high << z) | (middle >> (U(64) - z))
            low = (middle << z) | (under >> (U(64) - z))
        # (a + b)·2**exponent, less than one part in 2**104 below the spread
        a = np.float64(np.int64(high >> U(11))) * 9007199254740992.0
        b = np.float64(np.int64(((high & U(0x7FF)) << U(42)) | (low >> U(22))))
        exponent = 22 + 64 * (top - 1) - zeros + 2 * grid
        divisor = n * (n - ddof)
        d = np.float64(divisor)
        d_low = np.float64(divisor - np.int64(d))
        q = a / d
        q_low = (fma(-q, d, a) + (b - q * d_low)) / d
        if root:
            if exponent & 1:
                q *= 2.0
                q_low *= 2.0
                exponent -= 1
            whole = q
            q = np.sqrt(whole)
            q_low = (fma(-q, q, whole) + q_low) / (2.0 * q)
            exponent >>= 1
        value = q + q_low
        rest = q_low - (value - q)
        unsure = value * _UNSURE
        if (
            value + (rest + unsure) == value
            and value + (rest - unsure) == value
            and -1040 < exponent < 900
        ):
            out[i] = times_power(value, exponent)
        else:
            doubtful[doubts] = i
            doubts += 1
    return doubts
