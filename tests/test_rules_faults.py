"""Rules and values that are not what a condition expects: nothing is lost by an error."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.errors import BadSpecification, BadValue, SumOverflow


def fires(when: str, *values: Any) -> list[bool]:
    rules = wr.Rules([("r", when)], key="k", time="at")
    out = []
    for at, x in enumerate(values):
        rules.insert({"k": "a", "at": at, "x": x})
        out.append(bool(rules.firing()))
    return out


def test_numbers_of_every_kind_are_computed_with_alike() -> None:
    price = [100, Decimal(100), 100.0, np.float32(100), np.int8(100), np.uint8(100), True]
    for one in price:
        assert fires("x * x > 9000", one) == [one is not True]
        assert fires("x < 1.5 * mean(x, 5)", one) == [True]
        assert fires("1 / (x - x) > 0 or x / 0 > 0", one) == [False]
    assert fires("x / 3 > 0 and x + 1.0 > 0", 10**400) == [True]
    assert fires("x > 1", np.datetime64("NaT"), 2) == [False, True]


@pytest.mark.parametrize("when", ["abs(x) > 1", "-x > 1", "x * 2 > 1", "x > 1", "x > 1 or x < 0"])
@pytest.mark.parametrize("bad", ["a", b"a", [1]])
def test_what_is_no_number_is_refused_by_name(when: str, bad: Any) -> None:
    with pytest.raises((BadSpecification, BadValue), match="x"):
        fires(when, bad)


def test_a_window_that_cannot_be_is_told_with_its_condition() -> None:
    with pytest.raises(BadSpecification, match=r"in 'max\(x, 0\) > 3': time\(\): the length"):
        wr.Rules([("r", "max(x, 0) > 3")], key="k", time="at")


def test_what_changed_before_an_error_is_told_by_the_next_call() -> None:
    rules = wr.Rules([("busy", "count(10) >= 2"), ("text", "x * 2 > 1")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 0})
    rules.insert({"k": "a", "at": 1, "x": 0})
    with pytest.raises(BadSpecification, match="not both numbers"):
        rules.insert({"k": "b", "at": 30, "x": "?"})
    changes = [str(change) for change in rules.insert({"k": "c", "at": 31, "x": 0})]
    assert changes == ["10: busy stopped for 'a'"]


def test_a_key_that_could_not_be_evaluated_is_looked_at_again() -> None:
    rules = wr.Rules([("big", "sum(x, 10) > 5"), ("busy", "count(20) >= 2")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 9})
    rules.insert({"k": "a", "at": 1, "x": 0})
    with pytest.raises(SumOverflow):
        rules.insert({"k": "a", "at": 2, "x": (1 << 63) - 1})
    told, now = [], 3
    while now < 40:  # whoever asks again gets everything in the end
        try:
            told += rules.advance(now)
            now += 1
        except SumOverflow:
            pass
    assert [str(change) for change in told] == [
        "12: big stopped for 'a'",
        "21: busy stopped for 'a'",
    ]
    assert rules.firing() == []


def test_a_rule_that_cannot_be_evaluated_is_not_added() -> None:
    rules = wr.Rules(key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": "text"})
    with pytest.raises(BadSpecification, match="not both numbers"):
        rules.add("r", "x * 2 > 1")
    assert len(rules) == 0
    assert rules.insert({"k": "a", "at": 1, "x": "text"}) == []
    rules.add("r", "x == 'text'")
    assert rules.firing() == [("r", "a")]


def test_a_row_may_be_used_again() -> None:
    rules = wr.Rules([("r", "x > 1 and count(5) >= 1")], key="k", time="at")
    row = {"k": "a", "at": 0, "x": 2}
    rules.insert(row)
    row.update(k="b", at=1, x=0)
    rules.insert(row)
    assert rules.advance(4) == []
    assert rules.firing() == [("r", "a")]


def told(changes: list[Any]) -> list[str]:
    return [str(change) for change in changes]


def test_what_stops_just_now_is_told_though_a_rule_comes_that_looks_at_every_key() -> None:
    rules = wr.Rules([("busy", "count(10) >= 1"), ("long", "count(99) > 9")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 1})
    rules.insert({"k": "b", "at": 10, "x": 1})  # at 10 more may come: a's row has not left yet
    assert told(rules.add("odd", "x > 5 or x < 0")) == ["10: busy stopped for 'a'"]


def test_what_stops_just_now_is_told_though_a_sum_may_rise_when_rows_leave() -> None:
    rules = wr.Rules([("high", "sum(x, 10) >= 1"), ("long", "count(99) > 9")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 1})
    rules.insert({"k": "b", "at": 10, "x": -1})
    assert told(rules.advance(50)) == ["10: high stopped for 'a'"]


def test_rows_that_are_there_leave_a_window_that_is_new() -> None:
    rules = wr.Rules([("odd", "x > 99 or x < 0"), ("top", "max(x, 20) > 99")], key="k", time="at")
    rules.insert({"k": "a", "at": 0, "x": 9})
    rules.insert({"k": "a", "at": 5, "x": 1})
    assert rules.add("low", "max(x, 7) < 4") == []
    assert told(rules.advance(19)) == ["7: low started for 'a'", "12: low stopped for 'a'"]


def test_a_rule_that_comes_to_a_text_says_so() -> None:
    rules = wr.Rules(key="k")
    rules.insert({"k": 1, "x": "text"})
    with pytest.raises(BadValue, match="x > a number: 'text' is not one"):
        rules.add("t", "x > 3")
    assert len(rules) == 0


REFUSED = ["mean(typo, 5) > foo(1)", "mean(typo, 5)", 'mean(typo, "5m") > 2 and x is None']


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_refused_rule_is_about_is_not_asked_of_events(text: str) -> None:
    rules = wr.Rules([("busy", "count(9) >= 1")], key="k", time="at")
    with pytest.raises(BadSpecification):
        rules.add("r", text)
    with pytest.raises(BadSpecification):
        rules.add("r", "count(9) > 1", text)
    assert rules.columns == []
    assert told(rules.insert({"k": "a", "at": 0})) == ["0: busy started for 'a'"]


def test_what_only_a_removed_rule_was_about_is_let_go() -> None:
    named = {"top": (wr.Max("x"), wr.time(9))}
    rules = wr.Rules([("busy", "count(9) >= 1")], key="k", time="at", features=named)
    rules.add("wrong", "mean(typo, 5) > 2")
    with pytest.raises(BadValue, match="the row has no 'typo'"):
        rules.insert({"k": "a", "at": 0, "x": 1})
    rules.remove("wrong")
    rules.remove("busy")
    assert rules.columns == ["x"]  # of a feature with a name
    assert rules.insert({"k": "a", "at": 0, "x": 1}) == []
    rules.add("high", "top >= 1 and sum(x, 5) > 0")
    for rule in range(50):
        rules.add("r", f"sum(x, {rule + 1}) > 5")
        rules.remove("r")
    again = wr.Rules.from_bytes(rules.to_bytes())
    for one in (rules, again):
        assert told(one.insert({"k": "a", "at": 1, "x": 2})) == ["1: high started for 'a'"]
        assert "1 rules, 1 keys, 2 features" in one.explain()
        one.remove("high")
        one.advance(2)
        assert "0 rules, 1 keys, 1 features" in one.explain()


def test_a_rule_that_is_changed_keeps_its_rows() -> None:
    rules = wr.Rules([("busy", "count(9) >= 3")], key="k", time="at")
    rules.insert({"k": "a", "at": 0})
    rules.insert({"k": "a", "at": 1})
    rules.remove("busy")
    rules = wr.Rules.from_bytes(rules.to_bytes())
    assert told(rules.add("busy", "count(9) >= 2")) == ["1: busy started for 'a'"]
    rules.insert({"k": "b", "at": 2})
    rules.remove("busy")
    rules.insert({"k": "b", "at": 3})
    assert rules.add("busy", "count(9) >= 2") == []  # for no key, whether it had events or not


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("ok == true", "'true' is not known: write True"),
        ('avg(x, "5m") > 3', "calls 'avg'; did you mean 'mean'[?]; known are abs, all"),
        ('stddev(x, "5m") > 3', "did you mean 'std'[?]"),
        ('p95(x, "5m") > 3', r"calls 'p95'; Rules\(features=.*Quantile"),
        ("x > 3 AND x < 5", "Write and, or, not"),
        ("x <> 3", "Write !="),
        ("x BETWEEN 1 AND 2", "Write 1 <= x <= 2"),
        ("x in (1, 2)", "for one of several, write x == 1 or x == 2"),
        ('foo(x, "5m") > 3', "calls 'foo'; known are abs, all"),
    ],
)
def test_words_of_other_languages(when: str, says: str) -> None:
    with pytest.raises(BadSpecification, match=says):
        wr.Rules([("r", when)], key="k", time="at")


def test_keys_keep_nothing_for_rules_that_are_gone() -> None:
    named = {"rows": (wr.Count(), wr.time(9))}
    rules = wr.Rules([("small", "x < 3")], key="k", time="at", features=named)
    rules.add("wide", "rows >= 1 and x > 0")
    rules.add("high", "x > 3")
    rules.insert({"k": "a", "at": 0, "x": 6})
    rules.remove("small")
    rules.remove("wide")
    for at in range(1, 40):
        assert told(rules.add("busy", "rows >= 1")) == [f"{at - 1}: busy started for 'a'"]
        rules.insert({"k": "a", "at": at, "x": 6})
        rules.remove("busy")
        assert rules.firing() == [("high", "a")]
    assert len(rules._states["a"].values) == 1
