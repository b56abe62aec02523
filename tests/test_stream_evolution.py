"""Checkpoints that outlive versions, windows and numbers of buckets, in Spark."""

# mypy: disable-error-code="misc,index,operator"

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests import stream_upgrade
from tests.spark_session import assert_same, spark  # noqa: F401
from tests.stream_session import Pipe
from tests.test_stream_emission import _two_partitions  # noqa: F401
from windrow.errors import BadSpecification, Refused

CHECKPOINTS = Path(__file__).parent / "checkpoints"


@pytest.mark.parametrize("version", [2])
def test_a_checkpoint_of_an_older_version_goes_on(
    spark: Any,  # noqa: F811
    tmp_path: Path,
    version: int,
) -> None:
    """A file that windrow wrote when that was its version; the first parts are never seen again."""
    stream_upgrade.lay_down(CHECKPOINTS / f"version_{version}.zip", tmp_path)
    before = spark.read.parquet(*map(str, (tmp_path / "out").glob("*.parquet"))).toArrow()
    pipe = Pipe(spark, tmp_path, "end")
    pipe.sink = tmp_path / "more"
    pipe.feed(*stream_upgrade.PARTS, end=True)
    for number in range(stream_upgrade.WRITTEN):  # they are in the state
        (pipe.source / f"{number:05}.parquet").unlink()
    assert wr.spark.state(str(pipe.checkpoint), spark).version == version
    spec = stream_upgrade.specification()
    pipe.run(spec, buckets=2)
    found = pa.concat_tables([before, pipe.files()], promote_options="permissive")
    assert_same(found, spec(stream_upgrade.table()), spec)
    assert wr.spark.state(str(pipe.checkpoint), spark).version > version


WINDOWS = ["40s", "2h", wr.rows(3, within="1m"), wr.rows(2, ending=2, within="3h")]
APPROXIMATE = wr.ApproxCount(epsilon=0.1)


def specification(**changed: Any) -> wr.Rolling:
    given: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "windows": ["40s", "2h"],
        "aggregates": [wr.Sum("x"), wr.Count(), wr.Last("s")],
        "lateness": "20s",
    }
    return wr.Rolling(**(given | changed))


def rest_of(spec: wr.Rolling, answered: set[int]) -> pa.Table:
    wanted = spec(stream_upgrade.table())
    return wanted.filter(pa.array([n not in answered for n in wanted["id"].to_pylist()]))


def test_another_number_of_buckets(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """The state of a stopped stream begins another, in which nothing is lost or twice."""
    spec, parts = specification(windows=WINDOWS), stream_upgrade.PARTS
    old = Pipe(spark, tmp_path / "old", "end").feed(*parts[:2])
    old.run(spec, buckets=2)
    answered = set(old.found()["id"].to_pylist())
    new = Pipe(spark, tmp_path / "new", "end").feed(*parts[2:], end=True)
    history = wr.spark.history(str(old.checkpoint), spec_schema(new), spark)
    new.run(spec, buckets=3, history=history)
    assert 0 < len(answered) < 80
    assert_same(new.found(), rest_of(spec, answered), spec)
    for changed, reason in (
        ({"windows": ["40s", "3h"]}, "window '3h' looks back further than the history"),
        ({"windows": [wr.rows(4, within="3h")]}, "looks back further than the history"),
        ({"aggregates": [wr.Max("i")]}, "the history has no column 'i'"),
        ({"key": "s"}, "the history was kept for another key="),
        ({"emit": "changes"}, "the history was kept for another emit= or every="),
        (
            {"windows": [wr.rows(9)], "aggregates": [APPROXIMATE]},
            "counters are not part of a history",
        ),
    ):
        with pytest.raises(Refused, match=reason):
            specification(**changed)(new.stream(), flush="end", history=history)
    fits = specification(windows=["1h", wr.rows(9, within="90m")], aggregates=[wr.Max("x")])
    fits(new.stream(), flush="end", history=history)


def spec_schema(pipe: Pipe) -> Any:
    from pyspark.sql.types import StructType

    return StructType([field for field in pipe.schema.fields if field.name != "end"])


def test_a_longer_window_begins_with_a_table(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """And with an aggregate of a column that the state never had."""
    spec = specification(windows=["3h"], aggregates=[wr.Max("i"), wr.Sum("x")])
    table = stream_upgrade.table().sort_by([("t", "ascending"), ("id", "ascending")])
    until = table["t"][90].as_py()
    times = table["t"].to_pylist()
    place = next(i for i, t in enumerate(times) if t >= until)
    pipe = Pipe(spark, tmp_path, "end").feed(table.slice(place), end=True)
    past = table.slice(0, place).select(["k", "t", "id", "i", "x"])
    frame = spark.createDataFrame(past, from_arrow(past.schema))
    pipe.run(spec, buckets=2, history=wr.spark.History(frame, until))
    answered = set(past["id"].to_pylist())
    assert_same(pipe.found(), rest_of(spec, answered), spec)


def from_arrow(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def test_histories_that_are_none(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    pipe = Pipe(spark, tmp_path, "end").feed(stream_upgrade.PARTS[0])
    table = spark.createDataFrame(stream_upgrade.PARTS[0].select(["k", "t"]))
    when = datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(BadSpecification, match="until= is a datetime"):
        wr.spark.History(table, "soon")
    with pytest.raises(BadSpecification, match="a Spark table, not a stream"):
        wr.spark.History(pipe.stream(), when)
    with pytest.raises(BadSpecification, match=r"history= is wr\.spark\.History"):
        specification()(pipe.stream(), history=table)
    with pytest.raises(BadSpecification, match="history= has no column 'id'"):
        specification()(pipe.stream(), history=wr.spark.History(table, when), flush="end")
