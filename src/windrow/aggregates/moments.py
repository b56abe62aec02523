"""Variance and standard deviation from exact power sums: correctly rounded here.

(n, mean, M2) updates, the usual way, were found off by 16 to 10**7 units in the last place.
"""

from typing import Any, Unpack

from windrow.aggregates import exact
from windrow.aggregates.base import Options
from windrow.aggregates.power_sums import PowerSums
from windrow.aggregates.schema import Field, Schema
from windrow.errors import BadSpecification


class Variance(PowerSums):
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
    monomials = ((1,), (2,))
    unchanging = ((0, 0.0),)
    schema = Schema((Field("rows", "int64"), Field("total", "exact"), Field("squares", "exact")))

    def __init__(self, *columns: str, ddof: int = 1, **options: Unpack[Options]) -> None:
        if ddof not in (0, 1):
            raise BadSpecification(f"ddof is 1 (sample) or 0 (population), not {ddof!r}")
        super().__init__(*columns, **options)
        self.ddof = ddof

    def options(self) -> dict[str, Any]:
        """``ddof`` only where it is not the default."""
        return {k: v for k, v in super().options().items() if (k, v) != ("ddof", 1)}

    @property
    def fewest(self) -> int:
        """One more than ``ddof``."""
        return self.ddof + 1

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """(n·Σx² − (Σx)²) / (n·(n − ddof))."""
        total, squares = sums
        numerator = n * squares - total * total
        return self._rounded(numerator, n * (n - self.ddof) * units[0] ** 2)

    @staticmethod
    def _rounded(numerator: int, denominator: int) -> float:
        return exact.ratio(numerator, denominator)


class StdDev(Variance):
    """The standard deviation: the square root of the exact variance, rounded once."""

    name = "std"

    @staticmethod
    def _rounded(numerator: int, denominator: int) -> float:
        return exact.square_root(numerator, denominator)
