"""What aggregates have in common: a mean is a sum and a number of rows, which others need too."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from windrow.aggregates import (
    EMPTY,
    Aggregate,
    Count,
    Mean,
    Partial,
    Quantile,
    Schema,
    StdDev,
    Sum,
    Variance,
    exact,
)
from windrow.aggregates.total import Numeric


class Present(Count):
    """Rows that have a value."""

    @property
    def input_kinds(self) -> tuple[str, ...]:
        """One value, with or without a column's name."""
        return ("any",)


class Squares(Numeric):
    """The exact sum of the squares."""

    reproducible = True
    identity = 0
    schema = Schema.single("exact", "squares")
    combine = Sum.combine
    inverse = Sum.inverse

    @staticmethod
    def lift(value: Any) -> int:
        """One value, squared."""
        number = exact.as_number(value)
        if isinstance(number, float):
            return exact.of_float_squared(number)
        if isinstance(number, Decimal):
            return exact.of_decimal_squared(number)
        return exact.of_int_squared(number)


Assemble = Callable[[list[Partial]], Partial]


def _together(partials: list[Partial]) -> Partial:
    return EMPTY if partials[0] is EMPTY else tuple(partials)


def _alone(partials: list[Partial]) -> Partial:
    return partials[0]


_KINDS: dict[type[Aggregate], tuple[type[Aggregate], ...]] = {
    Sum: (Sum,),
    Mean: (Present, Sum),
    Variance: (Present, Sum, Squares),
    StdDev: (Present, Sum, Squares),
}


def split(aggregate: Aggregate) -> tuple[tuple[Aggregate, ...], Assemble]:
    """The aggregates whose partials make up this one's, and how."""
    if isinstance(aggregate, Quantile):  # whatever their share, they need the same sorted values
        method: Any = "lower" if aggregate.picks else "linear"
        columns: Any = (*aggregate.columns, 0.5)
        return (Quantile(*columns, method=method, nan=_nan(aggregate)),), _alone
    kinds = _KINDS.get(type(aggregate))
    if type(aggregate) is Count and aggregate.columns:
        kinds = (Present,)
    if kinds is None:
        return (aggregate,), _alone
    parts = tuple(kind(*aggregate.columns, nan=_nan(aggregate)) for kind in kinds)
    return parts, _together if len(parts) > 1 else _alone


def _nan(aggregate: Aggregate) -> Any:
    return aggregate.nan
