"""Variance and standard deviation from exact power sums: correctly rounded here.

(n, mean, M2) updates, the usual way, were found off by 16 to 10**7 units in the last place.
"""

import math
from decimal import Decimal
from typing import Any, Unpack

from windrow.aggregates import exact
from windrow.aggregates.base import Options
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.total import Numeric, total_of
from windrow.errors import BadSpecification

PowerSums = tuple[int, int, int]


class Variance(Numeric):
    """The variance; ``ddof=1`` (default) of a sample, ``ddof=0`` of a population.

    Fewer than ``ddof + 1`` rows give null; a NaN or an infinity in the window gives NaN.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Variance())
    >>> for x in [1e8 + 1, 1e8 + 2, 1e8 + 3]:
    ...     window.insert(x)
    >>> window.query()
    1.0
    """

    name = "var"
    identity = (0, 0, 0)
    schema = Schema((Field("rows", "int64"), Field("total", "exact"), Field("squares", "exact")))

    def __init__(self, *columns: str, ddof: int = 1, **options: Unpack[Options]) -> None:
        if ddof not in (0, 1):
            raise BadSpecification(f"ddof is 1 (sample) or 0 (population), not {ddof!r}")
        super().__init__(*columns, **options)
        self.ddof = ddof

    def options(self) -> dict[str, Any]:
        """``ddof`` only where it is not the default."""
        return {k: v for k, v in super().options().items() if (k, v) != ("ddof", 1)}

    @staticmethod
    def lift(value: Any) -> PowerSums:
        """One row, its value and its square."""
        number = exact.as_number(value)
        if isinstance(number, float):
            squares = exact.of_float_squared(number)
        elif isinstance(number, Decimal):
            squares = exact.of_decimal_squared(number)
        else:
            squares = exact.of_int_squared(number)
        return (1, total_of(number), squares)

    @staticmethod
    def combine(a: PowerSums, b: PowerSums) -> PowerSums:
        """Add all three."""
        return (a[0] + b[0], a[1] + b[1], a[2] + b[2])

    @staticmethod
    def inverse(total: PowerSums, oldest: PowerSums) -> PowerSums:
        """Subtract all three."""
        return (total[0] - oldest[0], total[1] - oldest[1], total[2] - oldest[2])

    def lower(self, partial: PowerSums) -> float | None:
        """(n·Σx² − (Σx)²) / (n·(n − ddof)), rounded once."""
        rows, total, squares = partial
        if rows <= self.ddof:
            return None
        if exact.special(total) is not None:
            return math.nan
        plain = total >> exact.MARK_BITS
        numerator = rows * (squares >> exact.MARK_BITS) - plain * plain
        return self._rounded(numerator, rows * (rows - self.ddof) * exact.unit(total) ** 2)

    @staticmethod
    def _rounded(numerator: int, denominator: int) -> float:
        return exact.ratio(numerator, denominator)


class StdDev(Variance):
    """The standard deviation: the square root of the exact variance, rounded once."""

    name = "std"

    @staticmethod
    def _rounded(numerator: int, denominator: int) -> float:
        return exact.square_root(numerator, denominator)
