"""Columns: tables people have, threads, batches, ticks, peers, errors, plans, the compile cache."""

import math
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.tables import expected, key_of
from tests.test_rolling import FLOATS, NUMERIC, WINDOWS, check, tables
from windrow.columns.column import number_column
from windrow.columns.prepare import Prepared, _nanoseconds
from windrow.errors import BadSpecification, BadValue, OutOfOrder, SumOverflow
from windrow.slides import Time
from windrow.times import clock_of
from windrow.windows.compare import equal


def sample(n: int, keys: int = 5, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(n) * 10.0 ** generator.integers(-3, 4, n)
    return pa.table(
        {
            "k": generator.integers(0, keys, n),
            "t": np.cumsum(generator.integers(0, 4, n)),
            "x": pa.array(x, mask=generator.random(n) < 0.1),
            "y": generator.integers(0, 50, n),
        }
    )


SPEC: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "windows": [wr.time(40), wr.rows(7)],
    "aggregates": NUMERIC,
}


# --- tables people have --------------------------------------------------------------------------


def test_every_kind_of_table_gives_the_same() -> None:
    table = sample(300)
    features = wr.Rolling(**SPEC)
    arrow = features(table)
    assert arrow.column_names[:4] == table.column_names
    batch = features(table.to_batches()[0])
    assert isinstance(batch, pa.RecordBatch)
    assert pa.Table.from_batches([batch]).equals(arrow)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    assert features(frame).to_arrow().cast(arrow.schema).equals(arrow)
    assert features(frame.lazy()).equals(features(frame))
    pandas = table.to_pandas().set_index(pd.Index(range(1000, 1300), name="id"))
    out = features(pandas)
    assert out.index.equals(pandas.index)
    assert list(out.columns) == arrow.column_names
    for name in arrow.column_names[4:]:
        np.testing.assert_array_equal(out[name].to_numpy(), arrow[name].to_pandas().to_numpy())
    arrays = {name: table[name].to_numpy() for name in table.column_names}
    arrays["x"] = np.ma.MaskedArray(
        table["x"].fill_null(0).to_numpy(), mask=table["x"].is_null().to_numpy()
    )
    back = features(arrays)
    np.testing.assert_array_equal(back["x_sum_40"], arrow["x_sum_40"].to_numpy())
    assert back["k"] is arrays["k"]
    with pytest.raises(BadSpecification, match="a list is not a table"):
        features([1, 2])


def test_nan_is_missing_in_pandas_and_a_value_in_numpy() -> None:
    values = np.array([1.0, np.nan, 2.0])
    features = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Sum("x")])
    np.testing.assert_array_equal(features(pd.DataFrame({"x": values}))["x_sum_2rows"], [1, 1, 2])
    np.testing.assert_array_equal(features({"x": values})["x_sum_2rows"], [1, np.nan, np.nan])
    missing = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Sum("x")], nan="missing")
    np.testing.assert_array_equal(missing({"x": values})["x_sum_2rows"], [1, 1, 2])


def test_rows_stay_where_they_are() -> None:
    table = sample(500)
    order = np.random.default_rng(1).permutation(500)
    features = wr.Rolling(**(SPEC | {"aggregates": [wr.Sum("x"), wr.Max("x")], "tie": "y"}))
    shuffled = features(table.take(pa.array(order)))
    assert shuffled.select(["k", "t"]).equals(table.select(["k", "t"]).take(pa.array(order)))
    straight = wr.Rolling(
        key="k", time="t", windows=[wr.time(40)], aggregates=[wr.Sum("x"), wr.Max("x")]
    )
    assert straight(table.take(pa.array(order))).equals(straight(table).take(pa.array(order)))


def test_keys_of_any_kind() -> None:
    day = datetime(2024, 1, 1)
    rows: list[dict[str, Any]] = [
        {"a": "x", "b": 1.0, "c": day, "t": 1, "x": 1},
        {"a": None, "b": math.nan, "c": day, "t": 2, "x": 2},
        {"a": "x", "b": 1.0, "c": day, "t": 3, "x": 4},
        {"a": None, "b": math.nan, "c": day, "t": 4, "x": 8},
        {"a": "x", "b": -0.0, "c": day, "t": 5, "x": 16},
        {"a": "x", "b": 0.0, "c": day, "t": 6, "x": 32},
        {"a": "x", "b": 0.0, "c": None, "t": 7, "x": 64},
    ]
    spec = wr.Rolling(key=["a", "b", "c"], time="t", windows=[wr.rows(9)], aggregates=[wr.Sum("x")])
    found = spec(pa.Table.from_pylist(rows))["x_sum_9rows"].to_pylist()
    assert found == [1, 2, 5, 10, 16, 48, 64]


@pytest.mark.parametrize("size", [0, 1, 30, 400, 9000])
@pytest.mark.parametrize("moments", [3, 10**12])
def test_rows_are_ordered_by_key_time_tie_and_then_as_they_come(size: int, moments: int) -> None:
    generator = np.random.default_rng(size)
    time = generator.integers(-moments, moments, size)
    key = generator.integers(0, 3, size)
    key[size // 20 :] = 1  # short runs and a long one
    number = generator.integers(0, 9, size) / 4
    tie = [None if x == 2 else math.nan if x == 1 else x for x in number.tolist()]
    words = pa.DictionaryArray.from_arrays(pa.array(key, pa.int8()), ["c", "a", "b"])
    columns = {"t": time, "k": key, "text": words.dictionary_decode(), "words": words}
    table = pa.table({**columns, "tie": pa.array(tie, pa.float64(), from_pandas=False)})
    last = [(x is None, x != x, 0 if x is None or x != x else x) for x in tie]
    ties: dict[str, list[Any]] = {"tie": last, "k": key.tolist()}
    halves = [table[: size // 2].sort_by("t"), table[size // 2 :].sort_by("t")]
    in_order = table.sort_by([("k", "ascending"), ("t", "ascending")])
    for rows in (table, in_order, pa.concat_tables(halves).combine_chunks()):
        for keys in ((), ("k",), ("text",), ("words",), ("k", "text")):
            for by in ((), ("tie",), ("tie", "k")):
                if rows is not table and by:
                    continue
                ready = Prepared(rows, keys, "t", by, None, 2)
                times, found = rows["t"].to_pylist(), [rows[k].to_pylist() for k in keys]
                seen: dict[Any, int] = {}
                codes = [seen.setdefault(k, len(seen)) for k in zip(*found, strict=True)]
                ranks = [
                    (codes[i] if codes else 0, times[i], *(ties[n][i] for n in by), i)
                    for i in range(size)
                ]
                order = np.arange(size) if ready.order is None else ready.order
                assert order.tolist() == [rank[-1] for rank in sorted(ranks)]
                assert ready.time is not None
                assert np.array_equal(ready.time, rows["t"].to_numpy()[order])
                inside = [ready.offsets[i : i + 2] for i in range(len(ready.offsets) - 1)]
                assert all(len({ranks[j][0] for j in order[a:b]}) == 1 for a, b in inside if a < b)
                answers = pa.array(np.arange(size))
                assert ready.back(answers.take(pa.array(order))).equals(answers)


def test_categories_are_keys_by_their_texts() -> None:
    spec = wr.Rolling(key="k", windows=[wr.rows(9)], aggregates=[wr.Count()])
    numbers = pa.array([0, 1, 2, None, 3, 0], pa.int8())
    for words in (["a", "b", "c", "d"], ["a", "b", "a", None], [0.0, 1.0, -0.0, 2.0]):
        keys = pa.DictionaryArray.from_arrays(numbers, pa.array(words))
        plain = spec(pa.table({"k": keys.dictionary_decode()}))["count_9rows"]
        assert spec(pa.table({"k": keys}))["count_9rows"].equals(plain)


PICKS = [wr.Count, wr.First, wr.Last, wr.Collect]
WORDS = {
    "texts": pa.array(["b", None, "a", "", "b", None, "c"]),
    "bytes": pa.array([b"b", None, b"a", b"", b"b", None, b"c"]),
    "nothing": pa.array([None] * 7, pa.large_string()),
    "views": pa.array(["b", None, "a", "", "b", None, "c"], pa.string_view()),
    "decimals": pa.array([None if x is None else Decimal(x) for x in (2, None, 1, 0, 2, 1, 3)]),
    "categories": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, 3, 1, 2, 0], pa.int8()), pa.array(["c", "a", None, "a"])
    ),
    "more": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, 2, 1, 1, 0], pa.int8()), pa.array(["c", "a", "b"])
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_is_picked_or_counted_is_not_put_in_order(name: str) -> None:
    rows = {"x": WORDS[name], "y": [3.0, 1.0, 2.0, None, 5.0, 5.0, 0.0], "t": [3, 1, 2, 0, 9, 5, 6]}
    table = pa.table(rows)
    values = table["x"].to_pylist()
    known = {row["t"]: row for row in table.to_pylist()}
    aggregates = [kind("x").alias(kind.__name__) for kind in PICKS]
    some = [*aggregates, wr.ArgMax("x", "y").alias("ArgMax")]
    found = wr.Rolling(time="t", windows={"w": wr.rows(3)}, aggregates=some)(table)
    for i, time in enumerate(rows["t"]):
        near = [known[t] for t in sorted(known) if t <= time][-3:]
        held = [row["x"] for row in near if row["x"] is not None]
        both = [row for row in near if row["x"] is not None and row["y"] is not None]
        largest = max(both, key=lambda row: float(row["y"]))["x"] if both else None
        ends = (held[0], held[-1], held) if held else (None, None, None)
        for answer, kind in zip((len(held), *ends, largest), found.column_names[3:], strict=True):
            assert found[kind][i].as_py() == answer, (kind, i, values)


@pytest.mark.parametrize("digits", [0, 1, 9, 18, 25])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_decimals_are_places_among_the_distinct_ones(digits: int, nulls: float) -> None:
    generator = np.random.default_rng(digits)
    for size in (0, 1, 3, 700):
        gone = generator.random(size) < nulls
        whole = [int(x * 10**digits) for x in generator.uniform(-2, 2, size)]
        rows = [None if no else Decimal(f"{n}e-3") for n, no in zip(whole, gone, strict=True)]
        array = pa.array([Decimal(1), *rows], pa.decimal128(30, 3))[1:]
        column = number_column(array, "x")
        distinct = sorted({x for x in rows if x is not None})
        assert column.words is not None
        assert column.words.to_pylist() == distinct
        places = column.values.tolist()
        assert [
            None if x is None else distinct[i] for x, i in zip(rows, places, strict=True)
        ] == rows


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps(unit: str, zone: str | None) -> None:
    start = datetime(2024, 3, 10, 5, tzinfo=UTC if zone else None)
    times = [start + timedelta(minutes=30 * i) for i in (0, 1, 2, 5, 5, 6)]
    table = pa.table({"t": pa.array(times, pa.timestamp(unit, zone)), "x": [1, 2, 4, 8, 16, 32]})
    for window in ("1h", "60m", timedelta(hours=1), np.timedelta64(3600, "s")):
        found = wr.Rolling(time="t", windows={"w": wr.time(window)}, aggregates=[wr.Sum("x")])(
            table
        )
        assert found["x_sum_w"].to_pylist() == [1, 3, 6, 24, 24, 56]


def test_dates_integers_and_floats() -> None:
    sums = [wr.Sum("x")]
    days = pa.table({"t": pa.array([0, 1, 5], pa.date32()), "x": [1, 2, 4]})
    assert wr.Rolling(time="t", windows="2d", aggregates=sums)(days)["x_sum_2d"].to_pylist() == [
        1,
        3,
        4,
    ]
    with pytest.raises(BadSpecification, match="finer unit"):
        wr.Rolling(time="t", windows="1h", aggregates=sums)(days)
    for kind in (pa.int8(), pa.uint32(), pa.int64()):
        table = pa.table({"t": pa.array([0, 1, 5], kind), "x": [1, 2, 4]})
        spec = wr.Rolling(time="t", windows=[wr.time(2)], aggregates=sums)
        assert spec(table)["x_sum_2"].to_pylist() == [1, 3, 4]
        with pytest.raises(BadSpecification, match="times are integers"):
            wr.Rolling(time="t", windows="2s", aggregates=sums)(table)
    floats = pa.table({"t": [0.0, 0.5, 1.25], "x": [1, 2, 4]})
    spec = wr.Rolling(time="t", windows="1s", aggregates=sums, unit="s")
    assert spec(floats)["x_sum_1s"].to_pylist() == [1, 3, 6]
    with pytest.raises(BadSpecification, match="unit="):
        wr.Rolling(time="t", windows="1s", aggregates=sums)(floats)
    with pytest.raises(BadValue, match=r"row 1: 1e-12 s is not a whole"):
        spec(pa.table({"t": [0.0, 1e-12], "x": [1, 2]}))


def test_seconds_of_our_days_with_fractions() -> None:
    """A float holds them to 240 ns: they are the same nanoseconds as one value at a time."""
    generator = np.random.default_rng(1)
    for digits in (0, 1, 3, 6, 9):
        seconds = np.round(generator.uniform(-2e9, 2e9, 500), digits)
        ticks, bad = _nanoseconds(seconds, 10**9)
        assert not bad.any()
        assert ticks.tolist() == [clock_of(0.0, "s").to_ticks(t) for t in seconds.tolist()]
    odd = np.array([np.nan, np.inf, -np.inf, 9.3e9, 0.1 + 1e-12, -1e-10])
    assert _nanoseconds(odd, 10**9)[1].all()


@given(tables(FLOATS), st.integers(1, 7), st.integers(0, 3), st.sampled_from(WINDOWS))
@examples(80)
def test_ticks(table: pa.Table, step: int, origin: int, window: Any) -> None:
    if not isinstance(window, Time) or window.after or window.length == 10**15:
        return
    windows = {"w": window, "short": wr.time(2)}
    spec = wr.Rolling(
        key="k",
        time="t",
        windows=windows,
        aggregates=[wr.Sum("x"), wr.Count(), wr.Last("y")],
        every=step,
        origin=origin,
    )
    rows = table.to_pylist()
    found = spec(table).to_pylist()
    keys = {key_of(row, spec): row["k"] for row in rows}
    wanted = []
    for key, shown in keys.items():
        own = sorted((r for r in rows if key_of(r, spec) == key), key=lambda r: r["t"])
        for number in range(-20, 60):
            tick = origin + number * step
            inside = {}
            for name, w in windows.items():
                assert isinstance(w, Time)
                end = tick - int(w.ending)  # type: ignore[arg-type]
                start = end - int(w.length)  # type: ignore[arg-type]
                inside[name] = [
                    r
                    for r in own
                    if (r["t"] >= start if w.includes_start else r["t"] > start)
                    and (r["t"] <= end if w.includes_end else r["t"] < end)
                ]
            if any(inside.values()):
                answers = {
                    name: expected(inside[label], spec, aggregate, list(range(len(inside[label]))))
                    for name, aggregate, label in spec.outputs
                }
                wanted.append({"k": shown, "t": tick, **answers})
    order = {key: i for i, key in enumerate(keys)}
    wanted.sort(key=lambda r: (order[(r["k"],)], r["t"]))
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert equal(a, b), (a, b)


# --- threads and batches -------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [1, 3000])
def test_threads_change_no_bit(keys: int) -> None:
    table = sample(150_000, keys)
    one = wr.Rolling(**(SPEC | {"threads": 1}))(table)
    for threads in (2, 5):
        many = wr.Rolling(**(SPEC | {"threads": threads}))(table)
        for name, aggregate, _ in wr.Rolling(**SPEC).outputs:
            if aggregate.reproducible:
                assert many[name].equals(one[name]), name
            else:
                np.testing.assert_allclose(
                    many[name].to_numpy(), one[name].to_numpy(), rtol=3e-16, atol=0
                )
    whole = wr.Rolling(windows=[wr.rows(1000)], aggregates=NUMERIC, threads=3)(table)
    again = wr.Rolling(windows=[wr.rows(1000)], aggregates=NUMERIC, threads=1)(table)
    for name, aggregate, _ in wr.Rolling(windows=[wr.rows(1000)], aggregates=NUMERIC).outputs:
        if aggregate.reproducible:
            assert whole[name].equals(again[name]), name


@given(tables(FLOATS), st.sampled_from(WINDOWS), st.booleans(), st.data())
@examples(120)
def test_batch_by_batch_equals_one_call(
    table: pa.Table, window: Any, keyed: bool, data: Any
) -> None:
    order = np.argsort(table["t"].to_numpy(), kind="stable")
    table = table.take(pa.array(order)).append_column("id", pa.array(np.arange(table.num_rows)))
    spec = wr.Rolling(
        key="k" if keyed else None, time="t", windows=[window, wr.rows(2)], aggregates=NUMERIC
    )
    stream = spec.stream()
    parts = []
    start = 0
    while start < table.num_rows:
        size = data.draw(st.integers(1, 7))
        parts.append(stream.push(table.slice(start, size)))
        start += size
    rest = stream.finish()
    parts += [] if rest is None else [rest]
    assert stream.rows_kept == 0
    if not parts:
        return
    whole = pa.concat_tables(parts, promote_options="permissive").sort_by("id")
    single = spec(table).sort_by("id")
    assert whole["id"].to_pylist() == single["id"].to_pylist()
    for name, aggregate, _ in spec.outputs:
        for got, want in zip(whole[name].to_pylist(), single[name].to_pylist(), strict=True):
            assert equal(got, want) or (
                not aggregate.reproducible and got == pytest.approx(want, rel=4e-15)
            ), name


@pytest.mark.parametrize("time", ["t", None])
@pytest.mark.parametrize("window", [wr.rows(2), wr.rows(1, after=1), wr.rows(2**70, ending=1)])
def test_ties_in_other_batches_are_waited_for(time: Any, window: Any) -> None:
    table = pa.table({"t": [1, 1, 1, 2, 2, 3], "e": [5, 3, 4, 9, 1, 0], "x": [1, 2, 4, 8, 16, 32]})
    spec = wr.Rolling(
        time=time, tie="e", windows={"w": window}, aggregates=[wr.Sum("x"), wr.Last("x")]
    )
    stream = spec.stream()
    parts = [stream.push(table.slice(row, 1)) for row in range(6)] + [stream.finish()]
    single = spec(table)
    assert pa.concat_tables(parts).sort_by("x").to_pylist() == single.sort_by("x").to_pylist()
    assert len(parts[-1]) == (6 if time is None else 1 + window.after)


def test_batches_keep_only_live_rows() -> None:
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(50)], aggregates=[wr.Sum("x")])
    stream = spec.stream()
    table = sample(20_000, 4)
    most = 0
    for start in range(0, 20_000, 500):
        stream.push(table.slice(start, 500))
        most = max(most, stream.rows_kept)
    assert most < 400
    with pytest.raises(OutOfOrder, match="earlier batch"):
        stream.push(table.slice(0, 10))
    with pytest.raises(BadSpecification, match="earlier ones had"):
        stream.push(table.select(["k", "t", "x"]))


# --- peers ---------------------------------------------------------------------------------------


def test_pandas_agrees_where_it_is_right() -> None:
    values = np.random.default_rng(3).integers(-1000, 1000, 5000).astype(float)
    times = pd.date_range("2024-01-01", periods=5000, freq="37s")
    frame = pd.DataFrame({"t": times, "x": values})
    ours = wr.Rolling(
        time="t",
        windows=["1h", wr.rows(100)],
        aggregates=[wr.Sum("x"), wr.Max("x"), wr.Min("x"), wr.Mean("x"), wr.StdDev("x")],
    )(frame)
    by_time, by_rows = frame.set_index("t")["x"].rolling("1h"), frame["x"].rolling(100, 1)
    for label, peer in (("1h", by_time), ("100rows", by_rows)):
        for name, method in (
            ("sum", "sum"),
            ("max", "max"),
            ("min", "min"),
            ("mean", "mean"),
            ("std", "std"),
        ):
            theirs = getattr(peer, method)().to_numpy()
            np.testing.assert_allclose(ours[f"x_{name}_{label}"], theirs, rtol=1e-9)


def test_duckdb_agrees() -> None:
    table = sample(3000, 7)
    ours = wr.Rolling(
        key="k",
        time="t",
        windows={"w": wr.time(40, closed="both"), "r": wr.rows(10)},
        tie="id",
        aggregates=[wr.Count("x"), wr.Max("x"), wr.Min("x"), wr.Count(), wr.Sum("y")],
    )(table.append_column("id", pa.array(np.arange(3000))))
    source = ours
    assert source.num_rows == 3000
    theirs: Any = duckdb.sql("""
        select id, max(x) over w as x_max_w, min(x) over w as x_min_w, count(x) over w as x_count_w,
               count(*) over w as count_w, sum(y) over w as y_sum_w,
               max(x) over r as x_max_r, sum(y) over r as y_sum_r, count(x) over r as x_count_r
        from source
        window w as (partition by k order by t range between 40 preceding and current row),
               r as (partition by k order by t, id rows between 9 preceding and current row)
        order by id
    """)
    theirs = theirs.to_arrow_table()
    for name in theirs.column_names[1:]:
        assert [None if v is None else float(v) for v in theirs[name].to_pylist()] == [
            None if v is None else float(v) for v in ours[name].to_pylist()
        ], name


def test_bugs_that_others_had() -> None:
    """Values near 2**54, a NaN that sticks, precision lost for good after a large value leaves."""
    wide = wr.Rolling(windows=[wr.rows(1)], aggregates=[wr.Sum("x"), wr.Max("x"), wr.Mean("x")])
    table = pa.table({"x": [2**54 + 1, 2**54 + 3, 1]})
    assert wide(table)["x_sum_1rows"].to_pylist() == [2**54 + 1, 2**54 + 3, 1]
    assert wide(table)["x_max_1rows"].to_pylist() == [2**54 + 1, 2**54 + 3, 1]
    sticky = pa.table({"x": [1.0, math.nan, math.inf, 2.0, 3.0, 4.0]})
    pairs = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Sum("x"), wr.StdDev("x")])(sticky)
    assert pairs["x_sum_2rows"].to_pylist()[4:] == [5.0, 7.0]
    assert pairs["x_std_2rows"].to_pylist()[4:] == [math.sqrt(0.5)] * 2
    noise = np.full(2000, 0.1)
    noise[3] = 1e18
    out = wr.Rolling(windows=[wr.rows(10)], aggregates=[wr.Sum("x"), wr.Variance("x")])(
        {"x": noise}
    )
    assert set(out["x_sum_10rows"][20:].tolist()) == {math.fsum([0.1] * 10)}
    assert set(out["x_var_10rows"][20:].tolist()) == {0.0}


def test_a_mean_that_vanishes_is_a_plain_zero() -> None:
    table = pa.table({"x": [0.0, -5e-324, 0.0, 0.0], "t": [0, 1, 2, 3]})
    spec = wr.Rolling(time="t", windows=[wr.rows(2), wr.time(2)], aggregates=[wr.Mean("x")])
    for name in ("x_mean_2rows", "x_mean_2"):
        assert [math.copysign(1, v) for v in spec(table)[name].to_pylist()] == [1.0] * 4


@pytest.mark.parametrize("rows", [2, 16, 1000])
def test_sums_over_twenty_decades_equal_fsum(rows: int) -> None:
    generator = np.random.default_rng(rows)
    x = generator.uniform(-1, 1, 6000) * 10.0 ** generator.uniform(-10, 10, 6000)
    x[[100, 2000]] = 1e15, -1e18
    table = pa.table({"x": x, "t": np.arange(6000)})
    spec = wr.Rolling(
        time="t", windows={"r": wr.rows(rows), "t": wr.time(rows)}, aggregates=[wr.Sum("x")]
    )
    out = spec(table)
    for i in range(rows, 6000, 3):
        want = math.fsum(x[i - rows + 1 : i + 1])
        assert out["x_sum_r"][i].as_py() == want
        assert out["x_sum_t"][i].as_py() == want


def test_large_windows_of_awkward_data_are_exact() -> None:
    """Every way of adding is met: running parts, two words, a proof per row, accumulators."""
    generator = np.random.default_rng(9)
    n, rows = 60_000, 20_000
    for x in (
        generator.standard_normal(n),
        generator.standard_normal(n) * 10.0 ** generator.uniform(-15, 15, n),
        np.where(np.arange(n) % 2, 1e16, -1e16) + generator.standard_normal(n),
        generator.integers(0, 100, n) / 100,
    ):
        out = wr.Rolling(windows=[wr.rows(rows)], aggregates=[wr.Sum("x"), wr.Mean("x")])({"x": x})
        for i in (rows, rows + 1, n // 2, n - 2, n - 1):
            want = math.fsum(x[i - rows + 1 : i + 1])
            assert out[f"x_sum_{rows}rows"][i] == want
            assert out[f"x_mean_{rows}rows"][i] == want / rows


def test_batches_of_any_type_come_back_as_they_are() -> None:
    """Arrow itself cannot choose rows of all of them."""
    run = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, None]))
    table = pa.table(
        {
            "t": [1, 2, 3],
            "x": run,
            "k": pa.array(["a", None, "a"], pa.string_view()),
            "b": pa.array([b"a", b"b", b"c"], pa.binary_view()),
        }
    )
    aggregates = [wr.Sum("x"), wr.Max("b"), wr.Max("k").where("x", 7)]
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(5)], aggregates=aggregates)
    stream = spec.stream()
    parts = [stream.push(table.slice(i, 1)) for i in range(3)] + [stream.finish()]
    found = [row for part in parts for row in part.to_pylist()]
    assert sorted(found, key=lambda row: row["t"]) == spec(table).to_pylist()
    assert all(part.schema.types == spec(table).schema.types for part in parts)


# --- the types of answers -------------------------------------------------------------------------

NOON = 1_710_072_000_000_000_000
OF_TYPES = {
    "small": pa.array([3, 1, None, 2], pa.int8()),
    "large": pa.array([2**64 - 1, 1, None, 2], pa.uint64()),
    "float": pa.array([0.1, 0.2, None, 0.3], pa.float32()),
    "half": pa.array([0.5, 0.25, None, 0.125], pa.float16()),
    "flag": pa.array([True, False, None, True]),
    "text": pa.array(["b", "a", None, "c"], pa.large_string()),
    "pair": pa.array([b"bb", b"aa", None, b"cc"], pa.binary(2)),
    "price": pa.array([Decimal("1.50"), Decimal(2), None, Decimal(3)], pa.decimal128(9, 2)),
    "stamp": pa.array([NOON + 1, NOON + 5, None, NOON + 3], pa.timestamp("ns", "Asia/Tokyo")),
    "second": pa.array([1, 5, None, 3], pa.timestamp("s")),
    "day": pa.array([86_400_000, 0, None, 0], pa.date64()),
    "length": pa.array([1, 5, None, 3], pa.duration("ns")),
    "clock": pa.array([1, 5, None, 3], pa.time32("s")),
}


@pytest.mark.parametrize("name", OF_TYPES)
def test_values_come_back_in_their_own_type_however_they_are_found(name: str) -> None:
    """Compiled, by Python, and over ranges that move back."""
    more = {"t": [1, 2, 3, 4], "lo": [1, 2, 0, 4], "hi": [1, 2, 4, 3]}
    table = pa.table({"x": OF_TYPES[name], **more})
    kinds = [wr.Min, wr.Max, wr.First, wr.Last]
    aggregates = [*(kind("x") for kind in kinds), wr.ArgMax("x", "t"), wr.LongestRunTime("x", "t")]
    for windows in (wr.rows(3), wr.rows(3, ending=4)):
        spec = wr.Rolling(windows={"w": windows}, aggregates=aggregates)
        found = spec(table)
        assert found.schema.types[4:] == [OF_TYPES[name].type] * 6
        spec.algorithm = "recalc"
        assert spec(table).equals(found)
    spec = wr.Rolling(time="t", windows={"w": wr.bounds("lo", "hi")}, aggregates=aggregates)
    answers = spec(table).columns[-2]
    assert answers.type == OF_TYPES[name].type
    assert answers.equals(pa.chunked_array([OF_TYPES[name].take(pa.array([0, 1, 3, None]))]))


@pytest.mark.parametrize("name", OF_TYPES)
def test_answers_have_a_type_where_all_are_missing(name: str) -> None:
    class Other(wr.Aggregate):
        def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
            return b

    spec = wr.Rolling(windows=[wr.rows(2, ending=9)], aggregates=[Other("x")])
    assert not pa.types.is_null(spec(pa.table({"x": OF_TYPES[name]})).schema.types[-1])


def test_interpreted_answers_keep_nanoseconds() -> None:
    class Newest(wr.Aggregate):
        def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
            return max(a, b)

    class Age(Newest):
        def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
            return p - pd.Timestamp(NOON, tz="UTC")

    table = pa.table({"x": OF_TYPES["stamp"]})
    found = wr.Rolling(windows=[wr.rows(2)], aggregates=[Newest("x"), Age("x")])(table)
    kinds = [pa.timestamp("ns", "Asia/Tokyo"), pa.duration("ns")]
    assert found.schema.types[1:] == kinds
    assert found["x_age_2rows"].cast(pa.int64()).to_pylist() == [1, 5, 5, 3]
    assert found["x_newest_2rows"].cast(pa.int64()).to_pylist() == [NOON + n for n in (1, 5, 5, 3)]
    answer_type = pa.timestamp("ns", "UTC")
    said = type("Said", (Newest,), {"answer_type": answer_type})("x")
    found = wr.Rolling(windows=[wr.rows(2)], aggregates=[said])(table)
    assert found["x_said_2rows"].cast(pa.int64())[1].as_py() == NOON + 5


def test_bytes_of_one_length_are_joined_to_longer_ones() -> None:
    found = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Concat("x")])({"x": OF_TYPES["pair"]})
    assert list(found["x_concat_2rows"]) == [b"bb", b"bbaa", b"aa", b"cc"]


# --- own aggregates, plans, errors ---------------------------------------------------------------


class Spelled(wr.Aggregate):
    """Cannot be compiled: it makes texts."""

    identity = (0.0, 0)

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (float(repr(x)), 1)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] + b[0], a[1] + b[1])  # type: ignore[index]

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return p[0] / p[1]  # type: ignore[index]


def test_explain_names_algorithm_reason_and_cost() -> None:
    table = sample(2000)
    spec = wr.Rolling(
        key="k",
        time="t",
        windows=[wr.time(40), wr.rows(5)],
        aggregates=[wr.Sum("x"), wr.Max("x"), wr.Sum("y"), wr.Count(), GeoMean("y"), Spelled("x")],
    )
    text = spec.explain(table, count_combines=True)
    assert "2,000 rows by k (5 keys), sorted here" in text
    assert "Max('x'): two_stacks_lite, compiled" in text
    assert "Sum('y'): subtract_on_evict, integers have an exact inverse" in text
    assert "GeoMean('y'): two_stacks_lite, compiled" in text
    assert "Spelled('x'): two_stacks_lite, interpreted: numba cannot compile it" in text
    measured = [float(p.split()[0]) for p in text.split("measured ")[1:]]
    assert measured
    assert all(0 < m <= 3 for m in measured)
    plain = wr.Rolling(windows=[wr.rows(5)], aggregates=[wr.Max("x")], algorithm="greedy")
    greedy = plain.explain(table, count_combines=True)
    assert "greedy" in greedy
    best = float(greedy.split("measured ")[1].split()[0])
    blocks = wr.Rolling(windows=[wr.rows(5)], aggregates=[wr.Max("x")])
    usual = blocks.explain(table, count_combines=True)
    assert best <= float(usual.split("measured ")[1].split()[0]) < 3


@pytest.mark.parametrize("algorithm", ["auto", "daba_lite", "greedy", "b_int", "recalc"])
def test_own_aggregates_on_every_algorithm(algorithm: str) -> None:
    table = sample(60).set_column(2, "x", sample(60)["x"].combine_chunks())
    check(
        wr.Rolling(
            key="k",
            time="t",
            windows=[wr.time(40), wr.rows(4)],
            aggregates=[Spelled("x"), Spelled("y")],
            algorithm=algorithm,
        ),
        table,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregates": [wr.Sum("amuont")]}, r"no column 'amuont'; did you mean 'amount'\?"),
        ({"key": "user"}, "key: there is no column 'user'"),
        ({"time": "when"}, "time: there is no column 'when'"),
        ({"tie": "nr"}, "tie: there is no column 'nr'"),
        ({"windows": [wr.bounds("a", "b")]}, "bounds: there is no column 'a'"),
        ({"windows": ["7 dayz"]}, "'7 dayz'"),
        ({"windows": [wr.time(5), wr.time(5)]}, "dict"),
        ({"windows": []}, "windows= is empty"),
        ({"aggregates": []}, "aggregates= is empty"),
        ({"aggregates": [wr.Sum("amount"), wr.Sum("amount")]}, "rename an aggregate"),
        ({"aggregates": [wr.Max()]}, r'Max\("amount"\), say'),
        ({"aggregates": [wr.Several(wr.Max("amount"))]}, "give Rolling its parts"),
        ({"aggregates": ["max"]}, "expected an aggregate"),
        ({"min_rows": -1}, "min_rows="),
        ({"threads": 0}, "threads="),
        ({"algorithm": "fast"}, "algorithm= is one of"),
        ({"time": None, "windows": ["1h"]}, "say which column"),
        ({"time": 3}, "time= is the name"),
        ({"key": [3]}, "key= takes names"),
        ({"every": 0}, "every= must be positive"),
        ({"every": 5, "windows": [wr.rows(3)]}, "windows of time"),
        ({"origin": 5}, "origin="),
        ({"aggregates": [wr.Last("amount").alias("at")], "windows": {"x": wr.time(5)}}, "already"),
        ({"algorithm": "daba_lite", "aggregates": [wr.Sum("amount")]}, "no such kernel"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    table = pa.table({"at": [1, 2], "amount": [1.0, 2.0], "at_x": [0, 0]})
    plain: dict[str, Any] = {
        "time": "at",
        "windows": [wr.time(5)],
        "aggregates": [wr.Sum("amount")],
    }
    with pytest.raises(BadSpecification, match=message):
        wr.Rolling(**(plain | options))(table)


def test_mistakes_in_the_data() -> None:
    sums: dict[str, Any] = {"windows": [wr.time(5)], "aggregates": [wr.Sum("x")], "time": "t"}
    with pytest.raises(BadValue, match=r"'t' is missing in 2 of 3 rows \(row 0, 2\)"):
        wr.Rolling(**sums)(pa.table({"t": [None, 1, None], "x": [1, 2, 3]}))
    with pytest.raises(BadSpecification, match="has type string"):
        wr.Rolling(**sums)(pa.table({"t": ["a", "b"], "x": [1, 2]}))
    with pytest.raises(BadValue, match=r"column 'x' has type string, which cannot be added"):
        wr.Rolling(**sums)(pa.table({"t": [1, 2], "x": ["1", "2"]}))
    with pytest.raises(
        SumOverflow, match=r"window of row 0 sums column 'x' to 9223372036854775808"
    ):
        wr.Rolling(**sums)(pa.table({"t": [2, 1], "x": [1, 2**63 - 1]}))
    table = pa.table({"t": [1, 2, 3], "x": [1, 2, 3], "lo": [0, 2, 0], "hi": [1, 2, 3]})
    forced = wr.Rolling(
        time="t",
        windows=[wr.bounds("lo", "hi")],
        aggregates=[wr.Max("x")],
        algorithm="two_stacks_lite",
    )
    with pytest.raises(BadSpecification, match="those of row 2 start or end before"):
        forced(table)
    with pytest.raises(BadSpecification, match="different lengths"):
        wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Count()])({"a": [1], "b": [1, 2]})
    with pytest.raises(BadSpecification, match="2 dimensions"):
        wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Count()])({"a": np.zeros((2, 2))})


Pair = tuple[float, float]


class Range(wr.Aggregate):
    """Annotated with a name of this module, which compiled code does not know."""

    identity = (math.inf, -math.inf)

    @staticmethod
    def lift(x: float) -> Pair:
        return (x, x)

    @staticmethod
    def combine(a: Pair, b: Pair) -> Pair:
        return (min(a[0], b[0]), max(a[1], b[1]))

    @staticmethod
    def lower(p: Pair) -> float:
        return p[1] - p[0]


def test_annotations_do_not_keep_an_aggregate_from_being_compiled() -> None:
    features = wr.Rolling(windows=[wr.rows(2)], aggregates=[Range("x")])
    table = pa.table({"x": [1.0, 4.0, 2.0]})
    assert features(table)["x_range_2rows"].to_pylist() == [0.0, 3.0, 2.0]
    assert "compiled" in features.explain(table)


def test_no_rows() -> None:
    table = sample(0)
    out = wr.Rolling(**SPEC)(table)
    assert out.num_rows == 0
    assert len(out.column_names) == 4 + 2 * len(NUMERIC)
    assert wr.Rolling(**(SPEC | {"windows": [wr.time(5)], "every": 3}))(table).num_rows == 0


# --- the compile cache ---------------------------------------------------------------------------

PROGRAM = """
import sys, numpy as np, windrow as wr
out = wr.Rolling(windows=[wr.rows(3)], aggregates=[wr.Max("x"), wr.Sum("x"), wr.StdDev("x")])(
    {"x": np.arange(10.0)})
assert out["x_max_3rows"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], out
print(out["x_sum_3rows"].tolist())
"""


def run_programs(count: int, cache: Path) -> list[str]:
    environment = os.environ | {"WINDROW_CACHE_DIR": str(cache), "NUMBA_CACHE_DIR": str(cache)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    done = [process.communicate() for process in running]
    for process, (_, errors) in zip(running, done, strict=True):
        assert process.returncode == 0, errors
    return [out for out, _ in done]


def test_several_processes_may_compile_at_once(tmp_path: Path) -> None:
    answers = run_programs(3, tmp_path)
    assert len(set(answers)) == 1
    kept = {path.name for path in tmp_path.rglob("*.nbi")}
    assert kept
    run_programs(1, tmp_path)
    assert {path.name for path in tmp_path.rglob("*.nbi")} == kept  # nothing compiled again


def test_a_cache_folder_that_cannot_be_written_is_not_needed(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    file = tmp_path / "file"
    file.write_text("not a folder")
    assert run_programs(1, file) == run_programs(1, tmp_path)


def test_kernels_are_kept_whatever_the_locale(tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = os.environ | ascii_only | {"WINDROW_CACHE_DIR": str(tmp_path)}
    program = (
        "from windrow.columns.template import load; print(load('x = \"\\u2295\"', 'any').x != 0)"
    )
    for _ in ("written", "read"):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["True"], done.stderr


CALLED = (
    "from windrow.columns.jit import njit\n@njit(cache=True)\ndef more(x):\n    return x + {}\n"
)
CALLER = """
from windrow.columns.called import more
from windrow.columns.jit import njit
@njit(cache=True)
def twice(x):
    return 2 * more(x)
"""


def test_a_changed_kernel_changes_its_callers(tmp_path: Path) -> None:
    package = tmp_path / "windrow" / "columns"
    package.mkdir(parents=True)
    real = Path(wr.__file__).parent
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "jit.py").write_text((real / "columns" / "jit.py").read_text())
    (package / "caller.py").write_text(CALLER)
    environment = os.environ | {"WINDROW_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    program = (
        "from windrow.columns.caller import twice\n"
        "print(twice(1), sum(twice.stats.cache_hits.values()))"
    )
    found = []
    for step in (1, 1, 5):
        (package / "called.py").write_text(CALLED.format(step))
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout.split())
    assert found == [["4", "0"], ["4", "1"], ["12", "0"]]
