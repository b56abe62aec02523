"""The shape of a distribution: skewness and kurtosis, correctly rounded."""

import math
from typing import Any, Unpack

from windrow.aggregates import exact
from windrow.aggregates.base import Options
from windrow.aggregates.power_sums import PowerSums, signed_root
from windrow.errors import BadSpecification


class Shape(PowerSums):
    """What both share: the form of a sample, or of a population."""

    unchanging = ((0, math.nan),)

    def __init__(self, *columns: str, population: bool = False, **options: Unpack[Options]) -> None:
        if not isinstance(population, bool):
            raise BadSpecification(f"population= is True or False, not {population!r}")
        super().__init__(*columns, **options)
        self.population = population

    def options(self) -> dict[str, Any]:
        """``population`` only where it is not the default."""
        return {k: v for k, v in super().options().items() if (k, v) != ("population", False)}


class Skewness(Shape):
    """The skewness, corrected for bias as pandas' and Excel's; ``population=True``: m₃ / m₂^1.5.

    √(n·(n − 1)) / (n − 2) times the population's; fewer than 3 rows give null, equal values NaN.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Skewness())
    >>> for x in [1, 2, 3, 10]: window.insert(x)
    >>> round(window.query(), 4)
    1.7636
    """

    name = "skew"
    monomials = ((1,), (2,), (3,))

    @property
    def fewest(self) -> int:
        """Three of a sample."""
        return 2 if self.population else 3

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """n³·m₃ and n²·m₂ are whole numbers of units."""
        s1, s2, s3 = sums
        second = n * s2 - s1 * s1
        third = n * n * s3 - 3 * n * s1 * s2 + 2 * s1**3
        if not second:
            return math.nan
        over, under = (1, 1) if self.population else (n * (n - 1), (n - 2) ** 2)
        return signed_root(third, third * third * over, second**3 * under)


class Kurtosis(Shape):
    """The excess kurtosis, corrected for bias as pandas'; ``population=True``: m₄ / m₂² − 3.

    (n − 1) / ((n − 2)·(n − 3)) · ((n + 1)·m₄ / m₂² − 3·(n − 1)); fewer than 4 rows give null, equal
    values NaN.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Kurtosis())
    >>> for x in [1, 2, 3, 10]: window.insert(x)
    >>> round(window.query(), 4)
    3.228
    """

    name = "kurt"
    monomials = ((1,), (2,), (3,), (4,))

    @property
    def fewest(self) -> int:
        """Four of a sample."""
        return 2 if self.population else 4

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """n⁴·m₄ and (n²·m₂)² are whole numbers of units."""
        s1, s2, s3, s4 = sums
        second = (n * s2 - s1 * s1) ** 2
        fourth = n**3 * s4 - 4 * n * n * s1 * s3 + 6 * n * s1 * s1 * s2 - 3 * s1**4
        if not second:
            return math.nan
        if self.population:
            return exact.ratio(fourth - 3 * second, second)
        over = (n - 1) * ((n + 1) * fourth - 3 * (n - 1) * second)
        return exact.ratio(over, (n - 2) * (n - 3) * second)
