"""Rules on Spark streams: events for keys where rules start and stop, with rules that may change.

Rules come as a stream of their own, so that which rules are in force in which batch is part of
Spark's checkpoint: a batch that is done again is done with the same rules.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.aggregates import as_aggregate
from windrow.columns.rule_set import RuleSet, Watch, watched
from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling, is_spark
from windrow.rules.texts import written
from windrow.slides import as_window
from windrow.spark.axis import clock
from windrow.spark.envelopes import BUCKET, PAYLOAD, bucket_ids, sealed, settled
from windrow.spark.rule_source import registered, serve
from windrow.spark.rule_worker import MARK, RuleProcessor
from windrow.spark.schema import can_cross
from windrow.spark.stream_state import refuse_other_providers
from windrow.spark.streams import (
    SENT,
    StreamOptions,
    before_it,
    enveloped,
    extras_of,
    refuse_other_times,
    refuse_without_watermark,
    taken_in_turns,
    unpacker,
    watermarked,
)
from windrow.spark.tables import ready
from windrow.times import Duration, duration


def apply(
    stream: Any,
    source: Any,
    *,
    key: Any,
    time: str,
    longest: Any,
    lateness: Any = None,
    tie: Any = None,
    version: str = "1",
    buckets: int = 8,
    flush: str | None = None,
    idle_after: Any = None,
    history: Any = None,
    reread: Any = "1s",
    features: Any = None,
) -> Any:
    """See ``windrow.spark.rules``."""
    options = StreamOptions(buckets=buckets, flush=flush, idle_after=idle_after, history=history)
    if not is_spark(stream) or not stream.isStreaming:
        raise Refused("wr.spark.rules() is for streams; wr.Rules watches events in process")
    spec, schema = ready(
        Rolling(
            key=key,
            time=time,
            tie=tie,
            windows={"longest": longest},
            aggregates=[_count()],
            lateness=lateness,
        ),
        stream,
    )
    spec.check_columns(schema.names)
    refuse_other_times(spec, schema)
    refuse_without_watermark(spec, schema, options)
    refuse_other_providers(stream.sparkSession)
    text = written(source) if isinstance(source, list | tuple) else None
    watch = watching(spec, schema, options, longest, features, text=text, version=version)
    for rule in RuleSet(watch, text).rejected if text is not None else ():
        raise BadSpecification(f"rule {rule.name!r}: {rule.error}")
    data = enveloped(watermarked(stream, spec, schema, options), spec, schema, options)
    texts = _texts(stream.sparkSession, source, reread)
    if texts is not None:
        count = options.buckets if spec.key else 1
        data = data.union(texts.mapInArrow(_sender(bucket_ids(count)), SENT))
    processor = RuleProcessor(watch, {}, extras_of(options, watch))
    plain = T.StructType([schema[name] for name in watch.schema.names])
    turns = taken_in_turns(data, processor, options, before_it(watch, plain, options))
    return turns.select("payload").mapInArrow(unpacker(spec), event_schema(spec, schema))


def _count() -> Any:
    from windrow.aggregates import Count

    return Count()


def watching(
    spec: Rolling,
    schema: T.StructType,
    options: StreamOptions,
    longest: Any,
    features: Any = None,
    **given: Any,
) -> Watch:
    """The stream that rules are about; ``features``: what they may call by a name."""
    plain = T.StructType([f for f in schema.fields if f.name != options.flush])
    can_cross(plain)
    arrow = to_arrow_schema(plain, timezone="UTC")
    ticks = clock(schema, str(spec.time))
    tie = "any" if spec.any_tie else list(spec.tie) or None
    named = tuple(
        (name, as_aggregate(aggregate), as_window(window))
        for name, (aggregate, window) in (features or {}).items()
    )
    count = options.buckets if spec.key else 1
    return watched(
        arrow, list(spec.key) or None, str(spec.time), tie, longest, ticks, count,
        named=named, **given,
    )  # fmt: skip


def event_schema(spec: Rolling, schema: T.StructType) -> T.StructType:
    """The columns that come out."""
    loose = [
        T.StructField(name, schema[name].dataType, True) for name in (*spec.key, str(spec.time))
    ]
    values = T.MapType(T.StringType(), T.DoubleType())
    names = {"event", "rule", "values", "version", "message"}
    for field in loose:
        if field.name.lower() in names:
            raise BadSpecification(
                f"events have a column {field.name!r} of their own: rename yours"
            )
    return T.StructType(
        [
            T.StructField("event", T.StringType(), False),
            T.StructField("rule", T.StringType(), False),
            *loose,
            T.StructField("values", values, True),
            T.StructField("version", T.StringType(), False),
            T.StructField("message", T.StringType(), True),
        ]
    )


def _texts(session: Any, source: Any, reread: Any) -> Any:
    """Texts of rules as they come, with what orders them; None where they never change."""
    if isinstance(source, list | tuple):
        return None
    if isinstance(source, str | Path):
        path = str(source).removeprefix("file://")
        if os.path.isfile(path):
            return _own_source(session, file=os.path.abspath(path))
        if path.endswith((".toml", ".json", ".jsonl")):
            raise BadSpecification(f"there is no file {path} where the driver runs")
        files = session.readStream.text(path, wholetext=True)
        return files.select(
            F.unix_micros("_metadata.file_modification_time").alias("place"),
            F.col("_metadata.file_name").alias("version"),
            F.col("value").alias("text"),
        )
    if is_spark(source):
        return _streamed(source)
    if callable(source):
        _check_table(source())
        pause = duration(reread, "reread=")
        if not isinstance(pause, Duration):
            raise BadSpecification(f'reread= is a length of time such as "10s", not {reread!r}')
        seconds = pause.nanoseconds / 1e9
        return _own_source(session, server=serve(source), seconds=seconds)
    raise BadSpecification(
        "rules are a list of (name, when) or (name, when, until), a file, a folder of files, a "
        "function that reads a table, or a streaming DataFrame with columns version and text; "
        f"not {source!r}"
    )


def _own_source(session: Any, **options: Any) -> Any:
    return session.readStream.format(registered(session)).options(**options).load()


def _streamed(source: Any) -> Any:
    if not source.isStreaming:
        raise BadSpecification(
            "a table of rules is read again and again: give a function that reads it, such as "
            'lambda: spark.read.parquet("rules")'
        )
    if not {"version", "text"} <= set(source.columns):
        raise BadSpecification(
            "a stream of rules has columns version and text, each row a whole set of rules; this "
            f"one has {', '.join(source.columns)}"
        )
    return source.select(
        F.lit(0).cast("long").alias("place"), F.col("version").cast("string"), "text"
    )


def _check_table(table: Any) -> None:
    names = list(table.columns) if is_spark(table) and not table.isStreaming else []
    if not {"name", "when"} <= set(names):
        raise BadSpecification(
            "a table of rules is a Spark DataFrame with columns name, when and perhaps until and "
            f"version; the function gave {', '.join(names) or repr(table)}"
        )


def _sender(ids: list[int]) -> Any:
    def windrow_rules(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                table = pa.Table.from_batches([batch]).replace_schema_metadata(MARK)
                payloads = pa.array([sealed(table)] * len(ids), pa.binary())
                yield pa.record_batch([pa.array(ids, pa.int32()), payloads], [BUCKET, PAYLOAD])
        settled()

    return windrow_rules
