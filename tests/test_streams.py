"""Streams equal tables bit for bit, whatever the batches; late rows, restarts, refusals."""

# mypy: disable-error-code="misc,index,operator"

import copy
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from tests.pairs import GeoMean
from tests.spark_session import (
    AGGREGATES,
    SLOW,
    STRUCTURES,
    assert_same,
    random_table,
    spark,  # noqa: F401
)
from tests.stream_session import (
    Pipe,
    answered,
    arrival,
    counts,
    random_stream,
    split,
    stamped,
    with_times,
)
from tests.test_spark_tables import CORPUS, Longest, Moves, corpus_table, jobs_of
from windrow.columns.stream_plan import SEGMENT_ROWS, StreamPlan
from windrow.errors import BadSpecification, Refused
from windrow.spark import streams
from windrow.testing import TIMED_CASES

KEYED: dict[str, Any] = {"key": "k", "time": "t", "tie": "id", "lateness": "20s"}
FEW: list[Any] = [wr.Count(), wr.Sum("x"), wr.Max("i"), wr.Last("s")]


@pytest.fixture(autouse=True)
def _two_partitions(spark: Any) -> Any:  # noqa: F811
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert not spark.streams.active


def same(
    spark: Any,  # noqa: F811
    folder: Path,
    spec: wr.Rolling,
    parts: list[pa.Table],
    **options: Any,
) -> pa.Table:
    """The stream, told that it ends, gives what the table gives."""
    table = pa.concat_tables(parts)
    pipe = Pipe(spark, folder, "end").feed(*parts, end=True)
    progress = pipe.run(spec, **options)
    found = pipe.found()
    assert_same(found, spec(table), spec)
    assert counts(progress) == {
        "rows": table.num_rows,
        "late_rows": 0,
        "rows_without_time": 0,
        "answered_rows": table.num_rows,
        "overflows": counts(progress)["overflows"],
    }
    return found


def micros(table: pa.Table) -> np.ndarray[Any, Any]:
    return np.asarray(pc.cast(table["t"], pa.int64()).to_numpy())


def watermark(parts: list[pa.Table], lateness: int) -> int:
    """What Spark's is after some batches, in microseconds."""
    latest = max(int(micros(part.filter(part["t"].is_valid())).max()) for part in parts)
    return (latest // 1000 - lateness * 1000) * 1000


def late_ids(parts: list[pa.Table], lateness: int) -> list[int]:
    """By the definition: before the frontier, which is the watermark of the batch before."""
    found: list[int] = []
    for place, part in enumerate(parts):
        if place >= 2:
            dated = part.filter(part["t"].is_valid())
            late = micros(dated) < watermark(parts[: place - 1], lateness)
            found += dated["id"].to_numpy()[late].tolist()
    return found


# --- streams equal tables ------------------------------------------------------------------------


def windows_of(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    lengths = [f"{n}s" for n in generator.integers(1, 400, 4)]
    closed: list[Any] = ["left", "both", "neither"]
    return {
        "plain": wr.time(lengths[0]),
        "closed": wr.time(lengths[1], closed=closed[seed % 3]),
        "past": wr.time(lengths[2], ending=f"{generator.integers(1, 90)}s"),
        "rows": wr.rows(int(generator.integers(2, 30)), within=lengths[3]),
        "rows_past": wr.rows(4, ending=int(generator.integers(1, 5)), within="90s"),
    }


RANDOM: list[tuple[int, Any, int, int, int]] = [
    # seed, key, keys, buckets, rows of a segment
    (0, "k", 8, 4, SEGMENT_ROWS),
    (1, None, 3, 8, 9),
    (2, ["k", "b"], 30, 7, 25),
]


@pytest.mark.parametrize(
    ("seed", "key", "keys", "buckets", "segment_rows"), RANDOM if SLOW else RANDOM[-1:]
)
def test_random_streams(
    spark: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    key: Any,
    keys: int,
    buckets: int,
    segment_rows: int,
) -> None:
    monkeypatch.setattr(streams, "StreamPlan", partial(StreamPlan, segment_rows=segment_rows))
    parts = split(random_stream(500, keys, seed, 20), 5, seed)
    peers = [set(micros(part).tolist()) for part in parts]
    assert any(a & b for i, a in enumerate(peers) for b in peers[:i]), "no peers are split"
    spec = wr.Rolling(
        **(KEYED | {"key": key}),
        windows=windows_of(seed),
        aggregates=[
            *(*AGGREGATES, *(STRUCTURES if SLOW else ())),
            *(Moves("i", times=2), GeoMean("p"), Longest("s", least=1)),
        ],
        min_rows=seed % 3,
    )
    found = same(spark, tmp_path, spec, parts, buckets=buckets)
    assert len(set(found["s_longest_plain"].to_pylist())) > 2


def test_many_small_batches(
    spark: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "StreamPlan", partial(StreamPlan, segment_rows=3))
    table = random_stream(150, 2, 3, 5)
    spec = wr.Rolling(
        **(KEYED | {"lateness": "5s"}),
        windows={"w": wr.time("30s"), "long": wr.time("2h"), "past": wr.time("10s", ending="40s")},
        aggregates=[
            *(wr.Max("x"), wr.Sum("x"), wr.Concat("s"), wr.Count()),
            *(wr.M4("x", "id"), wr.TopK("x", 3), wr.Collect("i"), wr.Mode("s")),
            *(wr.ApproxDistinct("s"), wr.FrequentItems("s", share=0.2)),
        ],
    )
    same(spark, tmp_path, spec, split(table, 8, 3), buckets=2)


def keyed_by_two(zone: str | None) -> tuple[wr.Rolling, list[pa.Table]]:
    table = random_stream(160, 3, 5, 20, zone)
    pick = np.arange(160)
    floats = [[0.0, -0.0, math.nan, None, 1.5][n % 5] for n in pick]
    table = table.append_column("a", pa.array([["x", "", None, "é"][n % 4] for n in pick]))
    table = table.append_column("n", pa.array(floats, pa.float64()))
    spec = wr.Rolling(
        **(KEYED | {"key": ["a", "n"]}),
        windows={
            "w": wr.time("70s"),
            "long": wr.time("2h", closed="both"),
            "r": wr.rows(3, within="9m"),
        },
        aggregates=[*FEW, wr.Max("t"), wr.ArgMax("a", "x")],
    )
    return spec, split(table, 4, 5)


@pytest.mark.parametrize(
    "zone",
    [
        "UTC",
        None,
    ],
)
def test_keys_of_any_kind_in_a_zone(spark: Any, tmp_path: Path, zone: str | None) -> None:  # noqa: F811
    spec, parts = keyed_by_two(zone)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = same(spark, tmp_path, spec, parts, buckets=5)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (found.schema.field("t").type.tz is None) == (zone is None)


def test_small_arrow_batches_columns_of_any_type_and_dots_in_names(
    spark: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    table = random_stream(60, 3, 6, 20)
    pick = range(60)
    table = table.append_column("list", pa.array([[n, None] if n % 3 else None for n in pick]))
    table = table.append_column("struct", pa.array([{"a": n, "b": [str(n)]} for n in pick]))
    kind = pa.map_(pa.string(), pa.int64())
    table = table.append_column("map", pa.array([[("a", n)] for n in pick], kind))
    table = table.rename_columns({"k": "a.b", "x": "x.y", "s": "not.used"})
    spec = wr.Rolling(
        **(KEYED | {"key": "a.b"}), windows=["1m"], aggregates=[wr.Sum("x.y"), wr.Count()]
    )
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    spark.conf.set(option, 1)
    try:
        same(spark, tmp_path, spec, split(table, 3, 6), buckets=2)
    finally:
        spark.conf.set(option, before)


def test_a_dot_in_the_name_of_the_time(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = random_stream(40, 3, 7, 20).rename_columns({"t": "the.time"})
    spec = wr.Rolling(**(KEYED | {"time": "the.time"}), windows=["1m"], aggregates=FEW)
    pipe = Pipe(spark, tmp_path).feed(table)
    pipe.run(spec, buckets=2)
    wanted = spec(table)
    released = pipe.found()
    assert released.num_rows > 20
    kept = wanted.filter(pc.is_in(wanted["id"], released["id"].combine_chunks()))
    assert_same(released, kept, spec)


# --- the corpus ----------------------------------------------------------------------------------


def test_corpus(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    tables, aggregates = [], []
    for name, (kinds, arrow, found) in CORPUS.items():
        table = corpus_table(kinds, arrow).rename_columns({"x": name})
        keys = [f"{name}: {key}" for key in table["k"].to_pylist()]
        tables.append(table.set_column(0, "k", pa.array(keys)))
        for aggregate in found:
            if aggregate.approximate and not SLOW and name not in ("floats", "texts"):
                continue  # sketches see only hashes: two types will do in CI
            if aggregate.columns and aggregate.columns != ("k", "x"):
                renamed = copy.copy(aggregate)
                renamed.columns = tuple(name if c == "x" else c for c in aggregate.columns)
                aggregates.append(renamed)
    table = pa.concat_tables(tables, promote_options="default")
    table = table.set_column(2, "id", pa.array(np.arange(table.num_rows)))
    seconds = table["t"].to_numpy()
    order = np.argsort(seconds, kind="stable")
    spec = wr.Rolling(
        **(KEYED | {"lateness": 0}),
        windows=[wr.rows(3, within="4s"), wr.time("2s", closed="both")],
        aggregates=[wr.Count(), *aggregates],
        overflow="null",
    )
    same(spark, tmp_path, spec, split(with_times(table, seconds).take(order), 4, 0), buckets=5)


def test_timed_corpus(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    rows = [(case.name, *row) for case in TIMED_CASES for row in case.rows]
    rows.sort(key=lambda row: row[2])
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "case": pa.array(columns[0]),
            "k": pa.array(columns[1], pa.string()),
            "t": pa.array([1000 * time for time in columns[2]], pa.timestamp("us", "UTC")),
            "x": pa.array(columns[3], pa.float64()),
            "id": pa.array(range(len(rows))),
        }
    )
    assert table["t"][0].as_py().year == 1969
    windows: list[Any] = ["10ms", wr.time("10ms", closed="both"), wr.time("10ms", ending="10ms")]
    spec = wr.Rolling(
        **(KEYED | {"key": ["case", "k"], "lateness": "0s"}),
        windows=[*windows, wr.rows(2, within="5s")],
        aggregates=[wr.Sum("x"), wr.Count(), wr.Last("x"), wr.Min("x")],
    )
    same(spark, tmp_path, spec, split(table, 4, 1), buckets=3)


# --- late rows -----------------------------------------------------------------------------------


def late_parts() -> list[pa.Table]:
    table = random_table(300, keys=6, seed=8, span=300)
    seconds = table["t"].to_numpy()
    table = with_times(table, seconds).take(arrival(seconds, 120, 8))
    parts = split(table, 4, 8)
    old = random_table(10, keys=6, seed=9, span=20)  # a wholly late batch
    parts.append(with_times(old, old["t"].to_numpy()))
    odd = random_table(12, keys=6, seed=10)
    times = pa.array([None] * 12, pa.timestamp("us", "UTC"))
    parts.append(odd.set_column(1, "t", times))
    number = 0
    for place, part in enumerate(parts):
        ids = pa.array(np.arange(number, number + part.num_rows))
        parts[place] = part.set_column(2, "id", ids)
        number += part.num_rows
    parts.append(
        parts[3].slice(0, 3).set_column(2, "id", pa.array([number, number + 1, number + 2]))
    )
    return parts


@pytest.mark.parametrize("late", ["late", None])
def test_late_rows_are_counted_and_nothing_vanishes(
    spark: Any,  # noqa: F811
    tmp_path: Path,
    late: str | None,
) -> None:
    parts = late_parts()
    table = pa.concat_tables(parts)
    behind = late_ids(parts, 20)
    undated = table.filter(table["t"].is_null())["id"].to_pylist()
    good = table.filter(pc.invert(pc.is_in(table["id"], pa.array(behind + undated))))
    assert len(behind) > 12
    assert set(parts[4]["id"].to_pylist()) < set(behind)
    assert len(undated) == 12
    spec = wr.Rolling(**KEYED, windows=["1m", wr.rows(3, within="2m")], aggregates=FEW)
    pipe = Pipe(spark, tmp_path, "end").feed(*parts, end=True)
    found_counts = counts(pipe.run(spec, late=late, buckets=3))
    assert found_counts == {
        "rows": table.num_rows,
        "late_rows": len(behind),
        "rows_without_time": 12,
        "answered_rows": good.num_rows,
        "overflows": 0,
    }
    found = pipe.found()
    if late is None:
        assert_same(found, spec(good), spec)
        return
    assert sorted(found["id"].to_pylist()) == table["id"].to_pylist()
    flags = found["late"]
    assert_same(found.filter(pc.invert(flags)).drop_columns(["late"]), spec(good), spec)
    passed = found.filter(flags).sort_by("id")
    assert passed["id"].to_pylist() == sorted(behind + undated)
    for name, _, _ in spec.outputs:
        assert passed[name].null_count == passed.num_rows
    wanted = table.filter(pc.is_in(table["id"], passed["id"].combine_chunks())).sort_by("id")
    assert (
        passed.select(["k", "id", "s"]).to_pylist() == wanted.select(["k", "id", "s"]).to_pylist()
    )
    assert passed["t"].to_pylist() == wanted["t"].to_pylist()


def test_buckets_without_rows_are_released(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    def rows(keys: Any, seconds: Any) -> pa.Table:
        return pa.table({"k": pa.array(keys, pa.int64()), "t": stamped(seconds)})

    spec = wr.Rolling(
        key="k", time="t", windows=["1h"], aggregates=[wr.Count(), wr.Max("k")], lateness="10s"
    )
    pipe = Pipe(spark, tmp_path)
    every = list(range(10))
    first = pipe.feed(rows([*every, 0], [*every, 100])).run(spec, buckets=5)
    assert [step["numInputRows"] for step in first] == [11, 0]
    assert answered(first) == [0, 10]  # by timers, in all buckets
    pipe.feed(rows([*every, 0], [200] * 10 + [205]), rows([0], [300]), rows([0], [301]))
    second = pipe.run(spec, buckets=5)
    assert [step["numInputRows"] for step in second] == [11, 1, 1, 0]
    assert answered(second) == [0, 1, 11, 0]  # the rows of ten keys, while only one comes
    found = pipe.found().sort_by([("t", "ascending"), ("k", "ascending")])
    assert found["k"].to_pylist() == [*every, 0, *every, 0]
    assert found["count_1h"].to_pylist() == [1] * 10 + [2] + [3] + [2] * 9 + [4]


# --- restarts ------------------------------------------------------------------------------------


def test_the_last_rows_wait_until_more_come(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = random_stream(200, 5, 11, 20)
    parts = split(table, 4, 11)
    spec = wr.Rolling(**KEYED, windows=["1m", "2h", wr.rows(4, within="5m")], aggregates=FEW)
    wanted = spec(table)
    pipe = Pipe(spark, tmp_path)
    for count in (2, 4):
        pipe.feed(*parts[count - 2 : count])
        pipe.run(spec, buckets=3)
        come = pa.concat_tables(parts[:count])
        ready = come["id"].to_numpy()[micros(come) < watermark(parts[:count], 20)]
        assert 0 < len(ready) < come.num_rows
        released = wanted.filter(pc.is_in(wanted["id"], pa.array(ready)))
        assert_same(pipe.found(), released, spec)
    far = with_times(random_table(1, seed=11), [10**6]).set_column(2, "id", pa.array([200]))
    pipe.feed(far).run(spec, buckets=3)
    assert_same(pipe.found(), wanted, spec)


def test_rows_that_wait_are_counted(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = with_times(random_table(10, seed=16), range(10))
    spec = wr.Rolling(
        **(KEYED | {"key": None, "lateness": "6s"}), windows=["1m"], aggregates=[wr.Count()]
    )
    progress = Pipe(spark, tmp_path).feed(table).run(spec)
    assert answered(progress) == [0, 3]
    assert [step["observedMetrics"]["windrow"]["waiting_rows"] for step in progress] == [10, 7]


def test_a_checkpoint_outlives_changes(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = random_stream(300, 5, 12, 20)
    parts = split(table, 4, 12)
    before = wr.Rolling(
        **KEYED,
        windows={"w": wr.time("1m"), "long": wr.time("5m"), "r": wr.rows(4, within="5m")},
        aggregates=[wr.Sum("x"), wr.Max("i"), wr.Concat("s")],
    )
    pipe = Pipe(spark, tmp_path, "end").feed(*parts[:2])
    pipe.run(before, buckets=3)
    first = pipe.found()
    after = wr.Rolling(
        **KEYED,
        windows={"short": wr.time("20s", closed="both"), "long": wr.time("5m")},
        aggregates=[
            wr.Mean("x"),
            wr.Count(),
            wr.Max("i"),
            wr.Last("s"),
            wr.Sum("x"),
            wr.ArgMax("s", "x"),
        ],
    )
    pipe.sink = tmp_path / "after"
    pipe.feed(*parts[2:], end=True).run(after, buckets=3)
    second = pipe.files()
    assert first.num_rows > 30
    assert second.num_rows > 30
    assert first.num_rows + second.num_rows == 300
    for found, spec in ((first, before), (second, after)):
        wanted = spec(table)
        assert_same(
            found, wanted.filter(pc.is_in(wanted["id"], found["id"].combine_chunks())), spec
        )


def test_changes_that_a_checkpoint_cannot_take(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import functions as F

    table = random_stream(120, 5, 13, 20)
    parts = split(table, 3, 13)
    common: dict[str, Any] = KEYED | {"windows": ["1m", "5m"], "aggregates": FEW}
    pipe = Pipe(spark, tmp_path, "end").feed(*parts[:2])
    pipe.run(wr.Rolling(**common), buckets=4)
    answers = pipe.found().num_rows
    pipe.feed(parts[2], end=True)
    other = pipe.stream().withColumn("f", F.col("f").cast("double"))
    changes: list[tuple[dict[str, Any], dict[str, Any], Any, str]] = [
        ({"windows": ["1m", "6m"]}, {}, None, r"'6m' looks back further .* rows that old are gone"),
        ({"key": "b"}, {}, None, r"the key cannot change .* written with k, the query says b"),
        ({"aggregates": [wr.Sum("p")]}, {}, None, r"the state has no column 'p'"),
        ({}, {}, other, r"columns and their types cannot change .* f float.* f double"),
        ({}, {"buckets": 3}, None, r"number of buckets"),
    ]
    for changed, options, stream, message in changes:
        spec = wr.Rolling(**(common | changed))
        given = pipe.stream() if stream is None else stream
        answer = spec(given, flush="end", **({"buckets": 4} | options))
        with pytest.raises(StreamingQueryException, match=message):
            pipe.start(answer)
        assert pipe.found().num_rows == answers
    spec = wr.Rolling(**common)
    pipe.run(spec, buckets=4)  # and all is as it was
    assert_same(pipe.found(), spec(table), spec)


def test_another_session_zone_after_a_restart(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = random_stream(100, 5, 14, 20)
    parts = split(table, 2, 14)
    spec = wr.Rolling(**KEYED, windows=["5m", wr.rows(3, within="1h")], aggregates=FEW)
    pipe = Pipe(spark, tmp_path, "end").feed(parts[0])
    pipe.run(spec, buckets=2)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        pipe.feed(parts[1], end=True).run(spec, buckets=2)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert_same(pipe.found(), spec(table), spec)


@pytest.mark.parametrize(
    "condition",
    [
        "good",  # which Spark asks before the watermark
        "good or t is null",
    ],
)
def test_a_watermark_of_ones_own(spark: Any, tmp_path: Path, condition: str) -> None:  # noqa: F811
    table = random_stream(120, 5, 15, 20)
    table = table.append_column("good", pa.array([n >= 40 for n in range(120)]))
    parts = [table.slice(first, 40) for first in (0, 40, 80)]
    spec = wr.Rolling(**(KEYED | {"lateness": None}), windows=["5m"], aggregates=FEW)
    pipe = Pipe(spark, tmp_path).feed(*parts)
    stream = pipe.stream().withWatermark("t", "20 seconds").where(condition)
    progress = pipe.start(spec(stream, buckets=2))
    good = table.slice(40)
    wanted = spec(good.filter(pa.array(micros(good) < watermark(parts, 20))))
    assert wanted.num_rows > 40
    assert_same(pipe.found(), wanted, spec)
    assert counts(progress)["late_rows"] == 0


# --- overflow ------------------------------------------------------------------------------------


def test_sums_that_overflow(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    from pyspark.errors import StreamingQueryException

    large = 2**62
    values = [large, large, 1, large, None, large, -large]
    table = pa.table(
        {
            "k": [1, 1, 1, 1, 2, 2, 1],
            "t": stamped([0, 1, 2, 3, 3, 3, 4]),
            "id": range(7),
            "x": pa.array(values, pa.int64()),
        }
    )
    parts = [table.slice(0, 3), table.slice(3)]
    common: dict[str, Any] = KEYED | {"windows": ["1h"], "aggregates": [wr.Sum("x"), wr.Max("x")]}
    spec = wr.Rolling(**common)
    pipe = Pipe(spark, tmp_path / "null", "end").feed(*parts, end=True)
    progress = pipe.run(spec, buckets=2)
    found = pipe.found().sort_by("id")
    assert found["x_sum_1h"].to_pylist() == [large, None, None, None, large, large, None]
    assert found["x_max_1h"].to_pylist() == [large] * 7
    assert counts(progress)["overflows"] == 4
    strict = wr.Rolling(**common, overflow="error")
    pipe = Pipe(spark, tmp_path / "error", "end").feed(*parts, end=True)
    with pytest.raises(StreamingQueryException, match="overflow"):
        pipe.run(strict, buckets=2)


# --- before anything starts ----------------------------------------------------------------------


@pytest.fixture
def idle(spark: Any, tmp_path: Path) -> Any:  # noqa: F811
    """A stream of the usual columns that is never started."""
    table = random_table(3)
    whole = with_times(table, [0, 1, 2]).append_column("number", table["t"])
    whole = whole.append_column("end", pa.array([False] * 3))
    return Pipe(spark, tmp_path).feed(whole).stream()


REFUSED: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ({"lateness": None}, {}, Refused, r"needs lateness=.*withWatermark"),
    ({"lateness": None}, {"flush": "end"}, Refused, r"needs lateness="),
    (
        {"time": "number", "windows": [wr.time(3)]},
        {},
        Refused,
        r"'number' has type bigint.*timestamp_micros",
    ),
    ({"time": None, "windows": [wr.rows(3)]}, {}, Refused, r"reach back for ever"),
    ({"windows": [wr.rows(3)]}, {}, Refused, r"'3rows' could reach back for ever.*within="),
    ({"windows": [wr.time("1m", after="1s")]}, {}, Refused, r"'1m_after_1s' looks ahead"),
    ({"windows": [wr.rows(2, after=1)]}, {}, Refused, r"'2rows_after_1' looks ahead"),
    ({"every": "1m"}, {"late": "l"}, Refused, r"late= passes late rows on.*keys"),
    ({"emit": "changes"}, {"late": "l"}, Refused, r"late= passes late rows on.*keys"),
    ({}, {"gone": "g"}, Refused, r'gone= is for emit="changes"'),
    ({"emit": "changes"}, {"gone": "COUNT_1M"}, BadSpecification, r"gone='COUNT_1M': there is"),
    ({}, {"idle_after": 3}, BadSpecification, r"idle_after= is a length of time"),
    ({"every": "1m", "origin": 3}, {}, BadSpecification, r"origin=3 is not a time like"),
    ({"windows": [wr.bounds("t", "t")]}, {}, Refused, r"bounds may lie anywhere"),
    ({"engine": "native"}, {}, Refused, r'engine="native": Spark has no such operator'),
    ({"tie": None}, {}, Refused, r"Last\('s'\) depends on the order of rows.*tie="),
    (
        {"tie": None, "windows": [wr.rows(2, within="1m")], "aggregates": [wr.Count()]},
        {},
        Refused,
        r"counts rows, which needs a total order",
    ),
    ({}, {"bucket": 3}, BadSpecification, r"no option 'bucket' for streams: .*buckets"),
    ({}, {"hot_rows": 3}, BadSpecification, r"no option 'hot_rows' for streams"),
    ({}, {"buckets": 0}, BadSpecification, r"buckets= is a number from 1"),
    ({}, {"buckets": "3"}, BadSpecification, r"buckets= is a number from 1"),
    ({}, {"late": "X"}, BadSpecification, r"late='X': there is such a column already"),
    ({}, {"late": "count_1m"}, BadSpecification, r"late='count_1m': there is such a column"),
    ({}, {"late": ""}, BadSpecification, r"late= is the name of a column"),
    ({}, {"flush": "stop"}, BadSpecification, r"flush='stop': there is no such column"),
    ({}, {"flush": "i"}, BadSpecification, r"flush='i': the column must be boolean"),
    ({"aggregates": [wr.Sum("y")]}, {}, BadSpecification, r"Sum\('y'\): there is no column 'y'"),
    ({"key": "kk"}, {}, BadSpecification, r"key: there is no column 'kk'"),
    ({"key": "end", "tie": "id"}, {"flush": "end"}, BadSpecification, r"'end'"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(spark: Any, idle: Any, number: int) -> None:  # noqa: F811
    changed, options, kind, message = REFUSED[number]

    def build() -> None:
        spec = wr.Rolling(**(KEYED | {"windows": ["1m"], "aggregates": FEW} | changed))
        for action in (spec, spec.explain):
            with pytest.raises(kind, match=message):
                action(idle, **options)

    assert jobs_of(spark, build)[1] == 0


def test_lateness_must_be_a_length_of_time() -> None:
    common: dict[str, Any] = {"time": "t", "windows": ["1m"], "aggregates": [wr.Count()]}
    for bad, message in ((-5, "not be negative"), ("-3s", "cannot read"), ("soon", "soon")):
        with pytest.raises(BadSpecification, match=message):
            wr.Rolling(**common, lateness=bad)


def test_the_plan_and_the_schema(spark: Any, idle: Any) -> None:  # noqa: F811
    aggregates = [*FEW, wr.Concat("s"), Longest("s")]
    spec = wr.Rolling(**KEYED, windows=["1m", wr.rows(3, within="1h")], aggregates=aggregates)
    (text, schema), jobs = jobs_of(
        spark,
        lambda: (
            spec.explain(idle, buckets=6, flush="end", late="was_late"),
            spec(idle, buckets=6, flush="end", late="was_late").schema,
        ),
    )
    assert jobs == 0
    assert "Spark stream by k, in 6 buckets; rows may be late by 20s" in text
    assert "kept of each row: k, t, x, i, s" in text
    for name, _, _ in spec.outputs:
        assert f"answer {name}: {schema[name].dataType.simpleString()}, " in text
        assert schema[name].nullable
    assert "count_1m: bigint, rows that leave, folded segments (DABA Lite)" in text
    assert "s_concat_1m: string, by replaying the window's rows" in text
    assert "s_longest_3rows_within_1h: string, from the last rows of every key" in text
    names = [name for name, _, _ in spec.outputs]
    assert schema.names == [*(c for c in idle.columns if c != "end"), *names, "was_late"]
    assert schema["was_late"].dataType.simpleString() == "boolean"
    plain = spec(idle, flush="end").schema
    assert not plain["count_1m"].nullable
    assert "was_late" not in plain.names
    one = wr.Rolling(**(KEYED | {"key": None}), windows=["1m"], aggregates=[wr.Count()])
    assert "without a key: one task, in 1 buckets" in one.explain(idle)
