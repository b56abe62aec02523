"""Streams in this process: what comes out is what the table says, in any order of arrival."""

# mypy: disable-error-code="misc,index,operator"

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import KEYS, disorder, fitting, reach_of, some, windows
from tests.effort import examples
from tests.emission_oracle import Changes, Immediately
from tests.pairs import GeoMean
from tests.spark_session import AGGREGATES, STRUCTURES, assert_same, random_table
from tests.test_emission import EXACT, assert_rows, lists, only_times
from windrow.errors import BadSpecification, BadValue, Refused, StoreConflict, WindrowError

ALL = [*AGGREGATES, *STRUCTURES, GeoMean("p")]


def drawn(data: Any, most: int = 200) -> tuple[pa.Table, int, list[pa.Table]]:
    """A table as it comes, how late rows may be, and batches of it, some of them empty."""
    span = data.draw(st.sampled_from([5, 100, 600]))
    size, seed = data.draw(st.integers(1, most)), data.draw(st.integers(0, 10**6))
    table = random_table(size, keys=data.draw(st.integers(1, 5)), seed=seed, span=span)
    came, lateness = data.draw(disorder(table))
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any))
    batches: list[pa.Table] = []
    place = 0
    while place < size:
        batches.append(came.slice(place, sizes[len(batches) % len(sizes)]))
        place += batches[-1].num_rows
    return came, lateness, batches


def fed(stream: Any, batches: list[pa.Table]) -> pa.Table:
    out = [stream.push(batch) for batch in batches]
    assert stream.late_rows == 0
    out.append(stream.finish())
    return pa.concat_tables(out, promote_options="permissive")


# --- the same as the table ------------------------------------------------------------------------


@given(windows(), some(ALL), st.sampled_from(KEYS), st.data())
@examples(80)
def test_rows(chosen: dict[str, Any], aggregates: Any, key: Any, data: Any) -> None:
    came, lateness, batches = drawn(data)
    masked = [a.where("b") for a in data.draw(some(AGGREGATES, 1))]
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=chosen,
        aggregates=[
            *fitting(chosen, aggregates),
            *(a.alias("some") for a in fitting(chosen, masked)),
        ],
        min_rows=data.draw(st.integers(0, 2)),
        lateness=lateness,
        overflow="null",
    )
    found = fed(spec.stream(), batches)
    assert_same(found, spec(came), spec)


@given(windows(), st.sampled_from(KEYS), st.data())
@examples(40)
def test_rows_of_equal_time_stay_as_they_came(chosen: dict[str, Any], key: Any, data: Any) -> None:
    """Without ``tie=``, in process: the order of the table, and so the order of arrival."""
    came, lateness, batches = drawn(data)
    aggregates = [wr.Last("s"), wr.First("x"), wr.ArgMax("id", "i"), wr.Collect("i")]
    spec = wr.Rolling(
        key=key,
        time="t",
        windows=chosen,
        aggregates=fitting(chosen, aggregates),
        lateness=lateness,
    )
    assert_same(fed(spec.stream(), batches), spec(came), spec)


@given(windows(), some(EXACT), st.sampled_from(KEYS), st.integers(1, 40), st.data())
@examples(40)
def test_ticks(chosen: dict[str, Any], aggregates: Any, key: Any, step: int, data: Any) -> None:
    came, lateness, batches = drawn(data)
    timed = only_times(chosen)
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=timed,
        aggregates=fitting(timed, aggregates),
        every=step,
        origin=data.draw(st.sampled_from([None, 0, 7, -3])),
        lateness=lateness,
    )
    found = fed(spec.stream(), batches)
    assert_rows(lists(found), lists(spec(came)), len(spec.key) + 1, False)


@given(windows(), some(EXACT), st.sampled_from(KEYS), st.data())
@examples(40)
def test_changes_and_immediately(
    chosen: dict[str, Any], aggregates: Any, key: Any, data: Any
) -> None:
    _, lateness, batches = drawn(data, 120)
    common: dict[str, Any] = {
        "key": key,
        "time": "t",
        "tie": "id",
        "windows": chosen,
        "aggregates": fitting(chosen, aggregates),
        "lateness": lateness,
    }
    reaches = {label: reach_of(label, window) for label, window in chosen.items()}
    changed, at_once = (wr.Rolling(**common, emit=emit) for emit in ("changes", "immediately"))
    one, oracle = changed.stream(gone="gone"), Changes(changed, reaches)
    two, other = at_once.stream(), Immediately(at_once, reaches)
    latest = None
    for batch in batches:
        rows = batch.to_pylist()
        times = [row["t"] for row in rows] + ([] if latest is None else [latest])
        latest = max(times, default=None)
        found = lists(one.push(batch))
        wanted = oracle.turn(rows, None if latest is None else latest - lateness)
        assert_rows([row[:-1] for row in found], wanted, len(changed.key) + 1, False)
        assert all(isinstance(row[-1], bool) for row in found)
        assert_rows(lists(two.push(batch)), other.turn(rows), 3, False)


# --- times, and rows that are late ----------------------------------------------------------------

HOUR = pd.Timestamp("2024-05-01 10:00")


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us"), pa.timestamp("ns", "Europe/Paris"), pa.timestamp("s"), pa.timestamp("ms")],
    ids=str,
)
def test_times_of_any_unit(kind: pa.DataType) -> None:
    minutes = [0, 50, 20, 70, 200]
    at = pa.array([HOUR + pd.Timedelta(minutes=m) for m in minutes], pa.timestamp("us"))
    table = pa.table({"at": at.cast(kind), "x": [1, 2, 4, 8, 16]})
    spec = wr.Rolling(time="at", windows=["1h"], aggregates=[wr.Sum("x")], lateness="30m")
    stream = spec.stream()
    out = stream.push(table.slice(0, 3))
    assert out["x_sum_1h"].to_pylist() == [1]
    assert pd.Timestamp(stream.frontier).tz_localize(None) == pd.Timestamp(
        table["at"][0].as_py()
    ).tz_localize(None) + pd.Timedelta(minutes=20)
    assert stream.waiting_rows == 2
    out = stream.push(table.slice(3))
    assert out["x_sum_1h"].to_pylist() == [5, 7, 14]
    assert out.schema == spec(table).schema
    assert stream.advance(table["at"][4].as_py() + datetime.timedelta(minutes=31)).to_pylist() == [
        {"at": table["at"][4].as_py(), "x": 16, "x_sum_1h": 16}
    ]


def test_dates_and_frames_that_give_themselves_to_arrow() -> None:
    days = [datetime.date(2024, 5, day) for day in (1, 3, 2, 9)]
    frame = pl.DataFrame({"day": days, "x": [1.0, 2.0, 4.0, 8.0]})
    spec = wr.Rolling(time="day", windows=["2d", "ever"], aggregates=[wr.Sum("x")], lateness="1d")
    stream = spec.stream()
    found = pa.concat_tables([stream.push(frame), stream.finish()])
    assert found["x_sum_2d"].to_pylist() == [1.0, 5.0, 6.0, 8.0]
    assert found["x_sum_ever"].to_pylist() == [1.0, 5.0, 7.0, 15.0]


def table_of(*rows: tuple[Any, ...]) -> pa.Table:
    names = ("k", "t", "x")
    columns: list[Any] = list(zip(*rows, strict=True)) or [[], [], []]
    kinds = (pa.string(), pa.int64(), pa.float64())
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


COMMON: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "windows": [wr.time(10)],
    "aggregates": [wr.Sum("x"), wr.Count()],
    "lateness": 5,
}


def test_late_rows_are_in_no_window_and_at_hand() -> None:
    stream = wr.Rolling(**COMMON).stream()
    assert stream.late_rows == 0
    stream.push(table_of(("a", 20, 1.0)))
    out = stream.push(table_of(("a", 14, 2.0), ("a", None, 4.0), ("a", 15, 8.0), ("b", 30, 16.0)))
    assert out.to_pylist() == [
        {"k": "a", "t": 15, "x": 8.0, "x_sum_10": 8.0, "count_10": 1},
        {"k": "a", "t": 20, "x": 1.0, "x_sum_10": 9.0, "count_10": 2},
    ]
    found = sorted(stream.late.to_pylist(), key=lambda row: row["x"])
    assert found == [{"k": "a", "t": 14, "x": 2.0}, {"k": "a", "t": None, "x": 4.0}]
    assert (stream.late_rows, stream.waiting_rows, stream.frontier) == (2, 1, 25)
    stream.push(table_of())
    assert (stream.late, stream.late_rows) == (None, 2)


def test_what_comes_out_has_the_same_columns_always() -> None:
    nothing = table_of()
    for emit, names in (
        ({}, ["k", "t", "x", "x_sum_10", "count_10"]),
        ({"emit": "immediately"}, ["k", "t", "x", "x_sum_10", "count_10"]),
        ({"emit": "changes"}, ["k", "t", "x_sum_10", "count_10"]),
        ({"every": 5}, ["k", "t", "x_sum_10", "count_10"]),
    ):
        stream = wr.Rolling(**COMMON, **emit).stream()
        outs = [stream.push(nothing), stream.push(table_of(("a", 3, 1.0), ("a", 12, 1.0)))]
        outs.append(stream.finish())
        assert outs[1].num_rows
        for out in outs:
            assert out.column_names == names
            assert out.schema == outs[0].schema


def test_sums_that_are_too_large_are_null_and_counted() -> None:
    table = pa.table({"t": [1, 2, 30], "n": [2**62, 2**62, 5]})
    spec = wr.Rolling(time="t", windows=[wr.time(10)], aggregates=[wr.Sum("n")], lateness=0)
    stream = spec.stream()
    out = pa.concat_tables([stream.push(table), stream.finish()])
    assert out["n_sum_10"].to_pylist() == [2**62, None, 5]
    assert stream.overflows == 1


@pytest.mark.parametrize("emit", [{}, {"emit": "changes"}])
def test_a_stream_that_never_ends_keeps_what_its_windows_need(emit: Any) -> None:
    """Neither cells nor notes of those that are gone."""
    chosen = {"w": wr.time(30), "s": wr.session(3), "e": "ever", "r": wr.rows(3, within=20)}
    stream = wr.Rolling(**COMMON | {"windows": chosen}, **emit).stream()
    sizes = []
    for turn in range(400):
        rows = [(f"k{(turn + n) % 9}", 4 * turn + n % 4, 1.0) for n in range(8)]
        stream.push(table_of(*rows))
        cells = [stream._bucket.log, stream._bucket.waiting]
        sizes.append(sum(len(part) for cell in cells for part in cell.saved()[:3]))
    assert max(sizes[200:]) <= max(sizes[20:200]) + 4


def test_late_rows_of_keys_have_the_columns_that_came() -> None:
    spec = wr.Rolling(
        **COMMON | {"aggregates": [wr.Sum("x").where("k", "a"), wr.Count()]}, emit="changes"
    )
    stream = spec.stream()
    stream.push(table_of(("a", 50, 1.0)))
    stream.push(table_of(("a", 1, 2.0), ("b", 51, 1.0)))
    assert stream.late.to_pylist() == [{"k": "a", "t": 1}]


# --- what raises is taken back --------------------------------------------------------------------


class Picky(wr.Aggregate):
    """A sum that does not like 0.5."""

    identity = 0.0
    commutative = True

    @staticmethod
    def lift(x: float) -> float:
        return x

    @staticmethod
    def combine(a: float, b: float) -> float:
        if 0.5 in (a, b):
            raise ValueError("a half")
        return a + b

    @staticmethod
    def lower(p: float) -> str:
        return f"{p:.1f}"


@pytest.mark.parametrize("durable", [False, True])
def test_a_push_that_raises_changes_nothing(durable: bool) -> None:
    spec = wr.Rolling(
        key="k",
        time="t",
        windows={"w": wr.time(10), "e": "ever", "s": wr.session(4)},
        aggregates=[Picky("x"), wr.Sum("x"), wr.Count()],
        lateness=2,
    )
    generator = np.random.default_rng(1)
    options: Any = [{"store": wr.stores.Memory(), "name": n} for n in "ab"] if durable else [{}, {}]
    one, twin = spec.stream(**options[0]), spec.stream(**options[1])
    start = 0
    for number in range(30):
        times = start + np.sort(generator.integers(0, 6, 8))
        rows = [("ab"[i % 2], int(t), float(i)) for i, t in enumerate(times)]
        start = int(times[-1])
        if number % 4 == 2:
            before = (one.frontier, one.waiting_rows, one.rows_kept)
            bad = [("a", start + 1, 0.5), ("a", start + 2, 0.5), ("a", start + 50, 1.0)]
            with pytest.raises(ValueError, match="a half"):
                one.push(table_of(*bad))
            assert before == (one.frontier, one.waiting_rows, one.rows_kept)
        batch = table_of(*rows)
        assert one.push(batch).equals(twin.push(batch))
        if durable and number % 7 == 3:
            one.flush()
    assert one.finish().equals(twin.finish())


# --- in a store -----------------------------------------------------------------------------------


@pytest.fixture(params=["Memory", "Rocks"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Opens the same store again and again."""
    if request.param == "Rocks":
        yield lambda: wr.stores.Rocks(tmp_path / "state")
        return
    memory = wr.stores.Memory()
    yield lambda: memory


WINDOWS: dict[str, Any] = {
    "w": wr.time(30),
    "e": "ever",
    "s": wr.session(3),
    "r": wr.rows(4, within=60),
}


@pytest.mark.parametrize("emit", [{}, {"emit": "changes"}, {"every": 7}])
def test_a_stream_goes_on_after_a_crash(opened: Any, emit: Any) -> None:
    chosen = {n: w for n, w in WINDOWS.items() if not (emit.get("every") and n == "r")}
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows=chosen,
        aggregates=[wr.Sum("x"), wr.Last("s"), wr.StdDev("i"), wr.Max("d")],
        lateness=10,
        **emit,
    )
    table = random_table(400, keys=5, seed=7, span=300)
    order = np.argsort(table["t"].to_numpy() + np.random.default_rng(1).integers(0, 11, 400))
    came = table.take(pa.array(order))
    whole = spec.stream()
    wanted = pa.concat_tables([*(whole.push(came.slice(p, 20)) for p in range(0, 400, 20))])
    out: list[pa.Table] = []
    done, turn = 0, 0
    while done < 400:
        stream = spec.stream(store=opened(), name="a b/c")
        assert stream.restored_through == done
        place = done
        told: list[pa.Table] = []
        for _ in range(3):  # as many as are lost in a crash, or one more
            if place < 400:
                told.append(stream.push(came.slice(place, 20)))
                place += 20
        if turn % 2:
            stream.flush()
            done = place
            out += told
        turn += 1
        stream.close()  # as a crash would: what was not flushed is forgotten
    found = pa.concat_tables(out)
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())  # in which NaN is itself


def test_two_writers_and_other_specifications(opened: Any) -> None:
    spec = wr.Rolling(**COMMON)
    store = opened()
    with spec.stream(store=store, name="one") as stream:
        stream.push(table_of(("a", 1, 1.0), ("a", 20, 2.0)))
    one, two = (spec.stream(store=store, name="one") for _ in range(2))
    for stream in (one, two):
        stream.push(table_of(("a", 30, 4.0)))
    one.flush()
    with pytest.raises(StoreConflict):
        two.flush()
    one.close()
    two.close()
    with pytest.raises(Refused, match="looks back further than any time window"):
        wr.Rolling(**COMMON | {"windows": [wr.time(90)]}).stream(store=opened(), name="one")
    less = wr.Rolling(**COMMON | {"aggregates": [wr.Sum("x")], "windows": [wr.time(4)]})
    with less.stream(store=opened(), name="one") as stream:
        assert stream.push(table_of(("a", 31, 8.0), ("b", 60, 0.0)))["x_sum_4"].to_pylist() == [
            4.0,
            12.0,
        ]


def test_who_opened_before_another_wrote_is_told() -> None:
    """What it would push again is in already."""
    store = wr.stores.Memory()
    spec = wr.Rolling(**COMMON)
    rows = table_of(("a", 1, 1.0), ("a", 20, 1.0))
    for _ in range(2):  # with nothing in the store, and with something
        one, two = (spec.stream(store=store, name="s") for _ in range(2))
        two.push(rows)
        two.flush()
        one.push(rows.slice(1))
        with pytest.raises(StoreConflict):
            one.flush()
        rows = table_of(("a", 30, 1.0))


def test_a_stream_that_is_opened_again_knows_how_it_stands() -> None:
    store = wr.stores.Memory()
    spec = wr.Rolling(**COMMON)
    with spec.stream(store=store, name="s") as stream:
        stream.push(table_of(("a", 1, 1.0), ("a", 20, 2.0)))
    again = spec.stream(store=store, name="s")
    found = (again.restored_through, again.waiting_rows, again.frontier)
    assert found == (2, 1, 15)
    assert again.finish().to_pylist() == [
        {"k": "a", "t": 20, "x": 2.0, "x_sum_10": 2.0, "count_10": 1}
    ]
    once_more = spec.stream(store=store, name="s")
    assert once_more.advance(40)["t"].to_pylist() == [20]


@pytest.mark.parametrize("first", [True, False])
def test_aggregates_that_depend_on_order_come_and_go(first: bool) -> None:
    store = wr.stores.Memory()
    both, alone = [wr.Sum("x"), wr.Last("x")], [wr.Sum("x")]
    rows = table_of(("a", 1, 1.0), ("a", 20, 2.0), ("a", 20, 4.0))
    for aggregates in (both, alone) if first else (alone, both):
        spec = wr.Rolling(**COMMON | {"aggregates": aggregates})
        with spec.stream(store=store, name="s") as stream:
            out = stream.push(rows)
            rows = rows.slice(0, 0)
            last = stream.advance(40)
    assert out.num_rows == 0
    assert last.num_rows == 0 or last["x_sum_10"].to_pylist() == [6.0, 6.0]


def test_a_first_push_that_raises_leaves_the_columns_open() -> None:
    stream = wr.Rolling(
        time="t", windows=[wr.time(10)], aggregates=[Picky("x")], lateness=5
    ).stream()
    with pytest.raises(ValueError, match="a half"):
        stream.push(pa.table({"t": [1, 2, 100], "x": [0.5, 0.5, 1.0], "junk": [1, 2, 3]}))
    found = stream.push(pa.table({"t": [1, 100], "x": [1.0, 1.0]}))
    assert found.column_names == ["t", "x", "x_picky_10"]


@pytest.mark.parametrize("emit", [{}, {"emit": "changes"}, {"emit": "immediately"}, {"every": 5}])
def test_frames_of_polars_with_texts(emit: Any) -> None:
    kinds = pl.Enum(["a", "b"])
    frame = pl.DataFrame(
        {
            "k": ["b", "a", "b"],
            "e": pl.Series(["a", "b", "a"], dtype=kinds),
            "l": [["x"], [], ["y", "z"]],
            "t": [1, 2, 20],
            "x": [1.0, 2.0, 3.0],
        }
    )
    spec = wr.Rolling(
        key=["k", "e"],
        time="t",
        windows=[wr.time(30)],
        aggregates=[wr.Sum("x"), wr.Last("k"), wr.Max("e").alias("most")],
        lateness=5,
        **emit,
    )
    stream = spec.stream()
    found = pa.concat_tables([stream.push(frame), stream.push(frame.clear()), stream.finish()])
    assert found.num_rows
    if not emit:
        assert found["k_last_30"].to_pylist() == ["b", "a", "b"]
        assert found["l"].to_pylist() == [["x"], [], ["y", "z"]]


def test_batches_that_differ_in_nothing_that_matters() -> None:
    stream = wr.Rolling(**COMMON).stream()
    stream.push(table_of(("a", 1, 1.0)))
    strict = pa.schema([pa.field(f.name, f.type, False) for f in table_of().schema])
    stream.push(table_of(("a", 2, 1.0)).cast(strict))
    stream.push(table_of(("a", 3, 1.0)).select(["x", "t", "k"]))
    stream.push(pa.table({"k": pa.nulls(1), "t": [4], "x": pa.nulls(1)}))
    assert stream.finish()["count_10"].to_pylist() == [1, 2, 3, 1]


def test_times_too_far_apart_are_refused() -> None:
    year = 365 * 86400 * 10**9
    spec = wr.Rolling(time="t", windows=["ever"], aggregates=[wr.Count()], lateness="1m")
    for years in (-70, 280):
        stream = spec.stream()
        with pytest.raises(BadValue, match="too far from the other times"):
            stream.push(pa.table({"t": pa.array([0, years * year], pa.timestamp("ns"))}))
        at = pa.array([-35 * year, 0, 108 * year], pa.timestamp("ns"))
        out = pa.concat_tables([stream.push(pa.table({"t": at})), stream.finish()])
        assert out["count_ever"].to_pylist() == [1, 2, 3]


ZONED = pa.table({"t": pa.array([HOUR], pa.timestamp("us", "UTC")), "x": [1.0]})


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (None, "it is missing"),
        (pd.NaT, "it is missing"),
        (HOUR.to_pydatetime(), "one has a zone, the other has none"),
        (17.9, "no whole number"),
        ("noon", "not a time like those"),
    ],
    ids=str,
)
def test_times_that_are_none(at: Any, says: str) -> None:
    stream = wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Sum("x")], lateness="1m").stream()
    stream.push(ZONED)
    with pytest.raises(BadValue, match=says):
        stream.advance(at)
    assert stream.advance(np.datetime64("2024-05-01T12:00:00")).num_rows == 1


def test_names_that_are_ours() -> None:
    with pytest.raises(BadSpecification, match="names that begin with __windrow_"):
        stream_of().push(table_of().append_column("__windrow_x", pa.array([], pa.int64())))
    with pytest.raises(BadSpecification, match="name= is a text, not 5"):
        wr.Rolling(**COMMON).stream(store=wr.stores.Memory(), name=5)  # type: ignore[arg-type]


# --- mistakes -------------------------------------------------------------------------------------


def stream_of(**changed: Any) -> Any:
    return wr.Rolling(**(COMMON | changed)).stream()


MISTAKES: list[Any] = [
    (lambda: stream_of(time=None, windows=[wr.rows(3)]), "needs time=, the column that lateness"),
    (lambda: stream_of(windows=[wr.time(3, after=1)]), "looks ahead, at rows that have not come"),
    (lambda: stream_of(windows=[wr.rows(3)]), 'or within="ever"'),
    (lambda: stream_of(windows=[wr.bounds("a", "b")]), "on streams: bounds may lie anywhere"),
    (lambda: stream_of(windows="ever", aggregates=[wr.Median("x")]), "all rows would be kept"),
    (lambda: wr.Rolling(**COMMON).stream(gone="g"), 'gone= is for emit="changes"'),
    (lambda: wr.Rolling(**COMMON).stream(name="g"), "store= and name= go together"),
    (lambda: wr.Rolling(**COMMON).stream(name="g", store=5), "store= is a store, as in"),
    (lambda: stream_of(lateness=None, emit="changes"), "without lateness="),
    (
        lambda: wr.Rolling(**COMMON | {"lateness": None}).stream(gone="g"),
        "are for one with lateness=",
    ),
    (lambda: stream_of().push([{"k": "a"}]), "Table.from_pylist"),
    (lambda: stream_of().push(pa.table({"k": ["a"], "t": [1]})), "no column 'x'"),
    (lambda: stream_of().push(pa.table({"k": ["a"], "t": [1.5], "x": [1.0]})), "timestamps, dates"),
    (lambda: stream_of(lateness="5s").push(table_of()), "times are integers"),
    (lambda: stream_of().advance(5), "nothing has come yet"),
    (lambda: stream_of().flush(), "in memory only"),
]


@pytest.mark.parametrize(("make", "says"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_mistakes(make: Any, says: str) -> None:
    with pytest.raises(WindrowError, match=says):
        make()


def test_mistakes_later_on() -> None:
    stream = stream_of()
    stream.push(table_of(("a", 1, 1.0)))
    with pytest.raises(BadSpecification, match="earlier ones had k string, t int64, x double"):
        stream.push(pa.table({"k": ["a"], "t": [1], "x": [1]}))
    with pytest.raises(WindrowError, match="is not a time like those of 't'"):
        stream.advance("noon")
    assert stream.finish().num_rows == 1
    for action in (lambda: stream.push(table_of()), stream.finish, lambda: stream.advance(3)):
        with pytest.raises(BadSpecification, match="finished or closed"):
            action()
    assert stream_of().finish() is None
