"""Quantiles, ranks and distinct values on Spark: the bits of columns, on tables and streams."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import SLOW, assert_same, check, frame, random_table, spark  # noqa: F401
from tests.stream_session import Pipe, random_stream, split
from windrow.errors import BadValue, Refused

AGGREGATES: list[Any] = [
    wr.Quantile("x", 0.95),
    wr.Quantile("s", 0.3, method="lower"),
    wr.Quantile("d", 0.7),
    wr.Median("i"),
    wr.Median("f", nan="missing"),
    wr.Rank("x"),
    wr.Rank("s", method="min", pct=True),
    wr.Distinct("s"),
    wr.Distinct("i", values=True),
    wr.Distinct("x"),
    wr.Count(),
]
KEYED: dict[str, Any] = {"key": "k", "time": "t", "tie": "id"}


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("k", {"partitions": 3}),
        (None, {"partitions": 5}),
        *([("k", {"hot_rows": 60, "partitions": 4})] * SLOW),
    ],
    ids=str,
)
def test_tables(spark: Any, key: Any, options: Any) -> None:  # noqa: F811
    table = random_table(220, keys=3, seed=4)
    windows = {
        "time": wr.time(35),
        "long": wr.time(260),
        "past": wr.time(90, ending=60),
        "rows": wr.rows(70),
        "ahead": wr.rows(9, after=3),
    }
    spec = wr.Rolling(**(KEYED | {"key": key}), windows=windows, aggregates=AGGREGATES, min_rows=2)
    check(spark, spec, table, **options)


def test_refused_before_any_job(spark: Any) -> None:  # noqa: F811
    table = frame(spark, random_table(20))
    spec = wr.Rolling(**KEYED, windows=[wr.time(5)], aggregates=[wr.Median("s")])
    with pytest.raises(BadValue, match="interpolates between numbers"):
        spec(table)
    without = KEYED | {"tie": None}
    with pytest.raises(Refused, match="depends on the order of rows"):
        wr.Rolling(**without, windows=[wr.time(5)], aggregates=[wr.Rank("x")])(table)
    several = [wr.Median("x"), wr.Distinct("s")]
    wr.Rolling(**without, windows=[wr.time(5)], aggregates=several)(table)  # order makes no odds


def test_streams(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    parts = split(random_stream(200, 4, 2, 20), 3, 2)
    spec = wr.Rolling(
        **KEYED,
        lateness="20s",
        windows={
            "plain": wr.time("50s"),
            "past": wr.time("70s", ending="30s"),
            "rows": wr.rows(12, within="90s"),
        },
        aggregates=AGGREGATES,
        min_rows=1,
    )
    pipe = Pipe(spark, tmp_path, "end").feed(*parts, end=True)
    pipe.run(spec, buckets=2)
    assert_same(pipe.found(), spec(pa.concat_tables(parts)), spec)
