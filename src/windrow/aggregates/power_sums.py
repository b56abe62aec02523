"""Moments from exact power sums: what their aggregates share.

A *monomial* is a product of powers of the inputs, written as its exponents: of (x, y), ``(1, 1)``
is x·y and ``(2, 0)`` is x². A partial is the number of rows and one exact total for each monomial,
so that nothing is rounded before ``value`` makes one ratio, or one root, of integers: answers are
correctly rounded, the same on every engine. Partials are added, and taken out again.
"""

import math
from decimal import Decimal
from typing import Any, ClassVar

from windrow.aggregates import exact
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.total import Numeric

Monomial = tuple[int, ...]


class PowerSums(Numeric):
    """Σ of some monomials of the inputs; the first ones are the inputs themselves, in order.

    A NaN or an infinity in the window gives NaN; too few rows give null; what would be divided by
    zero, such as the correlation with a column that does not vary, is NaN.
    """

    reproducible = True
    monomials: ClassVar[tuple[Monomial, ...]]
    unchanging: ClassVar[tuple[tuple[int, float], ...]] = ()
    """Inputs, by place, that decide the answer where they have only one value; the first counts."""

    def __init_subclass__(cls, **extra: Any) -> None:
        if "monomials" in cls.__dict__:
            names = ["".join(f"{'xy'[i]}{p}" for i, p in enumerate(m) if p) for m in cls.monomials]
            cls.inputs = ("number",) * len(cls.monomials[0])  # type: ignore[assignment]
            if "schema" not in cls.__dict__:
                cls.schema = Schema((Field("rows", "int64"), *(Field(n, "exact") for n in names)))
            cls.identity = (0,) * (len(names) + 1)
        super().__init_subclass__(**extra)

    @property
    def fewest(self) -> int:
        """How many rows it takes to have an answer."""
        return 1

    @staticmethod
    def family(value: Any) -> Any:
        """Decimals stay among themselves, column by column."""
        several = value if isinstance(value, tuple) else (value,)
        kinds = tuple("decimal" if isinstance(v, Decimal) else "number" for v in several)
        return kinds if len(kinds) > 1 else kinds[0]

    def lift(self, *values: Any) -> tuple[int, ...]:
        """One row, and every monomial of it."""
        return (1, *totals(self.monomials, values))

    @staticmethod
    def combine(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        """Add all."""
        return tuple([x + y for x, y in zip(a, b, strict=True)])

    @staticmethod
    def inverse(total: tuple[int, ...], oldest: tuple[int, ...]) -> tuple[int, ...]:
        """Subtract all."""
        return tuple([x - y for x, y in zip(total, oldest, strict=True)])

    def lower(self, partial: tuple[int, ...]) -> float | None:
        """Rounded once, by ``value``."""
        rows, *sums = partial
        if rows < self.fewest:
            return None
        inputs = sums[: len(self.monomials[0])]
        if any(exact.special(total) is not None for total in inputs):
            return math.nan
        units = [exact.unit(total) for total in inputs]
        return self.value(rows, [total >> exact.MARK_BITS for total in sums], units) + 0.0

    def value(self, n: int, sums: list[int], units: list[int]) -> float:
        """The answer of ``n`` rows; a sum counts in the units of its inputs, multiplied."""
        raise NotImplementedError


def totals(monomials: tuple[Monomial, ...], values: tuple[Any, ...]) -> list[int]:
    """The exact total of every monomial of one row; odd values are marked in their own."""
    wholes, marks = [], []
    for value in values:
        number = exact.as_number(value)
        if isinstance(number, float):
            total = exact.of_float(number)
        elif isinstance(number, Decimal):
            total = exact.of_decimal(number)
        else:
            total = exact.of_int(number)
        wholes.append(total >> exact.MARK_BITS)
        marks.append(total & exact.MARK_MASK)
    out = []
    for place, monomial in enumerate(monomials):
        product = 1
        for whole, power in zip(wholes, monomial, strict=True):
            if power:
                product *= whole**power
        mark = marks[place] if place < len(marks) else 0
        out.append((product << exact.MARK_BITS) + mark)
    return out


def signed_root(numerator: int, square: int, denominator: int) -> float:
    """±√(square / denominator), with the sign of the numerator."""
    root = exact.square_root(square, denominator)
    return -root if numerator < 0 else root
