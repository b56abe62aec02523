"""Literal answers: what each aggregate says of odd values, written down and not computed."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import windrow as wr
from windrow.errors import BadSpecification, BadValue, SumOverflow
from windrow.windows import DabaLite, Recalc, TwoStacksLite
from windrow.windows.compare import equal

INF, NAN = math.inf, math.nan

TABLE: list[tuple[wr.Aggregate, list[Any], Any]] = [
    # no rows, and rows without values
    (wr.Count(), [], 0),
    (wr.Count(), [None, None], 2),
    (wr.Count("x"), [None, 1], 1),
    (wr.MaxCount(), [], 0),
    (wr.MaxCount(), [None], 0),
    *[(kind(), values, None) for kind in (wr.Sum, wr.Mean, wr.Variance, wr.StdDev, wr.Min, wr.Max,
      wr.First, wr.Last, wr.GeometricMean, wr.Concat) for values in ([], [None])],
    (wr.ArgMax(), [("a", None), (None, 1)], None),
    # NaN is larger than every number
    (wr.Max(), [1.0, NAN, 2.0], NAN),
    (wr.Max(), [NAN, INF], NAN),
    (wr.Min(), [1.0, NAN, 2.0], 1.0),
    (wr.Min(), [NAN, INF], INF),
    (wr.Min(), [NAN, NAN], NAN),
    (wr.MaxCount(), [1.0, NAN, NAN, 5.0], 2),
    (wr.ArgMax(), [("a", 1.0), ("b", NAN), ("c", 9.0), ("d", NAN)], "b"),
    (wr.Sum(), [1.0, NAN], NAN),
    (wr.Mean(), [1.0, NAN], NAN),
    (wr.Variance(), [1.0, NAN], NAN),
    (wr.Sum(nan="missing"), [1.0, NAN, np.float32("nan"), np.float64("nan")], 1.0),
    (wr.Max(nan="missing"), [1.0, np.float16("nan")], 1.0),
    (wr.Max(nan="missing"), [NAN], None),
    # infinities
    (wr.Sum(), [INF, 1.0], INF),
    (wr.Sum(), [INF, -INF], NAN),
    (wr.Mean(), [-INF, 1.0], -INF),
    (wr.StdDev(), [INF, 1.0], NAN),
    (wr.Max(), [-INF, 1.0], 1.0),
    (wr.GeometricMean(), [INF, 1.0], INF),
    # negative zero comes out as zero
    (wr.Max(), [-0.0], 0.0),
    (wr.Min(), [-0.0, 0.0], 0.0),
    (wr.First(), [-0.0, 1.0], 0.0),
    (wr.Last(), [1.0, -0.0], 0.0),
    (wr.Sum(), [-0.0, -0.0], 0.0),
    (wr.Mean(), [-5e-324, 0.0, 0.0], 0.0),
    (wr.Max(), [Decimal("-0.0")], Decimal("0.0")),
    # ties
    (wr.ArgMax(), [("a", 2), ("b", 2)], "a"),
    (wr.MaxCount(), [3, 3, 1], 2),
    (wr.Max(), [1, True], True),
    # moments
    (wr.Variance(), [1.0], None),
    (wr.Variance(ddof=0), [1.0], 0.0),
    (wr.Variance(), [1, 2, 3, 4], 5 / 3),
    (wr.StdDev(ddof=0), [2, 4, 4, 4, 5, 5, 7, 9], 2.0),
    # kinds of numbers
    (wr.Sum(), [1, 2], 3),
    (wr.Sum(), [1, 0.5], 1.5),
    (wr.Sum(), [True, True], 2),
    (wr.Sum(), [Fraction(1, 4), 1], 1.25),
    (wr.Sum(), [Decimal("0.1"), Decimal("0.2")], Decimal("0.3")),
    (wr.Sum(), [Decimal("9" * 76)], Decimal("9" * 76)),
    (wr.Mean(), [1, 2], 1.5),
    (wr.GeometricMean(), [10**400, 1], 1e200),
    (wr.GeometricMean(), [10**400], INF),
    (wr.GeometricMean(), [Decimal("1e70"), Decimal("1e-70")], 1.0),
    # what pandas and NumPy have for missing
    (wr.Max(), [np.datetime64("NaT"), np.datetime64("2024-01-01")], np.datetime64("2024-01-01")),
    (wr.Count("x"), [pd.NaT, pd.NA, 1], 1),
    # texts
    (wr.Concat(separator=", "), ["a", None, np.str_("b")], "a, b"),
    (wr.Concat(), [b"a", b"b"], b"ab"),
    # rows as mappings, where columns are named
    (wr.Count("x"), [{"x": None}, {"x": 1}], 1),
    (wr.Max("x"), [{"x": 3, "y": 9}, {"x": 5, "y": 0}], 5),
    (wr.ArgMax("n", "x"), [{"n": "a", "x": 3}, {"n": "b", "x": 5}], "b"),
]  # fmt: skip


@pytest.mark.parametrize(("aggregate", "values", "expected"), TABLE, ids=repr)
def test_literal_answers(aggregate: wr.Aggregate, values: list[Any], expected: Any) -> None:
    for algorithm in (Recalc, TwoStacksLite, DabaLite):
        window = algorithm(aggregate)
        window.insert(values[0] if values else None)  # what leaves must not matter
        window.evict()
        for value in values:
            window.insert(value)
        found = window.query()
        if isinstance(aggregate, wr.GeometricMean) and found is not None:
            assert found == pytest.approx(expected, rel=1e-13)
        else:
            assert equal(found, expected), (algorithm, found)


def test_nested_several_is_the_same_empty_and_all_missing() -> None:
    inner = wr.Several(wr.Sum("a"), wr.Count("a")).alias("in")
    window = DabaLite(wr.Several(inner, wr.Max("b")))
    empty = window.query()
    window.insert({"a": None, "b": None})
    assert window.query() == empty == {"in": {"a_sum": None, "a_count": 0}, "b_max": None}


def test_an_answer_is_the_callers_own() -> None:
    window = DabaLite(wr.Several(wr.Sum(), wr.Count()))
    window.insert(1)
    window.query()["sum"] = 99
    assert window.query() == {"sum": 1, "count": 1}


def test_several_needs_all_columns_named_or_none() -> None:
    with pytest.raises(BadSpecification, match=r"Max\(\) names no column"):
        wr.Several(wr.Sum("a"), wr.Max())


def test_a_refused_row_decides_nothing() -> None:
    window = DabaLite(wr.Several(wr.Max("a"), wr.Sum("b")))
    with pytest.raises(BadValue):
        window.insert({"a": "x", "b": "bad"})
    window.insert({"a": 1, "b": 1})
    assert window.query() == {"a_max": 1, "b_sum": 1}


def test_a_cleared_window_takes_any_kind() -> None:
    window = DabaLite(wr.Max())
    window.insert("x")
    window.clear()
    window.insert(3)
    assert window.query() == 3


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        (wr.Max(), Decimal("NaN")),
        (wr.Sum(), Decimal("NaN")),
        (wr.Sum(), np.longdouble("1e4000")),
        (wr.Sum(), Fraction(10**400)),
        (wr.Sum(), "1"),
        (wr.Concat(), 1),
    ],
    ids=repr,
)
def test_values_that_are_refused(aggregate: wr.Aggregate, value: Any) -> None:
    if isinstance(value, np.longdouble) and np.isinf(value):
        pytest.skip("long double is double on this platform")
    window = DabaLite(aggregate)
    with pytest.raises(BadValue):
        window.insert(value)
    assert len(window) == 0


def test_bits_beyond_a_word_say_what_helps() -> None:
    with pytest.raises(BadValue, match="view a column of uint64 as int64"):
        DabaLite(wr.BitOr()).insert(2**64 - 1)


def test_overflow_messages_stay_short() -> None:
    window = DabaLite(wr.Sum())
    window.insert(10**5000)
    with pytest.raises(SumOverflow, match=r"about 2\*\*16610"):
        window.query()
    decimals = DabaLite(wr.Sum())
    for _ in range(2):
        decimals.insert(Decimal("9" * 76))
    with pytest.raises(SumOverflow, match="76 digits"):
        decimals.query()


def test_promises_that_would_give_wrong_answers_are_caught() -> None:
    class NewObject(wr.Aggregate):
        selective = True
        combine = staticmethod(lambda a, b: (max(a[0], b[0]),))

    window = wr.windows.MonotoneDeque(NewObject())
    window.insert((1,))
    with pytest.raises(wr.errors.InvariantBroken, match="promises selective"):
        window.insert((0,))

    class RoundedTotal(wr.Aggregate):
        identity = 0
        invertible = True
        combine = staticmethod(lambda a, b: a + b)
        inverse = staticmethod(lambda total, oldest: total - oldest)

    sliding = wr.Sliding(wr.rows(2), RoundedTotal())
    sliding.insert(3)
    with pytest.raises(BadValue, match="rounding errors stay"):
        sliding.insert(1e16)
    assert sliding.insert(4) == 7
