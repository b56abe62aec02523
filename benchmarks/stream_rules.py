"""A thousand rules over ten thousand keys on a Spark stream: a batch's time against no rules.

python -m benchmarks.stream_rules [--rules N] [--batches N]

Files of 20,000 rows, one a batch, of 10 seconds each, into Spark's ``noop`` sink, on two local
cores with two partitions. Both sides run the same operator over the same files; the first half of
the batches warms up. Rules look at six features: counts, sums and maxima of one and five minutes.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow as wr
from benchmarks.report import RESULTS, Report

KEYS = 10_000
ROWS = 20_000
RULES = 1_000
BATCHES = 16
START = 1_750_000_000_000_000


def conditions(count: int) -> list[tuple[str, str]]:
    """Four fifths are a threshold of one aggregate, the others are joined conditions."""
    generator = random.Random(7)
    out = []
    for number in range(count):
        length = generator.choice(("1m", "5m"))
        kind = number % 10
        if kind < 3:
            text = f'count("{length}") >= {generator.randint(15, 400)}'
        elif kind < 6:
            text = f'sum(size, "{length}") > {generator.randint(3_000, 400_000)}'
        elif kind < 8:
            text = f'max(price, "{length}") > {108 + generator.expovariate(0.2):.3f}'
        else:
            text = (
                f'max(price, "{length}") > {108 + generator.expovariate(0.2):.3f}'
                f' and sum(size, "1m") > {generator.uniform(0.2, 0.9):.3f} * sum(size, "5m")'
            )
        out.append((f"rule {number}", text))
    return out


def write_files(folder: Path, batches: int) -> None:
    generator = np.random.default_rng(3)
    for number in range(batches):
        times = START + number * 10_000_000 + np.sort(generator.integers(0, 10_000_000, ROWS))
        table = pa.table(
            {
                "key": generator.integers(0, KEYS, ROWS),
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "price": 100 + 2 * generator.standard_normal(ROWS),
                "size": generator.exponential(100, ROWS).astype(np.int64) + 1,
            }
        )
        path = folder / f"{number:05}.parquet"
        pq.write_table(table, path)
        os.utime(path, (10**9 + number, 10**9 + number))


def run(session: Any, folder: Path, rules: int, checkpoint: Path) -> tuple[float, float, int]:
    """Median seconds of a batch, its longest, and how many events came out."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(pq.read_schema(folder / "00000.parquet"))
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    common: dict[str, Any] = {"key": "key", "time": "at", "longest": "5m", "lateness": "1s"}
    events = wr.spark.rules(stream, conditions(rules), **common, buckets=2)
    query = (
        events.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    steps = [step for step in query.recentProgress if step["numInputRows"]]
    seconds = [step["durationMs"]["triggerExecution"] / 1000 for step in steps]
    told = sum(step["observedMetrics"]["windrow"]["emitted_rows"] for step in steps)
    later = seconds[len(seconds) // 2 :]
    return statistics.median(later), max(later), told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rules", type=int, default=RULES)
    parser.add_argument("--batches", type=int, default=BATCHES)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = wr.spark.stream_settings(2) | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "windrow.spark.daemon",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    report = Report(("windrow", "pyspark"))
    report.heading(f"{KEYS:,} keys, {ROWS:,} rows a batch, {options.batches} batches")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "in"
        folder.mkdir()
        write_files(folder, options.batches)
        none, none_longest, _ = run(session, folder, 0, Path(name) / "none")
        some, some_longest, told = run(session, folder, options.rules, Path(name) / "some")
    report.line("a batch without rules", f"{none:.2f} s (longest {none_longest:.2f})")
    report.line(
        f"a batch with {options.rules:,} rules", f"{some:.2f} s (longest {some_longest:.2f})"
    )
    report.line("with rules against without", f"{some / none:.2f}×")
    report.line("events that came out", f"{told:,}")
    session.stop()
    if (options.rules, options.batches) == (RULES, BATCHES):
        text = "Rules on a Spark stream; `make bench-stream-rules`. Two cores, two partitions."
        (RESULTS / "stream_rules.md").write_text(report.markdown("Rules on streams", text))


if __name__ == "__main__":
    main()
