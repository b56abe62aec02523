"""Point-in-time features on Spark: events and labels in one shuffle, neither copied nor joined."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.columns.as_of import (
    IS_LABEL,
    check_labels,
    label_names,
    missing_label_times,
    refuse,
)
from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling
from windrow.spark import masked, tables
from windrow.spark.axis import quoted
from windrow.spark.keyed import crossed, named, or_raise, order, sorted_by_key
from windrow.spark.schema import can_cross, output_schema, told_apart, used_columns

LABEL = "__windrow_label"


def apply(
    spec: Rolling, events: Any, labels: Any, on: Any, strict: bool, partitions: int | None = None
) -> Any:
    """The labels with the answers at their time."""
    refuse(spec)
    if events.isStreaming or labels.isStreaming:
        raise Refused(
            "as_of() is for tables, which have all events: a stream's rows have the answers at "
            "their own time, features(stream); labels that come as a stream are tables in "
            "foreachBatch"
        )
    tables.refuse_without_tie(spec)
    tables.Options(partitions=partitions)  # refuses a number that is none
    if spec.masked:
        spec, events, *_ = masked.plain(spec, events, labels=labels.columns)
    spec, schema = tables.ready(spec, events)
    names = label_names(spec, on)
    others = labels.schema
    told_apart(others.names, "the table of labels")
    check_labels(spec, names, others.names)
    answered = output_schema(spec, schema, others.names)
    can_cross(others)
    for ours, theirs in names.items():
        if schema[ours].dataType != others[theirs].dataType:
            raise BadSpecification(
                f"the labels' {theirs!r} has type {others[theirs].dataType.simpleString()}, the "
                f"events' {ours!r} has {schema[ours].dataType.simpleString()}: cast one of them"
            )
    used = used_columns(spec)
    label = F.struct(*[F.col(quoted(name)) for name in others.names])
    nothing = F.lit(None).cast(StructType(others.fields))
    both = events.select(
        *[F.col(quoted(name)) for name in used], nothing.alias(LABEL), F.lit(False).alias(IS_LABEL)
    ).unionAll(
        labels.select(
            *[
                _of_label(spec, others, name, names[name]).alias(name)
                if name in names
                else F.lit(None).cast(schema[name].dataType).alias(name)
                for name in used
            ],
            label.alias(LABEL),
            F.lit(True).alias(IS_LABEL),
        )
    )
    time, *tie = order(spec, schema)
    both = sorted_by_key(both, spec, schema, partitions, [time, F.col(IS_LABEL), *tie])
    out = StructType([*others.fields, *(answered[name] for name, _, _ in spec.outputs)])
    worker = as_of_worker(spec, strict, tables.kinds_of(spec, answered))
    return crossed(both, worker, [*used, LABEL, IS_LABEL], out)


def _of_label(spec: Rolling, labels: StructType, ours: str, theirs: str) -> Any:
    """A label's key, or its time, which it must have."""
    column = F.col(quoted(theirs))
    if ours != spec.time:
        return column
    return or_raise(column, labels[theirs], missing_label_times(theirs, "some"))


def as_of_worker(spec: Rolling, strict: bool, kinds: dict[str, pa.DataType]) -> Any:
    """What runs in Python, once per partition."""

    def windrow_as_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.spark.worker import answer_labels

        yield from answer_labels(spec, batches, strict, kinds)

    return named(windrow_as_of, spec)
