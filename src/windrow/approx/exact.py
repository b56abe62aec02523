"""Exact storage: the window itself, where that takes fewer bits than any approximation.

W cells of ⌈log(R+1)⌉ bits, the index i of the oldest in ⌈log W⌉ and their sum B in ⌈log(WR+1)⌉.
It is Algorithm 3 with θ = 1 and V = R: nothing is ever left over, so y needs no bits.
"""

from fractions import Fraction

from windrow.approx.layout import Layout


def exact_layout(W: int, R: int) -> Layout:
    """All W values, as they are."""
    return Layout("exact", W, R, R, 1, 1, Fraction(0))
