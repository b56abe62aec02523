"""Which columns come out, of which types: known before any job, from a table without rows."""

import datetime
import decimal
import re
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from windrow.aggregates import Aggregate, Count, MaxCount, MinCount
from windrow.columns import engine
from windrow.errors import BadSpecification
from windrow.rolling import Rolling, window_columns

RESERVED = "__windrow_"


_SQL_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


def written(text: str) -> StructType:
    """A schema from its text, ``"user string, amount decimal(10,2)"``, without asking Spark.

    ``StructType.fromDDL`` asks Spark, which pipelines forbid while a query is defined.
    """
    schema = StructType()
    for part in re.split(r",(?![^(]*\))", text):
        name, _, kind = part.strip().partition(" ")
        kind = kind.strip().lower().replace(" ", "")
        try:
            schema = schema.add(name.strip("`"), _SQL_NAMES.get(kind, kind))
        except Exception as error:
            raise BadSpecification(
                f"schema=: {part.strip()!r} is not a name and a plain type; for types within types "
                "give a StructType"
            ) from error
    return schema


def used_columns(spec: Rolling) -> list[str]:
    """The columns that the specification reads, each once."""
    names = [*spec.key, *([spec.time] if spec.time else []), *spec.tie]
    names += [column for aggregate in spec.aggregates for column in aggregate.columns]
    names += [column for window in spec.windows.values() for column in window_columns(window)]
    return list(dict.fromkeys(names))


def checked(spec: Rolling, schema: StructType) -> None:
    """Refuse a table that does not fit the specification, before anything runs."""
    names = schema.names
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            raise BadSpecification(
                f"the table has two columns called {name!r} (Spark does not tell capitals apart): "
                "rename one"
            )
        if name.startswith(RESERVED):
            raise BadSpecification(
                f"column {name!r}: names that begin with {RESERVED} are windrow's"
            )
    spec.check_columns(names)
    for name, aggregate, _ in spec.outputs:
        if name.lower() in folded and spec.answers_rows:
            raise BadSpecification(
                f"the table has a column {name!r} already, which {aggregate!r} would hide: "
                "rename it with .alias(...)"
            )


def output_schema(spec: Rolling, schema: StructType) -> StructType:
    """The input's columns, or key and tick, and one column for each answer."""
    checked(spec, schema)
    names = used_columns(spec)
    empty = _empty_table(schema, names)
    answers = engine.run(spec, empty)
    fields = [] if spec.every is not None else list(schema.fields)
    aggregates = {name: aggregate for name, aggregate, _ in spec.outputs}
    for name, array in answers.items():
        if name not in aggregates:  # key and tick
            field = schema[name]
            tick = name == spec.time
            kind = from_arrow_type(array.type) if tick else field.dataType
            fields.append(StructField(name, kind, not tick and field.nullable))
            continue
        kind = array.type
        if pa.types.is_null(kind):
            kind = _by_example(aggregates[name], empty.schema)
        nullable = _nullable(spec, aggregates[name])
        fields.append(StructField(name, from_arrow_type(kind), nullable, spec.metadata(name)))
    return StructType(fields)


def _nullable(spec: Rolling, aggregate: Aggregate) -> bool:
    return spec.min_rows > 0 or type(aggregate) not in (Count, MaxCount, MinCount)


def _empty_table(schema: StructType, names: list[str]) -> pa.Table:
    try:
        arrow = to_arrow_schema(StructType([schema[name] for name in names]), timezone="UTC")
    except Exception as error:
        raise BadSpecification(f"a column has a type that Arrow cannot hold: {error}") from error
    return arrow.empty_table()


_EXAMPLES: dict[str, Any] = {
    "string": "a",
    "large_string": "a",
    "binary": b"a",
    "bool": True,
    "float": 1.0,
    "double": 1.0,
    "date32[day]": datetime.date(2000, 1, 1),
}


def _by_example(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    """The type of an interpreted aggregate's answers, from what it makes of one ordinary row."""
    row = []
    for column in aggregate.columns:
        kind = schema.field(column).type
        value: Any = _EXAMPLES.get(str(kind), 1)
        if pa.types.is_decimal(kind):
            value = decimal.Decimal(1)
        elif pa.types.is_timestamp(kind):
            value = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC if kind.tz else None)
        row.append(value)
    try:
        partial = aggregate.lifter()(tuple(row) if len(row) > 1 else row[0] if row else 0)
        kind = pa.array([aggregate.answer(partial)]).type
    except Exception as error:
        raise BadSpecification(
            f"{aggregate!r}: the type of its answers is not known, and it could not be tried on "
            f"{row!r}: {error}"
        ) from error
    if pa.types.is_null(kind):
        raise BadSpecification(
            f"{aggregate!r}: the type of its answers is not known: it makes None of {row!r}"
        )
    return kind
