"""Rows sorted by one number: times keep their order, and mixed keys get the answers of columns."""

import math
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import (
    AGGREGATES,
    assert_same,
    check,
    frame,
    random_table,
    random_windows,
    spark,  # noqa: F401
)
from tests.test_rolling import NUMERIC, WINDOWS
from tests.test_spark_carry import group, sorted_tables, steady
from windrow.columns import carry as carry_module
from windrow.columns.carry import Carry, run_sorted
from windrow.columns.ordered import ORDER, TIME_BITS, whole_moments
from windrow.spark import order as order_module
from windrow.spark.order import LINES, by_number, number_of, time_bits

KEYED: dict[str, Any] = {"key": "k", "time": "t", "tie": "id", "engine": "kernel"}
INT64 = st.integers(-(2**63), 2**63 - 1)
POWERS = [0, *(2**power for power in (1, 10, 31, 40, 41, 42, 43, 50, 51, 52, 53, 62))]
BORDERS = sorted(
    {sign * power + step for power in POWERS for sign in (1, -1) for step in (-1, 0, 1)}
    | {2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63}
)


# --- the number -----------------------------------------------------------------------------------


def bits_of(time: int) -> int:
    """What ``time_bits`` says, in Python."""
    sign = time >> 63
    least = min(((time ^ sign) >> shift) + more for shift, more in LINES)
    return (least ^ sign) + (1 << (TIME_BITS - 1))


@given(st.one_of(INT64, st.sampled_from(BORDERS)), st.one_of(INT64, st.integers(0, 5000)))
def test_times_keep_their_order(time: int, step: int) -> None:
    later = min(time + abs(step), 2**63 - 1)
    assert 0 <= bits_of(time) <= bits_of(later) < 1 << TIME_BITS
    assert -(bits_of(time) - 2**43) - 1 == bits_of(~time) - 2**43


def test_how_much_of_a_time_is_left() -> None:
    assert all(a <= b for a, b in pairwise(map(bits_of, BORDERS)))
    for time in (0, 1_700_000_000_000, 2**41 - 1, -(2**41)):
        assert bits_of(time) == time + 2**43
    now = 1_700_000_000_000_000
    assert bits_of(now + 1024) == bits_of(now) + 1
    assert bits_of(now * 1000 + 2**22) == bits_of(now * 1000) + 1


def test_times_keep_their_order_in_spark(spark: Any) -> None:  # noqa: F811
    some = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 500).tolist()
    times = BORDERS + [time >> shift for time in some for shift in (0, 10, 13, 25, 40)]
    df = spark.createDataFrame(pa.table({"t": pa.array(times, pa.int64())}))
    found = df.select("t", time_bits(df["t"]).alias("bits")).toArrow()
    assert found["bits"].to_pylist() == [bits_of(time) for time in found["t"].to_pylist()]


def test_equal_keys_have_equal_numbers(spark: Any) -> None:  # noqa: F811
    """Zeros and NaNs are one key each, whatever their bits."""
    odd = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    keys = np.concatenate([odd.view(np.float64), [0.0, -0.0]])
    small = np.array([0x7FC00000, 0x7FC00001, 0xFFC00000, 0, 0x80000000], np.uint32)
    table = pa.table({"k": keys, "f": small.view(np.float32), "t": np.zeros(5, np.int64)})
    df = spark.createDataFrame(table)
    for name in ("k", "f"):
        spec = wr.Rolling(key=name, time="t", windows=[wr.time(1)], aggregates=[wr.Count()])
        numbers = df.select(number_of(spec, df.schema).alias("n")).toArrow()["n"].to_pylist()
        assert len(set(numbers[:3])) == len(set(numbers[3:])) == 1
        assert len(set(numbers)) == 2
        assert sorted(spec(df).toArrow()["count_1"].to_pylist()) == [2, 2, 3, 3, 3]


# --- the worker -----------------------------------------------------------------------------------


def numbered(table: pa.Table, bits: int, coarse: int, seed: int = 0) -> pa.Table:
    """The rows by hash and time, the hash of few bits, of which some of time are lost."""
    mixed = table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))
    hashes = np.array([hash_of(key) & ((1 << bits) - 1) for key in mixed["k"].to_pylist()])
    times = (mixed["t"].to_numpy() + 10_000) >> coarse
    return mixed.append_column(ORDER, pa.array((hashes << TIME_BITS) | times)).sort_by(ORDER)


def hash_of(key: Any) -> int:
    """The same in every process, and for all that count as the same key."""
    return crc32(repr(group(key + 0.0 if isinstance(key, float) else key)).encode())


def answered(spec: wr.Rolling, table: pa.Table, rows: int, gather: int) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry_module, "GATHERED_ROWS", gather)
        carry = Carry(spec, by_number=True)
        found = list(run_sorted(table.to_batches(max_chunksize=rows), carry))
    assert carry.rows_kept == 0
    return pa.concat_tables(found, promote_options="permissive")


@given(
    sorted_tables(),
    st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=3, unique_by=lambda w: w.label),
    st.sampled_from([0, 1, 20]),
    st.sampled_from([0, 1, 3, 14]),
    st.sampled_from([1, 2, 7, 1000]),
    st.integers(0, 2),
)
@examples(250)
def test_mixed_keys_equal_one_call(
    table: pa.Table, windows: list[Any], bits: int, coarse: int, rows: int, min_rows: int
) -> None:
    spec = wr.Rolling(
        **KEYED,
        windows=windows,
        aggregates=[*NUMERIC, wr.Concat("s"), wr.Max("s"), GeoMean("p")],
        min_rows=min_rows,
    )
    found = answered(spec, numbered(table, bits, coarse), rows, rows)
    assert_same(found, spec(table), spec)


@given(sorted_tables(), st.sampled_from([0, 1]), st.sampled_from([0, 2]), st.sampled_from([1, 7]))
@examples(60)
def test_mixed_keys_with_bounds(table: pa.Table, bits: int, coarse: int, rows: int) -> None:
    windows = {"b": wr.bounds("low", "high"), "w": wr.time(3), "r": wr.rows(4, within=3)}
    spec = wr.Rolling(**KEYED, windows=windows, aggregates=NUMERIC)
    assert_same(answered(spec, numbered(table, bits, coarse), rows, rows), spec(table), spec)


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("bits", [0, 1, 20])
def test_batches_of_any_size(bits: int, rows: int) -> None:
    table = random_table(700, keys=5, seed=bits)
    windows = random_windows(bits) | {"within": wr.rows(9, within=40)}
    spec = wr.Rolling(**KEYED, windows=windows, aggregates=AGGREGATES)
    for gather in (1, 64, 1 << 17):
        assert_same(answered(spec, numbered(table, bits, 0), rows, gather), spec(table), spec)


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("coarse", [0, 4, 20])
def test_ties_across_batches(rows: int, coarse: int) -> None:
    """Many rows of a moment, in any order, with ties of texts, odd floats, and missing ones."""
    table = random_table(300, keys=2, seed=rows, span=6)
    texts = pa.array([None if n % 5 == 0 else "bca"[n % 3] for n in range(300)])
    floats = pa.array([[0.0, -0.0, math.nan, None, -1.0, math.inf][n % 6] for n in range(300)])
    table = table.append_column("w", texts).append_column("v", floats)
    spec = wr.Rolling(
        **(KEYED | {"tie": ["v", "w", "id"]}),
        windows=[wr.rows(4), wr.rows(2, after=3), wr.time(2)],
        aggregates=[wr.Concat("s"), wr.Last("id"), wr.Sum("x")],
    )
    for bits in (0, 20):
        found = answered(spec, numbered(table, bits, coarse, seed=coarse), rows, 1)
        assert_same(found, spec(table), spec)


def test_rows_of_a_moment_stay_together() -> None:
    orders = np.repeat(np.arange(40), np.random.default_rng(0).integers(1, 30, 40))
    table = pa.table({ORDER: orders})
    for size in (1, 7, 50, 10_000):
        given = [table.slice(start, size) for start in range(0, len(orders), size)]
        found = list(whole_moments(given))
        assert pa.concat_tables(found).equals(table)
        assert all(part.num_rows for part in found)
        parts = [set(part[ORDER].to_pylist()) for part in found]
        assert sum(map(len, parts)) == 40


@pytest.mark.parametrize(
    ("window", "live"),
    [
        (wr.rows(1), 0),
        (wr.rows(50), 49),
        (wr.rows(50, ending=20), 69),
        (wr.rows(50, after=20), 69),
        (wr.rows(90, within=50), 50),
        (wr.time(50), 50),
        (wr.time(50, closed="both"), 51),
        (wr.time(50, ending=20), 70),
        (wr.time(50, after=20), 71),
    ],
    ids=lambda value: getattr(value, "label", str(value)),
)
@pytest.mark.parametrize(("bits", "sharing"), [(20, 1), (0, 3)])
def test_only_live_rows_are_kept(window: Any, live: int, bits: int, sharing: int) -> None:
    table = steady(3, 1500)
    spec = wr.Rolling(**KEYED, windows=[window], aggregates=[wr.Sum("x")])
    rows = numbered(table, bits, 0)
    carry = Carry(spec, by_number=True)
    most, out, tables = 0, [], list(whole_moments(rows.slice(n, 90) for n in range(0, 4500, 90)))
    for place, part in enumerate(tables):
        out.append(carry.push(part, last=place == len(tables) - 1))
        most = max(most, carry.rows_kept)
    assert live * sharing <= most <= (live + 1) * sharing
    assert_same(pa.concat_tables(out), spec(table), spec)


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "rows"), [(0, 1), (1, 7), (20, 1000)])
def test_mixed_keys_in_spark(
    spark: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    bits: int,
    rows: int,
) -> None:
    monkeypatch.setattr(order_module, "HASH_BITS", bits)
    table = random_table(300, keys=12, seed=bits, span=120)
    spec = wr.Rolling(**KEYED, windows=random_windows(bits), aggregates=AGGREGATES)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(rows))
    try:
        check(spark, spec, table, partitions=2)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_mixed_keys_of_several_columns(
    spark: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = random_table(200, seed=3)
    floats = [[0.0, -0.0, math.nan, None, 1.5][n % 5] for n in range(200)]
    table = table.append_column("n", pa.array(floats, pa.float64()))
    for bits in (0, 20):
        monkeypatch.setattr(order_module, "HASH_BITS", bits)
        for key in ("n", ["s", "n"]):
            spec = wr.Rolling(
                **(KEYED | {"key": key}),
                windows=[wr.rows(20), wr.time(70)],
                aggregates=[wr.Sum("x"), wr.Count(), wr.Last("s"), wr.Max("x")],
            )
            check(spark, spec, table, partitions=3)


def test_what_is_sorted_how(spark: Any) -> None:  # noqa: F811
    table = random_table(60).append_column("u", pa.array(np.arange(60) / 2))
    df = frame(spark, table)
    common: dict[str, Any] = KEYED | {"windows": [wr.time(9)], "aggregates": [wr.Sum("x")]}
    spec = wr.Rolling(**common)
    assert by_number(spec, df.schema)
    text = spec.explain(df)
    assert "sorted by one number: 20 bits of the key's hash, 44 bits of t" in text
    assert "kept in a worker: the live rows of one key, and of those that share its bits" in text
    others: list[tuple[dict[str, Any], str]] = [
        ({"every": 5}, "sorted by k, t, id"),
        ({"time": "u", "unit": "s", "windows": [wr.time("9s")]}, "sorted by k, u, id"),
        ({"time": None, "windows": [wr.rows(9)]}, "sorted by k, id"),
    ]
    for changes, words in others:
        spec = wr.Rolling(**(common | changes))
        assert not by_number(spec, df.schema)
        text = spec.explain(df)
        assert words in text
        assert "kept in a worker: the live rows of one key, twice" in text
    spec = wr.Rolling(**common)
    plan = spec(df)._jdf.queryExecution().executedPlan().toString()
    assert f"Sort [{ORDER}#" in plan
    assert ORDER not in spec(df).columns
