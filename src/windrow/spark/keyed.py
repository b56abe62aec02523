"""The keyed path: rows shuffled and sorted by Spark, crossed once, answered in the worker."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructType

from windrow.rolling import Rolling

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


def order(spec: Rolling) -> list[Any]:
    """Time and tie, as columns to sort by; a missing tie comes last, as it does on columns."""
    time = [F.col(quoted(spec.time))] if spec.time is not None else []
    return time + [F.col(quoted(name)).asc_nulls_last() for name in spec.tie]


def key_expression(schema: StructType, name: str) -> Any:
    """A key as Spark should compare it: -0.0 is 0.0."""
    column = F.col(quoted(name))
    if isinstance(schema[name].dataType, FloatType | DoubleType):
        return column + F.lit(0.0).cast(schema[name].dataType)
    return column


def quoted(name: str) -> str:
    """A column's name that Spark takes as it is, dots included."""
    return "`" + name.replace("`", "``") + "`"


def keyed_worker(spec: Rolling, kinds: dict[str, pa.DataType], by_number: bool) -> Worker:
    """What runs in Python, once per partition."""

    def windrow_keyed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.spark.worker import answer_sorted

        yield from answer_sorted(spec, batches, kinds, by_number)

    return named(windrow_keyed, spec)


def crossed(df: Any, worker: Worker, names: list[str], out: StructType | str) -> Any:
    """The table through Python; PySpark cannot take columns there whose names have dots in them."""
    if not any("." in name or "`" in name for name in names):
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
