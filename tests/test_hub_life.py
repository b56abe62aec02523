"""A hub in its life: rows that are refused, queries that come late, copies, bytes and batches."""

import copy
import pickle
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_hub import AGGREGATES, WINDOWS, expected
from windrow.errors import BadSpecification, BadValue
from windrow.shared import BInt, Quantiles, RInt
from windrow.windows.compare import equal


class Touchy(wr.Aggregate):
    """A sum that cannot be thirteen."""

    identity = 0

    @staticmethod
    def combine(a: int, b: int) -> int:
        if a + b == 13:
            raise ArithmeticError("thirteen")
        return a + b


def test_a_combine_that_raises_leaves_no_part_of_a_row() -> None:
    hub = wr.Hub()
    high = hub.register(wr.Max(), wr.rows(3))
    mine = hub.register(Touchy(), wr.rows(3), key="a")
    last = hub.register(wr.Last(), wr.rows(1))
    each = hub.register(wr.Count(), wr.rows(3), key=wr.EACH)
    asked = [high, mine, last, each]
    hub.insert(5, key="a")
    with pytest.raises(ArithmeticError, match="thirteen"):
        hub.insert(8, key="a")
    assert [hub.lookup(q, "a" if q is each else None) for q in asked] == [5, 5, 5, 1]
    hub.insert_many([1, 2, 3], keys="aaa")
    assert [hub.lookup(q, "a" if q is each else None) for q in asked] == [3, 6, 3, 3]


def test_a_row_that_is_refused_decides_nothing() -> None:
    hub = wr.Hub()
    high = hub.register(wr.Max(), wr.rows(3))
    hub.register(wr.Sum(), wr.rows(3), key=wr.EACH)
    with pytest.raises(BadValue, match="adds numbers"):
        hub.insert("a", key=1, at=datetime(2024, 1, 1))
    hub.insert(3, key=1, at=7)  # a number after a text, an integer after a moment
    assert hub.lookup(high) == 3
    alone = BInt(wr.Max(), longest=3)
    with pytest.raises(BadValue, match="is not a time"):
        alone.insert("a", at="noon")
    alone.insert(3, at=7)
    assert alone.query(wr.rows(1)) == 3


def test_a_window_that_does_not_fit_the_times_takes_no_row() -> None:
    for hub in (wr.Hub(idle="1h"), wr.Hub()):
        high = hub.register(wr.Max(), wr.rows(3), key=wr.EACH)
        timed = hub.register(wr.Max(), "1h", key=wr.EACH)
        with pytest.raises(BadSpecification, match="must be an integer"):
            hub.insert(1, key="a", at=5)
        assert hub.lookup(high, "a") is None
        hub.insert(1, key="a", at=datetime(2024, 1, 1))
        assert hub.lookup(timed, "a") == 1
    alone = BInt(wr.Max(), longest="1h")
    with pytest.raises(BadSpecification, match="must be an integer"):
        alone.insert(1, at=5)
    assert len(alone) == 0


def test_parts_that_came_at_different_times_are_not_mixed() -> None:
    hub = wr.Hub()
    hub.register(wr.Sum(), wr.rows(9))
    hub.insert_many([4, 4, 4])
    mean = hub.register(wr.Mean(), wr.rows(9))  # the sum is there already, the number of rows not
    hub.insert(8)
    assert hub.lookup(mean) == 8.0
    assert not hub.complete(mean)


def test_rows_of_keys_that_nobody_asked_about_are_missing() -> None:
    hub = wr.Hub()
    hub.insert(7, key="a", at=0)
    rows = hub.register(wr.Count(), wr.rows(2), key=wr.EACH)
    time = hub.register(wr.Count(), wr.time(10), key="a")
    assert not hub.complete(rows, "a")
    assert not hub.complete(time)
    hub.insert(7, key="a", at=1)
    assert not hub.complete(rows, "a")
    hub.insert(7, key="a", at=10)
    assert hub.complete(rows, "a")
    assert hub.complete(time)
    assert hub.lookup(time) == 2
    # and so are those of a key that was dropped, for a longer window
    short = wr.Hub()
    short.register(wr.Count(), wr.time(3), key=wr.EACH)
    short.insert_many([1, 1], keys="ab", at=[0, 5])
    long = short.register(wr.Count(), wr.time(9), key=wr.EACH)
    assert not short.complete(long, "a")
    assert short.complete(long, "a", now=9)


steps_of = st.lists(
    st.one_of(
        st.tuples(
            st.just("row"), st.sampled_from("abc"), st.sampled_from([0, 1, 9]), st.integers(0, 5)
        ),
        st.tuples(
            st.just("register"),
            st.sampled_from(AGGREGATES),
            st.sampled_from(WINDOWS),
            st.sampled_from([None, "a", wr.EACH]),
        ),
        st.tuples(st.just("drop"), st.integers(0, 7)),
        st.tuples(st.just("advance"), st.sampled_from([0, 1, 30])),
        st.sampled_from([("bytes",), ("deepcopy",), ("pickle",)]),
    ),
    max_size=60,
)


@examples(40)
@given(steps_of)
def test_complete_answers_are_right_whatever_came_before(steps: list[Any]) -> None:
    hub, events, now = wr.Hub(), [], 0
    for step in steps:
        what, queries = step[0], hub.queries
        if what == "row":
            _, key, gap, x = step
            now += gap
            hub.insert({"x": x}, key=key, at=now)
            events.append((key, now, {"x": x}))
        elif what == "register":
            hub.register(*step[1:])
        elif what == "drop":
            if queries:
                hub.drop(queries[step[1] % len(queries)])
        elif what == "advance":
            now += step[1] if events else 0
            hub.advance(now)
        elif what == "bytes":
            hub = wr.Hub.from_bytes(hub.to_bytes())
        else:
            hub = copy.deepcopy(hub) if what == "deepcopy" else pickle.loads(pickle.dumps(hub))
        for query in hub.queries if events else []:
            for key in "abcd" if query.key is wr.EACH else [None]:
                if hub.complete(query, key):
                    about = key if query.key is wr.EACH else query.key
                    assert equal(hub.lookup(query, key), expected(query, about, events, now))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda hub: pickle.loads(pickle.dumps(hub))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    hub = wr.Hub()
    high = hub.register(wr.Max(), wr.rows(2))
    other = copied(hub)
    other.insert("a")
    hub.insert(3)
    assert (hub.lookup(high), other.lookup(other.queries[0])) == (3, "a")
    rows = RInt(wr.Several(wr.Sum().alias("s")).parts[0], longest=3)
    rows.insert_many([1, 2])
    again = copied(rows)
    again.insert(4)
    assert (rows.lookup(0, 1), again.lookup(0, 2)) == (3, 7)


def test_bytes_know_of_time_that_passed_and_of_rows_without_times() -> None:
    hub = wr.Hub()
    count = hub.register(wr.Count(), wr.time(5))
    hub.insert(1, at=3)
    hub.advance(9)
    again = wr.Hub.from_bytes(hub.to_bytes())
    assert hub.lookup(count) == again.lookup(again.queries[0]) == 0
    untimed = wr.Hub()
    untimed.insert(1)
    with pytest.raises(BadSpecification, match="without a time"):
        wr.Hub.from_bytes(untimed.to_bytes()).insert(1, at=4)


def test_batches_of_arrow() -> None:
    hub = wr.Hub()
    total = hub.register(wr.Sum("x"), wr.rows(9), key=wr.EACH)
    table = pa.table({"x": [1, None, 3]})
    hub.insert_many(table, keys=pa.array(["a", "b", "a"]), at=pa.array([1, 2, 3]))
    hub.insert_many({"x": pa.chunked_array([[4]])}, keys=["a"], at=[4])
    assert (hub.lookup(total, "a"), hub.lookup(total, "b")) == (8, None)
    with pytest.raises(BadValue, match=r"pyarrow\.table"):
        hub.insert_many(table.to_pandas(), keys="aba", at=[5, 6, 7])
    shared = BInt(wr.Sum())
    shared.insert_many(pa.array([1, None, 3]))
    assert shared.lookup(0, 2) == 4
    assert shared.answer(pa.array([5]), [0], [3]) == [9]
    values = Quantiles()
    values.insert_many(pa.array([1, 2, 4]))
    assert values.median(0, 2) == 2.0
    assert wr.greedy.sliding_window(wr.Sum(), pa.array([2, 4, 5]), [(0, 1), (1, 2)]) == [6, 9]
    clicks = wr.approx.Count(window=4, epsilon=0.1)
    clicks.insert_many(click for click in (True, False, True))
    assert clicks.query() == 2.0
