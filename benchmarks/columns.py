"""Columns: windrow against pandas, Polars, bottleneck, numbagg and DuckDB, side by side in one run.

    python -m benchmarks.columns            # 10 million rows, a quarter of an hour
    python -m benchmarks.columns --quick    # 1 million rows, for a first look

Every figure is nanoseconds per row, best of several; every bar is a ratio within this run. Beside
each time stands the share of answers that are exactly right, which is the correctly rounded value
(``math.fsum``, ``statistics.stdev``), over a sample of windows.
"""

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bottleneck
import duckdb
import numbagg
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import windrow as wr
from windrow.columns.builtin import kernels
from windrow.columns.jit import njit

RESULTS = Path(__file__).parent / "results"


class Bench:
    """Times, compares, and remembers which bars were missed."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        generator = np.random.default_rng(11)
        self.x = generator.standard_normal(rows) * 100 + 7
        self.ticks = np.cumsum(generator.exponential(1000, rows)).astype(np.int64)
        self.table = pa.table({"t": pa.array(self.ticks).view(pa.timestamp("us")), "x": self.x})
        self.series = pd.Series(self.x)
        self.timed = pd.Series(self.x, index=pd.to_datetime(self.ticks, unit="us"))
        self.frame = pl.DataFrame({"t": self.ticks, "x": self.x}).with_columns(
            pl.col("t").cast(pl.Datetime("us"))
        )
        self.widths = (16, 1024, 1 << 20 if rows > 4 << 20 else 1 << 17)
        self.missed: list[str] = []
        self.figures: dict[str, Any] = {}

    def best(self, run: Callable[[], Any], repeat: int = 7, rows: int | None = None) -> float:
        """Nanoseconds a row, best of several after one run to warm up."""
        run()
        found = math.inf
        for _ in range(repeat):
            start = time.perf_counter()
            run()
            found = min(found, time.perf_counter() - start)
        return found / (rows or self.rows) * 1e9

    def bar(self, what: str, ratio: float, least: float) -> None:
        good = ratio >= least
        print(f"    {what}: {ratio:.2f}× (bar {least}×){'' if good else '   MISSED'}", flush=True)
        self.figures[what] = round(ratio, 3)
        if not good:
            self.missed.append(what)

    def at_most(self, what: str, ratio: float, most: float) -> None:
        good = ratio <= most
        print(
            f"    {what}: {ratio:.2f}× (at most {most}×){'' if good else '   MISSED'}", flush=True
        )
        self.figures[what] = round(ratio, 3)
        if not good:
            self.missed.append(what)

    # --- exactness ------------------------------------------------------------------------------

    def share_right(self, name: str, answers: Any, lo: Callable[[int], int]) -> str:
        if name not in ("sum", "mean", "std"):
            return ""
        out = np.asarray(answers, float)
        first = self.rows // 3
        picked = np.random.default_rng(2).integers(first, self.rows, 200)
        if first - lo(first) > 10_000:
            picked = picked[:8]
        right = 0
        for i in picked:
            window = self.x[lo(int(i)) : i + 1]
            total = math.fsum(window)
            if name == "sum":
                right += out[i] == total
            elif name == "mean":
                right += out[i] == total / len(window)
            else:
                right += out[i] == statistics.stdev(window.tolist())  # by exact fractions
        return f" [{right / len(picked):4.0%} right]"

    def line(self, who: str, ns: float, right: str) -> None:
        print(f"      {who:12}{ns:9.2f} ns{right}", flush=True)


def fixed_rows(b: Bench) -> dict[str, dict[int, float]]:
    ours: dict[str, dict[int, float]] = {}
    for width in b.widths:
        for name, aggregate in (
            ("max", wr.Max),
            ("min", wr.Min),
            ("sum", wr.Sum),
            ("mean", wr.Mean),
            ("std", wr.StdDev),
        ):
            print(f"  {name} of the last {width} rows")
            spec = wr.Rolling(windows=[wr.rows(width)], aggregates=[aggregate("x")], threads=1)
            mine = b.best(lambda: spec(b.table))
            answers = spec(b.table)[f"x_{name}_{width}rows"].to_numpy()
            ours.setdefault(name, {})[width] = mine
            lo = lambda i: max(0, i - width + 1)  # noqa: E731
            b.line("windrow", mine, b.share_right(name, answers, lo))
            rolling = b.series.rolling(width, 1)
            column = b.frame["x"]
            few = 2 if name == "std" else 1
            peers: dict[str, Callable[[], Any]] = {
                "pandas": lambda: getattr(rolling, name)(),
                "polars": lambda: getattr(column, f"rolling_{name}")(width, min_samples=few),
            }
            if name != "mean":
                peers["bottleneck"] = lambda: getattr(bottleneck, f"move_{name}")(b.x, width, few)
            else:
                peers["bottleneck"] = lambda: bottleneck.move_mean(b.x, width, 1)
            if hasattr(numbagg, f"move_{name}"):
                peers["numbagg"] = lambda: getattr(numbagg, f"move_{name}")(
                    b.x, window=width, min_count=few
                )
            times = {}
            for who, run in peers.items():
                times[who] = b.best(run)
                b.line(who, times[who], b.share_right(name, run(), lo))
            if name in ("max", "min"):
                b.bar(f"{name} {width} rows, fastest peer", min(times.values()) / mine, 2)
            elif name in ("sum", "mean"):
                b.bar(f"{name} {width} rows, Polars", times["polars"] / mine, 1.4)
                b.bar(f"{name} {width} rows, pandas", times["pandas"] / mine, 2)
            else:
                b.bar(f"{name} {width} rows, Polars", times["polars"] / mine, 1)
                b.bar(f"{name} {width} rows, pandas", times["pandas"] / mine, 1.3)
    return ours


def time_windows(b: Bench) -> dict[str, dict[int, float]]:
    ours: dict[str, dict[int, float]] = {}
    part = min(b.rows, 500_000)
    duckdb.register("source", b.table.slice(0, part))
    for width in b.widths:
        for name, aggregate, least in (
            ("max", wr.Max, 2.5),
            ("sum", wr.Sum, 1.5),
            ("std", wr.StdDev, 1.2),
        ):
            length = f"{width}ms"
            print(f"  {name} of the last {length}, irregular times, about {width} rows")
            spec = wr.Rolling(time="t", windows=[length], aggregates=[aggregate("x")], threads=1)
            mine = b.best(lambda: spec(b.table))
            ours.setdefault(name, {})[width] = mine
            answers = spec(b.table)[f"x_{name}_{length}"].to_numpy()
            lo = lambda i: int(np.searchsorted(b.ticks, b.ticks[i] - width * 1000, "right"))  # noqa: E731
            b.line("windrow", mine, b.share_right(name, answers, lo))
            rolling = b.timed.rolling(length)
            theirs = b.best(lambda: getattr(rolling, name)(), 4)
            b.line("pandas", theirs, b.share_right(name, getattr(rolling, name)(), lo))
            expression = getattr(pl.col("x"), f"rolling_{name}_by")("t", window_size=length)
            polars = b.best(lambda: b.frame.select(expression), 4)
            b.line("polars", polars, b.share_right(name, b.frame.select(expression)["x"], lo))
            b.bar(f"{name} {length}, pandas", theirs / mine, least)
            b.bar(f"{name} {length}, Polars", polars / mine, least)
            if width <= 1024:
                function = {"std": "stddev_samp"}.get(name, name)
                query = (
                    f"select {function}(x) over (order by t range between interval {width} "
                    "milliseconds preceding and current row) from source"
                )
                duckdb.sql("set threads to 1")
                slow = b.best(lambda: duckdb.sql(query).fetchnumpy(), 1, part)  # type: ignore[union-attr]
                b.line("duckdb", slow, f"  (on {part:,} rows)")
                b.bar(f"{name} {length}, DuckDB RANGE", slow / mine, 20)
    return ours


def growth(b: Bench, rows: dict[str, dict[int, float]], timed: dict[str, dict[int, float]]) -> None:
    """Each algorithm against itself; what ``auto`` chooses may change with the width."""
    wide = b.widths[-1]
    print(f"  time at {wide} rows against 16 rows")
    for algorithm in ("two_stacks_lite", "daba_lite"):
        for aggregate in (wr.Max, wr.Sum, wr.Mean, wr.StdDev)[: 4 if algorithm[0] == "t" else 1]:
            times = {}
            for width in (16, wide):
                spec = wr.Rolling(
                    windows=[wr.rows(width)],
                    aggregates=[aggregate("x")],
                    threads=1,
                    algorithm=algorithm,
                )
                times[width] = b.best(lambda: spec(b.table))
            what = f"growth {aggregate.name}, {algorithm}"
            b.at_most(what, times[wide] / times[16], 1.5)
    for name, by_width in timed.items():
        b.at_most(f"growth {name}, time windows", by_width[wide] / by_width[16], 1.5)
    shown = ", ".join(f"{name} {w[wide] / w[16]:.2f}×" for name, w in rows.items())
    print(f"      what auto chooses, fixed rows (no bar): {shown}")


class GeoMean(wr.Aggregate):
    """The user's own."""

    identity = (0.0, 0)
    commutative = True

    @staticmethod
    def lift(x):  # type: ignore[no-untyped-def]
        return (math.log(x), 1)

    @staticmethod
    def combine(a, b):  # type: ignore[no-untyped-def]
        return (a[0] + b[0], a[1] + b[1])

    @staticmethod
    def lower(p):  # type: ignore[no-untyped-def]
        return math.exp(p[0] / p[1])


@njit(nogil=True)
def by_hand(x, width, out):  # type: ignore[no-untyped-def]
    """A geometric mean of the last ``width`` rows, in blocks, as one would write it."""
    n = len(x)
    suffix = np.zeros(width + 1)
    for start in range(0, n, width):
        end = min(start + width, n)
        total = 0.0
        for i in range(start, end):
            total += math.log(x[i])
            kept = suffix[i - start + 1]
            out[i] = math.exp((kept + total) / min(i + 1, width))
        total = 0.0
        for i in range(end - 1, start - 1, -1):
            total += math.log(x[i])
            suffix[i - start] = total
        suffix[end - start :] = 0.0


def own_aggregate(b: Bench) -> None:
    print("  a user's geometric mean of the last 1000 rows")
    positive = np.abs(b.x) + 1.0
    table = pa.table({"x": positive})
    spec = wr.Rolling(windows=[wr.rows(1000)], aggregates=[GeoMean("x")], threads=1)
    mine = b.best(lambda: spec(table))
    b.line("windrow", mine, "")
    out = np.empty(b.rows)
    hand = b.best(lambda: by_hand(positive, 1000, out))
    b.line("by hand", hand, "")
    np.testing.assert_allclose(spec(table)["x_geo_mean_1000rows"].to_numpy(), out, rtol=1e-9)
    few = 50_000
    series = pd.Series(positive[:few]).rolling(1000, 1)
    slow = b.best(lambda: series.apply(lambda v: math.exp(np.log(v).mean()), raw=True), 1, few)
    b.line("pandas apply", slow, f"  (on {few:,} rows)")
    b.at_most("own aggregate, by hand", mine / hand, 1.5)
    b.bar("own aggregate, pandas apply", slow / mine, 100)


def many(b: Bench) -> None:
    print("  4 aggregates × 3 windows of one column")
    widths = (60, 600, 3600)
    spec = wr.Rolling(
        windows=[wr.rows(w) for w in widths],
        aggregates=[wr.Sum("x"), wr.Mean("x"), wr.Max("x"), wr.StdDev("x")],
        threads=1,
    )
    mine = b.best(lambda: spec(b.table))
    b.line("windrow", mine, "")

    def pandas() -> None:
        for w in widths:
            rolling = b.series.rolling(w, 1)
            rolling.sum(), rolling.mean(), rolling.max(), rolling.std()

    theirs = b.best(pandas, 3)
    b.line("pandas", theirs, "")
    b.bar("4 × 3, pandas", theirs / mine, 3)


def threads(b: Bench) -> None:
    print("  two threads against one: max, sum and std of the last second, about 1,000 rows")
    keys = np.sort(np.random.default_rng(5).integers(0, 1000, b.rows))
    table = b.table.append_column("k", pa.array(keys))
    aggregates = [wr.Max("x"), wr.Sum("x"), wr.StdDev("x")]
    for what, key in (("one key", None), ("1,000 keys", "k")):
        times = {}
        for count in (1, 2):
            spec = wr.Rolling(
                key=key, time="t", windows=["1s"], aggregates=aggregates, threads=count
            )
            times[count] = b.best(lambda: spec(table), 9)
            b.line(f"{count} thread(s)", times[count], f"  {what}")
        b.bar(f"two threads, {what}", times[1] / times[2], 1.6)


@njit(nogil=True)
def running_max(x, out):  # type: ignore[no-untyped-def]
    best = x[0]
    for i in range(len(x)):
        best = max(best, x[i])
        out[i] = best


def daba_lite(b: Bench) -> None:
    print("  DABA Lite compiled: evict + insert + query, W = 2^14, max")
    width = 1 << 14
    rows = np.arange(b.rows)
    lo, hi = np.maximum(rows - width + 1, 0), rows + 1
    out = np.empty(b.rows)
    module = kernels("max")
    mine = b.best(lambda: module.steady(b.x, lo, hi, 0, b.rows, -np.inf, 0.0, out))
    plain = b.best(lambda: running_max(b.x, out))
    b.line("DABA Lite", mine, "")
    b.line("running max", plain, "")
    b.figures["DABA Lite round, ns"] = round(mine, 2)
    b.figures["DABA Lite / running max"] = round(mine / plain, 2)
    b.at_most("DABA Lite round in units of IBM's C++ (9 ns)", mine / 9.0, 1.0)


FRESH = """
import time
start = time.perf_counter()
import numba, numpy as np
@numba.njit
def nothing(x):
    return x + 1
nothing(1)
own = time.perf_counter() - start
import windrow as wr
start = time.perf_counter()
wr.Rolling(windows=[wr.rows(100)], aggregates=[wr.Max("x"), wr.Sum("x")])({"x": np.arange(1000.0)})
print(own, time.perf_counter() - start)
"""

MEMORY = """
import sys
import numpy as np, pyarrow as pa, windrow as wr
n = int(sys.argv[1])
spec = wr.Rolling(time="t", windows=[wr.time(1_000_000)], aggregates=[wr.Max("x")])
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
spec(pa.table({"t": np.arange(10), "x": np.arange(10.0)}))
before = peak()
generator = np.random.default_rng(1)
time = np.arange(n) * 1000
x = np.empty(n)
generator.standard_normal(out=x)
table = pa.table({"t": time, "x": x})
out = spec(table)
data = time.nbytes + x.nbytes + n * 8
print((peak() - before) / data)
"""


def fresh(b: Bench) -> None:
    print("  a fresh process with a warm cache")
    found = []
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", FRESH], capture_output=True, text=True, check=True
        )
        found.append(tuple(map(float, done.stdout.split())))
    own, call = min(f[0] for f in found[1:]), min(f[1] for f in found[1:])
    print(f"      numba's own start {own:.2f} s; first Rolling call {call:.2f} s more")
    b.at_most("first call, in units of 0.3 s", call / 0.3, 1.0)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(b.rows)], capture_output=True, text=True, check=True
    )
    b.at_most("peak memory / (input + output), time window", float(done.stdout), 3.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1 million rows")
    b = Bench(1_000_000 if parser.parse_args().quick else 10_000_000)
    packages = ("pandas", "polars", "bottleneck", "numbagg", "duckdb", "numba", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"{b.rows:,} rows, {platform.machine()}, Python {platform.python_version()}, {versions}")
    print("fixed row windows, one thread")
    rows = fixed_rows(b)
    print("time windows, one thread")
    timed = time_windows(b)
    print("growth")
    growth(b, rows, timed)
    print("the rest")
    own_aggregate(b)
    many(b)
    threads(b)
    daba_lite(b)
    fresh(b)
    RESULTS.mkdir(exist_ok=True)
    text = {"rows": b.rows, "versions": versions, "ratios": b.figures, "missed": b.missed}
    (RESULTS / "columns.json").write_text(json.dumps(text, indent=1) + "\n")
    print(f"\n{len(b.figures)} figures, missed: {', '.join(b.missed) or 'none'}")


if __name__ == "__main__":
    main()
