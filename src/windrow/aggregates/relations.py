"""How two columns go together: covariance, correlation, slope, and a mean weighted by another."""

import math
from typing import Any, Unpack

from windrow.aggregates import exact
from windrow.aggregates.base import Options
from windrow.aggregates.power_sums import PowerSums, signed_root
from windrow.errors import BadSpecification


class Covariance(PowerSums):
    """The covariance of two columns; ``ddof=1`` (default) of a sample, ``ddof=0`` of a population.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Covariance())
    >>> for pair in [(1, 1e8 + 2), (2, 1e8 + 4), (3, 1e8 + 9)]: window.insert(pair)
    >>> window.query()
    3.5
    """

    name = "cov"
    monomials = ((1, 0), (0, 1), (1, 1))
    unchanging = ((0, 0.0), (1, 0.0))

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
        """(n·Σxy − Σx·Σy) / (n·(n − ddof))."""
        x, y, xy = sums
        return exact.ratio(n * xy - x * y, n * (n - self.ddof) * units[0] * units[1])


class Correlation(PowerSums):
    """Pearson's correlation of two columns; NaN where one of them does not vary.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Correlation())
    >>> for pair in [(1, 10), (2, 20), (3, 31)]: window.insert(pair)
    >>> round(window.query(), 4)
    0.9996
    """

    name = "corr"
    monomials = ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
    unchanging = ((0, math.nan), (1, math.nan))

    @property
    def fewest(self) -> int:
        """Two."""
        return 2

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """(n·Σxy − Σx·Σy) / √((n·Σx² − (Σx)²)·(n·Σy² − (Σy)²))."""
        x, y, xx, yy, xy = sums
        together = n * xy - x * y
        apart = (n * xx - x * x) * (n * yy - y * y)
        return signed_root(together, together * together, apart) if apart else math.nan


class Slope(PowerSums):
    """The slope of the least-squares line of the first column against the second.

    NaN where the second does not vary.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Slope())
    >>> for y, x in [(1, 0), (3, 1), (5, 2)]: window.insert((y, x))
    >>> window.query()
    2.0
    """

    monomials = ((1, 0), (0, 1), (0, 2), (1, 1))
    unchanging = ((1, math.nan), (0, 0.0))

    @property
    def fewest(self) -> int:
        """Two."""
        return 2

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """(n·Σxy − Σx·Σy) / (n·Σx² − (Σx)²)."""
        y, x, xx, xy = sums
        spread = n * xx - x * x
        if not spread:
            return math.nan
        return exact.ratio((n * xy - x * y) * units[1], spread * units[0])


class WeightedMean(PowerSums):
    """The mean of the first column, each row weighted by the second; NaN where weights add up to 0.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.WeightedMean())
    >>> window.insert((10.0, 1)); window.insert((20.0, 3))
    >>> window.query()
    17.5
    """

    monomials = ((1, 0), (0, 1), (1, 1))

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """Σxw / Σw."""
        _, weights, products = sums
        return exact.ratio(products, weights * units[0]) if weights else math.nan
