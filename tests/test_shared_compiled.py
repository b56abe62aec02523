"""Compiled shared windows: every answer is Recalc's, and the paper's bounds hold as counts."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import sharing
from benchmarks.sharing import BATCHES, DRIVERS, GRID, workload
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates import canonical
from windrow.columns.shared import (
    BInt,
    LInt,
    MaterialiseAll,
    MaterialiseNone,
    Quantiles,
    RInt,
    Tree,
)
from windrow.columns.shared.base import Shared
from windrow.columns.shared.cells import no_cells, words
from windrow.columns.shared.l_int import classes_of
from windrow.columns.shared.limbs import rounded
from windrow.columns.shared.methods import METHODS
from windrow.errors import (
    BadBytes,
    BadSpecification,
    InvariantBroken,
    OutOfOrder,
    Refused,
    SumOverflow,
)
from windrow.windows import Recalc
from windrow.windows.compare import close, equal

Make = Callable[..., Shared]
INF, NAN = math.inf, math.nan
EXAMPLES = settings.default.max_examples if settings.default else 100

FLOATS = st.one_of(
    st.none(),
    st.floats(width=64),
    st.floats(-10, 10),
    st.sampled_from([0.0, -0.0, 1.0, INF, -INF, NAN, 5e-324, 1e-310, 1.7e308, -1.7e308, 1e20, 2.0]),
)
TAME = st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.1, 0.25, -0.0, 1e8, 3.0]))
INTEGERS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
)
BOOLS = st.one_of(st.none(), st.booleans())
COLUMNS = st.one_of(*(st.lists(kind, max_size=60) for kind in (FLOATS, TAME, INTEGERS, BOOLS)))

ORDERED: list[wr.Aggregate] = [
    wr.Max(),
    wr.Min(),
    wr.First(),
    wr.Last(),
    wr.MaxCount(),
    wr.Count(),
    wr.Count("x"),
    wr.Max(nan="missing"),
]
TOTALS: list[wr.Aggregate] = [
    wr.Sum(overflow="null"),
    wr.Mean(),
    wr.Variance(),
    wr.Variance(ddof=0),
    wr.StdDev(),
    wr.GeometricMean(),
    wr.Sum(nan="missing", overflow="null"),
    wr.Last(),
    wr.Count(),
]


def recalculated(aggregate: wr.Aggregate, rows: list[Any]) -> Any:
    window = Recalc(aggregate)
    for row in rows:
        window.insert(row)
    return window.query()


def same(aggregate: wr.Aggregate, found: Any, expected: Any) -> bool:
    if type(aggregate) is wr.GeometricMean:
        return close(found, expected)
    if isinstance(found, bool) or isinstance(expected, bool):
        return bool(found == expected)
    return equal(found, expected)


def fed(shared: Shared, rows: list[Any], seed: int, kind: str | None) -> None:
    """Rows in batches of random sizes: lists, Arrow arrays, NumPy arrays, one by one."""
    generator = random.Random(seed)
    at = 0
    while at < len(rows):
        part = rows[at : at + generator.choice([1, 2, 5, 30])]
        at += len(part)
        how = generator.randrange(4)
        if how == 0:
            for row in part:
                shared.insert(row)
        elif how == 1 and kind is not None:
            shared.insert_many(pa.chunked_array([pa.array(part, kind)]))
        elif how == 2 and kind is not None and None not in part:
            shared.insert_many(np.array(part, "int64" if kind == "int64" else kind))
        else:
            shared.insert_many(part)


def kind_of(rows: list[Any]) -> str | None:
    for row in rows:
        if row is not None:
            return {bool: "bool", int: "int64", float: "float64"}[type(row)]
    return None


def check(
    shared: Shared, aggregate: wr.Aggregate, rows: list[Any], ranges: list[tuple[int, int]]
) -> None:
    lefts, rights = [a for a, _ in ranges], [b for _, b in ranges]
    found = shared.lookup_many(lefts, rights).to_pylist()
    for left, right, answer in zip(lefts, rights, found, strict=True):
        expected = recalculated(aggregate, rows[left : right + 1])
        assert same(aggregate, answer, expected), (left, right, rows[left : right + 1])
    shared.check_invariants()


def some_ranges(active: range, seed: int) -> list[tuple[int, int]]:
    generator = random.Random(seed)
    ranges = [(active.start, active.stop - 1)] if len(active) else []
    for _ in range(6 if len(active) else 0):
        a, b = generator.choice(active), generator.choice(active)
        ranges.append((min(a, b), max(a, b)))
    return ranges


@pytest.mark.parametrize("structure", [BInt, Tree, MaterialiseNone])
@settings(max_examples=EXAMPLES * 60 // 100)
@given(COLUMNS, st.data(), st.sampled_from([None, 1, 5, 16]), st.integers(0, 99))
def test_any_associative_aggregate(
    structure: Make, rows: list[Any], data: st.DataObject, longest: int | None, seed: int
) -> None:
    aggregate = data.draw(st.sampled_from(ORDERED if structure is BInt else ORDERED[:2]))
    shared = structure(aggregate, longest)
    fed(shared, rows, seed, kind_of(rows))
    assert len(shared) == min(len(rows), longest or len(rows))
    assert shared.active == range(len(rows) - len(shared), len(rows))
    check(shared, aggregate, rows, some_ranges(shared.active, seed))
    again = type(shared).from_bytes(shared.to_bytes(), aggregate)
    assert again.active == shared.active
    check(again, aggregate, rows, some_ranges(shared.active, seed + 1))


@settings(max_examples=EXAMPLES * 150 // 100)
@given(COLUMNS, st.sampled_from(TOTALS), st.sampled_from([None, 1, 5, 16]), st.integers(0, 99))
def test_totals_are_subtracted_exactly(
    rows: list[Any], aggregate: wr.Aggregate, longest: int | None, seed: int
) -> None:
    shared = RInt(aggregate, longest)
    fed(shared, rows, seed, kind_of(rows))
    check(shared, aggregate, rows, some_ranges(shared.active, seed))
    assert shared.stored_partials() == len(shared) + 1
    again = RInt.from_bytes(shared.to_bytes(), aggregate)
    assert again.active == shared.active
    check(again, aggregate, rows, some_ranges(shared.active, seed + 1))


@pytest.mark.parametrize("structure", [BInt, Tree, MaterialiseNone])
@settings(max_examples=EXAMPLES * 30 // 100)
@given(st.lists(st.one_of(INTEGERS, BOOLS.map(lambda b: None if b is None else int(b)))))
def test_sums_of_integers_in_every_structure(structure: Make, rows: list[Any]) -> None:
    for aggregate in (wr.Sum(overflow="null"), wr.Mean()):
        shared = structure(aggregate, 7)
        fed(shared, rows, 3, "int64")
        check(shared, aggregate, rows, some_ranges(shared.active, 4))


@settings(max_examples=EXAMPLES * 60 // 100)
@given(COLUMNS, st.sampled_from(ORDERED), st.sampled_from([None, 12, 16]), st.integers(0, 99))
def test_landmarks(
    rows: list[Any], aggregate: wr.Aggregate, longest: int | None, seed: int
) -> None:
    shared = LInt(aggregate, longest, widths=[(3, 6), (1, 2), (7, 12)])
    fed(shared, rows, seed, kind_of(rows))
    ranges = [
        (left, left + width - 1)
        for left in list(shared.active)[::3]
        for width in range(1, 13)
        if left + width <= len(rows)
    ]
    check(shared, aggregate, rows, ranges)
    again = LInt.from_bytes(shared.to_bytes(), aggregate)
    check(again, aggregate, rows, ranges[::5])
    suffix = LInt(aggregate, widths=range(1, 13), suffix=True)
    fed(suffix, rows, seed, kind_of(rows))
    last = len(rows)
    check(suffix, aggregate, rows, [(last - w, last - 1) for w in range(1, min(12, last) + 1)])


def test_materialised() -> None:
    rows = [random.Random(1).randrange(-9, 9) for _ in range(50)]
    shared = MaterialiseAll(wr.Sum(), widths=range(1, 11))
    for n, row in enumerate(rows, 1):
        shared.insert(row)
        for width in range(1, 11):
            left = max(0, n - width)
            assert shared.lookup(left, n - 1) == sum(rows[left:n])
    shared.check_invariants()
    again = MaterialiseAll.from_bytes(shared.to_bytes(), wr.Sum())
    assert again.lookup(43, 49) == sum(rows[43:])
    with pytest.raises(BadSpecification, match="widths named"):
        shared.lookup(41, 48)


MIXED: list[tuple[Make, wr.Aggregate, dict[str, Any]]] = [
    *((BInt, aggregate, {}) for aggregate in (*ORDERED, wr.Sum(overflow="null"), wr.Mean())),
    *((RInt, aggregate, {}) for aggregate in TOTALS),
    *((LInt, aggregate, {"widths": range(1, 17)}) for aggregate in ORDERED),
    (LInt, wr.Max(), {"widths": range(1, 17), "suffix": True}),
    (MaterialiseNone, wr.Max(), {}),
    (Tree, wr.Max(), {}),
    (MaterialiseAll, wr.Count("x"), {"widths": range(1, 17)}),
]


@settings(max_examples=EXAMPLES * 80 // 100)
@given(COLUMNS, st.sampled_from(MIXED), st.sampled_from([None, 1, 5, 16]), st.randoms())
def test_mixed_batches(
    rows: list[Any], made: tuple[Make, wr.Aggregate, dict[str, Any]], longest: Any, chance: Any
) -> None:
    """Rows and lookups in one call: what each would have been told as soon as its rows were there.

    Batches of any size, over the ends of rings; every structure, every aggregate.
    """
    structure, aggregate, options = made
    if options:
        longest = 16
    if type(aggregate) in (wr.Sum, wr.Mean) and structure is BInt:
        rows = [None if row is None else int(min(max(row, -9), 9)) for row in rows if row == row]
    shared = structure(aggregate, longest, **options)
    kind, at = kind_of(rows), 0
    while at < len(rows):
        size = chance.choice([0, 1, 2, 7, 30])
        part = rows[at : at + size]
        first, before = shared.active.start, at
        at += len(part)
        ends = [chance.randrange(max(before - 1, 0), at) for _ in range(9)] if at else []
        ranges = [
            (chance.randrange(max(first, right + 1 - (longest or at)), right + 1), right)
            for right in ends
        ]
        if structure is MaterialiseAll:  # fewer rows than a window has are all rows there are
            ranges = [(max(0, right - 15), right) for right in ends]
        values = pa.array(part, kind) if kind is not None and chance.random() < 0.5 else part
        asked = [a for a, _ in ranges], [b for _, b in ranges]
        found = shared.answer(values, *asked).to_pylist()
        for (left, right), answer in zip(ranges, found, strict=True):
            expected = recalculated(aggregate, rows[left : right + 1])
            assert same(aggregate, answer, expected), (left, right, rows[left : right + 1])
        assert shared.active == range(at - len(shared), at)
        shared.check_invariants()
    again = type(shared).from_bytes(shared.to_bytes(), aggregate)
    check(again, aggregate, rows, [] if options else some_ranges(shared.active, 1))


def test_long_mixed_batches() -> None:
    generator = np.random.default_rng(6)
    values = generator.integers(-1000, 1000, 20_000)
    totals = np.concatenate([[0], np.cumsum(values)])
    for shared in (BInt(wr.Sum(), 1024), RInt(wr.Sum(), 1024)):
        shared.insert_many(values[:2000], at=np.arange(2000))
        for start, end in ((2000, 2100), (2100, 15_000), (15_000, 20_000)):
            rights = generator.integers(start - 1, end, 3000)
            lefts = rights - generator.integers(0, 1024, 3000)
            lefts = np.maximum(lefts, start - 1024)
            found = shared.answer(values[start:end], lefts, rights, at=np.arange(start, end))
            assert found.to_pylist() == (totals[rights + 1] - totals[lefts]).tolist()
        assert shared.query(wr.time(100)) == totals[-1] - totals[-101]
        shared.check_invariants()


def test_mixed_batches_that_are_refused() -> None:
    shared = BInt(wr.Sum(), 4)
    shared.insert_many([1, 2, 3, 4, 5])
    for left, right in ((0, 2), (1, 7), (3, 2), (2, 6)):
        with pytest.raises(BadSpecification, match="rows from 1 on"):
            shared.answer([6, 7], [left], [right])
    with pytest.raises(OutOfOrder, match="row 1 has time 3"):
        BInt(wr.Sum()).answer([1, 2], [0], [1], at=[4, 3])
    assert shared.active == range(1, 5)
    assert shared.answer([6, 7], [3, 1], [6, 2]).to_pylist() == [22, 5]
    with pytest.raises(SumOverflow, match="rows 7 to 8"):
        shared.answer([2**63 - 1, 1], [7, 8], [8, 8])
    assert shared.active == range(5, 9)  # the rows are there
    quantiles = Quantiles(4)
    assert quantiles.answer([1.0, 2.0, 9.0], [0, 0], [2, 1]).to_pylist() == [2.0, 1.5]
    assert quantiles.answer([3.0], [1], [3], 0.0, "lower").to_pylist() == [2.0]


PAIRS = st.lists(st.one_of(st.none(), st.tuples(TAME, FLOATS)), max_size=50)


@settings(max_examples=EXAMPLES * 60 // 100)
@given(PAIRS, st.sampled_from([None, 6]), st.integers(0, 99))
def test_arg_max(pairs: list[Any], longest: int | None, seed: int) -> None:
    rows = [pair if pair is None else (pair[0], pair[1]) for pair in pairs]
    for shared in (BInt(wr.ArgMax(), longest), LInt(wr.ArgMax(), widths=[(1, 60)])):
        shared.insert_many(rows[: len(rows) // 2])
        rest = [row or (None, None) for row in rows[len(rows) // 2 :]]
        shared.insert_many(([a for a, _ in rest], [b for _, b in rest]))
        check(shared, wr.ArgMax(), rows, some_ranges(shared.active, seed))


@settings(max_examples=EXAMPLES * 60 // 100)
@given(COLUMNS, st.sampled_from([None, 1, 6, 16]), st.sampled_from(METHODS), st.integers(0, 99))
def test_quantiles(rows: list[Any], longest: int | None, method: str, seed: int) -> None:
    shared = Quantiles(longest)
    fed(shared, rows, seed, kind_of(rows))
    shared.check_invariants()
    phis = [0.0, 0.1, 0.25, 0.5, 0.7, 0.95, 1.0]
    again = Quantiles.from_bytes(shared.to_bytes())
    for left, right in some_ranges(shared.active, seed):
        held = [x for x in rows[left : right + 1] if x is not None]
        order = sorted(held, key=lambda x: (x != x, x))
        found = shared.lookup_many([left] * 7, [right] * 7, phis, method).to_pylist()
        assert equal(found, again.lookup_many([left] * 7, [right] * 7, phis, method).to_pylist())
        for phi, answer in zip(phis, found, strict=True):
            assert_quantile(answer, order, phi, method)
        for x in [held[0], held[-1]] if held else []:
            below = sum(1 for y in order if (y < x) or (x != x and y == y))
            level = sum(1 for y in order if y == x or (x != x and y != y))
            assert shared.count_below(left, right, x) == below
            assert shared.rank(left, right, x) == below + level
            assert shared.rank_many([left], [right], [x]).to_pylist() == [below + level]
            assert shared.count_below_many([left], [right], [x]).to_pylist() == [below]


def assert_quantile(answer: Any, order: list[Any], phi: float, method: str) -> None:
    if not order:
        assert answer is None
        return
    if method == "lower":
        assert equal(answer, canonical(order[max(math.floor(phi * len(order)), 1) - 1]))
        return
    if not all(map(math.isfinite, order)) or order[-1] - order[0] > 1e300:
        if method in ("higher", "nearest", "inverted_cdf", "closest_observation"):
            assert any(equal(answer, canonical(x)) for x in order)
        return
    options: Any = {"method": method}
    expected = np.quantile(np.array(order, "float64"), phi, **options)
    assert math.isclose(answer, expected, rel_tol=1e-12, abs_tol=1e-12 * float(abs(order[-1])))


def test_many_rows_wrap_around() -> None:
    generator = np.random.default_rng(5)
    values = generator.normal(size=20_000)
    valid = generator.random(20_000) > 0.1
    column = pa.array([x if ok else None for x, ok in zip(values, valid, strict=True)])
    aggregate: wr.Aggregate
    for aggregate, structure in ((wr.Max(), BInt), (wr.Sum(), RInt), (wr.StdDev(), RInt)):
        shared = structure(aggregate, 3000)
        for start in range(0, 20_000, 1777):
            shared.insert_many(column[start : start + 1777])
        check(shared, aggregate, column.to_pylist(), some_ranges(shared.active, 3))
    quantiles = Quantiles(3000)
    quantiles.insert_many(column)
    left, right = 17_100, 19_900
    kept = values[left : right + 1][valid[left : right + 1]]
    for phi in (0.0, 0.01, 0.5, 0.99, 1.0):
        assert quantiles.lookup(left, right, phi) == pytest.approx(np.quantile(kept, phi), 1e-14)


def test_other_numbers_need_wider_words() -> None:
    rows = [1.0, 2.0, 1e300, -1e300, 1e-300, 3.0, 5e-324, 1.5]
    shared = RInt(wr.Sum())
    words = []
    for row in rows:
        shared.insert(row)
        assert shared.fixed is not None
        words.append(shared.fixed.words)
        check(shared, wr.Sum(), rows, some_ranges(shared.active, len(words)))
    assert words[0] == 2
    assert words[2] > 10
    short = RInt(wr.Sum(), 2)
    short.insert_many(rows[:4])
    for x in (1.0, 2.0, 1e-300):  # what left the window is not carried on for ever
        short.insert(x)
    assert short.fixed is not None
    assert short.fixed.words < words[-1]
    assert short.lookup(5, 6) == 2.0


# --- the paper's bounds ---------------------------------------------------------------------------


def test_b_int_needs_few_intervals_and_partials() -> None:
    shared = BInt(wr.Max(), 200)
    for n in range(1, 700):
        shared.insert(n)
        assert shared.stored_partials() <= 2 * min(n, 200)
    for left in shared.active:
        for right in range(left, shared.active.stop, 7):
            split = shared.intervals(left, right)
            width = right - left + 1
            assert len(split) - 1 <= 2 * math.log2(width)
            at = left
            for level, number in split:
                assert number << level == at
                at += 1 << level
            assert at == right + 1


def test_the_papers_split_in_its_own_positions() -> None:
    # (1, 43) of positions from 1 on; any split into base intervals in order is right
    assert BInt(wr.Max()).intervals(0, 42) == [(5, 0), (3, 4), (1, 20), (0, 42)]
    assert BInt(wr.Max()).intervals(1, 42) == [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 1),
        (3, 4),
        (1, 20),
        (0, 42),
    ]


def test_l_int_partials_and_the_papers_example() -> None:
    shared = LInt(wr.Sum(), 4000, widths=[(1000, 2000)])
    shared.insert_many(np.arange(10_000))
    assert shared.stored_partials() <= 5 * 4000
    assert shared.lookup(7257, 9164) == sum(range(7257, 9165))
    suffix = LInt(wr.Sum(), widths=range(1, 2049), suffix=True)
    suffix.insert_many(np.arange(10_000))
    assert suffix.stored_partials() <= 5 * 2048
    assert suffix.lookup(9000, 9999) == sum(range(9000, 10_000))
    assert classes_of(range(1, 9)) == [(1, 2), (3, 6), (7, 8)]


def test_integers_are_counted_below_any_number() -> None:
    shared = Quantiles()
    rows = [3, None, 2**63 - 1, -(2**63), 3]
    shared.insert_many(rows)
    for x in (2.5, 3.0, 3.5, NAN, INF, -INF, 1e300, -(2.0**63), 2.0**63, 3, 2**63 - 1):
        held = [row for row in rows if row is not None]
        assert shared.count_below(0, 4, x) == sum(1 for row in held if x != x or row < x)
        assert shared.rank(0, 4, x) == sum(1 for row in held if x != x or row <= x)
    with pytest.raises(BadSpecification, match="none missing"):
        shared.rank_many([0], [1], [None])
    with pytest.raises(BadSpecification, match="2 quantiles"):
        shared.lookup_many([0], [1], [0.1, 0.2])
    with pytest.raises(BadSpecification, match="from 0 to 1"):
        shared.lookup(0, 1, 1.5)
    with pytest.raises(BadSpecification, match="method is one of"):
        shared.lookup(0, 1, 0.5, "middle")


def test_nothing_asked_and_nothing_there() -> None:
    for shared in (BInt(wr.Max()), RInt(wr.Mean()), LInt(wr.Sum(), widths=[3]), Quantiles()):
        assert shared
        assert len(shared) == 0
        assert shared.lookup_many([], []).to_pylist() == []
        shared.insert_many([])
        shared.insert_many(np.empty(0))
        shared.insert_many([None, None, None])
        assert shared.lookup(0, 2) is None
        shared.check_invariants()
        with pytest.raises(BadSpecification):
            shared.lookup(0, 3)


def test_a_wrong_partial_is_found() -> None:
    base, running, sorted_runs = BInt(wr.Max()), RInt(wr.Sum()), Quantiles()
    for shared in (base, running, sorted_runs):
        shared.insert_many(range(10))
        shared.check_invariants()
    base._cells[base._capacity >> 1] += 1
    running._totals[4]["low"] += 1
    sorted_runs._runs[1, 3] += 1
    for shared in (base, running, sorted_runs):
        with pytest.raises(InvariantBroken):
            shared.check_invariants()


def test_quantiles_keep_n_log_n() -> None:
    shared = Quantiles(256)
    shared.insert_many(np.arange(1000))
    assert shared.stored_partials() <= 256 * 9


# --- what is refused ------------------------------------------------------------------------------


def test_overflow_is_an_error_that_names_the_rows() -> None:
    for shared in (RInt(wr.Sum()), BInt(wr.Sum())):
        shared.insert_many([2**63 - 1, 1, -1])
        assert shared.lookup(0, 2) == 2**63 - 1
        with pytest.raises(SumOverflow, match="rows 0 to 1 is 9223372036854775808"):
            shared.lookup(0, 1)


def test_refused() -> None:
    with pytest.raises(Refused, match="no Max"):
        RInt(wr.Max())
    with pytest.raises(Refused, match="no Concat"):
        BInt(wr.Concat())
    with pytest.raises(Refused, match="RInt"):
        BInt(wr.Sum()).insert(0.5)
    with pytest.raises(Refused, match="RInt"):
        BInt(wr.Sum(), dtype="float64")
    for values in (["a"], [2**70], [True, 2], np.array(["2020"], "datetime64[s]")):
        with pytest.raises(Refused, match="object form"):
            BInt(wr.Max()).insert_many(values)
    with pytest.raises(Refused, match="object form"):
        BInt(wr.Max()).insert_many(np.array([2**63], np.uint64))
    shared = BInt(wr.Max())
    shared.insert(1)
    with pytest.raises(Refused, match="dtype"):
        shared.insert(0.5)
    assert len(shared) == 1
    floats = BInt(wr.Max(), dtype="float64")
    floats.insert_many([1, 2])
    with pytest.raises(Refused, match="2\\*\\*53"):
        floats.insert(2**60)
    assert floats.query(wr.rows(9)) == 2.0


@pytest.mark.parametrize("shared", [BInt(wr.Max(), 3), RInt(wr.Count(), 3), Quantiles(3)])
def test_rows_outside_are_an_error(shared: Shared) -> None:
    shared.insert_many([1, 2, 3, 4])
    for left, right in ((0, 1), (2, 4), (3, 2), (-1, 1)):
        with pytest.raises(BadSpecification, match="1 to 3"):
            shared.lookup(left, right)
    with pytest.raises(BadSpecification, match="left ends"):
        shared.lookup_many([1], [2, 3])
    with pytest.raises(BadSpecification, match="whole numbers"):
        shared.lookup_many([1.5], [2.5])


def test_widths_outside_are_an_error() -> None:
    shared = LInt(wr.Max(), widths=[(10, 20)])
    shared.insert_many(range(100))
    with pytest.raises(BadSpecification, match="10 to 20"):
        shared.lookup(11, 13)
    with pytest.raises(BadSpecification, match="10 to 20"):
        shared.lookup(11, 93)
    suffix = LInt(wr.Max(), widths=[(10, 20)], suffix=True)
    suffix.insert_many(range(100))
    with pytest.raises(BadSpecification, match="last row"):
        suffix.lookup(85, 98)
    with pytest.raises(BadSpecification, match="longest"):
        LInt(wr.Max(), 5, widths=[(10, 20)])
    for widths in ([], [(0, 2)], [(5, 3)]):
        with pytest.raises(BadSpecification, match="widths"):
            LInt(wr.Max(), widths=widths)


def test_times() -> None:
    shared = BInt(wr.Sum(), 4)
    shared.insert_many([1, 2, 3, 4, 5], at=[10, 10, 20, 30, 30])
    assert shared.active == range(1, 5)
    assert shared.positions(10, 30) == (2, 5)
    assert shared.positions(-(10**30), 10**30) == (1, 5)
    answers = {
        wr.time(10): 9,
        wr.time(11): 12,
        wr.time(10, closed="both"): 12,
        wr.time(10, closed="left"): 3,
        wr.time(10, closed="neither"): None,
        wr.time(20, ending=10): 5,  # of the two rows at 10, one is not active any more
        wr.time(1000): 14,
        wr.rows(2): 9,
        wr.rows(2, ending=1): 7,
        wr.rows(100): 14,
        wr.rows(1, ending=50): None,
    }
    assert {window: shared.query(window) for window in answers} == answers
    assert shared.query(wr.time(10), now=39) == 9
    assert shared.query(wr.time(10), now=40) is None
    again = BInt.from_bytes(shared.to_bytes(), wr.Sum())
    assert {window: again.query(window) for window in answers} == answers
    with pytest.raises(OutOfOrder, match="row 6 has time 30, but a row before it has 31"):
        shared.insert_many([1, 1], at=[31, 30])
    with pytest.raises(OutOfOrder, match="row 5 has time 29, but a row before it has 30"):
        shared.insert(1, at=29)
    with pytest.raises(BadSpecification, match="without a time"):
        shared.insert(1)
    with pytest.raises(BadSpecification, match="2 rows, but 1 times"):
        shared.insert_many([1, 2], at=[40])
    assert len(shared) == 4
    assert shared.query(wr.rows(2)) == 9
    for window in (wr.time("1h"), wr.rows(3, after=1), wr.time(5, after=1), wr.bounds("a", "b")):
        with pytest.raises(BadSpecification):
            shared.query(window)
    plain = RInt(wr.Sum())
    assert plain.query(wr.rows(3)) is None
    plain.insert(1)
    with pytest.raises(BadSpecification, match="no times"):
        plain.query(wr.time(3))
    with pytest.raises(BadSpecification, match="with a time"):
        plain.insert(1, at=3)


@pytest.mark.parametrize("make", [BInt, RInt])
def test_damaged_bytes_are_refused(make: Make) -> None:
    shared = make(wr.Count("x"), 5)
    shared.insert_many([1, None, 3], at=[1, 2, 2])
    data = shared.to_bytes()
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(BadBytes):
            type(shared).from_bytes(bytes(broken), wr.Count("x"))
    with pytest.raises(BadBytes, match="other sizes"):
        type(shared).from_bytes(data, wr.Count())
    with pytest.raises(BadBytes, match="something else"):
        LInt.from_bytes(data, wr.Count("x"))
    with pytest.raises(BadBytes):
        type(shared).from_bytes(data[:-1], wr.Count("x"))


@pytest.mark.parametrize("floats", [True, False])
def test_mixed_kernels_agree(floats: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drivers of the paper's first experiment give the sums that they should."""
    mix = workload(0.5, 1000, 64, floats)
    rows = list(mix.before)
    expected = []
    for update, value, width in zip(mix.updates, mix.values, mix.widths, strict=True):
        if update:
            rows.append(value)
        else:
            expected.append(math.fsum(rows[-width:]))
    found, answers = no_cells("wide", len(mix.updates)), np.empty(len(mix.updates))
    for name, prepare in DRIVERS.items():
        prepare(mix, "wide")(found)
        rounded(words(found), GRID if floats else 0, answers)
        assert answers[~mix.updates].tolist() == expected, name
    for size in (1, 2, 3, 17, 64, 65, 500, 1024):  # the rings of the last rows wrap around
        monkeypatch.setattr(sharing, "TOGETHER", size)
        for name, prepare in BATCHES.items():
            assert prepare(mix, "wide")(found) == len(expected), name
            rounded(words(found), GRID if floats else 0, answers)
            assert answers[: len(expected)].tolist() == expected, (name, size)
