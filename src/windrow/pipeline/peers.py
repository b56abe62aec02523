"""Other libraries that can answer some of the same questions, for ``windrow bench``.

Each peer says which aggregates and windows it has, and answers all of them from the same table, in
the same order of rows. Nothing is claimed of their answers: they are compared.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import (
    Aggregate,
    Count,
    Distinct,
    Max,
    Mean,
    Median,
    Min,
    Quantile,
    StdDev,
    Sum,
    Variance,
)
from windrow.rolling import Rolling
from windrow.slides import Rows, Time, WindowSpec
from windrow.times import Duration

ROW = "bench_row"
"""A column with the number of each row, that answers are put in order by."""


@dataclass(frozen=True)
class Peer:
    """A library: what it can do, how its table is made, how it answers."""

    name: str
    module: str
    aggregate: Callable[[Aggregate], bool]
    window: Callable[[WindowSpec], bool]
    prepare: Callable[[Rolling, pa.Table], Any]
    answer: Callable[[Rolling, Any], Any]
    columns: Callable[[Any, str], pa.Array]
    note: str = ""

    @property
    def installed(self) -> bool:
        """Whether it can be imported."""
        return importlib.util.find_spec(self.module) is not None


def part_for(peer: Peer, spec: Rolling) -> Rolling | None:
    """The part of a specification that a peer can answer; None where it is nothing."""
    if spec.every is not None or spec.min_rows > 1:
        return None
    part = spec.part(
        lambda a, label: (
            peer.window(spec.windows[label]) and peer.aggregate(a) and a.reads == a.columns
        )
    )
    if not part.outputs or (spec.time is None and peer.module == "polars"):
        return None
    return part


def over(spec: Rolling, label: str) -> list[Aggregate]:
    """The aggregates over a window."""
    return [aggregate for _, aggregate, window in spec.outputs if window == label]


def _nanoseconds(length: Any) -> int:
    return length.nanoseconds if isinstance(length, Duration) else int(length)


def _plain(window: WindowSpec) -> bool:
    """A window up to the current row, of rows or of time with a unit."""
    if isinstance(window, Rows):
        return not (window.ending or window.after or window.within)
    return (
        isinstance(window, Time)
        and isinstance(window.length, Duration)
        and not (window.kind == "ever" or window.ending or window.after)
    )


def _order(spec: Rolling) -> list[str]:
    return [*([spec.time] if spec.time else []), *spec.tie]


# --- pandas --------------------------------------------------------------------------------------

_PANDAS = {Sum: "sum", Mean: "mean", Min: "min", Max: "max", Median: "median"}


def _in_pandas(aggregate: Aggregate) -> bool:
    known = (*_PANDAS, Count, StdDev, Variance, Quantile)
    return type(aggregate) in known and getattr(aggregate, "method", "linear") == "linear"


def _pandas_table(spec: Rolling, table: pa.Table) -> Any:
    return table.to_pandas()


def _pandas_answer(spec: Rolling, frame: Any) -> Any:
    """Rows by key and time, since pandas gives answers in the order of groups."""
    by = [*spec.key, *_order(spec)]
    frame = frame.sort_values(by, kind="stable") if by else frame
    place = frame[ROW].to_numpy()
    out = {}
    for label, window in spec.windows.items():
        if isinstance(window, Rows):
            options: dict[str, Any] = {"window": window.n, "min_periods": 1}
        else:
            assert isinstance(window, Time)
            options = {"window": f"{_nanoseconds(window.length)}ns", "closed": window.closed}
            options["on"] = spec.time
        for aggregate in over(spec, label):
            column = aggregate.columns[0] if aggregate.columns else ROW
            base = frame[list(dict.fromkeys([*by, column]))]
            grouped = base.groupby(list(spec.key), dropna=False) if spec.key else base
            found = np.empty(len(place))
            found[place] = _pandas_one(grouped.rolling(**options)[column], aggregate).to_numpy()
            out[f"{aggregate.output_name}_{label}"] = found
    return out


def _pandas_one(rolling: Any, aggregate: Aggregate) -> Any:
    if type(aggregate) is Count:
        return rolling.count().fillna(0)
    if isinstance(aggregate, StdDev):
        return rolling.std(ddof=aggregate.ddof)
    if isinstance(aggregate, Variance):
        return rolling.var(ddof=aggregate.ddof)
    if type(aggregate) is Quantile:
        return rolling.quantile(aggregate.phi)
    return getattr(rolling, _PANDAS[type(aggregate)])()


# --- Polars --------------------------------------------------------------------------------------

_POLARS = {Sum: "sum", Mean: "mean", Min: "min", Max: "max", Median: "median"}


def _in_polars(aggregate: Aggregate) -> bool:
    known = (*_POLARS, Count, StdDev, Variance, Quantile)
    return type(aggregate) in known and getattr(aggregate, "method", "linear") == "linear"


def _polars_table(spec: Rolling, table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def _polars_answer(spec: Rolling, frame: Any) -> Any:
    import polars as pl

    frame = frame.sort(_order(spec), maintain_order=True)
    made = []
    for label, window in spec.windows.items():
        for aggregate in over(spec, label):
            found = _polars_one(pl, aggregate, window, spec.time)
            found = found.over(list(spec.key)) if spec.key else found
            made.append(found.alias(f"{aggregate.output_name}_{label}"))
    return frame.select(ROW, *made).sort(ROW)


def _polars_one(pl: Any, aggregate: Aggregate, window: WindowSpec, by: str | None) -> Any:
    if isinstance(window, Rows):
        ending, first = "", []
        options: dict[str, Any] = {"window_size": window.n, "min_samples": 1}
    else:
        assert isinstance(window, Time)
        microseconds = _nanoseconds(window.length) // 1000
        ending, first = "_by", [by]
        options = {"window_size": f"{microseconds}us", "closed": window.closed, "min_samples": 1}
    if type(aggregate) is Count:
        value = (
            pl.col(aggregate.columns[0]).is_not_null() if aggregate.columns else pl.col(ROW) >= 0
        )
        found = getattr(value.cast(pl.Int64), f"rolling_sum{ending}")(*first, **options)
        return found.fill_null(0)
    column = pl.col(aggregate.columns[0])
    if isinstance(aggregate, StdDev):
        return getattr(column, f"rolling_std{ending}")(*first, ddof=aggregate.ddof, **options)
    if isinstance(aggregate, Variance):
        return getattr(column, f"rolling_var{ending}")(*first, ddof=aggregate.ddof, **options)
    if type(aggregate) is Quantile:
        rolling = getattr(column, f"rolling_quantile{ending}")
        return rolling(*first, quantile=aggregate.phi, interpolation="linear", **options)
    return getattr(column, f"rolling_{_POLARS[type(aggregate)]}{ending}")(*first, **options)


# --- DuckDB --------------------------------------------------------------------------------------

_TIME = "bench_time"
_DUCK = {Sum: "sum", Mean: "avg", Min: "min", Max: "max", Median: "median"}


def _in_duckdb(aggregate: Aggregate) -> bool:
    if isinstance(aggregate, Distinct):
        return not aggregate.values
    known = (*_DUCK, Count, StdDev, Variance, Quantile)
    return type(aggregate) in known and getattr(aggregate, "method", "linear") == "linear"


def _duckdb_table(spec: Rolling, table: pa.Table) -> Any:
    """The table with its time as a number, so that ends of windows can be told exactly."""
    import duckdb

    if spec.time is not None:
        times = table[spec.time]
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
        table = table.append_column(_TIME, times.cast(pa.int64()))
    base = duckdb.connect()
    base.register("given", table)
    base.execute("CREATE TABLE bench AS SELECT * FROM given")
    return base


def _duckdb_answer(spec: Rolling, base: Any) -> Any:
    keys = ", ".join(f'"{name}"' for name in spec.key)
    partition = f"PARTITION BY {keys} " if keys else ""
    made = []
    for label, window in spec.windows.items():
        ordered = ", ".join([*([_TIME] if spec.time else []), *(f'"{name}"' for name in spec.tie)])
        if isinstance(window, Rows):
            ordered = ", ".join(filter(None, [ordered, ROW]))
            frame = f"ROWS BETWEEN {window.n - 1} PRECEDING AND CURRENT ROW"
        else:
            assert isinstance(window, Time)
            ordered = _TIME
            low = _nanoseconds(window.length) // 1000 - (not window.includes_start)
            high = "CURRENT ROW" if window.includes_end else "1 PRECEDING"
            frame = f"RANGE BETWEEN {low} PRECEDING AND {high}"
        frame = f"OVER ({partition}ORDER BY {ordered} {frame})"
        for aggregate in over(spec, label):
            made.append(f'{_duckdb_one(aggregate)} {frame} AS "{aggregate.output_name}_{label}"')
    text = f"SELECT {ROW}, {', '.join(made)} FROM bench ORDER BY {ROW}"
    return base.sql(text).to_arrow_table()


def _duckdb_one(aggregate: Aggregate) -> str:
    if not aggregate.columns:
        return "count(*)"
    column = f'"{aggregate.columns[0]}"'
    if isinstance(aggregate, Count):
        return f"count({column})"
    if isinstance(aggregate, Distinct):
        return f"count(DISTINCT {column})"
    if isinstance(aggregate, StdDev):
        return f"stddev_{'samp' if aggregate.ddof else 'pop'}({column})"
    if isinstance(aggregate, Variance):
        return f"var_{'samp' if aggregate.ddof else 'pop'}({column})"
    if type(aggregate) is Quantile:
        return f"quantile_cont({column}, {aggregate.phi})"
    return f"{_DUCK[type(aggregate)]}({column})"


PEERS = (
    Peer(
        "pandas",
        "pandas",
        _in_pandas,
        _plain,
        _pandas_table,
        _pandas_answer,
        lambda answer, name: pa.array(answer[name], from_pandas=True),
        "it leaves later rows of equal time out of a row's window",
    ),
    Peer(
        "Polars",
        "polars",
        _in_polars,
        _plain,
        _polars_table,
        _polars_answer,
        lambda answer, name: answer[name].to_arrow(),
    ),
    Peer(
        "DuckDB",
        "duckdb",
        _in_duckdb,
        _plain,
        _duckdb_table,
        _duckdb_answer,
        lambda answer, name: answer[name].combine_chunks(),
    ),
)
