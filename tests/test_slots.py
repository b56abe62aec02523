"""Slots: stand-ins answer as their rows do, however the rows were grouped when they were folded."""

# mypy: disable-error-code="misc,arg-type,index"

import json
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.tables import expected
from windrow.aggregates.schema import Field, Schema
from windrow.columns.arranged import Arranged, Piece, answer, fold, lifted, slots_of
from windrow.columns.forms import Form, form_of
from windrow.columns.partial_slots import OwnSlot, PythonSlot
from windrow.columns.slots import InputSlot, PickSlot, RowsSlot
from windrow.columns.sum_slots import MonomialSlot, PowerSlot, TotalSlot
from windrow.testing.strategies import FLOATS
from windrow.windows.compare import equal, same


class LongestText(wr.Aggregate):
    """The longest text and how many there were: no number, so Python combines it."""

    schema = Schema((Field("text", "value"), Field("count", "int64")))
    reproducible = True

    def lift(s):  # type: ignore[no-untyped-def]  # noqa: N805
        return (s, 1)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] if len(a[0]) >= len(b[0]) else b[0], a[1] + b[1])

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return f"{p[0]} of {p[1]}"


class FirstAndLast(wr.Aggregate):
    """Order matters, and it is compiled."""

    identity = (0, 0, False)
    reproducible = True

    def lift(i):  # type: ignore[no-untyped-def]  # noqa: N805
        return (i, i, True)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] if a[2] else b[0], b[1] if b[2] else a[1], a[2] or b[2])

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return p[0] // 2 - p[1] // 2


SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "n": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
        "p": pa.float64(),
        "i": pa.int64(),
        "j": pa.int32(),
        "d": pa.decimal128(20, 4),
        "s": pa.string(),
        "b": pa.bool_(),
        "f": pa.float32(),
    }
)
FORMS: dict[str, tuple[Any, type | None]] = {
    "count": (wr.Count(), None),
    "count of floats": (wr.Count("x"), None),
    "count without NaN": (wr.Count("x", nan="missing"), None),
    "sum": (wr.Sum("x"), TotalSlot),
    "sum without NaN": (wr.Sum("x", nan="missing"), TotalSlot),
    "mean": (wr.Mean("x"), TotalSlot),
    "sum of small floats": (wr.Sum("f"), TotalSlot),
    "sum of integers": (wr.Sum("i", overflow="null"), TotalSlot),
    "mean of integers": (wr.Mean("i"), TotalSlot),
    "sum of truths": (wr.Sum("b"), TotalSlot),
    "geometric mean": (wr.GeometricMean("p"), TotalSlot),
    "variance": (wr.Variance("y"), PowerSlot),
    "variance of anything": (wr.Variance("x"), PowerSlot),
    "deviation without NaN": (wr.StdDev("x", ddof=0, nan="missing"), PowerSlot),
    "deviation of integers": (wr.StdDev("i"), PowerSlot),
    "sum of decimals": (wr.Sum("d"), PythonSlot),
    "mean of decimals": (wr.Mean("d"), PythonSlot),
    "min": (wr.Min("x"), PickSlot),
    "max": (wr.Max("x"), PickSlot),
    "max without NaN": (wr.Max("x", nan="missing"), PickSlot),
    "max of texts": (wr.Max("s"), PickSlot),
    "min of decimals": (wr.Min("d"), PickSlot),
    "max of integers": (wr.Max("i"), PickSlot),
    "max of truths": (wr.Max("b"), PickSlot),
    "first": (wr.First("x"), PickSlot),
    "last": (wr.Last("s"), PickSlot),
    "last without NaN": (wr.Last("x", nan="missing"), PickSlot),
    "arg max": (wr.ArgMax("n", "j"), PickSlot),
    "arg max of floats": (wr.ArgMax("n", "x"), PickSlot),
    "arg max of texts": (wr.ArgMax("x", "s"), PickSlot),
    "max count": (wr.MaxCount("j"), PythonSlot),
    "min count": (wr.MinCount("j"), PythonSlot),
    "arg min of floats": (wr.ArgMin("n", "x"), PickSlot),
    "all": (wr.All("b"), PickSlot),
    "any": (wr.Any("b"), PickSlot),
    "spread": (wr.Spread("x"), PickSlot),
    "spread of integers": (wr.Spread("i", overflow="null"), PickSlot),
    "spread of decimals": (wr.Spread("d"), PythonSlot),
    "relative variation": (wr.RelativeVariation("x"), PickSlot),
    "relative variation of integers": (wr.RelativeVariation("i"), PickSlot),
    "product": (wr.Product("x"), OwnSlot),
    "product of integers": (wr.Product("j", overflow="null"), OwnSlot),
    "product of decimals": (wr.Product("d"), PythonSlot),
    "bits of all": (wr.BitAnd("i"), OwnSlot),
    "bits of any": (wr.BitOr("j"), OwnSlot),
    "bits of an odd number": (wr.BitXor("i"), OwnSlot),
    "covariance": (wr.Covariance("x", "y"), MonomialSlot),
    "covariance with integers": (wr.Covariance("y", "i", ddof=0), MonomialSlot),
    "correlation": (wr.Correlation("y", "f"), MonomialSlot),
    "slope": (wr.Slope("y", "n"), MonomialSlot),
    "slope of decimals": (wr.Slope("d", "n"), PythonSlot),
    "weighted mean": (wr.WeightedMean("x", "p"), MonomialSlot),
    "skewness": (wr.Skewness("y"), MonomialSlot),
    "skewness without NaN": (wr.Skewness("x", population=True, nan="missing"), MonomialSlot),
    "kurtosis": (wr.Kurtosis("y"), MonomialSlot),
    "kurtosis of integers": (wr.Kurtosis("i", population=True), MonomialSlot),
    "concat": (wr.Concat("s"), PythonSlot),
    "median": (wr.Median("x"), InputSlot),
    "rank": (wr.Rank("j", nan="missing"), InputSlot),
    "distinct texts": (wr.Distinct("s"), InputSlot),
    "own, compiled": (GeoMean("p"), OwnSlot),
    "own, compiled, in order": (FirstAndLast("i"), OwnSlot),
    "own, interpreted": (LongestText("s"), PythonSlot),
}
INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9))
ODD_FLOATS = st.sampled_from(
    [
        *(0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, -3e-310),
        *(1e16, 1.0, -1e16, 1e-10, 1e10, 1e308, -1e308, 1.7e308),
        *(2.0**1000, 2.0**1000 * (1 + 2**-52)),
    ]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "x": st.one_of(FLOATS, ODD_FLOATS),
    "y": st.floats(-1e3, 1e3),
    "p": st.floats(0.01, 100.0),
    "i": INT64,
    "j": st.integers(0, 3),
    "d": st.decimals(Decimal(-(10**9)), Decimal(10**9), places=4),
    "s": st.text("abé", max_size=3),
    "b": st.booleans(),
    "f": st.floats(width=32),
}


@st.composite
def tables(draw: Any, columns: tuple[str, ...], most: int = 20) -> pa.Table:
    """Rows of up to three keys, in order, some of them without values."""
    size = draw(st.integers(2, most))

    def drawn(values: st.SearchStrategy[Any]) -> list[Any]:
        found: list[Any] = draw(st.lists(values, min_size=size, max_size=size))
        return found

    full = draw(st.booleans())
    data = {"k": drawn(st.integers(0, draw(st.integers(0, 2)))), "n": list(range(size))}
    for name in SCHEMA.names[2:]:
        if name in columns:
            data[name] = drawn(VALUES[name] if full else st.one_of(st.none(), VALUES[name]))
    return table_of(data, size)


def table_of(data: dict[str, list[Any]], size: int) -> pa.Table:
    """A table with all columns, null where nothing is given."""
    nothing = [None] * size
    arrays = [pa.array(data.get(field.name, nothing), field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA)


def piece_of(table: pa.Table, form: Form) -> Piece:
    return lifted(table, ("k",), np.zeros(table.num_rows, np.int64), slots_of([form]))


def asked(pieces: list[Piece], form: Form, least: int = 0) -> dict[int, Any]:
    """Every key's answer over all pieces: that of a later row, whose window does not hold it."""
    keys = pa.array(sorted({k for p in pieces for k in p.keys[0].to_pylist()}), pa.int64())
    rows = pa.table(
        [keys, *(pa.nulls(len(keys), f.type) for f in list(SCHEMA)[1:])], names=SCHEMA.names
    )
    new = lifted(rows, ("k",), np.full(len(keys), 10, np.int64), slots_of([form]))
    arranged = Arranged(pieces, new, np.arange(len(keys) + 1))
    found, overflows = answer(form, arranged, arranged.reach(-20, 0), least)
    assert overflows == 0 or type(form.aggregate) in (wr.Sum, wr.Spread, wr.Product)
    return dict(zip(keys.to_pylist(), found.to_pylist(), strict=True))


GROUPINGS: dict[str, Callable[[Piece, Piece, Callable[..., Piece]], list[Piece]]] = {
    "rows": lambda a, b, f: [a, b],
    "a": lambda a, b, f: [f(a), b],
    "b": lambda a, b, f: [a, f(b)],
    "each": lambda a, b, f: [f(a), f(b)],
    "both": lambda a, b, f: [f(a, b)],
    "each, then both": lambda a, b, f: [f(f(a), f(b))],
    "again": lambda a, b, f: [f(f(f(a), b))],
}


@pytest.mark.parametrize("name", FORMS)
@given(st.data())
@examples(30)
def test_folded_rows_answer_as_rows_do(name: str, data: Any) -> None:
    aggregate, kind = FORMS[name]
    form = form_of(aggregate, SCHEMA)
    assert (type(form.slot) if form.slot is not None else None) is kind
    table = data.draw(tables(aggregate.columns))
    cut = data.draw(st.integers(1, table.num_rows - 1))
    least = data.draw(st.integers(0, 2))
    slots = slots_of([form])
    parts = piece_of(table.slice(0, cut), form), piece_of(table.slice(cut), form)
    spec = wr.Rolling(key="k", windows=[wr.rows(1)], aggregates=[aggregate], min_rows=least)
    rows = table.to_pylist()
    wanted = {
        key: expected(rows, spec, aggregate, [i for i, row in enumerate(rows) if row["k"] == key])
        for key in {row["k"] for row in rows}
    }
    for grouping, arrange in GROUPINGS.items():
        pieces = arrange(*parts, lambda *some: fold(some, slots))
        found = asked(pieces, form, least)
        for key, want in wanted.items():
            good = same(aggregate, found[key], want)
            assert good, f"{grouping}: key {key} has {found[key]!r}, expected {want!r}"


def bits(array: pa.Array) -> list[Any]:
    return [repr(value) for value in array.to_pylist()]


@pytest.mark.parametrize("name", FORMS)
@given(st.data())
@examples(15)
def test_folding_a_fold_changes_nothing(name: str, data: Any) -> None:
    """One entry for every key or few, nothing but nulls where there was no row."""
    aggregate, _ = FORMS[name]
    form = form_of(aggregate, SCHEMA)
    slots = slots_of([form])
    table = data.draw(tables(aggregate.columns))
    once = fold([piece_of(table, form)], slots)
    twice = fold([once], slots)
    assert twice.size <= once.size
    for slot in slots:
        if isinstance(slot, RowsSlot | PickSlot | OwnSlot) and once.size == twice.size:
            for a, b in zip(once.slots[slot.name], twice.slots[slot.name], strict=True):
                assert bits(a) == bits(b)
    counts = dict.fromkeys(table["k"].to_pylist(), 0)
    rows = zip(once.keys[0].to_pylist(), once.slots[form.rows.name][0].to_pylist(), strict=True)
    for key, number in rows:
        counts[key] += number or 0
    for key, number in counts.items():
        own = table.filter(pa.array([k == key for k in table["k"].to_pylist()]))
        assert number == present(own, aggregate)


def present(table: pa.Table, aggregate: wr.Aggregate) -> int:
    rows = zip(*(table[c].to_pylist() for c in aggregate.columns), strict=True)
    skip = aggregate.nan == "missing"
    full = [row for row in rows if None not in row and not (skip and any(v != v for v in row))]
    return len(full) if aggregate.columns else table.num_rows


# --- totals --------------------------------------------------------------------------------------


def stand_ins(values: list[Any], cuts: list[int], kind: pa.DataType) -> list[list[Any]]:
    """A sum's stand-ins for every run of values between cuts."""
    slot = TotalSlot(wr.Sum("x"))
    offsets = np.array([0, *sorted(cuts), len(values)], np.int64)
    (found,), counts = slot.fold([pa.array(values, kind)], offsets)
    ends = np.cumsum(counts)
    assert len(found) == ends[-1]
    return [found[end - n : end].to_pylist() for n, end in zip(counts, ends, strict=True)]


FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e10, 1e10),
    st.floats(-1e-300, 1e-300),
    st.sampled_from([1e16, 1.0, -1e16, 5e-324, -5e-324, 0.0, -0.0, 1e308, -1e308, 1.7e308]),
)


@given(st.lists(st.one_of(st.none(), FINITE), max_size=50), st.lists(st.integers(0, 50)))
@example([1e16, 1.0, -1e16], [])
@example([1e308] * 10 + [-1e308] * 9, [])
@example([5e-324] * 7 + [1.0, -1.0], [])
@example([None, None], [1])
@examples(300)
def test_stand_ins_have_the_exact_sum_of_their_rows(
    values: list[float | None], cuts: list[int]
) -> None:
    cuts = [min(cut, len(values)) for cut in cuts]
    borders = [0, *sorted(cuts), len(values)]
    for found, low, high in zip(
        stand_ins(values, cuts, pa.float64()), borders, borders[1:], strict=False
    ):
        rows = [value for value in values[low:high] if value is not None]
        assert sum(map(Fraction, found)) == sum(map(Fraction, rows))
        assert bool(found) == bool(rows)
        assert len(found) <= len(rows)


@given(st.lists(st.floats(-1e10, 1e10), min_size=1, max_size=200))
def test_alike_numbers_take_few_words(values: list[float]) -> None:
    """34 binary digits above 1 and 53 + 8 below those: whatever is below 1e-10 is a word more."""
    values = [value if abs(value) > 1e-10 else 0.0 for value in values]
    assert len(stand_ins(values, [], pa.float64())[0]) <= 6


@given(
    st.lists(st.one_of(FINITE, ODD_FLOATS), min_size=1, max_size=40).filter(
        lambda values: not np.isfinite(values).all()
    )
)
def test_what_is_not_finite_stands_for_all(values: list[float]) -> None:
    (found,) = stand_ins(values, [], pa.float64())
    nan = any(value != value for value in values)
    if nan:
        assert equal(found, [float("nan")])
    else:
        infinities = [v for v in (float("inf"), -float("inf")) if v in values]
        assert found == infinities


@given(st.lists(st.one_of(st.none(), INT64), max_size=60))
@example([2**63 - 1] * 30)
@example([-(2**63)] * 30)
@example([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)] * 5)
def test_integers_have_the_sum_of_their_rows(values: list[int | None]) -> None:
    (found,) = stand_ins(values, [], pa.int64())
    rows = [value for value in values if value is not None]
    assert sum(found) == sum(rows)
    assert bool(found) == bool(rows)
    if sum(map(abs, rows)) < 2**63:
        assert len(found) <= 1


def test_a_sum_that_fits_is_one_integer() -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(-(2**63), 2**63 - 1, 1000)
    values = np.concatenate([values, ~values]).tolist()  # the sum is −1000
    generator.shuffle(values)
    assert len(stand_ins(values, [], pa.int64())[0]) <= 2


def test_numbers_near_the_largest_are_folded_too() -> None:
    values = [1e302, *np.random.default_rng(0).standard_normal(1000).tolist()]
    assert len(stand_ins(values, [], pa.float64())[0]) < 100


_DOUBLING = """
import json, numpy as np
from windrow.columns.expansions import shortest
x = np.ldexp(np.random.default_rng(0).uniform(0.5, 1, {size}), np.arange({size}) - 400)
out, counts = np.empty({size} + 1), np.empty(1, np.int64)
size = shortest(x, np.ones({size}, np.bool_), np.array([0, {size}]), out, counts)
print(json.dumps([x.tolist(), out[:size].tolist()]))
"""


@pytest.mark.parametrize(
    "size",
    [
        100,
        700,
    ],
)
def test_numbers_that_double_700_times(size: int) -> None:
    """In a process without compiled code, where writing beyond an array is an IndexError."""
    done = subprocess.run(
        [sys.executable, "-c", _DOUBLING.format(size=size)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values, found = json.loads(done.stdout)
    assert sum(map(Fraction, found)) == sum(map(Fraction, values))


# --- one row for many ----------------------------------------------------------------------------


def picked(aggregate: Any, table: pa.Table) -> list[list[Any]]:
    slot = PickSlot(aggregate)
    form = Form(aggregate, RowsSlot(aggregate), (slot,))
    folded = fold([piece_of(table, form)], [slot])
    return [array.to_pylist() for array in folded.slots[slot.name]]


def test_ties_keep_the_row_that_columns_keep() -> None:
    table = table_of({"k": [0] * 5, "n": [0, 1, 2, 3, 4], "j": [1, 3, None, 3, 1]}, 5)
    assert picked(wr.ArgMax("n", "j"), table) == [[1], [3]]
    assert picked(wr.First("j"), table) == [[1]]
    assert picked(wr.Last("j"), table) == [[1]]
    assert picked(wr.Max("j"), table) == [[3]]
    assert picked(wr.Min("j"), table) == [[1]]
    assert picked(wr.Max("x"), table) == [[]] or picked(wr.Max("x"), table) == [[None]]
    spec = wr.Rolling(windows={"all": wr.rows(9)}, aggregates=[wr.ArgMax("n", "j")])
    assert spec(table)["n_arg_max_all"].to_pylist()[-1] == 1


def test_aggregates_share_slots() -> None:
    forms = [form_of(a, SCHEMA) for a in (wr.Sum("x"), wr.Mean("x"), wr.Count("x"), wr.Max("x"))]
    kinds = [type(slot).__name__ for slot in slots_of(forms)]
    assert sorted(kinds) == ["PickSlot", "RowsSlot", "TotalSlot"]
    others = [form_of(a, SCHEMA) for a in (wr.Sum("x", nan="missing"), wr.Sum("x"))]
    assert len(slots_of(others)) == 4


def answers_of_folded(table: pa.Table, *aggregates: Any) -> list[Any]:
    """Every aggregate's answer over one fold of all rows, with slots shared."""
    forms = [form_of(aggregate, table.schema) for aggregate in aggregates]
    slots = slots_of(forms)
    times = np.zeros(table.num_rows, np.int64)
    piece = fold([lifted(table, (), times, slots)], slots)
    new = lifted(table.slice(0, 1), (), np.array([10]), slots)
    arranged = Arranged([piece], new, np.array([0, 1]))
    ranges = arranged.reach(-20, 0)
    return [answer(form, arranged, ranges, 0)[0].to_pylist()[0] for form in forms]


def test_names_of_columns_may_have_commas() -> None:
    table = pa.table({"a,b": [1.0, None, None], "a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 1.0]})
    assert answers_of_folded(table, wr.Count("a,b"), wr.ArgMax("a", "b")) == [1, 1.0]


def test_unsigned_integers_beyond_int64() -> None:
    table = pa.table({"u": pa.array([2**63 + 5, 7], pa.uint64())})
    assert answers_of_folded(table, wr.Mean("u")) == [float(2**63 + 12) / 2]


@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=10))
def test_own_partials_are_bytes_of_their_schema(texts: list[str]) -> None:
    aggregate = LongestText("s")
    slot = PythonSlot(aggregate)
    (values, partials), counts = slot.fold(
        [pa.array(texts), pa.nulls(len(texts), pa.binary())], np.array([0, len(texts)])
    )
    assert values.null_count == 1
    assert counts.tolist() == [1]
    longest = max(texts, key=len)
    assert aggregate.from_bytes(partials[0].as_py()) == (longest, len(texts))
