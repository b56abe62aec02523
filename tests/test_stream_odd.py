"""Odd streams: what Spark, Python and windrow could each take for something else."""

# mypy: disable-error-code="no-untyped-def, operator, index, misc"

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import windrow as wr
from tests.buckets import Stream, plan_of
from tests.spark_session import assert_same, frame, spark  # noqa: F401
from tests.stream_session import Pipe, counts, stamped
from windrow.columns.emission import same, timeless
from windrow.errors import BadSpecification, Refused
from windrow.serving import key_name
from windrow.spark.axis import axis
from windrow.spark.state_lookup import specification
from windrow.spark.stream_state import _short
from windrow.times import moment

SIZE = 12
BASE = pa.table(
    {
        "k": [i % 2 for i in range(SIZE)],
        "t": stamped(range(SIZE)),
        "id": list(range(SIZE)),
        "x": [float(i) for i in range(SIZE)],
    }
)
FAR = 1_700_000_000_000 * 10**6
"""Milliseconds that somebody took for seconds: the year 55840."""


def rolling(**changed: Any) -> wr.Rolling:
    usual: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "windows": {"w": "5s"},
        "aggregates": [wr.Sum("x"), wr.Count()],
        "lateness": "2s",
    }
    return wr.Rolling(**usual | changed)


# --- times ----------------------------------------------------------------------------------------


def test_times_without_a_zone_that_summer_time_leaves_out(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """Read in New York, 02:30 of that day would be 03:30, and what follows it late."""
    half_past_one = datetime(2024, 3, 10, 1, 30)
    times = [half_past_one + timedelta(minutes=10 * i) for i in range(SIZE)]
    table = BASE.set_column(1, "t", pa.array(times, pa.timestamp("us")))
    spec = rolling(windows={"w": "20m"}, lateness="1m")
    parts = [table.slice(first, 4) for first in (0, 4, 8)]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        pipe = Pipe(spark, tmp_path, "end").feed(*parts, end=True)
        progress = pipe.run(spec, buckets=2)
        df = frame(spark, table)
        counted = {
            row.id: row.on
            for row in df.select("id", axis(df.schema, "t", None).alias("on")).collect()
        }
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert counts(progress)["late_rows"] == 0
    assert_same(pipe.found(), spec(table), spec)
    assert [counted[i] for i in range(SIZE)] == table["t"].cast(pa.int64()).to_pylist()


def test_changes_of_times_that_python_does_not_have() -> None:
    times = pa.array([10, 20, FAR], pa.timestamp("us", "UTC"))
    table = pa.table({"k": [0, 1, 0], "t": [10, 20, 30], "id": [0, 1, 2], "at": times})
    spec = rolling(
        windows={"w": wr.time(100)}, aggregates=[wr.Max("at"), wr.TopK("at", 2)], emit="changes"
    )
    stream = Stream(plan_of(spec, table.schema))
    stream.turn(table, None)
    told = [stream.turn(None, frontier).emitted_rows for frontier in (25, 31, 32, 115, 135)]
    assert told == [2, 1, 0, 1, 2]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us", "UTC"),
        pa.duration("us"),
        pa.list_(pa.timestamp("us")),
        pa.struct([("a", pa.list_(pa.timestamp("us"))), ("b", pa.string())]),
        pa.struct([("a", pa.date32())]),
    ],
    ids=str,
)
def test_which_answers_are_the_same(kind: pa.DataType) -> None:
    def value(number: int) -> Any:
        if pa.types.is_list(kind):
            return [number]
        if pa.types.is_struct(kind):
            return {"a": [number] if pa.types.is_list(kind.field("a").type) else number}
        return number

    large = 2**31 - 1 if "date32" in str(kind) else FAR
    then, now = [
        pa.array([value(large), None, value(n)], timeless(kind)).cast(kind) for n in (1, 2)
    ]
    assert same(then, now).tolist() == [True, True, False]


def test_moments_beyond_the_year_9999() -> None:
    assert moment(FAR) == datetime.max.replace(tzinfo=UTC)
    assert moment(-FAR) == datetime.min.replace(tzinfo=UTC)
    assert moment(1) == datetime(1970, 1, 1, 0, 0, 0, 1, UTC)


def test_a_history_without_rows_says_what_was_answered(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    until = datetime(2020, 9, 13, 12, 26, 44, tzinfo=UTC)  # four seconds after the first row
    past = frame(spark, BASE.slice(0, 0))
    pipe = Pipe(spark, tmp_path, "end").feed(BASE, end=True)
    progress = pipe.run(rolling(), buckets=2, history=wr.spark.History(past, until))
    assert counts(progress)["late_rows"] == 4
    assert_same(pipe.found(), rolling()(BASE.slice(4)), rolling())


# --- names ----------------------------------------------------------------------------------------

NAMES = ["amount (EUR), net", "a,b", "it's", ")(", "x"]


@pytest.mark.parametrize(
    "aggregate",
    [
        *(wr.Sum(name) for name in NAMES),
        wr.Correlation("a,b", "amount (EUR), net"),
        wr.Concat("it's", separator=")("),
        wr.Count(),
    ],
    ids=repr,
)
def test_a_state_names_its_aggregates(aggregate: Any) -> None:
    """Which is how ``wr.spark.lookup`` knows them, and ``wr.spark.state`` shows them."""
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64()), *((n, pa.float64()) for n in NAMES)])
    given = rolling(tie="any", windows={"w": wr.time(5)}, aggregates=[aggregate], overflow="null")
    contract = plan_of(given, schema).contract()
    (found,) = specification(contract).aggregates
    assert (repr(found), found.columns) == (repr(given.aggregates[0]), aggregate.columns)
    shown = f"{type(aggregate).__name__}({','.join(aggregate.columns)})"
    assert _short(contract["aggregates"][0]) == shown


def test_a_state_names_an_aggregate_once() -> None:
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("x", pa.float64())])
    aggregates = [
        wr.Sum("x").over("short").alias("now"),
        wr.Sum("x").over("long").alias("ever"),
        wr.Sum("x").over("long").alias("again"),
    ]
    windows = {"short": wr.time(5), "long": wr.time(50)}
    given = rolling(tie="any", windows=windows, aggregates=aggregates, overflow="null")
    found = specification(plan_of(given, schema).contract())
    assert [name for name, _, _ in found.outputs] == ["x_sum_short", "x_sum_long"]


def test_zero_is_one_key_in_redis() -> None:
    assert key_name("user:", [-0.0]) == key_name("user:", [0.0]) == "user:0.0"


def test_a_state_of_an_aggregate_that_cannot_be_read() -> None:
    assert _short("mine.Odd Odd(by=<function f>)(x)") == "Odd(x)"


# --- refused before anything runs -----------------------------------------------------------------


def test_what_only_fails_when_a_stream_runs(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    stream = Pipe(spark, tmp_path).feed(BASE).stream()
    marked = stream.withWatermark("t", "3 seconds")
    with pytest.raises(Refused, match=r"'t' has a watermark already.*leave lateness= out"):
        rolling()(marked)
    unmarked = marked.withColumn("t", F.col("t").cast("timestamp"))  # as the message says
    assert rolling()(unmarked).columns[-1] == "count_w"
    months = stream.selectExpr("*", "interval 1 month as months")
    with pytest.raises(BadSpecification, match="column 'months' has type interval month"):
        rolling()(months)
    with pytest.raises(BadSpecification, match="column 'months' has type interval month"):
        wr.spark.rules(
            months, [("a", 'count("1m") > 1')], key="k", time="t", lateness="1s", longest="1m"
        )
