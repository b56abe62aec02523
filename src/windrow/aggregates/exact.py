"""Exact totals of numbers, so that a sum depends on the rows in its window and on nothing else.

A total is **one Python integer**. Its high part is the sum as a multiple of 2**-1074, the smallest
float: every finite float, and every integer, is such a multiple, so nothing is ever rounded. Its
low 240 bits are five counters of 48 bits: how many of the rows were floats, NaN, +inf, -inf and
decimals. Adding two totals adds all six parts at once, and subtracting takes them out again without
a trace: ``+`` is the combine, ``-`` its exact inverse.

A total of squares is the same with multiples of 2**-2148. Decimals use multiples of 10**-76 (the
finest scale Arrow has) and 10**-152. ``to_float`` rounds, once, to nearest-even; the integer
division it ends with is correctly rounded by Python.

Tried and lost: Shewchuk expansions (lists of floats, as ``math.fsum`` uses) take about 4 times as
long per combine in Python, are not unique, and cannot be subtracted.
"""

import math
from contextlib import suppress
from decimal import Context, Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from windrow.errors import BadValue

COUNTER_BITS = 48
COUNTER_MASK = (1 << COUNTER_BITS) - 1
MARK_BITS = 5 * COUNTER_BITS
MARK_MASK = (1 << MARK_BITS) - 1

FLOAT = 1
NAN = FLOAT + (1 << COUNTER_BITS)
PLUS_INFINITY = FLOAT + (1 << 2 * COUNTER_BITS)
MINUS_INFINITY = FLOAT + (1 << 3 * COUNTER_BITS)
DECIMAL = 1 << 4 * COUNTER_BITS
_SPECIAL_MASK = DECIMAL - (1 << COUNTER_BITS)

FLOAT_UNIT_BITS = 1074
DECIMAL_SCALE = 76

_MANTISSA = float(1 << 53)
_FLOAT_SHIFT = FLOAT_UNIT_BITS - 53
_frexp = math.frexp


class Parts(NamedTuple):
    """A total taken apart."""

    total: int
    floats: int
    nans: int
    plus_infinities: int
    minus_infinities: int
    decimals: int


def of_float(x: float) -> int:
    """The total of one float."""
    try:
        mantissa, exponent = _frexp(x)
        return (int(mantissa * _MANTISSA) << (exponent + _FLOAT_SHIFT + MARK_BITS)) + FLOAT
    except (ValueError, OverflowError):
        return _mark(x)


def of_float_squared(x: float) -> int:
    """The total of one float's square."""
    try:
        mantissa, exponent = _frexp(x)
        whole = int(mantissa * _MANTISSA)
        return (whole * whole << (2 * (exponent + _FLOAT_SHIFT) + MARK_BITS)) + FLOAT
    except (ValueError, OverflowError):
        return _mark(x)


def _mark(x: float) -> int:
    if x != x:
        return NAN
    return PLUS_INFINITY if x > 0 else MINUS_INFINITY


def of_int(x: int) -> int:
    """The total of one integer."""
    return x << (FLOAT_UNIT_BITS + MARK_BITS)


def of_int_squared(x: int) -> int:
    """The total of one integer's square."""
    return x * x << (2 * FLOAT_UNIT_BITS + MARK_BITS)


def of_decimal(x: Decimal) -> int:
    """The total of one decimal, in units of 10**-76."""
    return (_decimal_units(x) << MARK_BITS) + DECIMAL


def of_decimal_squared(x: Decimal) -> int:
    """The total of one decimal's square, in units of 10**-152."""
    return (_decimal_units(x) ** 2 << MARK_BITS) + DECIMAL


def _decimal_units(x: Decimal) -> int:
    with suppress(ValueError, OverflowError):  # not finite
        if -DECIMAL_SCALE <= x.adjusted() <= DECIMAL_SCALE:
            numerator, denominator = x.as_integer_ratio()
            factor, rest = divmod(DECIMAL_UNIT, denominator)
            if not rest:
                units: int = numerator * factor
                return units
    raise BadValue(
        f"decimal {x} is not finite, or has more than {DECIMAL_SCALE} digits on one side "
        "of the point, which no Arrow decimal can hold"
    )


def parts(total: int) -> Parts:
    """Take a total apart into the sum and its five counters."""
    return Parts(
        total >> MARK_BITS,
        total & COUNTER_MASK,
        total >> COUNTER_BITS & COUNTER_MASK,
        total >> 2 * COUNTER_BITS & COUNTER_MASK,
        total >> 3 * COUNTER_BITS & COUNTER_MASK,
        total >> 4 * COUNTER_BITS & COUNTER_MASK,
    )


def special(total: int) -> float | None:
    """NaN or an infinity if the rows' sum is one, else None."""
    if not total & _SPECIAL_MASK:
        return None
    _, _, nans, plus, minus, _ = parts(total)
    if nans or (plus and minus):
        return math.nan
    return math.inf if plus else -math.inf


def ratio(numerator: int, denominator: int) -> float:
    """The float nearest to a ratio of integers; infinite where it is beyond the largest float."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


def unit(total: int) -> int:
    """How many units make one."""
    return DECIMAL_UNIT if total & MARK_MASK >= DECIMAL else FLOAT_UNIT


def to_float(total: int) -> float:
    """The float nearest to the sum."""
    odd = special(total)
    return ratio(total >> MARK_BITS, unit(total)) if odd is None else odd


def to_number(total: int) -> int | float | Decimal:
    """The sum in the type of its rows: integers give an integer, decimals a decimal."""
    marks = total & MARK_MASK
    if marks == 0:
        return total >> (FLOAT_UNIT_BITS + MARK_BITS)
    if marks < DECIMAL:
        return to_float(total)
    units = total >> MARK_BITS
    whole, rest = divmod(units, DECIMAL_UNIT)
    if not rest:
        return Decimal(whole)
    return _EXACTLY.normalize(_EXACTLY.scaleb(Decimal(units), -DECIMAL_SCALE))


def square_root(numerator: int, denominator: int) -> float:
    """The float nearest to the square root of a non-negative ratio."""
    if numerator == 0:
        return 0.0
    # 130 bits more than the quotient has: the root then has 64 or more, and one sticky bit
    # below them decides ties as the exact root would.
    shift = max(0, 130 - (numerator.bit_length() - denominator.bit_length()))
    shift += shift & 1
    quotient, remainder = divmod(numerator << shift, denominator)
    root = math.isqrt(quotient)
    sticky = remainder != 0 or root * root != quotient
    return ratio(root << 1 | sticky, 1 << (shift // 2 + 1))


FLOAT_UNIT = 1 << FLOAT_UNIT_BITS
DECIMAL_UNIT = 10**DECIMAL_SCALE
_EXACTLY = Context(prec=1 << 16)
"""Digits for as many decimals as there can be rows."""


def as_number(x: Any) -> int | float | Decimal:
    """A value as int, float or Decimal; anything else is refused with the way out."""
    kind = type(x)
    if kind is float or kind is int or kind is Decimal:
        return x  # type: ignore[no-any-return]
    elapsed = isinstance(x, np.timedelta64)  # a signed integer, says NumPy
    if isinstance(x, Integral) and not elapsed:
        return int(x)
    if isinstance(x, Real) and not elapsed:
        try:
            number = float(x)
        except OverflowError:
            number = math.inf
        if math.isinf(number) and abs(x) != math.inf:
            raise BadValue(f"{x!r} is beyond the largest float")
        return number
    item = None if elapsed else getattr(x, "item", None)
    if item is not None and getattr(x, "shape", None) == ():
        plain = item()
        if isinstance(plain, (bool, int, float)):
            return plain
    raise BadValue(
        f"{x!r} is a {kind.__name__}, and this aggregate adds numbers: "
        "int, float, Decimal, bool or their NumPy forms. Convert it first, or use Count, First, "
        "Last, Min or Max, which take other types."
    )
