"""Which columns come out, of which types: known before any job, from a table without rows."""

import re
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from windrow.aggregates import Aggregate, Count, MaxCount, MinCount
from windrow.columns import engine
from windrow.columns.answer_types import type_by_example
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


def schema_of(df: Any, given: Any = None) -> StructType:
    """A table's columns: as given, as a StructType or its text, or as Spark finds them."""
    schema = df.schema if given is None else written(given) if isinstance(given, str) else given
    if not isinstance(schema, StructType):
        raise BadSpecification(f"schema= is a StructType or its text, not {schema!r}")
    return schema


def used_columns(spec: Rolling) -> list[str]:
    """The columns that the specification names, each once."""
    return list(dict.fromkeys([*spec.key, *read_columns(spec)]))


def read_columns(spec: Rolling) -> list[str]:
    """The columns that windows read, each once; a key's only where an aggregate does."""
    names = [*([spec.time] if spec.time else []), *spec.tie]
    names += [column for aggregate in spec.aggregates for column in aggregate.reads]
    names += [column for window in spec.windows.values() for column in window_columns(window)]
    return list(dict.fromkeys(names))


def checked(spec: Rolling, schema: StructType, labels: list[str] | None) -> None:
    """Refuse a table that does not fit the specification, before anything runs.

    ``labels``: the columns of labels, which answers then stand beside.
    """
    told_apart(schema.names, "the table")
    names, who = schema.names, "the table"
    beside = names if spec.answers_rows else []
    if labels is not None:  # events do not come out, whatever their columns are called
        answers = {name for name, _, _ in spec.outputs}
        names = [name for name in names if name not in answers]
        beside, who = labels, "the table of labels"
    spec.check_columns(names)
    folded = [name.lower() for name in beside]
    for name, aggregate, _ in spec.outputs:
        if name.lower() in folded:
            raise BadSpecification(
                f"{who} has a column {name!r} already, which {aggregate!r} would hide: "
                "rename it with .alias(...)"
            )
    both = [name.lower() for name, _, _ in spec.outputs]
    for name, _, _ in spec.outputs:
        if both.count(name.lower()) > 1:
            raise BadSpecification(
                f"two answers are called {name!r}, but for capitals: rename one with .alias(...)"
            )


def told_apart(names: list[str], who: str) -> None:
    """Refuse names of columns that Spark, or windrow, would take for others."""
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            raise BadSpecification(
                f"{who} has two columns called {name!r} (capitals are not told apart, whatever "
                "spark.sql.caseSensitive says): rename one"
            )
        if name.startswith(RESERVED):
            raise BadSpecification(
                f"column {name!r}: names that begin with {RESERVED} are windrow's"
            )


def can_cross(schema: StructType) -> None:
    """Refuse columns that cannot go to Python, whether windows read them or not."""
    for field in schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except Exception as error:
            raise BadSpecification(
                f"column {field.name!r} has type {field.dataType.simpleString()}, which Arrow "
                "cannot hold, so that it cannot go to Python and back: drop or cast it first"
            ) from error


def output_schema(spec: Rolling, schema: StructType, labels: list[str] | None = None) -> StructType:
    """The input's columns, or key and tick, and one column for each answer.

    ``labels``: the columns of labels that answers will stand beside; the answers alone.
    """
    checked(spec, schema, labels)
    names = used_columns(spec)
    empty = empty_table(schema, names)
    answers = engine.run(spec, empty)
    alone = spec.every is not None or labels is not None
    fields = [] if alone else list(schema.fields)
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
            inputs = [empty.schema.field(column).type for column in aggregates[name].columns]
            kind = type_by_example(aggregates[name], inputs)
        nullable = _nullable(spec, aggregates[name])
        fields.append(StructField(name, from_arrow_type(kind), nullable, spec.metadata(name)))
    return StructType(fields)


def _nullable(spec: Rolling, aggregate: Aggregate) -> bool:
    return spec.min_rows > 0 or type(aggregate) not in (Count, MaxCount, MinCount)


def empty_table(schema: StructType, names: list[str]) -> pa.Table:
    """Some of a table's columns, without rows."""
    some = StructType([schema[name] for name in names])
    can_cross(some)
    return to_arrow_schema(some, timezone="UTC").empty_table()
