"""R-INT of one key for floats: running sums in two words, differences of them decided exactly.

A running sum is an unevaluated high + low. ``advance`` says whether adding a row lost anything; as
long as nothing did, any difference of two running sums is known exactly (``sign_of_five``). Where
something was lost, the loss is bounded, and the few comparisons within it are decided by the rows
themselves. Values are not negative, so nothing cancels but what was evicted; sums are begun anew
every two turns of a ring, so that a huge value does not blur the small ones long after it left.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.exact import SIZE, _add, _rounded
from windrow.columns.jit import njit

LOST = 2.0**-103
"""What one addition can lose, relative to the running sum."""


@njit(cache=True, nogil=True)
def two_sum(a, b):
    """a + b as a float and what rounding it lost."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True)
def advance(high, low, value):
    """The running sum with one value more, and whether it is not exact."""
    s, e = two_sum(high, value)
    t, lost = two_sum(low, e)
    h, l = two_sum(s, t)  # noqa: E741
    return h, l, lost != 0.0


@njit(cache=True, nogil=True)
def sign_of_five(a, b, c, d, e):
    """The sign of a + b + c + d + e, exactly: the last part of an expansion that is not 0."""
    parts = np.zeros(5)
    given = (a, b, c, d, e)
    for k in range(5):
        carry = given[k]
        for i in range(k):
            carry, parts[i] = two_sum(carry, parts[i])
        parts[k] = carry
    for k in range(4, -1, -1):
        if parts[k] != 0.0:
            return 1 if parts[k] > 0.0 else -1
    return 0


@njit(cache=True, nogil=True)
def sign_of_rows(values, block, mask, first, last, limit):
    """The sign of the exact sum of rows less a limit: all of them are added."""
    words = np.zeros(SIZE, np.int64)
    bits = values.view(np.int64)
    for k in range(first, last):
        at = block + (k & mask)
        _add(words, bits[at], values[at], 1)
    one = np.array([limit])
    _add(words, one.view(np.int64)[0], limit, -1)
    rest = _rounded(words)
    return 1 if rest > 0.0 else -1 if rest < 0.0 else 0
