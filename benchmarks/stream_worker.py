"""One stream in a Spark session of its own; started by ``benchmarks.streams``.

    python -m benchmarks.stream_worker '{"folder": ..., "stream": {"side": "ours", ...}}'

Files of rows are linked into a folder, two of them a batch, and read as fast as they can be. What
every batch of rows took is printed as JSON on the last line. Then the query is started again from
its checkpoint, with a few more files, and what it gives for some of the keys is compared with what
windrow gives for a table of all files.
"""

import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import windrow as wr

PARTITIONS = (2, 8)
"""Of the shuffle: each side takes what is faster for it."""
TRIAL = 8
"""Batches of a trial; the second half counts."""
AGGREGATES: dict[str, type[wr.Aggregate]] = {"max": wr.Max, "sum": wr.Sum, "mean": wr.Mean}
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.python.daemon.module": "windrow.spark.daemon",
    **wr.spark.stream_settings(),
}

Numbers = dict[str, float]


@dataclass(frozen=True)
class Stream:
    """What is measured: one side's query on one table. Times are seconds of event time."""

    side: str
    table: str
    span: int
    """Of a batch."""
    warm: int
    measured: int
    lookbacks: tuple[int, ...] = (600,)
    aggregates: tuple[str, ...] = ("max", "count")
    slide: int = 0
    more: int = 2
    """Batches after the measured ones, whose answers are compared."""
    partitions: int = 0
    """None: what is faster."""

    @property
    def lateness(self) -> str:
        """No row is later than this."""
        return f"{self.span * 100} milliseconds"

    @property
    def spec(self) -> wr.Rolling:
        aggregates = [AGGREGATES[n]("x") if n != "count" else wr.Count() for n in self.aggregates]
        windows = {f"{seconds}s": wr.time(f"{seconds}s") for seconds in self.lookbacks}
        return wr.Rolling(
            key="k", time="t", windows=windows, aggregates=aggregates, lateness=self.lateness
        )


def session(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, Any] = SETTINGS | {"spark.local.dir": str(folder / "spill")}
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


# --- the sides ------------------------------------------------------------------------------------


def ours(stream: Stream, df: Any) -> Any:
    """Answers for every row."""
    return stream.spec(df)


def by_window(stream: Stream, df: Any) -> Any:
    """Spark's sliding window: answers for every key, once for every slide."""
    length, slide = f"{stream.lookbacks[0]} seconds", f"{stream.slide} seconds"
    groups = df.withWatermark("t", stream.lateness).groupBy(F.window("t", length, slide), "k")
    return groups.agg(F.max("x").alias("max"), F.count("*").alias("count"))


def by_key(stream: Stream, df: Any) -> Any:
    """Answers for every row, by a stateful processor of every key's last rows."""
    lateness = stream.span * 100_000
    processor = RecentRows(stream.lookbacks[0] * 1_000_000, lateness)
    rows = df.select("k", F.unix_micros("t").alias("t"), "x")
    kind = "k long, t long, x double, max double, count long"
    found = rows.groupBy("k").transformWithState(processor, kind, "append", "none")
    return found.withColumn("t", F.timestamp_micros("t"))


def without_window(stream: Stream, df: Any) -> Any:
    """Spark's aggregate of all rows of a key."""
    return df.groupBy("k").agg(F.max("x").alias("max"), F.count("*").alias("count"))


class RecentRows(StatefulProcessor):
    """The largest value and the number of rows in (t - length, t], for every row of a key.

    A key's rows lie in one value of its state, so that a key and batch cost two calls. A row is
    answered when its key has come so far that no earlier row is expected: that needs no watermark,
    for which Spark would be asked twice more for every key.
    """

    def __init__(self, length: int, lateness: int) -> None:
        self.length, self.lateness = length, lateness

    def init(self, handle: Any) -> None:
        self.recent = handle.getValueState("recent", "times binary, values binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        came = [(row[1], row[2]) for row in rows]
        times = np.array([row[0] for row in came], np.int64)
        values = np.array([row[1] for row in came])
        answered = -(1 << 62)
        found = self.recent.get()
        if found is not None:
            old = np.frombuffer(found[0], np.int64)
            answered = int(old[-1]) - self.lateness
            times = np.concatenate([old, times])
            values = np.concatenate([np.frombuffer(found[1]), values])
            order = np.argsort(times, kind="stable")
        else:
            order = np.argsort(times)
        times, values = times[order], values[order]
        border = int(times[-1]) - self.lateness
        first, last = np.searchsorted(times, [answered, border]).tolist()
        now = times[first:last]
        lows = np.searchsorted(times, now - self.length, "right").tolist()
        highs = np.searchsorted(times, now, "right").tolist()
        kept = int(np.searchsorted(times, border - self.length, "right"))
        self.recent.update((times[kept:].tobytes(), values[kept:].tobytes()))
        answers = zip(now.tolist(), values[first:last].tolist(), lows, highs, strict=True)
        for time, value, low, high in answers:
            most = float(values[low:high].max())
            yield Row(k=key[0], t=time, x=value, max=most, count=high - low)

    def close(self) -> None:
        """Nothing is left open."""


SIDES: dict[str, tuple[Callable[[Stream, Any], Any], str]] = {
    "ours": (ours, "append"),
    "window": (by_window, "append"),
    "key": (by_key, "append"),
    "plain": (without_window, "update"),
}


# --- a run ----------------------------------------------------------------------------------------


class Run:
    """One query: its source of so many batches, its checkpoint, and what came of it."""

    def __init__(self, spark: Any, folder: Path, stream: Stream, name: str) -> None:
        self.spark, self.stream = spark, stream
        self.table = folder / stream.table
        self.place = folder / name
        self.source = self.place / "source"
        self.source.mkdir(parents=True)
        self.batches = 0

    def take(self, batches: int) -> None:
        """More files to be read; those of a batch are read together, as they are the oldest."""
        for number in range(self.batches, self.batches + batches):
            for file in files_of(self.table, number):
                os.link(file, self.source / file.name)
        self.batches += batches

    def go(self, partitions: int, sink: Callable[[Any], Any]) -> list[Any]:
        """What Spark says of every batch that had rows."""
        self.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        reader = self.spark.readStream.schema("k long, t timestamp, x double")
        df = reader.option("maxFilesPerTrigger", 2).parquet(str(self.source))
        query, mode = SIDES[self.stream.side]
        writer = query(self.stream, df).writeStream.outputMode(mode).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.place / "checkpoint"))
        running = sink(writer).start()
        running.awaitTermination()
        found = [progress for progress in running.recentProgress if progress.numInputRows]
        return sorted(found, key=lambda progress: int(progress.batchId))

    def answers(self, partitions: int) -> pa.Table:
        """What comes of a few more batches, after a restart."""
        self.take(self.stream.more)
        place = str(self.place / "answers")

        def write(df: Any, number: int) -> None:
            df.write.mode("append").parquet(place)

        self.go(partitions, lambda writer: writer.foreachBatch(write))
        return pq.read_table(place)

    def remove(self) -> None:
        shutil.rmtree(self.place)


def files_of(table: Path, batch: int) -> list[Path]:
    return [table / f"{batch:05d}-{half}.parquet" for half in "ab"]


def nowhere(writer: Any) -> Any:
    return writer.format("noop")


def numbers(progress: Any) -> Numbers:
    """What is kept of what Spark says of a batch."""
    seconds = progress.durationMs["triggerExecution"] / 1000
    found = {"seconds": seconds, "rows": float(progress.numInputRows)}
    for operator in progress.stateOperators[:1]:
        found |= {"memory": operator.memoryUsedBytes}
        found |= {"files": operator.customMetrics.get("rocksdbSstFileSize", 0)}
    observed = (progress.observedMetrics or {}).get("windrow")
    if observed is not None:
        names = ("state_calls", "state_bytes_read", "state_bytes_written", "state_bytes")
        found |= {name: observed[name] for name in (*names, "kept_rows", "late_rows")}
    return found


def median(batches: Iterable[Numbers], name: str = "seconds") -> float:
    return statistics.median(batch[name] for batch in batches)


def measured(spark: Any, folder: Path, stream: Stream) -> dict[str, Any]:
    """The batches after the first ones, and with how many partitions."""
    trials: dict[int, float] = {}
    for partitions in [] if stream.partitions else [PARTITIONS[0], *PARTITIONS]:
        run = Run(spark, folder, stream, "trial")  # the very first only warms the machine
        run.take(min(TRIAL, stream.warm + stream.measured))
        batches = [numbers(progress) for progress in run.go(partitions, nowhere)]
        trials[partitions] = median(batches[len(batches) // 2 :])
        run.remove()
    partitions = stream.partitions or min(trials, key=lambda count: trials[count])
    run = Run(spark, folder, stream, "run")
    run.take(stream.warm + stream.measured)
    batches = [numbers(progress) for progress in run.go(partitions, nowhere)]
    assert len(batches) == stream.warm + stream.measured
    assert not any(batch.get("late_rows") for batch in batches)
    compare(run, run.answers(partitions))
    run.remove()
    return {"batches": batches[stream.warm :], "partitions": partitions, "trials": trials}


# --- answers are compared -------------------------------------------------------------------------

Pair = tuple[pa.Table, pa.Table]
"""What was found and what was wanted: the same columns."""


def compare(run: Run, found: pa.Table) -> None:
    """What came after the restart, for some of the keys, is what windrow says of a table."""
    paths = [path for number in range(run.batches) for path in files_of(run.table, number)]
    rows = pa.concat_tables(some_keys(pq.read_table(path)) for path in paths)
    tables = COMPARE[run.stream.side](run.stream, rows, some_keys(found))
    names = tables[1].column_names
    order = [(name, "ascending") for name in names]
    got, wanted = (table.select(names).sort_by(order) for table in tables)
    assert got.num_rows == wanted.num_rows > 0, f"{got.num_rows} rows, not {wanted.num_rows}"
    for name in names:
        left, right = (table[name].combine_chunks() for table in (got, wanted))
        if pa.types.is_floating(right.type):
            np.testing.assert_allclose(left.to_numpy(), right.to_numpy(), rtol=1e-12)
        else:
            assert left.cast(right.type).equals(right), name


def some_keys(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(pc.bit_wise_and(table["k"], 15), 0))


def of_rows(stream: Stream, rows: pa.Table, found: pa.Table) -> Pair:
    """Every row that was answered; they are about as many as came."""
    came = rows.num_rows / (stream.warm + stream.measured + stream.more)
    assert found.num_rows > came * (stream.more - 0.5)
    names = ["k", "t", "x"]
    outputs = [name for name, _, _ in stream.spec.outputs]
    found = found.rename_columns([*names, *outputs])
    wanted = stream.spec(rows)
    since = pc.min(found["t"]).cast(rows.schema.field("t").type)
    wanted = wanted.filter(pc.greater_equal(wanted["t"], since))
    answered = set(_tuples(found, names))
    return found, wanted.filter(pa.array([row in answered for row in _tuples(wanted, names)]))


def _tuples(table: pa.Table, names: list[str]) -> Iterator[tuple[Any, ...]]:
    columns = [pc.cast(table[n], pa.int64()) if n == "t" else table[n] for n in names]
    return zip(*(column.to_pylist() for column in columns), strict=True)


def of_windows(stream: Stream, rows: pa.Table, found: pa.Table) -> Pair:
    """A window of Spark's is what came before its end: windrow's as of that time."""
    windows = {"window": wr.time(f"{stream.lookbacks[0]}s", closed="left")}
    spec = wr.Rolling(key="k", time="t", windows=windows, aggregates=[wr.Max("x"), wr.Count()])
    ends = pc.struct_field(found["window"], "end").cast(rows.schema.field("t").type)
    labels = pa.table({"end": ends, "k": found["k"]})
    wanted = spec.as_of(rows, labels, on="end")
    return pa.table({"end": ends, **{n: found[n] for n in ("k", "max", "count")}}).rename_columns(
        wanted.column_names
    ), wanted


def of_all(stream: Stream, rows: pa.Table, found: pa.Table) -> Pair:
    """The last that was said of a key is about all its rows."""
    last = found.group_by("k").aggregate([("max", "max"), ("count", "max")])
    rows = rows.filter(pc.is_in(rows["k"], last["k"]))
    wanted = rows.group_by("k").aggregate([("x", "max"), ("x", "count")])
    return last.rename_columns(["k", "x_max", "x_count"]), wanted


COMPARE: dict[str, Callable[[Stream, pa.Table, pa.Table], Pair]] = {
    "ours": of_rows,
    "key": of_rows,
    "window": of_windows,
    "plain": of_all,
}


def main() -> None:
    given = json.loads(sys.argv[1])
    fields: dict[str, Any] = {
        name: tuple(x) if isinstance(x, list) else x for name, x in given["stream"].items()
    }
    folder = Path(given["folder"])
    print(json.dumps(measured(session(folder), folder, Stream(**fields))))


if __name__ == "__main__":
    main()
