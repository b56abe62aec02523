"""Streams for tests: tables in chosen micro-batches, a query from files to files, its answers."""

# mypy: disable-error-code="misc,index,operator"

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow as wr
from tests.spark_session import random_table

START = 1_600_000_000_000_000
"""2020-09-13 12:26:40, in microseconds."""
SECOND = 1_000_000
COUNTED = ("rows", "late_rows", "rows_without_time", "answered_rows", "overflows")


def stamped(seconds: Any, zone: str | None = "UTC") -> pa.Array:
    """Times so many seconds after the start."""
    whole = np.asarray(np.round(np.asarray(seconds, np.float64) * SECOND), np.int64)
    return pa.array(whole + START, pa.timestamp("us", zone))


def with_times(table: pa.Table, seconds: Any, zone: str | None = "UTC") -> pa.Table:
    """The table with ``t`` as timestamps."""
    return table.set_column(table.column_names.index("t"), "t", stamped(seconds, zone))


def arrival(seconds: Any, lateness: float, seed: int) -> np.ndarray[Any, Any]:
    """An order in which no row comes more than ``lateness`` after a later one."""
    delay = np.random.default_rng(seed).random(len(seconds)) * lateness
    return np.argsort(np.asarray(seconds) + delay, kind="stable")


def random_stream(
    size: int, keys: int, seed: int, lateness: float, zone: str | None = "UTC"
) -> pa.Table:
    """Rows as they come: ties, disorder, keys that come and go, and a pause of an hour."""
    table = random_table(size, keys=keys, seed=seed, span=200)
    seconds = table["t"].to_numpy()
    keys_then = table["k"].to_numpy() + seconds // 70 * max(1, keys // 2)
    seconds = seconds + np.where(seconds > 120, 3600, 0)
    table = with_times(table.set_column(0, "k", pa.array(keys_then)), seconds, zone)
    return table.take(pa.array(arrival(seconds, lateness, seed)))


def split(table: pa.Table, count: int, seed: int) -> list[pa.Table]:
    """Consecutive parts of any size, none empty."""
    generator = np.random.default_rng(seed)
    inner = generator.choice(np.arange(1, table.num_rows), count - 1, replace=False)
    cuts = [0, *sorted(inner.tolist()), table.num_rows]
    return [table.slice(first, last - first) for first, last in pairwise(cuts)]


class Pipe:
    """A folder of numbered files as a source, a folder of answers, and a checkpoint."""

    def __init__(self, spark: Any, folder: Path, flush: str | None = None) -> None:
        self.spark, self.folder, self.flush = spark, folder, flush
        self.source, self.sink = folder / "in", folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.source.mkdir(parents=True, exist_ok=True)
        self.schema: Any = None

    def describe(self, schema: pa.Schema) -> None:
        """Say which columns the files have."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if self.flush is not None:
            schema = schema.append(pa.field(self.flush, pa.bool_()))
        self.schema = from_arrow_schema(schema, prefer_timestamp_ntz=True)

    def feed(self, *tables: pa.Table, end: bool = False) -> "Pipe":
        """Each table a file, and so a micro-batch; ``end`` adds a row that says so to the last."""
        self.describe(tables[0].schema)
        for place, given in enumerate(tables):
            table = given
            if self.flush is not None:
                table = table.append_column(self.flush, pa.repeat(pa.scalar(False), len(table)))
                if end and place == len(tables) - 1:
                    table = pa.concat_tables([table, _mark(table.schema, self.flush)])
            number = len(list(self.source.iterdir()))
            path = self.source / f"{number:05}.parquet"
            hidden = self.folder / path.name
            pq.write_table(table, hidden)
            os.utime(hidden, (10**9 + number, 10**9 + number))
            hidden.rename(path)
        return self

    def stream(self, files: int = 1) -> Any:
        """The folder as a stream, so many files a batch."""
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", files)
        return reader.parquet(str(self.source))

    def run(self, spec: wr.Rolling, files: int = 1, **options: Any) -> list[Any]:
        """All that is there, until nothing more is to be done; the progress of every batch."""
        if self.flush is not None:
            options = {"flush": self.flush, **options}
        return self.start(spec(self.stream(files), **options))

    def start(self, answers: Any) -> list[Any]:
        """A query that is built already, from start to end."""
        query = (
            answers.writeStream.format("parquet")
            .option("path", str(self.sink))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [step for step in query.recentProgress if "windrow" in step["observedMetrics"]]

    def found(self) -> pa.Table:
        """All answers so far."""
        return self.spark.read.parquet(str(self.sink)).toArrow()

    def files(self) -> pa.Table:
        """All answers of a sink that began in the middle, which Spark does not read."""
        return self.spark.read.parquet(*map(str, sorted(self.sink.glob("*.parquet")))).toArrow()


def _mark(schema: pa.Schema, flush: str) -> pa.Table:
    row = {name: [name == flush or None] for name in schema.names}
    return pa.table({name: pa.array(row[name], schema.field(name).type) for name in schema.names})


def counts(progress: Sequence[Any]) -> dict[str, int]:
    """What was counted, over all batches."""
    rows = [step["observedMetrics"]["windrow"] for step in progress]
    return {name: sum(row[name] or 0 for row in rows) for name in COUNTED}


def answered(progress: Sequence[Any]) -> list[int]:
    """How many rows were answered by each batch."""
    return [step["observedMetrics"]["windrow"]["answered_rows"] or 0 for step in progress]
