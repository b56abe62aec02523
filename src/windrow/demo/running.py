"""The demo: one specification, by airport and by carrier, on a table, on a stream and in process.

Every flight of a year gets 24 answers about its airport and 24 about its carrier, once from a Spark
table and once from a Spark stream that gets the flights in the order in which they left; then every
answer is compared, bit by bit.
"""

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow as wr
from windrow.demo import tables
from windrow.demo.comparing import Compared, compared, recomputed
from windrow.demo.flights import Arrivals, carrier_names, drop_files, flights
from windrow.demo.screen import Step, Timeline
from windrow.demo.spell import WorstSpell
from windrow.errors import WindrowError

WINDOWS = ["1h", "6h", "24h", "7d"]
KEYS = {"origin": "airport", "carrier": "carrier"}
FILES = 18
BUCKETS = 2
CHECKED = 12
"""Flights whose answers are computed once more from scratch, for each key."""


def features(key: str) -> wr.Rolling:
    """The specification: the same for the table, for the stream and in process."""
    return wr.Rolling(
        key=key,
        time="at",
        tie="flight",
        windows=WINDOWS,
        aggregates=[
            wr.Mean("late"),
            wr.Quantile("late", 0.95),
            wr.Max("late"),
            wr.Sum("cancelled").alias("cancelled"),
            wr.Distinct("plane").alias("planes"),
            WorstSpell("late").alias("spell"),
        ],
        lateness="1 day",
    )


@dataclass
class Made:
    """What came out for one key."""

    key: str
    called: str
    spec: wr.Rolling
    answers: dict[str, pa.Table] = field(default_factory=dict)
    """By engine: columns, table, stream."""
    plans: list[str] = field(default_factory=list)
    progress: list[Any] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    compared: dict[str, Compared] = field(default_factory=dict)


def demo(report: str, master: str = "local[2]", files: int = FILES) -> bool:
    """Run it and show it; whether all answers were the same."""
    from windrow import report as reports

    reports.check_path(report)
    screen = Timeline()
    _headline(screen)
    made = [Made(key, called, features(key)) for key, called in KEYS.items()]
    with screen.step("flights", "reading the flights of 2013") as step:
        table = flights()
        step.done = _about(table)
    _in_process(screen, made, table)
    with _folder() as work, _spark(screen, work, master) as spark:
        _as_tables(screen, spark, work, made, table)
        _as_streams(screen, spark, work, made, drop_files(table, work, files))
    with screen.step("compare", "comparing every answer, bit by bit") as step:
        same = _compare(made)
        step.done = "every answer with every other, and some with the oracle"
    with screen.step("report", "drawing the report") as step:
        size = reports.write(report, *map(_section, made), title="A year of New York flights")
        step.done = f"{size / 1000:,.0f} kB"
    _show(screen, made, same)
    screen.say(f"\nreport: {Path(report).resolve()}", "bold")
    screen.say(f"{screen.elapsed:.0f} s in all. Your own data: windrow init FILE", "dim")
    return same


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="windrow-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _headline(screen: Timeline) -> None:
    screen.say(f"windrow {wr.__version__}: a year of flights from New York", "bold")
    screen.say(
        "Each flight gets mean, 95th percentile and maximum of departure delays, cancellations, "
        f"distinct planes and an aggregate of our own, over {', '.join(WINDOWS)}, for its airport "
        "and for its carrier.\n"
    )


def _about(table: pa.Table) -> str:
    count = {name: len(table[name].unique().drop_null()) for name in ("origin", "carrier", "plane")}
    return (
        f"{table.num_rows:,} flights, {count['origin']} airports, {count['carrier']} carriers, "
        f"{count['plane']:,} planes, {table['late'].null_count:,} cancelled"
    )


# --- the three engines ---------------------------------------------------------------------------


def _in_process(screen: Timeline, made: list[Made], table: pa.Table) -> None:
    with screen.step("columns", "in this process; the first time, kernels are compiled") as step:
        for one in made:
            one.answers["columns"] = one.spec(table)
        step.done = "in this process, by airport and by carrier"


@contextmanager
def _spark(screen: Timeline, work: Path, master: str) -> Iterator[Any]:
    """A session that is quiet, listens to this machine only, and leaves nothing behind."""
    from pyspark.sql import SparkSession

    from windrow.spark.runs import told_elsewhere

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(master)
        .appName("windrow demo")
        .config(map={**wr.spark.stream_settings(BUCKETS)})
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
    )
    log = work / "spark.log"
    try:
        with screen.step("Spark", "starting Spark") as step, told_elsewhere(str(log)):
            spark = builder.getOrCreate()
            jvm: Any = spark.sparkContext._jvm
            java = jvm.java.lang.System.getProperty("java.version")
            step.done = f"{spark.version} on Java {java}, {master}"
    except Exception as error:
        raise WindrowError(f"Spark did not start: {error}\n{_kept(log)}") from error
    try:
        yield spark
    except WindrowError:
        raise
    except Exception as error:
        from windrow.spark.said import said

        raise WindrowError(f"{said(error)}\n{_kept(log)}") from error
    finally:
        spark.stop()


def _kept(log: Path) -> str:
    """Spark's log, out of the folder that goes, for who wants to know more."""
    handle, path = tempfile.mkstemp(prefix="windrow-spark-", suffix=".log")
    os.close(handle)
    if log.exists():
        shutil.copyfile(log, path)
    return f"Spark's own log: {path}"


def _as_tables(screen: Timeline, spark: Any, work: Path, made: list[Made], table: pa.Table) -> None:
    pq.write_table(table, work / "flights.parquet")
    rows = spark.read.parquet(str(work / "flights.parquet"))
    for one in made:
        with screen.step(f"table, by {one.called}", f"a Spark table, by {one.called}") as step:
            one.spec(rows).write.parquet(str(work / f"table_{one.key}"))
            found = one.answers["table"] = pq.read_table(work / f"table_{one.key}")
            step.done = (
                f"by {one.called}: {found.num_rows:,} rows × {len(one.spec.outputs)} answers"
            )
        one.plans.append(f"As a table\n{one.spec.explain(rows)}")
        one.seconds["table"] = screen.seconds[f"table, by {one.called}"]


def _as_streams(
    screen: Timeline, spark: Any, work: Path, made: list[Made], arrivals: Arrivals
) -> None:
    folder = str(arrivals.folder)
    schema = spark.read.parquet(folder).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    for one in made:
        name = f"stream, by {one.called}"
        options: dict[str, Any] = {"buckets": BUCKETS, "flush": "is_end"}
        with screen.step(name, f"a Spark stream, by {one.called}") as step:
            query = (
                one.spec(rows, **options)
                .writeStream.format("parquet")
                .option("checkpointLocation", str(work / f"checkpoint_{one.key}"))
                .trigger(availableNow=True)
                .start(str(work / f"stream_{one.key}"))
            )
            late = _followed(query, step, arrivals.files)
            found = pq.read_table(work / f"stream_{one.key}")
            step.done = (
                f"by {one.called}: {arrivals.files} files; {arrivals.disordered:,} rows out of "
                f"order, by up to {arrivals.furthest / 60:.0f} h; {late:,} late"
            )
        one.answers["stream"] = found
        one.plans.append(f"As a stream\n{one.spec.explain(rows, **options)}")
        one.progress = list(query.recentProgress)
        one.seconds["stream"] = screen.seconds[name]


def _followed(query: Any, step: Step, files: int) -> int:
    """Wait for its end, telling how far it is; how many rows were late."""
    from windrow.spark.follow import follow

    late = 0

    def tell(event: dict[str, Any]) -> None:
        nonlocal late
        late += event["late_rows"]
        step.at(f"batch {event['batch'] + 1} of {files}, {event['rows']:,} rows")

    follow({"batch": query}, tell, threading.Event())
    return late


# --- what came out -------------------------------------------------------------------------------


def _compare(made: list[Made]) -> bool:
    """Stream with table, columns with table, and some of the table with the oracle."""
    for one in made:
        table = one.answers["table"]
        for engine in ("stream", "columns"):
            one.compared[engine] = compared(one.answers[engine], table, "flight")
        some = np.linspace(0, table.num_rows - 1, CHECKED).astype(int).tolist()
        one.compared["from scratch"] = recomputed(one.spec, table, some)
    return all(not c.different for one in made for c in one.compared.values())


def _section(one: Made) -> Any:
    from windrow import report as reports

    notes = [f"{_SAID[name]}: {said(result)}" for name, result in one.compared.items()]
    return reports.section(
        one.spec,
        one.answers["stream"],
        name=f"By {one.called}",
        plan="\n\n".join(one.plans),
        seconds=one.seconds,
        progress=one.progress,
        notes=notes,
    )


_SAID = {
    "stream": "stream = table",
    "columns": "in process = table",
    "from scratch": "from scratch = table",
}


def said(result: Compared) -> str:
    """The outcome in words."""
    return f"{result.values:,} values compared bit by bit, {result.different:,} differ"


def _show(screen: Timeline, made: list[Made], same: bool) -> None:
    by = {one.key: one.answers["stream"] for one in made}
    for shown in (
        tables.year_by_airport(by["origin"], screen.width),
        tables.worst_hours(by["origin"], screen.width),
        tables.carriers(by["carrier"], carrier_names(), screen.width),
        tables.verdict(
            {(_SAID[n], one.called): c for one in made for n, c in one.compared.items()}
        ),
    ):
        screen.say()
        screen.say(shown)
    for one in made:
        for example in (e for c in one.compared.values() for e in c.examples):
            screen.say(f"by {one.called}: {example}", "red")
    if not same:
        screen.say("The answers are NOT the same: that is a bug, please report it.", "bold red")
