"""The product, carried with an exponent of its own: it cannot overflow on the way.

A partial is (high + low)·2**exponent: two words, so that each combine is off by less than 2**-102,
and an answer of n rows by half a unit in the last place and n·2**-49 of one. That is not the same
as correctly rounded: answers of floats are equal up to regrouping, differing in the last bit about
once in 2**49 / n answers. Integers that fit 64 bits are exact, since both words together hold them.
"""

import math
from typing import Any

from windrow.aggregates import exact
from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Field, Schema
from windrow.errors import SumOverflow

Scaled = tuple[float, float, int, int]

_LARGEST = 1 << 63


class Product(Aggregate):
    """The product: of integers an int64, of floats (and decimals) a float, in two words inside.

    An integer product beyond 64 bits is an error, or null with ``overflow="null"``; a float product
    beyond the largest float is an infinity, for as long as the window holds those rows.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Product())
    >>> for x in [2.0**900, 2.0**900, 2.0**-900, 3 * 2.0**-900]: window.insert(x)
    >>> window.query()
    3.0
    """

    inputs = ("number",)
    commutative = True
    identity = (0.5, 0.0, 1, 0)
    schema = Schema(
        (
            Field("high", "float64"),
            Field("low", "float64"),
            Field("exponent", "int64"),
            Field("floats", "int64"),  # whether any row was not an integer
        )
    )

    @staticmethod
    def lift(value: Any) -> Scaled:
        """Two words: a decimal may be rounded to them, nothing else is."""
        number = exact.as_number(value)
        whole = isinstance(number, int)
        shift = 0
        if isinstance(number, int) and number.bit_length() > 1000:  # beyond the largest float
            shift = number.bit_length() - 200
            number >>= shift
        high = float(number)
        if high == 0.0 or not math.isfinite(high):
            return (high + 0.0 if high == high else math.nan, 0.0, 0, int(not whole))
        low = 0.0 if isinstance(number, float) else float(number - type(number)(high))
        mantissa, exponent = math.frexp(high)
        return (mantissa, math.ldexp(low, -exponent), exponent + shift, int(not whole))

    @staticmethod
    def combine(a: Scaled, b: Scaled) -> Scaled:
        """Multiplied in two words (Dekker), and scaled back to 0.5 ≤ |high| < 1."""
        p = a[0] * b[0]
        floats = a[3] | b[3]
        if p == 0.0 or p - p != 0.0:
            return (p + 0.0 if p == p else math.nan, 0.0, 0, floats)
        c = 134217729.0 * a[0]
        ah = c - (c - a[0])
        al = a[0] - ah
        c = 134217729.0 * b[0]
        bh = c - (c - b[0])
        bl = b[0] - bh
        e = ((ah * bh - p) + ah * bl + al * bh) + al * bl
        e += a[0] * b[1] + a[1] * b[0]
        high = p + e
        low = e - (high - p)
        exponent = a[2] + b[2]
        while abs(high) < 0.5:
            high, low, exponent = high * 2.0, low * 2.0, exponent - 1
        if abs(high) >= 1.0:
            high, low, exponent = high * 0.5, low * 0.5, exponent + 1
        return (high, low, exponent, floats)

    def lower(self, partial: Scaled) -> int | float | None:
        """Back to one number; the range is checked here and only here."""
        high, low, exponent, floats = partial
        if floats:
            return to_float(high, low, exponent)
        if exponent <= 65:
            scale = 1 << 160
            units = int(high * 2.0**53) * (scale >> 53) + int(low * 2.0**150) * (scale >> 150)
            whole = (units << exponent) // scale if high else 0
            if -_LARGEST <= whole < _LARGEST:
                return whole
        if self.overflow == "null":
            return None
        raise SumOverflow(
            f"{self!r}: the product of this window is about {high:.3}·2**{exponent}, which int64 "
            'cannot hold. Insert floats, or say overflow="null"'
        )


def to_float(high: float, low: float, exponent: int) -> float:
    """The high word, which is both rounded, scaled; below 1e-308 that rounds once more."""
    if exponent > 1100 or exponent < -1200:
        return high * (math.inf if exponent > 0 else 0.0) + 0.0
    half = exponent // 2
    return (high * 2.0**half) * 2.0 ** (exponent - half) + 0.0
