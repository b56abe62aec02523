"""Streams in this process: rows in disorder, batch after batch, beside Polars over the rows kept.

    python -m benchmarks.event_stream            # two or three minutes
    python -m benchmarks.event_stream --quick    # fewer batches, bars are not checked

Events of 10,000 keys come up to five seconds late; windows are full before the clock starts. Times
are of a push: rows in, answers out. Every part ends with a comparison of all answers with those of
the table.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import windrow as wr
from benchmarks.report import RESULTS, Report

KEYS, LATE = 10_000, 5
FLAT_BAR, POLARS_BAR, RATE_BAR = 1.5, 5.0, 1e6
FEW = [wr.Max("x"), wr.Count()]


def events(batch: int, batches: int, step: float) -> list[pa.Table]:
    """Batches ``step`` seconds apart, of rows in disorder."""
    generator = np.random.default_rng(3)
    size = batch * batches
    seconds = np.sort(generator.uniform(0, step * batches, size))
    came = np.argsort(seconds + generator.uniform(0, LATE, size), kind="stable")
    table = pa.table(
        {
            "k": generator.integers(0, KEYS, size),
            "t": pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us")),
            "x": generator.standard_normal(size),
        }
    ).take(pa.array(came))
    return [table.slice(place, batch) for place in range(0, size, batch)]


def spec_of(windows: Any, aggregates: Any = FEW, **more: Any) -> wr.Rolling:
    return wr.Rolling(
        key="k", time="t", windows=windows, aggregates=aggregates, lateness=f"{LATE}s", **more
    )


def pushed(
    spec: wr.Rolling, batches: list[pa.Table], warm: int, flushed: bool = False
) -> tuple[list[float], list[pa.Table]]:
    """Seconds of every push after the first ones, best of two streams, and what came out."""
    rounds: list[list[float]] = []
    out: list[pa.Table] = []
    for _ in range(2):
        folder = tempfile.mkdtemp(prefix="windrow-") if flushed else None
        options: Any = {"store": wr.stores.Rocks(folder), "name": "one"} if folder else {}
        stream = spec.stream(**options)
        took, out = [], []
        for batch in batches:
            start = time.perf_counter()
            out.append(stream.push(batch))
            if folder:
                stream.flush()
            took.append(time.perf_counter() - start)
        out.append(stream.finish())
        rounds.append(took[warm:])
        if folder:
            shutil.rmtree(folder)
    return [min(pair) for pair in zip(*rounds, strict=True)], out


def told(report: Report, what: str, took: list[float], rows: int) -> float:
    """Nanoseconds a row; the slowest push is said, too."""
    found = statistics.mean(took) / rows * 1e9
    middle, slowest = statistics.median(took) * 1e3, max(took) * 1e3
    measured = f"{found:,.0f} ns, push {middle:.1f}, ≤ {slowest:.1f} ms"
    report.line(what, measured)
    return found


def check(spec: wr.Rolling, batches: list[pa.Table], out: list[pa.Table]) -> None:
    """All answers are those of the table."""
    order = [(name, "ascending") for name in ("t", "k", "x")]
    wanted = spec(pa.concat_tables(batches)).sort_by(order)
    assert pa.concat_tables(out).sort_by(order).equals(wanted)


def sizes(report: Report, quick: bool, checked: bool) -> None:
    report.heading("Max and count over ten minutes, 10,000 keys, a batch a second")
    for batch in (1_000, 10_000, 100_000):
        batches = events(batch, 40 if quick else 660, 16.0 if quick else 1.0)
        spec = spec_of(["10m"])
        warm = 37 if quick else 610
        took, out = pushed(spec, batches, warm)
        found = told(report, f"{batch:,} rows a batch", took, batch)
        check(spec, batches, out)
        if batch == 100_000:
            rate = 1e9 / found
            needed = f"≥ {RATE_BAR / 1e6:.0f} million" if checked else ""
            good = rate >= RATE_BAR or not checked
            report.line("rows a second", f"{rate / 1e6:.1f} million", needed, good)


def lengths(report: Report, quick: bool, checked: bool) -> None:
    report.heading("The same for any window: 10,000 rows a batch, a batch a second")
    found = {}
    longest = 100 if quick else 1_000
    batches = events(10_000, longest + 60, 1.0)
    for seconds in (10, 100, 1_000):
        if seconds > longest:
            continue
        spec = spec_of([f"{seconds}s"])
        took, out = pushed(spec, batches, longest + 10)
        found[seconds] = told(report, f"a window of {seconds:,} batches", took, 10_000)
        check(spec, batches, out)
    ratio = found[longest] / found[10]
    needed = f"≤ {FLAT_BAR}×" if checked else ""
    report.line("the longest to the shortest", f"{ratio:.2f}×", needed, ratio <= FLAT_BAR or quick)


def kinds(report: Report, quick: bool) -> None:
    report.heading("What is asked of it: 10,000 rows a batch, a batch a second")
    batches = events(10_000, 30 if quick else 660, 20.0 if quick else 1.0)
    warm = 25 if quick else 610
    several = [*FEW, wr.Sum("x"), wr.StdDev("x")]
    for what, spec, flushed in (
        ("ten minutes", spec_of(["10m"]), False),
        ("1, 5, 10 minutes; max, count, sum, std", spec_of(["1m", "5m", "10m"], several), False),
        ("all so far, and sessions of 10 seconds", spec_of(["ever", wr.session("10s")]), False),
        ("ten minutes, in RocksDB, flushed after every push", spec_of(["10m"]), True),
    ):
        took, out = pushed(spec, batches, warm, flushed)
        told(report, what, took, 10_000)
        check(spec, batches, out)
    changed = spec_of(["10m"], emit="changes")
    took, out = pushed(changed, batches, warm)
    told(report, 'ten minutes, emit="changes": keys with others than before', took, 10_000)


def with_polars(batches: list[pa.Table], seconds: int) -> Iterator[tuple[float, pl.DataFrame]]:
    """What people do: keep the rows of the window, and compute it anew with each batch."""
    kept, frontier = pl.DataFrame(), None
    length, late = pl.duration(seconds=seconds), pl.duration(seconds=LATE)
    for batch in batches:
        start = time.perf_counter()
        new = pl.from_arrow(batch)
        assert isinstance(new, pl.DataFrame)
        kept = pl.concat([kept, new]) if kept.height else new
        border = kept.select(pl.col("t").max() - late).item()
        since = pl.lit(True) if frontier is None else pl.col("t") >= frontier
        window = f"{seconds}s"
        answers = (
            kept.filter(pl.col("t") < border)
            .sort("k", "t")
            .with_columns(
                pl.col("x").rolling_max_by("t", window).over("k").alias("max"),
                pl.col("x").is_not_null().cast(pl.Int64).rolling_sum_by("t", window).over("k"),
            )
            .filter(since)
        )
        frontier = border
        kept = kept.filter(pl.col("t") > pl.lit(border) - length)
        yield time.perf_counter() - start, answers


def peers(report: Report, quick: bool, checked: bool) -> None:
    report.heading("Beside Polars, which computes the window anew with each batch (all cores)")
    for batch, seconds in ((10_000, 20), (10_000, 100)):
        batches = events(batch, seconds + 30, 1.0)
        spec = spec_of([f"{seconds}s"])
        took, out = pushed(spec, batches, seconds + 10)
        mine = told(report, f"windrow, a window of {seconds} batches", took, batch)
        theirs = list(with_polars(batches, seconds))
        again = [found for found, _ in theirs][seconds + 10 :]
        other = told(report, f"Polars, a window of {seconds} batches", again, batch)
        found = pl.concat([answers for _, answers in theirs])["max"].to_numpy().sum()
        ours = pa.concat_tables(out[:-1])[f"x_max_{seconds}s"]
        assert np.isclose(found, np.sum(ours.to_numpy()))
        ratio = other / mine
        needed = f"≥ {POLARS_BAR:.0f}×" if checked and seconds == 100 else ""
        report.line("times as fast", f"{ratio:.1f}×", needed, ratio >= POLARS_BAR or not needed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    report = Report(("numpy", "numba", "pyarrow", "polars", "rocksdict"))
    sizes(report, quick, not quick)
    lengths(report, quick, not quick)
    kinds(report, quick)
    peers(report, quick, not quick)
    if not quick:
        text = (
            "Written by `make bench-event-stream`; see `docs/event_streams.md`. Nanoseconds a row, "
            "and milliseconds of the middle and the slowest push."
        )
        page = report.markdown("Streams in one process", text)
        (RESULTS / "event_stream.md").write_text(page)
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
