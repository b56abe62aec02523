"""Built-in aggregates that are compiled the way users' are: from plain functions of numbers.

A *twin* has the same partial as its aggregate, and functions that numba can compile: what comes out
of a column needs no check for what it is.
"""

# mypy: disable-error-code="no-untyped-def, misc, override, index, arg-type, operator"
# mypy: disable-error-code="return-value, comparison-overlap"
# ruff: noqa: N805, D102

import math
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import (
    Aggregate,
    BitAnd,
    BitOr,
    BitXor,
    LongestRun,
    LongestRunTime,
    Product,
    canonical,
)
from windrow.errors import BadValue


class FloatProduct(Product):
    """Of floats."""

    def lift(x):
        if x == 0.0 or x - x != 0.0:
            return (x + 0.0 if x == x else math.nan, 0.0, 0, 1)
        mantissa, exponent = math.frexp(x)
        return (mantissa, 0.0, exponent + 0, 1)

    def lower(p):
        return math.ldexp(p[0], min(max(p[2], -3000), 3000)) + 0.0


class IntegerProduct(Product):
    """Of integers; the answer as a float, exact below 2**53."""

    def lift(x):
        high = float(x)
        if high == 0.0:
            return (0.0, 0.0, 0, 0)
        near = high if high < 9.2e18 else high - 2048.0  # 2**63 is no int64
        low = float(x - np.int64(near)) - (high - near)
        mantissa, exponent = math.frexp(high)
        return (mantissa, math.ldexp(low, -exponent), exponent + 0, 0)

    def lower(p):
        return math.ldexp(p[0], min(max(p[2], -3000), 3000))


class WholeProduct(IntegerProduct):
    """The same; the answer as 64 bits, the lowest ones where it has more."""

    def lower(p):
        if p[2] > 64:
            return np.int64(0)
        high, low = math.ldexp(p[0], p[2]), math.ldexp(p[1], p[2])
        upper = math.floor(high / 4294967296.0)
        rest = high - upper * 4294967296.0
        return (np.int64(upper) << 32) + np.int64(rest) + np.int64(low)


class PlainRun(LongestRun):
    """Of a column's numbers."""

    def lift(x):
        value = float(x) + 0.0
        return (1, value, value, 1, 1, 1, 0)


def _bits(kind: type[Aggregate]) -> Aggregate:
    return type(f"Plain{kind.__name__}", (kind,), {"lift": staticmethod(canonical)})()  # type: ignore[no-any-return]


TWINS: dict[tuple[type[Aggregate], str], Aggregate] = {
    (Product, "f"): FloatProduct(),
    (Product, "i"): IntegerProduct(),
    **{(kind, "i"): _bits(kind) for kind in (BitAnd, BitOr, BitXor)},
    **dict.fromkeys([(LongestRun, "f"), (LongestRun, "i")], PlainRun()),
}
WHOLE = WholeProduct()
COMPILED = frozenset({Product, BitAnd, BitOr, BitXor})
"""Those whose partials streams keep as columns; of others they keep bytes, which Python reads."""


def twin(aggregate: Aggregate, kinds: tuple[np.dtype[Any], ...]) -> Aggregate:
    """What is compiled for an aggregate over columns of some kinds: its twin, if it has one."""
    return TWINS.get((type(aggregate), kinds[0].kind if kinds else "i"), aggregate)


def check_types(aggregate: Aggregate, columns: list[Any]) -> None:
    """Refuse columns of a type that Python would refuse row by row."""
    for column, wanted in zip(columns, aggregate.input_kinds, strict=False):
        kind = column.type
        if wanted == "integer" and not pa.types.is_integer(kind):
            raise BadValue(
                f"{aggregate!r}: column {column.name!r} has type {kind}: only integers have bits. "
                "Cast it first"
            )
        if type(aggregate) is Product and not (column.is_number or pa.types.is_decimal(kind)):
            raise BadValue(
                f"{aggregate!r}: column {column.name!r} has type {kind}, which cannot be "
                "multiplied. Cast it to a number"
            )
        number = column.is_number or pa.types.is_decimal(kind)
        if type(aggregate) in (LongestRun, LongestRunTime) and wanted == "number" and not number:
            raise BadValue(
                f"{aggregate!r}: column {column.name!r} has type {kind}, which is no number. "
                "Cast it first"
            )
