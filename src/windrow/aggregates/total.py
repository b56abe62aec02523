"""Sum and mean, correctly rounded: the answer depends on the rows of the window only."""

import operator
from decimal import Decimal
from typing import Any

from windrow.aggregates import exact
from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Field, Schema
from windrow.errors import SumOverflow


def total_of(value: Any) -> int:
    """The exact total of one number."""
    if type(value) is float:
        return exact.of_float(value)
    number = exact.as_number(value)
    if isinstance(number, float):
        return exact.of_float(number)
    return exact.of_decimal(number) if isinstance(number, Decimal) else exact.of_int(number)


class Numeric(Aggregate):
    """What the sum-like aggregates share: exact totals, which are added and taken out again."""

    inputs = ("number",)
    commutative = True
    invertible = True

    @staticmethod
    def family(value: Any) -> str:
        """Decimals stay among themselves: no unit is exact for decimals and floats."""
        return "decimal" if isinstance(value, Decimal) else "number"


class Sum(Numeric):
    """The sum: of integers an int64, of decimals a decimal, of floats the correctly rounded float.

    An integer sum beyond 64 bits is an error, or null with ``overflow="null"``; a float sum beyond
    the largest float is an infinity, for as long as the window holds those rows and no longer.

    >>> import windrow as wr
    >>> window = wr.windows.TwoStacksLite(wr.Sum())
    >>> for x in [1e20, 1.0, 1e-20, -1e20, -1.0]:
    ...     window.insert(x)
    >>> window.query()
    1e-20
    """

    reproducible = True
    identity = 0
    schema = Schema.single("exact", "total")

    lift = staticmethod(total_of)
    combine = staticmethod(operator.add)
    inverse = staticmethod(operator.sub)

    def lower(self, partial: int) -> int | float | Decimal | None:
        """Round once; check the range here and only here."""
        number = exact.to_number(partial)
        if isinstance(number, int):
            fits, limit = -(1 << 63) <= number < 1 << 63, "int64"
        elif isinstance(number, Decimal):
            digits = len(number.as_tuple().digits)
            fits, limit = (
                digits <= exact.DECIMAL_SCALE,
                f"a decimal of {exact.DECIMAL_SCALE} digits",
            )
        else:
            return number
        if fits:
            return number
        if self.overflow == "null":
            return None
        wide = isinstance(number, int) and number.bit_length() > 256
        shown = f"about 2**{number.bit_length()}" if wide else number  # type: ignore[union-attr]
        raise SumOverflow(
            f"{self!r}: the sum of this window is {shown}, which {limit} cannot hold. "
            'Insert floats, or say overflow="null"'
        )


class Mean(Numeric):
    """The mean as a float: the correctly rounded sum, divided once by the number of rows."""

    reproducible = True
    identity = (0, 0)
    schema = Schema((Field("rows", "int64"), Field("total", "exact")))

    @staticmethod
    def lift(value: Any) -> tuple[int, int]:
        """One row and its total."""
        return (1, total_of(value))

    @staticmethod
    def combine(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        """Add both."""
        return (a[0] + b[0], a[1] + b[1])

    @staticmethod
    def inverse(total: tuple[int, int], oldest: tuple[int, int]) -> tuple[int, int]:
        """Subtract both."""
        return (total[0] - oldest[0], total[1] - oldest[1])

    @staticmethod
    def lower(partial: tuple[int, int]) -> float:
        """Round the sum, then divide."""
        rows, total = partial
        return exact.to_float(total) / rows + 0.0
