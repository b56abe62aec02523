"""The hub: many queries over one stream and its keys, each equal to its own window recalculated."""

import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.test_shared import of_rows, recalc
from windrow.errors import BadBytes, BadSpecification, BadValue, OutOfOrder, Refused
from windrow.shared import BInt, LInt, Quantiles, Query, RInt
from windrow.slides import Rows
from windrow.windows.compare import equal

AGGREGATES = (
    wr.Max("x"),
    wr.Mean("x"),
    wr.Sum("x"),
    wr.Count(),
    wr.Count("x"),
    wr.StdDev("x"),
    wr.Quantile("x", 0.9),
    wr.Median("x"),
    wr.Distinct("x"),
)
WINDOWS = (
    wr.time(10),
    wr.time(25, ending=5),
    wr.rows(7),
    wr.rows(4, ending=2),
    wr.rows(6, within=9),
    wr.time(6, closed="both"),
)
Event = tuple[str, int, dict[str, Any]]


def expected(query: Query, key: Any, events: list[Event], now: int) -> Any:
    mine = [event for event in events if key is None or event[0] == key]
    rows, times = [event[2] for event in mine], [event[1] for event in mine]
    return recalc(query.aggregate, of_rows(rows, times, query.window, now))


events_of = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0, 1, 2, 9, 40]), st.integers(0, 5)),
    max_size=60,
)


@examples(40)
@given(events_of, st.data())
def test_every_query_equals_recalc(steps: list[tuple[str, int, int]], data: Any) -> None:
    hub = wr.Hub()
    queries = [
        hub.register(aggregate, window, key=key)
        for aggregate in AGGREGATES
        for window in WINDOWS
        for key in (None, wr.EACH, "a")
        if data.draw(st.booleans())
    ]
    events: list[Event] = []
    now = 0
    for key, step, value in steps:
        now += step
        row = {"x": None if value == 5 else value * 0.5}
        hub.insert(row, key=key, at=now)
        events.append((key, now, row))
    moment = now + data.draw(st.integers(0, 15))
    for query in queries:
        for key in "abc" if query.key is wr.EACH else [query.key]:
            found = hub.lookup(query, key if query.key is wr.EACH else None, now=moment)
            assert found == expected(query, key, events, moment), query
            assert hub.complete(query, key if query.key is wr.EACH else None)


def test_changes_are_what_changed() -> None:
    generator = random.Random(3)
    hub = wr.Hub()
    queries = [
        hub.register(aggregate, window, key=key)
        for aggregate in AGGREGATES[:4]
        for window in WINDOWS
        for key in (None, wr.EACH)
    ]
    events: list[Event] = []
    told: dict[Any, Any] = {}
    now = 0
    for i in range(150):
        now += generator.choice([0, 1, 2, 30])
        row = {"x": generator.choice([1, 2, 3.5])}
        key = generator.choice("abc")
        hub.insert(row, key=key, at=now)
        events.append((key, now, row))
        if i % 4:
            continue
        changes = hub.changes()
        for query in queries:
            for about in "abc" if query.key is wr.EACH else [None]:
                name = (query, about) if query.key is wr.EACH else query
                answer = expected(query, about, events, now)
                if name in changes:
                    news = name not in told or not equal(told[name], changes[name])
                    assert news or query.key is wr.EACH  # a key that comes back is told again
                    told[name] = changes[name]
                assert equal(told.get(name, query.aggregate.empty), answer)
        assert hub.changes() == {}


def test_queries_share_what_they_have_in_common() -> None:
    hub = wr.Hub()
    for i in range(1, 1001):
        hub.register(wr.Mean(), wr.rows(i))
        hub.register(wr.Sum(), wr.rows(i))
        hub.register(wr.Variance(), wr.rows(i))
    assert [choice.structure for choice in hub.choices()] == [RInt] * 3  # rows, sum, squares
    hub.insert_many(range(5000))
    assert hub.stored_partials() == 3 * 1001
    assert "3000 queries" in hub.explain()
    assert "R-INT, totals can be subtracted exactly" in hub.explain()


def test_quantiles_of_every_share_need_the_same_values() -> None:
    hub = wr.Hub()
    queries = [hub.register(wr.Quantile(phi=i / 100), wr.rows(i + 1)) for i in range(100)]
    queries.append(hub.register(wr.Median(), wr.rows(10)))
    assert [choice.structure for choice in hub.choices()] == [Quantiles]
    hub.insert_many([(i * 37) % 101 for i in range(300)])
    rows = [(i * 37) % 101 for i in range(300)]
    for query in queries:
        window = query.window
        assert isinstance(window, Rows)
        assert hub.lookup(query) == recalc(query.aggregate, rows[300 - window.n :])


def test_the_structure_follows_the_queries() -> None:
    hub = wr.Hub()
    narrow = hub.register(wr.Max(), wr.rows(10))
    assert hub.choices()[0].structure is LInt
    hub.insert_many(range(30))
    wide = hub.register(wr.Max(), wr.rows(100))
    assert hub.choices()[0].structure is BInt
    hub.insert_many(range(5))
    assert hub.lookup(narrow) == 29
    assert not hub.complete(wide)
    assert hub.lookup(wide) == 29  # over the rows that were kept when it came: 20 to 29
    hub.insert_many(range(200))
    assert hub.complete(wide)
    assert hub.lookup(wide) == 199
    hub.drop(wide)
    assert hub.choices()[0].structure is LInt
    hub.insert_many(range(5))
    assert hub.lookup(narrow) == 199
    assert hub.stored_partials() <= 5 * 10
    with pytest.raises(BadSpecification, match="was dropped"):
        hub.lookup(wide)


def test_a_new_aggregate_begins_with_the_next_row() -> None:
    hub = wr.Hub()
    hub.register(wr.Max(), wr.rows(3))
    hub.insert_many([1, 2, 3])
    total = hub.register(wr.Sum(), wr.rows(3))
    assert hub.lookup(total) is None
    assert not hub.complete(total)
    hub.insert(4)
    assert hub.lookup(total) == 4
    hub.insert_many([5, 6])
    assert hub.lookup(total) == 15
    assert hub.complete(total)


def test_idle_keys_are_dropped() -> None:
    hub = wr.Hub()
    count = hub.register(wr.Count(), wr.time(10), key=wr.EACH)
    hub.insert(1, key="a", at=0)
    hub.insert(1, key="b", at=5)
    assert hub.keys == ["a", "b"]
    hub.insert(1, key="c", at=11)
    assert hub.keys == ["b", "c"]
    assert hub.lookup(count, "a") == 0
    hub.advance(40)
    assert hub.keys == []
    with pytest.raises(OutOfOrder, match="said to have passed"):
        hub.insert(1, key="a", at=39)
    kept = wr.Hub(idle=100)
    kept.register(wr.Count(), wr.rows(10), key=wr.EACH)
    kept.insert(1, key="a", at=0)
    kept.insert(1, key="b", at=100)
    assert kept.keys == ["a", "b"]
    kept.insert(1, key="b", at=101)
    assert kept.keys == ["b"]


@pytest.mark.parametrize("timed", [True, False])
def test_bytes(timed: bool) -> None:
    hub = wr.Hub(idle="1h") if timed else wr.Hub()
    start = datetime(2024, 1, 1)
    windows = (wr.time("10s"), wr.rows(4, ending=1)) if timed else (wr.rows(4), wr.rows(9))
    for aggregate in (wr.Max("x"), wr.Mean("x").alias("m"), wr.Variance("x", ddof=0), GeoMean("x")):
        for window in windows:
            for key in (None, wr.EACH, "b"):
                hub.register(aggregate, window, key=key)
    dropped = hub.register(wr.Min("x"), wr.rows(2))
    hub.drop(dropped)

    def insert(into: wr.Hub, i: int) -> None:
        at = start + timedelta(seconds=i) if timed else None
        into.insert({"x": 1.0 + i % 7}, key="abc"[i % 3], at=at)

    for i in range(50):
        insert(hub, i)
    data = hub.to_bytes()
    again = wr.Hub.from_bytes(data, own=[GeoMean])
    assert again.explain() == hub.explain()
    for i in range(50, 90):
        insert(hub, i)
        insert(again, i)
    for one, other in zip(hub.queries, again.queries, strict=True):
        assert repr(one) == repr(other)
        assert one.aggregate.output_name == other.aggregate.output_name
        for key in "abc" if one.key is wr.EACH else [None]:
            assert equal(again.lookup(other, key), hub.lookup(one, key))
    with pytest.raises(BadSpecification, match=r"own=\[GeoMean\]"):
        wr.Hub.from_bytes(data)
    for wrong in (data[:-1], b"", data[:50] + b"\xff" + data[51:]):
        with pytest.raises(BadBytes):
            wr.Hub.from_bytes(wrong, own=[GeoMean])


def test_a_key_that_is_no_number_survives_its_bytes() -> None:
    hub = wr.Hub()
    hub.register(wr.Count(), wr.rows(5), key=wr.EACH)
    hub.register(wr.Sum(), wr.rows(5), key=float("nan"))
    hub.insert(2, key=float("nan"))
    again = wr.Hub.from_bytes(hub.to_bytes())
    again.insert(3, key=float("nan"))
    each, one = again.queries
    assert (again.lookup(each, key=float("nan")), again.lookup(one)) == (2, 5)
    assert len(again.keys) == 1


def test_errors_say_what_to_do() -> None:
    hub = wr.Hub()
    each = hub.register(wr.Sum("x"), wr.time(10), key=wr.EACH)
    one = hub.register(wr.Sum("x"), wr.time(10), key="a")
    with pytest.raises(BadSpecification, match=r"insert\(value, key"):
        hub.insert({"x": 1}, at=3)
    with pytest.raises(BadValue, match="has no 'x'"):
        hub.insert({"y": 1}, key="a", at=3)
    hub.insert({"x": 1}, key="a", at=3)
    with pytest.raises(OutOfOrder, match="sort the rows"):
        hub.insert({"x": 1}, key="b", at=2)
    with pytest.raises(BadValue, match="cannot be hashed"):
        hub.insert({"x": 1}, key=[1], at=5)
    with pytest.raises(BadSpecification, match="about each key"):
        hub.lookup(each)
    with pytest.raises(BadSpecification, match="is not about 'b'"):
        hub.lookup(one, "b")
    with pytest.raises(BadSpecification, match="not a query of this hub"):
        wr.Hub().lookup(one)
    with pytest.raises(Refused, match="looks at later rows"):
        hub.register(wr.Sum(), wr.rows(3, after=1))
    with pytest.raises(BadSpecification, match="must be an integer"):
        hub.register(wr.Sum(), "5m")
    assert hub.lookup(one) == 1
    assert hub.lookup_many([one, each], ["a", "a"]) == [1, 1]


def test_columns_in_many_rows() -> None:
    hub = wr.Hub()
    query = hub.register(wr.Sum("x"), wr.rows(2), key=wr.EACH)
    hub.insert_many({"x": [1, 2, 3]}, keys=["a", "b", "a"])
    assert hub.lookup(query, "a") == 4
    with pytest.raises(BadSpecification, match="keys="):
        hub.insert_many({"x": [1, 2, 3]}, keys=["a"])
