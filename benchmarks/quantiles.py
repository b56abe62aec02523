"""Rolling medians, quantiles and distinct counts: windrow, pandas, Polars and DuckDB in one run.

    python -m benchmarks.quantiles            # 2 million rows, some five minutes
    python -m benchmarks.quantiles --quick    # 200 thousand rows, bars are not checked

Every figure is nanoseconds a row, best of several after one run to warm up; every bar is a ratio
within this run. Peers use as many threads as they choose to; windrow is shown with its default (all
cores), which the bars are about, and with one.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import windrow as wr
from benchmarks.report import RESULTS, Report

SHORT, LONG = 1000, 100_000
PANDAS_BAR, POLARS_BAR, LONG_BAR, DISTINCT_BAR = 2.0, 1.5, 3.0, 10.0


def together(runs: dict[str, Callable[[], Any]], rows: int, most: float = 15.0) -> dict[str, float]:
    """Nanoseconds a row of each, best of several rounds in which all take their turn.

    A round warms up; those that took seconds take part in few rounds.
    """
    found = dict.fromkeys(runs, math.inf)
    spent = dict.fromkeys(runs, 0.0)
    for turn in range(10):
        for name, run in runs.items():
            if turn > 1 and spent[name] > most:
                continue
            start = time.perf_counter()
            run()
            took = time.perf_counter() - start
            spent[name] += took
            if turn or took > 1:
                found[name] = min(found[name], took)
    return {name: seconds / rows * 1e9 for name, seconds in found.items()}


def best(run: Callable[[], Any], rows: int) -> float:
    """Nanoseconds a row of one."""
    return together({"": run}, rows, 5.0)[""]


def ours(table: pa.Table, window: Any, aggregates: Any, threads: int | None = None) -> Any:
    spec = wr.Rolling(windows=[window], aggregates=aggregates, threads=threads)
    return lambda: spec(table)


def show(report: Report, what: str, nanoseconds: float) -> None:
    report.line(what, f"{nanoseconds:,.1f} ns")


def quantiles(report: Report, x: Any, width: int, check: bool) -> None:
    rows = len(x)
    table = pa.table({"x": x})
    series, column = pd.Series(x), pl.Series("x", x)
    for name, aggregate, pandas, polars in (
        (
            "median",
            wr.Median("x"),
            lambda: series.rolling(width, 1).median(),
            lambda: column.rolling_median(width, min_samples=1),
        ),
        (
            "p95",
            wr.Quantile("x", 0.95),
            lambda: series.rolling(width, 1).quantile(0.95),
            lambda: column.rolling_quantile(0.95, "linear", width, min_samples=1),
        ),
    ):
        report.heading(f"Rolling {name}, W = {width:,}, {rows:,} rows of float64")
        window = wr.rows(width)
        times = together(
            {
                "windrow": ours(table, window, [aggregate]),
                "windrow, one thread": ours(table, window, [aggregate], 1),
                "pandas": pandas,
                "Polars": polars,
            },
            rows,
        )
        for who, nanoseconds in times.items():
            show(report, who, nanoseconds)
        for who in ("pandas", "Polars"):
            ratio = times[who] / times["windrow"]
            bar = LONG_BAR if width == LONG else PANDAS_BAR if who == "pandas" else 1 / POLARS_BAR
            needed = f"≥ {bar:.2g}×" if check else ""
            report.line(
                f"times as fast as {who}", f"{ratio:.1f}×", needed, ratio >= bar or not check
            )
    same_answers(report, x, width)


def same_answers(report: Report, x: Any, width: int) -> None:
    """A sample of answers against NumPy, to the bit."""
    spec = wr.Rolling(windows=[wr.rows(width)], aggregates=[wr.Median("x"), wr.Quantile("x", 0.95)])
    found = spec({"x": x})
    right = 0
    places = np.random.default_rng(0).integers(0, len(x), 200)
    for i in places.tolist():
        window = x[max(0, i - width + 1) : i + 1]
        right += found[f"x_median_{width}rows"][i] == np.quantile(window, 0.5)
        right += found[f"x_p95_{width}rows"][i] == np.quantile(window, 0.95)
    share = right / (2 * len(places))
    report.line("answers equal to numpy.quantile, to the bit", f"{share:.0%}", "100%", share == 1)


def several(report: Report, x: Any) -> None:
    rows = len(x)
    table = pa.table({"x": x})
    report.heading(f"Several at once, one thread, {rows:,} rows")
    five = [wr.Quantile("x", phi) for phi in (0.05, 0.25, 0.5, 0.75, 0.95)]
    alone = best(ours(table, wr.rows(SHORT), five[:1], 1), rows)
    show(report, "one quantile, W = 1,000", alone)
    together = best(ours(table, wr.rows(SHORT), five, 1), rows)
    show(report, "five quantiles, W = 1,000: one sort", together)
    timed = table.append_column("t", pa.array(np.arange(rows))).append_column(
        "k", pa.array(np.random.default_rng(3).integers(0, 1000, rows))
    )
    spec = wr.Rolling(
        key="k", time="t", windows=[wr.time(SHORT * 1000)], aggregates=[wr.Median("x")], threads=1
    )
    show(
        report,
        "median by 1,000 keys, a time window of some 1,000 rows",
        best(lambda: spec(timed), rows),
    )
    for name, aggregate in (("rank", wr.Rank("x")), ("distinct", wr.Distinct("x"))):
        show(report, f"{name}, W = 1,000", best(ours(table, wr.rows(SHORT), [aggregate], 1), rows))
    rising = pa.table({"x": np.sort(x)})
    swings = pa.table({"x": x * (-1.0) ** np.arange(rows)})
    for name, other in (("rising values", rising), ("values that swing", swings)):
        show(
            report,
            f"median of {name}, W = 1,000",
            best(ours(other, wr.rows(SHORT), five[2:3], 1), rows),
        )


def distinct(report: Report, rows: int, check: bool) -> None:
    generator = np.random.default_rng(5)
    width = SHORT
    report.heading(f"Sliding distinct count, W = {width:,}")
    for name, values in (
        ("10,000 different integers", generator.integers(0, 10_000, rows)),
        ("floats, all different", generator.standard_normal(rows)),
    ):
        table = pa.table({"x": values})
        mine = best(ours(table, wr.rows(width), [wr.Distinct("x")]), rows)
        show(report, f"windrow, {name}, {rows:,} rows", mine)
        one = best(ours(table, wr.rows(width), [wr.Distinct("x")], 1), rows)
        show(report, f"windrow, {name}, one thread", one)
        few = min(rows, 200_000)
        part = table.slice(0, few).append_column("i", pa.array(np.arange(few)))
        frame = f"ROWS BETWEEN {width - 1} PRECEDING AND CURRENT ROW"
        query = f"SELECT count(DISTINCT x) OVER (ORDER BY i {frame}) AS n FROM part"
        connection = duckdb.connect()
        connection.register("part", part)
        theirs = best(lambda: connection.execute(query).fetchnumpy(), few)
        show(report, f"DuckDB, {name}, {few:,} rows", theirs)
        found = ours(part, wr.rows(width), [wr.Distinct("x")])()[f"x_distinct_{width}rows"]
        assert np.array_equal(found.to_numpy(), connection.execute(query).fetchnumpy()["n"])
        ratio = theirs / mine
        needed = f"≥ {DISTINCT_BAR:.0f}×" if check else ""
        report.line(
            f"times as fast as DuckDB, {name}",
            f"{ratio:.0f}×",
            needed,
            ratio >= DISTINCT_BAR or not check,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = 200_000 if quick else 2_000_000
    report = Report(("numpy", "numba", "pandas", "polars", "duckdb"))
    x = np.random.default_rng(7).standard_normal(rows) * 100 + 7
    quantiles(report, x, SHORT, not quick)
    if not quick:
        quantiles(report, x, LONG, check=True)
    several(report, x)
    distinct(report, rows, not quick)
    if not quick:
        text = "Written by `make bench-quantiles`; see `docs/quantiles.md`."
        page = report.markdown("Quantiles and distinct counts", text)
        (RESULTS / "quantiles.md").write_text(page)
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
