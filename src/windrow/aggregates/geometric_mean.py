"""The geometric mean: the exponential of the mean logarithm."""

import math
from decimal import Decimal
from typing import Any

from windrow.aggregates import exact
from windrow.aggregates.total import Mean
from windrow.aggregates.values import canonical


class GeometricMean(Mean):
    """The n-th root of the product, through an exact sum of logarithms.

    A zero in the window gives 0, a negative number NaN: while it is in the window, and only then.
    Logarithms are the platform's own, so the last bit may differ between engines.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.GeometricMean())
    >>> window.insert(1.0); window.insert(4.0)
    >>> window.query()
    2.0
    """

    name = "geomean"
    inputs = ("positive",)
    reproducible = False

    @staticmethod
    def lift(value: Any) -> tuple[int, int]:
        """One row and its logarithm."""
        number = canonical(exact.as_number(value))
        if number > 0:
            log = float(number.ln()) if isinstance(number, Decimal) else math.log(number)
            return (1, exact.of_float(log))
        return (1, exact.MINUS_INFINITY if number == 0 else exact.NAN)

    @staticmethod
    def lower(partial: tuple[int, int]) -> float:
        """Back from logarithms."""
        try:
            return math.exp(Mean.lower(partial))
        except OverflowError:
            return math.inf
