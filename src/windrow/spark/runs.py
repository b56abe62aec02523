"""A pipeline's way through Spark: the session, the source, the sink, and what a stream tells."""

import contextlib
import copy
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.aggregates import Count
from windrow.errors import WindrowError
from windrow.rolling import Rolling
from windrow.slides import time
from windrow.spark import streams, tables
from windrow.spark.keyed import quoted
from windrow.spark.native import why_not_native
from windrow.spark.schema import output_schema
from windrow.spark.stream_state import stream_settings

Tell = Callable[[dict[str, Any]], None]
Place = tuple[str | int, ...]
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_EPOCHS = {
    "timestamp[s]": F.timestamp_seconds,
    "timestamp[ms]": F.timestamp_millis,
    "timestamp[us]": F.timestamp_micros,
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_POLL_SECONDS = 0.25


# --- before anything runs ------------------------------------------------------------------------


def refusals(pipeline: Any, schema: pa.Schema) -> list[tuple[Place, str]]:
    """What Spark's engines refuse of a specification, place by place; no session is needed."""
    spec: Rolling = pipeline.features
    known = pa.schema([_known(field) for field in schema])
    columns = from_arrow_schema(known, prefer_timestamp_ntz=True)

    def reason(windows: Any, aggregates: Any) -> str | None:
        part = copy.copy(spec)
        part.windows, part.aggregates = windows, list(aggregates)
        part.outputs = [(f"{a.output_name}_{w}", a, w) for w in windows for a in aggregates]
        try:
            if pipeline.streaming:
                streams.planned(part, columns, streams.options_of(pipeline.call))
            else:
                tables.choose(part, columns, tables.options_of(pipeline.call), False)
                output_schema(part, columns)
        except WindrowError as error:
            return str(error)
        return None

    whole = reason(spec.windows, spec.aggregates)
    if whole is None:
        return []
    harmless = ({"1s": time("1s")}, [Count().alias("rows")])
    if spec.time is None or reason(*harmless) is not None:
        return [(("features",), whole)]
    found: list[tuple[Place, str]] = []
    for place, (label, window) in enumerate(spec.windows.items()):
        said = reason({label: window}, harmless[1])
        found += [] if said is None else [(("features", "windows", place), said)]
    for place, aggregate in enumerate(spec.aggregates):
        said = reason(harmless[0], [aggregate])
        found += [] if said is None else [(("features", "aggregates", place), said)]
    return found or [(("features",), whole)]


def _known(field: pa.Field) -> pa.Field:
    """Columns without any value are texts to Spark."""
    return pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field


# --- the session ---------------------------------------------------------------------------------


def session_for(pipeline: Any) -> tuple[SparkSession, bool]:
    """The session, and whether it was started here: one that is there already is used."""
    active = SparkSession.getActiveSession()
    settings: dict[str, Any] = {n: _setting(v) for n, v in _settings(pipeline).items()}
    if active is not None:
        other = active.newSession()
        for name, value in settings.items():
            if name.startswith("spark.sql."):
                with contextlib.suppress(Exception):  # static ones are as they are
                    other.conf.set(name, value)
        return other, False
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"windrow: {pipeline.name}").config(map=settings)
    master = pipeline.spark.get("master", "local[*]")
    remote = master.startswith("sc://")
    made = builder.remote(master) if remote else builder.master(master)
    if not remote:
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost" if "local" in master else "")
        if not os.environ["SPARK_LOCAL_HOSTNAME"]:
            del os.environ["SPARK_LOCAL_HOSTNAME"]
    return made.getOrCreate(), True


def _settings(pipeline: Any) -> dict[str, Any]:
    import pyspark

    formats = [end.format for end in (pipeline.source, pipeline.sink, pipeline.alerts) if end]
    packages = list(pipeline.spark.get("packages", []))
    if "kafka" in formats and not any("spark-sql-kafka" in package for package in packages):
        packages.append(f"{KAFKA_PACKAGE}:{pyspark.__version__}")
    found: dict[str, Any] = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if "delta" in formats:
        found |= _DELTA
    if pipeline.streaming:
        found |= stream_settings(pipeline.call.get("buckets", streams.BUCKETS))
    if packages:
        found["spark.jars.packages"] = ",".join(packages)
    found |= pipeline.spark.get("settings", {})
    return found


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def told_elsewhere(log: str | None) -> Iterator[None]:
    """What Spark's processes say on the error stream goes to a file, from when they start."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


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
    usual = {"csv": {"header": "true", "mode": "FAILFAST"}, "json": {"mode": "FAILFAST"}}
    given = {name: _setting(value) for name, value in source.options.items()}
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
    except Exception:
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


def by_value(aggregates: list[Any]) -> None:
    """Modules of the user's own travel with the job: Spark's workers need not find them."""
    for aggregate in aggregates:
        module = sys.modules[type(aggregate).__module__]
        if not module.__name__.startswith("windrow.") and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


# --- sink ----------------------------------------------------------------------------------------


def _outgoing(df: Any, pipeline: Any, sink: Any) -> Any:
    if sink.format != "kafka" or sink.value is None:
        return df
    key = F.to_json(F.struct(*[F.col(quoted(name)) for name in pipeline.features.key]))
    message = F.to_json(F.struct("*")).alias("value")
    return df.select(*([key.alias("key")] if pipeline.features.key else []), message)


def write(df: Any, pipeline: Any, sink: Any, tell: Tell) -> int:
    """Write a table; how many rows it had."""
    seen = Observation("windrow_run")
    counted = _outgoing(df, pipeline, sink).observe(seen, F.count(F.lit(1)).alias("rows"))
    mode = {"error": "errorifexists"}.get(sink.mode, sink.mode)
    writer = counted.write.format(sink.format).mode(mode)
    usual = {"header": "true"} if sink.format == "csv" else {}
    writer = writer.options(**(usual | {k: _setting(v) for k, v in sink.options.items()}))
    with _tasks(df.sparkSession, tell):
        if sink.table is not None:
            writer.saveAsTable(sink.table)
        elif sink.path is not None:
            writer.save(sink.path)
        else:
            writer.save()
    return int(seen.get["rows"])


@contextlib.contextmanager
def _tasks(session: Any, tell: Tell) -> Iterator[None]:
    """While a batch runs, tell how many tasks are done; not through Spark Connect."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    tracker = session.sparkContext.statusTracker()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            with contextlib.suppress(Exception):  # it is only for the eye
                stages = [tracker.getStageInfo(n) for n in tracker.getActiveStageIds()]
                stages = [stage for stage in stages if stage is not None]
                if stages:
                    tell(
                        {
                            "event": "tasks",
                            "done": sum(stage.numCompletedTasks for stage in stages),
                            "tasks": sum(stage.numTasks for stage in stages),
                        }
                    )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def why_not(spec: Rolling, df: Any, engine: str) -> str | None:
    """Why an engine cannot run a specification on a table; None where it can."""
    if engine == "native":
        return why_not_native(spec, df.schema)
    try:
        tables.choose(spec, df.schema, tables.Options(), False)
    except WindrowError as error:
        return str(error)
    return None


def finish(df: Any) -> None:
    """Compute a table whole, and keep nothing of it."""
    df.write.format("noop").mode("overwrite").save()


def per_key(df: Any, key: str, work: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Any:
    """Each key's rows as one Arrow table, and what is made of them."""
    return df.groupBy(F.col(quoted(key))).applyInArrow(work, from_arrow_schema(schema))


def last_time(df: Any, column: str) -> Any:
    """The latest time of all rows."""
    return df.agg(F.max(F.col(quoted(column)))).toArrow().column(0)[0]


# --- streams -------------------------------------------------------------------------------------


def start(df: Any, pipeline: Any) -> Any:
    """Start a stream to its sink."""
    sink = pipeline.sink
    writer = _outgoing(df, pipeline, sink).writeStream.format(sink.format)
    writer = writer.queryName(pipeline.name).outputMode("append")
    usual = {"header": "true"} if sink.format == "csv" else {}
    writer = writer.options(**(usual | {k: _setting(v) for k, v in sink.options.items()}))
    if sink.checkpoint is not None:
        writer = writer.option("checkpointLocation", sink.checkpoint)
    if pipeline.mode == "stream-available-now":
        writer = writer.trigger(availableNow=True)
    elif sink.trigger is not None:
        writer = writer.trigger(processingTime=sink.trigger)
    if sink.table is not None:
        return writer.toTable(sink.table)
    return writer.start(sink.path) if sink.path is not None else writer.start()


def follow(query: Any, tell: Tell, stopping: threading.Event) -> None:
    """Tell of every batch until the stream ends, or is to be stopped; raises what stopped it."""
    last = -1
    while True:
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > last and "windrow" in (progress["observedMetrics"] or {}):
                last = progress["batchId"]
                tell(batch_event(progress))
        if stopping.is_set() and active:
            query.stop()
        if not active:
            break
        stopping.wait(_POLL_SECONDS)
    error = query.exception()
    if error is not None and not stopping.is_set():
        raise error


def batch_event(progress: Any) -> dict[str, Any]:
    """What one batch did, in windrow's words."""
    seen = progress["observedMetrics"]["windrow"]
    seen = seen.asDict() if hasattr(seen, "asDict") else dict(seen)
    seconds = progress["batchDuration"] / 1000
    rows = seen["rows"] or 0
    return {
        "event": "batch",
        "batch": progress["batchId"],
        "at": progress["timestamp"],
        "seconds": seconds,
        "rows": rows,
        "rows_per_second": round(rows / seconds, 1) if seconds else None,
        "answered_rows": seen["answered_rows"] or 0,
        "late_rows": seen["late_rows"] or 0,
        "rows_without_time": seen["rows_without_time"] or 0,
        "overflows": seen["overflows"] or 0,
        "waiting_rows": seen["waiting_rows"] or 0,
        "kept_rows": seen["kept_rows"] or 0,
        "state_bytes": seen["state_bytes"] or 0,
        "lag_seconds": seen["watermark_lag_seconds"],
        "frontier": None if seen["frontier"] is None else str(seen["frontier"]),
    }
