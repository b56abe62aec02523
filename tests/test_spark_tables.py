"""Spark tables equal columns, whatever the path; refusals, schemas and plans before any job."""

# mypy: disable-error-code="misc,index,operator"

import math
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from tests.pairs import GeoMean
from tests.spark_session import (
    AGGREGATES,
    SLOW,
    assert_same,
    check,
    frame,
    random_table,
    random_windows,
    spark,  # noqa: F401
)
from windrow.errors import BadSpecification, Refused
from windrow.testing import CASES, TIMED_CASES

KEYED: dict[str, Any] = {"key": "k", "time": "t", "tie": "id", "engine": "kernel"}
ONE_LINE = KEYED | {"key": None}
SOME: list[Any] = [
    wr.Count(),
    wr.Sum("x"),
    wr.Mean("i"),
    wr.Max("x"),
    wr.Last("s"),
    wr.ArgMax("s", "x"),
    wr.StdDev("i"),
    wr.Concat("s"),
]
_GROUPS = count()


def jobs_of(spark: Any, action: Callable[[], Any]) -> tuple[Any, int]:  # noqa: F811
    """What an action gives, and how many jobs it starts."""
    context = spark.sparkContext
    group = f"counted {next(_GROUPS)}"
    context.setJobGroup(group, "counted")
    try:
        found = action()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    return found, len(context.statusTracker().getJobIdsForGroup(group))


# --- random tables -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5) if SLOW else (0, 2, 4))
def test_random_tables_with_keys(spark: Any, seed: int) -> None:  # noqa: F811
    table = random_table(250, keys=[1, 3, 100][seed % 3], seed=seed)
    spec = wr.Rolling(
        **KEYED, windows=random_windows(seed), aggregates=AGGREGATES, min_rows=seed % 3
    )
    check(spark, spec, table, given=seed + 1, partitions=[None, 1, 2, 5, 7][seed])


@pytest.mark.parametrize(("seed", "span", "partitions"), [(0, 300, 7), (1, 20, 5), (2, 1, 3)])
def test_random_tables_without_a_key(
    spark: Any,  # noqa: F811
    seed: int,
    span: int,
    partitions: int,
) -> None:
    table = random_table(250, seed=seed, span=span)
    spec = wr.Rolling(
        **ONE_LINE, windows=random_windows(seed), aggregates=AGGREGATES, min_rows=seed
    )
    check(spark, spec, table, given=seed + 1, partitions=partitions)


@pytest.mark.parametrize(
    ("keys", "hot_rows", "partitions"), [(2, 60, 5), (7, 35, 9), (1, 1, 3)][-3 if SLOW else -2 :]
)
def test_random_tables_with_hot_keys(
    spark: Any,  # noqa: F811
    keys: int,
    hot_rows: int,
    partitions: int,
) -> None:
    table = random_table(250, keys=keys, seed=keys)
    spec = wr.Rolling(**KEYED, windows=random_windows(keys), aggregates=AGGREGATES)
    check(spark, spec, table, hot_rows=hot_rows, partitions=partitions)


def test_order_by_tie_alone(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=11).sort_by("id")
    windows = {"r": wr.rows(30), "past": wr.rows(90, ending=5), "ahead": wr.rows(2, after=70)}
    for key in (None, "k"):
        spec = wr.Rolling(key=key, tie="id", windows=windows, aggregates=SOME, engine="kernel")
        check(spark, spec, table, partitions=4)
        order = np.random.default_rng(0).permutation(200)
        assert_same(
            spec(frame(spark, table.take(pa.array(order)), 2), partitions=3).toArrow(),
            spec(table),
            spec,
        )


@pytest.mark.parametrize("key", ["k", None])
def test_no_rows_and_one_row(spark: Any, key: str | None) -> None:  # noqa: F811
    table = random_table(1)
    spec = wr.Rolling(**(KEYED | {"key": key}), windows=random_windows(0), aggregates=AGGREGATES)
    check(spark, spec, table, given=4)
    empty = spec(frame(spark, table).where("id < 0"))
    assert empty.toArrow().num_rows == 0
    assert empty.schema == spec(frame(spark, table)).schema


def test_time_that_is_missing_is_named(spark: Any) -> None:  # noqa: F811
    table = pa.table({"k": [1, 1], "t": pa.array([1, None], pa.int64()), "id": [1, 2], "x": [1, 2]})
    for key in ("k", None):
        spec = wr.Rolling(**(KEYED | {"key": key}), windows=[wr.time(3)], aggregates=[wr.Sum("x")])
        with pytest.raises(Exception, match=r"time column 't' is missing in 1 of 2 rows"):
            spec(frame(spark, table)).collect()


# --- the corpus ----------------------------------------------------------------------------------


def corpus_table(kinds: tuple[type, ...], arrow: pa.DataType) -> pa.Table:
    rows: list[tuple[str, int, Any]] = []
    for case in CASES:
        if all(value is None or isinstance(value, kinds) for value in case.values):
            rows += [(case.name, place, value) for place, value in enumerate(case.values)]
    values = [value for _, _, value in rows]
    if arrow == pa.float64():
        values = [None if value is None else float(value) for value in values]
    if arrow == pa.int64():
        values = [None if value is None else int(value) for value in values]
    return pa.table(
        {
            "k": pa.array([name for name, _, _ in rows]),
            "t": pa.array([place // 2 for _, place, _ in rows], pa.int64()),
            "id": pa.array(range(len(rows)), pa.int64()),
            "x": pa.array(values, arrow),
        }
    )


_ANY: list[Any] = [
    *(wr.Count(), wr.Count("x"), wr.First("x"), wr.Last("x"), wr.Max("x"), wr.Min("x")),
    *(wr.Quantile("x", 0.6, method="lower"), wr.Distinct("x", values=True)),
    *(wr.M4("x", "t"), wr.TopK("x", 2), wr.BottomK("x", 2), wr.Collect("x"), wr.Mode("x")),
    *(wr.Entropy("x"), wr.Bloom("x", capacity=9), wr.ApproxDistinct("x"), wr.CountMin("x", of=1)),
    wr.FrequentItems("x"),
]
_NUMBERS = [
    *_ANY,
    wr.Sum("x"),
    wr.Mean("x"),
    wr.Variance("x"),
    wr.StdDev("x", ddof=0),
    wr.MaxCount("x"),
    wr.ArgMax("k", "x"),
    wr.ApproxQuantile("x", 0.3),
    wr.ArgMin("k", "x"),
    *(wr.MinCount("x"), wr.Spread("x"), wr.RelativeVariation("x"), wr.Product("x")),
    *(wr.Kurtosis("x", population=True), wr.Correlation("x", "id"), wr.WeightedMean("x", "id")),
]
if os.environ.get("WINDROW_TESTS") == "slow":  # each compiles two kernels more
    _NUMBERS += [wr.Skewness("x"), wr.Covariance("x", "id"), wr.Slope("x", "id")]
CORPUS: dict[str, tuple[tuple[type, ...], pa.DataType, list[Any]]] = {
    "floats": ((int, float), pa.float64(), _NUMBERS),
    "integers": ((int,), pa.int64(), _NUMBERS),
    "bits": ((int,), pa.int64(), [wr.BitAnd("x"), wr.BitOr("x"), wr.BitXor("x")]),
    "booleans": ((bool,), pa.bool_(), [*_ANY, wr.All("x"), wr.Any("x"), wr.Sum("x")]),
    "decimals": ((Decimal,), pa.decimal128(12, 3), [*_ANY, wr.Sum("x"), wr.ArgMax("k", "x")]),
    "texts": ((str,), pa.string(), [*_ANY, wr.Concat("x"), wr.MaxCount("x")]),
    "bytes": ((bytes,), pa.binary(), [*_ANY, wr.Concat("x"), wr.ArgMax("k", "x")]),
    "dates": ((date,), pa.date32(), [*_ANY, wr.MaxCount("x")]),
}


@pytest.mark.parametrize("key", ["k", None])
@pytest.mark.parametrize("name", CORPUS)
def test_corpus(spark: Any, name: str, key: str | None) -> None:  # noqa: F811
    kinds, arrow, aggregates = CORPUS[name]
    table = corpus_table(kinds, arrow)
    if name == "dates":
        table = table.filter(pa.array([k == "dates" for k in table["k"].to_pylist()]))
    assert table["x"].null_count < table.num_rows
    if key is None:  # one line, longer than any case
        times = pa.array(np.arange(table.num_rows) // 2)
        table = table.set_column(1, "t", times)
    spec = wr.Rolling(
        **(KEYED | {"key": key}),
        windows=[wr.rows(1), wr.rows(3), wr.time(2, closed="both"), wr.rows(2, after=9)],
        aggregates=aggregates,
        overflow="null",
    )
    check(spark, spec, table.take(pa.array(np.arange(table.num_rows)[::-1])), partitions=4)


def test_timed_corpus(spark: Any) -> None:  # noqa: F811
    rows = [(case.name, *row) for case in TIMED_CASES for row in case.rows]
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "case": pa.array(columns[0]),
            "k": pa.array(columns[1], pa.string()),
            "t": pa.array(columns[2], pa.int64()),
            "x": pa.array(columns[3], pa.float64()),
            "id": pa.array(range(len(rows))),
        }
    )
    windows = [wr.time(10), wr.time(10, closed="both"), wr.rows(2), wr.time(10, ending=10)]
    aggregates = [wr.Sum("x"), wr.Count(), wr.Last("x"), wr.Min("x")]
    for key in (["case", "k"], "case", None):
        spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=aggregates)
        check(spark, spec, table, given=7, partitions=5)


def test_ties_on_every_border(spark: Any) -> None:  # noqa: F811
    times = np.repeat(np.arange(12) * 10, 20)
    table = random_table(240, seed=5).set_column(1, "t", pa.array(times))
    windows = {
        "all": wr.time(10),
        "left": wr.time(10, closed="left"),
        "both": wr.time(30, closed="both"),
        "neither": wr.time(30, closed="neither"),
        "rows": wr.rows(20),
        "more": wr.rows(61),
    }
    for key, options in ((None, {}), ("k", {"hot_rows": 50})):
        spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=SOME)
        check(spark, spec, table, partitions=6, **options)


# --- keys ----------------------------------------------------------------------------------------


def test_keys_of_any_kind(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=3)
    pick = np.arange(200)
    floats = [[0.0, -0.0, math.nan, None, 1.5][n % 5] for n in pick]
    keys = {
        "a": pa.array(["x" if n % 3 else None for n in pick]),
        "n": pa.array(floats, pa.float64()),
        "c": pa.array([None if n % 4 == 0 else date(2024, 1, 1 + n % 2) for n in pick]),
        "d k": pa.array([Decimal(n % 3) for n in pick.tolist()], pa.decimal128(5, 1)),
        "e": pa.array([[b"", b"\x00", None][n % 3] for n in pick]),
        "g": pa.array(np.where(pick % 2, -0.0, 0.0).astype(np.float32)),
    }
    for name, column in keys.items():
        table = table.append_column(name, column)
    windows = {"r": wr.rows(20), "w": wr.time(70)}
    aggregates = [wr.Sum("x"), wr.Count(), wr.Last("s"), wr.Max("x")]
    for key in ("n", "e", ["a", "n"], [*keys]):
        spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=aggregates)
        check(spark, spec, table, partitions=3)
    for key in (["a", "n"], ["c", "d k"], "e", "g"):
        spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=aggregates)
        check(spark, spec, table, hot_rows=20, partitions=6)


@pytest.mark.parametrize("key", ["a.b", None])
def test_dots_in_names(spark: Any, key: str | None) -> None:  # noqa: F811
    table = random_table(60).rename_columns(
        {"k": "a.b", "t": "the.time", "x": "x.y", "s": "not.used"}
    )
    spec = wr.Rolling(
        key=key,
        time="the.time",
        tie="id",
        windows={"w": wr.time(100)},
        aggregates=[wr.Sum("x.y"), wr.Max("x.y")],
    )
    check(spark, spec, table, partitions=3)


def test_ties_of_any_kind(spark: Any) -> None:  # noqa: F811
    table = random_table(120, seed=4, span=3)
    codes = np.arange(120)
    ties = {
        "n": pa.array([None if n % 5 == 0 else n % 7 - 3 for n in codes.tolist()], pa.int64()),
        "w": pa.array([None if n % 5 == 0 else "bca"[n % 3] for n in codes.tolist()]),
        "v": pa.array([[0.0, -0.0, math.nan, None, -1.0][n % 5] for n in codes.tolist()]),
    }
    for name, column in ties.items():
        table = table.append_column(name, column)
        for key in ("k", None):
            spec = wr.Rolling(
                **(KEYED | {"key": key, "tie": [name, "id"]}),
                windows={"r": wr.rows(4)},
                aggregates=[wr.Concat("s"), wr.Last("id"), wr.Sum("x")],
            )
            check(spark, spec, table, partitions=2)


# --- time ----------------------------------------------------------------------------------------


def timed(kind: str) -> pa.Table:
    start = datetime(2024, 3, 10, 3, tzinfo=UTC)  # New York's clocks change at seven
    steps = np.random.default_rng(0).integers(0, 400, 150)
    table = random_table(150, seed=1).drop_columns(["t"])
    if kind == "date":
        days = [date(2024, 2, 1) + timedelta(days=int(n) // 8) for n in steps]
        return table.append_column("t", pa.array(days, pa.date32()))
    zone = "UTC" if kind == "timestamp" else None
    times = [start + timedelta(minutes=3 * int(n), microseconds=int(n) % 3) for n in steps]
    times = times if zone else [t.replace(tzinfo=None) for t in times]
    return table.append_column("t", pa.array(times, pa.timestamp("us", zone)))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"] if SLOW else ["America/New_York"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_zones(spark: Any, kind: str, zone: str) -> None:  # noqa: F811
    table = timed(kind)
    lengths = ("3d", "30d") if kind == "date" else ("37m", "9h")
    windows = {
        "short": wr.time(lengths[0], closed="both"),
        "long": wr.time(lengths[1]),
        "past": wr.time(lengths[1], ending=lengths[0]),
    }
    aggregates = [wr.Sum("x"), wr.Max("t"), wr.First("t"), wr.Count(), wr.ArgMax("t", "x")]
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        paths: list[Any] = [("k", {})]
        if zone != "UTC":
            paths += [(None, {"partitions": 4}), ("k", {"hot_rows": 10})]
        for key, options in paths:
            spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=aggregates)
            df = frame(spark, table)
            assert df.schema["t"].dataType.simpleString() == kind
            answers = spec(df, **options)
            assert answers.schema["t_max_long"].dataType.simpleString() == kind
            assert_same(answers.toArrow(), spec(table), spec)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_float_times_need_a_unit(spark: Any) -> None:  # noqa: F811
    table = random_table(100, seed=2)
    seconds = np.round(1.7e9 + table["t"].to_numpy() / 7, 3)  # nanoseconds have more bits
    table = table.set_column(1, "t", pa.array(seconds))
    for key in ("k", None):
        common = KEYED | {"key": key}
        spec = wr.Rolling(
            **common, windows=["30s", "3m"], aggregates=[wr.Sum("x"), wr.Count()], unit="s"
        )
        check(spark, spec, table, partitions=3)
        spec = wr.Rolling(**common, windows=["30s"], aggregates=[wr.Sum("x")])
        with pytest.raises(BadSpecification, match="unit="):
            spec(frame(spark, table))


# --- ticks, bounds, batches ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["integers", "timestamp", "timestamp_ntz", "date"])
def test_ticks(spark: Any, kind: str) -> None:  # noqa: F811
    table = random_table(150, seed=6) if kind == "integers" else timed(kind)
    steps: dict[str, Any] = {"integers": (7, 40), "date": ("2d", "5d")}
    every, length = steps.get(kind, ("25m", "2h"))
    for key in ("k", ["k", "b"], None):
        spec = wr.Rolling(
            **(KEYED | {"key": key}),
            windows={"w": wr.time(length), "c": wr.time(length, closed="left")},
            aggregates=[wr.Sum("x"), wr.Count(), wr.Last("s"), wr.Max("t")],
            every=every,
        )
        answers = spec(frame(spark, table))
        found, wanted = answers.toArrow(), spec(table)
        names = [*spec.key, "t"]
        assert found.column_names == wanted.column_names == answers.columns
        number = [
            pa.array([repr(tuple(map(str, row.values()))) for row in out.select(names).to_pylist()])
            for out in (found, wanted)
        ]
        assert_same(
            found.append_column("row", number[0]),
            wanted.append_column("row", number[1]),
            spec,
            "row",
        )


def test_bounds_from_columns(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=7)
    generator, times = np.random.default_rng(7), table["t"].to_numpy()
    table = table.append_column("low", pa.array(times - generator.integers(0, 90, 200)))
    table = table.append_column("high", pa.array(times + generator.integers(-40, 40, 200)))
    for key in ("k", None):
        spec = wr.Rolling(
            **(KEYED | {"key": key}),
            windows={"b": wr.bounds("low", "high"), "r": wr.rows(3)},
            aggregates=AGGREGATES,
        )
        check(spark, spec, table)


def test_batches_of_any_size_give_the_same_bits(spark: Any) -> None:  # noqa: F811
    table = random_table(300, seed=8)
    windows = {"w": wr.time(30), "long": wr.time(250), "rows": wr.rows(40, after=3)}
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    try:
        for key, options in (("k", {}), (None, {"partitions": 4})):
            spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=SOME)
            for rows in (1, 7, 1000):
                spark.conf.set(option, rows)
                check(spark, spec, table, **options)
    finally:
        spark.conf.set(option, before)


# --- aggregates of one's own ---------------------------------------------------------------------


class Moves(wr.Aggregate):
    """Order matters: the first value, the last, and how far all steps went together."""

    identity = (0, 0, 0, 0)

    def __init__(self, *columns: str, times: int = 1) -> None:
        super().__init__(*columns)
        self.times = times

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (1, x, x, 0)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        if a[0] == 0:
            return b
        if b[0] == 0:
            return a
        return (a[0] + b[0], a[1], b[2], a[3] + b[3] + abs(b[1] - a[2]))

    def lower(self, p):  # type: ignore[no-untyped-def]
        return self.times * p[3]


class Longest(wr.Aggregate):
    """Interpreted: texts, and a setting of its own."""

    identity = ""
    commutative = False

    def __init__(self, *columns: str, least: int = 0) -> None:
        super().__init__(*columns)
        self.least = least

    def lift(self, x: str) -> str:
        return x if len(x) >= self.least else ""

    def combine(self, a: str, b: str) -> str:
        return b if len(b) > len(a) else a

    def lower(self, p: str) -> str:
        return p + "!"


@pytest.mark.parametrize(("key", "options"), [("k", {}), (None, {}), ("k", {"hot_rows": 40})])
def test_aggregates_of_ones_own(spark: Any, key: Any, options: Any) -> None:  # noqa: F811
    class Here(wr.Aggregate):
        """Defined in a function, as in a notebook's cell."""

        identity = 0
        commutative = True

        def __init__(self, column: str, factor: int) -> None:
            super().__init__(column)
            self.factor = factor

        def lift(self, x):  # type: ignore[no-untyped-def]
            return x * self.factor

        def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
            return a + b

    table = random_table(120, seed=9)
    spec = wr.Rolling(
        **(KEYED | {"key": key}),
        windows={"w": wr.time(50), "long": wr.time(250), "r": wr.rows(9)},
        aggregates=[
            *(Moves("i", times=3), Longest("s", least=2), GeoMean("p")),
            *(Here("i", 3), Here("i", 1 << 63 - 1).alias("wraps")),  # as compiled integers do
        ],
    )
    found = check(spark, spec, table, partitions=4, **options)
    assert {"aa!", "éé!", "!"} & set(found["s_longest_w"].to_pylist())


# --- Spark's own operator ------------------------------------------------------------------------


NATIVE = [
    wr.Count(),
    wr.Count("x"),
    wr.Max("x"),
    wr.Min("x"),
    wr.Sum("i"),
    wr.Max("i"),
    wr.Max("f"),
    wr.Min("f"),
]


@pytest.mark.parametrize("nan", ["value", "missing"])
@pytest.mark.parametrize("min_rows", [0, 1, 2])
def test_native_and_kernel_give_the_same_bits(
    spark: Any,  # noqa: F811
    nan: Any,
    min_rows: int,
) -> None:
    table = random_table(200, seed=10)
    odd = [[0.0, -0.0, math.nan, None, math.inf, 1.0][n % 6] for n in range(200)]
    table = table.append_column("o", pa.array(odd, pa.float64()))
    table = table.append_column("g", pa.array(odd, pa.float64()).cast(pa.float32()))
    extra = [kind(name) for kind in (wr.Max, wr.Min, wr.Count) for name in ("o", "g")]
    found = []
    for engine in ("native", "kernel"):
        spec = wr.Rolling(
            **(KEYED | {"engine": engine}),
            windows=[wr.rows(3), wr.rows(2, ending=2), wr.rows(4, after=3)],
            aggregates=[*NATIVE, *extra],
            min_rows=min_rows,
            nan=nan,
        )
        found.append(check(spark, spec, table))
        schema = spec(frame(spark, table)).schema
        assert {f.name: f.nullable for f in schema if "count" in f.name} == {
            f"{name}count_{label}": min_rows > 0
            for label in spec.windows
            for name in ("", "x_", "o_", "g_")
        }
    assert found[0].schema == found[1].schema
    assert_same(found[0], found[1], spec)


def test_the_better_engine_is_chosen(spark: Any) -> None:  # noqa: F811
    df = frame(spark, random_table(30))
    common = KEYED | {"engine": "auto", "aggregates": [wr.Max("x")]}

    def is_native(**changed: Any) -> bool:
        spec = wr.Rolling(**(common | changed))
        plan = spec(df)._jdf.queryExecution().toString()
        assert ("MapInArrow" in plan) != ("windowspecdefinition" in plan)
        explained = spec.explain(df)
        assert (": native (" in explained) == ("windowspecdefinition" in plan)
        return "windowspecdefinition" in plan

    assert is_native(windows=[wr.rows(2)])
    assert not is_native(windows=[wr.rows(1000)])
    assert not is_native(windows=[wr.rows(2)], engine="kernel")
    assert is_native(windows=[wr.rows(1000)], engine="native")
    assert not is_native(windows=[wr.time(2)])
    assert not is_native(windows=[wr.rows(2)], aggregates=[wr.Sum("x")])


@pytest.mark.parametrize(
    ("settings", "largest"),
    [({}, 25), (wr.spark.table_settings(), 7), ({"spark.sql.window.segmentTree.enabled": True}, 0)],
    ids=["without settings", "with them", "with Spark's tree"],
)
def test_short_windows_are_sparks_where_crossing_takes_longer(
    spark: Any,  # noqa: F811
    settings: dict[str, Any],
    largest: int,
) -> None:
    other = spark.newSession()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            other.conf.set(name, value)
    df = frame(other, random_table(30))
    given = KEYED | {"engine": "auto", "aggregates": [wr.Max("x")]}
    explained = [wr.Rolling(windows=[wr.rows(n)], **given).explain(df) for n in range(1, 31)]
    assert sum(": native (" in text for text in explained) == largest
    assert all(": native (" in text for text in explained[:largest])


# --- second opinions -----------------------------------------------------------------------------


def test_spark_and_duckdb_agree(spark: Any) -> None:  # noqa: F811
    table = random_table(500, keys=6, seed=12).drop_columns(["f", "p"])
    spec = wr.Rolling(
        **KEYED,
        windows={
            "w": wr.time(40, closed="both"),
            "a": wr.time(9, after=5, closed="both"),
            "r": wr.rows(10),
        },
        aggregates=[wr.Count(), wr.Count("x"), wr.Max("x"), wr.Min("x"), wr.Sum("i"), wr.Sum("d")],
    )
    frames = {
        "w": "order by t range between 40 preceding and current row",
        "a": "order by t range between 9 preceding and 5 following",
        "r": "order by t, id rows between 9 preceding and current row",
    }
    functions = {
        "count": "count(*)",
        "x_count": "count(x)",
        "x_max": "max(x)",
        "x_min": "min(x)",
        "i_sum": "sum(i)",
        "d_sum": "sum(d)",
    }
    columns = [
        f"{function} over (partition by k {words}) as {name}_{label}"
        for label, words in frames.items()
        for name, function in functions.items()
    ]
    query = f"select id, {', '.join(columns)} from source order by id"
    ours = spec(frame(spark, table)).toArrow().sort_by("id")
    spark.createDataFrame(table).createOrReplaceTempView("source")
    source = table
    assert source.num_rows == ours.num_rows
    second: Any = duckdb.sql(query)
    for theirs in (spark.sql(query).toArrow(), second.to_arrow_table()):
        for name in theirs.column_names:
            pairs = zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True)
            for got, want in pairs:
                assert got == want or (got != got and want != want), name


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_spark_agrees_about_intervals(spark: Any, zone: str) -> None:  # noqa: F811
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        spec = wr.Rolling(
            **KEYED,
            windows={"w": wr.time("9h", closed="both")},
            aggregates=[wr.Count(), wr.Sum("i"), wr.Max("t")],
        )
        df = frame(spark, timed("timestamp"))
        ours = spec(df).toArrow().sort_by("id")
        df.createOrReplaceTempView("timed")
        words = "partition by k order by t range between interval 9 hours preceding and current row"
        theirs = spark.sql(
            f"select id, count(*) over ({words}) as count_w, sum(i) over ({words}) as i_sum_w, "
            f"max(t) over ({words}) as t_max_w from timed order by id"
        ).toArrow()
        for name in theirs.column_names:
            assert ours[name].to_pylist() == theirs[name].to_pylist(), name
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


# --- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["k", None])
def test_schema(spark: Any, key: str | None) -> None:  # noqa: F811
    df = spark.sql(
        "select 1L as k, timestamp'2024-01-01' as t, timestamp_ntz'2024-01-01' as z, 1L as id, "
        "cast(1 as int) as i, cast(1 as tinyint) as small, 1.5f as f, 1.5d as x, "
        "cast(1.25 as decimal(10,2)) as d, date'2024-01-01' as day, 'a' as s, binary('a') as y, "
        "map('a', 1) as m, array(1) as many, named_struct('a', 1) as both"
    )
    spec = wr.Rolling(
        **(KEYED | {"key": key}),
        windows={"w": wr.time("1h"), "r": wr.rows(2)},
        aggregates=[
            wr.Count(),
            wr.Count("s"),
            wr.MaxCount("i"),
            wr.Sum("i"),
            wr.Sum("small"),
            wr.Sum("f"),
            wr.Sum("x"),
            wr.Sum("d"),
            wr.Mean("i"),
            wr.Max("day"),
            wr.Max("t"),
            wr.First("z"),
            wr.Max("f"),
            wr.Min("i"),
            wr.Last("s"),
            wr.Concat("s"),
            wr.Last("y"),
            wr.StdDev("x"),
            wr.ArgMax("t", "x"),
        ],
    )
    answers = spec(df)
    assert answers.schema[: len(df.schema)] == df.schema[:]
    found = {f.name: (f.dataType.simpleString(), f.nullable) for f in answers.schema}
    wanted = {
        "count": ("bigint", False),
        "s_count": ("bigint", False),
        "i_max_count": ("bigint", False),
        "i_sum": ("bigint", True),
        "small_sum": ("bigint", True),
        "f_sum": ("double", True),
        "x_sum": ("double", True),
        "d_sum": ("decimal(38,2)", True),
        "i_mean": ("double", True),
        "day_max": ("date", True),
        "t_max": ("timestamp", True),
        "z_first": ("timestamp_ntz", True),
        "f_max": ("float", True),
        "i_min": ("int", True),
        "s_last": ("string", True),
        "s_concat": ("string", True),
        "y_last": ("binary", True),
        "x_std": ("double", True),
    }
    for name, kind in wanted.items():
        assert {label: found[f"{name}_{label}"] for label in ("w", "r")} == {"w": kind, "r": kind}
    rows = answers.collect()
    assert len(rows) == 1
    assert rows[0]["m"] == {"a": 1}
    assert rows[0]["many"] == [1]
    assert rows[0]["both"]["a"] == 1
    assert rows[0]["d_sum_w"] == Decimal("1.25")


def test_schema_of_ticks_and_min_rows(spark: Any) -> None:  # noqa: F811
    df = frame(spark, timed("timestamp"))
    common: dict[str, Any] = KEYED | {"windows": ["1h"], "aggregates": [wr.Count(), wr.Sum("i")]}
    ticks = wr.Rolling(**common, every="1h")(df).schema
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in ticks] == [
        ("k", "bigint", True),
        ("t", "timestamp", False),
        ("count_1h", "bigint", False),
        ("i_sum_1h", "bigint", True),
    ]
    assert wr.Rolling(**common, min_rows=1)(df).schema["count_1h"].nullable


def test_schema_that_is_given_is_not_asked_for(spark: Any) -> None:  # noqa: F811
    table = random_table(60)
    df = frame(spark, table)
    spec = wr.Rolling(**KEYED, windows=[wr.time(30)], aggregates=[wr.Sum("x")])
    for given in (
        df.schema,
        ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in df.schema),
    ):
        assert_same(spec(df, schema=given).toArrow(), spec(table), spec)


# --- jobs and refusals ---------------------------------------------------------------------------


def test_nothing_runs_before_it_is_asked_for(spark: Any) -> None:  # noqa: F811
    df = frame(spark, random_table(60))
    for engine, window in (("kernel", wr.time(30)), ("native", wr.rows(3))):
        spec = wr.Rolling(
            **(KEYED | {"engine": engine}), windows=[window], aggregates=[wr.Max("x")]
        )
        answers, jobs = jobs_of(spark, partial(spec, df))
        assert jobs == 0
        _, jobs = jobs_of(spark, answers.schema.simpleString)
        assert jobs == 0
        rows, jobs = jobs_of(spark, answers.collect)
        assert jobs > 0
        assert len(rows) == 60
    spec = wr.Rolling(**ONE_LINE, windows=[wr.time(30)], aggregates=[wr.Max("x")])
    _, jobs = jobs_of(spark, lambda: spec(df))
    assert jobs > 0  # the borders


_PLAIN: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "windows": [wr.time(3)],
    "aggregates": [wr.Sum("x")],
}
REFUSALS: dict[str, tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = {
    "rows without a tie": ({"windows": [wr.rows(3)]}, {}, Refused, r"counts rows.*tie=\.\.\."),
    "first without a tie": (
        {"aggregates": [wr.First("x")]},
        {},
        Refused,
        r'order of rows.*tie="any"',
    ),
    "own without a tie": ({"aggregates": [Moves("i")]}, {}, Refused, "commutative = True"),
    "no such column": ({"aggregates": [wr.Sum("y")]}, {}, BadSpecification, "no column 'y'"),
    "no such key": ({"key": "kk"}, {}, BadSpecification, "did you mean 'k'"),
    "no such tie": ({"tie": "ids"}, {}, BadSpecification, "no column 'ids'"),
    "hot_rows": ({}, {"hot_rows": 0}, BadSpecification, "hot_rows= is a number from 1 on"),
    "partitions": ({}, {"partitions": -1}, BadSpecification, "partitions= is a number"),
    "stretch_rows": ({}, {"stretch_rows": 1.5}, BadSpecification, "stretch_rows= is a number"),
    "native time window": ({"engine": "native"}, {}, Refused, "not a rows window"),
    "native float sum": (
        {"engine": "native", "tie": "id", "windows": [wr.rows(2)]},
        {},
        Refused,
        "round or overflow",
    ),
    "native without a key": (
        {"engine": "native", "key": None, "tie": "id", "windows": [wr.rows(2)]},
        {},
        Refused,
        "without a key",
    ),
    "sum of texts": ({"aggregates": [wr.Sum("s")]}, {}, Exception, "'s'"),
    "time of texts": ({"time": "s"}, {}, BadSpecification, "time column 's' has type"),
    "maximum of maps": ({"aggregates": [wr.Max("m")]}, {}, Exception, "'m'"),
    "schema without a key": ({"key": None}, {"schema": "df"}, Refused, "declarative pipelines"),
    "schema with hot rows": ({}, {"schema": "df", "hot_rows": 5}, Refused, "declarative pipelines"),
    "not a schema": ({}, {"schema": 3}, BadSpecification, "schema= is a StructType"),
    "unit of integers": ({"windows": ["1h"]}, {}, BadSpecification, "times are integers"),
    "unknown option": ({}, {"hot": 5}, BadSpecification, "hot"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_come_before_any_job(spark: Any, name: str) -> None:  # noqa: F811
    changed, options, error, message = REFUSALS[name]
    df = frame(spark, random_table(20))
    df = df.selectExpr("*", "map('a', 1) as m")
    options = {key: df.schema if value == "df" else value for key, value in options.items()}
    spec = wr.Rolling(**(_PLAIN | changed))

    def refused() -> None:
        with pytest.raises(error, match=message) as caught:
            spec(df, **options)
        assert type(caught.value).__module__ == "windrow.errors"

    assert jobs_of(spark, refused)[1] == 0


def test_names_that_spark_cannot_tell_apart(spark: Any) -> None:  # noqa: F811
    df = frame(spark, random_table(20))
    spec = wr.Rolling(**_PLAIN)
    with pytest.raises(BadSpecification, match="two columns called 'x'"):
        spec(df.selectExpr("*", "x as X"))
    with pytest.raises(BadSpecification, match=r"x_sum_3.* already"):
        spec(df.selectExpr("*", "x as X_Sum_3"))
    odd = random_table(20).append_column("p`q", pa.array(range(20)))
    assert_same(spec(frame(spark, odd)).toArrow(), spec(odd), spec)
    with pytest.raises(BadSpecification, match="__windrow_"):
        spec(df.selectExpr("*", "x as __windrow_place"))


def test_any_order_among_ties(spark: Any) -> None:  # noqa: F811
    table = random_table(100, seed=13, span=20)
    for key in ("k", None):
        spec = wr.Rolling(
            key=key, time="t", tie="any", windows=[wr.rows(5)], aggregates=[wr.Count(), wr.Max("t")]
        )
        found = spec(frame(spark, table), partitions=3).toArrow()
        assert found.num_rows == 100
        wanted = spec(table)
        for name in ("count_5rows", "t_max_5rows"):
            assert sorted(found[name].to_pylist()) == sorted(wanted[name].to_pylist())


# --- hot keys and plans --------------------------------------------------------------------------


def skewed(size: int) -> pa.Table:
    hot = np.random.default_rng(0).random(size) < 0.9
    keys = np.where(hot, 7, np.arange(size) % 20)
    return random_table(size, seed=14, span=3000).set_column(0, "k", pa.array(keys))


def test_one_hot_key(spark: Any) -> None:  # noqa: F811
    table = skewed(600)
    spec = wr.Rolling(
        **KEYED,
        windows={"w": wr.time(100), "long": wr.time(2500), "r": wr.rows(50)},
        aggregates=SOME,
    )
    check(spark, spec, table, hot_rows=300, partitions=5)
    text = spec.explain(frame(spark, table), hot_rows=300, partitions=5)
    rows = table["k"].to_pylist().count(7)
    assert "hot keys (from 300 rows on): 1" in text
    assert f"key 7: {rows} rows in 5 stretches" in text
    assert "copies of a row: " in text
    assert "middles for: long" in text
    assert "rows on): 0" in spec.explain(frame(spark, table), hot_rows=100_000)


def test_a_row_is_copied_once_for_each_window_at_most(spark: Any) -> None:  # noqa: F811
    table = random_table(1000, span=10_000)
    for length in (10, 900, 3000, 9000, 10**9):
        spec = wr.Rolling(**ONE_LINE, windows=[wr.time(length)], aggregates=[wr.Sum("x")])
        text = spec.explain(frame(spark, table), partitions=7)
        copies = float(text.split("copies of a row: ")[1].split(" ")[0])
        assert 1 <= copies <= 2, length
        assert "all rows: 1,000 rows in 7 stretches" in text


def test_plans_name_the_path(spark: Any) -> None:  # noqa: F811
    df = frame(spark, random_table(50))
    common: dict[str, Any] = KEYED | {"engine": "auto", "aggregates": [wr.Max("x"), wr.Count()]}
    keyed = wr.Rolling(**common, windows=[wr.time(30)])
    text, jobs = jobs_of(spark, lambda: keyed.explain(df, partitions=4))
    assert jobs == 0
    assert "Spark table by k: keyed" in text
    assert "partitions: 4; copies of a row: 1" in text
    assert "answer x_max_30: double" in text
    assert "answer count_30: bigint" in text
    text = wr.Rolling(**common, windows=[wr.rows(2)]).explain(df)
    assert "Spark table by k: native (few rows a window" in text
    text = wr.Rolling(**(common | {"key": None}), windows=[wr.time(30)]).explain(df)
    assert "Spark table without a key: stretches" in text
    assert "native: without a key" in text
    text = wr.Rolling(**(common | {"key": None}), windows=[wr.time(30)], every=5).explain(df)
    assert "one task (no key, and ticks" in text
    assert "partitions: 1;" in text


def test_a_key_may_be_called_count(spark: Any) -> None:  # noqa: F811
    table = random_table(120, seed=5).rename_columns({"k": "count"})
    spec = wr.Rolling(key="count", time="t", windows=[wr.time(9)], aggregates=[wr.Sum("x")])
    assert_same(spec(frame(spark, table), hot_rows=30).toArrow(), spec(table), spec)
