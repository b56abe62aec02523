"""When answers of streams come out, in Spark: each way against its oracle, with a restart."""

# mypy: disable-error-code="misc,index,operator"

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.emission_oracle import Changes, Immediately
from tests.spark_session import SLOW, assert_same, spark  # noqa: F401
from tests.stream_session import Pipe, counts, random_stream, split, stamped
from windrow.columns.stream_plan import StreamPlan
from windrow.columns.stretch import Reach
from windrow.errors import Refused
from windrow.spark.envelopes import opened, sealed

LONG = pytest.mark.skipif(not SLOW, reason="the long run; test_emission has the same without Spark")
COMMON: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "tie": "id",
    "windows": {"w": wr.time("40s"), "p": wr.time("1m", ending="30s")},
    "aggregates": [wr.Sum("x"), wr.Count(), wr.Max("s")],
    "lateness": "20s",
}
REACHES = {
    "w": Reach("w", "time", 1 - 40_000_000, 1),
    "p": Reach("p", "time", 1 - 90_000_000, -30_000_000 + 1),
}
PARTS = split(random_stream(200, 5, 51, 20).select(["k", "t", "id", "x", "s"]), 4, 51)


@pytest.fixture(autouse=True)
def _two_partitions(spark: Any) -> Any:  # noqa: F811
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows, with times in microseconds."""
    times = table["t"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    whole = table.set_column(table.column_names.index("t"), "t", times)
    return [dict(row) for row in whole.to_pylist()]


def ordered(rows: list[list[Any]]) -> list[str]:
    return sorted(map(repr, rows))


def frontier(step: Any) -> int | None:
    """The watermark of a batch, in microseconds."""
    text = step["eventTime"].get("watermark", "1970")
    found = int(datetime.fromisoformat(text).timestamp() * 1000) * 1000 if text != "1970" else 0
    return found or None


def runs(pipe: Pipe, spec: wr.Rolling, **options: Any) -> list[Any]:
    """Two parts, a restart, and two more."""
    progress = pipe.feed(*PARTS[:2]).run(spec, buckets=2, **options)
    return progress + pipe.feed(*PARTS[2:], end=pipe.flush is not None).run(
        spec, buckets=2, **options
    )


@LONG
def test_ticks(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    spec = wr.Rolling(**COMMON, every="7s", origin=datetime(2024, 1, 1, 0, 0, 3))
    pipe = Pipe(spark, tmp_path, "end")
    runs(pipe, spec)
    found, wanted = pipe.found(), spec(pa.concat_tables(PARTS))
    assert found.column_names == wanted.column_names
    lists = [[list(row.values()) for row in plain(table)] for table in (found, wanted)]
    assert ordered(lists[0]) == ordered(lists[1])
    with pytest.raises(Exception, match=r"when answers come out \(emit=, every=\) cannot change"):
        pipe.feed(PARTS[0]).run(wr.Rolling(**COMMON, emit="changes"), buckets=2)


def test_changes(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    more: dict[str, Any] = {"r": wr.rows(3, within="1m"), "v": wr.session("5s")}
    spec = wr.Rolling(**(COMMON | {"windows": COMMON["windows"] | more}), emit="changes")
    own = {"r": Reach("r", "time", 1 - 60_000_000, 1), "v": Reach("v", "time", -5_000_000, 1)}
    oracle = Changes(spec, REACHES | own)
    pipe = Pipe(spark, tmp_path, "end")
    progress = runs(pipe, spec, gone="is_gone")
    waiting, wanted = list(PARTS), []
    for step in progress:
        rows = plain(waiting.pop(0)) if step["numInputRows"] else []
        wanted += oracle.turn(rows, frontier(step))
    assert not waiting
    found = [list(row.values()) for row in plain(pipe.found())]
    assert ordered([row[:-1] for row in found]) == ordered(wanted)
    emitted = [step["observedMetrics"]["windrow"]["emitted_rows"] for step in progress]
    assert sum(emitted) == len(wanted) == len(found)
    gone = [row for row in found if row[-1]]
    assert len(gone) >= len({row["k"] for part in PARTS for row in part.to_pylist()})
    assert all(row[2:-1] == [None, 0, None] * 4 for row in gone)
    assert counts(progress)["answered_rows"] == 200


@LONG
def test_immediately(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    spec = wr.Rolling(**COMMON, emit="immediately")
    oracle = Immediately(spec, REACHES)
    pipe = Pipe(spark, tmp_path)
    progress = runs(pipe, spec)
    wanted = [row for part in PARTS for row in oracle.turn(plain(part))]
    found = pipe.found()
    assert found.column_names == [*PARTS[0].column_names, *(name for name, _, _ in spec.outputs)]
    assert ordered([list(row.values()) for row in plain(found)]) == ordered(wanted)
    assert counts(progress)["answered_rows"] == 200


@LONG
def test_time_goes_on_by_the_clock_when_nothing_comes(
    spark: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The last row, within the lateness, comes out without anything more."""
    spec = wr.Rolling(**(COMMON | {"lateness": "1s"}))
    columns = {"k": [1, 2, 1], "t": stamped([0, 5, 10]), "id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}
    table = pa.table(columns | {"s": ["a", "b", "c"]})
    pipe = Pipe(spark, tmp_path).feed(table)
    query = (
        spec(pipe.stream(), buckets=2, idle_after="1 second")
        .writeStream.format("parquet")
        .option("path", str(pipe.sink))
        .option("checkpointLocation", str(pipe.checkpoint))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        until = time.monotonic() + 120
        found = 0
        while found < 3 and time.monotonic() < until:
            time.sleep(0.2)
            assert query.isActive, query.exception()
            found = counts([s for s in query.recentProgress if s["observedMetrics"]])[
                "answered_rows"
            ]
    finally:
        query.stop()
    assert_same(pipe.found(), spec(table), spec)
    with pytest.raises(Exception, match=r"(?i)time ?mode"):  # Spark's own refusal
        pipe.feed(table).run(spec, buckets=2)


def test_keys_expire_by_the_clock() -> None:
    """Every bucket is called in every batch, and all have the same frontier."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import TimerValues
    from pyspark.sql.streaming.tws_tester import TwsTester

    from windrow.spark.stream_worker import BucketProcessor, Extras

    spec = wr.Rolling(**(COMMON | {"windows": {"w": wr.time("40s")}}), emit="changes")
    table = pa.table(
        {
            "k": [1],
            "t": pa.array([100_000_000], pa.timestamp("us", "UTC")),
            "id": [1],
            "x": [1.5],
            "s": ["a"],
        }
    )
    plan = StreamPlan(spec, table.schema, {"w": REACHES["w"]})
    kinds = {"x_sum_w": pa.float64(), "count_w": pa.int64(), "s_max_w": pa.string()}
    processor = BucketProcessor(plan, kinds, Extras(None, "gone", 30_000))
    tester = TwsTester(processor, timeMode="ProcessingTime")
    clock = 10_000_000

    def batch(at: int, watermark: int, rows: pa.Table | None = None) -> list[Any]:
        processor.init(tester.handle)
        setattr(tester, "_getTimerValues", lambda: TimerValues(clock + at, watermark))  # noqa: B010
        if rows is None:
            turns = list(tester.setProcessingTime(clock + at))
        else:
            list(tester.setProcessingTime(clock + at))
            turns = list(tester.test(0, [Row(bucket=0, payload=sealed(rows))]))
        assert len(turns) == 1
        payloads = [turn.payload for turn in turns if turn.payload is not None]
        assert turns[0].frontier == (None if not watermark else turns[0].frontier)
        return [list(row.values()) for payload in payloads for row in plain(opened(payload))]

    assert batch(0, 0, table) == []
    assert batch(1_000, 80_000) == []  # 20 seconds of lateness before the row
    assert batch(29_000, 80_000) == []  # not idle for long enough
    assert batch(30_000, 80_000) == [[1, 109_999_999, 1.5, 1, "a", False]]
    assert batch(59_000, 80_000) == []  # at 139 seconds
    assert batch(60_001, 80_000) == [[1, 140_000_999, None, 0, None, True]]
    assert batch(90_000, 80_000) == []


def test_what_a_table_has_is_refused(spark: Any) -> None:  # noqa: F811
    spec = wr.Rolling(**COMMON, emit="changes")
    with pytest.raises(Refused, match="a Spark table has all of them"):
        spec(spark.createDataFrame(PARTS[0]))
