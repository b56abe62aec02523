"""Shared windows: every structure equals Recalc, and stays within the paper's bounds."""

import copy
import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import AGGREGATES, pair_name
from windrow.aggregates import Aggregate
from windrow.errors import BadBytes, BadSpecification, BadValue, OutOfOrder, Refused, SumOverflow
from windrow.shared import (
    BInt,
    LInt,
    MaterialiseAll,
    MaterialiseNone,
    Quantiles,
    RInt,
    Shared,
    Tree,
)
from windrow.shared.l_int import width_classes
from windrow.slides import Rows, Time
from windrow.testing import CombineCounter
from windrow.testing.strategies import values as values_of
from windrow.windows.compare import equal, same

Window = Rows | Time
KINDS: list[type[Shared]] = [BInt, LInt, RInt, Tree, MaterialiseNone, MaterialiseAll]
ROWS = [wr.rows(1), wr.rows(3), wr.rows(4, ending=2), wr.rows(7, ending=7), wr.rows(12)]
TIMES = [
    wr.time(4),
    wr.time(5, ending=3),
    wr.time(9, closed="both"),
    wr.time(10, closed="left"),
    wr.time(12, closed="neither", ending=1),
    wr.time(17),
]


def made(kind: type[Shared], aggregate: Aggregate, windows: list[Any]) -> Shared:
    if kind in (LInt, MaterialiseAll):
        return kind(aggregate, windows)
    return kind(aggregate, longest=windows)


def of_rows(rows: list[Any], times: list[int], window: Any, now: int) -> list[Any]:
    """The rows of a window, by its definition."""
    if isinstance(window, Rows):
        end = max(len(rows) - window.ending, 0)
        picked = range(max(end - window.n, 0), end)
        if window.within is not None:
            assert isinstance(window.within, int)
            picked = [i for i in picked if times[i] > now - window.within]  # type: ignore[assignment]
        return [rows[i] for i in picked]
    assert isinstance(window.length, int)
    assert isinstance(window.ending, int)
    end, start = now - window.ending, now - window.ending - window.length
    out = []
    for row, time in zip(rows, times, strict=True):
        after = time >= start if window.includes_start else time > start
        before = time <= end if window.includes_end else time < end
        if after and before:
            out.append(row)
    return out


def recalc(aggregate: Aggregate, rows: list[Any]) -> Any:
    window = wr.windows.Recalc(aggregate)
    for row in rows:
        window.insert(row)
    return window.query()


def outcome(ask: Callable[[], Any]) -> Any:
    """An answer, or the kind of error that there is instead."""
    try:
        return ask()
    except SumOverflow as error:
        return type(error).__name__


def accepts(kind: type[Shared], aggregate: Aggregate) -> bool:
    return kind.refuses(aggregate) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("aggregate", AGGREGATES.values(), ids=pair_name)
def test_equals_recalc(kind: type[Shared], aggregate: Aggregate) -> None:
    if not accepts(kind, aggregate):
        with pytest.raises(Refused, match="is refused"):
            kind(aggregate)
        return

    @examples(15)
    @given(st.data())
    def check(data: Any) -> None:
        rows = data.draw(st.lists(data.draw(values_of(aggregate)), max_size=40))
        shared = made(kind, aggregate, ROWS)
        taken: list[Any] = []
        for row in rows:
            shared.insert(row)
            taken.append(row)
            for window in ROWS:
                held = of_rows(taken, [], window, 0)
                expected = outcome(partial(recalc, aggregate, held))
                found = outcome(partial(shared.query, window))
                assert same(aggregate, found, expected)
        shared.check_invariants()

    check()


@pytest.mark.parametrize("kind", [BInt, RInt, Tree, MaterialiseNone])
def test_mixed_batches(kind: type[Shared]) -> None:
    generator = random.Random(3)
    rows = [generator.randrange(-9, 9) for _ in range(200)]
    shared = kind(wr.Sum(), longest=16)
    at = 0
    while at < len(rows):
        size, first = generator.choice([0, 1, 2, 7, 40]), shared.active.start
        part = rows[at : at + size]
        rights = [generator.randrange(max(at - 1, 0), at + len(part)) for _ in part]
        lefts = [generator.randrange(max(first, right - 15), right + 1) for right in rights]
        expected = [sum(rows[a : b + 1]) for a, b in zip(lefts, rights, strict=True)]
        moments = range(at, at + len(part))
        assert shared.answer(part, lefts, rights, at=moments) == expected
        at += len(part)
    shared.check_invariants()
    with pytest.raises(BadSpecification, match="with the new rows there are 201"):
        shared.answer([1], [200], [201], at=[300])
    with pytest.raises(BadSpecification, match="1 rows, but 2 times"):
        shared.answer([1], [], [], at=[300, 301])
    with pytest.raises(BadSpecification, match="not within"):
        shared.answer([5], [0], [1], at=[300])
    assert shared.lookup(200, 200) == 5  # the row is there
    assert Quantiles(longest=4).answer([1, 2, 9], [0, 0], [2, 1], 0.5) == [2, 1.5]


@pytest.mark.parametrize("kind", [BInt, LInt, RInt, Tree, MaterialiseNone])
@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9) | st.none()), max_size=60), st.data()
)
def test_windows_of_time_equal_recalc(kind: type[Shared], steps: Any, data: Any) -> None:
    aggregate = wr.Sum() if kind is RInt else wr.Concat()
    windows = TIMES if kind is LInt else [*TIMES, wr.rows(5), wr.rows(6, within=8)]
    shared = made(kind, aggregate, windows)
    rows: list[Any] = []
    times: list[int] = []
    now = data.draw(st.integers(-20, 20))
    for step, value in steps:
        now += step
        row = value if kind is RInt or value is None else str(value)
        shared.insert(row, at=now)
        rows.append(row)
        times.append(now)
        moment = now + data.draw(st.integers(0, 12)) if data.draw(st.booleans()) else now
        for window in windows:
            expected = recalc(aggregate, of_rows(rows, times, window, moment))
            assert shared.query(window, now=moment) == expected, (window, moment)
    shared.check_invariants()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.data())
def test_base_intervals_equal_recalc_within_their_bounds(values: list[int], data: Any) -> None:
    longest = data.draw(st.none() | st.integers(1, 90))
    counter = CombineCounter(wr.Concat())
    shared = BInt(counter.aggregate, longest)
    texts = [str(v) for v in values]
    shared.insert_many(texts)
    assert counter.take() <= len(values)
    assert shared.stored_partials() <= 2 * len(shared)
    assert len(shared) == min(len(values), longest or len(values))
    left = data.draw(st.integers(shared.active.start, len(values) - 1))
    right = data.draw(st.integers(left, len(values) - 1))
    counter.take()
    assert shared.lookup(left, right) == "".join(texts[left : right + 1])
    assert counter.take() <= 2 * math.log2(right - left + 1)
    shared.check_invariants()
    with pytest.raises(BadSpecification, match="are not within"):
        shared.lookup(left, len(values))
    if shared.active.start:
        with pytest.raises(BadSpecification, match="are not within"):
            shared.lookup(0, right)


def test_base_intervals_of_the_paper() -> None:
    """The paper's rows 1 to 43 are 0 to 42 here; any split into O(log W) pieces is right."""
    shared = BInt(wr.Concat())
    for i in range(64):
        shared.insert(chr(48 + i))
    pieces = shared.intervals(0, 42)
    covered = [(number << level, (number + 1 << level) - 1) for level, number in pieces]
    assert covered == [(0, 31), (32, 39), (40, 41), (42, 42)]
    assert shared.lookup(0, 42) == "".join(chr(48 + i) for i in range(43))
    # The paper's (385, 512) is a base interval of level 7: here 384 to 511.
    assert shared.intervals(384, 511) == [(7, 3)]
    shared.check_invariants()


def test_landmark_intervals_of_the_paper() -> None:
    """Rows 3257 to 5164, for widths of 1000 to 2000, are 3257 to 3999 and 4000 to 5164."""
    counter = CombineCounter(wr.Sum())
    windows = [wr.rows(1000, ending=500), wr.rows(2000, ending=500)]
    shared = LInt(counter.aggregate, windows, longest=6000)
    shared.insert_many(range(6000))
    landmark = shared.classes[0]._first_from(3257)
    assert landmark is not None
    assert landmark.number == 4000
    counter.take()
    assert shared.lookup(3257, 5164) == sum(range(3257, 5165))
    assert counter.take() == 1


def test_landmarks_within_their_bounds() -> None:
    """One combine a lookup, at most 4 an update amortised, at most 5·N partials (c = 2)."""
    counter = CombineCounter(wr.Max())
    least, most, kept = 100, 200, 1000
    windows = [wr.rows(least, ending=kept - most), wr.rows(most, ending=kept - most)]
    shared = LInt(counter.aggregate, windows)
    stored = 0
    for i in range(20_000):
        shared.insert(i % 37)
        if i % 97 == 0:
            stored = max(stored, shared.stored_partials())
    assert counter.take() <= 4 * 20_000
    assert len(shared) == kept
    assert stored <= 5 * kept
    generator = random.Random(1)
    for _ in range(500):
        width = generator.randint(least, most)
        left = generator.randint(shared.active.start, shared.active.stop - width)
        counter.take()
        shared.lookup(left, left + width - 1)
        assert counter.take() <= 1


def test_suffix_windows_of_all_widths_take_o_of_n_partials() -> None:
    """Widths from 16 to 4096 are 9 classes; together they keep less than 5 times the widest."""
    windows = [wr.rows(1 << i) for i in range(4, 13)]
    shared = LInt(wr.Max(), windows)
    assert len(shared.classes) > 4
    most = 0
    for i in range(20_000):
        shared.insert(i)
        if i % 61 == 0:
            most = max(most, shared.stored_partials())
    assert most <= 5 * 4096
    assert [shared.query(window) for window in windows] == [19_999] * 9


def test_width_classes() -> None:
    windows = [wr.rows(n) for n in (1000, 10, 19, 20, 21, 2000, 41)] + [wr.time(30)]
    widths = [[getattr(w, "n", "time") for w in group] for group in width_classes(windows)]
    assert widths == [[10, 19, 20], [21, 41], [1000, 2000], ["time"]]


def test_running_intervals_take_one_inverse() -> None:
    counter = CombineCounter(wr.Sum())
    shared = RInt(counter.aggregate, longest=100)
    shared.insert_many(range(1000))
    assert counter.take() <= 1000
    assert shared.stored_partials() == 101
    assert shared.lookup(950, 999) == sum(range(950, 1000))
    assert counter.take() == 1


def test_floats_are_subtracted_exactly() -> None:
    shared = RInt(wr.Sum())
    shared.insert_many([1e300, 0.1, 0.2, -1e300, math.inf, 5.0])
    assert shared.lookup(1, 2) == math.fsum([0.1, 0.2])
    assert shared.lookup(0, 3) == math.fsum([0.1, 0.2])
    assert shared.lookup(4, 5) == math.inf
    assert shared.lookup(5, 5) == 5.0


def test_missing_values_leave_a_window_empty() -> None:
    for kind in (BInt, RInt, Tree):
        shared = kind(wr.Sum())
        shared.insert_many([1, None, None, 2])
        assert shared.lookup(1, 2) is None
        assert shared.lookup(0, 2) == 1


@pytest.mark.parametrize("kind", [BInt, LInt, RInt, Tree, MaterialiseNone])
def test_bytes(kind: type[Shared]) -> None:
    windows = [wr.time("10s"), wr.time("15s", ending="5s"), wr.rows(5)]
    shared = made(kind, wr.Sum(), windows)
    start = datetime(2024, 1, 1)
    shared.insert_many(range(100), [start + timedelta(seconds=i) for i in range(100)])
    data = shared.to_bytes()
    again = kind.from_bytes(data, wr.Sum(), windows)
    other = BInt.from_bytes(data, wr.Sum(), windows)  # the rows are what is kept
    for i in range(100, 140):
        for one in (shared, again, other):
            one.insert(i * 0.5, at=start + timedelta(seconds=i))
        for window in windows:
            assert equal(again.query(window), shared.query(window))
            assert equal(other.query(window), shared.query(window))
    again.check_invariants()
    for wrong in (data[:-1], data[:40] + b"x" + data[41:], b"", data + b"x"):
        with pytest.raises(BadBytes):
            kind.from_bytes(wrong, wr.Sum(), windows)
    with pytest.raises(BadBytes, match="something else"):
        BInt.from_bytes(data, wr.Max())


def test_a_copy_goes_its_own_way() -> None:
    shared = BInt(wr.Sum())
    shared.insert_many([1, 2, 3])
    twin = copy.deepcopy(shared)
    twin.insert(4)
    assert shared.lookup(0, 2) == 6
    assert twin.lookup(0, 3) == 10


class Fragile(wr.Aggregate):
    """Fails when it combines 13."""

    def combine(a: Any, b: Any) -> Any:  # noqa: N805
        if 13 in (a, b):
            raise ValueError("unlucky")
        return a + b


@pytest.mark.parametrize("kind", [BInt, LInt])
def test_an_insert_that_raises_changes_nothing(kind: type[Shared]) -> None:
    shared = made(kind, Fragile(), [wr.rows(2)])
    shared.insert(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="unlucky"):
            shared.insert(13)
    shared.insert(2)
    assert shared.query(wr.rows(2)) == 3
    shared.check_invariants()


def test_errors_say_what_to_do() -> None:
    shared = BInt(wr.Max(), wr.rows(10))
    shared.insert_many(range(20))
    with pytest.raises(Refused, match="'20rows' reaches back to rows that were let go"):
        shared.query(wr.rows(20))
    with pytest.raises(BadSpecification, match="about time, and the rows came without"):
        shared.query(wr.time(5))
    with pytest.raises(BadSpecification, match="all with times or all without"):
        shared.insert(3, at=4)
    with pytest.raises(Refused, match="looks at later rows"):
        shared.query(wr.rows(3, after=1))
    with pytest.raises(BadSpecification, match="from 1 on"):
        BInt(wr.Max(), 0)
    timed = BInt(wr.Max(), "10s")
    timed.insert(1, at=datetime(2024, 1, 1))
    with pytest.raises(OutOfOrder, match="sort the rows"):
        timed.insert(1, at=datetime(2023, 1, 1))
    with pytest.raises(OutOfOrder, match="cannot be unseen"):
        timed.query("5s", now=datetime(2023, 1, 1))
    with pytest.raises(BadSpecification, match="the rows before had times"):
        timed.insert(1)
    with pytest.raises(BadValue, match="is not a time like"):
        timed.insert(1, at="yesterday")
    with pytest.raises(Refused, match="Use BInt or LInt"):
        RInt(wr.Max())
    known = LInt(wr.Max(), [wr.rows(10), wr.rows(12)])
    known.insert_many(range(100))
    with pytest.raises(Refused, match="no window that LInt was made for"):
        known.lookup(91, 92)
    with pytest.raises(BadSpecification, match="the windows that will be asked"):
        LInt(wr.Max(), [])
    with pytest.raises(Refused, match="has no width"):
        LInt(wr.Max(), [wr.rows(3, within=5)])
    with pytest.raises(BadSpecification, match="insert\\(value, at"):
        LInt(wr.Max(), ["5s"]).insert(3)


METHODS = ("linear", "lower", "higher", "nearest", "midpoint", "hazen", "inverted_cdf")


@examples(80)
@given(
    st.lists(
        st.none() | st.sampled_from([math.nan, -0.0, math.inf]) | st.floats(-9, 9), max_size=70
    ),
    st.data(),
)
def test_quantiles_equal_recalc(values: list[float | None], data: Any) -> None:
    longest = data.draw(st.none() | st.integers(1, 80))
    shared = Quantiles(longest)
    shared.insert_many(values)
    shared.check_invariants()
    if not values:
        return
    left = data.draw(st.integers(shared.active.start, len(values) - 1))
    right = data.draw(st.integers(left, len(values) - 1))
    held = values[left : right + 1]
    phi = data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]) | st.floats(0, 1))
    for method in METHODS:
        expected = recalc(wr.Quantile(phi=phi, method=method), held)  # type: ignore[arg-type]
        assert equal(shared.lookup(left, right, phi, method), expected)  # type: ignore[arg-type]
    x = data.draw(st.sampled_from([v for v in held if v is not None] or [1.0]))
    present = [v for v in held if v is not None]
    larger = [v for v in present if (x == x and (v > x or v != v))]
    smaller = [v for v in present if (v < x if x == x else v == v)]
    assert shared.count_below(left, right, x) == len(smaller)
    assert shared.rank(left, right, x) == len(present) - len(larger)
    assert equal(shared.median(left, right), recalc(wr.Median(), held))


def test_the_papers_quantile() -> None:
    """The element at position ⌊φ·N⌋ of the sorted values, counted from 1; 0 is read as 1."""
    shared = Quantiles(method="lower")
    shared.insert_many([50, 10, 40, 20, 30])
    asked = [0.05, 0.2, 0.39, 0.4, 0.99, 1.0]
    assert [shared.lookup(0, 4, phi) for phi in asked] == [10, 10, 10, 20, 40, 50]
    words = Quantiles(method="lower")
    words.insert_many(["pear", "apple", "fig"])
    assert words.lookup(0, 2, 0.7) == "fig"
    with pytest.raises(Refused, match="interpolates"):
        words.median(0, 2)


def test_quantiles_in_time_and_bytes() -> None:
    shared = Quantiles(wr.time(10))
    shared.insert_many(range(50), at=range(50))
    assert shared.query(wr.time(10), phi=0.9) == 48.1
    assert len(shared) == 11
    again = Quantiles.from_bytes(shared.to_bytes(), wr.time(10))
    assert again.query(wr.time(5), now=52) == 48.5


def test_rounded_floats_are_not_subtracted() -> None:
    class Total(wr.Aggregate):
        """A sum that says it can be inverted, of whatever comes."""

        invertible = True

        def combine(a: Any, b: Any) -> Any:  # noqa: N805
            return a + b

        def inverse(total: Any, oldest: Any) -> Any:  # noqa: N805
            return total - oldest

    shared = RInt(Total())
    shared.insert(1)
    with pytest.raises(BadValue, match="cannot be subtracted exactly"):
        shared.insert(0.5)
    assert shared.lookup(0, 0) == 1
    assert len(shared) == 1


def test_the_compiled_twin() -> None:
    twin = BInt.compiled(wr.Max(), longest=100)
    twin.insert_many([3.0, 1.0, 4.0])
    assert twin.lookup(0, 1) == 3.0
    assert Quantiles.compiled(longest=10).longest == 10
