"""Sliding equals a brute-force reading of what the window means, for every policy."""

# mypy: disable-error-code="arg-type"

import contextlib
import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import BadSpecification, BadValue, OutOfOrder, SumOverflow
from windrow.slides import as_window
from windrow.testing import TIMED_CASES

Closed = Literal["right", "left", "both", "neither"]
CLOSED: list[Closed] = ["right", "left", "both", "neither"]


def inside(time: int, now: int, length: int, closed: str, ending: int) -> bool:
    start, end = now - ending - length, now - ending
    after_start = time >= start if closed in ("left", "both") else time > start
    before_end = time <= end if closed in ("right", "both") else time < end
    return after_start and before_end


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-9, 9)), max_size=40),
    st.integers(1, 12),
    st.sampled_from(CLOSED),
    st.integers(0, 9),
    st.sampled_from(["auto", "DabaLite", "Recalc", "FlatFit"]),
)
def test_time_windows(
    steps: list[tuple[int, int]], length: int, closed: Closed, ending: int, algorithm: str
) -> None:
    window = wr.Sliding(wr.time(length, closed=closed, ending=ending), wr.Concat(), algorithm)
    rows: list[tuple[int, str]] = []
    now = 0
    for gap, value in steps:
        now += gap
        rows.append((now, f"{value};"))
        answer = window.insert(f"{value};", at=now)
        expected = [(t, v) for t, v in rows if inside(t, now, length, closed, ending)]
        assert answer == ("".join(v for _, v in expected) or None)
        assert window.query() == answer
        assert len(window) == len(expected)
        assert (window.oldest, window.youngest) == (
            (expected[0][0], expected[-1][0]) if expected else (None, None)
        )
    for gap in (0, 1, 3, 50):
        now += gap
        answer = window.advance(now)
        expected = [(t, v) for t, v in rows if inside(t, now, length, closed, ending)]
        assert answer == ("".join(v for _, v in expected) or None)


@given(
    st.lists(st.integers(-9, 9), max_size=40),
    st.integers(1, 8),
    st.integers(0, 5),
    st.booleans(),
)
def test_row_windows(values: list[int], n: int, ending: int, timed: bool) -> None:
    window = wr.Sliding(wr.rows(n, ending=ending), wr.Sum(), latency="worst_case")
    for i, value in enumerate(values):
        answer = window.insert(value, at=i // 2) if timed else window.insert(value)
        end = i + 1 - ending
        expected = values[max(0, end - n) : max(0, end)]
        assert answer == (sum(expected) if expected else None)
        assert len(window) == len(expected)
        assert window.waiting == min(ending, i + 1)
        if not timed:
            assert window.oldest is None


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=40),
    st.integers(0, 8),
    st.integers(1, 10),
)
def test_lateness(rows: list[tuple[int, int]], lateness: int, length: int) -> None:
    """Rows enter in order of time, ties in order of arrival; what is too late is refused whole."""
    window = wr.Sliding(wr.time(length), wr.Concat(), lateness=lateness)
    accepted: list[tuple[int, str]] = []
    seen = -1
    for time, value in rows:
        before = (window.query(), len(window), window.waiting)
        if time < seen - lateness:
            with pytest.raises(OutOfOrder, match=f"at {time} came after one at {seen}"):
                window.insert(str(value), at=time)
            assert (window.query(), len(window), window.waiting) == before
            continue
        answer = window.insert(str(value), at=time)
        accepted.append((time, str(value)))
        seen = max(seen, time)
        released = sorted((r for r in accepted if r[0] < seen - lateness), key=lambda r: r[0])
        last = released[-1][0] if released else 0
        expected = [v for t, v in released if last - length < t <= last]
        assert answer == ("".join(expected) or None)
        assert window.waiting == len(accepted) - len(released)
    released = sorted(accepted, key=lambda r: r[0])
    last = released[-1][0] if released else 0
    expected = [v for t, v in released if last - length < t <= last]
    assert window.drain() == ("".join(expected) or None)
    assert window.waiting == 0


def test_after_draining_nothing_may_come_before() -> None:
    window = wr.Sliding(wr.time(10), wr.Sum(), lateness=5)
    window.insert(1, at=100)
    assert window.drain() == 1
    with pytest.raises(OutOfOrder):
        window.insert(1, at=99)
    window.insert(2, at=100)
    assert window.drain() == 3


def test_advance_with_lateness_releases() -> None:
    window = wr.Sliding(wr.time(10), wr.Sum(), lateness=5)
    assert window.insert(1, at=100) is None
    assert window.advance(104) is None
    assert window.advance(106) == 1
    assert window.advance(115) == 1
    assert window.advance(116) is None  # released through 110: the row at 100 is 10 old


def test_out_of_order_shows_both_times_and_loses_nothing() -> None:
    window = wr.Sliding("1h", wr.Max())
    window.insert(5, at=datetime(2024, 1, 1, 12))
    with pytest.raises(
        OutOfOrder, match=r"at 2024-01-01 11:59:59 came after one at 2024-01-01 12:00:00.*lateness"
    ):
        window.insert(9, at=datetime(2024, 1, 1, 11, 59, 59))
    assert window.query() == 5
    assert len(window) == 1
    assert window.insert(4, at=datetime(2024, 1, 1, 12)) == 5


def test_a_bad_value_loses_nothing() -> None:
    window = wr.Sliding(wr.time(10), wr.Sum())
    window.insert(5, at=100)
    with pytest.raises(BadValue, match="is a str"):
        window.insert("x", at=200)
    assert window.query() == 5
    assert window.insert(1, at=105) == 6  # time did not move either


@pytest.mark.parametrize(
    ("start", "step", "length"),
    [
        (1_700_000_000, 1800, 3600),
        (datetime(2024, 3, 31), timedelta(minutes=30), "1h"),
        (datetime(2024, 3, 31, tzinfo=UTC), timedelta(minutes=30), timedelta(hours=1)),
        (date(2024, 2, 28), timedelta(days=1), "2 days"),
        (np.datetime64("2024-01-01T00", "ns"), np.timedelta64(30, "m"), np.timedelta64(1, "h")),
        (np.datetime64("2024-01-01", "D"), np.timedelta64(1, "D"), "2d"),
        (np.int64(5), np.int64(1), 2),
    ],
)
def test_kinds_of_time(start: Any, step: Any, length: Any) -> None:
    window = wr.Sliding(wr.time(length), wr.Count())
    times = [start, start + step, start + 2 * step, start + 3 * step]
    assert [window.insert(0, at=t) for t in times] == [1, 2, 2, 2]
    assert window.oldest == times[2]
    assert window.youngest == times[3]


def test_float_times_need_a_unit() -> None:
    with pytest.raises(BadSpecification, match="unit="):
        wr.Sliding("1s", wr.Count()).insert(0, at=0.5)
    window = wr.Sliding("1s", wr.Count(), unit="s")
    assert [window.insert(0, at=1.7e9 + t) for t in (0.0, 0.5, 1.0, 1.25)] == [1, 2, 2, 3]
    for wrong in (math.nan, math.inf, 1e-10):
        with pytest.raises(BadValue):
            window.insert(0, at=wrong)
    with pytest.raises(BadSpecification, match="unit='x'"):
        wr.Sliding("1s", wr.Count(), unit="x").insert(0, at=0.5)


def test_zones_are_one_time() -> None:
    window = wr.Sliding("1h", wr.Count())
    window.insert(0, at=datetime(2024, 1, 1, 12, tzinfo=UTC))
    assert (
        window.insert(0, at=datetime(2024, 1, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))) == 2
    )
    with pytest.raises(BadValue, match="not a time like the ones before"):
        window.insert(0, at=datetime(2024, 1, 1, 13))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wr.time("7 dayz"), "'7 dayz'.*'7 dayz'.*units are ns, us, ms"),
        (lambda: wr.time("1 month"), "say how many days"),
        (lambda: wr.time("2y"), "say how many days"),
        (lambda: wr.time("h"), "cannot read 'h'"),
        (lambda: wr.time(""), "empty"),
        (lambda: wr.time("-1h"), "cannot read '-1h'"),
        (lambda: wr.time(0), "must be positive"),
        (lambda: wr.time(-5), "must be positive"),
        (lambda: wr.time(1.5), "not a length of time"),
        (lambda: wr.time(True), "not a length of time"),
        (lambda: wr.time(None), "not a length of time"),
        (lambda: wr.time("1h", closed="middle"), "closed is one of"),
        (lambda: wr.time("1h", ending=5), "must both have a unit"),
        (lambda: wr.time(5, ending=-1), "must not be negative"),
        (lambda: wr.time(np.timedelta64(1, "M")), "no fixed length"),
        (lambda: wr.rows(0), "n is a whole number from 1 on, not 0"),
        (lambda: wr.rows("1h"), r'write time\("1h"\)'),
        (lambda: wr.rows(2.0), "not 2.0"),
        (lambda: wr.rows(5, ending=-1), "ending is a whole number from 0 on"),
        (lambda: wr.Sliding(5, wr.Max()), "is not a window"),
        (lambda: wr.Sliding("1h", "max"), "expected an aggregate"),
        (lambda: wr.Sliding("1h", wr.Max(), lateness=-1), "must not be negative"),
        (lambda: wr.Sliding("1h", wr.Max()).insert(1), r"insert\(value, at=...\)"),
        (lambda: wr.Sliding(wr.rows(2), wr.Max(), lateness=1).insert(1), "needs the row's time"),
        (lambda: wr.Sliding(wr.rows(2), wr.Max()).advance(1), "does not slide with time"),
        (lambda: wr.Sliding("1h", wr.Max()).insert(1, at=5), "times are integers"),
        (
            lambda: wr.Sliding(wr.time(5), wr.Max()).insert(1, at=datetime(2024, 1, 1)),
            "needs a unit",
        ),
        (lambda: wr.Sliding("1h", wr.Max()).insert(1, at=date(2024, 1, 1)), "finer unit"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(BadSpecification, match=message):
        make()


def test_not_a_time() -> None:
    with pytest.raises(BadValue, match=r"'noon' \(str\) is not a time"):
        wr.Sliding("1h", wr.Max()).insert(1, at="noon")
    window = wr.Sliding(wr.time(5), wr.Max())
    window.insert(1, at=3)
    with pytest.raises(BadValue, match=r"2.5 \(float\) is not a time like .* integers"):
        window.insert(1, at=2.5)
    with pytest.raises(BadSpecification):
        window.insert(1)
    untimed = wr.Sliding(wr.rows(5), wr.Max())
    untimed.insert(1)
    with pytest.raises(BadSpecification, match="with times or all without"):
        untimed.insert(1, at=3)


def test_a_failed_first_time_does_not_decide_the_clock() -> None:
    window = wr.Sliding("1h", wr.Max())
    with pytest.raises(BadSpecification):
        window.insert(1, at=5)
    assert window.insert(1, at=datetime(2024, 1, 1)) == 1


def test_durations() -> None:
    for text, label in (
        ("90s", "90s"),
        ("1 hour", "1h"),
        ("1h30m", "1h30m"),
        ("2 Days", "2d"),
        ("1 week", "1w"),
        ("250 ms", "250ms"),
        (timedelta(hours=36), "36h"),
        (np.timedelta64(90, "s"), "90s"),
        (7, "7"),
    ):
        assert wr.time(text).label == label
    assert wr.time("1h", closed="both", ending="5m").label == "1h_ending_5m_both"
    assert wr.rows(100, ending=5).label == "100rows_ending_5"
    assert as_window("1h") == wr.time("1h")


def test_planner_and_explain() -> None:
    for aggregate, latency, expected in (
        (wr.Sum(), None, "SubtractOnEvict"),
        (wr.Count(), "worst_case", "SubtractOnEvict"),
        (wr.Max(), None, "MonotoneDeque"),
        (wr.Max(), "worst_case", "DabaLite"),
        (wr.MaxCount(), None, "TwoStacksLite"),
        (wr.MaxCount(), "worst_case", "DabaLite"),
        (wr.Several(wr.Sum(), wr.Max()), None, "TwoStacksLite"),
    ):
        window = wr.Sliding("1h", aggregate, latency=latency)
        assert type(window.window).__name__ == expected
        assert "combines: insert" in window.explain()
    forced = wr.Sliding("1h", wr.Max(), algorithm=wr.windows.FlatFat)
    assert "asked for" in forced.explain()
    assert "FlatFat" in repr(forced)


def test_a_long_gap_is_evicted_at_once() -> None:
    window = wr.Sliding(wr.time(1000), wr.Max(), algorithm="DabaLite")
    generator = random.Random(3)
    for i in range(5000):
        window.insert(generator.random(), at=i)
    assert len(window) == 1000
    assert window.insert(0.5, at=10**9) == 0.5
    assert len(window) == 1


def test_overflow_names_column_and_row_and_passes() -> None:
    window = wr.Sliding(wr.rows(2), wr.Sum("clicks"))
    window.insert(2**63 - 1, at=1)
    with pytest.raises(SumOverflow, match=r"Sum\('clicks'\)") as caught:
        window.insert(1, at=2)
    assert "In the window of row 1 (at 2)" in caught.value.__notes__[0]
    assert window.insert(5, at=3) == 6


def test_times_that_are_missing_or_too_fine() -> None:
    for nothing in (np.datetime64("NaT", "ns"), pd.NaT):
        with pytest.raises(BadValue, match="has no time"):
            wr.Sliding("1h", wr.Count()).insert(1, at=nothing)
        window = wr.Sliding("1h", wr.Count())
        window.insert(1, at=pd.Timestamp("2024-01-01"))
        with pytest.raises(BadValue, match="has no time"):
            window.insert(1, at=nothing)
    with pytest.raises(BadValue, match="finer than microseconds"):
        wr.Sliding("1us", wr.Count()).insert(0, at=pd.Timestamp("2024-01-01 00:00:00.000000999"))
    assert wr.time(pd.Timedelta("1500ns")).label == "1500ns"
    window = wr.Sliding("1h", wr.Count())
    window.insert(0, at=np.datetime64("2024-01-01", "ns"))
    with pytest.raises(BadValue, match="out of range"):
        window.insert(0, at=np.datetime64("2500-01-01", "D"))
    for wrong in (True, "3", 10**30):
        window = wr.Sliding(wr.time(5), wr.Count())
        window.insert(0, at=1)
        with pytest.raises(BadValue):
            window.insert(0, at=wrong)


def test_integers_may_have_a_unit() -> None:
    window = wr.Sliding("2s", wr.Count(), unit="s")
    assert [window.insert(0, at=t) for t in (0, 0.5, 2, 3)] == [1, 2, 2, 2]
    with pytest.raises(BadValue, match=r"round\(t, 9\)"):
        window.insert(0, at=3.0 + 1e-15 * 444)


def test_a_single_capital_m_is_not_minutes() -> None:
    with pytest.raises(BadSpecification, match="say how many days"):
        wr.time("5M")


def test_draining_twice_changes_nothing() -> None:
    window = wr.Sliding(wr.time(10), wr.Sum(), lateness=5)
    window.insert(1, at=100)
    assert (window.drain(), window.drain()) == (1, 1)
    with pytest.raises(OutOfOrder, match=r"at 99 came after drain.* up to 100"):
        window.insert(1, at=99)
    window.insert(1, at=101)
    assert window.drain() == 2


def test_a_refused_value_does_not_decide_the_clock() -> None:
    window = wr.Sliding("1h", wr.Sum())
    with pytest.raises(BadValue):
        window.insert("x", at=datetime(2024, 1, 1))
    assert window.insert(1, at=datetime(2024, 1, 1, tzinfo=UTC)) == 1


class Fragile(wr.Aggregate):
    """Adds, and raises at a chosen application of ⊕."""

    _fuse = 0

    def combine(self, a: int, b: int) -> int:
        self._fuse -= 1
        if self._fuse == 0:
            raise RuntimeError("boom")
        return a + b


@given(
    st.sampled_from([wr.time(10), wr.rows(4), wr.rows(3, ending=2), wr.time(6, ending=3)]),
    st.sampled_from(["DabaLite", "Daba", "TwoStacksLite", "FlatFat", "FlatFit"]),
    st.integers(1, 25),
    st.integers(1, 12),
    st.integers(0, 12),
    st.sampled_from([None, 3]),
)
def test_after_a_combine_that_raises_the_window_goes_on(
    policy: Any, algorithm: str, rows: int, fuse: int, gap: int, lateness: int | None
) -> None:
    """The row that failed is not in; every other row is where it belongs."""
    aggregate = Fragile()
    window = wr.Sliding(policy, aggregate, algorithm, lateness=lateness)
    taken = []
    for i in range(rows):
        window.insert(3**i, at=i)
        taken.append((i, 3**i))
    aggregate._fuse = fuse
    now = rows - 1 + gap
    with contextlib.suppress(RuntimeError):
        window.insert(5, at=now)
    aggregate._fuse = 0
    assert len(window) == len(window.window)
    later = now + 1
    for _ in range(4):
        window.insert(7, at=later)
        later += 1
    window.drain()
    plain = window.window
    plain.check_invariants()
    assert plain.query() == window.query()


@given(
    st.sampled_from([wr.time(10), wr.time(4, closed="both"), wr.rows(4), wr.rows(3, within=6)]),
    st.sampled_from(["DabaLite", "Daba", "TwoStacksLite", "FlatFat", "FlatFit", "late"]),
    st.lists(st.tuples(st.integers(-4, 9), st.integers(0, 9)), min_size=1, max_size=25),
)
def test_rows_after_a_combine_that_raises_have_whole_windows(
    policy: Any, algorithm: str, steps: list[tuple[int, int]]
) -> None:
    """Answers are those of the rows that are in; a row that would miss what has left is refused."""
    aggregate = Fragile()
    inserts = algorithm == "late"
    if inserts:
        window = wr.Sliding(policy, aggregate, late="insert", lateness=3)
    else:
        window = wr.Sliding(policy, aggregate, algorithm)
    taken: list[tuple[int, int]] = []
    at = now = 0
    for place, (step, fuse) in enumerate(steps):
        at = max(0, at + step)
        aggregate._fuse = fuse
        try:
            answer = window.insert(3**place, at=at)
        except (RuntimeError, OutOfOrder) as error:
            now = max(now, at) if isinstance(error, RuntimeError) else now
            if (
                len(taken) < window._moving.arrivals
            ):  # the row is in: its answer could not be put together
                taken.append((at, 3**place))
            continue
        finally:
            aggregate._fuse = 0
        taken.append((at, 3**place))
        now = max(now, at)
        rows = sorted(taken)
        timed = isinstance(policy, type(wr.time(1)))
        length: Any = policy.length if timed else policy.within or 10**9
        start = now - length + (policy != wr.time(4, closed="both"))
        rows = [(time, value) for time, value in rows if start <= time <= now]
        rows = rows if timed else rows[-policy.n :]
        assert answer == (sum(value for _, value in rows) or None)


def test_timed_corpus() -> None:
    for case in TIMED_CASES:
        windows: dict[Any, wr.Sliding] = {}
        accepted: dict[Any, list[tuple[int, float | None]]] = {}
        for key, time, value in case.rows:
            window = windows.setdefault(
                key, wr.Sliding(wr.time(10), wr.Sum(), lateness=case.lateness or None)
            )
            try:
                window.insert(value, at=time)
                accepted.setdefault(key, []).append((time, value))
            except OutOfOrder:
                assert case.name == "wholly late"
        for key, window in windows.items():
            rows = sorted(accepted[key], key=lambda row: row[0])
            last = rows[-1][0]
            inside_now = [v for t, v in rows if last - 10 < t <= last and v is not None]
            assert window.drain() == (sum(inside_now) if inside_now else None), case.name


def test_holistic_aggregates_say_that_they_grow() -> None:
    assert "grows with the window" in wr.Sliding("1h", wr.Concat()).explain()
