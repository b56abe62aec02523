"""The same year of flights as a stream: one file a month, answered as it comes, then compared.

Shows a stream with event time, what every batch reports, what the state holds, and that the answers
are those of the table, bit for bit.
"""

import os
import sys
import tempfile
from pathlib import Path

import pandas as pd
from flights import year
from pyspark.sql import SparkSession

import windrow as wr


def write_months(folder: Path) -> None:
    """Departures as twelve Parquet files, in order; the last one ends with a row that says so."""
    raw = year()
    table = pd.DataFrame(
        {
            "flight": raw.index.astype("int64"),
            "origin": raw.origin,
            "at": pd.to_datetime(raw.time_hour, utc=True) + pd.to_timedelta(raw.minute, "min"),
            "late": raw.dep_delay,
            "is_end": False,
        }
    )
    for month in range(1, 13):
        part = table[(raw.month == month).to_numpy()]
        if month == 12:
            part = pd.concat([part, part.tail(1).assign(is_end=True)])
        path = folder / f"{month:02}.parquet"
        part.to_parquet(path, index=False, coerce_timestamps="us")
        os.utime(path, (month, month))  # Spark takes files in this order


def main() -> None:
    """Run the stream, then the table, and compare."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("windrow: flights on a stream")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config(map=wr.spark.stream_settings(buckets=3))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    features = wr.Rolling(
        key="origin",
        time="at",
        windows=["1h", "24h", "7d"],
        aggregates=[
            wr.Mean("late", nan="missing"),
            wr.Max("late", nan="missing"),
            wr.Count("late", nan="missing").alias("departures"),
        ],
        lateness="1 day",
    )
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, "months")
        folder.mkdir()
        write_months(folder)
        table = spark.read.parquet(str(folder))
        months = spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1)
        stream = features(months.parquet(str(folder)), buckets=3, flush="is_end")
        query = (
            stream.writeStream.format("parquet")
            .option("path", f"{work}/answers")
            .option("checkpointLocation", f"{work}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for progress in query.recentProgress:
            seen = progress["observedMetrics"]["windrow"]
            print(
                f"batch {progress['batchId']:2}: {seen['rows']:6,} rows in, "
                f"{seen['answered_rows']:6,} answered, {seen['waiting_rows']:5,} waiting, "
                f"{seen['kept_rows']:6,} kept, {seen['state_calls']:3} state calls"
            )
        print(wr.spark.state(f"{work}/checkpoint"), end="\n\n")
        answers = spark.read.parquet(f"{work}/answers")
        expected = features(table.where("not is_end").drop("is_end"))
        different = answers.exceptAll(expected).count() + expected.exceptAll(answers).count()
        print(f"{answers.count():,} rows answered, {different} of them other than on the table")
        answers.where("departures_1h >= 20").orderBy("late_mean_1h", ascending=False).select(
            "origin", "at", "late_mean_1h", "late_max_1h", "departures_1h", "late_mean_7d"
        ).show(5, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
