"""Values as they come: their canonical form, and what can be combined with what."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from windrow.errors import BadValue

_NAN = math.nan


def canonical(value: Any) -> Any:
    """A value as it is kept: plain Python numbers, one NaN, no negative zero."""
    if type(value) is not float:
        if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
            value = float(value) if isinstance(value, np.floating) else value.item()
        if isinstance(value, Decimal):
            if not value.is_finite():
                raise BadValue(f"decimal {value} has no order; use floats for NaN and infinities")
            return value.copy_abs() if value.is_zero() else value
        if not isinstance(value, float):
            return value
    return value + 0.0 if value == value else _NAN


class Family:
    """What kind of values a window has taken; one of another kind is refused when it comes."""

    __slots__ = ("example", "fast", "known", "parts")

    def __init__(self) -> None:
        self.parts: list[Family] = []
        self.forget()

    def forget(self) -> None:
        """Back to knowing nothing."""
        self.known: Any = None
        self.example: Any = None
        self.fast: type | None = None  # numbers of this type need no further look
        for part in self.parts:
            part.forget()

    def undecided(self) -> "list[Family]":
        """Of itself and its parts, those that know nothing yet."""
        if self.parts:
            return [family for part in self.parts for family in part.undecided()]
        return [self] if self.known is None else []

    def examples(self) -> tuple[Any, ...]:
        """A value of the kind known, or nothing; for several parts, one such tuple each."""
        if self.parts:
            return tuple(part.examples() for part in self.parts)
        if self.known is None:
            return ()
        value = self.example
        several = type(value) is tuple
        return (tuple(map(canonical, value)) if several else canonical(value),)


def order_family(value: Any) -> Any:
    """What a value can be ordered with: all numbers together, everything else with its own type."""
    value = canonical(value)
    if isinstance(value, (bool, int, float, Decimal)):
        return "number"
    try:
        ordered = isinstance(value < value, (bool, np.bool_))
    except TypeError:
        ordered = False
    if not ordered:
        raise BadValue(
            f"{value!r} ({type(value).__name__}) cannot be ordered: give numbers, texts, times, or "
            "whatever else < compares"
        )
    awareness = getattr(value, "utcoffset", None)
    kinds = (kind for kind in (datetime, timedelta) if isinstance(value, kind))  # or pandas' own
    return (next(kinds, type(value)), awareness is not None and awareness() is not None)


def listed(values: Iterable[Any]) -> list[Any]:
    """A batch's values as Python has them: an Arrow array's items are objects of its own."""
    convert = getattr(values, "to_pylist", None)
    if convert is None:
        return list(values)
    try:
        return list(convert())
    except ValueError as error:  # where there is no pandas, which has objects for them
        raise BadValue(
            "there are times that are finer than microseconds, which datetimes are kept in: cast "
            "them to microseconds, or give numpy.datetime64 in ns"
        ) from error


def rows_of(batch: Any) -> list[Any]:
    """A batch's rows: they are listed, or in a mapping from columns to values, or in a table."""
    if isinstance(batch, Mapping):
        names = list(batch)
        columns = zip(*map(listed, batch.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in columns]
    if hasattr(batch, "columns") and not hasattr(batch, "to_pylist"):
        raise BadValue(
            f"a {type(batch).__name__} is not a batch of rows: give rows, a mapping from columns "
            "to values, or a table of pyarrow, pyarrow.table(frame)"
        )
    return listed(batch)


def mapping_value(row: Any, column: str) -> Any:
    """A row's value in a column, or an error that lists the columns there are."""
    if not isinstance(row, Mapping):
        raise BadValue(f"expected a mapping with a value for {column!r}, got {row!r}")
    if column not in row:
        raise BadValue(f"the row has no {column!r}; it has {', '.join(map(repr, row))}")
    return row[column]
