"""The stateful operator of streams in Spark's own tester: envelopes in, envelopes out."""

import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.spark_session import assert_same, random_table, spark  # noqa: F401
from windrow.columns.stream_plan import Head, StreamPlan
from windrow.columns.stretch import Reach
from windrow.spark.envelopes import (
    BUCKET,
    bucket_ids,
    opened,
    packed,
    sealed,
    spark_hash,
    unpacked,
)

MILLISECOND = 1000
"""Times are microseconds, watermarks milliseconds."""
BUCKETS = 4


def stream_table(size: int, seed: int = 0, seconds: int = 300) -> pa.Table:
    """Rows of five keys, in order of time but for 20 seconds."""
    table = random_table(size, keys=5, seed=seed, span=seconds * 1000)
    generator = np.random.default_rng(seed)
    times = table["t"].to_numpy() + 1000
    order = np.argsort(times + generator.integers(0, 20_000, size), kind="stable")
    stamps = pa.array(times * MILLISECOND, pa.timestamp("us", "UTC"))
    return table.set_column(1, "t", stamps).select(["k", "t", "id", "x", "s"]).take(pa.array(order))


def specification() -> wr.Rolling:
    return wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={"1m": wr.time("1m"), "3": wr.rows(3, within="30s")},
        aggregates=[wr.Sum("x"), wr.Count(), wr.Last("s")],
    )


def plan_of(schema: pa.Schema, buckets: int = BUCKETS) -> StreamPlan:
    reaches = {
        "1m": Reach("1m", "time", 1 - 60_000_000, 1),
        "3": Reach("3", "time", 1 - 30_000_000, 1),
    }
    return StreamPlan(specification(), schema, reaches, buckets, segment_rows=40)


def kinds_of(table: pa.Table) -> dict[str, pa.DataType]:
    """The types of answers, as one call over a table has them."""
    answers = specification()(table)
    return {name: answers.schema.field(name).type for name in answers.column_names[5:]}


def never_filtered(row: Any) -> int:
    return 1 << 62


class Query:
    """Batches as Spark runs them: every task makes its processor anew, timers come after rows."""

    def __init__(self, plan: StreamPlan, kinds: Any, late: str | None = None) -> None:
        from pyspark.sql.streaming.tws_tester import TwsTester

        from windrow.spark.stream_worker import BucketProcessor, Extras

        self.processor = BucketProcessor(plan, kinds, Extras(late))
        self.tester = TwsTester(
            self.processor, timeMode="EventTime", eventTimeExtractor=never_filtered
        )
        self.ids = bucket_ids(plan.buckets)
        self.names = plan.schema.names
        self.turns: list[Any] = []

    def watermark(self, milliseconds: int) -> list[Any]:
        """A new task without rows for any bucket: only timers fire."""
        self.processor.init(self.tester.handle)
        found = list(self.tester.setWatermark(milliseconds))
        self.turns += found
        return found

    def batch(self, table: pa.Table) -> list[Any]:
        """Every bucket is called, with its rows or without any."""
        from pyspark.sql import Row

        self.processor.init(self.tester.handle)
        places = pa.array([int(k) % len(self.ids) for k in table["k"].to_pylist()], pa.int32())
        batches = table.append_column(BUCKET, places).to_batches(max_chunksize=17)
        rows: dict[int, list[Any]] = {}
        for envelope in packed(batches, self.names, self.ids, None):
            for line in envelope.to_pylist():
                bucket, payload = line.values()
                rows.setdefault(bucket, []).append(Row(bucket=bucket, payload=payload))
        found = [turn for bucket in rows for turn in self.tester.test(bucket, rows[bucket])]
        self.turns += found
        return found

    def head(self, bucket: int) -> Head:
        state = self.tester.peekValueState("head", bucket)
        assert state is not None
        return Head.from_bytes(bytes(state[0]))

    def state_bytes(self, bucket: int) -> int:
        maps = [self.tester.peekMapState(name, bucket) for name in ("log", "waiting")]
        return sum(len(cell[0]) for cells in maps for cell in cells.values())

    def found(self) -> pa.Table:
        return pa.concat_tables([opened(t.payload) for t in self.turns if t.payload is not None])


def batches_of(table: pa.Table, size: int) -> Iterator[tuple[pa.Table, int]]:
    """Rows, and the watermark after them: 20 seconds behind the latest."""
    times = table["t"].cast(pa.int64()).to_numpy()
    for place in range(0, table.num_rows, size):
        yield table.slice(place, size), int(times[: place + size].max()) // MILLISECOND - 20_000


def summed(turns: list[Any], name: str) -> int:
    return sum(getattr(turn, name) for turn in turns)


@given(st.integers(0, 1000), st.integers(1, 250), st.integers(5, 90))
@examples(8)
def test_envelopes_come_out_as_one_call_answers(seed: int, size: int, batch: int) -> None:
    table = stream_table(size, seed)
    query = Query(plan_of(table.schema), kinds_of(stream_table(300)))
    mark = 0
    for rows, following in batches_of(table, batch):
        turns = query.batch(rows)
        assert len(turns) == BUCKETS
        assert summed(turns, "rows") == rows.num_rows
        if following > max(mark, 0):
            mark = following
            query.watermark(mark)
    query.watermark(10**9)
    assert summed(query.turns, "answered_rows") == size
    assert summed(query.turns, "late_rows") == 0
    spec = specification()
    assert_same(query.found(), spec(table), spec)


def test_a_watermark_releases_rows_by_timers() -> None:
    table = stream_table(200)
    query = Query(plan_of(table.schema), kinds_of(table))
    query.batch(table)
    times = table["t"].cast(pa.int64()).to_numpy()
    keys = table["k"].to_numpy() % BUCKETS
    answered = 0
    for mark in (1, 1500, 60_000, 60_001, 150_000, 302_000):
        turns = query.watermark(mark)
        due = (times < mark * MILLISECOND) & (times >= answered * MILLISECOND)
        assert summed(turns, "answered_rows") == due.sum()
        assert len(turns) == len(set(keys[due].tolist()))  # no bucket is called for nothing
        assert all(turn.rows == 0 for turn in turns)
        assert all(turn.frontier == mark * MILLISECOND for turn in turns)
        answered = mark
    spec = specification()
    assert_same(query.found(), spec(table), spec)


def test_every_bucket_with_rows_that_wait_has_a_timer_in_time() -> None:
    table = stream_table(120, seed=3)
    query = Query(plan_of(table.schema), kinds_of(table))
    mark = 0
    for rows, following in batches_of(table, 15):
        query.batch(rows)
        for bucket in query.ids:
            earliest = query.head(bucket).earliest_waiting
            query.tester.handle.setGroupingKey(bucket)
            timers = [t for t in query.tester.handle.listTimers() if t > mark]
            if earliest is not None:
                assert timers
                assert min(timers) <= max(earliest // MILLISECOND + 1, mark + 1)
        if following > max(mark, 0):
            mark = following
            query.watermark(mark)


def test_a_timer_after_rows_in_the_same_task_does_nothing() -> None:
    """As Spark runs a batch: the watermark has moved, rows come, then timers that are due."""
    table = stream_table(200, seed=7)
    query = Query(plan_of(table.schema), kinds_of(table))
    tester, mark = query.tester, 0
    for rows, following in batches_of(table, 25):
        turns = query.batch(rows)
        assert len(turns) == BUCKETS
        assert all(turn.frontier == (mark * MILLISECOND or None) for turn in turns)
        assert list(tester._handleExpiredTimers()) == []
        if following > max(mark, 0):
            mark = following
            tester.handle.setWatermark(mark)
            tester._currentWatermarkMs = mark
    query.watermark(10**9)
    assert summed(query.turns, "answered_rows") == 200
    spec = specification()
    assert_same(query.found(), spec(table), spec)


@pytest.mark.parametrize("late", [None, "came late"])
def test_late_rows(late: str | None) -> None:
    table = stream_table(60)
    odd = stream_table(5, seed=9)
    without = pa.array([None] * 2, odd.schema.field("t").type)
    odd = pa.concat_tables([odd.slice(0, 3), odd.slice(3).set_column(1, "t", without)])
    odd = odd.set_column(2, "id", pa.array([1000 + n for n in range(5)]))
    query = Query(plan_of(table.schema), kinds_of(table), late)
    query.batch(table)
    query.watermark(400_000)
    turns = query.batch(odd)
    assert summed(turns, "late_rows") == 3
    assert summed(turns, "rows_without_time") == 2
    assert summed(turns, "answered_rows") == 0
    spec = specification()
    wanted = spec(table)
    found = query.found()
    if late is None:
        assert_same(found, wanted, spec)
        return
    flags = found[late].to_pylist()
    assert found.column_names == [*wanted.column_names, late]
    good = found.filter(pa.array([not flag for flag in flags])).drop_columns([late])
    assert_same(good, wanted, spec)
    gone = found.filter(found[late])
    assert sorted(gone["id"].to_pylist()) == odd["id"].to_pylist()
    assert all(gone[name].null_count == 5 for name, _, _ in spec.outputs)
    assert gone["t"].null_count == 2


def test_metrics_say_what_happened() -> None:
    table = stream_table(150)
    query = Query(plan_of(table.schema), kinds_of(table))
    for rows, mark in batches_of(table, 50):
        before = [query.state_bytes(bucket) for bucket in query.ids]
        turns = query.batch(rows)
        by_bucket = Counter(int(k) % BUCKETS for k in rows["k"].to_pylist())
        for place, (bucket, turn) in enumerate(zip(query.ids, turns, strict=True)):
            head = query.head(bucket)
            assert turn.rows == by_bucket[place]
            assert turn.state_bytes == query.state_bytes(bucket)
            assert turn.state_bytes == head.log_bytes + head.waiting_bytes
            assert turn.kept_rows == head.log_rows
            assert turn.waiting_rows == head.waiting_rows
            assert turn.frontier == head.frontier
            assert turn.overflows == 0
            assert 2 <= turn.state_calls <= 60
            assert turn.state_bytes_written >= turn.state_bytes - before[place]
            own = rows.filter(pa.array([int(k) % BUCKETS == place for k in rows["k"].to_pylist()]))
            latest = own["t"].cast(pa.int64()).to_pylist()
            assert turn.latest == max(latest, default=None)
        query.watermark(mark)
    unanswered = 150 - summed(query.turns, "answered_rows")
    assert 0 < unanswered < 150


def test_integers_beyond_int64_are_counted() -> None:
    table = pa.table(
        {
            "k": [0, 0, 0],
            "t": pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC")),
            "id": [0, 1, 2],
            "i": [2**63 - 1, 1, 1],
        }
    )
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={"w": wr.time("2s")},
        aggregates=[wr.Sum("i")],
        overflow="null",
    )
    plan = StreamPlan(spec, table.schema, {"w": Reach("w", "time", 1 - 2_000_000, 1)})
    query = Query(plan, {"i_sum_w": pa.int64()})
    query.batch(table)
    turns = query.watermark(10_000)
    assert summed(turns, "overflows") == 1
    assert query.found()["i_sum_w"].to_pylist() == [2**63 - 1, None, 2]


def test_a_program_that_starts_again_goes_on() -> None:
    """Another processor over the same state; it was pickled on the way, as Spark does."""
    table = stream_table(200, seed=5)
    query = Query(plan_of(table.schema), kinds_of(table))
    mark = 0
    for rows, following in batches_of(table, 40):
        query.processor = pickle.loads(pickle.dumps(pickled(query)))
        query.tester.processor = query.processor
        query.batch(rows)
        if following > max(mark, 0):
            mark = following
            query.watermark(mark)
    query.watermark(10**9)
    spec = specification()
    assert_same(query.found(), spec(table), spec)


def pickled(query: Query) -> Any:
    from windrow.spark.stream_worker import BucketProcessor

    known = query.processor
    return BucketProcessor(known.plan, known.kinds, known.extras)


# --- envelopes -----------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 6), max_size=60),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 100),
)
@examples(60)
def test_packed_rows_come_out_once_in_order(
    buckets: list[int], size: int, marked: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    count = len(buckets)
    flags = generator.random(count) < 0.3
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "s": pa.array([None if n % 5 == 0 else "é" * (n % 3) for n in range(count)]),
            "end": pa.array(flags, mask=generator.random(count) < 0.2),
            BUCKET: pa.array(buckets, pa.int32()),
        }
    )
    ids = bucket_ids(7)
    marker = "end" if marked else None
    envelopes = list(packed(table.to_batches(max_chunksize=size), ["id", "s", "end"], ids, marker))
    if not count:
        assert envelopes == []
        return
    assert envelopes[0].column(0).to_pylist() == ids
    assert envelopes[0].column(1).null_count == len(ids)
    found: dict[int, list[Any]] = {number: [] for number in ids}
    for envelope in envelopes[1:]:
        assert envelope.column(1).null_count == 0
        for bucket, payload in zip(*(column.to_pylist() for column in envelope), strict=True):
            rows = opened(payload)
            assert rows.num_rows
            assert rows.column_names == (["id", "s"] if marked else ["id", "s", "end"])
            found[bucket] += rows.to_pylist()
    rows = table.drop_columns([BUCKET]).to_pylist()
    for place, number in enumerate(ids):
        own = [row for row, bucket in zip(rows, buckets, strict=True) if bucket == place]
        if marked:
            own = [{"id": r["id"], "s": r["s"]} for r in own if not r["end"]]
        assert found[number] == own


def test_unpacked_rows_are_those_of_all_envelopes() -> None:
    tables = [stream_table(size, size) for size in (1, 30)]
    payloads = pa.array([sealed(tables[0]), None, sealed(tables[1])], pa.binary())
    batches = list(unpacked([pa.record_batch([payloads], names=["payload"])]))
    assert pa.Table.from_batches(batches).equals(pa.concat_tables(tables))
    assert opened(sealed(tables[1])).equals(tables[1])


@pytest.mark.parametrize("count", range(1, 65))
def test_buckets_spread_over_partitions(count: int) -> None:
    """One for each of as many partitions; with a divisor or a multiple of them, evenly."""
    ids = bucket_ids(count)
    assert len(set(ids)) == count
    assert all(0 <= number < 1 << 31 for number in ids)
    assert [spark_hash(number) % count for number in ids] == list(range(count))
    for partitions in (p for p in range(1, count + 1) if count % p == 0):
        found = Counter(spark_hash(number) % partitions for number in ids)
        assert set(found.values()) == {count // partitions}
    for factor in (2, 3):
        found = Counter(spark_hash(number) % (factor * count) for number in ids)
        assert set(found.values()) == {1}


def test_known_hashes() -> None:
    """SELECT hash(0), hash(1), hash(42)."""
    assert spark_hash(0) == 933211791
    assert spark_hash(1) == -559580957
    assert spark_hash(42) == 29417773


def test_hashes_are_those_of_spark(spark: Any) -> None:  # noqa: F811
    from pyspark.sql import functions as F

    numbers = [*range(300), -1, -(2**31), 2**31 - 1, 123_456_789]
    columns = [F.hash(F.lit(n).cast("int")) for n in numbers]
    found = list(spark.range(1).select(*columns).first())
    assert [spark_hash(n & 0xFFFFFFFF) for n in numbers] == found
    assert [spark_hash(n) for n in numbers] == found
