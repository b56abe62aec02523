"""Messages of a topic as rows: the good ones, and those that cannot be read, with the reason."""

import json
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.errors import BadSpecification
from windrow.spark.axis import quoted

_PARSED = "__windrow_parsed"
_CORRUPT = "__windrow_corrupt"
REASON = "reason"
FORMATS = ("json", "avro")


def parse(
    df: Any,
    schema: Any,
    format: str = "json",
    *,
    value: str = "value",
    keep: tuple[str, ...] | list[str] = (),
) -> tuple[Any, Any]:
    """Messages as (good, bad): rows with the schema's columns, and messages with a ``reason``.

    ``schema``: for JSON a ``StructType`` or DDL, for Avro the writer's schema as JSON. Columns
    that are ``NOT NULL`` must be there. ``value`` is the column with the messages; ``keep`` names
    columns that good rows keep beside their own, such as Kafka's ``partition`` and ``offset``. Bad
    rows have all columns of ``df`` as they were, for another topic to take.

    One bad message would stop a query at every restart; so it is told apart, never guessed at.
    """
    if format not in FORMATS:
        raise BadSpecification(f"format= is one of {', '.join(FORMATS)}, not {format!r}")
    for name in (value, *keep):
        if name not in df.columns:
            raise BadSpecification(f"no column {name!r}: there are {', '.join(df.columns)}")
    message = F.col(quoted(value))
    read = _json if format == "json" else _avro
    names, required, parsed, reason = read(schema, message)
    taken = [name for name in names if name in keep]
    if taken:
        raise BadSpecification(
            f"keep={taken[0]!r}: the messages have such a column too. Rename it before"
        )
    # as a generator: Spark would push the filters below a plain column, and parse for each of them
    rows = df.withColumn(_PARSED, F.explode(F.array(parsed)))
    missing = F.lit(None).cast("string")
    for name in reversed(required):
        text = F.lit(f"{name} is missing")
        missing = F.when(F.col(_field(name)).isNull(), text).otherwise(missing)
    why = F.when(message.isNull(), F.lit("no value")).otherwise(F.coalesce(reason, missing))
    judged = rows.withColumn(REASON, why)
    good = judged.where(F.col(REASON).isNull()).select(
        *[F.col(_field(name)).alias(name) for name in names], *map(quoted, keep)
    )
    bad = judged.where(F.col(REASON).isNotNull()).select(*map(quoted, df.columns), REASON)
    return good, bad


def _field(name: str) -> str:
    return f"{_PARSED}.{quoted(name)}"


def _json(schema: Any, message: Any) -> tuple[list[str], list[str], Any, Any]:
    if isinstance(schema, str):
        schema = T.StructType.fromDDL(schema)
    if not isinstance(schema, T.StructType) or not schema.names:
        raise BadSpecification(f"schema= is a StructType or DDL for JSON, not {schema!r}")
    loose = [T.StructField(f.name, f.dataType, True, f.metadata) for f in schema.fields]
    whole = T.StructType([*loose, T.StructField(_CORRUPT, T.StringType())])
    text = message.cast("string")
    parsed = F.from_json(text, whole, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})
    # what is there and was not read: only asked where something was not
    unread = F.lit(None).cast("string")
    for field in reversed(schema.fields):
        there = F.get_json_object(text, f"$['{field.name}']").isNotNull()
        said = F.lit(f"{field.name} is not a {field.dataType.simpleString()}")
        unread = F.when(there & F.col(_field(field.name)).isNull(), said).otherwise(unread)
    corrupt = F.col(f"{_PARSED}.{_CORRUPT}").isNotNull()
    nothing = F.col(_PARSED).isNull()
    reason = F.when(corrupt | nothing, F.coalesce(unread, F.lit("not a JSON object")))
    return schema.names, [f.name for f in schema.fields if not f.nullable], parsed, reason


def _avro(schema: Any, message: Any) -> tuple[list[str], list[str], Any, Any]:
    from pyspark.sql.avro.functions import from_avro

    try:
        names = [field["name"] for field in json.loads(schema)["fields"]]
    except (TypeError, ValueError, KeyError) as error:
        raise BadSpecification(
            f"schema= is the JSON of an Avro record, not {schema!r}: {error}"
        ) from error
    parsed = from_avro(message, schema, {"mode": "PERMISSIVE"})
    nothing = F.lit(True)
    for name in names:
        nothing = nothing & F.col(_field(name)).isNull()
    reason = F.when(F.col(_PARSED).isNull() | nothing, F.lit("not Avro of the schema"))
    return names, [], parsed, reason
