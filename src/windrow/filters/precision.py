"""How coarse the levels of CI-COUNT and CI-SUM are, and which of them a threshold asks for.

With p levels of each size the levels of counts are, from a key's youngest row (distance 1) on,

    level (l, j)    distances   p·(2^l − 1) + 2^l·j + 1   …   p·(2^l − 1) + 2^l·(j + 1)

and those of sums u·(p + j) to u·(p + j + 1) with the unit u = 2^l, for every whole l. For "at
least v" the *inner* level is the farthest that ends at or before v, so that no key is missed. The
largest v that still takes it ends just before the end of the next level, hence

    1 − near / v   <   max(2 / (p + 2), 3 / (2p + 2))        (next of the same size; of twice it)

For "at most v" the *outer* level is the nearest that begins after v; by the same steps what is
read off exceeds v by less than max(2 / p, 3 / (2p − 1)), which is ε / (1 − ε) of the former.
"""

import math

from windrow.errors import BadSpecification

Level = tuple[int, int]
"""Of the sizes 2^l, the j-th."""


def error_at_least(per_size: int) -> float:
    """How much of a threshold candidates for "at least" may lack: 3/4, 1/2, 2/5, 1/3, 2/7, …"""
    return max(2 / (per_size + 2), 3 / (2 * per_size + 2))


def error_at_most(per_size: int) -> float:
    """How much candidates for "at most" may exceed a threshold: 3, 1, 2/3, 1/2, 2/5, …"""
    return max(2 / per_size, 3 / (2 * per_size - 1))


def levels_for(epsilon: float) -> int:
    """The fewest levels of each size whose error is at most ε, on both sides.

    >>> levels_for(1.0), levels_for(0.5), levels_for(0.1)
    (2, 4, 20)
    """
    if not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
        raise BadSpecification(f"epsilon= must be a number above 0, not {epsilon!r}")
    if epsilon < 1e-4:
        raise BadSpecification(
            f"epsilon={epsilon!r} would take {math.ceil(2 / epsilon):,} levels of each size; "
            "answers are exact whatever it is, so ask for 0.0001 or more"
        )
    p = max(1, math.ceil(2 / epsilon) - 1)
    while error_at_most(p) > epsilon:
        p += 1
    return p


def nearest_distance(p: int, level: Level) -> int:
    """The smallest distance in a level of counts."""
    size, j = level
    return p * ((1 << size) - 1) + (j << size) + 1


def count_inner(p: int, v: int) -> Level:
    """The farthest level that ends at or before the v-th row from the end, v ≥ 1.

    >>> count_inner(1, 1), count_inner(1, 11), count_inner(2, 6)
    ((0, 0), (2, 0), (1, 1))
    """
    size = ((v + p) // (p + 1)).bit_length() - 1
    return size, min(p - 1, (v + p >> size) - p - 1)


def count_outer(p: int, v: int) -> Level:
    """The nearest level that begins at or after the v-th row from the end, v ≥ 1.

    >>> count_outer(1, 1), count_outer(1, 11), count_outer(2, 6)
    ((0, 0), (4, 0), (2, 0))
    """
    size = 0
    while (2 * p - 1) << size < v - 1 + p:
        size += 1
    return size, max(0, -(-(v - 1 + p) >> size) - p)


def sum_inner(p: int, v: float) -> Level:
    """The farthest level of sums that ends at or before v > 0.

    >>> sum_inner(1, 11.0), sum_inner(2, 0.8)
    ((2, 0), (-2, 0))
    """
    size = math.frexp(v / (p + 1))[1] - 1
    while math.ldexp(p + 1, size) > v:  # the quotient was rounded up
        size -= 1
    return size, min(p - 1, int(math.ldexp(v, -size)) - p - 1)


def sum_outer(p: int, v: float) -> Level:
    """The nearest level of sums that begins after v > 0.

    >>> sum_outer(1, 11.0), sum_outer(2, 0.8)
    ((4, 0), (-1, 0))
    """
    size = math.frexp(v / (2 * p - 1))[1]
    while math.ldexp(2 * p - 1, size - 1) > v:
        size -= 1
    while math.ldexp(2 * p - 1, size) <= v:
        size += 1
    return size, max(0, int(math.ldexp(v, -size)) + 1 - p)
