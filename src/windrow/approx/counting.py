"""Algorithm 1: how many of the last W bits are ones, within Wε.

Blocks of n = ⌈2Wε⌉ bits, each remembered by one bit, V = R = 1 and θ = n: see ``layout`` for why
that is right for every W and ε. The error is at most (n − 1)/2 ≤ Wε.

Fields (Theorem 8): y ⌈log 2n⌉, m ⌈log n⌉, i ⌈log k⌉, B ⌈log(k+1)⌉, b k bits, with k = ⌈W/n⌉. Where
ε < 1/(2W) every bit matters, and the window is stored exactly.

Needs: nothing but order; cannot be merged. Time: a constant number of fields for insert and query,
whatever W. Paper: Ben Basat, Einziger, Friedman, Kassner, "Efficient Summing over Sliding Windows"
(SWAT 2016), Section 3.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from windrow.approx.base import Counter
from windrow.approx.exact import exact_layout
from windrow.approx.layout import Layout, counting_bound
from windrow.approx.parameters import checked_epsilon, checked_window


@lru_cache(maxsize=1024)
def counting_layout(W: int, epsilon: Fraction) -> Layout:
    """Algorithm 1's fields for this window and error."""
    if 2 * W * epsilon < 1:
        return exact_layout(W, 1)
    n = math.ceil(2 * W * epsilon)
    return Layout("algorithm 1", W, 1, 1, n, n, Fraction(0), y_bits=(2 * n - 1).bit_length())


class Count(Counter):
    """How many of the last ``window`` values were true, within window × epsilon.

    >>> clicks = Count(window=1000, epsilon=0.05)
    >>> clicks.insert_many([True, False, True] * 2000)
    >>> 667 - 50 <= clicks.query() <= 667 + 50
    True
    >>> clicks.bits(), clicks.lower_bound_bits(), clicks.error_bound
    (33, 9, 49.5)
    """

    __slots__ = ()
    kind = 1

    def __init__(self, window: int, epsilon: Any, *, clamp: bool = False) -> None:
        W, e = checked_window(window), checked_epsilon(epsilon)
        super().__init__(counting_layout(W, e), e, clamp)

    def lower_bound_bits(self) -> int:
        """Theorem 5: no algorithm with this guarantee has fewer bits."""
        return counting_bound(self.window, self._epsilon)
