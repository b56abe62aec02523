"""Parameters as people give them, checked, and as a header keeps them."""

import math
import operator
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from windrow.approx.bits import BitReader, BitWriter
from windrow.errors import BadSpecification

_RATIO_BITS = 32
_SIGNIFICANT = 26


def checked_window(window: Any) -> int:
    """W: how many values, at least one."""
    try:
        W = operator.index(window)
    except TypeError:
        W = 0
    if W < 1 or isinstance(window, bool):
        raise BadSpecification(
            f"window={window!r}: a window is a whole number of values, 1 or more"
        )
    return W


def checked_maximum(maximum: Any) -> int:
    """R: the largest value, a whole number from 1 on."""
    try:
        R = operator.index(maximum)
    except TypeError:
        R = 0
    if R < 1 or isinstance(maximum, bool):
        raise BadSpecification(
            f"maximum={maximum!r}: the largest value is a whole number, 1 or more; values with "
            "fractions are what approx.RealSum takes"
        )
    return R


def checked_epsilon(epsilon: Any) -> Fraction:
    """ε as a ratio: 1/1500 as a float means the ratio it was made from.

    A float that is no short ratio is taken down to 26 significant bits (tighter by less than one
    part in 10⁷, never looser) so that it fits the header of the counter's bytes.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real):
        raise BadSpecification(f"epsilon={epsilon!r} is not a number")
    if not 0 < float(epsilon) <= 0.25:
        raise BadSpecification(
            f"epsilon={epsilon!r} must be over 0 and at most 1/4: the error is up to epsilon × "
            "window × maximum, and beyond a quarter the lower bounds do not hold any more"
        )
    given = Fraction(epsilon) if isinstance(epsilon, Rational) else Fraction(float(epsilon))
    if given.numerator.bit_length() + given.denominator.bit_length() > _RATIO_BITS:
        ratio = given.limit_denominator(1 << _RATIO_BITS - 2)
        short = ratio.numerator.bit_length() + ratio.denominator.bit_length() <= _RATIO_BITS
        if short and ratio > 0 and float(ratio) == float(given):
            return ratio
        exponent = math.frexp(float(given))[1] - _SIGNIFICANT
        step = Fraction(2) ** exponent
        return (given // step) * step or step
    return given


def write_epsilon(out: BitWriter, epsilon: Fraction) -> None:
    """A ratio, or 26 bits and an exponent."""
    p, q = epsilon.numerator, epsilon.denominator
    if p.bit_length() + q.bit_length() <= _RATIO_BITS:
        out.number(1, 1)
        out.sized(p)
        out.sized(q)
    else:
        exponent = p.bit_length() - q.bit_length()  # q is a power of two
        mantissa = epsilon / Fraction(2) ** (exponent - _SIGNIFICANT)
        out.number(0, 1)
        out.number(int(mantissa), _SIGNIFICANT + 1)
        out.number(-exponent, 10)


def read_epsilon(bits: BitReader) -> Fraction:
    """What ``write_epsilon`` wrote."""
    if bits.number(1):
        p, q = bits.sized(), bits.sized()
        return Fraction(p, q or 1)
    mantissa = bits.number(_SIGNIFICANT + 1)
    return mantissa * Fraction(2) ** (-bits.number(10) - _SIGNIFICANT)
