"""How far values lie apart: the largest less the smallest, and that as a share of the largest."""

import math
from decimal import Context, Decimal
from typing import Any

from windrow.aggregates import exact
from windrow.aggregates.extremes import Extreme, Max, Min
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.total import Numeric, total_of
from windrow.aggregates.values import canonical
from windrow.errors import SumOverflow

_WIDE = Context(prec=4 * exact.DECIMAL_SCALE)


class Spread(Extreme):
    """The largest value less the smallest; in the type of the values, as ``Sum``'s.

    A difference of integers beyond 64 bits is an error, or null with ``overflow="null"``. With a
    NaN in the window it is NaN, and so it is where all values are the same infinity.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Spread())
    >>> window.insert(3); window.insert(-2); window.insert(4)
    >>> window.query()
    6
    """

    inputs = ("number",)
    commutative = True
    reproducible = True
    schema = Schema((Field("smallest", "value"), Field("largest", "value")))
    family = staticmethod(Numeric.family)

    @staticmethod
    def lift(value: Any) -> tuple[Any, Any]:
        """The value is both."""
        number = canonical(exact.as_number(value))
        return (number, number)

    @staticmethod
    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        """Both, as ``Min`` and ``Max`` do."""
        return (Min.combine(a[0], b[0]), Max.combine(a[1], b[1]))

    def lower(self, partial: tuple[Any, Any]) -> Any:
        """Rounded once; the range is checked here and only here."""
        gap = difference(*partial)
        if not isinstance(gap, int) or gap < 1 << 63:
            return gap
        if self.overflow == "null":
            return None
        raise SumOverflow(
            f"{self!r}: the values of this window lie {gap} apart, which int64 cannot hold. "
            'Insert floats, or say overflow="null"'
        )


class RelativeVariation(Spread):
    """(largest − smallest) / largest, as a float: the spread, rounded, divided once.

    NaN where the largest is 0 and so is the spread; an infinity where only the largest is.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.RelativeVariation())
    >>> window.insert(8.0); window.insert(10.0)
    >>> window.query()
    0.2
    """

    def lower(self, partial: tuple[Any, Any]) -> float:
        """As floats divide, where the largest is 0 too."""
        gap, largest = float(difference(*partial)), float(partial[1])
        if largest == 0.0:
            return math.inf if gap > 0 else math.nan
        return gap / largest + 0.0


def difference(smallest: Any, largest: Any) -> Any:
    """Without rounding, but for floats, which round once."""
    if isinstance(largest, Decimal) and isinstance(smallest, Decimal):
        return _WIDE.subtract(largest, smallest)
    if isinstance(largest, int) and isinstance(smallest, int):
        return int(largest) - int(smallest)
    if not (math.isfinite(largest) and math.isfinite(smallest)):
        return float(largest) - float(smallest)
    high, low = (total_of(x) >> exact.MARK_BITS for x in (largest, smallest))
    return exact.ratio(high - low, exact.FLOAT_UNIT)
