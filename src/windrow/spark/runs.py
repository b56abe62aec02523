"""A pipeline's Spark: what its engines refuse beforehand, the session, and what travels with it."""

import contextlib
import copy
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.aggregates import Count
from windrow.columns.rule_set import RuleSet
from windrow.errors import WindrowError
from windrow.rolling import Rolling
from windrow.rules import texts
from windrow.slides import time
from windrow.spark import stream_rules, streams, tables
from windrow.spark.ends import written
from windrow.spark.native import why_not_native
from windrow.spark.schema import output_schema
from windrow.spark.stream_state import stream_settings, table_settings

Place = tuple[str | int, ...]
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


# --- before anything runs ------------------------------------------------------------------------


def refusals(pipeline: Any, schema: pa.Schema) -> list[tuple[Place, str]]:
    """What Spark's engines refuse of a specification, place by place; no session is needed."""
    spec: Rolling = pipeline.features
    known = pa.schema([_known(field) for field in schema])
    columns = from_arrow_schema(known, prefer_timestamp_ntz=True)

    def reason(windows: Any, outputs: Any) -> str | None:
        part = copy.copy(spec)
        part.windows, part.outputs = windows, outputs
        part.aggregates = list({id(a): a for _, a, _ in outputs}.values())
        try:
            if pipeline.streaming:
                streams.planned(part, columns, streams.options_of(pipeline.call))
            else:
                tables.choose(part, columns, tables.options_of(pipeline.call))
                output_schema(part, columns)
        except WindrowError as error:
            return str(error)
        return None

    whole = reason(spec.windows, spec.outputs)
    if whole is None:
        return []
    second: dict[str, Any] = {"1s": time("1s")}
    count = Count().alias("rows")
    if spec.time is None or reason(second, [("rows", count, "1s")]) is not None:
        return [(("features",), whole)]
    found: list[tuple[Place, str]] = []
    for place, (label, window) in enumerate(spec.windows.items()):
        said = reason({label: window}, [("rows", count, label)])
        found += [] if said is None else [(("features", "windows", place), said)]
    for place, aggregate in enumerate(spec.aggregates):
        own, over = [output for output in spec.outputs if output[1] is aggregate], spec.windows
        if aggregate.kind != "sequential":  # whose ticks fit
            own, over = [("answer", aggregate, "1s")], second
        said = reason(over, own)
        found += [] if said is None else [(("features", "aggregates", place), said)]
    return found or [(("features",), whole)]


def rule_refusals(pipeline: Any, schema: pa.Schema) -> list[tuple[Place, str]]:
    """What a stream refuses of its rules, rule by rule; no session is needed."""
    known = pa.schema([_known(field) for field in schema])
    columns = from_arrow_schema(known, prefer_timestamp_ntz=True)
    options = streams.options_of(pipeline.call)
    text = texts.written(pipeline.rules)
    try:
        stream_rules.event_schema(pipeline.features, columns)
        watch = stream_rules.watching(
            pipeline.features, columns, options, pipeline.longest, pipeline.answers
        )
    except WindrowError as error:
        return [(("alerts",), str(error))]
    found = []
    for rule in RuleSet(watch, text).rejected:
        path, where = pipeline.rule_places[rule.line - 1]
        found.append((path, f"{where}{rule.error}"))
    return found


def _known(field: pa.Field) -> pa.Field:
    """Columns without any value are texts to Spark."""
    return pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field


# --- the session ---------------------------------------------------------------------------------


def session_for(pipeline: Any) -> tuple[SparkSession, bool]:
    """The session, and whether it was started here: one that is there already is used."""
    active = SparkSession.getActiveSession()
    settings: dict[str, Any] = {n: written(v) for n, v in _settings(pipeline).items()}
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
    given = pipeline.spark.get("settings", {})
    known = [
        *packages,
        *(str(given.get(name, "")) for name in ("spark.jars", "spark.jars.packages")),
    ]
    if "kafka" in formats and not any("spark-sql-kafka" in text for text in known):
        packages.append(f"{KAFKA_PACKAGE}:{pyspark.__version__}")
    found: dict[str, Any] = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if "delta" in formats:
        found |= _DELTA
    if pipeline.streaming:
        found |= stream_settings(pipeline.call.get("buckets", streams.BUCKETS))
    else:
        found |= table_settings()
        if not pipeline.spark.get("master", "local").startswith("local"):
            del found["spark.python.daemon.module"]  # for where the package is installed
    if packages:
        found["spark.jars.packages"] = ",".join(packages)
    found |= given
    return found


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


def by_value(spec: Rolling) -> None:
    """Modules of the user's own travel with the job: Spark's workers need not find them."""
    policies = [p for window in spec.windows.values() for p in getattr(window, "policies", ())]
    aggregates = [*spec.aggregates, *(aggregate for p in policies for aggregate in p.over)]
    own: list[Any] = [p.function for p in policies if p.function is not None]
    for one in (*map(type, aggregates), *own):
        module = sys.modules[one.__module__]
        if not module.__name__.startswith("windrow.") and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def why_not(spec: Rolling, df: Any, engine: str) -> str | None:
    """Why an engine cannot run a specification on a table; None where it can."""
    if engine == "native":
        return why_not_native(spec, df.schema)
    try:
        tables.choose(spec, df.schema, tables.Options())
    except WindrowError as error:
        return str(error)
    return None


def finish(df: Any) -> None:
    """Compute a table whole, and keep nothing of it."""
    df.write.format("noop").mode("overwrite").save()
