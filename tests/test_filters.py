"""Filters equal brute force; candidates keep the paper's guarantee; its bounds, counted."""

import math
import random
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from windrow.errors import (
    BadBytes,
    BadSpecification,
    BadValue,
    InvariantBroken,
    OutOfOrder,
    Refused,
)
from windrow.filters import CiCount, CiMax, CiMin, CiSum, Filter, PerKey, filter_for
from windrow.filters.precision import error_at_least, error_at_most, levels_for

LONGEST = 40
EXAMPLES = 2000 if settings().max_examples > 100 else 25

Row = tuple[Any, int, float]


class Rows:
    """All rows in a list: the oracle."""

    def __init__(self, kind: type[Filter]) -> None:
        self.kind = kind
        self.rows: list[Row] = []

    def known(self, now: int) -> set[Any]:
        return {key for key, at, _ in self.rows if at > now - LONGEST}

    def value(self, key: Any, now: int, T: int) -> Any:
        values = [x for k, at, x in self.rows if k == key and now - T < at <= now]
        if self.kind is CiCount:
            return len(values)
        if self.kind is CiSum:
            return math.fsum(values)
        nan_last = sorted(values, key=lambda x: (x != x, x))
        return None if not values else nan_last[-1] if self.kind is CiMax else nan_last[0]

    def passing(self, now: int, T: int, low: float, high: float) -> set[Any]:
        values = {key: self.value(key, now, T) for key in self.known(now)}
        return {key for key, x in values.items() if x is not None and low <= x <= high}


def bursts(
    values: st.SearchStrategy[float],
) -> st.SearchStrategy[list[tuple[int, str, float, int]]]:
    """(time that passes, key, value, how often): equal times, silence, one key, powers of two."""
    return st.lists(
        st.tuples(
            st.sampled_from([0, 0, 1, 1, 2, 7, LONGEST - 1, LONGEST, LONGEST + 1, 100]),
            st.sampled_from("aaaabbc"),
            values,
            st.sampled_from([1, 1, 2, 3, 4, 7, 8, 9, 16, 17, 33]),
        ),
        min_size=1,
        max_size=12,
    )


def replay(
    filter: Any, rows: Rows, stream: list[tuple[int, str, float, int]], in_batches: bool
) -> int:
    now = 1000
    for gap, key, value, times in stream:
        now += gap
        new = [(key, now, value)] * times
        rows.rows += new
        if isinstance(filter, CiCount):
            if in_batches:
                filter.insert_many([key] * times, [now] * times)
            else:
                for _ in range(times):
                    filter.insert(key, at=now)
        elif in_batches:
            filter.insert_many([key] * times, [value] * times, [now] * times)
        else:
            for _ in range(times):
                filter.insert(key, value, at=now)
    return now


def windows(rows: Rows, now: int) -> list[int]:
    """Lengths that end right before, at and after rows, and the extremes."""
    borders = {now - at + d for _, at, _ in rows.rows for d in (0, 1)}
    wanted = sorted({1, 2, LONGEST} | {T for T in borders if 0 < T <= LONGEST})
    return wanted[:4] + wanted[-3:]


COUNTS = st.just(1.0)
WEIGHTS = st.sampled_from(
    [0.0, 1, 2, 3, 4, 7, 8, 9, 1023, 1024, 1025, 0.1, 0.3, 1e-9, 1e15, 1e-300]
)
NUMBERS = st.sampled_from([0.0, -0.0, 1, -1, 2, 2.5, 1e300, -1e300, math.inf, -math.inf, 5e-324])


# --- the paper's example --------------------------------------------------------------------------


def figure_8(**options: Any) -> CiCount:
    times = {
        "k1": (58, "76 80 82 86 90 93 94 96 98 100 101 103 104 105 106"),
        "k2": (43, "66 71 73 82 85 87 92 93 96 97 98 100 102 103 105"),
        "k3": (29, "47 50 53 60 68 73 76 80 81 85 91 94 97 100 102"),
    }
    rows = []
    for key, (length, text) in times.items():
        shown = [int(t) for t in text.split()]
        rows += [(t, key) for t in [40] * (length - len(shown)) + shown]
    found = CiCount(longest=100, per_size=1, **options)
    for t, key in sorted(rows):
        found.insert(key, at=t)
    return found


@pytest.mark.parametrize("exact", [True, False])
def test_figure_8(exact: bool) -> None:
    filter = figure_8(exact=exact)
    assert set(filter.candidates(106, 20, at_least=11)) == {"k1", "k2"}
    if exact:
        assert filter.lookup(106, 20, at_least=11) == ["k1"]
        told = filter.explain(106, 20, at_least=11)
        assert (told.candidates, told.answered) == (2, 1)
        assert "level" in str(told)
        assert [filter.value(f"k{i}", 106, 20) for i in (1, 2, 3)] == [11, 10, 5]
    filter.check_invariants()


def test_entries_of_figure_8() -> None:
    """TSTAMP[k3, 2] = 85; the others by the definition: the multiple of 2^l within level l."""
    from windrow.columns.filters import ordered

    filter = figure_8()
    row = filter._index((2, 0), False)
    slots = [filter._slot_of[f"k{i}"] for i in (1, 2, 3)]
    found = [ordered.value_of(filter._pool, filter._indexes[row], slot, 0) for slot in slots]
    assert found == [98, 100, 85]


# --- exact, superset, ε ---------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@settings(max_examples=EXAMPLES)
@given(stream=bursts(COUNTS), in_batches=st.booleans(), exact=st.booleans())
def test_counts(p: int, stream: Any, in_batches: bool, exact: bool) -> None:
    filter, rows = CiCount(LONGEST, per_size=p, exact=exact), Rows(CiCount)
    half = len(stream) // 2
    now = replay(filter, rows, stream[:half], in_batches)
    for v in (1, 3, 8):  # some levels are indexed early, and kept up
        filter.lookup(now, LONGEST, at_least=v)
        filter.lookup(now, LONGEST, at_most=v)
    now = replay_from(filter, rows, now, stream[half:], in_batches)
    filter.check_invariants()
    assert set(filter.keys()) == rows.known(now)
    for T in windows(rows, now):
        counts = {key: rows.value(key, now, T) for key in rows.known(now)}
        for v in sorted({1, 2, 10**9} | {c + d for c in counts.values() for d in (0, 1)}):
            check(filter, rows, now, T, v, exact)
    later = now + LONGEST // 2
    check(filter, rows, later, LONGEST, 2, exact)
    check(filter, rows, now + 10 * LONGEST, 3, 1, exact)


def replay_from(filter: Any, rows: Rows, now: int, stream: Any, in_batches: bool) -> int:
    first = (stream[0][0] + now - 1000, *stream[0][1:])
    return replay(filter, rows, [first, *stream[1:]], in_batches)


def check(filter: Any, rows: Rows, now: int, T: int, v: float, exact: bool = True) -> None:
    """Both sides of one threshold: equal to the oracle; candidates a superset, relaxed by ε."""
    least, most = rows.passing(now, T, v, math.inf), rows.passing(now, T, -math.inf, v)
    if exact:
        assert set(filter.lookup(now, T, at_least=v)) == least
        assert set(filter.lookup(now, T, at_most=v)) == most
        assert set(filter.lookup(now, T, between=(v, 2 * v))) == rows.passing(now, T, v, 2 * v)
    if isinstance(filter, (CiCount, CiSum)):
        tiny = 2.0**-18 if isinstance(filter, CiSum) else 0.0
        found = filter.candidates(now, T, at_least=v)
        low = v * (1 - filter.error) * (1 - tiny)
        assert least <= set(found)
        assert all(rows.value(key, now, T) > low or v <= 0 for key in found)
        found = filter.candidates(now, T, at_most=v)
        high = v * (1 + filter.error_at_most) * (1 + tiny)
        assert most <= set(found)
        assert all(rows.value(key, now, T) <= high or v == 0 for key in found)
        assert rows.passing(now, T, v, 2 * v) <= set(filter.candidates(now, T, between=(v, 2 * v)))


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@settings(max_examples=EXAMPLES)
@given(stream=bursts(WEIGHTS), in_batches=st.booleans())
def test_sums(p: int, stream: Any, in_batches: bool) -> None:
    filter, rows = CiSum(LONGEST, per_size=p), Rows(CiSum)
    half = len(stream) // 2
    now = replay(filter, rows, stream[:half], in_batches)
    for v in (0.1, 1, 3.5, 1000):
        filter.lookup(now, LONGEST, at_least=v)
        filter.lookup(now, LONGEST, at_most=v)
    now = replay_from(filter, rows, now, stream[half:], in_batches)
    filter.check_invariants()
    assert set(filter.keys()) == rows.known(now)
    for T in windows(rows, now):
        for key in rows.known(now):
            assert filter.value(key, now, T) == rows.value(key, now, T)
        wanted = {1.0, 1e300} | {rows.value(key, now, T) for key in rows.known(now)}
        for v in sorted(wanted):
            exactly = all(exact_sum_is(rows, key, now, T) for key in rows.known(now))
            check(filter, rows, now, T, v, exact=exactly)


def exact_sum_is(rows: Rows, key: Any, now: int, T: int) -> bool:
    """Whether the sum is a float: the oracle compares rounded ones, the filter does not round."""
    from fractions import Fraction

    window = [Fraction(x) for k, at, x in rows.rows if k == key and now - T < at <= now]
    return float(sum(window)) == sum(window)


@pytest.mark.parametrize("kind", [CiMax, CiMin])
@settings(max_examples=2 * EXAMPLES)
@given(stream=bursts(NUMBERS), in_batches=st.booleans(), low_first=st.booleans())
def test_extremes(kind: type[Filter], stream: Any, in_batches: bool, low_first: bool) -> None:
    filter, rows = kind(LONGEST), Rows(kind)
    half = len(stream) // 2
    now = replay(filter, rows, stream[:half], in_batches)
    if low_first:
        filter.lookup(now, LONGEST, at_most=1)
        filter.lookup(now, LONGEST, at_least=1)
    now = replay_from(filter, rows, now, stream[half:], in_batches)
    filter.check_invariants()
    assert set(filter.keys()) == rows.known(now)
    for T in windows(rows, now):
        for key in rows.known(now):
            assert filter.value(key, now, T) == rows.value(key, now, T)
        for v in {x for _, _, x in rows.rows} | {0.5}:
            check(filter, rows, now, T, v)


@pytest.mark.parametrize("kind", [CiCount, CiSum, CiMax, CiMin])
@pytest.mark.parametrize("seed", range(3))
def test_long_streams(kind: type[Filter], seed: int) -> None:
    """Thousands of rows of skewed keys: rings and trees grow, wrap, shrink; slots come again."""
    rng = np.random.default_rng(seed)
    n = 6000
    keys = (rng.pareto(0.9, n) * 3).astype(np.int64) % 400
    at = np.cumsum(rng.integers(0, 2, n) * rng.integers(0, 3, n) + (rng.random(n) < 0.001) * 500)
    values = rng.integers(0, 50, n).astype(np.float64) if seed else np.round(rng.random(n) * 8, 3)
    filter: Any = kind(300)
    for low in range(0, n, 1500):
        part = slice(low, low + 1500)
        columns = [keys[part]] if kind is CiCount else [keys[part], values[part]]
        filter.insert_many(*columns, at[part])
        filter.check_invariants()
        now = int(at[part][-1])
        for T in (5, 60, 300):
            inside = (at[: low + 1500] > now - T) & (at[: low + 1500] <= now)
            kept = at[: low + 1500] > now - 300
            found: dict[int, Any] = {}
            for key in np.unique(keys[: low + 1500][kept]).tolist():
                mine = values[: low + 1500][inside & (keys[: low + 1500] == key)]
                found[key] = (
                    len(mine)
                    if kind is CiCount
                    else math.fsum(mine)
                    if kind is CiSum
                    else (mine.max() if kind is CiMax else mine.min())
                    if len(mine)
                    else None
                )
            for v in (1, 2, 7, 30, 49, 200):
                least = {k for k, x in found.items() if x is not None and x >= v}
                most = {k for k, x in found.items() if x is not None and x <= v}
                assert set(filter.lookup(now, T, at_least=v)) == least
                assert set(filter.lookup(now, T, at_most=v)) == most
                assert set(filter.lookup(now, T, between=(v, 3 * v))) == {
                    k for k, x in found.items() if x is not None and v <= x <= 3 * v
                }
            for key, x in list(found.items())[:20]:
                assert filter.value(key, now, T) == x
    again: Any = kind.from_bytes(filter.to_bytes())
    again.check_invariants()
    assert again.keys() == filter.keys()
    for T in (5, 300):
        for v in (1, 7, 30):
            assert again.lookup(now, T, at_least=v) == filter.lookup(now, T, at_least=v)
            assert again.lookup(now, T, at_most=v) == filter.lookup(now, T, at_most=v)
            assert again.candidates(now, T, at_most=v) == filter.candidates(now, T, at_most=v) or (
                kind is CiSum  # where its levels stand depends on when they were asked for
            )


# --- exact sums of floats -------------------------------------------------------------------------


def test_sums_are_compared_exactly() -> None:
    """0.1 ten times is more than 1, although added up in floats it is less."""
    filter = CiSum(100)
    filter.insert_many(["a"] * 10, [0.1] * 10, range(10))
    assert filter.lookup(9, 100, at_least=1) == ["a"]
    assert filter.lookup(9, 100, at_most=1) == []
    filter.insert_many(["b"] * 3, [1e15, 2.0**-60, 1.0], [9, 9, 10])
    assert filter.lookup(10, 100, at_least=1e15 + 1) == ["b"]
    assert filter.lookup(10, 100, between=(1e15 + 1, 1e15 + 1)) == []  # 2**-60 too much
    assert filter.lookup(10, 1, between=(1, 1)) == ["b"]


def test_a_huge_value_leaves_no_trace() -> None:
    rng = random.Random(3)
    filter = CiSum(50, per_size=3)
    rows: list[tuple[int, float]] = []
    for at in range(400):
        x = 2.0**800 if at == 100 else rng.choice([0.1, 0.7, 3.0, 2.0**-80])
        rows.append((at, x))
        filter.insert("a", x, at=at)
        filter.insert("b", 1, at=at)
        window = [x for t, x in rows if t > at - 50]
        total = math.fsum(window)
        assert filter.value("a", at, 50) == total
        assert "a" in filter.candidates(at, 50, at_least=total)
        for v in (total * 0.999, total * 1.001):
            assert ("a" in filter.lookup(at, 50, at_least=v)) == (total >= v)
            assert ("a" in filter.lookup(at, 50, at_most=v)) == (total <= v)
    filter.check_invariants()


# --- the paper's bounds, counted ------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 5])
def test_count_moves_and_space(p: int) -> None:
    """2·p moves a row amortised; p·(1 + log2(N / p)) times and one a key without its rows."""
    n = 5000
    filter = CiCount(10 * n, per_size=p, exact=False)
    filter.insert("a", at=0)
    for v in range(1, n, 3):
        filter.candidates(0, 1, at_least=v)
    moved = filter.index_moves()
    filter.insert_many(["a"] * n, np.arange(n))
    assert filter.index_moves() - moved <= 2 * p * n
    assert filter.stored_timestamps() <= p * (1 + math.log2(n / p + 1)) + 1
    assert filter.bytes() < 100_000
    assert filter.candidates(n - 1, 10, at_least=1) == ["a"]


def test_sum_moves() -> None:
    """The levels of a size move when at least that weight has come: a factor of log2 at most."""
    rng = np.random.default_rng(1)
    n, p, most = 3000, 4, 1000
    filter = CiSum(10 * n, per_size=p)
    filter.insert("a", 1, at=0)
    for v in np.unique(np.geomspace(1, 1e6, 300).round(2)):
        filter.candidates(0, 1, at_least=float(v))
    moved = filter.index_moves()
    values = rng.integers(1, most + 1, n)
    filter.insert_many(["a"] * n, values, np.arange(n))
    total = int(values.sum())
    sizes = {size for (size, _), _ in filter.indexed_levels()}
    bound = sum(p * min(n, total / 2.0**size * 1.00001) for size in sizes)
    assert filter.index_moves() - moved <= bound
    assert bound <= p * n * (2 + len([s for s in sizes if 2.0**s <= most]))


def test_extreme_moves_and_space() -> None:
    """At most 2·log2 N heaps a row; as many points as staircases have, and O(N) words."""
    rng = np.random.default_rng(1)
    n = 20_000
    filter = CiMax(10 * n)
    keys, at = rng.integers(0, 500, n), np.arange(n)
    filter.insert_many(keys, rng.random(n), at)
    assert filter.index_moves() <= 2 * math.log2(n) * n
    assert filter.stored_timestamps() <= 500 * 12  # random: about ln(n / 500) each
    assert filter.bytes() < 256 * n
    rising = CiMax(10 * n)
    rising.insert_many(keys, np.arange(n), at)
    assert rising.stored_timestamps() == 500
    for _ in range(3):
        assert len(rising.lookup(n - 1, n, at_least=0)) == 500
        assert rising.lookup(n - 1, n, at_least=n - 1) == [int(keys[-1])]
    rising.check_invariants()


def test_only_doubtful_keys_are_checked() -> None:
    filter = CiCount(1000, per_size=8)
    for key in range(100):
        filter.insert_many([key] * (key + 1), [0] * (key + 1))
    told = filter.explain(0, 1, at_least=50)
    assert told.answered == 51
    assert told.proven + told.checked == told.candidates < 60
    assert told.checked < 20
    assert filter.explain(0, 1, at_least=2).checked == 0  # levels of size 1 are exact


def test_levels_are_indexed_when_asked_for() -> None:
    for kind in (CiCount, CiSum):
        filter: Any = kind(100, per_size=3)
        rows = [["a", "b", "a"], [1, 1, 1], [1, 1, 2]]
        filter.insert_many(*(rows[::2] if kind is CiCount else rows))
        assert filter.indexed_levels() == []
        assert filter.index_moves() == 0
        assert filter.lookup(2, 5, at_least=2) == ["a"]
        used = filter.indexed_levels()
        assert used
        filter.forget_levels()
        assert filter.indexed_levels() == []
        filter.insert(*(["b", 3] if kind is CiCount else ["b", 1, 3]))
        assert filter.lookup(3, 5, at_least=2) == ["a", "b"]
        assert filter.indexed_levels() == used
        assert filter.lookup(3, 5, at_least=-math.inf) == ["a", "b"]
        assert filter.lookup(3, 5, at_least=math.inf) == []
        assert filter.lookup(3, 5, at_most=math.inf) == ["a", "b"]
        filter.check_invariants()


def test_precision() -> None:
    assert [error_at_least(p) for p in (1, 2, 3, 4)] == [0.75, 0.5, 0.4, 1 / 3]
    assert [error_at_most(p) for p in (1, 2, 4)] == [3.0, 1.0, 0.5]
    for epsilon in (3, 1, 0.5, 0.33, 0.1, 0.01):
        p = levels_for(epsilon)
        assert max(error_at_least(p), error_at_most(p)) <= epsilon
        assert p == 1 or error_at_most(p - 1) > epsilon
    assert CiCount(10, epsilon=0.1).per_size == 20
    for wrong in (0, -1, math.inf, 1e-9, "x"):
        with pytest.raises(BadSpecification):
            CiCount(10, epsilon=wrong)  # type: ignore[arg-type]


# --- keys, times, slots ---------------------------------------------------------------------------


def test_idle_keys_leave_and_slots_are_used_again() -> None:
    filter = CiCount(10)
    filter.lookup(0, 1, at_least=1)
    for key in range(200):
        filter.insert(key, at=0)
    filter.lookup(0, 5, at_least=2)
    filter.lookup(0, 5, at_most=2)
    assert len(filter) == 200
    filter.insert("new", at=9)
    assert len(filter) == 201
    assert (
        filter.lookup(10, 10, at_most=0) == []
    )  # at 10 the rows at 0 are out, all those keys idle
    filter.insert("newer", at=10)
    assert filter.keys() in (["new", "newer"], ["newer", "new"])
    assert 7 not in filter
    assert "new" in filter
    assert filter.value(7, 10, 5) == 0
    before = filter.bytes()
    for at in range(11, 500):
        for key in range(20):
            filter.insert((at, key), at=at)
    assert len(filter) == 200
    assert filter.bytes() < 3 * before
    filter.check_invariants()
    assert filter.drop_idle(1000) == 200
    assert len(filter) == 0
    assert filter.lookup(1000, 10, at_most=5) == []
    with pytest.raises(OutOfOrder):
        filter.insert("late", at=999)


def test_a_key_goes_idle_and_comes_back_within_one_batch() -> None:
    for kind in (CiCount, CiSum, CiMax):
        filter: Any = kind(10)
        columns = [["a", "b", "a"], [3, 4, 5], [0, 50, 100]]
        filter.insert_many(*(columns[::2] if kind is CiCount else columns))
        assert filter.keys() == ["a"]
        filter.check_invariants()
        assert filter.value("a", 100, 10) == (1 if kind is CiCount else 5)
        filter.lookup(100, 10, at_least=1)
        filter.insert(*(["c", 150] if kind is CiCount else ["c", 1, 150]))
        filter.check_invariants()
        assert filter.keys() == ["c"]


def test_kinds_of_keys_and_times() -> None:
    noon = datetime(2024, 3, 1, 12)
    at = [noon + timedelta(minutes=m) for m in range(6)]
    keys = ["a", None, ("t", 1), math.nan, float("nan"), -0.0]
    filter = CiCount("1h", per_size=2)
    filter.insert_many(keys, at)
    assert len(filter) == 5
    assert filter.value(math.nan, at[-1], "1h") == 2
    assert filter.value(0.0, at[-1], timedelta(minutes=1)) == 1
    assert filter.lookup(at[-1], "2m", at_least=1) == [filter.keys()[3], 0.0]
    again = CiCount.from_bytes(filter.to_bytes())
    assert again.lookup(at[-1], "1h", at_least=1)[:3] == ["a", None, ("t", 1)]
    again.insert("a", at=at[-1])
    with pytest.raises(BadSpecification, match="longer than longest='1h'"):
        filter.lookup(at[-1], "2h", at_least=1)
    with pytest.raises(BadValue):
        filter.lookup(7, "1h", at_least=1)
    stamps = np.array(at, "datetime64[us]")
    arrow = CiCount("1h")
    arrow.insert_many(pa.array(["x", "y", None, "x", "x", "y"]), pa.array(at, pa.timestamp("us")))
    arrow.insert_many(np.array(["x"]), stamps[-1:])
    assert arrow.lookup(stamps[-1], "1h", at_least=2) == ["x", "y"]
    assert arrow.lookup(at[-1], "1h", at_least=3) == ["x"]
    floats = CiCount("10s", unit="s")
    floats.insert(1, at=0.5)
    assert floats.lookup(1.5, "2s", at_least=1) == [1]
    sums = CiSum(10)
    sums.insert_many(np.array([1, 2, 1]), pa.array([1, None, 3]), pa.array([1, 2, 3]))
    assert (sums.value(1, 3, 5), sums.value(2, 3, 5), sums.keys()) == (4, 0, [1])
    sums.insert(7, None, at=4)
    assert (sums.keys(), isinstance(sums.value(1, 4, 5), int)) == ([1], True)


def test_extremes_of_odd_values() -> None:
    high, low = CiMax(10), CiMin(10)
    for filter in (high, low):
        filter.insert_many(["a", "b", "c", "d"], [math.nan, math.inf, -0.0, None], [1, 1, 1, 1])
        filter.check_invariants()
    assert high.lookup(1, 5, at_least=math.inf) == ["a", "b"]  # NaN is above every number
    assert low.lookup(1, 5, at_most=0) == ["c"]
    assert high.lookup(1, 5, between=(0, math.inf)) == ["b", "c"]
    assert math.isnan(high.value("a", 1, 5))
    assert math.copysign(1, high.value("c", 1, 5)) == 1
    assert high.value("d", 1, 5) is None
    assert high.value("nobody", 1, 5) is None


def test_many_thresholds() -> None:
    filter = CiSum(100)
    filter.insert_many(["a", "b", "c"], [1, 5, 9], [0, 0, 0])
    assert filter.lookup_many(0, 10, [9, 1, 5, 9]) == [["c"], ["a", "b", "c"], ["b", "c"], ["c"]]
    assert filter.lookup_many(0, 10, [1, 5], side="at_most") == [["a"], ["a", "b"]]
    with pytest.raises(BadSpecification):
        filter.lookup_many(0, 10, [1], side="above")


# --- bytes and errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CiCount, CiSum, CiMax, CiMin])
def test_bytes(kind: type[Filter]) -> None:
    filter: Any = kind("1h")
    assert kind.from_bytes(filter.to_bytes()).lookup(datetime(2024, 1, 1), "1h", at_least=0) == []
    at = [datetime(2024, 1, 1, 0, m) for m in (1, 2, 2, 30)]
    filter.insert_many(*([list("abac")] + ([] if kind is CiCount else [[1, 2, 3.5, 0]]) + [at]))
    data = filter.to_bytes()
    again: Any = kind.from_bytes(data)
    assert again.to_bytes() == data
    assert repr(again) == repr(filter)
    for place in range(0, len(data), 7):
        with pytest.raises(BadBytes):
            kind.from_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
    for wrong in (data[:-9], data + b"x", b"", "text"):
        with pytest.raises(BadBytes):
            kind.from_bytes(wrong)
    other = CiSum if kind is CiCount else CiCount
    with pytest.raises(BadBytes, match="written by something else"):
        other.from_bytes(data)


def test_bytes_that_make_no_filter_are_refused() -> None:
    """A frame that is whole, around rows that no filter can have had."""
    from windrow.aggregates.schema import frame
    from windrow.filters.saved import Saved

    def written(kind: Any, now: Any, names: list[Any], *arrays: Any) -> Any:
        saved = Saved()
        options = {CiCount: (2,), CiSum: (2,)}.get(kind, ())
        for value in (None, 100, None, options, now, len(names), *names):
            saved.value(value)
        for array in arrays:
            if isinstance(array, (list, np.ndarray)):
                saved.array(np.asarray(array))
            else:
                saved.value(array)
        return kind, frame(b"c", kind._fingerprint(), saved.written())

    _, good = written(CiCount, 5, ["a"], [2], [2], [3, 5])
    assert CiCount.from_bytes(good).value("a", 5, 10) == 2
    for kind, bad in (
        written(CiCount, 5, ["a"], [2], [2], [5, 3]),
        written(CiCount, 4, ["a"], [2], [2], [3, 5]),
        written(CiCount, 5, ["a"], [1], [2], [3, 5]),
        written(CiCount, 5, ["a", "a"], [1, 1], [1, 1], [3], [5]),
        written(CiCount, None, ["a"], [2], [2], [3, 5]),
        written(CiCount, 5, ["a"], [2], [-2], [3, 5]),
        written(CiCount, 5, ["a"], [2], [2], [3]),
        written(CiSum, 5, ["a"], False, [1], [5], [-1.0]),
        written(CiSum, 5, ["a"], False, [0], [0], [0.0]),
        written(CiSum, 5, ["a"], False, [0], np.empty(0, np.int64), np.empty(0)),
        written(CiSum, 5, ["a"], False, [2], [5, 4], [1.0, 1.0]),
        written(CiMax, 5, ["a", "b"], False, 2, [0, 1], [5, 4], [0, 0]),
        written(CiMax, 5, ["a"], False, 1, [1], [5], [0]),
        written(CiMax, 5, ["a", "b"], False, 1, [0], [5], [0]),
        written(CiMax, 5, ["a"], False, -1, [0], [5], [0]),
    ):
        with pytest.raises(BadBytes):
            kind.from_bytes(bad)


def test_errors() -> None:
    for wrong in (0, -5, "x", None, True, 1.5):
        with pytest.raises(BadSpecification):
            CiCount(wrong)
    with pytest.raises(BadSpecification, match="not both"):
        CiCount(10, epsilon=0.1, per_size=3)
    for per_size in (0, True, 1.5):
        with pytest.raises(BadSpecification):
            CiCount(10, per_size=per_size)  # type: ignore[arg-type]
    filter = CiCount(10)
    assert filter.lookup(5, 5, at_least=1) == []
    assert filter.value("a", 5, 5) == 0
    assert filter.drop_idle(5) == 0
    filter.insert("a", at=5)
    for threshold in ({}, {"at_least": 1, "at_most": 2}, {"between": 3}, {"at_least": "x"}):
        with pytest.raises(BadSpecification):
            filter.lookup(5, 5, **threshold)
    with pytest.raises(BadSpecification, match="a number"):
        filter.lookup(5, 5, at_least=math.nan)
    for T in (0, -1, 11, "1h"):
        with pytest.raises(BadSpecification):
            filter.lookup(5, T, at_least=1)
    with pytest.raises(Refused, match=r"filters\.PerKey"):
        filter.lookup(4, 5, at_least=1)
    with pytest.raises(OutOfOrder, match="came after one at 5"):
        filter.insert("a", at=4)
    with pytest.raises(OutOfOrder, match="row 1"):
        filter.insert_many(["a", "b"], [9, 8])
    with pytest.raises(BadSpecification, match="different lengths"):
        filter.insert_many(["a", "b"], [9])
    with pytest.raises(BadValue, match="hashable"):
        filter.insert([1], at=9)
    with pytest.raises(BadValue, match="hashable"):
        filter.insert_many([[1]], at=[9])
    with pytest.raises(BadValue):
        filter.insert("a", at=-(2**63))
    with pytest.raises(BadValue):
        filter.insert("a", at="noon")
    filter.insert_many([], [])
    assert filter.value("a", 5, 5) == 1
    without_rows = CiCount(10, exact=False)
    without_rows.insert("a", at=1)
    with pytest.raises(Refused, match="exact=True"):
        without_rows.value("a", 1, 1)
    sums = CiSum(10)
    for value in (-1, math.nan, math.inf, 2.0**901, -0.5):
        with pytest.raises(BadValue, match=r"row 0.*filters\.PerKey"):
            sums.insert("a", value, at=1)
    with pytest.raises(BadValue, match="row 1"):
        sums.insert_many(["a", "b"], [1, 2**53 + 1], [1, 1])
    with pytest.raises(BadValue, match="not a number"):
        sums.insert_many(["a"], ["x"], [1])
    with pytest.raises(BadValue, match="compares numbers"):
        sums.insert_many(["a"], pa.array(["x"]), [1])
    assert len(sums) == 0
    sums.insert("a", 2**60, at=1)
    with pytest.raises(BadSpecification, match="no exact float"):
        sums.lookup(1, 1, at_least=2**60 + 1)
    assert sums.lookup(1, 1, at_least=10**400) == []
    assert sums.lookup(1, 1, at_most=10**400) == ["a"]
    assert sums.lookup(1, 1, at_most=-1) == []
    assert sums.lookup(1, 1, at_least=1e-320) == ["a"]
    assert sums.lookup(1, 1, at_most=1e-320) == []
    assert isinstance(filter_for(wr.Mean(), longest=10), PerKey)
    assert isinstance(filter_for(wr.Max(), longest=10, historical=True), PerKey)
    assert isinstance(filter_for(wr.Count, longest=10), CiCount)


def test_broken_invariants_are_found() -> None:
    filter = CiCount(100, per_size=1)
    filter.insert_many([1, 2, 1, 1, 2], [1, 2, 3, 4, 5])
    filter.lookup(5, 5, at_least=2)
    filter.check_invariants()
    filter._rows[filter._keys[0, 1]] += 9
    with pytest.raises(InvariantBroken):
        filter.check_invariants()


@examples(40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.sampled_from([0, 1, 3, 20])),
        max_size=50,
    ),
    st.integers(1, 30),
    st.integers(0, 12),
    st.sampled_from([wr.Mean(), wr.Min(), wr.Median(), wr.Count(), wr.Sum()]),
)
def test_one_shared_window_for_each_key(steps: Any, T: int, ending: int, aggregate: Any) -> None:
    keyed = PerKey(aggregate, longest=50)
    rows: list[tuple[str, int, int]] = []
    now = 0
    for key, value, step in steps:
        now += step
        keyed.insert(key, value, now)
        rows.append((key, value, now))
    expected = {}
    for key in {row[0] for row in rows}:
        window = wr.windows.Recalc(aggregate)
        for name, value, at in rows:
            if name == key and now - ending - T < at <= now - ending:
                window.insert(value)
        expected[key] = window.query()
        assert keyed.value(key, now, T, ending) == expected[key]
    asked: list[dict[str, Any]] = [{"at_least": 3}, {"at_most": 4}, {"between": (2, 5)}]
    for bounds in asked:
        low, high = bounds.get("between", (bounds.get("at_least", -9), bounds.get("at_most", 999)))
        passing = {k for k, v in expected.items() if v is not None and low <= v <= high}
        found = keyed.lookup(now, T, ending=ending, **bounds) if rows else []
        assert set(found) == {k for k in passing if k in keyed}
    if rows:
        assert "for each key" in str(keyed.explain(now, T, at_least=3))
    with pytest.raises(BadSpecification, match="reaches back further"):
        keyed.lookup(now, 51, at_least=1)
    if rows:
        with pytest.raises(OutOfOrder, match="Sort the rows"):
            keyed.insert("a", 1, rows[-1][2] - 1)


def test_a_question_about_later_forgets_no_key() -> None:
    keyed = PerKey(wr.Sum(), longest=60)
    keyed.insert("a", 5, at=1)
    assert keyed.lookup(100, 60, at_least=1) == []
    assert keyed.lookup(2, 60, at_least=1) == ["a"]
    keyed.insert("a", 5, at=3)
    assert keyed.value("a", 3, 60) == 10
    assert keyed.lookup_many(3, 60, [10, 11]) == [["a"], []]
    assert keyed.drop_idle(63) == 1
    keyed.insert("b", 1, at=70)
    keyed.insert("c", 1, at=130)
    assert keyed.keys() == ["c"]


def test_batches_of_arrow_key_by_key() -> None:
    keyed = PerKey(wr.Mean(), longest=60)
    keyed.insert_many(pa.array(["a", "b"]), pa.array([1, None]), pa.array([1, 2]))
    assert keyed.keys() == ["a", "b"]
    assert keyed.lookup(2, 60, at_least=1) == ["a"]
