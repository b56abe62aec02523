"""Answers made of the window's own values, on columns: every kind of window, type and size."""

import math
from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_rolling import FLOATS, check, tables
from windrow.errors import BadSpecification, BadValue
from windrow.windows.compare import equal


def structures(column: str, other: str = "t") -> list[Any]:
    return [
        wr.M4(column, other),
        wr.TopK(column, 1),
        wr.TopK(column, 3),
        wr.BottomK(column, 2),
        wr.Collect(column),
        wr.Mode(column),
        wr.Histogram(column),
        wr.Histogram(column, most=2).alias("most"),
        wr.Entropy(column),
        wr.Entropy(column, base=math.e).alias("nats"),
    ]


@given(tables(FLOATS), st.integers(0, 2), st.sampled_from(["value", "missing"]), st.data())
@examples(40)
def test_bounds_that_move_back(table: pa.Table, min_rows: int, nan: Any, data: Any) -> None:
    size = table.num_rows
    for name in ("lo", "hi"):
        ends = data.draw(st.lists(st.integers(-3, 14), min_size=size, max_size=size))
        table = table.append_column(name, pa.array(ends, pa.int64()))
    spec = wr.Rolling(
        key="k",
        time="t",
        windows=[wr.bounds("lo", "hi"), wr.time(3, after=2), wr.rows(4, ending=1)],
        aggregates=structures("x", "y"),
        min_rows=min_rows,
        nan=nan,
    )
    check(spec, table)


VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [3, -1, None, 3, 7, 0],
    pa.uint64(): [2**63, 5, None, 2**64 - 1, 5, 5],
    pa.float32(): [0.5, -0.0, None, 1.5, 0.5, 0.0],
    pa.bool_(): [True, False, None, False, True, True],
    pa.string(): ["b", "a", None, "", "b", "ä"],
    pa.large_binary(): [b"b", b"", None, b"\xff", b"b", b""],
    pa.decimal128(9, 2): [Decimal("1.50"), Decimal("-2"), None, Decimal("1.5"), Decimal(0), None],
    pa.date32(): [date(2024, 2, 29), date(1970, 1, 1), None, date(1900, 1, 1), None, None],
    pa.time64("us"): [time(1, 2), time(0), None, time(23, 59, 59, 5), time(0), time(1)],
    pa.timestamp("us", "UTC"): [datetime(2024, 1, d, tzinfo=UTC) for d in (3, 1, 2, 3, 9, 1)],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_type(kind: pa.DataType) -> None:
    """Types are those of the column, also where there is no row, or no value."""
    table = pa.table({"x": pa.array(VALUES[kind], kind), "t": pa.array(range(6), pa.int64())})
    spec = wr.Rolling(
        time="t", windows=[wr.rows(1), wr.rows(4)], aggregates=structures("x"), min_rows=1
    )
    check(spec, table)
    answers = spec(table)
    for part in (table.slice(0, 0), table.slice(2, 1)):
        assert spec(part).schema == answers.schema
    corner = answers["x_m4_4rows"].type
    assert [field.type for field in corner][:2] == [kind, pa.int64()]
    assert answers["x_top3_4rows"].type == answers["x_collect_1rows"].type == pa.list_(kind)
    assert answers["x_mode_4rows"].type == kind
    counted = pa.struct([("value", kind), ("count", pa.int64())])
    assert answers["x_histogram_1rows"].type == answers["most_4rows"].type == pa.list_(counted)
    windows = [VALUES[kind][max(0, i - 3) : i + 1] for i in range(6)]
    lists = [[value for value in window if value is not None] for window in windows]
    assert answers["x_collect_4rows"].to_pylist() == [held or None for held in lists]
    assert answers["x_bottom2_4rows"].to_pylist() == [sorted(held)[:2] or None for held in lists]


def test_nanoseconds_are_kept() -> None:
    ticks = np.array([5, 10**18 + 1, 10**18 + 2], np.int64)
    times = pa.array(ticks).view(pa.timestamp("ns"))
    table = pa.table({"x": times, "y": [1.0, 3.0, 2.0]})
    spec = wr.Rolling(windows=[wr.rows(3)], aggregates=[wr.TopK("x", 2), wr.M4("y", "x")])
    answers = spec(table)
    top = answers["x_top2_3rows"].combine_chunks()
    assert top.values.view(pa.int64()).to_pylist()[-2:] == [10**18 + 2, 10**18 + 1]
    corners = answers["y_m4_3rows"].combine_chunks()
    assert corners.field("max_time").view(pa.int64()).to_pylist()[-1] == 10**18 + 1


def _rank(pair: tuple[float, int]) -> Any:
    """The most frequent first, then the smallest, NaN last."""
    value, n = pair
    return -n, value != value, value


@pytest.mark.parametrize("threads", [1, 3])
def test_many_rows(threads: int) -> None:
    """More than one block, thread and window length, against plain NumPy on a sample of rows."""
    generator = np.random.default_rng(threads)
    size = 50_000
    x = np.round(generator.standard_normal(size) * 20)
    x[generator.random(size) < 0.01] = np.nan
    gone = generator.random(size) < 0.1
    when = np.cumsum(generator.integers(0, 3, size))
    table = pa.table({"t": when, "x": pa.array(x, mask=gone)})
    lengths = {"short": wr.rows(7), "long": wr.rows(3000), "time": wr.time(500)}
    aggregates = [a for a in structures("x") if not isinstance(a, wr.Collect)]
    answers = wr.Rolling(time="t", windows=lengths, aggregates=aggregates, threads=threads)(table)
    shorter = wr.Rolling(time="t", windows={"w": wr.rows(40)}, aggregates=[wr.Collect("x")])(table)
    columns = {name: answers[name] for name in answers.column_names}
    for i in generator.integers(0, size, 60).tolist():
        starts = {
            "short": max(0, i - 6),
            "long": max(0, i - 2999),
            "time": int(np.searchsorted(when, when[i] - 500, side="right")),
        }
        for label, start in starts.items():
            end = int(np.searchsorted(when, when[i], side="right")) if label == "time" else i + 1
            rows = np.flatnonzero(~gone[start:end]) + start
            if not len(rows):
                continue
            held = x[rows] + 0.0
            ordered = np.sort(held)
            solid = Counter(ordered[~np.isnan(ordered)].tolist())
            nans = int(np.isnan(held).sum())
            counts = [*solid.values(), *([nans] if nans else [])]
            got = {name: columns[f"{name}_{label}"][i].as_py() for name in (
                "x_m4", "x_top1", "x_top3", "x_bottom2", "x_mode", "x_entropy", "nats",
                "x_histogram", "most",
            )}  # fmt: skip
            assert equal(got["x_top3"], ordered[::-1][:3].tolist())
            assert equal(got["x_top1"], ordered[::-1][:1].tolist())
            assert equal(got["x_bottom2"], ordered[:2].tolist())
            most = max(counts)
            modes = sorted(v for v, n in solid.items() if n == most)
            assert equal(got["x_mode"], modes[0] if modes else math.nan)
            pairs = sorted([*solid.items(), *([(math.nan, nans)] if nans else [])], key=_rank)
            wanted = [{"value": value, "count": n} for value, n in pairs]
            assert equal(got["x_histogram"], wanted)
            assert equal(got["most"], wanted[:2])
            shares = np.array(counts) / len(held)
            assert got["nats"] == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12)
            assert got["x_entropy"] == pytest.approx(got["nats"] / math.log(2), rel=1e-14)
            low = rows[0] if np.isnan(held).all() else rows[np.nanargmin(held)]
            high = rows[np.flatnonzero(np.isnan(held))[0]] if nans else rows[np.argmax(held)]
            for corner, row in zip(
                ("first", "min", "max", "last"), (rows[0], low, high, rows[-1]), strict=True
            ):
                assert equal(got["x_m4"][corner], float(x[row] + 0.0))
                assert got["x_m4"][f"{corner}_time"] == when[row]
        rows = np.flatnonzero(~gone[max(0, i - 39) : i + 1]) + max(0, i - 39)
        assert equal(shorter["x_collect_w"][i].as_py(), (x[rows] + 0.0).tolist() or None)


def test_entropy_near_nothing_keeps_its_digits() -> None:
    """One odd row among a million: log(rows / n) would lose half of the digits."""
    aggregate = wr.Entropy(base=math.e)
    n = 1_000_000
    p = 1 / n
    expected = -p * math.log(p) - (1 - p) * math.log1p(-p)
    assert aggregate.lower(((0, 1), (n - 1, 1))) == pytest.approx(expected, rel=1e-15)


def test_lists_that_no_column_can_hold() -> None:
    table = pa.table({"x": np.zeros(100_000)})
    spec = wr.Rolling(windows=[wr.rows(50_000)], aggregates=[wr.Collect("x")])
    with pytest.raises(BadValue, match=r"Collect\('x'\).* more than a column can hold"):
        spec(table)


def test_names_options_and_mistakes() -> None:
    assert wr.TopK("price", 3).output_name == "price_top3"
    assert wr.BottomK("price", k=5).output_name == "price_bottom5"
    assert repr(wr.TopK("price", 3)) == "TopK('price', k=3)"
    assert wr.M4("price", "at").output_name == "price_m4"
    assert repr(wr.Entropy("x")) == "Entropy('x')"
    assert repr(wr.Histogram("x")) == "Histogram('x')"
    assert repr(wr.Histogram("x", most=3)) == "Histogram('x', most=3)"
    assert repr(wr.Entropy("x", base=10)) == "Entropy('x', base=10)"
    for make, message in (
        (lambda: wr.TopK("x", 0), "k is a number from 1 on, not 0"),
        (lambda: wr.BottomK("x", 2, k=2), "k is given twice"),
        (lambda: wr.Entropy("x", base=1), "base is a number above 1, not 1"),
        (lambda: wr.Histogram("x", most=0), "most is a number from 1 on, not 0"),
        (lambda: wr.M4("x"), "takes 2 column"),
    ):
        with pytest.raises(BadSpecification, match=message):
            make()
    window = wr.windows.DabaLite(wr.TopK(2))
    window.insert(1)
    with pytest.raises(BadValue, match="cannot be combined with"):
        window.insert("a")
