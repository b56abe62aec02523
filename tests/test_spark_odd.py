"""Odd tables on Spark: what Spark, Python and windrow could each take for something else."""

# mypy: disable-error-code="no-untyped-def, operator, index, misc, return-value"
# ruff: noqa: N805

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import windrow as wr
from tests.spark_session import (
    assert_same,
    check,
    frame,
    random_table,
    spark,  # noqa: F401
)
from windrow.errors import BadSpecification, BadValue, Refused, SumOverflow

SIZE = 12
BASE = pa.table(
    {
        "k": [1] * SIZE,
        "t": list(range(SIZE)),
        "id": list(range(SIZE)),
        "x": [float(i) for i in range(SIZE)],
        "d": pa.array([Decimal(i) / 4 for i in range(SIZE)], pa.decimal128(10, 2)),
    }
)
WINDOWS: dict[str, Any] = {"w": wr.time(3)}
ROWS: dict[str, Any] = {"r": wr.rows(3)}


def rolling(**changed: Any) -> wr.Rolling:
    usual: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "windows": WINDOWS,
        "aggregates": [wr.Count()],
    }
    return wr.Rolling(**usual | changed)


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            pa.array([datetime(2024, 11, 3, i % 4) for i in range(SIZE)], pa.timestamp("us")),
            "key 2024-11-03T01:00:00.000000:",
        ),
        (
            pa.array(
                [datetime(2024, 11, 3, 5) + timedelta(hours=i % 4) for i in range(SIZE)],
                pa.timestamp("us", "UTC"),
            ),
            "key 2024-11-03T06:00:00.000000Z:",
        ),
        (pa.array([date(1 + i % 2, 1, 1) for i in range(SIZE)]), "key 0002-01-01:"),
        (pa.array([[None, date(2024, 1, 1)][i % 2] for i in range(SIZE)]), "key None:"),
    ],
    ids=["times", "moments around the end of summer time", "dates of year 1", "no date"],
)
def test_hot_keys_that_are_times(spark: Any, keys: pa.Array, told: str) -> None:  # noqa: F811
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        spec, table = rolling(key="g"), BASE.append_column("g", keys)
        check(spark, spec, table, hot_rows=2, partitions=6)
        assert told in spec.explain(frame(spark, table), hot_rows=2)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_aggregates_may_read_the_key(spark: Any) -> None:  # noqa: F811
    spec = rolling(windows={"w": wr.time(7)}, aggregates=[wr.Sum("k"), wr.Count("k")])
    check(spark, spec, BASE, hot_rows=1, stretch_rows=2)


@pytest.mark.parametrize(
    ("changed", "options"),
    [({}, {}), ({}, {"hot_rows": 2}), ({"windows": ROWS, "tie": "id", "engine": "native"}, {})],
    ids=["keyed", "hot", "native"],
)
def test_texts_are_compared_by_their_bytes(
    spark: Any,  # noqa: F811
    changed: dict[str, Any],
    options: dict[str, Any],
) -> None:
    table = BASE.append_column("g", pa.array(["a", "A"] * (SIZE // 2)))
    spec = rolling(key="g", **changed)
    df = frame(spark, table).withColumn("g", F.collate("g", "UTF8_LCASE"))
    assert_same(spec(df, **options).toArrow(), spec(table), spec)


def test_labels_of_a_collated_key(spark: Any) -> None:  # noqa: F811
    table = BASE.append_column("g", pa.array(["a", "A"] * (SIZE // 2)))
    spec = rolling(key="g", windows={"w": wr.time(9)})
    labels = pa.table({"g": ["a", "A", "b"], "at": [8, 8, 8], "id": [0, 1, 2]})
    both = [
        frame(spark, each).withColumn("g", F.collate("g", "UTF8_LCASE")) for each in (table, labels)
    ]
    assert_same(spec.as_of(*both, on="at").toArrow(), spec.as_of(table, labels, on="at"), spec)


# --- times, and order without them ----------------------------------------------------------------


def test_sparks_own_operator_takes_no_row_without_a_time(spark: Any) -> None:  # noqa: F811
    times = pa.array([None, *range(1, SIZE)], pa.int64())
    df = frame(spark, BASE.set_column(1, "t", times))
    spec = rolling(tie="id", windows={"r": wr.rows(2)}, engine="native")
    with pytest.raises(PySparkException, match="time column 't' is missing in some rows"):
        spec(df).collect()
    floats = BASE.set_column(1, "t", pa.array([float(i) for i in range(SIZE)]))
    with pytest.raises(Refused, match="floats that are no time"):
        rolling(tie="id", windows=ROWS, unit="s", engine="native")(frame(spark, floats))


def test_a_time_that_is_no_number(spark: Any) -> None:  # noqa: F811
    times = pa.array([float("nan"), *map(float, range(1, SIZE))])
    spec = rolling(key=None, unit="s", windows=["3s"])
    with pytest.raises(BadValue, match="no time that int64 nanoseconds can hold, in 1 of 12 rows"):
        spec(frame(spark, BASE.set_column(1, "t", times)))


def test_a_label_without_a_time_is_the_labels(spark: Any) -> None:  # noqa: F811
    labels = pa.table({"k": [1, 1], "asked": pa.array([3, None], pa.int64())})
    says = "time column 'asked' of the labels is missing"
    with pytest.raises(BadValue, match=says):
        rolling().as_of(BASE, labels, on="asked")
    with pytest.raises(PySparkException, match=says):
        rolling().as_of(frame(spark, BASE), frame(spark, labels), on="asked").collect()


@pytest.mark.parametrize("first", ["x", "n", "nothing"])
@pytest.mark.parametrize(("key", "options"), [(None, {"partitions": 3}), ("k", {"hot_rows": 2})])
def test_order_by_ties_alone(
    spark: Any,  # noqa: F811
    first: str,
    key: str | None,
    options: dict[str, Any],
) -> None:
    some = pa.array([None if i % 5 == 2 else (i * 7) % SIZE for i in range(SIZE)], pa.int64())
    table = BASE.append_column("n", some).append_column("nothing", pa.nulls(SIZE, pa.int64()))
    spec = rolling(key=key, time=None, tie=[first, "id"], windows=ROWS, aggregates=[wr.Sum("id")])
    check(spark, spec, table, **options)


def test_windows_longer_than_any_table(spark: Any) -> None:  # noqa: F811
    far = {"far": wr.rows(2, ending=2**31), "all": wr.rows(2**62, ending=2**62)}
    check(spark, rolling(tie="id", windows=far), BASE)
    check(spark, rolling(key=None, tie="id", windows=far), BASE, partitions=3)
    with pytest.raises(Refused, match="reaches further than Spark's frames can"):
        rolling(tie="id", windows=far, engine="native")(frame(spark, BASE))


# --- columns that are only carried along ----------------------------------------------------------


@pytest.mark.parametrize("key", [None, "k"])
def test_columns_without_a_hash_are_carried(spark: Any, key: str | None) -> None:  # noqa: F811
    spec = rolling(key=key, tie="id", windows=ROWS, aggregates=[wr.Sum("x")], engine="kernel")
    df = frame(spark, BASE).selectExpr(
        "*", "named_struct('m', map('a', id)) as s", "array(map(id, 1)) as a", "parse_json('[1]') v"
    )
    options = {"hot_rows": 2} if key else {"partitions": 3}
    found = spec(df, **options)
    assert all(row.s["m"]["a"] == row.id and list(row.a[0]) == [row.id] for row in found.collect())
    assert_same(found.drop("s", "a", "v").toArrow(), spec(BASE), spec)


@pytest.mark.parametrize("key", [None, "k"])
def test_what_cannot_cross_is_named(spark: Any, key: str | None) -> None:  # noqa: F811
    df = frame(spark, BASE).selectExpr("*", "interval 1 month as months")
    with pytest.raises(BadSpecification, match="column 'months' has type interval month"):
        rolling(key=key)(df)
    with pytest.raises(BadSpecification, match="column 'months'"):
        rolling().as_of(frame(spark, BASE), df, on="t")


# --- names ----------------------------------------------------------------------------------------


def test_names_that_differ_by_capitals(spark: Any) -> None:  # noqa: F811
    df = frame(spark, BASE)
    twice = [wr.Sum("x").alias("X"), wr.Max("x").alias("x")]
    with pytest.raises(BadSpecification, match="two answers are called 'X_w', but for capitals"):
        rolling(aggregates=twice)(df)
    labels = frame(spark, BASE.select(["k", "t"])).withColumn("COUNT_W", F.lit(1))
    with pytest.raises(BadSpecification, match="table of labels has a column 'count_w' already"):
        rolling().as_of(df, labels, on="t")
    double = frame(spark, BASE.select(["k", "t", "x"])).withColumnRenamed("x", "T")
    with pytest.raises(BadSpecification, match="table of labels has two columns called"):
        rolling().as_of(df, double, on="t")


def test_events_may_be_called_like_answers(spark: Any) -> None:  # noqa: F811
    events, labels = BASE.append_column("count_w", BASE["x"]), BASE.select(["k", "t", "id"])
    found = rolling().as_of(frame(spark, events), frame(spark, labels), on="t").toArrow()
    assert_same(found, rolling().as_of(events, labels, on="t"), rolling())


@pytest.mark.parametrize("wrong", [{"hot_rows": True}, {"partitions": 1 << 31}])
def test_options_that_are_no_numbers(spark: Any, wrong: dict[str, Any]) -> None:  # noqa: F811
    with pytest.raises(BadSpecification, match=r"is a number (from 1 on|up to 2147483647), not"):
        rolling()(frame(spark, BASE), **wrong)


# --- a source that changes ------------------------------------------------------------------------


def test_a_table_that_changes_between_two_reads_is_found_out(spark: Any) -> None:  # noqa: F811
    """Time runs back as the clock goes on: the first rows are then before all that were counted."""
    late = F.expr("timestampdiff(MICROSECOND, current_timestamp(), timestamp'2020-01-01') + id * 9")
    df = spark.range(0, 300, 1, 3).select("id", late.alias("t"))
    with pytest.raises(PySparkException, match="the table gives other rows each time it is read"):
        wr.Rolling(time="t", windows=WINDOWS, aggregates=[wr.Count()])(df, partitions=3).collect()


# --- types of answers -----------------------------------------------------------------------------


class SampleVariance(wr.Aggregate):
    """None of one row."""

    identity = (0, 0.0, 0.0)
    commutative = True

    def lift(x):
        return (1, x, x * x)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1], a[2] + b[2])

    def lower(p):
        if p[0] < 2:
            return None
        return (p[2] - p[1] * p[1] / p[0]) / (p[0] - 1)


class Parsed(wr.Aggregate):
    """Of texts that no example could be."""

    commutative = True
    answer_type: Any = "double"

    def lift(x):
        return float(x[1:])

    def combine(a, b):
        return a + b


class Longest(wr.Aggregate):
    """Of anything that has an order."""

    commutative = True

    def combine(a, b):
        return a if a > b else b


class WholeOrNot(wr.Aggregate):
    """Answers that are whole numbers or floats."""

    commutative = True

    def combine(a, b):
        return a + b

    def lower(p):
        return p if p % 2 else p / 4


OWN: list[Any] = [SampleVariance("x"), Parsed("s"), Longest("d"), Longest("i"), WholeOrNot("id")]
BUILT_IN: list[Any] = [
    *(wr.Variance("d"), wr.StdDev("d"), wr.Spread("d"), wr.Mean("d"), wr.Product("d")),
    *(wr.Covariance("d", "x"), wr.Skewness("d"), wr.LongestRunTime("d", "x"), wr.Concat("s")),
]


@pytest.mark.parametrize(("key", "options"), [("k", {}), (None, {"partitions": 3})])
def test_types_that_one_row_does_not_show(
    spark: Any,  # noqa: F811
    key: str | None,
    options: dict[str, Any],
) -> None:
    texts = pa.array([f"#{i}" for i in range(SIZE)])
    gaps = pa.array([timedelta(seconds=i * 7 % 5) for i in range(SIZE)], pa.duration("us"))
    table = BASE.append_column("s", texts).append_column("i", gaps)
    spec = rolling(key=key, tie="id", windows={"w": wr.time(7)}, aggregates=[*OWN, *BUILT_IN])
    found = check(spark, spec, table, **options)
    for name, wanted in {
        "x_sample_variance_w": pa.float64(),
        "d_longest_w": pa.decimal128(38, 2),
        "d_spread_w": pa.decimal128(38, 2),
        "i_longest_w": pa.duration("us"),
        "id_whole_or_not_w": pa.float64(),
    }.items():
        assert found.schema.field(name).type == wanted, name


class Counts(wr.Aggregate):
    """A field for every value that came."""

    commutative = True

    def lift(x):
        return {str(x): 1}

    def combine(a, b):
        return a | b


class Listed(wr.Aggregate):
    """A list as partial, which has no bytes."""

    def lift(x):
        return [x]

    def combine(a, b):
        return a + b


class Nameless(Parsed):
    """Without saying what its answers are."""

    answer_type: Any = None


def test_refused_before_any_job(spark: Any) -> None:  # noqa: F811
    table = BASE.append_column("s", pa.array([f"#{i}" for i in range(SIZE)]))
    df = frame(spark, table)
    for aggregate, says in {
        Counts("x"): 'struct<.*answer_type = "double"',
        Nameless("s"): 'could not be tried on .*answer_type = "double"',
    }.items():
        with pytest.raises(BadSpecification, match=says):
            rolling(aggregates=[aggregate])(df)
    for changed, options in (({"key": None}, {}), ({}, {"hot_rows": 2})):
        with pytest.raises(Refused, match=r"partials travel as bytes.*Declare schema="):
            rolling(tie="id", aggregates=[Listed("x")], **changed)(df, **options)


class Doubtful(Longest):
    """Says what its answers are not."""

    answer_type = "int64"


def test_answers_that_do_not_fit_are_named(spark: Any) -> None:  # noqa: F811
    half = BASE.set_column(3, "x", pa.array([i + 0.5 for i in range(SIZE)]))
    with pytest.raises(BadValue, match=r"Doubtful.*answers of type double came where int64"):
        rolling(aggregates=[Doubtful("x")])(half)
    with pytest.raises(PySparkException, match="answers of type double came where int64"):
        rolling(aggregates=[Doubtful("x")])(frame(spark, half)).collect()
    with pytest.raises(BadSpecification, match="answer_type is a type of Arrow's or its name"):
        rolling(aggregates=[type("Odd", (Longest,), {"answer_type": "number"})("x")])(half)


def test_decimals_beyond_38_digits() -> None:
    large = pa.array([Decimal(9) * Decimal(10) ** 37] * SIZE, pa.decimal128(38, 0))
    table = BASE.set_column(4, "d", large)
    with pytest.raises(SumOverflow, match=r"row 1, column 'd'.* decimal128\(38, 0\) cannot hold"):
        rolling(aggregates=[wr.Sum("d")])(table)
    found = rolling(aggregates=[wr.Sum("d", overflow="null")])(table)["d_sum_w"].to_pylist()
    assert found[0] is not None
    assert found[1:] == [None] * (SIZE - 1)


# --- aggregates of one's own that change, or fail -------------------------------------------------

FACTOR = 10.0


class Scaled(wr.Aggregate):
    """By a number that the module may change."""

    identity = 0.0
    commutative = True

    def lift(x):
        return x * FACTOR

    def combine(a, b):
        return a + b


def test_a_number_that_changes(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    spec = rolling(windows={"w": wr.rows(1)}, tie="id", aggregates=[Scaled("x")])
    for factor in (10.0, 100.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        wanted = [factor * i for i in range(SIZE)]
        assert spec(BASE)["x_scaled_w"].to_pylist() == wanted
        found = {row.id: row.x_scaled_w for row in spec(frame(spark, BASE)).collect()}
        assert [found[i] for i in range(SIZE)] == wanted


class Failing(wr.Aggregate):
    """Cannot take what lies at 5."""

    identity = 0.0
    commutative = True

    def lift(x):
        return 1.0 / (x - 5.0)

    def combine(a, b):
        return a + b


def test_an_aggregate_that_raises_says_at_which_value(spark: Any) -> None:  # noqa: F811
    spec = rolling(aggregates=[Failing("x")])
    with pytest.raises(ZeroDivisionError) as caught:
        spec(BASE)
    assert caught.value.__notes__ == ["while Failing('x') lifted the value 5.0"]
    with pytest.raises(PySparkException, match=r"while Failing\('x'\) lifted the value 5.0"):
        spec(frame(spark, BASE)).collect()


class Total(wr.Aggregate):
    """An identity of integers, as people write it, over floats."""

    identity = 0
    commutative = True

    def combine(a, b):
        return a + b


def test_an_identity_of_integers_over_floats(spark: Any) -> None:  # noqa: F811
    """By key, and in stretches, where partials travel with the types of the identity."""
    table = random_table(120, keys=2, seed=8)
    halves = pa.array([n / 2 for n in table["id"].to_pylist()])
    table = table.set_column(table.column_names.index("x"), "x", halves)
    for key in ("k", None):
        spec = wr.Rolling(key=key, time="t", windows=[wr.time(200)], aggregates=[Total("x")])
        check(spark, spec, table, stretch_rows=30)
