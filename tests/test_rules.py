"""Rules: what fires is what the conditions say, at every moment; parsed safely; shared."""

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
from windrow.errors import BadSpecification, BadValue, OutOfOrder
from windrow.rules import Change
from windrow.rules.expression import Reader

FEATURES: dict[str, tuple[Any, Any]] = {
    "n": (wr.Count(), wr.time(10)),
    "total": (wr.Sum("x"), wr.time(10)),
    "high": (wr.Max("x"), wr.time(20)),
    "low": (wr.Min("x"), wr.time(20)),
    "mean": (wr.Mean("x"), wr.time(7, ending=5)),
    "recent": (wr.Max("x"), wr.rows(3)),
    "both": (wr.Count(), wr.time(4, closed="both")),
    "past": (wr.Count(), wr.time(4, closed="left")),
    "within": (wr.Sum("x"), wr.rows(4, within=6)),
}
CONDITIONS = [
    "n >= 2",
    "n > 2",
    "n < 2",
    "3 <= n",
    "total > 6",
    "high >= 5",
    "high < 4",
    "low <= 1",
    "mean > 2.5",
    "recent >= 4",
    "both >= 2",
    "past >= 1",
    "within > 5",
    "x > 3",
    "high - low > 2 and x >= 2",
    "n >= 2 and total / n > 2.5",
    "n > 3 or not high > 2",
    "1 < x <= 4 and mean > 2",
    "total == 6",
    "high != low",
    "-x < -3 and abs(x - 4) < 2",
]


def holds(text: str, values: dict[str, Any]) -> bool:
    """The condition as Python itself reads it; the texts are those above, nobody else's."""
    try:
        return bool(eval(text, {"abs": abs}, values))
    except (TypeError, ZeroDivisionError):
        return False


def truth(text: str, mine: list[tuple[int, dict[str, Any]]], now: int) -> bool:
    rows, times = [row for _, row in mine], [at for at, _ in mine]
    values = {
        name: recalc(aggregate, of_rows(rows, times, window, now))
        for name, (aggregate, window) in FEATURES.items()
    }
    return holds(text, {**values, "x": rows[-1]["x"]})


@examples(40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1, 1, 2, 8, 30]), st.integers(0, 6)),
        max_size=40,
    )
)
def test_what_fires_is_what_the_conditions_say(steps: list[tuple[str, int, int]]) -> None:
    rules = wr.Rules(key="k", time="at", features=FEATURES)
    for number, text in enumerate(CONDITIONS):
        assert rules.add(f"r{number}", text) == []
    events: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    now = 0
    firing: set[tuple[str, str]] = set()

    def follow(changes: list[Change]) -> None:
        for change in changes:
            pair = (change.rule, change.key)
            assert (pair in firing) != change.started
            (firing.add if change.started else firing.remove)(pair)

    def compare(moment: int) -> None:
        expected = {
            (f"r{number}", key)
            for number, text in enumerate(CONDITIONS)
            for key, mine in events.items()
            if truth(text, mine, moment)
        }
        known = {key for _, key in firing} | set(rules.keys)
        assert firing == {pair for pair in expected if pair[1] in known}
        assert set(rules.firing()) == firing

    for key, step, value in steps:
        for moment in range(now, now + step):
            follow(rules.advance(moment)) if events else None
            compare(moment)
        now += step
        row = {"k": key, "at": now, "x": value}
        follow(rules.insert(row))
        events.setdefault(key, []).append((now, row))
    if events:
        for moment in range(now, now + 30):
            follow(rules.advance(moment))
            compare(moment)


def test_times_of_changes_are_exact_however_far_time_jumps() -> None:
    rules = wr.Rules([("busy", "count(10) >= 2")], key="k", time="at")
    for key, at in (("a", 0), ("a", 3), ("b", 4), ("b", 6)):
        rules.insert({"k": key, "at": at})
    changes = rules.insert({"k": "c", "at": 1000})
    assert [(c.key, c.at, c.started) for c in changes] == [("a", 10, False), ("b", 14, False)]


def test_time_may_jump_over_everything() -> None:
    rules = wr.Rules(
        [("busy", "count(10) >= 2"), ("odd", "count(10) > 1 and x > 0")], key="k", time="at"
    )
    for at in (0, 3):
        rules.insert({"k": "a", "at": at, "x": 1})
    assert [str(change) for change in rules.advance(1000)] == [
        "10: busy stopped for 'a'",
        "10: odd stopped for 'a'",
    ]
    assert rules.keys == []


def test_what_fires_for_a_key_that_is_dropped_stops() -> None:
    rules = wr.Rules(
        [("high", "max(x, rows=5) > 2"), ("also", "x > 2 and x < 9")], key="k", time="at", idle=100
    )
    rules.insert({"k": "a", "at": 0, "x": 3})
    assert rules.firing() == [("high", "a"), ("also", "a")]
    changes = rules.insert({"k": "b", "at": 500, "x": 0})
    assert [(c.rule, c.key, c.started, c.at) for c in changes] == [
        ("high", "a", False, 500),
        ("also", "a", False, 500),
    ]
    assert rules.firing() == []


def test_hysteresis() -> None:
    rules = wr.Rules(key="k", time="at")
    rules.add("hot", when="mean(x, rows=2) > 10", until="mean(x, rows=2) < 5")
    started = []
    for at, x in enumerate([0, 30, 8, 8, 6, 6, 3, 3, 9, 9, 20]):
        started += [(at, change.started) for change in rules.insert({"k": 1, "at": at, "x": x})]
    assert started == [(1, True), (6, False), (10, True)]


def test_the_two_queries_of_the_paper() -> None:
    """Section 1.1.2: downward momentum with buying pressure, and volatility with a volume surge."""
    rules = wr.Rules(
        [
            (
                "momentum",
                '20 <= price <= 200 and price < 0.98 * first(price, "20m")'
                ' and sum(toward_ask, "2m") >= 0.7 * sum(size, "2m")',
            ),
            (
                "surge",
                '20 <= price <= 200 and max(price, "30m") - min(price, "30m") > 0.03 * price'
                ' and mean(size, "5m") > 4 * mean(size, "30m", ending="5m")',
            ),
        ],
        key="symbol",
        time="at",
    )
    start = datetime(2024, 1, 2, 9, 30)
    changes = []

    def trade(minute: float, symbol: str, price: float, size: int, toward_ask: int) -> None:
        at = start + timedelta(minutes=minute)
        row = {"symbol": symbol, "at": at, "price": price, "size": size, "toward_ask": toward_ask}
        changes.extend(rules.insert(row))

    for minute in range(30):
        trade(minute, "DOWN", 100 - minute * 0.05, 100, 20)
        trade(minute, "CALM", 100.0, 100, 50)
    assert changes == []
    trade(31, "DOWN", 96.0, 1900, 1700)
    trade(31, "CALM", 100.0, 1900, 1700)
    assert [(c.rule, c.key) for c in changes] == [("momentum", "DOWN"), ("surge", "DOWN")]
    changes.clear()
    for minute in range(32, 40):
        trade(minute, "DOWN", 96.0, 100, 0)
    assert [(c.rule, c.started) for c in changes] == [("momentum", False), ("surge", False)]


def test_rules_added_while_running_fire_at_once() -> None:
    generator = random.Random(5)
    rules = wr.Rules(
        [("seed", "max(x, 50) > 1e9"), ("sum", "sum(x, 50) > 1e9")], key="k", time="at"
    )
    rules.add("count", "count(50) > 1e9")
    rules.add("low", "min(x, 50) < -1e9")
    mine: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for at in range(600):
        key = int(generator.paretovariate(1.0)) % 60
        row = {"k": key, "at": at, "x": generator.randint(0, 50)}
        rules.insert(row)
        mine.setdefault(key, []).append((at, row))
    for number, text in enumerate(
        ["max(x, 50) >= 45", "sum(x, 50) > 90", "count(50) >= 3", "min(x, 50) < 4", "x > 40"]
    ):
        changes = rules.add(f"late{number}", text)
        again = wr.Rules([(f"late{number}", text)], key="k", time="at")
        for _, row in sorted(pair for rows in mine.values() for pair in rows):
            again.insert(row)
        again.advance(599)
        fires = {key for name, key in again.firing() if key in rules.keys}
        assert {change.key for change in changes} == fires, text
        assert {k for name, k in rules.firing() if name == f"late{number}"} == fires
    assert "asks a filter" in rules.explain()


def test_keys_that_were_dropped_are_forgotten() -> None:
    rules = wr.Rules([("busy", "count(10) >= 2")], key="k", time="at")
    for key in range(100):
        rules.insert({"k": key, "at": 20 * key})
    assert rules.keys == [99]
    assert not rules._hub._told.touched


def test_rules_are_removed() -> None:
    rules = wr.Rules(key="k", time="at")
    rules.add("a", "count(10) >= 1")
    rules.add("b", "count(10) >= 1 and x > 0")
    rules.add("c", "x > 0 or x < 0")
    assert len(rules.insert({"k": 1, "at": 0, "x": 1})) == 3
    for name in "abc":
        rules.remove(name)
    assert rules.firing() == []
    assert rules.insert({"k": 1, "at": 1, "x": 1}) == []
    assert len(rules) == 0
    with pytest.raises(BadSpecification, match="no rule 'a'"):
        rules.remove("a")


def test_own_aggregates_are_features() -> None:
    rules = wr.Rules(key="k", time="at", features={"g": (GeoMean("x"), "10s")})
    rules.add("high", "g > 3")
    at = datetime(2024, 1, 1)
    assert rules.insert({"k": 1, "at": at, "x": 2.0}) == []
    assert len(rules.insert({"k": 1, "at": at, "x": 8.0})) == 1


def test_missing_values_are_neither_true_nor_false() -> None:
    rules = wr.Rules(key="k")
    rules.add("over", "x > 3")
    rules.add("under", "not x > 3")
    rules.add("either", "x > 3 or y > 3")
    rules.add("ratio", "y / x > 1")
    assert rules.insert({"k": 1, "x": None, "y": 1}) == []
    assert [c.rule for c in rules.insert({"k": 1, "x": None, "y": 5})] == ["either"]
    assert [c.rule for c in rules.insert({"k": 1, "x": 0, "y": 5})] == ["under"]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true') > 0",
        "(lambda: 1)() > 0",
        "x.__class__ > 0",
        "x[0] > 0",
        "[y for y in x] > 0",
        "f'{x}' > 0",
        "open('/etc/passwd') > 0",
        "eval('1') > 0",
        "x ** 9 ** 9 > 0",
        "x if y else z",
        "x",
        "1 + 1",
        "x = 3",
        "x > 1; y > 2",
        "x in (1, 2)",
        "x is 3",
        "(x := 3) > 1",
        "max(price) > 3",
        "max(price, '5m', '6m') > 3",
        "max(price, rows=x) > 3",
        "max(*price) > 3",
        "count('5q') > 3",
        "count('5m', after='1m') > 3",
        "sum('5m') > 3",
        "unknown(x, '5m') > 3",
        "x > 1j",
        "x > None",
        "x > (",
        "",
        "   ",
        "x > " + "(" * 500 + "1" + ")" * 500,
        "not " * 300 + "x > 1",
        "x > " + "1" * 20_000,
        "x > 1 \x00",
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    rules = wr.Rules(key="k", time="at")
    with pytest.raises(BadSpecification):
        rules.add("bad", text)
    assert len(rules) == 0
    assert rules.insert({"k": 1, "at": datetime(2024, 1, 1), "x": 1}) == []


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    reader = Reader(lambda name: None, lambda aggregate, window: 0)
    try:
        reader.read(text)
    except BadSpecification:
        return


def test_texts_are_not_multiplied() -> None:
    rules = wr.Rules([("long", "x * 1000000000 == 3")], key="k")
    with pytest.raises(BadSpecification, match="are not both numbers"):
        rules.insert({"k": 1, "x": "ab"})


def test_errors_say_what_to_do() -> None:
    rules = wr.Rules([{"name": "a", "when": "count(10) > 1"}], key="k", time="at")
    with pytest.raises(BadSpecification, match="there is a rule 'a' already"):
        rules.add("a", "count(10) > 1")
    with pytest.raises(BadValue, match="has no 'at'"):
        rules.insert({"k": 1})
    with pytest.raises(BadValue, match="the event has no 'k'"):
        rules.insert({"at": 1})
    with pytest.raises(BadValue, match="is a mapping"):
        rules.insert(3)  # type: ignore[arg-type]
    rules.insert({"k": 1, "at": 5})
    with pytest.raises(OutOfOrder):
        rules.insert({"k": 1, "at": 4})
    with pytest.raises(BadSpecification, match="say which column"):
        wr.Rules([("t", "count('5m') > 1")], key="k")
    with pytest.raises(BadSpecification, match="a rule has name"):
        wr.Rules([{"name": "a", "then": "x"}], key="k")
    with pytest.raises(BadSpecification, match="already"):
        wr.Rules(key="k", features=FEATURES, time="at").define("n", wr.Count(), wr.rows(3))
    with pytest.raises(BadValue, match="x > a number: 'text' is not one"):
        wr.Rules([("t", "x > 3")], key="k").insert({"k": 1, "x": "text"})


def test_many_events_at_once() -> None:
    rules = wr.Rules([("busy", "count(10) >= 2")], key="k", time="at")
    changes = rules.insert_many({"k": ["a", "a"], "at": [1, 2]})
    assert [str(change) for change in changes] == ["2: busy started for 'a'"]
    rules.insert_many([{"k": "b", "at": 3}, {"k": "b", "at": 4}])
    assert rules.firing() == [("busy", "a"), ("busy", "b")]
