"""Fiba: late rows, bulk evictions and ranges equal a sorted list; the papers' figures, counted."""

import copy
import pickle
import random
from bisect import insort
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import windrow as wr
from windrow.errors import BadBytes, BadSpecification, BadValue, EmptyWindow, InvariantBroken
from windrow.testing import CombineCounter
from windrow.windows import Recalc
from windrow.windows.compare import equal
from windrow.windows.fiba import Fiba

NUMBERS = st.one_of(st.none(), st.integers(-9, 9), st.floats(-1e3, 1e3), st.just(1e18))
SOURCES: dict[wr.Aggregate, st.SearchStrategy[Any]] = {
    wr.Concat(): st.one_of(st.none(), st.text("abc", min_size=1, max_size=2)),
    wr.Max(): NUMBERS,
    wr.Sum(): NUMBERS,
    wr.Count(): NUMBERS,
}
TIMES = st.one_of(
    st.integers(-3, 3), st.integers(-100, 100), st.sampled_from([-(2**63), 2**63 - 1])
)


class Twin:
    """A Fiba, and the same rows in a list sorted by (time, arrival)."""

    def __init__(self, aggregate: wr.Aggregate) -> None:
        self.aggregate = aggregate
        self.window = Fiba(aggregate)
        self.rows: list[tuple[int, int, Any]] = []
        self.arrivals = 0

    def insert(self, value: Any, at: int | None) -> None:
        self.window.insert(value, at=at)
        if at is None:
            at = self.rows[-1][0] + 1 if self.rows else 0
        insort(self.rows, (at, self.arrivals, value), key=lambda row: row[:2])
        self.arrivals += 1

    def bulk_evict(self, n: int) -> None:
        self.window.bulk_evict(n)
        del self.rows[:n]

    def evict_before(self, time: int) -> None:
        gone = sum(row[0] < time for row in self.rows)
        assert self.window.evict_before(time) == gone
        del self.rows[:gone]

    def answer(self, rows: list[tuple[int, int, Any]]) -> Any:
        oracle = Recalc(self.aggregate)
        for row in rows:
            oracle.insert(row[2])
        return oracle.query()

    def compare_range(self, first: int, last: int) -> None:
        expected = self.answer([row for row in self.rows if first <= row[0] <= last])
        assert equal(self.window.query_range(first, last), expected)

    def compare(self) -> None:
        window, rows = self.window, self.rows
        window.check_invariants([window.lift(value) for _, _, value in rows])
        assert equal(window.query(), self.answer(rows))
        assert len(window) == len(rows)
        assert window.oldest == (rows[0][0] if rows else None)
        assert window.youngest == (rows[-1][0] if rows else None)


def machine(aggregate: wr.Aggregate, source: st.SearchStrategy[Any]) -> Any:
    class Machine(RuleBasedStateMachine):
        @initialize(timed=st.sampled_from([True, True, True, False]))
        def start(self, timed: bool) -> None:
            self.timed = timed
            self.twin = Twin(aggregate)

        @rule(rows=st.lists(st.tuples(source, TIMES), min_size=1, max_size=12))
        def insert(self, rows: list[tuple[Any, int]]) -> None:
            for value, at in rows:
                self.twin.insert(value, at if self.timed else None)

        @rule(values=st.lists(source, min_size=10, max_size=60), step=st.integers(0, 2))
        def insert_in_order(self, values: list[Any], step: int) -> None:
            for value in values:
                youngest = self.twin.window.youngest or 0
                at = min(youngest + step, 2**63 - 1)
                self.twin.insert(value, at if self.timed else None)

        @rule(n=st.integers(1, 9))
        def evict(self, n: int) -> None:
            for _ in range(min(n, len(self.twin.rows))):
                self.twin.window.evict()
                del self.twin.rows[0]
                self.twin.compare()

        @rule(share=st.floats(0, 1))
        def bulk_evict(self, share: float) -> None:
            self.twin.bulk_evict(round(share * len(self.twin.rows)))

        @rule(time=TIMES)
        def evict_before(self, time: int) -> None:
            self.twin.evict_before(time)

        @rule(first=TIMES, last=TIMES)
        def query_range(self, first: int, last: int) -> None:
            self.twin.compare_range(first, last)
            self.twin.compare_range(min(first, last), max(first, last))

        @rule()
        def reload(self) -> None:
            data = self.twin.window.to_bytes()
            self.twin.window = Fiba.from_bytes(data, aggregate)
            assert self.twin.window.to_bytes() == data

        @rule(through=st.sampled_from([copy.copy, lambda w: pickle.loads(pickle.dumps(w))]))
        def copy(self, through: Any) -> None:
            self.twin.window = through(self.twin.window)

        @rule()
        def clear(self) -> None:
            self.twin.window.clear()
            self.twin.rows.clear()

        @invariant()
        def holds(self) -> None:
            if hasattr(self, "twin"):
                self.twin.compare()

    return Machine


@pytest.mark.parametrize("aggregate", SOURCES, ids=repr)
def test_random_programs_equal_a_sorted_list(aggregate: wr.Aggregate) -> None:
    examples = max(settings().max_examples // 4, 1)
    run_state_machine_as_test(
        machine(aggregate, SOURCES[aggregate]), settings=settings(max_examples=examples)
    )


def test_deep_trees_equal_a_sorted_list() -> None:
    """Larger than hypothesis makes them: seven levels, with every way to change them."""
    generator = random.Random(3)
    twin = Twin(wr.Concat())
    for width in (1, 3000, 20, 3000):  # many ties; few; around the end; few
        for i in range(1200):
            at = (twin.window.youngest or 0) + 1 if i % 3 else generator.randrange(width)
            twin.insert(chr(97 + i % 26), at)
        twin.compare()
        for _ in range(12):
            twin.bulk_evict(generator.randrange(100))
            first = generator.randrange(3000)
            twin.compare_range(first, first + generator.randrange(3000))
            for _ in range(30):
                twin.insert(generator.choice([None, "x", "y"]), generator.randrange(-width, width))
            twin.evict_before(generator.randrange(-width, -width // 2 + 1))
            twin.compare()
    assert len(twin.rows) > 1000


def test_rows_of_equal_time_keep_their_order() -> None:
    window = Fiba(wr.Concat())
    for i in range(60):
        window.insert(chr(65 + i), at=i % 3)
    expected = "".join(chr(65 + i) for late in range(3) for i in range(late, 60, 3))
    assert window.query() == expected
    assert window.query_range(1, 1) == expected[20:40]
    assert window.evict_before(1) == 20
    assert window.query() == expected[20:]


def test_times_are_integers_all_given_or_none() -> None:
    window = Fiba(wr.Max())
    for wrong in (1.0, "1", True, np.datetime64("2024-01-01")):
        with pytest.raises(BadValue, match="is not a time"):
            window.insert(1, at=wrong)  # type: ignore[arg-type]
        with pytest.raises(BadValue, match="is not a time"):
            window.evict_before(wrong)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="beyond 64 bits"):
        window.insert(1, at=2**63)
    window.insert(5, at=np.int64(-7))  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="came with a time and this one comes without"):
        window.insert("another kind")
    assert (window.oldest, len(window), window.query()) == (-7, 1, 5)
    window.evict()
    window.insert(3)
    window.push(4)
    assert (window.oldest, window.youngest) == (0, 1)
    with pytest.raises(BadSpecification, match="came without a time and this one comes with"):
        window.push(6, at=2)
    assert window.query() == 4


def test_empty_windows() -> None:
    window = Fiba(wr.Max())
    for _ in range(2):
        assert window.query() is None
        assert window.query_range(-5, 5) is None
        assert window.oldest is window.youngest is None
        assert window.evict_before(10) == 0
        with pytest.raises(EmptyWindow, match="is empty"):
            window.evict()
        with pytest.raises(EmptyWindow, match="holds 0 rows"):
            window.bulk_evict(1)
        window.insert(None, at=4)
        window.insert(2, at=3)
        with pytest.raises(BadSpecification, match="number of rows"):
            window.bulk_evict(1.0)  # type: ignore[arg-type]
        assert window.evict_before(4) == 1
        assert window.query() is None
        assert window.evict_before(5) == 1


def test_invariants_are_really_checked() -> None:
    def filled() -> Any:
        window = Fiba(wr.Sum())
        for i in range(200):
            window.insert(i + 1, at=i * 7 % 50)
        window.bulk_evict(33)
        return window

    def spoil_time(tree: Any) -> None:
        tree.left[1].times[0] += 1

    def spoil_count(tree: Any) -> None:
        tree.right[1].rows += 1

    def spoil_aggregate(tree: Any) -> None:
        tree.left[2].items[1].agg = tree.left[0].agg

    def spoil_chain(tree: Any) -> None:
        tree.left_chain[0] = tree.right_chain[0]

    def spoil_finger(tree: Any) -> None:
        tree.left[0] = tree.right[0]

    def spoil_arity(tree: Any) -> None:
        leaf = tree.left[1].items[1]
        del leaf.items[1:], leaf.times[1:]

    for spoil in (
        *(spoil_time, spoil_count, spoil_aggregate),
        *(spoil_chain, spoil_finger, spoil_arity),
    ):
        window = filled()
        window.check_invariants()
        spoil(window._tree)
        with pytest.raises(InvariantBroken):
            window.check_invariants()


@given(st.data())
def test_damaged_numbers_never_become_a_window(data: Any) -> None:
    window = Fiba(wr.Max())
    for i in range(40):
        window.insert(i, at=i * 7 % 50 - 20)
    numbers, runs = window._state()
    i = data.draw(st.integers(0, len(numbers) - 1))
    numbers[i] = data.draw(st.integers(0, 70))
    again = Fiba(wr.Max())
    try:
        again._restore(numbers, runs)
        again.check_invariants()
    except (ValueError, IndexError, InvariantBroken):
        return
    assert again.query() == 39


def test_bytes_of_another_aggregate_are_refused() -> None:
    window = Fiba(wr.Max())
    window.insert(1, at=5)
    with pytest.raises(BadBytes):
        Fiba.from_bytes(window.to_bytes(), wr.Min())


class Explosive(wr.Aggregate):
    """Concatenates, and raises at a chosen application of ⊕."""

    fuse = 0

    def combine(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        self.fuse -= 1
        if self.fuse == 0:
            raise RuntimeError("boom")
        return a + b


@given(st.integers(0, 2**32), st.integers(1, 150))
def test_an_operation_that_raises_changes_nothing(seed: int, size: int) -> None:
    """Whichever of its combines raises, the state is the same as before to the last node."""
    generator = random.Random(seed)
    aggregate = Explosive()
    window = Fiba(aggregate)
    for i in range(size):
        window.insert((i,), at=i if generator.random() < 0.6 else generator.randrange(size))
    window.bulk_evict(generator.randrange(size))
    at = generator.choice([-1, generator.randrange(size), size])
    n = generator.randrange(1, len(window) + 1)
    middle = (window.oldest or 0) + generator.randrange(size)
    operations: list[tuple[str, Any]] = [
        ("insert", lambda: window.insert((size,), at=at)),
        ("evict", window.evict),
        ("bulk_evict", lambda: window.bulk_evict(n)),
        ("evict_before", lambda: window.evict_before(middle)),
        ("query_range", lambda: window.query_range(at, middle)),
    ]
    _, operation = generator.choice(operations)
    before = window._state()
    fuse = 0
    while True:
        fuse += 1
        aggregate.fuse = fuse
        try:
            operation()
        except RuntimeError:
            assert window._state() == before
            continue
        break
    aggregate.fuse = 0
    window.check_invariants()


# --- counts --------------------------------------------------------------------------------------


class Counted:
    """A Fiba of rows at times 0, 8, 16, …, and how often it combined."""

    def __init__(self, size: int) -> None:
        self.counter = CombineCounter(wr.Max())
        self.window = Fiba(self.counter.aggregate)
        self.times: list[int] = []
        for _ in range(size):
            self.append()

    def append(self) -> int:
        self.times.append(self.times[-1] + 8 if self.times else 0)
        return self.count(self.window.insert, 0, self.times[-1])

    def insert(self, place: int) -> int:
        """Just before the row that is now in this place, among rows of the time before it."""
        at = self.times[place - 1] if place else self.times[0] - 1
        while place < len(self.times) and self.times[place] == at:
            place += 1
        self.times.insert(place, at)
        return self.count(self.window.insert, 0, at)

    def evict(self) -> int:
        del self.times[0]
        return self.count(self.window.evict)

    def count(self, operation: Any, *arguments: Any) -> int:
        self.counter.take()
        operation(*arguments)
        return self.counter.take()


def test_in_order_costs_do_not_grow_with_the_window() -> None:
    """1.3 an insert and 1.7 an evict on average; in the worst case at most 3·log2 n."""
    averages = []
    for exponent in (8, 11, 14):
        size = 1 << exponent
        counted = Counted(size)
        rounds = max(size, 4096)
        costs = [(counted.append(), counted.evict()) for _ in range(rounds)]
        inserts, evicts = (sum(cost) / rounds for cost in zip(*costs, strict=True))
        assert inserts <= 1.35
        assert evicts <= 1.75
        averages.append(inserts + evicts)
        assert max(map(max, costs)) <= 3 * log2(size)
        assert counted.count(counted.window.total) == 3
        assert counted.window.stored_partials() <= 1.4 * size
    assert max(averages) <= 1.1 * averages[0]


@pytest.mark.parametrize("end", ["young", "old"])
def test_a_late_row_costs_the_logarithm_of_its_distance(end: str) -> None:
    """On average at most 11 + 2·log2 d whatever the window's size; worst at most 4·log2 n."""
    for size in (1 << 9, 1 << 13):
        for distance in (1, 16, 250, 4000):
            if 2 * distance > size:
                continue
            counted = Counted(size)
            costs = []
            for _ in range(400):
                place = len(counted.times) - distance if end == "young" else distance
                costs.append(counted.insert(place))
                if end == "young":
                    counted.append()
                    counted.evict()
                counted.evict()
            assert sum(costs) / 400 <= 11 + 2 * log2(distance)
            assert max(costs) <= 4 * log2(size)


def test_back_and_forth_at_the_ends_stays_constant() -> None:
    """Splits and fusions do not follow each other up the tree, wherever eviction stopped."""
    generator = random.Random(7)
    counted = Counted(1 << 12)
    spent = done = 0
    for _ in range(25):
        n = generator.randrange(120)
        counted.window.bulk_evict(n)
        del counted.times[:n]
        burst = generator.randrange(1, 12)
        for i in range(240):
            if i // burst % 2:
                spent += counted.evict()
            else:
                spent += counted.insert(generator.choice([0, 1, 2, len(counted.times) - 1]))
            done += 1
    assert spent / done <= 6


@pytest.mark.parametrize("times", [3, 1 << 40])
def test_random_times_and_ranges(times: int) -> None:
    """Insert at most 4·log2 n, a range 4·log2 n, evict 3·log2 n; at most 1.75n + O(log n) kept."""
    generator = random.Random(2)
    counted = Counted(0)
    window, size = counted.window, 4000
    for _ in range(size):
        combines = counted.count(window.insert, 0, generator.randrange(times))
        assert combines <= 4 * log2(size)
    assert window.stored_partials() <= 1.75 * size + 4 * log2(size)
    for _ in range(300):
        first, last = sorted(generator.choices(range(-1, times + 1), k=2))
        assert counted.count(window.query_range, first, last) <= 4 * log2(size)
    while len(window) > 1:
        assert counted.count(window.evict) <= 3 * log2(size)


@pytest.mark.parametrize("late", [False, True])
def test_bulk_eviction_costs_a_logarithm_whatever_its_size(late: bool) -> None:
    """At most 3·log2 n, for single rows and for all but one."""
    generator = random.Random(4)
    size = 1 << 11
    counted = Counted(size // 2 if late else size)
    while len(counted.window) < size:
        counted.insert(generator.randrange(len(counted.times)))
    state = counted.window._state()
    for n in [*range(1, size, 19), size // 2, size - 2, size - 1]:
        counted.window._restore(*state)
        if n % 2:
            combines = counted.count(counted.window.bulk_evict, n)
        else:
            combines = counted.count(counted.window.evict_before, counted.times[n])
        assert combines <= 3 * log2(size)
