"""Windows that no row leaves: everything so far, in every engine."""

# mypy: disable-error-code="misc,index,operator"

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

import windrow as wr
from tests.buckets import (
    KEYS,
    SCHEMA,
    Stream,
    disorder,
    plan_of,
    run,
    small_spec,
    small_table,
    some,
)
from tests.effort import examples
from tests.pairs import GeoMean
from tests.spark_session import (
    AGGREGATES,
    STRUCTURES,
    assert_same,
    check,
    frame,
    random_table,
    spark,  # noqa: F401
)
from tests.stream_session import Pipe, random_stream, split
from tests.tables import expected, members
from windrow.columns import carried, key_chunks
from windrow.columns.bucket import Bucket
from windrow.errors import BadSpecification, Refused, WindrowError
from windrow.windows import RunningTotal
from windrow.windows.compare import equal

BOUNDED = [a for a in [*AGGREGATES, *STRUCTURES, GeoMean("p")] if a.kind == "bounded"]
EVER: dict[str, Any] = {
    "all": "ever",
    "before": wr.time("ever", closed="left"),
    "past": wr.time("ever", ending=40),
}


# --- one value at a time --------------------------------------------------------------------------


@given(
    st.sampled_from([wr.Max(), wr.Sum(), wr.Count(), wr.First(), wr.Median(), wr.Collect()]),
    st.sampled_from(["right", "left"]),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-9, 9))), max_size=30),
)
@examples(70)
def test_values_are_those_of_recalc(aggregate: Any, closed: Any, ending: int, rows: Any) -> None:
    window = wr.time("ever", closed=closed, ending=ending)
    one, oracle = wr.Sliding(window, aggregate), wr.Sliding(window, aggregate, "Recalc")
    assert isinstance(one.window, RunningTotal)
    now = 0
    for step, value in rows:
        now += step
        assert equal(one.insert(value, at=now), oracle.insert(value, at=now))
        assert (len(one), one.oldest, one.youngest) == (len(oracle), oracle.oldest, oracle.youngest)
    assert one.window.stored_partials() == 1
    one.window.check_invariants([oracle.window.total()] if len(one) == 1 else None)
    assert equal(one.advance(now + 100), oracle.advance(now + 100))
    again = copy.deepcopy(one)
    assert equal(again.insert(3, at=now + 100), oracle.insert(3, at=now + 100))


def test_a_total_keeps_no_rows() -> None:
    """It can be emptied, and moved as bytes, like any other window."""
    total = RunningTotal(wr.Sum())
    for value in (1, 2, 3):
        total.insert(value)
    with pytest.raises(Refused, match="a running total keeps no rows"):
        total.evict()
    with pytest.raises(Refused, match="a running total keeps no rows"):
        total.bulk_evict(2)
    again = RunningTotal.from_bytes(total.to_bytes(), wr.Sum())
    assert (again.query(), len(again)) == (6, 3)
    again.bulk_evict(3)
    assert (again.query(), len(again)) == (None, 0)
    with pytest.raises(WindrowError, match="is empty"):
        again.evict()


def test_values_that_come_late_and_windows_in_a_store() -> None:
    late = wr.Sliding("ever", wr.Max(), lateness=5)
    assert [late.insert(x, at=t) for t, x in ((1, 3), (9, 9), (6, 7), (20, 1))] == [None, 3, 3, 9]
    assert late.drain() == 9
    anywhere = wr.Sliding("ever", wr.First(), lateness=50, late="insert")
    assert [anywhere.insert(x, at=t) for t, x in ((5, "b"), (1, "a"), (9, "c"))] == ["b", "a", "a"]
    store = wr.stores.Memory()
    with wr.Sliding("ever", wr.Sum(), store=store, name="all") as window:
        window.insert(2, at=1)
    with wr.Sliding("ever", wr.Sum(), store=store, name="all") as window:
        assert window.insert(3, at=10**12) == 5
    kept = wr.Sliding(wr.at_most(wr.Count(), 2) & wr.time("ever"), wr.Sum())
    assert [kept.insert(x, at=x) for x in (1, 2, 3)] == [1, 3, 5]


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_columns_are_what_the_definition_says(key: Any) -> None:
    table = random_table(120, seed=5, span=150)
    rows = table.to_pylist()
    aggregates = [*AGGREGATES[:20], wr.Median("i"), wr.Collect("i"), GeoMean("p")]
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=EVER | {"last": wr.rows(3, within="ever")},
        aggregates=aggregates,
    )
    found = spec(table)
    for name, aggregate, label in spec.outputs:
        column = found[name].to_pylist()
        for i in range(0, len(rows), 7):
            wanted = expected(rows, spec, aggregate, members(rows, spec, spec.windows[label], i))
            assert equal(column[i], wanted) or column[i] == pytest.approx(wanted, rel=1e-12)


def test_they_are_cumulative() -> None:
    """As pandas' expanding, for times of any kind, however far apart."""
    days = pd.to_datetime(["1950-01-01", "1970-01-01", "2024-05-01", "2040-01-01"])
    frame = pd.DataFrame({"at": days, "n": [1, 2, 3, 4], "x": [1.5, 2.5, -1.0, 4.0]})
    for time, unit in (("at", None), ("n", None), ("x_time", "s")):
        table = frame.assign(x_time=[-1e8, 0.0, 0.5, 1e8])
        spec = wr.Rolling(time=time, unit=unit, windows="ever", aggregates=[wr.Sum("x")])
        assert spec(table)["x_sum_ever"].equals(table["x"].expanding().sum().rename("x_sum_ever"))


@pytest.mark.parametrize("key", [None, "k"])
def test_labels_and_ticks(key: Any) -> None:
    """Ticks last as long as the windows that end; the others are answered there as well."""
    events = random_table(200, seed=2, span=400)
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=EVER | {"short": wr.time(9, ending=3)},
        aggregates=[wr.Sum("i"), wr.Count(), wr.Max("p")],
        every=7,
    )
    ticks, names = spec(events), [name for name, _, _ in spec.outputs]
    alone = wr.Rolling(
        key=key, time="t", windows={"w": wr.time(9, ending=3)}, aggregates=[wr.Count()], every=7
    )(events)
    assert ticks.drop_columns(names).equals(alone.drop_columns("count_w"))
    rows = copy.copy(spec)
    rows.every = None
    labels = ticks.drop_columns(names)
    assert rows.as_of(events, labels, strict=False).select(names).equals(ticks.select(names))


MISTAKES: list[Any] = [
    (
        lambda: wr.Rolling(time="t", every=2, windows="ever", aggregates=[wr.Count()]),
        "a key would have ticks for ever",
    ),
    (lambda: wr.Hub().register(wr.Max(), "ever"), "Use Sliding or Rolling, which keep one total"),
    (
        lambda: wr.Hub().register(wr.Max(), wr.rows(3, within="ever")),
        "shared windows keep the rows",
    ),
    (
        lambda: wr.Rules([("busy", 'count("ever") >= 3')], key="k", time="t"),
        r"in 'count\(\"ever\"\) >= 3': ever: shared windows keep",
    ),
    (
        lambda: wr.Rolling(time="t", windows="ever", aggregates=[wr.ApproxCount(epsilon=0.1)]),
        "sequential aggregates over ever windows on columns: a counter's error",
    ),
    (
        lambda: wr.Rolling(time="t", windows="ever", aggregates=[wr.Count()]).stream(),
        r"stream\(\): window 'ever' reaches all rows",
    ),
    (
        lambda: wr.Rolling(windows="ever", aggregates=[wr.Count()]),
        "'ever' is about time: say .*; without times, rows",
    ),
    (lambda: wr.time("1h", ending="ever"), "cannot read 'ever' as a length of time"),
]


@pytest.mark.parametrize(("make", "says"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_where_it_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(WindrowError, match=says):
        make()


# --- a bucket of a stream; other properties of buckets have these windows too ---------------------


@pytest.fixture
def _small_chunks() -> Iterator[None]:
    before, key_chunks.CHUNK = key_chunks.CHUNK, 300
    yield
    key_chunks.CHUNK = before


@pytest.mark.usefixtures("_small_chunks")
@given(st.integers(0, 10**6), some(BOUNDED), st.sampled_from(KEYS), st.data())
@examples(30)
def test_totals_in_many_chunks(seed: int, aggregates: Any, key: Any, data: Any) -> None:
    table = random_table(data.draw(st.integers(1, 250)), keys=60, seed=seed, span=300)
    spec = wr.Rolling(key=key, time="t", tie="id", windows=EVER, aggregates=aggregates)
    came, lateness = data.draw(disorder(table))
    stream = Stream(plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60))))
    run(stream, came, lateness, data.draw(st.sampled_from([[40], [9, 0, 70], [250]])))
    stream.end()
    assert_same(stream.found(), spec(table), spec)


def test_no_rows_are_kept() -> None:
    """And a turn without rows of a key does not touch its chunk."""
    spec = small_spec(windows=["ever"])
    stream = Stream(plan_of(spec, SCHEMA))
    sizes = []
    for first in range(0, 400, 40):
        stream.turn(small_table([(n % 5, first + n) for n in range(40)], first), first + 40)
        sizes.append(stream.store.log.size)
        assert stream.head.log_rows == 0
    assert sizes[-1] <= sizes[0] + 64  # numbers grow a little
    assert stream.head.sights["ever"].totals.keys == 5
    before = dict(stream.store.log.held)
    stream.turn(None, 500)
    assert before == stream.store.log.held


CHANGED: list[Any] = [
    ({"windows": {"w": wr.time(8)}}, None),
    ({"windows": {"ever": wr.time("ever")}}, None),
    ({"windows": {"ever": wr.time("ever"), "w": wr.time(8), "v": wr.time(5)}}, None),
    ({"aggregates": [wr.Sum("x")]}, None),
    ({"aggregates": [wr.Count(), wr.Sum("x")]}, None),
    (
        {"aggregates": [wr.Sum("x"), wr.Count(), wr.Max("x")]},
        "cannot be added to window 'ever' while a checkpoint is in use, since only totals are kept",
    ),
    (
        {"windows": {"ever": wr.time("ever"), "more": wr.time("ever", ending=2)}},
        "window 'more' is about all rows, of which the checkpoint has only some",
    ),
    (
        {"windows": {"ever": wr.time("ever"), "w": wr.time(80)}},
        "window 'w' looks back further than any time window of the checkpoint",
    ),
]


def run_twice(
    common: dict[str, Any], changed: dict[str, Any], says: str | None, keys: int = 3
) -> None:
    """A bucket that goes on with a changed specification, or says why it cannot."""
    table = small_table([(n % keys, n) for n in range(60)])
    stream = Stream(plan_of(small_spec(**common), SCHEMA))
    stream.turn(table.slice(0, 20), 10)
    stream.turn(table.slice(20, 15), 30)
    spec = small_spec(**(common | changed))
    plan = plan_of(spec, SCHEMA)
    if says is not None:
        with pytest.raises(Refused, match=says):
            Bucket(plan, stream.store)
        return
    later = Stream(plan, stream.store)
    later.turn(table.slice(35), 50)
    later.end()
    assert_same(later.found(), spec(table).slice(30), spec)


@pytest.mark.parametrize(("changed", "says"), CHANGED, ids=[str(i) for i in range(len(CHANGED))])
def test_what_may_change_between_two_runs(changed: Any, says: str | None) -> None:
    common: dict[str, Any] = {
        "windows": {"ever": wr.time("ever"), "w": wr.time(8)},
        "aggregates": [wr.Sum("x"), wr.Count()],
    }
    run_twice(common, changed, says)


@pytest.mark.parametrize("emit", ["rows", "changes"])
@pytest.mark.parametrize("window", [*EVER.values(), wr.session(2)], ids=str)
def test_totals_move_whatever_is_not_in_them_yet(window: Any, emit: Any) -> None:
    """All rows may be, and some, and none."""
    table = small_table([(n % 2, n // 2) for n in range(12)])
    spec = small_spec(windows={"w": window}, emit=emit)
    plan = plan_of(spec, SCHEMA)
    for first, then in itertools.combinations(range(1, 8), 2):
        one, other = Stream(plan), Stream(plan)
        one.turn(table.slice(0, 8), None)
        one.turn(table.slice(8), first)
        one.turn(None, then)
        totals = carried.totals_of([one.head], lambda _, n, s=one.store: s.log.held[n])
        moved = [
            carried.taken_out(name, number, data, one.head, SCHEMA, totals)
            for name in ("log", "waiting")
            for number, data in getattr(one.store, name).held.items()
        ]
        bucket = Bucket(plan, other.store)
        bucket.seed(moved, then, told=True)
        bucket.close()
        one.answered.clear()
        for frontier in (then + 1, then + 2, 20):
            for stream in (one, other):
                stream.turn(None, frontier)
        assert (len(one.answered) > 0) == (len(other.answered) > 0)
        if one.answered:
            by = [(name, "ascending") for name in ("k", "t")]
            assert one.found().sort_by(by).equals(other.found().sort_by(by))


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "options"),
    [("k", {}), ("k", {"hot_rows": 60, "stretch_rows": 30}), (None, {"stretch_rows": 40})],
)
def test_spark_tables(spark: Any, key: Any, options: Any) -> None:  # noqa: F811
    table = random_table(300, seed=3)
    some = [*AGGREGATES[:12], wr.Median("i"), wr.TopK("x", 3), GeoMean("p")]
    spec = wr.Rolling(
        key=key, time="t", tie="id", windows=EVER | {"w": wr.time(30)}, aggregates=some
    )
    check(spark, spec, table, **options)


def test_labels_on_spark(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=4)
    spec = wr.Rolling(key="k", time="t", tie="id", windows=EVER, aggregates=[wr.Sum("x")])
    labels = table.slice(0, 50).select(["k", "t", "id"])
    found = spec.as_of(frame(spark, table), frame(spark, labels)).toArrow()
    assert_same(found, spec.as_of(table, labels), spec)


def streamed(*more: Any) -> wr.Rolling:
    return wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={
            "all": "ever",
            "past": wr.time("ever", ending="30s"),
            "hour": "1h",
            "last": wr.rows(3, within="ever"),
        },
        aggregates=[
            *(wr.Sum("x"), wr.Count(), wr.StdDev("i"), wr.Last("s"), wr.Max("x").where("b")),
            *(wr.Distinct("i").over("hour"), wr.Last("t"), wr.Max("d"), *more),
        ],
        lateness="20s",
    )


def looked_up(
    spark: Any,  # noqa: F811
    pipe: Pipe,
    spec: wr.Rolling,
    table: pa.Table,
    key: int = 1,
) -> None:
    """One key's answers as of the frontier are those of a label at that time."""
    found = wr.spark.lookup(str(pipe.checkpoint), key, spec, spark)
    label = pa.table(
        {"k": pa.array([key]), "t": pa.array([found.time], table.schema.field("t").type)}
    )
    wanted = spec.as_of(table, label)
    assert any(found.values[name] for name in ("x_sum_all", "count_past"))
    for name, value in found.values.items():
        assert equal(value, wanted[name][0].as_py()), name


def stream_goes_on(
    spark: Any,  # noqa: F811
    folder: Any,
    made: Any,
    explained: str,
    keys: tuple[int, ...] = (1,),
) -> None:
    """Restarted in the middle, then with other buckets: always the bits of the table.

    ``made(*more)`` makes the specification, with more aggregates.
    """
    table, spec = random_stream(300, 6, 8, 20.0), made()
    wanted = spec(table)
    parts = split(table, 5, 1)
    one = Pipe(spark, folder / "one", "end").feed(*parts[:3])
    assert explained in spec.explain(one.stream())
    one.run(spec, buckets=2)
    assert "hour" in str(wr.spark.state(str(one.checkpoint), spark))
    for key in keys:
        looked_up(spark, one, spec, table, key)
    one.feed(parts[3]).run(spec, buckets=2)
    done = set(one.found()["id"].to_pylist())
    answered = [number in done for number in table["id"].to_pylist()]
    assert_same(one.found(), wanted.filter(pa.array(answered)), spec)
    other = Pipe(spark, folder / "other", "end").feed(parts[4], end=True)
    columns = StructType([field for field in other.schema.fields if field.name != "end"])
    history = wr.spark.history(str(one.checkpoint), columns, spark)
    other.run(spec, buckets=3, history=history)
    assert_same(other.found(), wanted.filter(pa.array([not a for a in answered])), spec)
    with pytest.raises(Refused, match="window 'all': the history has no totals of"):
        made(wr.Min("x"))(other.stream(), flush="end", history=history)


def test_spark_streams(spark: Any, tmp_path: Any) -> None:  # noqa: F811
    stream_goes_on(spark, tmp_path, streamed, "from a total for each key")


def test_refused_on_streams(spark: Any, tmp_path: Any) -> None:  # noqa: F811
    pipe = Pipe(spark, tmp_path).feed(random_stream(20, 2, 1, 5.0))
    common: dict[str, Any] = {"key": "k", "time": "t", "lateness": "5s"}
    with pytest.raises(Refused, match="holistic aggregates over ever windows on streams: all"):
        wr.Rolling(**common, windows="ever", aggregates=[wr.Median("x")])(pipe.stream())
    with pytest.raises(Refused, match='or within="ever"'):
        wr.Rolling(**common, tie="id", windows=wr.rows(3), aggregates=[wr.Sum("x")])(pipe.stream())
    with pytest.raises(BadSpecification, match="longest= is a length of time"):
        wr.spark.rules(
            pipe.stream(),
            [("a", 'count("1s") > 1')],
            key="k",
            time="t",
            lateness="5s",
            longest="ever",
        )
