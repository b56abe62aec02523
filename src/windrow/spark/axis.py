"""Time as Spark counts it: the integers that the workers see, as an expression."""

from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.errors import BadSpecification
from windrow.times import NANOSECONDS, Clock

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def quoted(name: str) -> str:
    """A column's name that Spark takes as it is, dots included."""
    return "`" + name.replace("`", "``") + "`"


def axis(schema: T.StructType, name: str, unit: str | None) -> Any:
    """A time column as int64: microseconds, days, or the column's own integers."""
    column, kind = F.col(quoted(name)), schema[name].dataType
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.TimestampNTZType):
        return micros_without_zone(column)
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("long")
    if isinstance(kind, _INTEGERS):
        return column.cast("long")
    if isinstance(kind, T.FloatType | T.DoubleType) and unit is not None:
        return _nanoseconds(column.cast("double"), NANOSECONDS[unit])
    raise BadSpecification(
        f"column {name!r} has type {kind.simpleString()}: rows without a key, and hot keys, are "
        "cut along a time, a date or an integer"
    )


def _nanoseconds(column: Any, factor: int) -> Any:
    """As the workers count them (``columns.prepare``): whole counts and the rest apart."""
    whole = F.when(column < 0, F.ceil(column)).otherwise(F.floor(column))
    rest = F.floor((column - whole) * F.lit(float(factor)) + F.lit(0.5))
    held = F.abs(column) * F.lit(float(factor)) < F.lit(2.0**63)
    return F.when(held, whole.cast("long") * F.lit(factor) + rest)


def micros_without_zone(column: Any) -> Any:
    """A time without a zone as microseconds after 1970.

    ``timestamp_diff`` would read it in the session's zone, which moves what summer time leaves out.
    """
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    seconds = (column - epoch).cast("interval second").cast("decimal(20,6)")
    return (seconds * F.lit(1_000_000)).cast("long")


def can_be_cut(schema: T.StructType, name: str, unit: str | None) -> bool:
    """Whether a column can be cut into stretches; floats are times if they have a unit."""
    kind = schema[name].dataType
    if isinstance(kind, T.FloatType | T.DoubleType):
        return unit is not None
    return isinstance(kind, (*_INTEGERS, T.TimestampType, T.TimestampNTZType, T.DateType))


def clock(schema: T.StructType, name: str) -> Clock:
    """How that axis counts."""
    kind = schema[name].dataType
    unit = (
        "us"
        if isinstance(kind, T.TimestampType | T.TimestampNTZType)
        else "d"
        if isinstance(kind, T.DateType)
        else "ns"
        if isinstance(kind, T.FloatType | T.DoubleType)
        else None
    )
    return Clock(kind.simpleString(), unit, _no, _no)


def _no(_: Any) -> Any:
    raise AssertionError("tables convert whole columns")


def bucket(axis: Any, borders: list[int], first: int = 0) -> Any:
    """How many of the borders are at or before the axis, less one, by bisection."""
    if not borders:
        return F.lit(first - 1)
    middle = len(borders) // 2
    before = bucket(axis, borders[:middle], first)
    after = bucket(axis, borders[middle + 1 :], first + middle + 1)
    return F.when(axis < F.lit(borders[middle]), before).otherwise(after)
