"""The keyed path: rows shuffled and sorted by Spark, crossed once, answered in the worker."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DateType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from windrow.rolling import Rolling
from windrow.spark.axis import axis, quoted

_TIMES = (DateType, TimestampType, TimestampNTZType)
Worker = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def shuffled(df: Any, spec: Rolling, schema: StructType, partitions: int | None) -> Any:
    """All rows of a key in one partition."""
    keys = [key_expression(schema, name) for name in spec.key]
    if not keys:
        return df.repartition(1)
    if partitions is None:
        return df.repartition(*keys)
    return df.repartition(partitions, *keys)


def sorted_by_key(
    df: Any, spec: Rolling, schema: StructType, partitions: int | None, within: list[Any]
) -> Any:
    """All rows of a key in one partition, sorted by key and then as said."""
    keys = [key_expression(schema, name) for name in spec.key]
    return shuffled(df, spec, schema, partitions).sortWithinPartitions(*keys, *within)


def order(spec: Rolling, schema: StructType) -> list[Any]:
    """Time and tie, as columns to sort by; a missing tie comes last, as it does on columns."""
    time = [F.col(quoted(spec.time))] if spec.time is not None else []
    return time + [key_expression(schema, name).asc_nulls_last() for name in spec.tie]


def key_expression(schema: StructType, name: str) -> Any:
    """A column as windrow compares it: -0.0 is 0.0, and texts by their bytes in any collation."""
    column, kind = F.col(quoted(name)), schema[name].dataType
    if isinstance(kind, FloatType | DoubleType):
        return column + F.lit(0.0).cast(kind)
    if isinstance(kind, StringType) and kind.collation != StringType().collation:
        return F.collate(column, StringType().collation)
    return column


def or_raise(column: Any, field: StructField, message: str) -> Any:
    """The column, or an error where it is missing."""
    if not field.nullable:
        return column
    return F.coalesce(column, F.raise_error(F.lit(message)).cast(field.dataType))


def comparable(schema: StructType, name: str) -> Any:
    """A key as a value that comes back from Python as it was: times as integers.

    Python's times depend on its zone, and Spark's literals of them on the session's.
    """
    if isinstance(schema[name].dataType, _TIMES):
        return axis(schema, name, None)
    return key_expression(schema, name)


def shown(schema: StructType, name: str, value: Any) -> str:
    """A comparable key as a person reads it: times as times again, moments in UTC."""
    kind = schema[name].dataType
    if value is None or not isinstance(kind, _TIMES):
        return repr(value)
    unit = "D" if isinstance(kind, DateType) else "us"
    zone = "Z" if isinstance(kind, TimestampType) else ""
    return f"{np.array(value, f'datetime64[{unit}]')}{zone}"


def keyed_worker(spec: Rolling, kinds: dict[str, pa.DataType], by_number: bool) -> Worker:
    """What runs in Python, once per partition."""

    def windrow_keyed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.spark.worker import answer_sorted

        yield from answer_sorted(spec, batches, kinds, by_number)

    return named(windrow_keyed, spec)


def crossed(df: Any, worker: Worker, names: list[str], out: StructType | str) -> Any:
    """The table through Python; PySpark cannot take columns there whose names mean more."""
    if not any("." in name or "`" in name or name == "*" for name in names):
        return df.mapInArrow(worker, out)

    def renamed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from worker(batch.rename_columns(names) for batch in batches)

    renamed.__name__ = worker.__name__
    return df.toDF(*[f"c{i}" for i in range(len(names))]).mapInArrow(renamed, out)


def named(worker: Worker, spec: Rolling) -> Worker:
    """The worker under a name that says what it answers, as Spark's plans and pages show it."""
    names = [name for name, _, _ in spec.outputs]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    worker.__name__ = f"{worker.__name__}: {', '.join(names[:3])}{more}"
    return worker
