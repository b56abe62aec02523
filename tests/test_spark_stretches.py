"""Distributed Two-Stacks without Spark: the workers' functions, fed by hand, equal one call."""

# mypy: disable-error-code="misc,index,operator"

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, STRUCTURES, assert_same
from tests.test_own_columns import Average, Averaged
from tests.test_rolling import FLOATS
from windrow.columns.column import number_column
from windrow.columns.middles import NOTHING, Middle, fold, inserted, needs_lists, stand_ins
from windrow.columns.stretch import OWN, SEGMENT_BITS, Reach, reach_ranges
from windrow.spark.stretches import Layout, Line, reaches_of
from windrow.spark.worker import answer_stretches, fold_batches
from windrow.windows import Recalc
from windrow.windows.compare import equal

WINDOWS: list[Any] = [
    wr.rows(1),
    wr.rows(4),
    wr.rows(1000),
    wr.rows(2, ending=3),
    wr.rows(30, ending=2),
    wr.rows(3, after=2),
    wr.rows(1, after=40),
    wr.time(1),
    wr.time(5),
    wr.time(60),
    wr.time(10**15),
    wr.time(5, closed="left"),
    wr.time(9, closed="both"),
    wr.time(9, closed="neither"),
    wr.time(8, ending=6),
    wr.time(3, ending=70),
    wr.time(3, after=12),
    wr.time(20, after=20, closed="neither"),
]
COMMUTATIVE = [aggregate for aggregate in AGGREGATES if aggregate.commutative]
REPRODUCIBLE = [a for a in (*AGGREGATES, *STRUCTURES) if a.reproducible and a.columns]


class Newest(wr.Aggregate):
    """Order matters, and the state is a pair: how many rows, and the newest of them."""

    identity = (0, 0)

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (1, x)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] + b[0], b[1] if b[0] > 0 else a[1])

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return p[0] * 1000 + p[1]


@st.composite
def tables(draw: Any, most: int = 40) -> pa.Table:
    size = draw(st.integers(1, most))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))  # type: ignore[no-any-return]

    def missing(values: Any) -> Any:
        return st.one_of(st.none(), values)

    whole = column(missing(st.integers(-9, 9)))
    return pa.table(
        {
            "t": pa.array(column(st.integers(-20, 60)), pa.int64()),
            "id": pa.array(draw(st.permutations(range(size))), pa.int64()),
            "x": pa.array(column(missing(FLOATS)), pa.float64()),
            "p": pa.array(column(st.floats(0.5, 2.0)), pa.float64()),
            "f": pa.array(column(st.floats(-9, 9, width=32)), pa.float32()),
            "i": pa.array(whole, pa.int32()),
            "b": pa.array(column(st.booleans()), pa.bool_()),
            "s": pa.array(column(missing(st.sampled_from(["", "a", "é"]))), pa.string()),
            "d": pa.array(whole, pa.int64()).cast(pa.decimal128(21, 2)),
        }
    )


def bucket(axis: Any, borders: list[int]) -> Any:
    return np.searchsorted(np.array(borders), axis, side="right") - 1


def cut(spec: wr.Rolling, table: pa.Table, cuts: list[int]) -> tuple[Layout, pa.Table]:
    """The layout, and the table with every row's place, its own stretch, and its ends."""
    times = table["t"].to_numpy()
    low, high = int(times.min()), int(times.max())
    begins = sorted({low, *(c for c in cuts if low < c <= high)})
    line = Line((), table.num_rows, [*begins, high + 1])
    schema = from_arrow_schema(table.schema)
    layout = Layout([line], reaches_of(spec, schema, high + 1 - low, table.num_rows), "t")
    own = bucket(times, begins)
    line.places = [0, *np.cumsum(np.bincount(own, minlength=len(begins))).tolist()]
    places = np.empty(table.num_rows, np.int64)
    places[np.lexsort((table["id"].to_numpy(), times))] = np.arange(table.num_rows)
    extra: dict[str, Any] = {"hot": np.zeros(len(own), np.int32), "own": own.astype(np.int32)}
    if layout.by_place:
        extra["place"] = places
    for number, reach in enumerate(layout.reaches):
        axis = times if reach.axis == "time" else places
        borders = line.borders(reach.axis)
        extra[f"far_{number}"] = bucket(axis - reach.start, borders).astype(np.int32)
        extra[f"near_{number}"] = bucket(axis - reach.near, borders).astype(np.int32)
    for name, values in extra.items():
        table = table.append_column(f"__windrow_{name}", pa.array(values))
    return layout, table


def batches_of(table: pa.Table, draw: Any) -> list[pa.RecordBatch]:
    return list(table.to_batches(max_chunksize=draw(st.integers(1, 50))))


def composed(spec: wr.Rolling, layout: Layout, table: pa.Table, draw: Any) -> dict[int, Any]:
    """The middles of every stretch, from the pieces that workers send."""
    numbers = [n for n in range(len(layout.reaches)) if layout.needs_middles(n)]
    labels = {n: layout.reaches[n].label for n in numbers}
    ordered = not all(aggregate.commutative for aggregate in spec.aggregates)
    pieces: list[dict[str, Any]] = []
    for stretch in range(layout.stretches if ordered else 1):
        part = table.filter(pa.array(table["__windrow_own"].to_numpy() == stretch))
        for batch in fold_batches(
            spec, batches_of(part if ordered else table, draw), labels, ordered
        ):
            pieces += batch.to_pylist()
    pieces.sort(key=lambda r: (r["own"], r["far"], r["near"]))
    known: dict[int, dict[str, Middle]] = {}
    for row in pieces:
        name, aggregate, _ = spec.outputs[row["output"]]
        piece = Middle(aggregate.from_bytes(row["partial"]), row["rows"])
        for stretch in range(max(0, row["near"] + 1), min(layout.stretches, row["far"])):
            found = known.setdefault(stretch, {})
            found[name] = found.get(name, NOTHING).then(aggregate, piece)
    return {
        stretch: {
            name: (aggregate.to_bytes(found[name].partial), found[name].rows)
            for name, aggregate, _ in spec.outputs
            if name in found and found[name].rows
        }
        for stretch, found in known.items()
    }


def needed_in(stretch: int, layout: Layout, table: pa.Table) -> tuple[Any, Any]:
    """Which rows are sent to a stretch, and what for."""
    roles = np.where(table["__windrow_own"].to_numpy() == stretch, 1 << OWN, 0)
    for number in range(len(layout.reaches)):
        for end in ("far", "near"):
            roles |= (table[f"__windrow_{end}_{number}"].to_numpy() == stretch) * (1 << number)
    return np.flatnonzero(roles), roles[roles > 0]


def distributed(spec: wr.Rolling, table: pa.Table, cuts: list[int], draw: Any) -> pa.Table:
    layout, ready = cut(spec, table, cuts)
    middles = composed(spec, layout, ready, draw)
    line = layout.lines[0]
    parts: list[pa.RecordBatch] = []
    for stretch in range(layout.stretches):
        rows, roles = needed_in(stretch, layout, ready)
        order = np.array(draw(st.permutations(range(len(rows)))), np.int64)
        kept = [n for n in ready.column_names if n in (*table.column_names, "__windrow_place")]
        here = ready.select(kept).take(pa.array(rows[order]))
        packed = roles[order] + (stretch << SEGMENT_BITS)
        here = here.append_column("__windrow_roles", pa.array(packed))
        begins = {stretch: {"time": line.times[stretch], "place": line.places[stretch]}}
        parts += answer_stretches(
            spec,
            batches_of(here, draw),
            layout.reaches,
            begins,
            middles,
            table.column_names,
            spec_kinds(spec, table),
        )
    return pa.Table.from_batches(parts)


def spec_kinds(spec: wr.Rolling, table: pa.Table) -> dict[str, pa.DataType]:
    answers = spec(table)
    return {name: answers.schema.field(name).type for name, _, _ in spec.outputs}


def specification(windows: list[Any], aggregates: list[Any], min_rows: int = 0) -> wr.Rolling:
    return wr.Rolling(time="t", tie="id", windows=windows, aggregates=aggregates, min_rows=min_rows)


some_windows = st.lists(
    st.sampled_from(WINDOWS), min_size=1, max_size=3, unique_by=lambda w: w.label
)
some_cuts = st.lists(st.integers(-20, 60), max_size=7)


@given(tables(), some_windows, some_cuts, st.integers(0, 3), st.data())
@examples(120)
def test_stretches_equal_one_call(
    table: pa.Table, windows: list[Any], cuts: list[int], min_rows: int, data: Any
) -> None:
    spec = specification(windows, AGGREGATES, min_rows)
    assert_same(distributed(spec, table, cuts, data.draw), spec(table), spec)


@given(tables(), some_windows, some_cuts, st.integers(0, 3), st.data())
@examples(40)
def test_structures_equal_one_call(
    table: pa.Table, windows: list[Any], cuts: list[int], min_rows: int, data: Any
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(STRUCTURES), min_size=3, unique_by=id))
    spec = specification(windows, chosen, min_rows)
    assert_same(distributed(spec, table, cuts, data.draw), spec(table), spec)


@given(tables(), some_windows, some_cuts, st.data())
@examples(60)
def test_aggregates_of_ones_own(
    table: pa.Table, windows: list[Any], cuts: list[int], data: Any
) -> None:
    for aggregates, least in (
        ([Newest("i"), GeoMean("p")], 0),
        ([Average("i"), Averaged("i")], 2),  # which raise where there are fewer rows
    ):
        spec = specification(windows, aggregates, least)
        assert_same(distributed(spec, table, cuts, data.draw), spec(table), spec)


@given(tables(), some_windows, some_cuts, st.data())
@examples(60)
def test_commutative_pieces_come_in_any_batches(
    table: pa.Table, windows: list[Any], cuts: list[int], data: Any
) -> None:
    spec = specification(windows, COMMUTATIVE)
    assert_same(distributed(spec, table, cuts, data.draw), spec(table), spec)


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(-5, 25)), st.integers(-9, 9), st.data())
def test_reaches_are_ranges(data: list[int], queries: list[int], start: int, more: Any) -> None:
    data, queries = sorted(data), sorted(queries)
    end = start + more.draw(st.integers(0, 9))
    ranges = reach_ranges(np.array(data, np.int64), np.array(queries, np.int64), start, end)
    for i, query in enumerate(queries):
        inside = [n for n, x in enumerate(data) if query + start <= x < query + end]
        assert ranges.lo is not None
        assert ranges.hi is not None
        assert list(range(ranges.lo[i], ranges.hi[i])) == inside


def test_lengths_beyond_the_span_are_cut() -> None:
    spec = specification(
        [
            *(wr.time(10**15), wr.time(7, ending=10**15), wr.rows(3, after=2)),
            wr.rows(10**18, ending=10**18),
        ],
        [wr.Count()],
    )
    schema = from_arrow_schema(pa.schema({"t": pa.int64(), "id": pa.int64()}))
    found = reaches_of(spec, schema, 50, 20)
    assert found[0] == Reach("1000000000000000", "time", -50, 1)
    assert (found[1].start, found[1].end) == (-57, -50)
    assert (found[2].axis, found[2].start, found[2].end) == ("place", -2, 3)
    assert (found[3].start, found[3].end) == (-41, -20)


@given(tables(), st.lists(st.integers(0, 40), max_size=6))
@examples(60)
def test_fold_is_what_recalc_keeps(table: pa.Table, cuts: list[int]) -> None:
    size = table.num_rows
    offsets = np.array([0, *sorted(min(c, size) for c in cuts), size], np.int64)
    whole = table.set_column(table.column_names.index("b"), "b", table["b"].cast(pa.int8()))
    for aggregate in REPRODUCIBLE:
        columns = [number_column(whole[c].combine_chunks(), c) for c in aggregate.columns]
        booleans = "boolean" in aggregate.input_kinds  # which kernels hold as whole numbers
        given_rows = table if booleans else whole
        lists = [given_rows[c].to_pylist() for c in aggregate.columns]
        rows = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
        given_lists = lists if needs_lists(aggregate, columns) else []
        found = fold(aggregate, columns, given_lists, offsets)
        for middle, start, end in zip(found, offsets[:-1], offsets[1:], strict=True):
            window = Recalc(aggregate)
            for value in rows[start:end]:
                window.insert(value)
            empty = Recalc(aggregate).query()
            answer = aggregate.answer(middle.partial) if middle.rows else empty
            wanted = window.query()
            assert equal(answer, int(wanted) if booleans and wanted is not None else wanted)


@given(st.lists(st.one_of(st.none(), FLOATS), min_size=1, max_size=12), st.integers(0, 12))
def test_stand_ins_sum_to_the_middle(values: list[float | None], place: int) -> None:
    column = number_column(pa.array(values, pa.float64()), "x")
    aggregate = wr.Sum("x")
    middle = fold(aggregate, [column], [], np.array([0, len(values)], np.int64))[0]
    if not middle.rows:
        return
    found = stand_ins(aggregate, middle, [column])
    if found is None:  # beyond the largest float
        assert not math.isfinite(aggregate.answer(middle.partial))
        return
    other = inserted(number_column(pa.array([1.0, 2.0]), "x"), min(place, 2), found[0])
    again = fold(aggregate, [other], [], np.array([0, len(other.values)], np.int64))[0]
    window = Recalc(aggregate)
    for value in (*values, 1.0, 2.0):
        window.insert(value)
    assert equal(aggregate.answer(again.partial), window.query())
