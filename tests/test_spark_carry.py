"""Sorted rows that come in pieces: the answers of one call, and only live rows kept."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import assert_same
from tests.test_rolling import FLOATS, NUMERIC, WINDOWS
from windrow.columns import carry as carry_module
from windrow.columns.carry import Carry, run_sorted

KEYS: dict[str, tuple[list[Any], pa.DataType]] = {
    "integers": ([None, 0, 1, 2], pa.int64()),
    "texts": ([None, "", "a", "é"], pa.string()),
    "floats": ([None, 0.0, -0.0, float("nan"), 1.5], pa.float64()),
}
TICKED: list[Any] = [
    *(wr.time(4), wr.time(7, closed="left"), wr.time(5, ending=3), wr.time(40)),
    *(wr.session(2), wr.session(3, closed="left")),
]


def group(key: Any) -> Any:
    """One value for all that count as the same key."""
    return (2, 0) if key is None else (1, 0) if key != key else (0, key)


@st.composite
def sorted_tables(draw: Any, most: int = 30) -> pa.Table:
    values, kind = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    size = draw(st.integers(1, most))
    column = st.lists
    keys = draw(column(st.sampled_from(values), min_size=size, max_size=size))
    keys.sort(key=group)
    times = draw(column(st.integers(-5, 12), min_size=size, max_size=size))
    x = draw(column(st.one_of(st.none(), FLOATS), min_size=size, max_size=size))
    y = draw(column(st.one_of(st.none(), st.integers(0, 3)), min_size=size, max_size=size))
    s = draw(column(st.one_of(st.none(), st.sampled_from("abc")), min_size=size, max_size=size))
    p = draw(column(st.floats(0.5, 2.0), min_size=size, max_size=size))
    ahead = draw(column(st.integers(0, 6), min_size=size, max_size=size))
    order = sorted(range(size), key=lambda i: (group(keys[i]), times[i]))
    times = [times[i] for i in order]
    return pa.table(
        {
            "k": pa.array(keys, kind),
            "t": pa.array(times, pa.int64()),
            "id": pa.array(range(size)),
            "x": pa.array(x, pa.float64()),
            "y": pa.array(y, pa.int64()),
            "s": pa.array(s, pa.string()),
            "p": pa.array(p, pa.float64()),
            "low": pa.array([t - a for t, a in zip(times, ahead, strict=True)], pa.int64()),
            "high": pa.array([t + 2 - a for t, a in zip(times, ahead, strict=True)], pa.int64()),
        }
    )


def pieces(draw: Any, table: pa.Table) -> list[pa.Table]:
    found, start = [], 0
    while start < table.num_rows:
        size = draw(st.integers(1, 9))
        found.append(table.slice(start, size))
        start += size
    return found


def pushed(carry: Carry, parts: list[pa.Table]) -> pa.Table:
    last = len(parts) - 1
    return pa.concat_tables(
        [carry.push(part, last=number == last) for number, part in enumerate(parts)],
        promote_options="permissive",
    )


@given(
    sorted_tables(),
    st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=3, unique_by=lambda w: w.label),
    st.booleans(),
    st.integers(0, 2),
    st.data(),
)
@examples(250)
def test_pieces_equal_one_call(
    table: pa.Table, windows: list[Any], keyed: bool, min_rows: int, data: Any
) -> None:
    table = table if keyed else table.sort_by([("t", "ascending"), ("id", "ascending")])
    spec = wr.Rolling(
        key="k" if keyed else None,
        time="t",
        tie="id",
        windows=windows,
        aggregates=[*NUMERIC, wr.Concat("s"), wr.Max("s"), GeoMean("p")],
        min_rows=min_rows,
    )
    carry = Carry(spec)
    found = pushed(carry, pieces(data.draw, table))
    assert carry.rows_kept == 0
    assert found["id"].to_pylist() == table["id"].to_pylist()
    assert_same(found, spec(table), spec)


@given(sorted_tables(), st.booleans(), st.data())
@examples(60)
def test_bounds_from_columns(table: pa.Table, keyed: bool, data: Any) -> None:
    table = table if keyed else table.sort_by([("t", "ascending"), ("id", "ascending")])
    spec = wr.Rolling(
        key="k" if keyed else None,
        time="t",
        tie="id",
        windows={"b": wr.bounds("low", "high"), "w": wr.time(3)},
        aggregates=NUMERIC,
    )
    found = pushed(Carry(spec), pieces(data.draw, table))
    assert_same(found, spec(table), spec)


@given(
    sorted_tables(),
    st.integers(1, 7),
    st.integers(0, 3),
    st.lists(st.sampled_from(TICKED), min_size=1, max_size=3, unique_by=lambda w: w.label),
    st.data(),
)
@examples(150)
def test_ticks(table: pa.Table, every: int, origin: int, windows: list[Any], data: Any) -> None:
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows=windows,
        aggregates=[wr.Sum("x"), wr.Count(), wr.Last("y")],
        every=every,
        origin=origin,
    )
    found = pushed(Carry(spec), pieces(data.draw, table))
    wanted = spec(table)
    assert found.column_names == wanted.column_names
    rows, others = (
        sorted((group(r["k"]), r["t"], repr(list(r.values())[2:])) for r in out.to_pylist())
        for out in (found, wanted)
    )
    assert rows == others


def steady(keys: int, rows_each: int) -> pa.Table:
    """One row a step, the keys one after the other."""
    size = keys * rows_each
    return pa.table(
        {
            "k": np.repeat(np.arange(keys), rows_each),
            "t": np.tile(np.arange(rows_each), keys),
            "id": np.arange(size),
            "x": np.random.default_rng(0).standard_normal(size),
        }
    )


@pytest.mark.parametrize(
    ("window", "live"),
    [
        (wr.rows(1), 0),
        (wr.rows(50), 49),
        (wr.rows(50, ending=20), 69),
        (wr.rows(50, after=20), 69),
        (wr.time(50), 50),
        (wr.time(50, closed="both"), 51),
        (wr.time(50, ending=20), 70),
        (wr.time(50, after=20), 71),
    ],
    ids=lambda value: getattr(value, "label", str(value)),
)
def test_only_live_rows_are_kept(window: Any, live: int) -> None:
    table = steady(4, 1500)
    spec = wr.Rolling(key="k", time="t", tie="id", windows=[window], aggregates=[wr.Sum("x")])
    carry = Carry(spec)
    most, out = 0, []
    for start in range(0, table.num_rows, 100):
        part = table.slice(start, 100)
        out.append(carry.push(part, last=start + 100 >= table.num_rows))
        most = max(most, carry.rows_kept)
    assert live <= most <= live + 1
    assert_same(pa.concat_tables(out), spec(table), spec)


def test_ticks_keep_only_live_rows() -> None:
    table = steady(3, 2000)
    spec = wr.Rolling(
        key="k", time="t", tie="id", windows=[wr.time(50)], aggregates=[wr.Sum("x")], every=7
    )
    carry = Carry(spec)
    most, out = 0, []
    for start in range(0, table.num_rows, 100):
        out.append(carry.push(table.slice(start, 100), last=start + 100 >= table.num_rows))
        most = max(most, carry.rows_kept)
    assert 50 <= most <= 60
    assert pa.concat_tables(out).equals(spec(table))


def test_bounds_keep_one_key() -> None:
    table = steady(5, 300)
    table = table.append_column("low", table["t"]).append_column("high", table["t"])
    spec = wr.Rolling(
        key="k", time="t", tie="id", windows=[wr.bounds("low", "high")], aggregates=[wr.Sum("x")]
    )
    carry = Carry(spec)
    most = 0
    for start in range(0, table.num_rows - 100, 100):
        carry.push(table.slice(start, 100))
        most = max(most, carry.rows_kept)
    assert most == 300


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("gathered", [1, 64, 1 << 17])
def test_batches_of_any_size(rows: int, gathered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_module, "GATHERED_ROWS", gathered)
    table = steady(3, 700)
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows=[wr.time(30), wr.rows(40), wr.rows(2, after=5)],
        aggregates=[wr.Sum("x"), wr.Max("x"), wr.Last("x")],
    )
    batches = table.to_batches(max_chunksize=rows)
    empty = table.schema.empty_table().to_batches() or [
        pa.RecordBatch.from_pylist([], table.schema)
    ]
    found = list(run_sorted([*empty, *batches, *empty], Carry(spec)))
    assert len(found) == 1 if gathered > table.num_rows else len(found) > 1
    assert pa.concat_tables(found).equals(spec(table))


def test_no_rows_at_all() -> None:
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(3)], aggregates=[wr.Sum("x")])
    assert list(run_sorted([], Carry(spec))) == []
