"""Windows of an aggregate's own, and aggregates of some rows, on Spark: the same bits."""

# mypy: disable-error-code="misc"

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import (
    assert_same,
    check,
    frame,
    spark,  # noqa: F401
)
from tests.stream_session import Pipe, random_stream, split
from tests.test_where_over import MARKED
from windrow.errors import BadSpecification, Refused

AGGREGATES: list[Any] = [
    wr.Sum("x").where("flag"),
    wr.Count().where("state", "a", "b"),
    wr.Distinct("i").where("flag", False).where("state", "c").over("long"),
    wr.Last("s").where("i", 7, 14).over(wr.rows(6, within=50)),
    wr.Max("i"),
    wr.Count().where("x", 0).alias("zeros"),
]
WINDOWS: dict[str, Any] = {"short": wr.time(20), "long": wr.time(200)}


def specification(**changed: Any) -> wr.Rolling:
    usual = {"key": "k", "time": "t", "tie": "id", "windows": WINDOWS, "aggregates": AGGREGATES}
    return wr.Rolling(**(usual | changed))


@pytest.mark.parametrize("options", [{}, {"hot_rows": 100, "stretch_rows": 40}])
def test_keyed(spark: Any, options: dict[str, Any]) -> None:  # noqa: F811
    some = [a for a in AGGREGATES if "within" not in repr(a._over)]
    spec = specification(aggregates=some) if options else specification()
    check(spark, spec, MARKED, **options)


def test_without_a_key_with_labels_and_in_spark_s_own_words(spark: Any) -> None:  # noqa: F811
    some = [a for a in AGGREGATES if "within" not in repr(a._over)]
    spec = specification(key=None, aggregates=some)
    check(spark, spec, MARKED, stretch_rows=60)
    said = spec.explain(frame(spark, MARKED), stretch_rows=60)
    assert "answer i_distinct_where_flag_false_where_state_c_long" in said
    spec = specification(aggregates=some)
    labels = pa.table({"k": [0, 1, 2, 9], "asked": [100, 200, 299, 5], "id": [0, 1, 2, 3]})
    found = spec.as_of(frame(spark, MARKED), frame(spark, labels), on="asked").toArrow()
    assert_same(found, spec.as_of(MARKED, labels, on="asked"), spec)
    counts = specification(
        windows=[wr.rows(3)], aggregates=[wr.Count().where("flag"), wr.Max("i").where("state", "a")]
    )
    assert ": native" in counts.explain(frame(spark, MARKED))
    check(spark, counts, MARKED)


def test_a_collation_and_a_schema(spark: Any) -> None:  # noqa: F811
    """Texts are compared by their bytes; no column is asked for where the schema is given."""
    rows = [(1, 1, "A"), (1, 2, "a"), (1, 3, None)]
    df = spark.createDataFrame(rows, "k int, t int, s string collate UTF8_LCASE")
    spec = wr.Rolling(key="k", time="t", aggregates=[wr.Count().where("s", "a").over(wr.time(9))])
    assert [row[-1] for row in spec(df).orderBy("t").collect()] == [0, 1, 1]
    plain = spark.createDataFrame(rows, "k int, t int, s string")
    given = spec(plain, schema="k int, t int, s string")
    assert given.columns == ["k", "t", "s", "count_where_s_a_9"]
    assert [row[-1] for row in given.orderBy("t").collect()] == [0, 1, 1]


def test_values_that_spark_could_take_for_others(spark: Any) -> None:  # noqa: F811
    """Texts that differ by capitals, more digits than a long has, thousands of values."""
    numbers = [Decimal(10**30), Decimal(-1), None, Decimal("0.50")]
    table = pa.table(
        {
            "k": [1, 1, 2, 2],
            "id": range(4),
            "s": ["A", "a", "a", None],
            "x": [1e20, -0.0, None, 1999.5],
            "d": pa.array(numbers, pa.decimal128(38, 2)),
        }
    )
    many = [10**20, *(number + 0.5 for number in range(2000))]
    spec = wr.Rolling(
        key="k",
        time="id",
        windows=[wr.time(5)],
        aggregates=[
            wr.Count().where("s", "A").alias("capital"),
            wr.Count().where("s", "a").alias("small"),
            wr.Count().where("d", 10**30, 0.5).alias("long"),
            wr.Count().where("x", *many).alias("any"),
        ],
    )
    found = check(spark, spec, table).sort_by("id")
    assert [found[n].to_pylist()[1::2] for n in found.column_names[5:]] == [
        [1, 0],
        [1, 1],
        [1, 1],
        [1, 1],
    ]


def test_a_column_of_nothing_holds_nowhere(spark: Any) -> None:  # noqa: F811
    """As on columns, where it is of no type either."""
    df = spark.createDataFrame([(1, 2, None)], "k int, t int, s void")
    counts = [wr.Count().where("s", "a").alias("text"), wr.Count().where("s").alias("truth")]
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(9)], aggregates=counts)
    assert spec(df).collect() == [(1, 2, None, 0, 0)]


def test_a_column_called_like_one_that_is_made(spark: Any) -> None:  # noqa: F811
    df = spark.createDataFrame([(1, True, 5)], "t int, flag boolean, `Rows where flag` int")
    spec = wr.Rolling(time="t", windows=[wr.time(9)], aggregates=[wr.Count().where("flag")])
    with pytest.raises(BadSpecification, match="two columns called 'Rows where flag'"):
        spec(df)


def test_refused_before_any_job(spark: Any) -> None:  # noqa: F811
    df = frame(spark, MARKED)
    for aggregate, message in (
        (wr.Count().where("state"), "is neither true nor false"),
        (wr.Count().where("i", "a"), "never 'a'"),
        (wr.Count().where("stat", "a"), "did you mean 'state'"),
    ):
        with pytest.raises(BadSpecification, match=message):
            specification(aggregates=[aggregate])(df)


# --- streams -------------------------------------------------------------------------------------


def stream_of(size: int, seed: int) -> pa.Table:
    table = random_stream(size, 5, seed, 20.0)
    numbers = table["id"].to_pylist()
    states = [None if n % 13 == 0 else "abcd"[n % 4] for n in numbers]
    flags = [None if n % 11 == 0 else n % 3 == 0 for n in numbers]
    return table.append_column("state", pa.array(states)).append_column("flag", pa.array(flags))


TIMED: dict[str, Any] = {"windows": {"short": wr.time("20s"), "long": wr.time("200s")}}
STREAMED: list[Any] = [
    wr.Sum("x").where("flag"),
    wr.Count().where("state", "a", "b").over("long"),
    wr.Last("s").where("i", 7, 14).over(wr.rows(6, within="50s")),
    wr.ApproxCount(epsilon=0.1, maximum=50).over(wr.rows(9)),
    wr.Max("i").over("short"),
]


def test_streams_lookups_restarts_and_histories(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = stream_of(240, 4)
    parts = split(table, 5, 4)
    spec = specification(**TIMED, aggregates=STREAMED, lateness="20s")
    changed = specification(
        windows=TIMED["windows"],
        aggregates=[*STREAMED[:2], STREAMED[2], STREAMED[3], wr.Max("i").over("short", "long")],
        lateness="20s",
    )
    pipe = Pipe(spark, tmp_path / "one", "end").feed(*parts[:3])
    pipe.run(spec, buckets=2)
    first = pipe.found()
    assert_same(first, answers_for(spec, table, first), spec)
    looked = wr.spark.lookup(str(pipe.checkpoint), table["k"][0].as_py(), spec, spark)
    assert set(looked.values) == {name for name, a, _ in spec.outputs if a.kind != "sequential"}
    with pytest.raises(Refused, match="other aggregates over windows"):
        wr.spark.lookup(str(pipe.checkpoint), 1, changed, spark)
    keeps = [a for a in STREAMED if a.kind != "sequential"]
    moved = specification(**TIMED, aggregates=keeps, lateness="20s")
    other = Pipe(spark, tmp_path / "two", "end").feed(*parts[3:], end=True)
    past = wr.spark.history(str(pipe.checkpoint), other_schema(other), spark)
    other.run(moved, buckets=3, history=past)
    known = set(first["id"].to_pylist())
    wanted = moved(table)
    rest = wanted.filter(pa.array([n not in known for n in wanted["id"].to_pylist()]))
    assert_same(other.found(), rest, moved)
    pipe.feed(*parts[3:], end=True)
    less = [*STREAMED[1:4], wr.Max("i").over("short", "long")]
    pipe.run(specification(**TIMED, aggregates=less, lateness="20s"), buckets=2)
    second = pipe.sink
    assert second.exists()
    found = {row["id"]: row for row in rows_of(pipe)}
    after = changed(table).to_pylist()
    for row in after:
        if row["id"] not in known:
            assert found[row["id"]]["i_max_long"] == row["i_max_long"]
            assert (
                found[row["id"]]["count_where_state_a_b_long"] == row["count_where_state_a_b_long"]
            )
    assert len(found) == table.num_rows


def answers_for(spec: wr.Rolling, table: pa.Table, found: pa.Table) -> pa.Table:
    """What the whole table gives for the rows that came out."""
    known = set(found["id"].to_pylist())
    wanted = spec(table)
    return wanted.filter(pa.array([n in known for n in wanted["id"].to_pylist()]))


def rows_of(pipe: Pipe) -> list[dict[str, Any]]:
    reader = pipe.spark.read.option("mergeSchema", "true").parquet(str(pipe.sink))
    return [row.asDict() for row in reader.collect()]


def test_a_history_that_has_answers(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """Such as an archive of what an earlier query gave out."""
    table = stream_of(20, 6)
    pipe = Pipe(spark, tmp_path, "end").feed(table)
    spec = specification(**TIMED, aggregates=STREAMED[:2], lateness="20s")
    when = datetime(2021, 1, 1, tzinfo=UTC)
    archive = wr.spark.History(spec(frame(spark, table)), when)
    answers = spec(pipe.stream(), flush="end", history=archive)
    assert answers.columns[-2:] == ["x_sum_where_flag_long", "count_where_state_a_b_long"]
    lacking = wr.spark.History(frame(spark, table.drop_columns(["state"])), when)
    with pytest.raises(BadSpecification, match="history= has no column 'state'"):
        spec(pipe.stream(), flush="end", history=lacking)


def other_schema(pipe: Pipe) -> Any:
    from pyspark.sql.types import StructType

    return StructType([field for field in pipe.schema.fields if field.name != "end"])


def test_ticks_and_changes(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = stream_of(120, 5)
    aggregates = [wr.Sum("x").where("flag").over("40s"), wr.Count().where("state", "a").over("2m")]
    spec = wr.Rolling(
        key="k", time="t", tie="id", aggregates=aggregates, every="30s", lateness="20s"
    )
    pipe = Pipe(spark, tmp_path, "end").feed(*split(table, 3, 5), end=True)
    pipe.run(spec, buckets=2)
    found, wanted = pipe.found().to_pylist(), spec(table).to_pylist()
    order = [(row["k"], row["t"]) for row in wanted]
    assert sorted((row["k"], row["t"]) for row in found) == sorted(order)
    by_place = {(row["k"], row["t"]): row for row in found}
    assert all(str(by_place[place]) == str(row) for place, row in zip(order, wanted, strict=True))
