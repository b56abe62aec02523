"""Rules that are written and read at any moment go on as those that never stopped."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from windrow.errors import BadBytes, BadSpecification, BadValue, WindrowError


class Odd(wr.Aggregate):
    """How many odd numbers there are: an aggregate of the user's."""

    identity = 0
    commutative = True

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return x % 2  # type: ignore[operator]

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return a + b


KEYS = ["a", "b", "c", ("d", 1), 7, float("nan")]
VALUES = [-3, -1, 0, 1, 2, 3, 4, 5, None, 2.5, Decimal("1.5"), float("nan"), "text", np.int8(3)]
GIVEN: dict[str, tuple[Any, Any]] = {
    "odd": (Odd("y"), wr.rows(3)),
    "high": (wr.Max("y"), wr.time(20)),
}
LATER: dict[str, tuple[Any, Any]] = {
    "x": (wr.Count(), wr.time(6)),  # a column's name
    "y": (wr.Min("y"), wr.time(9, closed="both")),
    "mean": (wr.Mean("y"), wr.time(7, ending=5)),
    "again": (wr.Max("y"), wr.time(20)),
}
CONDITIONS = [
    "count(10) >= 2",
    "count(10) > 1",
    "count(10) < 2",
    "sum(y, 10) > 3",
    "sum(y, 10) >= 5",
    "high >= 4",
    "high < 3",
    "max(y, 7) >= 4",
    "min(y, 7) <= 1",
    "odd >= 1",
    "x > 2",
    "x >= 3 and odd < 3",
    "y > 2 or x < 1",
    "count(10) >= 2 and sum(y, 10) / count(10) > 2",
    "count(10) >= 3 and not high > 4",
    "1 < y <= 4 and mean(y, 7, ending=5) > 2",
    "count(4, closed='left') >= 1",
    "sum(y, rows=4, within=6) > 5",
    "x * 2 > 3",
    "mean > 1",
]
UNTILS = [None, None, "count(10) < 2", "y < 2", "sum(y, 10) < 1 or x == 0", "odd == 0"]
STEPS = st.one_of(
    st.tuples(
        st.just("insert"),
        st.sampled_from(KEYS),
        st.sampled_from([0, 0, 1, 1, 2, 5, 9, 10, 40]),
        st.sampled_from(VALUES),
        st.sampled_from([*VALUES[:8], None]),
    ),
    st.tuples(
        st.just("add"),
        st.integers(0, 5),
        st.sampled_from(CONDITIONS),
        st.sampled_from(UNTILS),
    ),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 3, 10, 50])),
    st.tuples(st.just("define"), st.sampled_from(sorted(LATER))),
    st.tuples(st.just("bytes")),
)


def outcome(call: Callable[..., Any], *given: Any) -> Any:
    """What comes of it, an error too."""
    try:
        return call(*given)
    except WindrowError as error:
        return type(error), str(error)


def act(rules: wr.Rules, step: tuple[Any, ...], now: int) -> Any:
    what, *given = step
    if what == "insert":
        key, _, x, y = given
        return rules.insert({"k": key, "at": now, "x": x, "y": y})
    if what == "add":
        return rules.add(f"r{given[0]}", *given[1:])
    if what == "remove":
        return rules.remove(f"r{given[0]}")
    if what == "advance":
        return rules.advance(now)
    return rules.define(given[0], *LATER[given[0]])


@examples(400)
@given(st.sampled_from([None, 15]), st.lists(STEPS, max_size=60))
def test_restored_rules_go_on_as_those_that_never_stopped(
    idle: int | None, steps: list[tuple[Any, ...]]
) -> None:
    stays = wr.Rules(key="k", time="at", features=GIVEN, idle=idle)
    goes = wr.Rules(key="k", time="at", features=GIVEN, idle=idle)
    now, last = 0, ("advance", 100)
    for step in [*steps, ("bytes",), last, ("insert", "a", 0, 3, 4), last]:
        if step == ("bytes",):
            data = goes.to_bytes()
            goes = wr.Rules.from_bytes(data, GIVEN)
            assert goes.to_bytes() == data
            continue
        now += step[2] if step[0] == "insert" else step[1] if step[0] == "advance" else 0
        assert outcome(act, goes, step, now) == outcome(act, stays, step, now)
        assert goes.firing() == stays.firing()
        assert (goes.keys, goes.rules, goes.columns) == (stays.keys, stays.rules, stays.columns)


@examples(40)
@given(st.lists(STEPS, min_size=5, max_size=25))
def test_rules_without_times(steps: list[tuple[Any, ...]]) -> None:
    texts = [("a", "sum(y, rows=3) > 3"), ("b", "x > 2", "max(y, rows=2) < 2"), ("c", "y == 3")]
    stays, goes = wr.Rules(texts, key="k"), wr.Rules(texts, key="k")
    for step in steps:
        if step[0] == "insert":
            row = {"k": step[1], "x": step[3], "y": step[4]}
            assert outcome(goes.insert, row) == outcome(stays.insert, row)
        goes = wr.Rules.from_bytes(goes.to_bytes())
        assert goes.firing() == stays.firing()


def watched() -> wr.Rules:
    rules = wr.Rules(key="k", time="at", features={"g": (GeoMean("y"), "10s")})
    rules.add("high", "g > 3", until="g < 2")
    rules.add("much", 'count("10s") >= 2')
    at = datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Rome"))
    more = {"text": "é", "day": at.date(), "flags": (True, b"\0"), "n": 10**40, "f": np.float32(2)}
    rules.insert({"k": "a", "at": at, "y": 8.0, **more})
    rules.insert({"k": "a", "at": at, "y": 8.0, **more})
    return rules


def test_what_was_found_and_not_told_is_told_later() -> None:
    rules = wr.Rules([("busy", "count(10) >= 2"), ("text", "x * 2 > 1")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 0})
    rules.insert({"k": "a", "at": 1, "x": 0})
    with pytest.raises(BadSpecification, match="not both numbers"):
        rules.insert({"k": "b", "at": 30, "x": "text"})
    again = wr.Rules.from_bytes(rules.to_bytes())
    told = again.insert({"k": "a", "at": 31, "x": 0})
    assert [str(change) for change in told] == ["10: busy stopped for 'a'"]


def test_own_aggregates_are_given_again() -> None:
    rules = watched()
    data = rules.to_bytes()
    again = wr.Rules.from_bytes(data, features={"g": (GeoMean("y"), "10s")})
    later = datetime(2024, 1, 1, 0, 0, 3, tzinfo=UTC)
    assert again.advance(later) == rules.advance(later) != []
    with pytest.raises(BadSpecification, match=r"from_bytes\(data, features=\{'g'"):
        wr.Rules.from_bytes(data)
    with pytest.raises(BadSpecification, match=r"feature 'g' is GeoMean.* over 10s in .* over 20s"):
        wr.Rules.from_bytes(data, features={"g": (GeoMean("y"), "20s")})
    with pytest.raises(BadSpecification, match="no feature 'h'"):
        wr.Rules.from_bytes(
            data, features={"g": (GeoMean("y"), "10s"), "h": (wr.Count(), wr.rows(2))}
        )


def test_bytes_that_are_damaged_or_newer_are_refused() -> None:
    data, own = watched().to_bytes(), {"g": (GeoMean("y"), "10s")}
    for place in range(len(data)):
        for wrong in (data[place] ^ 1, data[place] ^ 0x80):
            with pytest.raises(BadBytes):
                wr.Rules.from_bytes(data[:place] + bytes([wrong]) + data[place + 1 :], own)
    for cut in (data[:-1], data[:40], b"", data + b"\0", wr.Hub().to_bytes()):
        with pytest.raises(BadBytes):
            wr.Rules.from_bytes(cut, own)
    with pytest.raises(BadBytes, match="format version 2, this windrow reads version 1"):
        wr.Rules.from_bytes(data[:4] + b"\2" + data[5:], own)


def test_a_value_without_bytes_is_named() -> None:
    rules = wr.Rules([("high", "x > 3")], key="k")
    rules.insert({"k": "a", "x": 1, "tags": ["b"]})
    with pytest.raises(BadValue, match="column 'tags' in the last row of key 'a'"):
        rules.to_bytes()
