"""A bucket of a stream: the answers of one call over the whole table, with bounded state."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.redis_server import RedisServer

import windrow as wr
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, STRUCTURES, assert_same, random_table
from windrow.aggregates.schema import frame, unframe
from windrow.columns.bucket import Bucket
from windrow.columns.cells import decoded, encoded
from windrow.columns.stream_plan import STATE_VERSION, Head, StreamPlan, Turn
from windrow.columns.stretch import Reach
from windrow.errors import BadBytes, Refused
from windrow.slides import Rows
from windrow.stores import Store
from windrow.stores.chunks import ChunkStore

END = 10**9
"""After every row."""


class MemorySpace:
    """Cells in memory, and how often they were asked for."""

    def __init__(self) -> None:
        self.held: dict[int, bytes] = {}
        self.read: set[int] = set()
        self.gets = self.puts = self.others = 0
        self.bytes_read = self.bytes_written = 0

    @property
    def size(self) -> int:
        return sum(map(len, self.held.values()))

    @property
    def calls(self) -> int:
        return self.gets + self.puts + self.others

    def get(self, number: int) -> bytes | None:
        self.gets += 1
        self.read.add(number)
        self.bytes_read += len(self.held.get(number, b""))
        return self.held.get(number)

    def put(self, number: int, data: bytes) -> None:
        self.puts += 1
        self.bytes_written += len(data)
        self.held[number] = data

    def remove(self, number: int) -> None:
        self.others += 1
        del self.held[number]

    def clear(self) -> None:
        self.others += 1
        self.held.clear()


class MemoryStore:
    """A bucket's state in memory."""

    log: Any
    waiting: Any

    def __init__(self) -> None:
        self.log, self.waiting = MemorySpace(), MemorySpace()
        self.head: bytes | None = None

    def load(self) -> bytes | None:
        return self.head

    def save(self, head: bytes) -> None:
        self.head = head

    def totals(self) -> tuple[int, int]:
        """Calls and bytes written, of cells."""
        spaces = (self.log, self.waiting)
        return sum(s.calls for s in spaces), sum(s.bytes_written for s in spaces)


def reach_of(label: str, window: Any) -> Reach:
    if isinstance(window, Rows):
        assert isinstance(window.within, int)
        return Reach(label, "time", 1 - window.within, 1)
    start = -window.ending - window.length + (0 if window.includes_start else 1)
    return Reach(label, "time", start, -window.ending + (1 if window.includes_end else 0))


def plan_of(spec: wr.Rolling, schema: pa.Schema, **options: Any) -> StreamPlan:
    reaches = {label: reach_of(label, window) for label, window in spec.windows.items()}
    return StreamPlan(spec, schema, reaches, **options)


class Stream:
    """Turns of one bucket, each of them by a new object from the bytes of the last."""

    checked = True
    """Whether the head must know how many bytes the store holds: not where they are damaged."""

    def __init__(self, plan: StreamPlan, store: MemoryStore | None = None) -> None:
        self.plan = plan
        self.store = MemoryStore() if store is None else store
        self.answered: list[pa.Table] = []
        self.late: list[pa.Table] = []

    @property
    def head(self) -> Head:
        assert self.store.head is not None
        return Head.from_bytes(self.store.head)

    def turn(self, rows: pa.Table | None, frontier: int | None) -> Turn:
        before = self.store.totals()
        bucket = Bucket(self.plan, self.store)
        turn = bucket.advance([] if rows is None else [rows], frontier)
        bucket.close()
        if turn.answered is not None:
            self.answered.append(turn.answered)
        if turn.late is not None:
            self.late.append(turn.late)
        if not self.checked:
            return turn
        head = self.head
        assert head == bucket.head
        assert head.log_bytes == self.store.log.size
        assert head.waiting_bytes == self.store.waiting.size
        assert len(head.waiting) == len(self.store.waiting.held)
        calls, written = self.store.totals()
        assert turn.traffic.calls == calls - before[0] + 2
        assert turn.traffic.bytes_written == written - before[1] + len(self.store.head or b"")
        assert turn.rows == (0 if rows is None else rows.num_rows)
        return turn

    def end(self) -> None:
        """Everything is answered, and nothing is kept."""
        self.turn(None, END)
        self.turn(None, END + 1)
        assert self.store.log.held == {}
        assert self.store.waiting.held == {}
        assert self.head.log_rows == self.head.log_bytes == self.head.waiting_bytes == 0

    def found(self) -> pa.Table:
        return pa.concat_tables(self.answered, promote_options="permissive")


# --- equal to one call over the whole table ------------------------------------------------------


@st.composite
def windows(draw: Any, most: int = 200) -> dict[str, Any]:
    """One to four windows, of every kind that a stream can have."""
    length, shift = st.integers(1, most), st.integers(1, most // 3)
    kinds = {
        "plain": st.builds(wr.time, length),
        "closed": st.builds(wr.time, length, closed=st.sampled_from(["left", "both", "neither"])),
        "past": st.builds(wr.time, length, ending=shift),
        "odd": st.builds(
            wr.time, length, closed=st.sampled_from(["left", "both", "neither"]), ending=shift
        ),
        "rows": st.builds(wr.rows, st.integers(1, 20), within=length),
        "rows_past": st.builds(wr.rows, st.integers(1, 9), ending=st.integers(1, 9), within=length),
    }
    labels = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=3, unique=True))
    return {label: draw(kinds[label]) for label in labels}


def some(aggregates: list[Any], most: int = 5) -> st.SearchStrategy[list[Any]]:
    return st.lists(
        st.sampled_from(aggregates), min_size=1, max_size=most, unique_by=lambda a: a.output_name
    )


@st.composite
def disorder(draw: Any, table: pa.Table) -> tuple[pa.Table, int]:
    """The rows as they come, and how much later than others they may."""
    lateness = draw(st.sampled_from([0, 5, 40]))
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    times = table["t"].to_numpy()
    order = np.argsort(times + generator.integers(0, lateness + 1, len(times)), kind="stable")
    return table.take(pa.array(order)), lateness


def run(stream: Stream, table: pa.Table, lateness: int, sizes: list[int]) -> None:
    """All rows, in turns of these sizes; the frontier follows the rows of the turn before."""
    times = table["t"].to_numpy()
    place, number, frontier = 0, 0, None
    while place < table.num_rows:
        size = sizes[number % len(sizes)]
        turn = stream.turn(table.slice(place, size) if size else None, frontier)
        assert turn.late is None
        place += size
        number += 1
        if place:
            frontier = int(times[:place].max()) - lateness


KEYS: list[Any] = [None, "k", ["k", "s"]]


@given(
    st.integers(0, 10**6),
    st.integers(1, 250),
    st.integers(1, 9),
    windows(),
    some([*AGGREGATES, *STRUCTURES, GeoMean("p")]),
    st.sampled_from(KEYS),
    st.data(),
)
@settings(max_examples=60)
def test_a_stream_equals_one_call(
    seed: int, size: int, keys: int, chosen: dict[str, Any], aggregates: Any, key: Any, data: Any
) -> None:
    table = random_table(size, keys=keys, seed=seed, span=data.draw(st.sampled_from([5, 100, 600])))
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=chosen,
        aggregates=aggregates,
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


def small_table(rows: list[tuple[int, int | None]], first: int = 0) -> pa.Table:
    """Rows of (key, time), numbered."""
    numbers = list(range(first, first + len(rows)))
    return pa.table(
        {
            "k": pa.array([key for key, _ in rows], pa.int64()),
            "t": pa.array([time for _, time in rows], pa.int64()),
            "id": pa.array(numbers, pa.int64()),
            "x": pa.array([1.0 + n for n in numbers], pa.float64()),
        }
    )


SCHEMA = small_table([]).schema


def small_spec(**changed: Any) -> wr.Rolling:
    given: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "windows": {"w": wr.time(8), "p": wr.time(5, ending=4), "r": wr.rows(3, within=12)},
        "aggregates": [wr.Sum("x"), wr.Count(), wr.Last("x")],
    }
    return wr.Rolling(**(given | changed))


TURNS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-20, 60)))),
        st.one_of(st.none(), st.integers(-25, 70)),
    ),
    max_size=12,
)


@given(TURNS, st.integers(1, 5))
@settings(max_examples=120)
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


# --- the state outlives the program --------------------------------------------------------------


def first_half(table: pa.Table, plan: StreamPlan) -> Stream:
    """A stream in the middle of a table that is in order of time, with rows that wait."""
    stream = Stream(plan)
    half = table.num_rows // 2
    for place in range(0, half, 25):
        last = table["t"][min(place + 24, half)].as_py()
        stream.turn(table.slice(place, min(25, half - place)), last - 10)
    assert stream.head.waiting
    return stream


def continued(stream: Stream, plan: StreamPlan, table: pa.Table) -> pa.Table:
    """The answers of the rest, by another specification over the state of the first."""
    later = Stream(plan, stream.store)
    half = table.num_rows // 2
    for place in range(half, table.num_rows, 25):
        last = table["t"][min(place + 24, table.num_rows - 1)].as_py()
        later.turn(table.slice(place, 25), last - 10)
    later.end()
    return later.found()


def in_order(seed: int = 0, size: int = 240) -> pa.Table:
    table = random_table(size, seed=seed, span=500)
    return table.sort_by([("t", "ascending"), ("id", "ascending")])


OLD: dict[str, Any] = {
    "windows": {"w": wr.time(60), "p": wr.time(40, ending=30), "r": wr.rows(4, within=90)},
    "aggregates": [wr.Sum("x"), wr.Last("s"), wr.Max("i")],
}


def specification(**changed: Any) -> wr.Rolling:
    return wr.Rolling(**({"key": "k", "time": "t", "tie": "id"} | OLD | changed))


CHANGES: dict[str, dict[str, Any]] = {
    "a shorter window": {"windows": OLD["windows"] | {"new": wr.time(35)}},
    "a window as long as any": {"windows": OLD["windows"] | {"new": wr.time(70)}},
    "a closed window": {"windows": OLD["windows"] | {"new": wr.time(69, closed="both")}},
    "a window of the past": {"windows": OLD["windows"] | {"new": wr.time(10, ending=60)}},
    "another length": {"windows": OLD["windows"] | {"w": wr.time(20)}},
    "windows that change names": {
        "windows": {"p": wr.time(60), "w": wr.time(40, ending=30), "r": OLD["windows"]["r"]}
    },
    "a window less": {"windows": {"w": wr.time(60), "r": OLD["windows"]["r"]}},
    "no time windows": {"windows": {"r": OLD["windows"]["r"]}},
    "no rows window": {"windows": {"w": wr.time(60), "p": wr.time(40, ending=30)}},
    "rows window to time window": {"windows": {"r": wr.time(5)}},
    "another aggregate": {"aggregates": [wr.Mean("x"), wr.Last("s"), wr.Max("i")]},
    "other aggregates": {"aggregates": [wr.StdDev("i"), wr.Concat("s"), wr.ArgMax("s", "x")]},
    "another order": {"aggregates": [wr.Max("i"), wr.Last("s"), wr.Sum("x")]},
    "an aggregate less": {"aggregates": [wr.Last("s")]},
    "missing is not a number": {"nan": "missing"},
    "at least two rows": {"min_rows": 2},
    "an own aggregate": {"aggregates": [wr.Count(), GeoMean("p"), wr.Max("p")]},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("segment_rows", [7, 1 << 17])
def test_a_changed_specification_goes_on(change: str, segment_rows: int) -> None:
    table = in_order()
    changed = CHANGES[change]
    before = specification()
    if change == "an own aggregate":
        before = specification(aggregates=[wr.Sum("p")])
    after = specification(**changed)
    stream = first_half(table, plan_of(before, table.schema, segment_rows=segment_rows))
    answered = set(stream.found()["id"].to_pylist())
    plan = plan_of(after, table.schema, segment_rows=segment_rows)
    found = continued(stream, plan, table)
    wanted = after(table)
    later = [number not in answered for number in wanted["id"].to_pylist()]
    assert_same(found, wanted.filter(pa.array(later)), after)


@given(st.integers(0, 10**6), windows(100), st.data())
@settings(max_examples=25)
def test_any_windows_that_look_back_less(seed: int, chosen: dict[str, Any], data: Any) -> None:
    timed = {"long": wr.time(150)} | {
        label: window for label, window in chosen.items() if not isinstance(window, Rows)
    }
    rows = {label: window for label, window in chosen.items() if isinstance(window, Rows)}
    known = data.draw(st.sets(st.sampled_from(sorted(timed))))
    after_windows = {label: w for label, w in timed.items() if label not in known} | rows
    if not after_windows:
        after_windows = {"other": wr.time(15)}
    aggregates = [a for a in AGGREGATES if a.columns]
    before = specification(windows=timed | rows, aggregates=aggregates)
    after = specification(windows=after_windows, aggregates=data.draw(some(aggregates)))
    table = in_order(seed, 150)
    stream = first_half(table, plan_of(before, table.schema, segment_rows=9))
    answered = set(stream.found()["id"].to_pylist())
    found = continued(stream, plan_of(after, table.schema, segment_rows=9), table)
    wanted = after(table)
    later = [number not in answered for number in wanted["id"].to_pylist()]
    assert_same(found, wanted.filter(pa.array(later)), after)


def test_segments_go_with_the_last_time_window() -> None:
    table = in_order()
    stream = first_half(table, plan_of(specification(), table.schema))
    later = Stream(plan_of(specification(**CHANGES["no time windows"]), table.schema), stream.store)
    half = table.num_rows // 2
    later.turn(table.slice(half), table["t"][-1].as_py())
    assert len(stream.store.log.held) == 1


def refused(spec: wr.Rolling, table: pa.Table, other: Any, **options: Any) -> str:
    """Why a specification is refused over the state of another; the state stays as it is."""
    stream = first_half(table, plan_of(spec, table.schema))
    store = stream.store
    before = (store.head, dict(store.log.held), dict(store.waiting.held))
    schema = options.pop("schema", table.schema)
    with pytest.raises(Refused) as caught:
        Bucket(plan_of(other, schema, **options), store)
    assert before == (store.head, store.log.held, store.waiting.held)
    return str(caught.value)


LONGER: list[Any] = [
    wr.time(71),
    wr.time(70, closed="both"),
    wr.time(70, closed="left"),
    wr.time(1, ending=70),
]


@pytest.mark.parametrize("window", LONGER, ids=lambda window: window.label)
def test_a_longer_window_is_refused(window: Any) -> None:
    other = specification(windows=OLD["windows"] | {"new": window})
    text = refused(specification(), in_order(), other)
    assert text.startswith("window 'new' looks back further than any window of the checkpoint")
    assert "the state has 69 ticks" in text


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"key": ["k", "b"]}, "the key cannot change .* written with k, the query says k, b"),
    "no key": ({"key": None}, "the key cannot change .* the query says none"),
    "time": ({"time": "id", "tie": "t"}, "the time column cannot change .* t, the query says id"),
    "tie": ({"tie": ["id", "x"]}, "the tie columns cannot change"),
    "column": ({"aggregates": [wr.Sum("x"), wr.Min("d")]}, "the state has no column 'd'"),
    "rows window": (
        {"windows": OLD["windows"] | {"r": wr.rows(5, within=90)}},
        "window 'r': a rows window cannot be added or changed",
    ),
    "horizon": (
        {"windows": OLD["windows"] | {"r": wr.rows(4, within=80)}},
        "window 'r': a rows window cannot be added or changed",
    ),
    "new rows window": (
        {"windows": OLD["windows"] | {"new": wr.rows(1, within=1)}},
        "window 'new': a rows window cannot be added or changed",
    ),
    "time window to rows window": (
        {"windows": {"w": wr.rows(1, within=1)}},
        "window 'w': a rows window cannot be added or changed",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_change_is_refused(what: str) -> None:
    changed, reason = REFUSALS[what]
    text = refused(specification(), in_order(), specification(**changed))
    assert re.search(reason, text), text
    assert "new checkpoint" in text


def test_other_buckets_are_refused() -> None:
    text = refused(specification(), in_order(), specification(), buckets=4)
    assert "the number of buckets cannot change" in text
    assert "written with 1, the query says 4" in text


def test_other_types_are_refused() -> None:
    table = in_order()
    place = table.schema.get_field_index("i")
    other = table.schema.set(place, pa.field("i", pa.int64()))
    text = refused(specification(), table, specification(), schema=other)
    assert "the stream's columns and their types cannot change" in text
    assert "i int32" in text
    assert "i int64" in text


def test_a_new_time_window_where_there_was_none_is_refused() -> None:
    only_rows = specification(windows={"r": OLD["windows"]["r"]})
    text = refused(only_rows, in_order(), specification())
    assert "looks back further than any window of the checkpoint" in text


def edited(head: bytes, **changes: Any) -> bytes:
    reader = unframe(b"H", b"windrow\0", head, "")
    content = json.loads(reader.take(reader.remaining()))
    content["contract"] |= changes.pop("contract", {})
    return frame(b"H", b"windrow\0", json.dumps(content | changes).encode())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"added": 1},
    ],
    ids=["same fields", "another field"],
)
def test_another_version_is_refused(changes: dict[str, Any]) -> None:
    plan = plan_of(small_spec(), SCHEMA)
    stream = Stream(plan)
    stream.turn(small_table([(0, 1)]), 2)
    assert stream.store.head is not None
    other = {"version": STATE_VERSION + 1}
    stream.store.head = edited(stream.store.head, contract=other, **changes)
    with pytest.raises(Refused, match=f"the checkpoint's state is of version {STATE_VERSION + 1}"):
        Bucket(plan, stream.store)


def test_version_2_is_read() -> None:
    """It had no word for when answers come out: for every row."""
    plan = plan_of(small_spec(), SCHEMA)
    stream = Stream(plan)
    stream.turn(small_table([(0, 1)]), 2)
    assert stream.store.head is not None
    reader = unframe(b"H", b"windrow\0", stream.store.head, "")
    content = json.loads(reader.take(reader.remaining()))
    del content["contract"]["emit"], content["active"], content["rules"], content["rules_sizes"]
    content["contract"]["version"] = 2
    stream.store.head = frame(b"H", b"windrow\0", json.dumps(content).encode())
    turn = stream.turn(small_table([(0, 3)], 1), 9)
    assert turn.answered is not None
    assert turn.answered["x_sum_w"].to_pylist() == [3.0]
    assert stream.head.contract["version"] == STATE_VERSION


@pytest.mark.parametrize("emit", ["rows", "immediately"])
@pytest.mark.parametrize("place", [0, 1, 130, 240])
def test_a_stream_that_begins_with_a_history(emit: Any, place: int) -> None:
    """Rows before a time were answered elsewhere; later ones of the history wait."""
    table = in_order()
    spec = specification(emit=emit)
    plan = plan_of(spec, table.schema, segment_rows=16)
    until = END if place == 240 else table["t"][place].as_py()
    answered = [t < until for t in table["t"].to_pylist()]
    stream = Stream(plan)
    bucket = Bucket(plan, stream.store)
    bucket.seed(
        [table.slice(0, 100), table.slice(100, max(0, place - 100))][: 1 + (place > 100)], until
    )
    bucket.close()
    with pytest.raises(Refused, match="there is a state already"):
        Bucket(plan, stream.store).seed([], until)
    later = table.slice(max(place, 100))
    stream.turn(later, until)
    stream.end()
    if emit == "immediately":  # rows of the history never come out
        answered = [n < max(place, 100) for n in range(240)]
    wanted = wr.Rolling(key="k", time="t", tie="id", **OLD)(table)
    if stream.answered:
        assert_same(stream.found(), wanted.filter(pa.array([not a for a in answered])), spec)


@pytest.mark.parametrize(
    "change",
    [
        "order",
        "nullable",
    ],
)
def test_columns_that_come_otherwise(change: str) -> None:
    """Either it goes on, or it is refused."""
    stream = Stream(plan_of(small_spec(), SCHEMA))
    stream.turn(small_table([(0, 1), (0, 9)]), 5)
    table = small_table([(0, 8)], 2)
    if change == "order":
        table = table.select(["x", "id", "t", "k"])
    else:
        table = table.cast(pa.schema([field.with_nullable(False) for field in SCHEMA]))
    later = Stream(plan_of(small_spec(), table.schema), stream.store)
    try:
        turn = later.turn(table, 10)
    except Refused:
        return
    assert turn.answered is not None
    assert turn.answered["id"].to_pylist() == [2, 1]


# --- damage --------------------------------------------------------------------------------------


@cache
def stored() -> MemoryStore:
    """The state of a stream with segments, folded segments, rows that wait and last rows."""
    stream = Stream(plan_of(small_spec(), SCHEMA, segment_rows=2))
    stream.turn(small_table([(n % 2, n) for n in range(14)]), 9)
    assert len(stream.store.log.held) > 6
    assert stream.store.waiting.held
    return stream.store


def copied() -> MemoryStore:
    store = MemoryStore()
    store.head = stored().head
    store.log.held, store.waiting.held = dict(stored().log.held), dict(stored().waiting.held)
    return store


def gone_on(store: MemoryStore) -> pa.Table:
    """The answers of three more turns."""
    stream = Stream(plan_of(small_spec(), SCHEMA, segment_rows=2), store)
    for frontier in (10, 12, 30):
        stream.turn(small_table([(0, frontier - 1)], 50 + frontier), frontier)
    return stream.found()


def test_most_cells_are_read_again() -> None:
    store = copied()
    held = len(store.log.held) + len(store.waiting.held)
    gone_on(store)
    read = len(store.log.read & stored().log.held.keys())
    assert read + len(store.waiting.read & stored().waiting.held.keys()) >= held - 3


@given(st.data())
@settings(max_examples=60)
def test_damaged_bytes_are_never_an_answer(data: Any) -> None:
    store = copied()
    places: list[tuple[MemorySpace | None, int]] = [
        (None, 0),
        *((store.log, number) for number in store.log.held),
        *((store.waiting, number) for number in store.waiting.held),
    ]
    space, number = places[data.draw(st.integers(0, len(places) - 1))]
    whole = store.head if space is None else space.held[number]
    assert whole is not None
    how = data.draw(st.sampled_from(["flip", "cut", "longer"]))
    if how == "flip":
        place = data.draw(st.integers(0, len(whole) - 1))
        mask = data.draw(st.integers(1, 255))
        broken = whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
    elif how == "cut":
        broken = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        broken = whole + data.draw(st.binary(min_size=1, max_size=9))
    if space is None:
        store.head = broken
        with pytest.raises(BadBytes):
            Bucket(plan_of(small_spec(), SCHEMA), store)
        return
    space.held[number] = broken
    try:
        Stream.checked = False
        found = gone_on(store)
    except BadBytes:
        return
    finally:
        Stream.checked = True
    assert number not in space.read
    assert found.equals(gone_on(copied()))


def test_a_cell_that_is_missing_is_damage() -> None:
    store = copied()
    store.waiting.held.clear()
    with pytest.raises(BadBytes, match="the checkpoint is damaged"):
        gone_on(store)


_EDGES = (-(1 << 63), -(1 << 32), -1, 0, 1, 255, 256, 1 << 16, 1 << 32, (1 << 63) - 1)
_WIDE = (pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("s"), pa.int32())


@given(
    st.lists(
        st.none() | st.builds(int.__add__, st.sampled_from(_EDGES[1:-1]), st.integers(-300, 300))
    ),
    st.lists(st.sampled_from(_EDGES)),
    st.integers(0, 3),
)
def test_cells_are_read_as_they_were_written(
    near: list[int | None], far: list[int], start: int
) -> None:
    for kind in _WIDE:
        for values in (near, far, [0, 255], [0, 256], [7, 7 + (1 << 32)], [-5, (1 << 32) - 6]):
            numbers: list[int | None] = [*values]
            if kind == pa.int32():
                numbers = [None if n is None else n % 1000 for n in numbers]
            array = pa.array(numbers, pa.int32() if kind == pa.int32() else pa.int64()).view(kind)
            chunks = pa.chunked_array([array[start:], array], kind)
            schema = pa.schema([pa.field("a", kind, metadata={"low": "9"}), ("s", pa.string())])
            table = pa.table([chunks, [str(n) for n in range(len(chunks))]], schema=schema)
            cell = decoded(encoded(table, {"low": -5, "schema": 7}), "cell")
            found = cell.table.replace_schema_metadata(None)
            assert found.equals(table, check_metadata=True)
            assert cell.numbers == {"low": -5, "schema": 7}


def test_integers_take_as_few_bytes_as_they_need() -> None:
    size = 10_000
    sizes = [
        len(encoded(pa.table({"a": pa.array([1 << 50, (1 << 50) + span] * (size // 2))}), {}))
        for span in (0xFF, 0x100, 0xFFFF, 0x10000, 0xFFFFFFFF, 1 << 32)
    ]
    assert [round(found / size) for found in sizes] == [1, 2, 2, 4, 4, 8]
