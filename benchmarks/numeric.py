"""The numeric catalogue on columns: windrow, pandas and Polars in one run.

    python -m benchmarks.numeric            # 1 million rows, a minute or two
    python -m benchmarks.numeric --quick    # 100 thousand rows

Every figure is nanoseconds a row on one thread, best of several after one run to warm up. Beside it
stands how far answers are from exact rational arithmetic, over a sample of windows: the largest
error in units in the last place of the true answer. The bars: no error, and the time of the fastest
peer.
"""

import argparse
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import windrow as wr
from benchmarks.quantiles import together
from benchmarks.report import RESULTS, Report
from windrow.windows import Recalc

WIDTH = 1000


def worst(answers: Any, aggregate: Any, columns: list[Any]) -> str:
    """The largest error of a sample, in units in the last place; exact answers by ``Recalc``."""
    most = 0.0
    for row in np.linspace(WIDTH, len(columns[0]) - 1, 40).astype(int).tolist():
        window = Recalc(aggregate)
        parts = [column[row - WIDTH + 1 : row + 1].tolist() for column in columns]
        for values in zip(*parts, strict=True):
            window.insert(values if len(values) > 1 else values[0])
        true = window.query()
        got = float(answers[row])
        if not math.isfinite(got):
            return "not finite"
        most = max(most, float(abs(Fraction(got) - Fraction(true)) / Fraction(math.ulp(true))))
    return f"{most:,.3g} ulp"


def _answers(spec: wr.Rolling, table: pa.Table, name: str) -> Any:
    return spec(table)[name].to_numpy()


def moments(report: Report, x: Any, y: Any, what: str) -> None:
    """Those that peers have too."""
    report.heading(f"{what}: last {WIDTH:,} rows, ns a row (largest error)")
    table = pa.table({"x": x, "y": y})
    frame = pd.DataFrame({"x": x, "y": y})
    polars = pl.DataFrame({"x": x, "y": y})
    window = frame["x"].rolling(WIDTH)
    a, b = pl.col("x"), pl.col("y")
    options = {"window_size": WIDTH}
    peers: list[tuple[Any, Any, Any]] = [
        (wr.StdDev, window.std, a.rolling_std(WIDTH)),
        (wr.Covariance, lambda: window.cov(frame["y"]), pl.rolling_cov(a, b, **options)),
        (wr.Correlation, lambda: window.corr(frame["y"]), pl.rolling_corr(a, b, **options)),
        (wr.Skewness, window.skew, a.rolling_skew(WIDTH, bias=False)),
        (wr.Kurtosis, window.kurt, a.rolling_kurtosis(WIDTH, bias=False)),
    ]
    for kind, pandas, expression in peers:
        two = kind in (wr.Covariance, wr.Correlation)
        names = ("x", "y") if two else ("x",)
        spec = wr.Rolling(windows={"w": wr.rows(WIDTH)}, aggregates=[kind(*names)], threads=1)
        answer = spec.outputs[0][0]
        runs: dict[str, Callable[[], Any]] = {
            "windrow": partial(_answers, spec, table, answer),
            "pandas": pandas,
            "Polars": partial(polars.select, expression.alias(answer)),
        }
        times = together(runs, len(x), 4.0)
        least = min(times["pandas"], times["Polars"])
        for who, nanoseconds in times.items():
            error = worst(np.asarray(runs[who]()).ravel(), kind(), [x, y][: len(names)])
            ours = who == "windrow"
            good = not ours or (nanoseconds <= least and error == "0 ulp")
            needed = f"{least:,.1f} ns" if ours else ""
            measured = f"{nanoseconds:,.1f} ns ({error})"
            report.line(f"{kind.__name__}, {who}", measured, needed, good)


def others(report: Report, x: Any, y: Any) -> None:
    """Those that peers do not have."""
    report.heading(f"Others: last {WIDTH:,} rows, ns a row")
    whole = (np.abs(y) * 1000).astype(np.int64)
    table = pa.table({"x": x, "y": y, "i": whole, "b": whole % 3 == 0})
    aggregates = [
        *(wr.Slope("x", "y"), wr.WeightedMean("x", "i"), wr.Product("x"), wr.Spread("x")),
        *(wr.RelativeVariation("x"), wr.ArgMin("i", "x"), wr.MinCount("i"), wr.All("b")),
        *(wr.Any("b"), wr.BitAnd("i"), wr.BitOr("i"), wr.BitXor("i")),
    ]
    for aggregate in aggregates:
        spec = wr.Rolling(windows=[wr.rows(WIDTH)], aggregates=[aggregate], threads=1)
        nanoseconds = together({"": partial(spec, table)}, len(x), 2.0)[""]
        report.line(repr(aggregate), f"{nanoseconds:,.1f} ns")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = 100_000 if quick else 1_000_000
    report = Report(("numpy", "numba", "pandas", "polars"))
    generator = np.random.default_rng(3)
    x, y = generator.standard_normal(rows) * 100 + 7, generator.standard_normal(rows)
    moments(report, x, y + x / 100, "Normal values")
    prices = 1e6 + np.cumsum(generator.standard_normal(rows)) / 10
    moments(report, prices, y + prices, "A price that wanders around a million")
    others(report, x, y)
    if not quick:
        text = "Written by `make bench-numeric`; what is promised is in `docs/semantics.md`."
        (RESULTS / "numeric.md").write_text(report.markdown("Numeric aggregates", text))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
