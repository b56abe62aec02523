"""Aggregates of one's own on columns: compiled only where that says what Python would say."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, index, assignment"
# mypy: disable-error-code="arg-type, attr-defined"
# ruff: noqa: N805

import math
import random
import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from tests.buckets import Stream, plan_of
from tests.test_rolling import check
from windrow.aggregates import EMPTY, Field, Schema
from windrow.columns.own import compile_aggregate
from windrow.errors import WindrowError

TABLE = pa.table(
    {
        "t": [1, 2, 5, 6, 9],
        "x": [1.5, None, -2.0, 3.25, 7.75],
        "size": [0.5, 2.25, 1.0, None, 3.0],
        "i": [1, 2, None, 4, 5],
    }
)
WINDOWS: list[Any] = [wr.rows(2), wr.time(2, closed="left"), wr.rows(2, ending=2)]


class Total(wr.Aggregate):
    identity = 0

    def combine(a, b):
        return a + b


class Price(wr.Aggregate):
    identity = (0.0, 0)

    def lift(price, size):
        return (price * size, size)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):
        return p[0] / p[1]


class Either(wr.Aggregate):
    identity = False

    def combine(a, b):
        return a or b


@pytest.mark.parametrize(
    "aggregate", [Total("x"), Total("i"), Price("x", "size"), Price("x", "i"), Either("i")]
)
def test_floats_are_not_cut_to_the_integers_of_an_identity(aggregate: Any) -> None:
    spec = wr.Rolling(time="t", windows=WINDOWS, aggregates=[aggregate])
    check(spec, TABLE)
    text = spec.explain(TABLE)
    assert ("interpreted: lift makes" in text) == (type(aggregate) is Either)


class Part(NamedTuple):
    total: float
    rows: int


class WithNames(wr.Aggregate):
    identity = Part(0.0, 0)

    def lift(x):
        return Part(x, 1)

    def combine(a, b):
        return Part(a.total + b.total, a.rows + b.rows)

    def lower(p):
        return p.total / p.rows


def test_partials_with_names_are_left_to_python() -> None:
    spec = wr.Rolling(time="t", windows=WINDOWS, aggregates=[WithNames("x")])
    check(spec, TABLE)
    assert "its identity is a Part, and only plain tuples are compiled" in spec.explain(TABLE)


class Nothing(Total):
    identity = 0
    empty = 0.5


class Word(Total):
    identity = 0.0
    empty = "no rows"


@pytest.mark.parametrize("least", [0, 1])
def test_what_no_rows_answer(least: int) -> None:
    window = wr.rows(2, ending=2)
    spec = wr.Rolling(windows={"w": window}, aggregates=[Nothing("i")], min_rows=least)
    assert "compiled" in spec.explain(TABLE)
    without = None if least else 0.5
    assert spec(TABLE)["i_nothing_w"].to_pylist() == [without, without, 1, 3, 2]
    kinds = {spec(TABLE.slice(0, rows)).schema.types[-1] for rows in (0, 2, 5)}
    assert kinds == {pa.int64() if least else pa.float64()}


def test_what_no_rows_answer_may_be_a_text() -> None:
    spec = wr.Rolling(windows=[wr.rows(1, ending=5)], aggregates=[Word("x")])
    assert spec(TABLE)["x_word_1rows_ending_5"].to_pylist() == ["no rows"] * 5


class Average(wr.Aggregate):
    """Of all rows but one: there must be two."""

    identity = (0.0, 0)
    answer_type = "double"

    def lift(x):
        return (x, 1)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):
        if p[1] < 2:
            raise ValueError("too few rows")
        return p[0] / (p[1] - 1)


class Averaged(Average):
    """The same, by Python."""

    identity = EMPTY
    schema = Schema((Field("total", "float64"), Field("rows", "int64")))


@pytest.mark.parametrize("kind", [Average, Averaged])
def test_functions_see_no_fewer_rows_than_are_asked_for(kind: Any) -> None:
    wanted = [None, None, None, 1.25, 11.0]
    windows = {"w": wr.time(4), "old": wr.time(4, ending=100)}
    spec = wr.Rolling(time="t", windows=windows, aggregates=[kind("x")], min_rows=2)
    assert spec(TABLE).columns[-2].to_pylist() == wanted
    assert spec(TABLE).columns[-1].to_pylist() == [None] * 5
    stream = Stream(plan_of(spec, TABLE.schema))
    for place, time in enumerate(TABLE["t"].to_pylist()):
        stream.turn(TABLE.slice(place, 1), time)
    stream.end()
    assert stream.found().columns[-2].to_pylist() == wanted


class Given(wr.Aggregate):
    """An instance brings its own function."""

    identity = 0.0

    def __init__(self, column: str, function: Any) -> None:
        super().__init__(column)
        self.combine = function

    def combine(a, b):
        raise NotImplementedError


def test_functions_of_instances_are_compiled_for_each() -> None:
    for function in (lambda a, b: a + b, lambda a, b: a + b + a * b):
        made = compile_aggregate(Given("x", function), (np.dtype(np.float64),), False)
        assert made.module is not None
        assert made.module.combine(2.0, 3.0) == function(2.0, 3.0)


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (type("Odd", (Word,), {"answer_type": float})("x"), "answer_type is a type of Arrow's"),
        (Total("large"), "an answer is an integer of more than 64 bits: let lower() make floats"),
    ],
)
def test_answers_that_cannot_be(aggregate: Any, says: str) -> None:
    table = TABLE.append_column("large", pa.array([2**63] * 5, pa.uint64()))
    with pytest.raises(WindrowError, match=re.escape(says)):
        wr.Rolling(windows=[wr.rows(2)], aggregates=[aggregate])(table)


SHARE = np.float64(0.5)


def test_arrays_and_numbers_of_numpy_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([2.0, 1.0])

    class Weighed(Total):
        identity = 0.0

        def lift(x):
            return x * weights[0] * SHARE

    spec = wr.Rolling(windows=[wr.rows(1)], aggregates=[Weighed("x")])
    assert "compiled" in spec.explain(TABLE)
    assert spec(TABLE)["x_weighed_1rows"][0].as_py() == 1.5
    weights[0] = 6.0
    assert spec(TABLE)["x_weighed_1rows"][0].as_py() == 4.5
    monkeypatch.setitem(globals(), "SHARE", np.float64(1.0))
    assert spec(TABLE)["x_weighed_1rows"][0].as_py() == 9.0


@pytest.mark.parametrize("nan", ["value", "missing"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.bool_(), pa.uint64()])
def test_longest_runs_are_compiled(kind: pa.DataType, nan: Any) -> None:
    chance = random.Random(str(kind))
    odd = [math.nan, -0.0, math.inf] if kind == pa.float64() else [0, 1, 1]
    plain = [0, 1] if kind == pa.bool_() else [0, 1, 2, 3, 2**53, 2**53 + 1]
    rows = chance.choices([*odd, *plain, None], k=80)
    values = [None if x is None else float(x) if kind == pa.float64() else int(x) for x in rows]
    if kind == pa.bool_():
        values = [None if x is None else bool(x) for x in values]
    table = pa.table({"x": pa.array(values, kind, from_pandas=False)})
    spec = wr.Rolling(windows=[wr.rows(9)], aggregates=[wr.LongestRun("x", nan=nan)])
    window = wr.Sliding(wr.rows(9), wr.LongestRun(nan=nan), algorithm="Recalc")
    assert spec(table)["x_longest_run_9rows"].to_pylist() == [window.insert(x) for x in values]
    assert "compiled" in spec.explain(table)
