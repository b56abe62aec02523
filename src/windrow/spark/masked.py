"""Columns for aggregates that count only some rows, made by Spark before anything else."""

from functools import reduce
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    FractionalType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from windrow.aggregates.where import Masked, Where
from windrow.columns import masked as in_columns
from windrow.rolling import Rolling
from windrow.spark.axis import quoted
from windrow.spark.keyed import key_expression
from windrow.spark.schema import checked, empty_table, schema_of, told_apart, used_columns
from windrow.spark.stream_history import History


def plain(
    spec: Rolling, df: Any, given: Any = None, labels: list[str] | None = None
) -> tuple[Rolling, Any, StructType | None, list[str]]:
    """A specification whose aggregates count all rows, and the table with the columns it needs.

    Also the table's schema where one was given, and the names of the new columns. ``labels``: as in
    ``schema.checked``.
    """
    schema = schema_of(df, given)
    checked(spec, schema, labels)
    in_columns.plain(spec, empty_table(schema, used_columns(spec)))  # refuses what cannot be
    spec, columns = spec.plain()
    told_apart([*schema.names, *(column.name for column in columns)], "the table")
    if given is not None:
        df = df.to(schema)
    df = df.withColumns({column.name: _made(schema, column) for column in columns})
    fields = [StructField(column.name, _kind(schema, column)) for column in columns]
    wider = None if given is None else StructType([*schema.fields, *fields])
    return spec, df, wider, [column.name for column in columns]


def with_history(history: Any, spec: Rolling) -> Any:
    """A stream's history with the same columns; it may have answers, since no row comes out."""
    if not isinstance(history, History) or history.contract is not None:  # which has kept them
        return history
    history.refuse_without(used_columns(spec))
    return History(plain(spec, history.rows, labels=[])[1], history.until)


def _kind(schema: StructType, masked: Masked) -> Any:
    return BooleanType() if masked.column is None else schema[masked.column].dataType


def _made(schema: StructType, masked: Masked) -> Any:
    counts = reduce(lambda a, b: a & b, [_holds(schema, where) for where in masked.where])
    value = F.lit(True) if masked.column is None else F.col(quoted(masked.column))
    return F.when(counts, value)


def _holds(schema: StructType, where: Where) -> Any:
    column, kind = key_expression(schema, where.column), schema[where.column].dataType
    if isinstance(kind, NullType):
        return F.lit(False)
    if not where.values:
        return column
    if isinstance(kind, StringType):
        return column.isin(*where.values)
    values: list[Any] = list(where.values)
    if isinstance(kind, FractionalType):  # integers may be beyond 64 bits
        values = list(map(str if isinstance(kind, DecimalType) else float, values))
    return column.isin(*[F.lit(value).cast(kind) for value in values])
