"""ApproxCount and ApproxSum: the answer of a counter fed one by one, on every engine."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from tests.spark_session import assert_same, frame, spark  # noqa: F401
from tests.stream_session import Pipe, arrival, split, with_times
from tests.test_bucket import MemoryStore, Stream, disorder, plan_of, run
from windrow.approx import Count, OverTime, Sum
from windrow.columns import counter_cells
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
    for name, aggregate, label in spec.sequential:
        window: Any = spec.windows[label]
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
                for i, following in reversed(list(zip(run_, run_[1:], strict=False))):
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
    lengths = [w.length for w in chosen.values() if isinstance(w, wr.slides.Time)]
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


@settings(max_examples=40)
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


@settings(max_examples=40)
@given(specifications(exact=True), tables, st.integers(1, 60), st.data())
def test_sorted_batches_equal_one_call(
    spec: wr.Rolling, table: pa.Table, size: int, data: Any
) -> None:
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


@settings(max_examples=60)
@given(specifications(exact=True), tables, st.sampled_from([64, 700, 1 << 16]), st.data())
def test_streams_equal_one_call(spec: wr.Rolling, table: pa.Table, chunk: int, data: Any) -> None:
    came, lateness = data.draw(disorder(table))
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any))
    stream = Stream(without_reach(spec, table.schema))
    before, counter_cells.CHUNK = counter_cells.CHUNK, chunk
    try:
        run(stream, came, lateness, [max(size, 8) if size else 0 for size in sizes])
        timed = all(machine.timed for machine in machines_of(spec, _integers()))
        if timed:
            stream.end()
        else:
            stream.turn(None, 10**9)
    finally:
        counter_cells.CHUNK = before
    assert_same(stream.found(), spec(table), spec)
    if not timed:
        distinct = len({tuple(row[n] for n in spec.key) for row in table.to_pylist()})
        assert stream.head.counters.keys == distinct
    if all(a.kind == "sequential" for a in spec.aggregates):
        assert stream.head.log_rows == 0


def _integers() -> Any:
    from windrow.columns.prepare import time_column

    return time_column(pa.table({"t": [1]}), "t", None)[1]


# --- Spark ---------------------------------------------------------------------------------------


@pytest.mark.xdist_group("streams")
def test_on_spark(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = events(3000, 20, 5, 2000, 900)
    seconds = table["t"].to_numpy()
    timed = with_times(table, seconds)
    aggregates = [
        wr.ApproxSum("x", maximum=10**5, epsilon=0.01, tick="5s"),
        wr.ApproxCount("b", maximum=50, epsilon=0.02, tick="5s"),
    ]
    windows = {"rows": wr.rows(50), "time": wr.time("5m")}
    spec = wr.Rolling(
        key="k", time="t", tie="id", windows=windows, aggregates=aggregates, lateness="20s"
    )
    wanted = spec(timed)
    answers = spec(frame(spark, timed), partitions=3)
    bound = spec.metadata("x_approx_sum_time")
    assert answers.schema["x_approx_sum_time"].metadata == bound
    assert_same(answers.toArrow(), wanted, spec)
    alone = wr.Rolling(time="t", tie="id", windows=windows, aggregates=aggregates)
    assert "goes row by row: all rows go to one task" in alone.explain(frame(spark, timed))
    assert_same(alone(frame(spark, timed)).toArrow(), alone(timed), alone)
    came = timed.take(pa.array(arrival(seconds, 20, 1)))
    pipe = Pipe(spark, tmp_path, "end")
    first, second = came.slice(0, 1700), came.slice(1700)
    pipe.feed(*split(first, 2, 1)).run(spec)
    progress = pipe.feed(*split(second, 2, 1), end=True).run(spec)  # from the checkpoint
    assert pipe.stream().schema is not None
    assert spec(pipe.stream(), flush="end").schema["b_approx_count_rows"].metadata == spec.metadata(
        "b_approx_count_rows"
    )
    assert_same(pipe.found(), wanted, spec)
    assert progress[-1]["observedMetrics"]["windrow"]["kept_rows"] == 0
    shown = str(wr.spark.state(str(pipe.checkpoint)))
    assert "aggregates: ApproxSum(x), ApproxCount(b)" in shown
    assert "error at most" in spec.explain(pipe.stream())
