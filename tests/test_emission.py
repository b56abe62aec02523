"""When answers of a stream come out: each way against an oracle of its own, a bucket at a time."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import END, KEYS, Stream, disorder, fitting, plan_of, some, windows
from tests.effort import examples
from tests.emission_oracle import Changes, Immediately
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, near, random_table
from windrow.columns import carried
from windrow.columns.bucket import Bucket
from windrow.errors import BadSpecification, Refused
from windrow.slides import Session, Time
from windrow.windows.compare import equal

OWN = [*AGGREGATES, GeoMean("p")]


def only_times(chosen: dict[str, Any]) -> dict[str, Any]:
    timed = {label: w for label, w in chosen.items() if isinstance(w, Time | Session)}
    passing = any(window.kind != "ever" for window in timed.values())
    return timed if passing else {"plain": wr.time(20), **timed}


def lists(table: pa.Table | None) -> list[list[Any]]:
    return [] if table is None else [list(row.values()) for row in table.to_pylist()]


def assert_rows(found: list[list[Any]], wanted: list[list[Any]], keys: int, loose: bool) -> None:
    """The same rows in any order; they are told apart by their first values."""
    order = [sorted(rows, key=lambda row: repr(row[:keys])) for rows in (found, wanted)]
    assert [row[:keys] for row in order[0]] == [row[:keys] for row in order[1]]
    for got, want in zip(*order, strict=True):
        good = [equal(a, b) or (loose and near(a, b)) for a, b in zip(got, want, strict=True)]
        assert all(good), [
            p for p, g in zip(zip(got, want, strict=True), good, strict=True) if not g
        ]


class Played:
    """A table as it comes, in turns, each with the frontier that Spark would have."""

    def __init__(self, data: Any, table: pa.Table) -> None:
        came, lateness = data.draw(disorder(table))
        sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any))
        times = came["t"].to_numpy()
        self.turns: list[tuple[pa.Table, int | None]] = []
        frontier = None
        place = 0
        while place < came.num_rows:
            size = sizes[len(self.turns) % len(sizes)]
            self.turns.append((came.slice(place, size), frontier))
            place += size
            if place:
                frontier = int(times[:place].max()) - lateness
        beyond = [int(n) + int(times.max()) for n in data.draw(st.lists(st.integers(1, 300)))]
        self.turns += [(came.slice(0, 0), at) for at in sorted(beyond)]
        self.turns.append((came.slice(0, 0), END))


def spec_of(data: Any, **given: Any) -> wr.Rolling:
    return wr.Rolling(
        time="t",
        tie="id",
        min_rows=data.draw(st.integers(0, 2)),
        nan=data.draw(st.sampled_from(["value", "missing"])),
        **given,
    )


def table_of(data: Any, most: int) -> pa.Table:
    span = data.draw(st.sampled_from([5, 100, 600]))
    size, seed = data.draw(st.integers(1, most)), data.draw(st.integers(0, 10**6))
    return random_table(size, keys=data.draw(st.integers(1, 5)), seed=seed, span=span)


# --- ticks ---------------------------------------------------------------------------------------


@given(windows(), some(OWN), st.sampled_from(KEYS), st.integers(1, 40), st.data())
@examples(50)
def test_ticks_are_those_of_the_table(
    chosen: dict[str, Any], aggregates: Any, key: Any, step: int, data: Any
) -> None:
    table = table_of(data, 200)
    origin = data.draw(st.sampled_from([None, 0, 7, -3]))
    timed = only_times(chosen)
    spec = spec_of(
        data,
        key=key,
        windows=timed,
        aggregates=fitting(timed, aggregates),
        every=step,
        origin=origin,
    )
    plan = plan_of(
        spec,
        table.schema,
        segment_rows=data.draw(st.integers(1, 60)),
        step=step,
        origin=origin or 0,
    )
    stream = Stream(plan)
    for rows, frontier in Played(data, table).turns:
        turn = stream.turn(rows, frontier)
        passed = [] if turn.answered is None else turn.answered["t"].to_pylist()
        assert all(frontier is not None and tick < frontier for tick in passed)
    stream.end()
    wanted = spec(table)
    found = [row for answered in stream.answered for row in lists(answered)]
    loose = not all(aggregate.reproducible for aggregate in spec.aggregates)
    assert_rows(found, lists(wanted), len(spec.key) + 1, loose)


def test_ticks_after_a_long_pause_cost_nothing() -> None:
    """Between two runs of rows there are ten thousand million ticks, and no key at any of them."""
    spec = wr.Rolling(time="t", windows=[wr.time(5)], aggregates=[wr.Count()], every=1)
    schema = pa.schema([("t", pa.int64())])
    stream = Stream(plan_of(spec, schema, step=1))
    stream.turn(pa.table({"t": [1, 2]}), None)
    turn = stream.turn(pa.table({"t": [10**10]}), 10**10 + 3)
    assert turn.answered is not None
    assert turn.answered["t"].to_pylist() == [1, 2, 3, 4, 5, 6, 10**10, 10**10 + 1, 10**10 + 2]
    assert turn.answered["count_5"].to_pylist() == [1, 2, 2, 2, 2, 1, 1, 1, 1]
    assert turn.answered_rows == 3
    assert turn.emitted_rows == 9


# --- changes -------------------------------------------------------------------------------------


EXACT = [aggregate for aggregate in AGGREGATES if aggregate.reproducible]


@given(windows(), some(EXACT), st.sampled_from(KEYS), st.data())
@examples(50)
def test_changes_are_how_the_table_of_keys_differs(
    chosen: dict[str, Any], aggregates: Any, key: Any, data: Any
) -> None:
    table = table_of(data, 120)
    spec = spec_of(
        data, key=key, windows=chosen, aggregates=fitting(chosen, aggregates), emit="changes"
    )
    plan = plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60)))
    stream, oracle = Stream(plan), Changes(spec, plan.reaches)
    for rows, frontier in Played(data, table).turns:
        found = lists(stream.turn(rows, frontier).answered)
        assert_rows(found, oracle.turn(rows.to_pylist(), frontier), len(spec.key) + 1, False)
    stream.end()
    assert stream.lasts or stream.head.latest is None


def changes_stream(**given: Any) -> Stream:
    common: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "windows": [wr.time(10)],
        "aggregates": [wr.Max("x")],
        "emit": "changes",
    }
    spec = wr.Rolling(**(common | given))
    return Stream(plan_of(spec, rows_of([]).schema))


def rows_of(rows: Sequence[tuple[str, int, float | None]]) -> pa.Table:
    columns: list[Any] = list(zip(*rows, strict=True)) or [[], [], []]
    kinds = [pa.string(), pa.int64(), pa.float64()]
    arrays = [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=["k", "t", "x"])


def test_unchanged_keys_are_not_written_again() -> None:
    stream = changes_stream()
    first = [("a", 1, 5.0), ("b", 1, 7.0), ("c", 1, None)]
    assert lists(stream.turn(rows_of(first), 2).answered) == [
        ["a", 1, 5.0],
        ["b", 1, 7.0],
        ["c", 1, None],
    ]
    # a row that changes nothing, a row that does, and one that does not
    second = [("a", 4, 3.0), ("b", 4, 9.0), ("c", 4, None)]
    assert lists(stream.turn(rows_of(second), 5).answered) == [["b", 4, 9.0]]
    assert stream.turn(None, 6).answered is None
    # time alone: a's largest leaves; b's does not, nor does the last row of c
    assert lists(stream.turn(None, 12).answered) == [["a", 11, 3.0]]
    # all leave: once more, with nothing
    gone = lists(stream.turn(None, 40).answered)
    assert sorted(gone) == [["a", 39, None], ["b", 39, None], ["c", 39, None]]
    assert stream.turn(None, 90).answered is None
    assert stream.store.log.held == {}


def test_rows_leave_a_rows_window_by_rows_that_come_and_by_its_horizon() -> None:
    windows = {"2": wr.rows(2, within=50), "1past": wr.rows(1, ending=1, within=50)}
    stream = changes_stream(windows=windows, tie="x")
    first = stream.turn(rows_of([("a", 1, 5.0), ("b", 1, 7.0), ("a", 3, 9.0), ("a", 3, 2.0)]), 4)
    assert sorted(lists(first.answered)) == [["a", 3, 9.0, 2.0], ["b", 3, 7.0, None]]
    written = stream.store.log.puts
    assert stream.turn(None, 40).answered is None  # time alone: nothing leaves, nothing is written
    assert stream.store.log.puts == written
    assert lists(stream.turn(rows_of([("a", 40, 1.0)]), 41).answered) == [["a", 40, 9.0, 9.0]]
    assert lists(stream.turn(rows_of([("a", 41, 9.0), ("b", 41, None)]), 42).answered) == [
        ["a", 41, 9.0, 1.0],
        ["b", 41, 7.0, 7.0],
    ]
    # the horizon: b's first row is 50 old, a's younger ones are not
    assert lists(stream.turn(None, 52).answered) == [["b", 51, None, None]]
    assert lists(stream.turn(None, 91).answered) == [["a", 90, 9.0, None]]
    gone = stream.turn(None, 92)
    assert sorted(lists(gone.answered)) == [["a", 91, None, None], ["b", 91, None, None]]
    assert gone.live.tolist() == [False, False]
    assert stream.store.log.held == {}


def test_changes_are_the_answers_of_a_table_at_those_times() -> None:
    """With rows windows and time windows in one specification; a table answers with as_of()."""
    table = random_table(300, keys=4, seed=8, span=300).select(["k", "t", "id", "x", "s"])
    given: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "windows": {
            "w": wr.time(25),
            "r": wr.rows(4, within=60),
            "p": wr.rows(2, ending=3, within=40),
        },
        "aggregates": [wr.Sum("x"), wr.Count(), wr.Last("s"), wr.Quantile("x", 0.5)],
    }
    stream = Stream(plan_of(wr.Rolling(**given, emit="changes"), table.schema, segment_rows=20))
    table = table.sort_by([("t", "ascending"), ("id", "ascending")])
    told: dict[int, list[Any]] = {}
    before = 0
    for place in range(0, 300, 25):
        rows = table.slice(place, 25)
        at = rows["t"][-1].as_py() + 1
        rows = table.filter(
            pa.compute.and_(
                pa.compute.less(table["t"], at),
                pa.compute.greater_equal(table["t"], before),
            )
        )
        before = at
        told |= {row[0]: row for row in lists(stream.turn(rows, at).answered)}
        keys = sorted(told)
        labels = pa.table({"k": keys, "t": [at - 1] * len(keys)})
        wanted = wr.Rolling(**given).as_of(table, labels, strict=False)
        answers = [list(row.values())[2:] for row in wanted.to_pylist()]
        assert all(equal(a, told[k][2:]) for a, k in zip(answers, keys, strict=True))


def test_a_thousand_keys_of_which_three_change() -> None:
    stream = changes_stream()
    many = [(f"key {n}", 1, float(n)) for n in range(1000)]
    assert stream.turn(rows_of(many), 2).emitted_rows == 1000
    turn = stream.turn(rows_of([("key 5", 3, 10.0), ("key 6", 3, 1.0), ("new", 3, 0.0)]), 4)
    assert sorted(lists(turn.answered)) == [["key 5", 3, 10.0], ["new", 3, 0.0]]
    assert turn.answered_rows == 3


@pytest.mark.parametrize("window", [wr.time(10), wr.rows(9, within=10)], ids=["time", "rows"])
def test_new_columns_are_told_to_every_key_once(window: Any) -> None:
    given: dict[str, Any] = {"windows": {"w": window}, "tie": "x"}
    stream = changes_stream(aggregates=[wr.Max("x"), wr.Count()], **given)
    stream.turn(rows_of([("a", 1, 5.0), ("b", 3, 7.0)]), 4)
    more = changes_stream(aggregates=[wr.Count(), wr.Sum("x")], **given).plan
    later = Stream(more, stream.store)
    assert sorted(lists(later.turn(None, None).answered)) == [["a", 3, 1, 5.0], ["b", 3, 1, 7.0]]
    assert later.turn(None, 5).answered is None
    assert lists(later.turn(None, 12).answered) == [["a", 11, 0, None]]


def taken_out(stream: Any, schema: pa.Schema) -> list[pa.Table]:
    """The whole state of a bucket as rows, in no order."""
    names = ["log", "waiting", *(["rules"] if hasattr(stream.store, "rules") else [])]
    totals = carried.totals_of([stream.head], lambda _, number: stream.store.log.held[number])
    return [
        carried.taken_out(name, number, data, stream.head, schema, totals)
        for name in names
        for number, data in reversed(getattr(stream.store, name).held.items())
    ]


@given(windows(), some(EXACT), st.sampled_from(["k", ["k", "b"]]), st.data())
@examples(25)
def test_a_bucket_becomes_two(chosen: dict[str, Any], aggregates: Any, key: Any, data: Any) -> None:
    """Nothing is told again, or lost, or in another order; whatever is asked of a stream."""
    table = table_of(data, 120)
    emit = data.draw(st.sampled_from(["changes", "rows"]))
    spec = spec_of(data, key=key, windows=chosen, aggregates=fitting(chosen, aggregates), emit=emit)
    plan = plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60)))
    turns = Played(data, table).turns
    place = data.draw(st.integers(0, len(turns)))
    one, two = Stream(plan), [Stream(plan), Stream(plan)]
    whole = Stream(plan)  # which goes on as it is; others prove that it is right
    for rows, frontier in turns[:place]:
        one.turn(rows, frontier)
        whole.turn(rows, frontier)
    if place and one.head.frontier is not None:
        moved = taken_out(one, table.schema)
        for parity, stream in enumerate(two):
            bucket = Bucket(plan, stream.store)
            mine = [
                t.filter(pa.compute.equal(pa.compute.bit_wise_and(t["k"], 1), parity))
                for t in moved
            ]
            bucket.seed(mine, one.head.frontier, told=True)
            bucket.close()
    elif place:
        two = [one]
    for rows, frontier in turns[place:]:
        wanted = lists(whole.turn(rows, frontier).answered)
        found = []
        for parity, stream in enumerate(two):
            odd = pa.compute.equal(pa.compute.bit_wise_and(rows["k"], 1), parity)
            mine = rows if len(two) == 1 else rows.filter(odd)
            found += lists(stream.turn(mine, frontier).answered)
        assert_rows(found, wanted, len(spec.key) + 1 if emit == "changes" else 3, False)


# --- immediately ---------------------------------------------------------------------------------


@given(windows(), some(OWN), st.sampled_from(KEYS), st.data())
@examples(40)
def test_immediate_answers_are_over_the_rows_that_have_come(
    chosen: dict[str, Any], aggregates: Any, key: Any, data: Any
) -> None:
    table = table_of(data, 80)
    spec = spec_of(
        data, key=key, windows=chosen, aggregates=fitting(chosen, aggregates), emit="immediately"
    )
    plan = plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60)))
    stream, oracle = Stream(plan), Immediately(spec, plan.reaches)
    loose = not all(aggregate.reproducible for aggregate in spec.aggregates)
    place = table.column_names.index("id")
    for rows, frontier in Played(data, table).turns:
        turn = stream.turn(rows, frontier)
        assert turn.answered_rows == turn.emitted_rows == rows.num_rows
        found, wanted = lists(turn.answered), oracle.turn(rows.to_pylist())
        by_id = [[[row[place], *row] for row in part] for part in (found, wanted)]
        assert_rows(by_id[0], by_id[1], 1, loose)
    stream.end()


def test_rows_that_come_late_enter_later_windows_only() -> None:
    spec = wr.Rolling(
        key="k", time="t", windows=[wr.time(10)], aggregates=[wr.Sum("x")], emit="immediately"
    )
    stream = Stream(plan_of(spec, rows_of([]).schema))
    assert lists(stream.turn(rows_of([("a", 9, 1.0)]), None).answered) == [["a", 9, 1.0, 1.0]]
    late = stream.turn(rows_of([("a", 5, 10.0)]), None)  # after its place, and before the frontier
    assert lists(late.answered) == [["a", 5, 10.0, 10.0]]
    after = stream.turn(rows_of([("a", 9, 100.0)]), 8)
    assert lists(after.answered) == [["a", 9, 100.0, 111.0]]
    gone = stream.turn(rows_of([("a", 7, 1000.0)]), 8)  # before the frontier: in no window
    assert gone.answered is None
    assert gone.late_rows == 1
    assert lists(stream.turn(rows_of([("a", 12, 0.0)]), 8).answered) == [["a", 12, 0.0, 111.0]]


# --- what may change, and what is refused --------------------------------------------------------


def test_emission_cannot_change_with_a_checkpoint() -> None:
    table = rows_of([("a", 1, 5.0), ("b", 3, 7.0)])
    ways: list[dict[str, Any]] = [{}, {"emit": "changes"}, {"emit": "immediately"}, {"every": 5}]
    common: dict[str, Any] = {"windows": [wr.time(9)], "aggregates": [wr.Max("x")]}
    for before in ways:
        plan = plan_of(wr.Rolling(key="k", time="t", **common, **before), table.schema, step=5)
        stream = Stream(plan)
        stream.turn(table, 2)
        for after in ways:
            spec = wr.Rolling(key="k", time="t", **common, **after)
            later = Stream(plan_of(spec, table.schema, step=5), stream.store)
            if after == before:
                later.turn(None, 2)
                continue
            with pytest.raises(Refused, match=r"when answers come out \(emit=, every=\) cannot"):
                later.turn(None, 3)


def test_ticks_may_lie_elsewhere_after_a_restart() -> None:
    common: dict[str, Any] = {"key": "k", "time": "t", "windows": [wr.time(9)]}
    common["aggregates"] = [wr.Max("x")]
    table = rows_of([("a", 1, 5.0)])
    stream = Stream(plan_of(wr.Rolling(**common, every=2), table.schema, step=2))
    assert lists(stream.turn(table, 4).answered) == [["a", 2, 5.0]]
    spec = wr.Rolling(**common, every=3)
    later = Stream(plan_of(spec, table.schema, step=3), stream.store)
    assert lists(later.turn(None, END).answered) == [["a", 6, 5.0], ["a", 9, 5.0]]


@pytest.mark.parametrize("way", [{"emit": "changes"}, {"every": 2}], ids=["changes", "ticks"])
def test_columns_go_with_the_last_aggregate_that_looks_at_them(way: Any) -> None:
    """No row comes out, so a stream need not have the others."""
    common: dict[str, Any] = {"key": "k", "time": "t", "windows": [wr.time(9)], **way}
    both, one = (
        wr.Rolling(**common, aggregates=some) for some in ([wr.Count(), wr.Max("x")], [wr.Count()])
    )
    table = rows_of([("a", 1, 5.0), ("a", 5, 2.0)])
    stream = Stream(plan_of(both, table.schema, step=2))
    stream.turn(table, 4)
    narrow = table.drop_columns(["x"])
    later = Stream(plan_of(one, narrow.schema, step=2), stream.store)
    answered = later.turn(narrow.slice(0, 0), 7).answered
    assert lists(answered) == [["a", 6, 2]] if "emit" in way else [["a", 4, 1], ["a", 6, 2]]
    again = Stream(plan_of(both, table.schema, step=2), stream.store)
    with pytest.raises(Refused, match="the state has no column 'x'"):
        again.turn(table, 9)
    other = narrow.cast(pa.schema([("k", pa.string()), ("t", pa.int32())]))
    again = Stream(plan_of(one, other.schema, step=2), stream.store)
    with pytest.raises(Refused, match="columns and their types cannot change"):
        again.turn(other, 9)


def test_state_of_changes_is_bounded() -> None:
    stream = changes_stream(windows=[wr.time(50)])
    sizes = []
    for n in range(200):
        rows = rows_of([(f"{n % 7}", 5 * n, float(n)), (f"{n % 3}", 5 * n, 1.0)])
        stream.turn(rows, 5 * n)
        sizes.append(stream.head.log_bytes)
    assert max(sizes[100:]) <= 1.5 * max(sizes[50:100])


def test_what_only_streams_do_is_refused_elsewhere() -> None:
    table = rows_of([("a", 1, 5.0)])
    for emit in ("changes", "immediately"):
        spec = wr.Rolling(
            key="k",
            time="t",
            windows=[wr.time(3)],
            aggregates=[wr.Max("x")],
            emit=emit,
        )
        for action in (
            spec,
            spec.explain,
            lambda t, s=spec: s.as_of(t, t),
            lambda _, s=spec: s.stream(),
        ):
            with pytest.raises(Refused, match=f"emit='{emit}' depends on when rows come"):
                action(table)
    common: dict[str, Any] = {"time": "t", "windows": [wr.time(3)], "aggregates": [wr.Count()]}
    with pytest.raises(BadSpecification, match="emit= is one of rows, changes, immediately"):
        wr.Rolling(**common, emit="sometimes")  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="every= says when answers come out"):
        wr.Rolling(**common, emit="changes", every=2)
    for ahead in (wr.time(3, after=1), wr.rows(3, after=1), wr.bounds("lo", "hi")):
        with pytest.raises(BadSpecification, match="windows of time, sessions or rows that do"):
            wr.Rolling(**(common | {"windows": {"w": ahead}}), emit="changes")
