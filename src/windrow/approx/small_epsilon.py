"""Algorithm 3: sums within RWε where ε is so small that blocks would be shorter than one value.

Every value has a cell of its own, b_i = ⌊(y + x')/θ⌋ ∈ {0, …, ⌊(θ − 1 + V)/θ⌋}, and what is left
over goes on to the next value in y < θ.

**The parameters**, which the paper leaves to its full version. It writes the step as W/k in units
of R; here a unit is R/V and the step is θ units. With n = 1 no block is ever partly gone, so the
error is that of y₀ and of rounding only (see ``layout``):

    |error|  ≤  R/V · ((θ − 1)/2 + W·ρ),   ρ = 0 where V = R, else the rounding of one value.

This is at most RWε if and only if θ ≤ 2WεV + 1 − 2Wρ, so θ = ⌊2WεV + 1 − 2Wρ⌋, the largest there
can be. (In the paper's names: k/W = V/θ ≈ 1/(2Wε), so k ≈ 1/(2ε).) For V there are two choices:

- V = R: nothing is rounded. y takes ⌈log θ⌉ = ⌈log(2WεR + 1)⌉ bits, which grows with R.
- V = 2^v < R: needs 2WεV > 2Wρ, that is 2^v > ρ/ε. Every bit of v more halves what rounding costs
  and makes y one bit longer, so v beyond log(1/ε) + loglog W gains nothing: with the paper's
  v = ⌈log(log(W)/ε)⌉ rounding takes the 1/log W-th part of the error.

All v are tried and the one with the fewest bits in all is taken.

Cells of up to 48 bits in all are one machine word, which needs neither i nor B. Otherwise

Fields: y ⌈log θ⌉, i ⌈log W⌉, B ⌈log(⌊(θ − 1 + WV)/θ⌋ + 1)⌉, b W·⌈log(⌊(θ − 1 + V)/θ⌋ + 1)⌉ bits:
W·log(1/(2Wε) + 1)·(1 + o(1)), as in Theorem 18, for ε = o(1/W). A cell has a whole number of bits,
so where 1/(2Wε) is a small constant it is up to one bit a value more than the formula.
"""

from fractions import Fraction

from windrow.approx.layout import WORD, Layout


def small_epsilon_layout(
    W: int, R: int | float, V: int, two_w_epsilon: Fraction, rounding: Fraction, seen_bits: int
) -> Layout | None:
    """Algorithm 3 with V units to a value, or None where rounding alone exceeds the error."""
    theta = int(two_w_epsilon * V + 1 - 2 * W * rounding)
    if two_w_epsilon * V + 1 - 2 * W * rounding < 1:
        return None
    name = "exact" if theta == 1 and not rounding else "algorithm 3"
    y_bits = (theta - 1).bit_length()
    word = W * ((theta - 1 + V) // theta).bit_length() <= WORD
    return Layout(name, W, R, V, 1, theta, rounding, word=word, y_bits=y_bits, seen_bits=seen_bits)
