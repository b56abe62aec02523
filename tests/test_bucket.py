"""A bucket of a stream: the answers of one call over the whole table, with bounded state."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.redis_server import RedisServer

import windrow as wr
from tests.buckets import (
    END,
    KEYS,
    SCHEMA,
    MemoryStore,
    Stream,
    disorder,
    fitting,
    plan_of,
    run,
    small_spec,
    small_table,
    some,
    windows,
)
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, STRUCTURES, assert_same, random_table
from windrow.columns.bucket import Bucket
from windrow.columns.stream_plan import StreamPlan
from windrow.columns.stretch import Reach
from windrow.stores import Store
from windrow.stores.chunks import ChunkStore

# --- equal to one call over the whole table ------------------------------------------------------


@given(
    st.integers(0, 10**6),
    st.integers(1, 250),
    st.integers(1, 9),
    windows(),
    some([*AGGREGATES, *STRUCTURES, GeoMean("p")]),
    st.sampled_from(KEYS),
    st.data(),
)
@examples(60)
def test_a_stream_equals_one_call(
    seed: int, size: int, keys: int, chosen: dict[str, Any], aggregates: Any, key: Any, data: Any
) -> None:
    table = random_table(size, keys=keys, seed=seed, span=data.draw(st.sampled_from([5, 100, 600])))
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=chosen,
        aggregates=fitting(chosen, aggregates),
        min_rows=data.draw(st.integers(0, 2)),
        nan=data.draw(st.sampled_from(["value", "missing"])),
    )
    came, lateness = data.draw(disorder(table))
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any))
    plan = plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60)))
    stream = Stream(plan)
    run(stream, came, lateness, [max(size, 8) if size else 0 for size in sizes])
    stream.end()
    assert_same(stream.found(), spec(table), spec)


@pytest.mark.parametrize("seed", range(3))
def test_every_aggregate_over_every_window(seed: int) -> None:
    table = random_table(500, keys=4, seed=seed, span=900)
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={
            "plain": wr.time(150),
            "left": wr.time(40, closed="left"),
            "both": wr.time(90, closed="both"),
            "neither": wr.time(1, closed="neither"),
            "past": wr.time(60, ending=70),
            "rows": wr.rows(7, within=100),
            "rows_past": wr.rows(5, ending=3, within=80),
        },
        aggregates=[*AGGREGATES, *(STRUCTURES if seed == 1 else ()), GeoMean("p")],
        min_rows=seed,
    )
    times = table["t"].to_numpy()
    order = np.argsort(times + np.random.default_rng(seed).integers(0, 30, 500), kind="stable")
    stream = Stream(plan_of(spec, table.schema, segment_rows=20))
    run(stream, table.take(pa.array(order)), 30, [45, 3, 0, 70])
    stream.end()
    assert_same(stream.found(), spec(table), spec)


@pytest.fixture(params=["Memory", "Rocks", "Redis"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens one and the same store again and again."""
    if request.param == "Redis":
        with RedisServer() as server:
            yield lambda: wr.stores.Redis(server.url)
    elif request.param == "Rocks":
        yield lambda: wr.stores.Rocks(tmp_path / "state")
    else:
        memory = wr.stores.Memory()
        yield lambda: memory


def test_a_stream_in_a_store_goes_on_after_a_crash(open_store: Callable[[], Store]) -> None:
    """A bucket's chunks in any store: a turn that was not saved never happened."""
    spec = wr.Rolling(
        key="k",
        time="t",
        windows=[wr.time(40), wr.time(90, ending=5), wr.rows(5, within=60)],
        aggregates=[wr.Max("x"), wr.Sum("x"), wr.Count()],
    )
    generator = np.random.default_rng(4)
    table = pa.table(
        {
            "k": generator.integers(0, 5, 400),
            "t": np.cumsum(generator.integers(1, 5, 400)),
            "x": generator.normal(size=400),
        }
    )
    plan = plan_of(spec, table.schema)
    answered: list[pa.Table] = []
    for number in range(20):
        store = open_store()
        rows = table.slice(20 * number, 20)
        frontier = int(rows["t"][0].as_py())
        lost = Bucket(plan, ChunkStore(store, b"stream/0/"))  # dies before it saves
        lost.advance([rows], frontier)
        bucket = Bucket(plan, ChunkStore(store, b"stream/0/"))
        turn = bucket.advance([rows], frontier)
        bucket.close()
        if turn.answered is not None:
            answered.append(turn.answered)
        if number == 10:
            chunks = list(store.keys(b"stream/0/c"))
            assert chunks
            assert {len(key) for key in chunks} == {len(b"stream/0/c") + 8}
        store.close()
    store = open_store()
    bucket = Bucket(plan, ChunkStore(store, b"stream/0/"))
    turn = bucket.advance([], END)
    bucket.close()
    assert turn.answered is not None
    order = [("k", "ascending"), ("t", "ascending"), ("x", "ascending")]
    found = pa.concat_tables([*answered, turn.answered]).sort_by(order)
    assert found.equals(spec(table).sort_by(order).select(found.column_names))
    store.close()


def test_timestamps_and_several_tables_at_once() -> None:
    table = random_table(300, seed=1)
    times = pa.array(table["t"].to_numpy() * 1_000_000, pa.timestamp("us", "UTC"))
    table = table.set_column(1, "t", times)
    spec = wr.Rolling(
        key="k", time="t", tie="id", windows=["1m"], aggregates=[wr.Sum("x"), wr.Last("s")]
    )
    plan = StreamPlan(spec, table.schema, {"1m": Reach("1m", "time", 1 - 60_000_000, 1)})
    store = MemoryStore()
    found: list[Any] = []
    for tables, frontier in (([table.slice(0, 100), table.slice(100)], 10**8), ([], 10**12)):
        bucket = Bucket(plan, store)
        turn = bucket.advance(tables, frontier)
        bucket.close()
        found.append(turn.answered)
    assert found[0].num_rows + found[1].num_rows == 300
    assert_same(pa.concat_tables(found), spec(table), spec)


# --- the frontier: what is late, what waits, what is answered ------------------------------------


TURNS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-20, 60)))),
        st.one_of(st.none(), st.integers(-25, 70)),
    ),
    max_size=12,
)


@given(TURNS, st.integers(1, 5))
@examples(120)
def test_late_rows_are_those_before_the_frontier(
    turns: list[tuple[list[tuple[int, int | None]], int | None]], segment_rows: int
) -> None:
    """Frontiers come in any order, stay, are missing; rows come at any time, or without one."""
    spec = small_spec()
    stream = Stream(plan_of(spec, SCHEMA, segment_rows=segment_rows))
    frontier: int | None = None
    taken: list[pa.Table] = []
    waiting: dict[int, int] = {}
    first = 0
    for rows, wanted in turns:
        table = small_table(rows, first)
        first += len(rows)
        turn = stream.turn(table, wanted)
        late = [t is None or (frontier is not None and t < frontier) for _, t in rows]
        taken.append(table.filter(pa.array([not gone for gone in late], pa.bool_())))
        waiting |= dict(zip(taken[-1]["id"].to_pylist(), taken[-1]["t"].to_pylist(), strict=True))
        if wanted is not None and (frontier is None or wanted > frontier):
            frontier = wanted
        assert stream.head.frontier == frontier
        released = {n for n, t in waiting.items() if frontier is not None and t < frontier}
        answered = [] if turn.answered is None else turn.answered["id"].to_pylist()
        assert sorted(answered) == sorted(released)
        waiting = {n: t for n, t in waiting.items() if n not in released}
        assert stream.head.earliest_waiting == min(waiting.values(), default=None)
        without = sum(t is None for _, t in rows)
        assert turn.without_time == without
        assert turn.late_rows == sum(late) - without
        found = [] if turn.late is None else turn.late["id"].to_pylist()
        numbers = table["id"].to_pylist()
        assert sorted(found) == [n for n, gone in zip(numbers, late, strict=True) if gone]
        times = [t for _, t in rows if t is not None]
        assert turn.latest == max(times, default=None)
    stream.end()
    whole = pa.concat_tables([SCHEMA.empty_table(), *taken])
    if whole.num_rows:
        assert_same(stream.found(), spec(whole), spec)


def test_a_frontier_that_goes_back_is_ignored() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, 1), (0, 5)]), 4)
    turn = stream.turn(small_table([(0, 2), (0, 4)], 2), 2)
    assert turn.late is not None
    assert turn.late["id"].to_pylist() == [2]
    assert turn.answered is None
    assert stream.head.frontier == 4


def test_a_wholly_late_table() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, 1), (0, 50)]), 40)
    before = dict(stream.store.waiting.held)
    turn = stream.turn(small_table([(0, 1), (1, 39)], 2), 40)
    assert (turn.late_rows, turn.answered, turn.latest) == (2, None, 39)
    assert stream.store.waiting.held == before


def test_without_a_frontier_everything_waits() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    for number in range(3):
        turn = stream.turn(small_table([(0, number), (1, -number)], 2 * number), None)
        assert turn.answered is None
        assert turn.late is None
    assert stream.head.waiting_rows == 6
    assert stream.head.frontier is None
    turn = stream.turn(None, 3)
    assert turn.answered_rows == 6


def test_rows_that_wait_are_counted() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, t) for t in range(100)]), None)
    turn = stream.turn(None, 30)
    assert turn.answered_rows == 30
    assert stream.head.waiting_rows == 70


def test_integers_too_large_are_null_and_counted() -> None:
    table = pa.table({"t": [1, 2, 3], "id": [0, 1, 2], "i": [2**63 - 1, 1, 1]})
    spec = wr.Rolling(
        time="t",
        tie="id",
        windows={"w": wr.time(2)},
        aggregates=[wr.Sum("i")],
        overflow="null",
    )
    stream = Stream(plan_of(spec, table.schema))
    overflows = [stream.turn(table.slice(n, 1), n + 2).overflows for n in range(3)]
    assert overflows == [0, 1, 0]
    assert stream.found()["i_sum_w"].to_pylist() == [2**63 - 1, None, 2]


# --- how much is kept, and how often the store is asked ------------------------------------------


def test_a_gap_longer_than_every_window_empties_the_state() -> None:
    spec = small_spec()
    stream = Stream(plan_of(spec, SCHEMA, segment_rows=2))
    tables = []
    for number in range(5):
        table = small_table([(0, 100 * number + t) for t in range(9)], 9 * number)
        tables.append(table)
        stream.turn(table, 100 * number + 9)
        assert stream.store.log.held
        stream.turn(None, 100 * number + 12)
        assert stream.store.log.held
        stream.turn(None, 100 * number + 50)
        assert stream.store.log.held == {}
        assert stream.head.log_rows == 0
    assert_same(stream.found(), spec(pa.concat_tables(tables)), spec)


def test_numbers_of_cells_do_not_grow_with_the_number_of_gaps() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    highest = []
    for number in range(20):
        stream.turn(small_table([(0, 100 * number)], number), 100 * number + 1)
        highest.append(max(stream.store.log.held))
        stream.turn(None, 100 * number + 50)
    assert max(highest) < 2 * highest[0]


def row_a_turn(stream: Stream, first: int, turns: int, keys: int = 1, rows: int = 1) -> list[int]:
    """Some rows in every turn, each answered at once; how often the store was asked in each."""
    calls = []
    for time in range(first, first + turns):
        table = small_table([(n % keys, time) for n in range(rows)], time * rows)
        turn = stream.turn(table, time + 1)
        assert turn.answered_rows == rows
        calls.append(turn.traffic.calls)
    return calls


def sum_spec(**lookbacks: Any) -> wr.Rolling:
    return wr.Rolling(
        key="k", time="t", tie="id", windows=lookbacks, aggregates=[wr.Sum("x"), wr.Count()]
    )


def filled(spec: wr.Rolling, segments: int) -> Stream:
    """A stream with so many segments of one row."""
    plan = plan_of(spec, SCHEMA, segment_rows=1)
    stream = Stream(plan)
    stream.turn(small_table([(0, time) for time in range(segments)]), segments)
    stream.plan = replace(plan, segment_rows=1 << 17)
    return stream


def test_calls_do_not_grow_with_the_number_of_segments() -> None:
    most, heads = {}, {}
    for segments in (10, 100, 1000):
        stream = filled(sum_spec(w=wr.time(segments)), segments)
        assert len(stream.store.log.held) >= 2 * segments - 1
        calls = row_a_turn(stream, segments, 2 * segments if segments < 1000 else 1100)
        assert len(stream.store.log.held) <= 2 * segments + 4
        most[segments] = max(calls)
        heads[segments] = len(stream.store.head or b"")
        answers = stream.answered[-1]["x_sum_w"].to_pylist()
        last = stream.answered[-1]["id"].to_pylist()[-1]
        assert answers == [sum(1.0 + n for n in range(last - segments + 1, last + 1))]
    assert max(most.values()) <= 20
    assert max(most.values()) - min(most.values()) <= 2
    assert max(heads.values()) - min(heads.values()) <= 100


def test_calls_and_the_head_do_not_grow_with_rows_or_keys() -> None:
    spec = sum_spec(w=wr.time(10), p=wr.time(7, ending=5), r=wr.rows(2, within=10))
    most, heads = [], []
    for keys, rows in ((1, 1), (1, 500), (500, 500)):
        stream = Stream(plan_of(spec, SCHEMA))
        most.append(max(row_a_turn(stream, 0, 60, keys, rows)))
        heads.append(len(stream.store.head or b""))
    assert max(most) == min(most)
    assert max(heads) - min(heads) <= 60


def test_state_is_bounded_by_the_longest_window() -> None:
    stream = Stream(plan_of(sum_spec(w=wr.time(20), q=wr.time(5, closed="both")), SCHEMA))
    kept = []
    for time in range(0, 400, 4):
        row_a_turn(stream, time, 4)
        kept.append((stream.head.log_rows, len(stream.store.log.held), stream.head.log_bytes))
    rows, cells, size = (max(column) for column in zip(*kept, strict=True))
    assert 19 <= rows <= 23
    assert cells <= rows + (20 + 2) + (6 + 2) + 2
    assert size < 2 * kept[20][2]


def test_heavy_disorder_keeps_few_waiting_cells() -> None:
    """Rows come up to a hundred turns late: each turn still reads a bounded number of cells."""
    generator = np.random.default_rng(0)
    spec = sum_spec(w=wr.time(50))
    stream = Stream(plan_of(spec, SCHEMA, segment_rows=200))
    lateness, step, rows = 1000, 10, 20
    tables, gets, cells, waiting = [], [], [], []
    for number in range(250):
        times = number * step + generator.integers(0, lateness, rows)
        table = small_table([(0, int(time)) for time in times], rows * number)
        tables.append(table)
        before = stream.store.waiting.gets
        turn = stream.turn(table, number * step)
        assert turn.late is None
        gets.append(stream.store.waiting.gets - before)
        cells.append(len(stream.store.waiting.held))
        waiting.append(stream.head.waiting_bytes)
    assert max(gets) <= 12  # the same with a lateness of 300 turns
    assert max(cells) <= 50
    assert max(waiting[150:]) < 2 * max(waiting[100:150])
    stream.end()
    assert_same(stream.found(), spec(pa.concat_tables(tables)), spec)


def test_the_head_does_not_grow_with_the_number_of_turns_that_wait() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    sizes = []
    for number in range(200):
        stream.turn(small_table([(0, 1000 + number)], number), 0)
        sizes.append(len(stream.store.head or b""))
    assert sizes[199] < 2 * sizes[20]


def test_bytes_read_have_the_head_as_bytes_written_have() -> None:
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, 1)]), 0)
    head = len(stream.store.head or b"")
    turn = stream.turn(None, 0)
    assert turn.traffic.bytes_written == len(stream.store.head or b"")
    assert turn.traffic.bytes_read == head
