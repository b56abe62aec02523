"""DABA Lite over segments in a store: a plain list's answers, in a bounded number of reads."""

from collections.abc import Iterator, MutableMapping
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.columns.segment_queue import Borders, SegmentQueue
from windrow.testing import CountedWindow
from windrow.windows import DabaLite

MOST_READS = {"push": 5, "evict": 4}
MOST_WRITES = {"push": 4, "evict": 2}
MOST_DELETES = {"push": 1, "evict": 2}
MOST_MERGES = {"push": 3, "evict": 2}


class CountedCells(MutableMapping[int, str]):
    """A mapping that counts how often it is read, written and deleted from."""

    def __init__(self) -> None:
        self.held: dict[int, str] = {}
        self.reads = self.writes = self.deletes = 0

    def __getitem__(self, number: int) -> str:
        self.reads += 1
        return self.held[number]

    def __setitem__(self, number: int, partial: str) -> None:
        self.writes += 1
        self.held[number] = partial

    def __delitem__(self, number: int) -> None:
        self.deletes += 1
        del self.held[number]

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("a store is never listed")

    def __len__(self) -> int:
        raise AssertionError("a store is never counted")

    def take(self) -> tuple[int, int, int]:
        """Reads, writes and deletes since the last time."""
        found = self.reads, self.writes, self.deletes
        self.reads = self.writes = self.deletes = 0
        return found


class Twin:
    """A queue and the list of what it holds; the queue forgets everything but its borders."""

    def __init__(self) -> None:
        self.cells = CountedCells()
        self.borders = Borders()
        self.rows: list[str] = []
        self.came = 0
        self.merges = 0
        self.worst = {name: [0, 0, 0, 0] for name in ("push", "evict", "parts")}

    def queue(self) -> SegmentQueue:
        return SegmentQueue(self.cells, self.merged, Borders(**asdict(self.borders)))

    def merged(self, a: str, b: str) -> str:
        self.merges += 1
        return a + b

    def do(self, name: str, *given: Any) -> tuple[Any, list[int]]:
        queue = self.queue()
        self.cells.take()
        self.merges = 0
        answer = getattr(queue, name)(*given)
        cost = [*self.cells.take(), self.merges]
        self.worst[name] = [max(pair) for pair in zip(self.worst[name], cost, strict=True)]
        self.borders = queue.borders
        return answer, cost

    def push(self) -> list[int]:
        text = f"{self.came},"
        self.came += 1
        self.rows.append(text)
        return self.do("push", text)[1]

    def evict(self) -> list[int]:
        self.rows.pop(0)
        return self.do("evict")[1]

    def check(self) -> None:
        parts, (reads, writes, deletes, merges) = self.do("parts")
        assert "".join(parts) == "".join(self.rows)
        assert len(parts) <= 2
        assert reads == len(parts)
        assert writes == deletes == merges == 0
        assert len(self.queue()) == len(self.rows)
        assert len(self.cells.held) <= len(self.rows) + 2
        at = self.borders
        assert at.f <= at.l <= at.r <= at.a <= at.b <= at.e
        assert [n for n in sorted(self.cells.held) if n >= 0] == list(range(at.f, at.e))


PROGRAMS = st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=20)


@given(PROGRAMS, st.integers(0, 1000))
def test_a_queue_equals_a_list(program: list[tuple[bool, int]], first: int) -> None:
    twin = Twin()
    queue = twin.queue()
    queue.start_at(first)
    twin.borders = queue.borders
    twin.check()
    for pushes, times in program:
        for _ in range(times):
            if pushes:
                reads, writes, deletes, merges = twin.push()
                name = "push"
            elif twin.rows:
                reads, writes, deletes, merges = twin.evict()
                name = "evict"
            else:
                continue
            assert reads <= MOST_READS[name]
            assert writes <= MOST_WRITES[name]
            assert deletes <= MOST_DELETES[name]
            assert merges <= MOST_MERGES[name]
            twin.check()
    while twin.rows:
        twin.evict()
        twin.check()
    assert twin.cells.held == {}


def steady(twin: Twin, length: int, rounds: int) -> None:
    """Fill it, slide it, empty it."""
    for _ in range(length):
        twin.push()
    for _ in range(rounds):
        twin.push()
        twin.evict()
        twin.check()
    while twin.rows:
        twin.evict()
        twin.check()


@pytest.mark.parametrize("length", [10, 100, 1000])
def test_the_worst_case_is_reached_and_does_not_depend_on_the_length(length: int) -> None:
    twin = Twin()
    steady(twin, length, 2 * length)
    for name in ("push", "evict"):
        reads, writes, deletes, merges = twin.worst[name]
        assert reads == MOST_READS[name]
        assert writes == MOST_WRITES[name]
        assert deletes == MOST_DELETES[name]
        assert merges == MOST_MERGES[name]
    assert twin.worst["parts"] == [2, 0, 0, 0]


def test_a_queue_holds_two_cells_more_than_segments() -> None:
    twin = Twin()
    extra = set()
    for _ in range(200):
        twin.push()
        extra.add(len(twin.cells.held) - len(twin.rows))
    for _ in range(200):
        twin.push()
        twin.evict()
        extra.add(len(twin.cells.held) - len(twin.rows))
    assert max(extra) == 2


@given(PROGRAMS)
def test_it_merges_as_often_as_daba_lite_combines(program: list[tuple[bool, int]]) -> None:
    twin, window = Twin(), CountedWindow(DabaLite, wr.Concat())
    for pushes, times in program:
        for _ in range(times):
            if pushes:
                assert twin.push()[-1] == window.insert(twin.rows[-1])
            elif twin.rows:
                assert twin.evict()[-1] == window.evict()
            window.query()
            assert "".join(twin.do("parts")[0]) == (window.answer or "")


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**48))
def test_start_at_forgets_everything(pushes: int, evictions: int, number: int) -> None:
    twin = Twin()
    for _ in range(pushes):
        twin.push()
    for _ in range(min(pushes, evictions)):
        twin.evict()
    queue = twin.queue()
    queue.start_at(number)
    twin.borders, twin.rows = queue.borders, []
    assert twin.cells.held == {}
    assert queue.parts() == []
    twin.push()
    twin.push()
    twin.push()
    twin.check()
    assert min(n for n in twin.cells.held if n >= 0) == number


def test_sums_have_places_that_no_other_sum_had() -> None:
    twin = Twin()
    seen: list[int] = []
    for _ in range(300):
        twin.push()
        if len(twin.rows) > 20:
            twin.evict()
        for place in (twin.borders.front_sum, twin.borders.back_sum):
            if place >= 0 and place not in seen:
                assert not seen or place > max(seen)
                seen.append(place)
    assert len(seen) > 10


def test_an_empty_queue_has_nothing_to_evict() -> None:
    with pytest.raises(KeyError):
        SegmentQueue(CountedCells(), str.__add__).evict()
