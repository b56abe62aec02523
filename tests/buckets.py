"""Buckets of streams in memory, turn by turn, and rows and specifications for them."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import windrow as wr
from windrow.columns.bucket import Bucket
from windrow.columns.stream_plan import FOR_EVER, TOTALLED, Head, StreamPlan, Turn
from windrow.columns.stretch import Reach
from windrow.slides import Rows
from windrow.times import EVER

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
    rows = isinstance(window, Rows)
    window = wr.time(window.within) if rows else window.near
    length = window.length
    start = -window.ending - (0 if length == EVER else length) + (0 if window.includes_start else 1)
    end = -window.ending + (1 if window.includes_end else 0)
    return Reach(label, "time", -FOR_EVER if length == EVER else start, end)


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
        """Everything is answered, and nothing is kept but what is kept for ever."""
        self.turn(None, END)
        self.turn(None, END + 1)
        if self.lasts:
            assert self.store.waiting.held == {}
            return
        assert self.store.log.held == {}
        assert self.store.waiting.held == {}
        assert self.head.log_rows == self.head.log_bytes == self.head.waiting_bytes == 0

    @property
    def lasts(self) -> bool:
        """Whether anything is kept for ever."""
        return any(reach.start == -FOR_EVER for reach in self.plan.reaches.values())

    def found(self) -> pa.Table:
        return pa.concat_tables(self.answered, promote_options="permissive")


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
        "ever": st.builds(wr.time, st.just("ever"), closed=st.sampled_from(["right", "left"])),
        "ever_past": st.builds(wr.time, st.just("ever"), ending=shift),
        "session": st.builds(
            wr.session, st.integers(1, most // 6), closed=st.sampled_from(["right", "left"])
        ),
        "rows_ever": st.builds(wr.rows, st.integers(1, 9), within=st.just("ever")),
    }
    labels = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=3, unique=True))
    return {label: draw(kinds[label]) for label in labels}


def fitting(chosen: dict[str, Any], aggregates: list[Any]) -> list[Any]:
    """Those of the aggregates that a stream has over all of these windows."""
    if all(window.kind not in TOTALLED for window in chosen.values()):
        return aggregates
    return [a for a in aggregates if a.kind == "bounded"] or [wr.Count()]


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
