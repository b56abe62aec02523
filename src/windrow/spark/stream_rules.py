"""Rules on Spark streams: events for keys where rules start and stop, with rules that may change.

Rules come as a stream of their own, so that which rules are in force in which batch is part of
Spark's checkpoint: a batch that is done again is done with the same rules.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.columns.rule_set import RuleSet, Watch, watched
from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling, is_spark
from windrow.rules.texts import written
from windrow.spark.axis import clock
from windrow.spark.envelopes import BUCKET, PAYLOAD, bucket_ids, sealed, settled
from windrow.spark.rule_worker import MARK, RuleProcessor
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
    watch = _watch(spec, schema, options, longest, tie, key, source, version)
    data = enveloped(watermarked(stream, spec, schema, options), spec, schema, options)
    texts = _texts(stream.sparkSession, source)
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


def _watch(
    spec: Rolling,
    schema: T.StructType,
    options: StreamOptions,
    longest: Any,
    tie: Any,
    key: Any,
    source: Any,
    version: str,
) -> Watch:
    plain = T.StructType([f for f in schema.fields if f.name != options.flush])
    arrow = to_arrow_schema(plain, timezone="UTC")
    text = None
    if isinstance(source, list | tuple):
        text = written(source)
    count = options.buckets if spec.key else 1
    ticks = clock(schema, str(spec.time))
    watch = watched(
        arrow, key, str(spec.time), tie, longest, ticks, count, text=text, version=version
    )
    if text is not None:
        for rule in RuleSet(watch, text).rejected:
            raise BadSpecification(f"rule {rule.name!r}: {rule.error}")
    return watch


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


def _texts(session: Any, source: Any) -> Any:
    """Texts of rules as they come, with what orders them; None where they never change."""
    if isinstance(source, list | tuple):
        return None
    if isinstance(source, str | Path):
        files = session.readStream.text(str(source), wholetext=True)
        return files.select(
            F.unix_micros("_metadata.file_modification_time").alias("place"),
            F.col("_metadata.file_name").alias("version"),
            F.col("value").alias("text"),
        )
    if is_spark(source) and source.isStreaming and {"version", "text"} <= set(source.columns):
        return source.select(
            F.lit(0).cast("long").alias("place"), F.col("version").cast("string"), "text"
        )
    raise BadSpecification(
        "rules are a list of (name, when) or (name, when, until), a folder of files, or a "
        f"streaming DataFrame with columns version and text; not {source!r}"
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
