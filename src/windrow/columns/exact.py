"""Exact sums of floats, for the few rows that two words cannot decide.

An accumulator is a row of 64-bit words, each holding 32 bits of a fixed-point number that spans all
finite floats, and three counters: NaN, +inf, -inf. Adding a float adds to three words; carries
wait. ``checkpoints`` keeps the running accumulator of every ``STEP`` rows: the sum of any
range is then the difference of two of them and at most 2·STEP rows.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from windrow.columns.jit import njit

WORDS = 70
SIZE = WORDS + 3
STEP = 256
U = np.uint64


_MASK = 0xFFFFFFFF


@njit(cache=True, nogil=True)
def _add(words, bits, x, sign):
    """Add sign·x, given its bits too; the unit of word 0 is 2**-1088, below every float."""
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        words[WORDS + (0 if x != x else 1 if x > 0 else 2)] += sign
        return
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent:
        mantissa |= 1 << 52
    else:
        exponent = 1
    if bits < 0:
        sign = -sign
    position = exponent + 13  # x = mantissa · 2**(exponent - 1075)
    word, shift = position >> 5, position & 31
    low = (mantissa & _MASK) << shift
    high = (mantissa >> 32) << shift
    words[word] += sign * (low & _MASK)
    words[word + 1] += sign * ((low >> 32) + (high & _MASK))
    words[word + 2] += sign * (high >> 32)


@njit(cache=True, nogil=True)
def _rounded(words):
    """The float nearest to the accumulator, ties to even; overwrites it."""
    if words[WORDS] or (words[WORDS + 1] and words[WORDS + 2]):
        return np.nan
    if words[WORDS + 1] or words[WORDS + 2]:
        return np.inf if words[WORDS + 1] else -np.inf
    sign = 1.0
    carry = 0
    for k in range(WORDS):
        value = words[k] + carry
        carry = value >> 32
        words[k] = value & _MASK
    if carry < 0:  # negative: take the two's complement
        sign = -1.0
        add = 1
        for k in range(WORDS):
            value = (~words[k] & _MASK) + add
            add = value >> 32
            words[k] = value & _MASK
    top = WORDS - 1
    while top >= 0 and words[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    bits = 0
    while words[top] >> bits:
        bits += 1
    middle = words[top - 1] if top >= 1 else 0
    low = words[top - 2] if top >= 2 else 0
    # the 64 highest bits, and whether anything is below them
    window = (U(words[top]) << U(64 - bits)) | (U(middle) << U(32 - bits)) | (U(low) >> U(bits))
    sticky = (low & ((1 << bits) - 1)) != 0
    for k in range(top - 2):
        sticky = sticky or words[k] != 0
    unit = 32 * (top - 2) - 1088 + bits
    target = max(unit + 11, -1074)
    drop = target - unit
    if drop > 63:
        return 0.0
    whole = window >> U(drop)
    rest = window & ((U(1) << U(drop)) - U(1))
    half = U(1) << U(drop - 1)
    if rest > half or (rest == half and (sticky or (whole & U(1)))):
        whole += U(1)
    # in two steps, so that neither factor is out of range
    return sign * math.ldexp(math.ldexp(float(np.int64(whole)), target // 2), target - target // 2)


@njit(cache=True, nogil=True)
def decide(x, points, lo, hi, rows, count, out):
    """Write the exact, once rounded sums of the first ``count`` of ``rows`` to ``out``."""
    bits = x.view(np.int64)
    words = np.empty(SIZE, np.int64)
    for r in range(count):
        i = rows[r]
        low, high = lo[i], hi[i]
        a, b = (low + STEP - 1) // STEP, high // STEP
        if a < b:
            for k in range(SIZE):
                words[k] = points[b, k] - points[a, k]
            for j in range(low, a * STEP):
                _add(words, bits[j], x[j], 1)
            for j in range(b * STEP, high):
                _add(words, bits[j], x[j], 1)
        else:
            words[:] = 0
            for j in range(low, high):
                _add(words, bits[j], x[j], 1)
        out[i] = _rounded(words)


@njit(cache=True, nogil=True)
def checkpoints(x):
    """The accumulator before row 0, STEP, 2·STEP, …"""
    out = np.zeros((len(x) // STEP + 1, SIZE), np.int64)
    words = np.zeros(SIZE, np.int64)
    bits = x.view(np.int64)
    for i in range(len(x)):
        if i % STEP == 0:
            out[i // STEP] = words
        _add(words, bits[i], x[i], 1)
    if len(x) % STEP == 0:
        out[len(x) // STEP] = words
    return out


@njit(cache=True, nogil=True)
def accumulate(x, valid, offsets, words):
    """Add each run's valid rows to its own accumulator."""
    bits = x.view(np.int64)
    for run in range(len(offsets) - 1):
        for i in range(offsets[run], offsets[run + 1]):
            if valid[i]:
                _add(words[run], bits[i], x[i], 1)
