"""ApproxCount and ApproxSum: the answer of a counter fed one by one, on every engine."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import Stream, disorder, plan_of, run
from tests.effort import examples
from tests.spark_session import assert_same, frame, spark  # noqa: F401
from tests.stream_session import Pipe, arrival, with_times
from windrow.approx import Count, OverTime, Sum
from windrow.columns import key_chunks
from windrow.columns.bucket import Bucket
from windrow.columns.carry import Carry, run_sorted
from windrow.columns.sequential import machines_of
from windrow.columns.stream_plan import StreamPlan
from windrow.errors import BadSpecification, BadValue, Refused

epsilons = st.one_of(
    st.sampled_from([0.25, 0.1, 0.01, 1e-4, 1e-9]),
    st.builds(Fraction, st.just(1), st.integers(4, 99)),
)
windows = st.one_of(
    st.builds(wr.rows, st.one_of(st.integers(1, 9), st.integers(1, 200))),
    st.builds(wr.time, st.one_of(st.integers(1, 9), st.integers(1, 200))),
)


def events(size: int, keys: int, seed: int, span: int, largest: int) -> pa.Table:
    """Rows in no order: ties, missing values, keys of text, gaps longer than windows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, largest, size, endpoint=True) * rng.integers(0, 2, size)
    t = rng.integers(-span, span, size)
    t = np.where(t > span // 3, t + 300, t)
    names = [None, *"abcdefghijklmnopqrstuvwxyz"]
    return pa.table(
        {
            "k": pa.array([names[n] for n in rng.integers(0, min(keys, 27), size)], pa.string()),
            "n": pa.array(rng.integers(0, 3, size)),
            "t": pa.array(t),
            "id": pa.array(rng.permutation(size)),
            "x": pa.array(x, mask=rng.random(size) < 0.1),
            "b": pa.array(rng.random(size) < 0.4, mask=rng.random(size) < 0.1),
        }
    )


def one_by_one(
    spec: wr.Rolling, table: pa.Table
) -> tuple[dict[str, list[float]], dict[str, list[int]]]:
    """Answers of counters fed in order, and the truth, for every output, in the table's order."""
    rows = table.to_pylist()
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["t"], rows[i]["id"]))
    estimates: dict[str, list[float]] = {}
    truths: dict[str, list[int]] = {}
    for name, given_, label in spec.sequential:
        window, aggregate = cast(Any, spec.windows[label]), cast(Any, given_)
        counts = isinstance(aggregate, wr.ApproxCount)
        column = aggregate.columns[0] if aggregate.columns else None
        estimate, truth = [0.0] * len(rows), [0] * len(rows)
        by_key: dict[Any, list[int]] = {}
        for i in order:
            by_key.setdefault(tuple(rows[i][name] for name in spec.key), []).append(i)

        def worth(i: int, column: Any = column) -> int:
            return 1 if column is None else int(rows[i][column] or 0)

        for run_ in by_key.values():
            W, R, epsilon = getattr(window, "n", 0), aggregate.maximum, aggregate.epsilon
            tick = aggregate.tick or 1
            if not W:
                W = window.length // tick
                plain = Count(W, epsilon) if counts and R == 1 else Sum(W, R, epsilon)
                timed: Any = OverTime(plain, tick)
                for place, i in enumerate(run_):
                    timed.insert(worth(i), at=rows[i]["t"])
                    last = place + 1 == len(run_) or rows[run_[place + 1]]["t"] != rows[i]["t"]
                    estimate[i] = timed.query() if last else -1.0
                    since = rows[i]["t"] - window.length
                    seen = [j for j in run_ if since < rows[j]["t"] <= rows[i]["t"]]
                    truth[i] = sum(map(worth, seen))
                for i, following in reversed(list(pairwise(run_))):
                    if estimate[i] < 0:
                        estimate[i] = estimate[following]  # rows of equal time have one answer
                continue
            counter: Any = Count(W, epsilon) if counts else Sum(W, R, epsilon)
            for place, i in enumerate(run_):
                counter.insert(worth(i))
                estimate[i] = counter.query()
                truth[i] = sum(map(worth, run_[max(0, place - W + 1) : place + 1]))
        estimates[name], truths[name] = estimate, truth
    return estimates, truths


@st.composite
def specifications(draw: Any, exact: bool = False) -> wr.Rolling:
    """One or two windows, one or two aggregates, with values that fit."""
    chosen = {f"w{i}": draw(windows) for i in range(draw(st.integers(1, 2)))}
    lengths: list[Any] = [w.length for w in chosen.values() if w.kind == "time"]
    tick = draw(st.sampled_from([d for d in (1, 2, 3, 5) if all(n % d == 0 for n in lengths)]))
    aggregates: list[Any] = draw(
        st.lists(
            st.sampled_from(
                [
                    wr.ApproxSum("x", maximum=10**6, epsilon=draw(epsilons), tick=tick),
                    wr.ApproxCount("b", maximum=400, epsilon=draw(epsilons), tick=tick),
                    wr.ApproxCount(maximum=400, epsilon=draw(epsilons), tick=tick).alias("all"),
                ]
            ),
            min_size=1,
            max_size=2,
            unique_by=id,
        )
    )
    if exact:
        aggregates += draw(st.lists(st.sampled_from([wr.Sum("x"), wr.Max("x")]), max_size=1))
        if len(aggregates) > len([a for a in aggregates if a.kind == "sequential"]):
            chosen = {label: w for label, w in chosen.items() if w.kind == "time"} or {
                "w": wr.time(30)
            }
    key = draw(st.sampled_from([None, "k", "n", ["k", "n"]]))
    return wr.Rolling(key=key, time="t", tie="id", windows=chosen, aggregates=aggregates)


tables = st.builds(
    events,
    st.integers(1, 200),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([5, 60, 2000]),
    st.sampled_from([1, 40, 2000]),
)


@examples(40)
@given(specifications(), tables)
def test_columns_equal_counters_fed_one_by_one(spec: wr.Rolling, table: pa.Table) -> None:
    found = spec(table)
    estimates, truths = one_by_one(spec, table)
    for name, _, _ in spec.sequential:
        answers = found[name].to_pylist()
        assert answers == estimates[name]
        field = found.schema.field(name)
        bound = float(field.metadata[b"windrow.error_bound"])
        assert bound == spec.metadata(name)["windrow.error_bound"]  # type: ignore[index]
        errors = np.abs(np.array(answers) - np.array(truths[name]))
        assert errors.max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.25, 0.1, 0.03])
def test_gaps_around_the_window(epsilon: float) -> None:
    some = wr.ApproxSum("x", maximum=100, epsilon=epsilon, tick=2)
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(40)], aggregates=[some])
    keys, times = [], []
    for gap in range(30, 50):
        at = np.cumsum([0, 1, gap, 3, gap, gap, 1])
        keys += [gap] * len(at)
        times += at.tolist()
    columns = {"k": keys, "t": times, "id": range(len(keys)), "x": [37] * len(keys)}
    table = pa.table(columns)
    estimates, _ = one_by_one(spec, table)
    assert spec(table)["x_approx_sum_40"].to_pylist() == estimates["x_approx_sum_40"]


@examples(40)
@given(specifications(exact=True), tables, st.integers(1, 60))
def test_sorted_batches_equal_one_call(spec: wr.Rolling, table: pa.Table, size: int) -> None:
    keys = [(name, "ascending") for name in (*spec.key, "t", "id")]
    ordered = table.sort_by(keys)
    carry = Carry(spec)
    out = [carry.push(b) for b in _pieces(ordered, size)[:-1]]
    out.append(carry.push(_pieces(ordered, size)[-1], last=True))
    assert_same(pa.concat_tables(out), spec(table), spec)
    if all(a.kind == "sequential" for a in spec.aggregates):
        assert carry.rows_kept == 0


def _pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def test_live_rows_are_not_kept_for_counters() -> None:
    table = pa.table({"k": [1] * 1000, "t": range(1000), "x": [1] * 1000})
    some = wr.ApproxSum("x", maximum=9, epsilon=0.1)
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(500)], aggregates=[some])
    carry = Carry(spec)
    for batch in table.to_batches(max_chunksize=100):
        carry.push(pa.Table.from_batches([batch]))
        assert carry.rows_kept == 1  # the last one may have peers
    assert sum(t.num_rows for t in run_sorted(table.to_batches(), Carry(spec))) == 1000


def without_reach(spec: wr.Rolling, schema: pa.Schema) -> StreamPlan:
    """A plan; rows windows of counters have no horizon, and need none."""
    timed = {label: w for label, w in spec.windows.items() if w.kind == "time"}
    reaches = (
        plan_of(wr.Rolling(time="t", windows=timed, aggregates=[wr.Count()]), schema).reaches
        if timed
        else {}
    )
    return StreamPlan(spec, schema, reaches, segment_rows=20)


@examples(60)
@given(specifications(exact=True), tables, st.sampled_from([64, 700, 1 << 16]), st.data())
def test_streams_equal_one_call(spec: wr.Rolling, table: pa.Table, chunk: int, data: Any) -> None:
    came, lateness = data.draw(disorder(table))
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any))
    stream = Stream(without_reach(spec, table.schema))
    before, key_chunks.CHUNK = key_chunks.CHUNK, chunk
    try:
        run(stream, came, lateness, [max(size, 8) if size else 0 for size in sizes])
        timed = all(machine.timed for machine in machines_of(spec, _integers()))
        if timed:
            stream.end()
        else:
            stream.turn(None, 10**9)
    finally:
        key_chunks.CHUNK = before
    assert_same(stream.found(), spec(table), spec)
    if not timed:
        distinct = len({tuple(row[n] for n in spec.key) for row in table.to_pylist()})
        assert stream.head.counters.keys == distinct
    if all(a.kind == "sequential" for a in spec.aggregates):
        assert stream.head.log_rows == 0


def test_counters_begin_with_a_history() -> None:
    """Rows of a table feed them, and are not answered."""
    rows = [{"k": n % 3, "t": n // 2, "id": n, "x": n % 7} for n in range(90)]
    table = pa.Table.from_pylist(rows)
    total = wr.ApproxSum("x", maximum=9, epsilon=0.1)
    spec = wr.Rolling(key="k", time="t", tie="id", windows=[wr.rows(12)], aggregates=[total])
    plan = without_reach(spec, table.schema)
    stream = Stream(plan)
    bucket = Bucket(plan, stream.store)
    bucket.seed([table.slice(0, 60)], 30)
    bucket.close()
    stream.turn(table.slice(60), None)
    stream.turn(None, 10**9)
    assert_same(stream.found(), spec(table).slice(60), spec)


def _integers() -> Any:
    from windrow.columns.prepare import time_column

    return time_column(pa.table({"t": [1]}), "t", None)[1]


# --- what is out of range, what changes, what is refused ------------------------------------------


def total(windows: Any = None, **options: Any) -> wr.Rolling:
    given = {"maximum": 10, "epsilon": 1e-9} | options
    aggregate = wr.ApproxSum("x", **given)
    return wr.Rolling(key="k", time="t", windows=windows or [wr.time(9)], aggregates=[aggregate])


def test_values_out_of_range() -> None:
    table = pa.table({"k": ["a", "b", "a", "a"], "t": [3, 4, 5, 5], "x": [1, 11, 9, 2]})
    with pytest.raises(BadValue, match=r"column 'x', row 1 \(key 'b'\): 11 is no whole number"):
        total()(table)
    assert total(clamp=True)(table)["x_approx_sum_9"].to_pylist() == [1, 10, 11, 11]
    fine = table.set_column(2, "x", pa.array([1, 10, 9, 2]))
    with pytest.raises(BadValue, match=r"tick of time 5 \(key 'a'\) come to more than maximum=10"):
        total()(fine)
    found = total(overflow="null")(table)["x_approx_sum_9"].to_pylist()
    assert found == [1, None, None, None]  # the tick of time 5 comes to 11
    assert total([wr.rows(2)], overflow="null")(table)["x_approx_sum_2rows"].to_pylist() == [
        *(1, None, 10, 11)
    ]
    odd = table.set_column(2, "x", pa.array([1.0, 2.5, None, 3.0]))
    with pytest.raises(BadValue, match=r"2\.5 is no whole number"):
        total(clamp=True)(odd)
    whole = table.set_column(2, "x", pa.array([1.0, float("nan"), None, 3.0]))
    assert total(nan="missing")(whole)["x_approx_sum_9"].to_pylist() == [1, 0, 4, 4]
    with pytest.raises(BadValue, match="has type string"):
        total()(table.set_column(2, "x", pa.array(list("abcd"))))


def test_on_streams_what_is_out_of_range_is_null_and_counted() -> None:
    table = pa.table({"k": ["a", "a", "b"], "t": [1, 2, 3], "x": [50, 3, 4]})
    stream = Stream(without_reach(total(overflow="null"), table.schema))
    turn = stream.turn(table, 10)
    assert turn.overflows == 1
    assert stream.found()["x_approx_sum_9"].to_pylist() == [None, 13, 4]


def test_idle_keys_are_dropped_and_chunks_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_chunks, "CHUNK", 1000)
    spec = total([wr.time(20)], maximum=100, tick=2)
    schema = pa.schema({"k": pa.int64(), "t": pa.int64(), "x": pa.int64()})
    stream = Stream(without_reach(spec, schema))
    everyone = pa.table({"k": range(400), "t": [0] * 400, "x": [1] * 400})
    stream.turn(everyone, 1)
    head = stream.head.counters
    assert head.keys == 400
    assert head.count > 8
    per_key = stream.head.log_bytes / 400
    assert per_key < 100
    before = stream.store.totals()[0]
    stream.turn(pa.table({"k": [7], "t": [2], "x": [1]}), 3)
    assert stream.store.totals()[0] - before <= 4  # its own chunk, and one that is looked through
    for time in range(30, 30 + 3 * head.count):
        stream.turn(pa.table({"k": [1000], "t": [time], "x": [1]}), time + 1)
    assert stream.head.counters.keys == 1
    assert stream.head.counters.count == head.count
    assert stream.found()["x_approx_sum_20"].to_pylist()[400] == 2


def test_a_stream_goes_on_without_a_counter_but_not_with_a_new_one() -> None:
    table = events(120, 5, 3, 60, 9).sort_by("t")
    some: list[Any] = [
        wr.ApproxSum("x", maximum=1000, epsilon=0.1),
        wr.ApproxCount("b", maximum=500, epsilon=0.1),
        wr.Max("x"),
    ]

    def plan(aggregates: list[Any], window: Any = None) -> StreamPlan:
        windows = {"w": window or wr.time(40)}
        spec = wr.Rolling(key="k", time="t", tie="id", windows=windows, aggregates=aggregates)
        return without_reach(spec, table.schema)

    def half(aggregates: list[Any]) -> Stream:
        stream = Stream(plan(aggregates))
        first = table.slice(0, 60)
        stream.turn(first, int(first["t"].to_numpy().max()))
        return stream

    for aggregates in ([some[1], some[2]], [some[2]], [some[1]]):
        stream = half(some)
        stream.plan = plan(aggregates)
        stream.answered = []
        stream.turn(table.slice(60), 10**6)
        wanted = stream.plan.spec(table)
        rows = set(stream.found()["id"].to_pylist())
        wanted = wanted.filter(pa.array([i in rows for i in wanted["id"].to_pylist()]))
        assert_same(stream.found(), wanted, stream.plan.spec)
        stream.end()
    stream = half([some[0], some[2]])
    for changed in (
        plan(some),
        plan([some[0].alias("y"), wr.ApproxSum("x", maximum=9, epsilon=0.1), some[2]]),
    ):
        stream.plan = changed
        with pytest.raises(Refused, match="cannot be added or changed"):
            stream.turn(None, 10**6)
    stream = half([some[0]])
    stream.plan = plan([some[0], wr.Max("x")])
    with pytest.raises(Refused, match="needs a new checkpoint"):
        stream.turn(None, 10**6)


def test_refusals() -> None:
    some = wr.ApproxCount("x", epsilon=0.1)
    for window, text in (
        (wr.rows(5, ending=1), "row by row"),
        (wr.rows(5, after=1), "row by row"),
        (wr.rows(5, within=9), "without within="),
        (wr.time(5, closed="both"), "row by row"),
        (wr.bounds("a", "b"), "bounds may lie anywhere"),
        (wr.at_most(wr.Sum("x"), 5), "policy asks for"),
    ):
        with pytest.raises(Refused, match=text):
            wr.Rolling(time="t", windows=[window], aggregates=[some])
    ticks: list[tuple[Any, dict[str, Any], str]] = [
        ("1h", {}, "say how long one is"),
        ("1h", {"tick": 5}, "another unit"),
        ("1h", {"tick": "7s"}, "not a whole number"),
        (wr.time(5), {"tick": 10}, "not a whole number"),
    ]
    for length, more, text in ticks:
        with pytest.raises(BadSpecification, match=text):
            wr.Rolling(time="t", windows=[length], aggregates=[wr.ApproxCount(epsilon=0.1, **more)])
    refused: list[dict[str, Any]] = [{"every": 5}, {"min_rows": 2}]
    for options in refused:
        with pytest.raises(Refused, match="leave"):
            wr.Rolling(time="t", windows=[wr.time(5)], aggregates=[some], **options)
    with pytest.raises(BadSpecification, match="56 bits"):
        wr.Rolling(
            windows=[wr.rows(2**40)], aggregates=[wr.ApproxSum("x", maximum=2**60, epsilon=0.1)]
        )
    with pytest.raises(BadSpecification, match="tick= is a length"):
        wr.ApproxCount(epsilon=0.1, tick=0)
    with pytest.raises(BadSpecification, match="epsilon"):
        wr.ApproxCount(epsilon=0.5)
    with pytest.raises(Refused, match=r"windrow\.approx takes one value at a time"):
        wr.Sliding(wr.rows(5), some)
    own = type("Steps", (wr.Aggregate,), {"kind": "sequential"})
    with pytest.raises(Refused, match="ApproxCount and ApproxSum"):
        wr.Rolling(windows=[wr.rows(5)], aggregates=[own("x")])
    spec = wr.Rolling(time="t", windows=[wr.time(5)], aggregates=[some])
    with pytest.raises(BadSpecification, match="Bank takes batches"):
        spec.stream()
    events_ = pa.table({"t": [1], "x": [True]})
    with pytest.raises(Refused, match="a label is none"):
        spec.as_of(events_, pa.table({"t": [1]}))
    assert "counter, compiled" in spec.explain(events_)


def test_other_tables_and_no_key() -> None:
    columns = {"t": np.arange(50), "x": np.arange(50) % 2}
    spec = wr.Rolling(
        time="t", windows=[wr.time(10)], aggregates=[wr.ApproxSum("x", maximum=1, epsilon=1e-9)]
    )
    exact = np.convolve(columns["x"], np.ones(10))[:50]
    assert spec(columns)["x_approx_sum_10"].tolist() == exact.tolist()
    assert spec(pa.table(columns).to_batches()[0])["x_approx_sum_10"].to_pylist() == exact.tolist()
    empty = spec(pa.table(columns).slice(0, 0))
    assert empty.schema.field("x_approx_sum_10").type == pa.float64()


# --- Spark ---------------------------------------------------------------------------------------
def test_on_spark(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = events(2000, 20, 5, 2000, 900)
    seconds = table["t"].to_numpy()
    timed = with_times(table, seconds)
    aggregates = [
        wr.ApproxSum("x", maximum=10**5, epsilon=0.01, tick="5s"),
        wr.ApproxCount("b", maximum=50, epsilon=0.02, tick="5s"),
    ]
    given_ = {"rows": wr.rows(50), "time": wr.time("5m")}
    options: dict[str, Any] = {"time": "t", "tie": "id", "windows": given_}
    spec = wr.Rolling(key="k", aggregates=aggregates, lateness="20s", **options)
    wanted = spec(timed)
    answers = spec(frame(spark, timed), partitions=2)
    assert answers.schema["x_approx_sum_time"].metadata == spec.metadata("x_approx_sum_time")
    assert_same(answers.toArrow(), wanted, spec)
    alone = wr.Rolling(aggregates=aggregates, **options)
    assert "goes row by row: all rows go to one task" in alone.explain(frame(spark, timed))
    assert_same(alone(frame(spark, timed)).toArrow(), alone(timed), alone)
    came = timed.take(pa.array(arrival(seconds, 20, 1)))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pipe = Pipe(spark, tmp_path, "end")
    pipe.feed(came.slice(0, 1200)).run(spec, buckets=2)
    pipe.feed(came.slice(1200), end=True)
    answers = spec(pipe.stream(), flush="end", buckets=2)
    assert answers.schema["b_approx_count_rows"].metadata == spec.metadata("b_approx_count_rows")
    progress = pipe.start(answers)  # from the checkpoint
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert_same(pipe.found(), wanted, spec)
    assert progress[-1]["observedMetrics"]["windrow"]["kept_rows"] == 0
    assert "aggregates: ApproxSum(x), ApproxCount(b)" in str(wr.spark.state(str(pipe.checkpoint)))
    assert "error at most" in spec.explain(pipe.stream())
