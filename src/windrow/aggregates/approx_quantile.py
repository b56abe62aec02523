"""About where a share of the window lies, in a few kilobytes however many rows there are."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any, Unpack

import numpy as np

from windrow.aggregates.base import Options
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.sketches import Sketch, checked_share, datasketches
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification, BadValue

Summary = tuple[bytes, int]
_LEAST, _MOST = 8, 65535


@cache
def _k_for(error: float) -> int:
    """The smallest k whose rank error is small enough."""
    rank_error = datasketches().kll_doubles_sketch.get_normalized_rank_error
    sizes = range(_LEAST, _MOST + 1)
    return sizes[bisect_left(sizes, True, key=lambda k: rank_error(k, False) <= error)]


class ApproxQuantile(Sketch):
    """About the value below which a share ``phi`` of the window lies (KLL), in bounded space.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.ApproxQuantile(0.75))
    >>> [window.insert(x) for x in [1, 9, 4, 2, 3]]
    [1.0, 9.0, 9.0, 4.0, 4.0]

    ``ApproxQuantile("amount", 0.95)`` of a column is called ``amount_approx_p95``. ``error``
    (default 0.01) is about ranks: the answer is one of the values, as a float, and its share of
    smaller values differs from ``phi`` by at most that in 99 % of windows. A window of no more than
    ``k`` values is answered exactly, as ``Quantile(method="inverted_cdf")``; ``k`` follows from
    ``error``. NaN is larger than every number.

    KLL throws a coin for every compaction, and the package does not let it be seeded: beyond ``k``
    values two runs over the same rows may differ, each within the bound. So this aggregate is not
    ``reproducible``; ``Quantile`` is.
    """

    inputs = ("number",)
    schema = Schema((Field("sketch", "value"), Field("nans", "int64")))
    name = "approx_p50"

    def __init__(
        self,
        *columns: Any,
        phi: float | None = None,
        error: float = 0.01,
        **options: Unpack[Options],
    ) -> None:
        if columns and not isinstance(columns[-1], str):
            if phi is not None:
                raise BadSpecification("ApproxQuantile: phi is given twice")
            *columns, phi = columns  # type: ignore[assignment]
        self.phi = checked_share("ApproxQuantile", "phi", 0.5 if phi is None else phi, 0, 1)
        self.error = checked_share("ApproxQuantile", "error", error, 0.0001, 0.1)
        super().__init__(*columns, **options)
        percent = format(Decimal(repr(self.phi)) * 100, "f")
        percent = percent.rstrip("0").rstrip(".") if "." in percent else percent
        self.name = f"approx_p{percent.replace('.', '_')}"

    def options(self) -> dict[str, Any]:
        """The share and the error."""
        return {k: v for k, v in super().options().items() if k != "name"}

    @property
    def k(self) -> int:
        """How many values are kept exactly; above that, about three times as many at most."""
        return _k_for(self.error)

    @property
    def error_bound(self) -> float:
        """How far the answer's rank is off at most, as a share of all rows, in 99 % of windows."""
        bound: float = datasketches().kll_doubles_sketch.get_normalized_rank_error(self.k, False)
        return bound

    @property
    def approximation(self) -> str:
        """How far off, and how large."""
        return (
            f"approximate: rank off by at most {100 * self.error_bound:.2g} % of the rows in 99 % "
            f"of windows, exact up to {self.k:,} rows; about {24 * self.k + 60:,} bytes at most; "
            "randomised"
        )

    def lift(self, value: Any) -> Summary:
        """A sketch of one value; NaN is only counted."""
        value = canonical(value)
        if order_family(value) != "number":
            raise BadValue(
                f"{self!r} takes numbers, got {value!r} ({type(value).__name__}): "
                'Quantile(method="lower") takes whatever can be ordered'
            )
        sketch = datasketches().kll_doubles_sketch(self.k)
        number = float(value)
        if number == number:
            sketch.update(number)
        return (sketch.serialize(), int(number != number))

    def of_run(self, values: Iterable[Any]) -> Summary:
        """The sketch of many numbers at once."""
        numbers = np.fromiter(values, np.float64) + 0.0
        sketch = datasketches().kll_doubles_sketch(self.k)
        sketch.update(numbers[numbers == numbers])
        return (sketch.serialize(), int((numbers != numbers).sum()))

    @staticmethod
    def combine(a: Summary, b: Summary) -> Summary:
        """Merge; levels that are too full are halved by the toss of a coin."""
        read = datasketches().kll_doubles_sketch.deserialize
        sketch = read(a[0])
        sketch.merge(read(b[0]))
        return (sketch.serialize(), a[1] + b[1])

    def lower(self, summary: Summary) -> float:
        """The value at the place of ``phi``; NaN come after all of them."""
        sketch = datasketches().kll_doubles_sketch.deserialize(summary[0])
        place = max(1, math.ceil(self.phi * (sketch.n + summary[1])))
        if place > sketch.n:
            return math.nan
        found: float = sketch.get_quantile((place - 0.5) / sketch.n, True)
        return found

    def agrees(self, a: Summary, b: Summary) -> bool:
        """Equal where nothing was thrown away; else no rank differs by much more than the bound."""
        read = datasketches().kll_doubles_sketch.deserialize
        x, y = read(a[0]), read(b[0])
        if (x.n, a[1]) != (y.n, b[1]):
            return False
        if x.is_empty() or not (x.is_estimation_mode() or y.is_estimation_mode()):
            return sorted(x) == sorted(y)
        if (x.get_min_value(), x.get_max_value()) != (y.get_min_value(), y.get_max_value()):
            return False
        # Each is within its bound in 99 of 100; half as much again, once in some billion pairs.
        most = 1.5 * (x.normalized_rank_error(False) + y.normalized_rank_error(False))
        values = sorted({value for value, _ in (*x, *y)})
        return all(abs(x.get_rank(v, True) - y.get_rank(v, True)) <= most for v in values)
