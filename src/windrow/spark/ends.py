"""A pipeline's ends on Spark: any source read with the file's types, any sink written."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.errors import WindrowError
from windrow.spark.axis import quoted

Tell = Callable[[dict[str, Any]], None]
_EPOCHS = {
    "timestamp[s]": F.timestamp_seconds,
    "timestamp[ms]": F.timestamp_millis,
    "timestamp[us]": F.timestamp_micros,
}
POLL_SECONDS = 0.25


def written(value: Any) -> str:
    """An option or a setting as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- source --------------------------------------------------------------------------------------


def read(session: SparkSession, pipeline: Any) -> Any:
    """The source as a DataFrame, its columns of the types that the file says."""
    source = pipeline.source
    if source.table is not None:
        reader = session.readStream if pipeline.streaming else session.read
        df = reader.table(source.table)
    elif source.format == "kafka":
        df = _kafka(session, pipeline)
    else:
        df = _files(session, pipeline)
    return _typed(df, pipeline.columns)


def _options(source: Any) -> dict[str, str]:
    usual = {
        "csv": {"header": "true", "mode": "FAILFAST", "escape": '"'},  # quotes are doubled
        "json": {"mode": "FAILFAST"},
    }
    given = {name: written(value) for name, value in source.options.items()}
    return usual.get(source.format, {}) | given


def _files(session: SparkSession, pipeline: Any) -> Any:
    source, options = pipeline.source, _options(pipeline.source)
    paths = list(source.paths)
    batch = session.read.format(source.format).options(**options)
    if not pipeline.streaming:
        if source.format == "csv":
            batch = batch.schema(_csv_schema(session, pipeline, options))
        return batch.load(paths) if paths else batch.load()
    reader = session.readStream.format(source.format).options(**options)
    if source.format in ("csv", "json", "parquet", "orc", "text", "avro"):
        reader = reader.schema(_stream_schema(session, pipeline, options))
    if len(paths) > 1:
        raise WindrowError("a stream has one path: name the folder, or a pattern")
    return reader.load(*paths)


def _stream_schema(session: SparkSession, pipeline: Any, options: dict[str, str]) -> T.StructType:
    """The columns of the files that are there; those that are declared, where there are none."""
    source, paths = pipeline.source, list(pipeline.source.paths)
    slow = ("maxFilesPerTrigger", "maxFileAge", "latestFirst", "cleanSource", "sourceArchiveDir")
    plain = {name: value for name, value in options.items() if name not in slow}
    try:
        if source.format == "csv":
            return _csv_schema(session, pipeline, plain)
        return session.read.format(source.format).options(**plain).load(paths).schema
    except AnalysisException:
        if not pipeline.columns:
            raise WindrowError(
                f"{source.shown}: there are no files yet to see columns in: name all columns and "
                "their types under [columns]"
            ) from None
        return _declared(pipeline.columns)


def _csv_schema(session: SparkSession, pipeline: Any, options: dict[str, str]) -> T.StructType:
    """Declared types where there are, else as Spark finds them: it then reads the files twice."""
    reader = session.read.format("csv").options(**options)
    paths = list(pipeline.source.paths)
    columns = {name: _read_as(kind) for name, kind in pipeline.columns.items()}
    found = reader.load(paths).schema
    if not found.names:
        raise WindrowError(f"{pipeline.source.shown}: there are no columns: is it empty?")
    if not set(found.names) <= set(columns):
        found = reader.option("inferSchema", "true").load(paths).schema
    ready = _declared(columns)
    return T.StructType([ready[f.name] if f.name in columns else f for f in found.fields])


def _read_as(kind: str) -> str:
    return "long" if kind in _EPOCHS else kind


def _declared(columns: dict[str, str]) -> T.StructType:
    schema = T.StructType()
    for name, kind in columns.items():
        schema = schema.add(name, _read_as(kind))
    return schema


def _kafka(session: SparkSession, pipeline: Any) -> Any:
    reader = session.readStream if pipeline.streaming else session.read
    df = reader.format("kafka").options(**_options(pipeline.source)).load()
    if pipeline.source.value is None:
        return df
    # a message that cannot be read would stop a stream at every restart: its fields are null,
    # and the row counts as one without a time
    mode = {"mode": "PERMISSIVE" if pipeline.streaming else "FAILFAST"}
    message = F.from_json(F.col("value").cast("string"), _declared(pipeline.columns), mode)
    return df.select(message.alias("message")).select("message.*")


def _typed(df: Any, columns: dict[str, str]) -> Any:
    schema = df.schema
    made = {}
    for name, kind in columns.items():
        if name not in schema.names:
            raise WindrowError(
                f"columns.{name}: the source has no such column; it has {', '.join(schema.names)}"
            )
        column = F.col(quoted(name))
        if kind in _EPOCHS:
            made[name] = _EPOCHS[kind](column.cast("long"))
        elif (
            schema[name].dataType.simpleString()
            != _declared({name: kind})[name].dataType.simpleString()
        ):
            made[name] = column.cast(kind)
    return df.withColumns(made) if made else df


# --- sink ----------------------------------------------------------------------------------------


def _outgoing(df: Any, pipeline: Any, sink: Any) -> Any:
    if sink.format != "kafka" or sink.value is None:
        return df
    key = F.to_json(F.struct(*[F.col(quoted(name)) for name in pipeline.features.key]))
    message = F.to_json(F.struct("*")).alias("value")
    return df.select(*([key.alias("key")] if pipeline.features.key else []), message)


_COUNTED = ("parquet", "csv", "json", "orc", "text", "avro")
"""Formats whose writers tell what was observed; of others one would wait for ever."""


def write(df: Any, pipeline: Any, sink: Any, tell: Tell) -> int | None:
    """Write a table; how many rows it had, where Spark tells."""
    seen = Observation("windrow_run") if sink.format in _COUNTED else None
    counted = _outgoing(df, pipeline, sink)
    if seen is not None:
        counted = counted.observe(seen, F.count(F.lit(1)).alias("rows"))
    mode = {"error": "errorifexists"}.get(sink.mode, sink.mode)
    writer = counted.write.format(sink.format).mode(mode)
    usual = {"header": "true"} if sink.format == "csv" else {}
    writer = writer.options(**(usual | {k: written(v) for k, v in sink.options.items()}))
    with _tasks(df.sparkSession, tell):
        if sink.table is not None:
            writer.saveAsTable(sink.table)
        elif sink.path is not None:
            writer.save(sink.path)
        else:
            writer.save()
    return None if seen is None else int(seen.get["rows"])


@contextlib.contextmanager
def _tasks(session: Any, tell: Tell) -> Iterator[None]:
    """While a batch runs, tell how many tasks are done; not through Spark Connect."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    tracker = session.sparkContext.statusTracker()
    done = threading.Event()

    def watch() -> None:
        last = (0, 0)
        while not done.wait(POLL_SECONDS):
            with contextlib.suppress(Exception):  # it is only for the eye
                stages = [tracker.getStageInfo(n) for n in tracker.getActiveStageIds()]
                stages = [stage for stage in stages if stage is not None]
                now = (sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))
                if stages and now != last:
                    last = now
                    tell({"event": "tasks", "done": now[0], "tasks": now[1]})

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def can_be_read(sink: Any) -> bool:
    """Whether what was written can be read again."""
    return sink.table is not None or (sink.path is not None and sink.format in _READ_BACK)


_READ_BACK = ("parquet", "csv", "json", "orc", "avro", "delta")


def read_back(session: Any, sink: Any, schema: T.StructType) -> Any:
    """What was written, as a table with the types it was written with."""
    if sink.table is not None:
        return session.table(sink.table)
    usual = {"header": "true"} if sink.format == "csv" else {}
    options = usual | {name: written(value) for name, value in sink.options.items()}
    reader = session.read.format(sink.format).options(**options)
    if sink.format != "delta":  # which has its own; an empty folder of another has none
        reader = reader.schema(schema)
    return reader.load(sink.path)


def per_key(df: Any, key: str, work: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Any:
    """Each key's rows as one Arrow table, and what is made of them."""
    return df.groupBy(F.col(quoted(key))).applyInArrow(work, from_arrow_schema(schema))


def last_time(df: Any, column: str) -> Any:
    """The latest time of all rows."""
    return df.agg(F.max(F.col(quoted(column)))).toArrow().column(0)[0]


def told(df: Any, pipeline: Any) -> Any:
    """What the rules tell of a stream, counted under ``EVENTS``."""
    from windrow.rules.texts import digest
    from windrow.rules.texts import written as as_text
    from windrow.spark import stream_rules

    spec, origin = pipeline.features, pipeline.rules_from
    source: Any = pipeline.rules
    given: dict[str, Any] = {}
    if origin is None:
        given["version"] = f"{pipeline.name} {digest(as_text(pipeline.rules))}"
    elif origin.file is not None:
        source = origin.file
    else:
        source, given["reread"] = _reader_of(df.sparkSession, origin.table), origin.reread
    events = stream_rules.apply(
        df,
        source,
        key=list(spec.key) or None,
        time=spec.time,
        tie="any" if spec.any_tie else list(spec.tie) or None,
        lateness=spec.lateness,
        longest=pipeline.longest,
        features=pipeline.answers,
        **given,
        **{name: value for name, value in pipeline.call.items() if name in ("buckets", "flush")},
    )
    every = F.count(F.lit(1)).alias("events")
    return events.observe(EVENTS, every, F.count_if(F.col("event") == "rejected").alias("rejected"))


EVENTS = "windrow_events"


def _reader_of(session: Any, table: str) -> Callable[[], Any]:
    def read() -> Any:
        session.catalog.refreshTable(table)
        return session.table(table)

    return read


def start(df: Any, pipeline: Any, sink: Any, name: str) -> Any:
    """Start a stream to a sink."""
    writer = _outgoing(df, pipeline, sink).writeStream.format(sink.format)
    writer = writer.queryName(name).outputMode("append")
    usual = {"header": "true"} if sink.format == "csv" else {}
    writer = writer.options(**(usual | {k: written(v) for k, v in sink.options.items()}))
    if sink.checkpoint is not None:
        writer = writer.option("checkpointLocation", sink.checkpoint)
    if pipeline.mode == "stream-available-now":
        writer = writer.trigger(availableNow=True)
    elif sink.trigger is not None:
        writer = writer.trigger(processingTime=sink.trigger)
    if sink.table is not None:
        return writer.toTable(sink.table)
    return writer.start(sink.path) if sink.path is not None else writer.start()
