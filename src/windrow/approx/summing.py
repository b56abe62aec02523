"""Algorithm 2: the sum of the last W whole numbers from 0 to R, within RWε; and who takes over.

Blocks of n values, each remembered by one bit that stands for θ = n·V units (see ``layout``). The
error is at most R/V · ((nV − 1)/2 + Wρ), so n = ⌊2Wε + (1 − 2Wρ)/V⌋: the paper's (3), for
every W and ε.
V = R rounds nothing (ρ = 0) and V = 2^v < R rounds each value. All v are tried, the paper's
v = ⌈log(log(W)/ε)⌉ among them, and the fewest bits win; Algorithm 3 (``small_epsilon``) and exact
storage take part in the same choice, so ε decides: below about 1/(2W) no n is left.

Fields: y ⌈log (2n−1)V⌉, m ⌈log n⌉, b k bits, and i ⌈log k⌉, B ⌈log(k+1)⌉; up to 48 blocks are one
machine word, which is shifted and whose ones are counted by one instruction: then no i and no B.

Paper: Ben Basat, Einziger, Friedman, Kassner (SWAT 2016), Section 4.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from windrow.approx.base import Counter
from windrow.approx.layout import LONGEST_WORD, ROUNDING, WORD, Layout, counting_bound
from windrow.approx.parameters import checked_epsilon, checked_maximum, checked_window
from windrow.approx.small_epsilon import small_epsilon_layout

_FINEST = 40


def blocks_layout(
    W: int, R: int | float, V: int, two_w_epsilon: Fraction, rounding: Fraction, seen_bits: int
) -> Layout | None:
    """Algorithm 2 with V units to a value, or None where blocks would be shorter than a value."""
    longest = two_w_epsilon + (1 - 2 * W * rounding) / V
    if longest < 1:
        return None
    n = min(int(longest), W)
    y_bits = ((2 * n - 1) * V - 1).bit_length()  # y < θ = nV when a block begins, and n − 1 values
    word = -(-W // n) <= WORD
    return Layout(
        "algorithm 2", W, R, V, n, n * V, rounding, word=word, y_bits=y_bits, seen_bits=seen_bits
    )


def _candidates(W: int, R: int | float, epsilon: Fraction, seen_bits: int) -> Iterator[Layout]:
    two_w_epsilon = 2 * W * epsilon
    units = [(1 << v, ROUNDING) for v in range(_FINEST + 1)]
    if isinstance(R, int):
        units = [(R, Fraction(0)), *((V, rounding) for V, rounding in units if V < R)]
    for V, rounding in units:
        for made in (blocks_layout, small_epsilon_layout):
            layout = made(W, R, V, two_w_epsilon, rounding, seen_bits)
            if layout:
                yield layout
    if isinstance(R, int):
        yield Layout("exact", W, R, R, 1, 1, Fraction(0), seen_bits=seen_bits)


@lru_cache(maxsize=1024)
def summing_layout(W: int, R: int | float, epsilon: Fraction, seen_bits: int = 0) -> Layout | None:
    """The layout with the fewest bits; among equals the one with the smaller error.

    Where that is more than three times the lower bound and 8 bits, the cells become a word that is
    shifted as a whole, if they have at most 512 bits: that saves i and B.
    """
    best = min(
        _candidates(W, R, epsilon, seen_bits),
        key=lambda layout: (layout.bits, layout.error_units / layout.V),
        default=None,
    )
    if best is None or best.word or best.k * best.cell_bits > LONGEST_WORD:
        return best
    bound = summing_bound(W, R, epsilon) if isinstance(R, int) else real_bound(W, epsilon)
    return replace(best, word=True) if best.bits - seen_bits > 3 * bound + 8 else best


def real_bound(W: int, epsilon: Fraction) -> int:
    """Lemma 11, and Lemma 12 with as many letters as the reals allow."""
    ratio = 1 / (2 * W * epsilon)
    letters = -(-ratio.numerator // ratio.denominator)  # multiples of more than 2RWε, below R
    return max(counting_bound(W, epsilon), math.ceil(W * math.log2(letters) * (1 - 1e-12)))


def summing_bound(W: int, R: int, epsilon: Fraction) -> int:
    """Lemmas 11 and 12, the second with all the letters that its proof allows.

    Its words have W letters, each a multiple of x = ⌊2RWε + 1⌋ up to R. The paper rounds the
    number of letters down to ⌊1/(4Wε) + 1⌋ to have a formula without R.
    """
    letters = R // int(2 * R * W * epsilon + 1) + 1
    words = math.ceil(W * math.log2(letters) * (1 - 1e-12))
    return max(counting_bound(W, epsilon), words)


class Sum(Counter):
    """The sum of the last ``window`` whole numbers from 0 to ``maximum``.

    The error is at most epsilon × window × maximum.

    >>> gold = Sum(window=3_600_000, maximum=1500, epsilon=1/1500)
    >>> gold.insert_many([1200] * 10_000)
    >>> abs(gold.query() - 12_000_000) <= gold.error_bound <= 3_600_000
    True
    >>> len(gold.to_bytes()) <= 128
    True
    """

    __slots__ = ()
    kind = 2

    def __init__(self, window: int, maximum: int, epsilon: Any, *, clamp: bool = False) -> None:
        W, R, e = checked_window(window), checked_maximum(maximum), checked_epsilon(epsilon)
        layout = summing_layout(W, R, e)
        assert layout is not None  # exact storage always can
        super().__init__(layout, e, clamp)

    @property
    def maximum(self) -> int:
        """The largest value that may come."""
        return int(self.layout.R)

    def lower_bound_bits(self) -> int:
        """Lemmas 11 and 12: no algorithm with this guarantee has fewer bits."""
        return summing_bound(self.window, int(self.layout.R), self._epsilon)
