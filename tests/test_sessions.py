"""Sessions: the rows since the last pause, in every engine."""

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
from pyspark.sql import functions as F

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
from tests.emission_oracle import Changes
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
from tests.stream_session import Pipe, random_stream
from tests.tables import expected, members, session
from tests.test_ever import run_twice, stream_goes_on
from windrow.columns import key_chunks
from windrow.errors import BadSpecification, Refused, WindrowError
from windrow.windows import RunningTotal
from windrow.windows.compare import equal

BOUNDED = [a for a in [*AGGREGATES, *STRUCTURES, GeoMean("p")] if a.kind == "bounded"]
SESSIONS: dict[str, Any] = {
    "short": wr.session(2),
    "long": wr.session(9),
    "before": wr.session(5, closed="left"),
}
CLOSED = st.sampled_from(["right", "left"])
ROWS = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-9, 9))), max_size=40)


# --- one value at a time --------------------------------------------------------------------------


@given(
    st.sampled_from([wr.Max(), wr.Sum(), wr.Count(), wr.First(), wr.Median(), wr.Collect()]),
    st.sampled_from(["auto", "Recalc", "DabaLite", "Amta"]),
    CLOSED,
    st.integers(1, 8),
    ROWS,
    st.integers(0, 20),
)
@examples(100)
def test_values_are_what_the_definition_says(
    aggregate: Any, algorithm: str, closed: Any, gap: int, rows: Any, pause: int
) -> None:
    one = wr.Sliding(wr.session(gap, closed=closed), aggregate, algorithm)
    times = list(itertools.accumulate(step for step, _ in rows))
    values = [value for _, value in rows]

    def answer(count: int, at: int) -> Any:
        """Of the rows that have come; with ``left`` those of this very time are left out."""
        came = [i for i in range(count) if closed == "right" or times[i] < at]
        held = session(times[:count], at, gap, closed == "right")
        window = wr.windows.Recalc(aggregate)
        for i in came[len(came) - held :]:
            window.insert(values[i])
        assert len(one) == held
        return window.query()

    for i, at in enumerate(times):
        found = one.insert(values[i], at=at)
        assert equal(found, answer(i + 1, at))
    if rows:
        found = one.advance(times[-1] + pause)
        assert equal(found, answer(len(rows), times[-1] + pause))
        if not len(one):
            assert (one.oldest, one.youngest) == (None, None)


def test_a_session_is_one_total() -> None:
    visit = wr.Sliding(wr.session("30m"), wr.Sum())
    assert isinstance(visit.window, RunningTotal)
    assert "after a pause all rows leave at once" in visit.explain()
    start = pd.Timestamp("2024-05-01 10:00").to_pydatetime()
    minutes = [0, 30, 61, 61, 90]
    found = [visit.insert(1, at=start + pd.Timedelta(minutes=m).to_pytimedelta()) for m in minutes]
    assert found == [1, 2, 1, 2, 3]
    assert visit.window.stored_partials() == 1
    again = copy.deepcopy(visit)
    assert again.advance(start + pd.Timedelta(minutes=120)) == 3
    assert again.advance(start + pd.Timedelta(minutes=121)) is None


def test_values_that_come_late_and_sessions_in_a_store() -> None:
    late = wr.Sliding(wr.session(3), wr.Count(), lateness=5)
    assert [late.insert(0, at=t) for t in (1, 8, 4, 9, 20)] == [0, 1, 1, 1, 2]  # 1, 4; 8, 9
    assert late.drain() == 1
    store = wr.stores.Memory()
    with wr.Sliding(wr.session(3), wr.Sum(), store=store, name="visit") as window:
        assert [window.insert(2, at=t) for t in (1, 4)] == [2, 4]
    with wr.Sliding(wr.session(3), wr.Sum(), store=store, name="visit") as window:
        assert [window.insert(2, at=t) for t in (7, 11)] == [6, 2]


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 12), ROWS)
@examples(60)
def test_joined_with_other_windows(gap: int, n: int, limit: int, rows: Any) -> None:
    """A row stays where all of them keep it; on columns as one value at a time."""
    times = list(itertools.accumulate(step for step, _ in rows))
    values = [abs(value or 0) for _, value in rows]
    table = pa.table({"t": pa.array(times, pa.int64()), "x": pa.array(values, pa.int64())})
    sums: Any = wr.session(gap) & wr.at_most(wr.Sum("x"), limit)
    for window in (wr.session(gap) & wr.rows(n), wr.rows(n) & wr.session(gap), sums):
        spec = wr.Rolling(time="t", windows={"w": window}, aggregates=[wr.Collect("x")])
        found = spec(table)["x_collect_w"].to_pylist()
        here: Any = wr.session(gap) & wr.at_most(wr.Sum(), limit) if window is sums else window
        one = wr.Sliding(here, wr.Collect())
        for i, at in enumerate(times):
            # columns: up to the row itself, whatever has the same time
            held = values[i + 1 - session(times[: i + 1], at, gap, True) : i + 1]
            if window is sums:
                while sum(held) > limit:
                    held = held[1:]
            else:
                held = held[-n:]
            assert found[i] == (held or None)
            assert one.insert(values[i], at=at) == (held or None)


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_columns_are_what_the_definition_says(key: Any) -> None:
    table = random_table(150, seed=5, span=350)
    rows = table.to_pylist()
    aggregates = [*AGGREGATES[:20], wr.Median("i"), wr.Collect("i"), GeoMean("p")]
    spec = wr.Rolling(key=key, time="t", tie="id", windows=SESSIONS, aggregates=aggregates)
    found = spec(table)
    for name, aggregate, label in spec.outputs:
        column = found[name].to_pylist()
        for i in range(0, len(rows), 7):
            wanted = expected(rows, spec, aggregate, members(rows, spec, spec.windows[label], i))
            assert equal(column[i], wanted) or column[i] == pytest.approx(wanted, rel=1e-12)


def test_they_are_those_of_pandas_recipes() -> None:
    """A new session where the difference is large, numbered, and grouped by."""
    table = random_table(300, seed=1, span=900).to_pandas().sort_values(["k", "t", "id"])
    spec = wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={"v": wr.session(4)},
        aggregates=[wr.Count(), wr.Max("p")],
    )
    found = spec(table)
    new = table.groupby("k")["t"].diff().gt(4) | (table["k"] != table["k"].shift())
    by_session = found.groupby(new.cumsum())
    assert (by_session["count_v"].last() == by_session.size()).all()
    assert (by_session["p_max_v"].last() == by_session["p"].max()).all()


def test_times_far_apart() -> None:
    far = 2**61
    table = pa.table({"t": [-far, 0, far], "x": [1, 2, 3]})
    for gap, wanted in ((1, [1, 1, 1]), (far, [1, 2, 3]), (far - 1, [1, 1, 1])):
        spec = wr.Rolling(time="t", windows=[wr.session(gap)], aggregates=[wr.Count()])
        assert spec(table)[f"count_session_{gap}"].to_pylist() == wanted
    beyond = pa.table({"t": [-(2**63), 2**63 - 1], "x": [1, 2]})
    with pytest.raises(BadSpecification, match="too far from 0"):
        wr.Rolling(time="t", windows=[wr.session(5)], aggregates=[wr.Count()])(beyond)


@pytest.mark.parametrize("key", [None, "k"])
def test_labels_and_ticks(key: Any) -> None:
    """A session goes on for its gap after the last row; ticks go on as long."""
    events = random_table(200, seed=2, span=500)
    spec = wr.Rolling(
        key=key,
        time="t",
        tie="id",
        windows=SESSIONS,
        aggregates=[wr.Sum("i"), wr.Count(), wr.Max("p")],
        every=2,
    )
    ticks, names = spec(events), [name for name, _, _ in spec.outputs]
    rows = copy.copy(spec)
    rows.every = None
    labels = ticks.drop_columns(names)
    assert rows.as_of(events, labels, strict=False).select(names).equals(ticks.select(names))
    keys = events["k"].to_pylist() if key else [0] * len(events)
    own: dict[int, list[int]] = {}
    for k, t in zip(keys, events["t"].to_pylist(), strict=True):
        own.setdefault(k, []).append(t)
    wanted = {
        (k, tick)
        for k, times in own.items()
        for tick in range(0, 520, 2)
        if any(
            session(sorted(times), tick, gap, end)
            for gap, end in ((2, True), (9, True), (5, False))
        )
    }
    found = zip(
        ticks["k"].to_pylist() if key else [0] * len(ticks), ticks["t"].to_pylist(), strict=True
    )
    assert sorted(found) == sorted(wanted)


COMMON: dict[str, Any] = {"time": "t", "aggregates": [wr.Count()]}
MISTAKES: list[Any] = [
    (lambda: wr.session(0), "the gap must be positive"),
    (lambda: wr.session("ever"), r'one that no pause ends is time\("ever"\)'),
    (lambda: wr.session("30 mn"), "cannot read '30 mn'"),
    (lambda: wr.session("1h", closed="both"), "closed is right or left"),  # type: ignore[arg-type]
    (lambda: wr.session(5, closed="left") & wr.rows(3), "only windows that end at the current row"),
    (lambda: wr.Rolling(windows=wr.session(5), aggregates=[wr.Count()]), "is about time: say"),
    (
        lambda: wr.Rolling(
            time="t", windows=wr.session(5), aggregates=[wr.ApproxCount(epsilon=0.1)]
        ),
        "sequential aggregates over session windows on columns: a counter's error",
    ),
    (lambda: wr.Hub().register(wr.Max(), wr.session(5)), "its length is not fixed"),
    (
        lambda: wr.Sliding(wr.session(5), wr.Max(), lateness=3, late="insert"),
        "sessions, .* take rows in order",
    ),
    (
        lambda: wr.Rolling(**COMMON, windows=wr.session("5s"))(pa.table({"t": [1, 2]})),
        "times are integers",
    ),
]


@pytest.mark.parametrize(("make", "says"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_where_it_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(WindrowError, match=says):
        make()


# --- a bucket of a stream; other properties of buckets have sessions too --------------------------


@pytest.fixture
def _small_chunks() -> Iterator[None]:
    before, key_chunks.CHUNK = key_chunks.CHUNK, 300
    yield
    key_chunks.CHUNK = before


@pytest.mark.usefixtures("_small_chunks")
@given(st.integers(0, 10**6), some(BOUNDED), st.sampled_from(KEYS), st.data())
@examples(40)
def test_totals_in_many_chunks(seed: int, aggregates: Any, key: Any, data: Any) -> None:
    table = random_table(data.draw(st.integers(1, 250)), keys=60, seed=seed, span=300)
    spec = wr.Rolling(key=key, time="t", tie="id", windows=SESSIONS, aggregates=aggregates)
    came, lateness = data.draw(disorder(table))
    stream = Stream(plan_of(spec, table.schema, segment_rows=data.draw(st.integers(1, 60))))
    run(stream, came, lateness, data.draw(st.sampled_from([[40], [9, 0, 70], [250]])))
    stream.end()
    assert_same(stream.found(), spec(table), spec)


def test_no_rows_are_kept_and_sessions_that_are_over_are_dropped() -> None:
    spec = small_spec(windows=[wr.session(5)])
    stream = Stream(plan_of(spec, SCHEMA))
    for first in range(0, 2000, 40):
        stream.turn(small_table([(n, n) for n in range(first, first + 40)], first), first + 40)
        assert stream.head.log_rows == 0
        assert stream.head.sights["session_5"].totals.keys <= 6
    stream.turn(None, 3000)
    assert stream.store.log.held == {}


def test_rows_that_are_not_in_the_totals_yet_go_on_with_a_session() -> None:
    """Changes look at the moment before the frontier: totals are behind it, by segments of rows."""
    times = [49, 50, 52, 52, 52, 52, 54, 55, 56, 57, 57, 57, 57, 57, 58, 60, 65, 67]
    table = small_table([(0, time) for time in times])
    spec = small_spec(windows=[wr.session(1, closed="left")], emit="changes")
    plan = plan_of(spec, SCHEMA, segment_rows=2)
    stream, oracle = Stream(plan), Changes(spec, plan.reaches)
    frontier = None
    for first in range(0, len(times), 2):
        rows = table.slice(first, 2)
        turn = stream.turn(rows, frontier)
        found = [] if turn.answered is None else turn.answered.to_pylist()
        assert [list(row.values()) for row in found] == oracle.turn(rows.to_pylist(), frontier)
        frontier = max(times[: first + 2])
    assert len(oracle.known) == 1


CHANGED: list[Any] = [
    ({"windows": {"w": wr.time(8)}}, None),
    ({"windows": {"visit": wr.session(5)}}, None),
    ({"windows": {"visit": wr.session(5), "w": wr.time(8), "v": wr.time(5)}}, None),
    ({"aggregates": [wr.Sum("x")]}, None),
    (
        {"aggregates": [wr.Sum("x"), wr.Count(), wr.Max("x")]},
        "cannot be added to window 'visit' while a checkpoint is in use, since only totals are",
    ),
    (
        {"windows": {"visit": wr.session(6), "w": wr.time(8)}},
        "window 'visit' is about whole sessions, whose beginnings",
    ),
    (
        {"windows": {"visit": wr.session(5), "w": wr.time(80)}},
        "window 'w' looks back further than any time window of the checkpoint",
    ),
]


@pytest.mark.parametrize(("changed", "says"), CHANGED, ids=[str(i) for i in range(len(CHANGED))])
def test_what_may_change_between_two_runs(changed: Any, says: str | None) -> None:
    common: dict[str, Any] = {
        "windows": {"visit": wr.session(5), "w": wr.time(8)},
        "aggregates": [wr.Sum("x"), wr.Count()],
    }
    run_twice(common, changed, says, keys=7)


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "options"), [("k", {}), ("k", {"hot_rows": 60}), (None, {})])
def test_spark_tables(spark: Any, key: Any, options: Any) -> None:  # noqa: F811
    table = random_table(300, seed=3, span=700)
    several = [*AGGREGATES[:12], wr.Median("i"), wr.TopK("x", 3), GeoMean("p")]
    spec = wr.Rolling(
        key=key, time="t", tie="id", windows=SESSIONS | {"w": wr.time(30)}, aggregates=several
    )
    check(spark, spec, table, **options)
    if key is None:
        assert "no key, and sessions" in spec.explain(frame(spark, table))


def test_labels_on_spark(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=4, span=500)
    spec = wr.Rolling(key="k", time="t", tie="id", windows=SESSIONS, aggregates=[wr.Sum("x")])
    labels = table.slice(0, 50).select(["k", "t", "id"])
    found = spec.as_of(frame(spark, table), frame(spark, labels)).toArrow()
    assert_same(found, spec.as_of(table, labels), spec)


def test_sessions_are_those_of_spark(spark: Any) -> None:  # noqa: F811
    """The last row of each has the answers that ``session_window`` gives; rows a gap apart too."""
    table = random_stream(400, 4, 6, 0.0)
    df = frame(spark, table)
    theirs = (
        df.groupBy("k", F.session_window("t", "2 seconds"))
        .agg(F.count(F.lit(1)).alias("n"), F.max("p").alias("p"), F.max("t").alias("t"))
        .select("k", "t", "n", "p")
    )
    spec = wr.Rolling(
        key="k", time="t", windows={"v": wr.session("2s")}, aggregates=[wr.Count(), wr.Max("p")]
    )
    last = spec(df).groupBy("k", "t").agg(F.max("count_v").alias("n"), F.max("p_max_v").alias("p"))
    both = last.join(theirs, ["k", "t"], "inner").select(last.n == theirs.n, last.p == theirs.p)
    found = [tuple(row) for row in both.collect()]
    assert len(found) == theirs.count() > 50
    assert set(found) == {(True, True)}
    gaps = table.to_pandas().sort_values("t").groupby("k")["t"].diff()
    assert (gaps == pd.Timedelta(seconds=2)).any()


def streamed(*more: Any) -> wr.Rolling:
    return wr.Rolling(
        key="k",
        time="t",
        tie="id",
        windows={
            "all": wr.session("5s"),
            "past": wr.session("9s", closed="left"),
            "hour": "1h",
            "ever": "ever",
        },
        aggregates=[
            *(wr.Sum("x"), wr.Count(), wr.StdDev("i"), wr.Last("s"), wr.Max("x").where("b")),
            *(wr.Distinct("i").over("hour"), wr.Last("t"), wr.Max("d"), *more),
        ],
        lateness="20s",
    )


def test_spark_streams(spark: Any, tmp_path: Any) -> None:  # noqa: F811
    explained = "from a total for each key's session"
    stream_goes_on(spark, tmp_path, streamed, explained, keys=(3, 5, 7))


def test_refused_on_streams(spark: Any, tmp_path: Any) -> None:  # noqa: F811
    pipe = Pipe(spark, tmp_path).feed(random_stream(20, 2, 1, 5.0))
    spec = wr.Rolling(
        key="k", time="t", lateness="5s", windows=wr.session("5s"), aggregates=[wr.Median("x")]
    )
    with pytest.raises(Refused, match="holistic aggregates over session windows on streams"):
        spec(pipe.stream())
