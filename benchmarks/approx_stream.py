"""Approximate sums of millions of keys on a stream: bytes a key, time a batch, error.

    python -m benchmarks.approx_stream                       # 2 million keys
    python -m benchmarks.approx_stream --keys 100000         # fewer, for a first look

Batches of rows, files that were written before, are read as fast as they can be by a query with two
local cores and RocksDB. The first batches bring every key once; the others, which are measured,
random ones. Answers for one key of 200 come out: each is compared with the exact sum over the same
window, and with what the specification answers on columns.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow as wr
from benchmarks.report import RESULTS, Report
from benchmarks.stream_worker import median, numbers, session

START = 1_750_000_000_000_000
SPAN = 10
"""Seconds of time in a batch."""
SHARE = 200
"""One key of so many is compared."""
COLUMN = "x_approx_sum_1h"


def specification(inverse: int) -> wr.Rolling:
    """An hour in ticks of a second, within 1 / ``inverse`` of the largest possible sum."""
    return wr.Rolling(
        key="k",
        time="t",
        windows=["1h"],
        aggregates=[wr.ApproxSum("x", maximum=1500, epsilon=1 / inverse, tick="1s", clamp=True)],
        lateness="1s",
    )


def write_files(folder: Path, keys: int, rows: int, filling: int, measured: int) -> None:
    """One file a batch."""
    rng = np.random.default_rng(3)
    everyone = rng.permutation(keys)
    shares = np.array_split(everyone, filling)
    for number in range(filling + measured):
        own = shares[number] if number < filling else rng.integers(0, keys, rows)
        times = np.sort(rng.integers(0, SPAN * 1_000_000, len(own))) + START
        times += number * SPAN * 1_000_000
        columns = {
            "k": pa.array(own.astype(np.int64)),
            "t": pa.array(times, pa.timestamp("us", tz="UTC")),
            "x": pa.array(rng.integers(0, 1500, len(own), endpoint=True)),
        }
        file = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table(columns), file)
        os.utime(file, (1e9 + number, 1e9 + number))


def run(spark: Any, files: Path, place: Path, spec: wr.Rolling) -> tuple[list[Any], pa.Table]:
    """What Spark says of every batch of rows, and the answers of some keys."""
    reader = spark.readStream.schema("k long, t timestamp, x long").option("maxFilesPerTrigger", 1)
    answers = spec(reader.parquet(str(files))).where(f"k % {SHARE} = 7")
    writer = answers.writeStream.format("parquet").option("path", str(place / "out"))
    writer = writer.option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = sorted(query.recentProgress, key=lambda progress: int(progress.batchId))
    return [step for step in found if step.numInputRows], pq.read_table(place / "out")


def compare(report: Report, spec: wr.Rolling, files: Path, found: pa.Table) -> None:
    some = pa.concat_tables(
        table.filter(
            pc.equal(pc.subtract(table["k"], pc.multiply(pc.divide(table["k"], SHARE), SHARE)), 7)
        )
        for table in map(pq.read_table, sorted(files.iterdir()))
    )
    exact = wr.Rolling(key="k", time="t", windows=["1h"], aggregates=[wr.Sum("x")])
    order = [("k", "ascending"), ("t", "ascending"), ("x", "ascending")]
    wanted = exact(spec(some)).sort_by(order)
    last = pc.max(found["t"])
    answered = wanted.filter(pc.less_equal(wanted["t"].cast(pa.int64()), last.cast(pa.int64())))
    found = found.sort_by(order)
    bound = float(wanted.schema.field(COLUMN).metadata[b"windrow.error_bound"])
    same = found[COLUMN].to_numpy().tolist() == answered[COLUMN].to_numpy().tolist()
    what = f"{found.num_rows:,} answers of the stream are those of the columns"
    report.line(what, str(same), "True", same and found.num_rows > 0)
    errors = np.abs(found[COLUMN].to_numpy() - answered["x_sum_1h"].to_numpy())
    report.line(
        "largest error against the exact sum",
        f"{errors.max():,.1f}",
        f"≤ {bound:,.1f}",
        bool(errors.max() <= bound),
    )


def measure(report: Report, keys: int, rows: int, inverse: int, measured: int) -> None:
    spec = specification(inverse)
    report.heading(f"{keys:,} keys, sums of the last hour in ticks of 1 s, ε = 1/{inverse}")
    with tempfile.TemporaryDirectory(prefix="windrow-") as name:
        folder = Path(name)
        files = folder / "files"
        files.mkdir()
        filling = -(-keys // rows)
        write_files(files, keys, rows, filling, measured)
        spark = session(folder)
        steps, found = run(spark, files, folder, spec)
        batches = [numbers(step) for step in steps]
        spark.stop()
        full = batches[filling + 1 :]  # a batch is answered in the next one
        counter = wr.approx.Sum(3600, 1500, 1 / inverse)
        report.line("bytes of a counter by the theorem", f"{counter.bits() / 8:.1f}")
        state = full[-1]["state_bytes"] / keys
        report.line("state bytes a key: key, counter, tick and its sum", f"{state:.1f}")
        report.line("RocksDB's files, bytes a key", f"{full[-1]['files'] / keys:.1f}")
        report.line("rows kept", f"{full[-1]['kept_rows']:,.0f}", "0", not full[-1]["kept_rows"])
        seconds = median(full)
        what = f"a batch of {rows:,} rows of random keys, median of {len(full)}"
        report.line(what, f"{seconds:.2f} s, {rows / seconds:,.0f} rows/s")
        moved = [median(full, f"state_bytes_{way}") / 1e6 for way in ("read", "written")]
        report.line("state read and written in it", f"{moved[0]:.0f} and {moved[1]:.0f} MB")
        report.line("state calls in it", f"{median(full, 'state_calls'):,.0f}")
        compare(report, spec, files, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, default=500_000, help="a batch")
    parser.add_argument("--batches", type=int, default=6, help="measured")
    given = parser.parse_args()
    report = Report(("pyspark", "pyarrow", "numpy", "numba"))
    for inverse in (100, 1000):
        measure(report, given.keys, given.rows, inverse, given.batches)
    if given.keys == 2_000_000:
        text = "Written by `make bench-approx-stream`; two local cores, 8 buckets."
        (RESULTS / "approx_stream.md").write_text(report.markdown("Counters on a stream", text))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
