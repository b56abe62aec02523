"""Current values in Redis, lookups from the state, what streams report: on a real Redis."""

import http.client
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.redis_server import RedisServer

import windrow as wr
from tests.effort import examples
from tests.spark_session import SLOW, frame, spark  # noqa: F401
from tests.stream_session import Pipe, random_stream, split
from windrow.errors import BadSpecification, BadValue, Refused, StoreUnavailable
from windrow.serving import Current, Features, Upserts, key_name
from windrow.windows.compare import equal

SERVER = Path(__file__).parent.parent / "examples" / "feature_server.py"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as redis:
        yield redis


# --- upserts --------------------------------------------------------------------------------------

WRITES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(0, 1), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


@given(WRITES)
@examples(30)
def test_a_key_has_the_latest_whatever_comes_when(
    server: RedisServer, writes: list[tuple[int, int, int, int]]
) -> None:
    prefix = f"{time.monotonic_ns()}:"
    for key, micros, version, batch in writes:
        row = ((key,), micros, {"v": [version, micros, batch]})
        Upserts(server.url, prefix, version).write([row], batch)
    reader = Features(server.url, prefix)
    for key in range(3):
        ranks = [[v, t, b] for k, t, v, b in writes if k == key]
        found = reader.get(key)
        if not ranks:
            assert found is None
        else:
            assert found is not None
            assert found.values["v"] == max(ranks)
            assert found.time == EPOCH + timedelta(microseconds=max(ranks)[1])
    reader.close()


def test_many_keys_and_odd_values(server: RedisServer) -> None:
    values = {
        "float": 0.1 + 0.2,
        "nan": float("nan"),
        "big": 2**62,
        "none": None,
        "text": "é\n",
        "exact": Decimal("1.10"),
        "at": datetime(2020, 1, 1, tzinfo=UTC),
        "list": [1.5, None],
    }
    upserts = Upserts(server.url, "odd:")
    count = 2500  # three pipelines
    assert upserts.write((((n, "a:b"), n, values) for n in range(count)), 0) == count
    assert upserts.write((((n, "a:b"), n - 1, {}) for n in range(count)), 1) == 0
    reader = Features(server.url, "odd:")
    found = reader.get_many([(0, "a:b"), (count - 1, "a:b"), (count, "a:b")])
    reader.close()
    assert found[2] is None
    wanted = values | {"exact": "1.10", "at": "2020-01-01T00:00:00+00:00"}
    for place, current in ((0, found[0]), (count - 1, found[1])):
        assert current is not None
        assert current.time == EPOCH + timedelta(microseconds=place)
        assert list(current.values) == list(wanted)
        assert all(equal(current.values[name], wanted[name]) for name in wanted)


@given(st.lists(st.lists(st.none() | st.text("a:%n3Aul", max_size=4), min_size=2, max_size=2)))
def test_names_tell_keys_apart(keys: list[list[str | None]]) -> None:
    names = {key_name("p:", key) for key in keys}
    assert len(names) == len({tuple(key) for key in keys})


def test_numpy_s_keys_are_python_s() -> None:
    noon = datetime(2024, 1, 1, 12)
    same: list[tuple[Any, Any]] = [
        (True, np.True_),
        (42, np.int8(42)),
        (1.5, np.float32(1.5)),
        (noon, np.datetime64(noon, "s")),
        (noon, np.datetime64(noon, "ns")),
        (None, np.datetime64("NaT")),
        ("a", np.str_("a")),
    ]
    for mine, numpys in same:
        assert key_name("", [mine]) == key_name("", [numpys])


def test_a_reader_takes_tuples_and_says_who_is_not_there(server: RedisServer) -> None:
    Upserts(server.url, "t:").write([((1, "a"), 1, {"n": 1})], 0)
    reader = Features(server.url, "t:")
    assert reader.get((1, "a")) == reader.get(1, "a") == reader.get_many([(1, "a")])[0]
    assert reader.get(1, "a") is not None
    reader.close()
    nobody = Features("redis://127.0.0.1:1/0")
    for ask in (lambda: nobody.get(1), lambda: nobody.get_many([1])):
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/0 did not answer"):
            ask()


def test_idle_keys_expire(server: RedisServer) -> None:
    upserts = Upserts(server.url, "idle:", expire="300ms")
    upserts.write([((1,), 1, {}), ((2,), 1, {})], 0)
    reader = Features(server.url, "idle:")
    until = time.monotonic() + 5
    while reader.get(1) is not None:
        upserts.write([((2,), 1, {})], 0)
        assert time.monotonic() < until
        time.sleep(0.05)
    assert reader.get(2) is not None
    reader.close()


def test_a_server_that_goes_away_and_comes_back() -> None:
    import threading

    rows = [((n,), n, {"n": n}) for n in range(3000)]
    with RedisServer() as server:
        upserts = Upserts(server.url, patience="20s")
        assert upserts.write(rows, 0) == 3000
        server.kill()
        with pytest.raises(StoreUnavailable, match=r"did not answer, tried [2-9] times in 300ms"):
            Upserts(server.url, patience="300ms").write(rows[:1], 0)
        back = threading.Timer(0.5, server.start)
        back.start()
        assert upserts.write([((n,), 5000, {"n": -n}) for n in range(3000)], 1) == 3000
        back.join()
        reader = Features(server.url)
        found = reader.get_many(range(3000))
        reader.close()
    assert [current.values["n"] for current in found if current] == [-n for n in range(3000)]


def test_the_feature_server(server: RedisServer) -> None:
    values = {"sum": 0.1, "count": 3, "none": None}
    Upserts(server.url, "http:").write([(("a b", 2), 1_000_000, values), ((7,), 0, {})], 0)
    command = [sys.executable, str(SERVER), "--url", server.url, "--prefix", "http:"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host = process.stdout.readline().split("/")[2]
        connection = http.client.HTTPConnection(host)
        wanted = {"time": "1970-01-01T00:00:01+00:00", "values": values}
        for path, status in (("a%20b/2", 200), ("7", 200), ("8", 404), ("", 404)):
            connection.request("GET", f"/features/{path}")
            answer = connection.getresponse()
            found = json.loads(answer.read())
            assert answer.status == status
            assert status == 404 or path == "7" or found == wanted
        connection.close()
        process.terminate()


def test_bad_options() -> None:
    features = wr.Rolling(key="k", time="t", windows=["1h"], aggregates=[wr.Count()])
    for options, message in (
        ({"url": "nonsense"}, "redis://host:port"),
        ({"version": -1}, "from 0 to 99999"),
        ({"expire": 5}, "a length of time"),
        ({"patience": 5}, "a length of time"),
        ({"columns": "x"}, "a list of names"),
    ):
        with pytest.raises(BadSpecification, match=message):
            wr.spark.RedisSink(features, **options)
    with pytest.raises(Refused, match='gone= is for emit="changes"'):
        wr.spark.RedisSink(features, gone="is_gone")
    changes = wr.Rolling(**CHANGED, emit="changes")
    with pytest.raises(BadSpecification, match="still in their windows"):
        wr.spark.RedisSink(changes, expire="80s")  # a minute, and 20 seconds of lateness
    unkeyed = wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Count()])
    with pytest.raises(Refused, match="by key"):
        wr.spark.RedisSink(unkeyed)


# --- streams --------------------------------------------------------------------------------------

RECENT = wr.rows(3, within="60s")
SPEC = wr.Rolling(
    key="k",
    time="t",
    tie="id",
    windows={
        "10s": wr.time("10s"),
        "both": wr.time("40s", closed="both"),
        "past": wr.time("30s", ending="5s"),
        "3": wr.rows(3, within="60s"),
        "2past": wr.rows(2, ending=1, within="60s"),
    },
    aggregates=[wr.Sum("x"), wr.Count(), wr.Max("i"), wr.Last("s"), wr.Quantile("p", 0.5)],
    lateness="20s",
)


def page(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (s.rsplit(" ", 1) for s in lines if s[0] != "#")}


def newest_rows(answers: pa.Table) -> dict[Any, dict[str, Any]]:
    rows = sorted(answers.to_pylist(), key=lambda row: (row["t"], row["id"]))
    return {row["k"]: row for row in rows}


def assert_served(server: RedisServer, prefix: str, wanted: dict[Any, dict[str, Any]]) -> None:
    reader = Features(server.url, prefix)
    for key, current in zip(wanted, reader.get_many(wanted), strict=True):
        assert current is not None, key
        assert current.time == wanted[key]["t"]
        for name, value in current.values.items():
            assert equal(value, wanted[key][name]), (key, name, value, wanted[key][name])
    reader.close()


def test_a_stream_to_redis(server: RedisServer, spark: Any, tmp_path: Path) -> None:  # noqa: F811
    table = random_stream(700, 12, 3, 20.0)
    names = pa.array([None if k % 12 == 5 else f"key {k}" for k in table["k"].to_pylist()])
    table = table.set_column(0, "k", names)
    pipe = Pipe(spark, tmp_path).feed(*split(table, 4, 1))
    sink = wr.spark.RedisSink(SPEC, server.url, prefix="s:", columns=["id"])
    with wr.spark.metrics(spark) as metrics:
        query = (
            SPEC(pipe.stream(), buckets=3)
            .writeStream.foreachBatch(sink)
            .queryName('a "stream"')
            .option("checkpointLocation", str(pipe.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        until = time.monotonic() + 10
        name = '{query="a \\"stream\\""}'
        while page(metrics.url).get(f"windrow_stream_up{name}") != 0:
            assert time.monotonic() < until
            time.sleep(0.05)
        seen = page(metrics.url)
        with pytest.raises(urllib.error.HTTPError):
            page(metrics.url.replace("/metrics", "/other"))
    state = wr.spark.state(str(pipe.checkpoint), spark)
    assert state.frontier is not None
    frontier = state.frontier

    def of(metric: str) -> float:
        return seen[f"windrow_stream_{metric}{name}"]

    own = [step["observedMetrics"]["windrow"] for step in query.recentProgress]
    assert of("rows_total") == table.num_rows == sum(step["rows"] for step in own)
    assert of("answered_rows_total") == sum(step["answered_rows"] for step in own)
    assert of("waiting_rows") == state.rows_waiting > 0
    assert of("kept_rows") == state.rows_kept > 0
    assert of("state_bytes") == state.bytes
    assert of("frontier_timestamp_seconds") == frontier.timestamp()
    assert of("batches_total") == len(query.recentProgress) == of("batch_duration_seconds_count")
    assert of("watermark_lag_seconds") > 0
    assert of("failures_total") == of("late_rows_total") == of("overflows_total") == 0
    assert (
        seen['windrow_stream_batch_duration_seconds_bucket{query="a \\"stream\\"",le="+Inf"}'] > 3
    )

    before = table.filter(pa.compute.less(table["t"], pa.scalar(frontier, table["t"].type)))
    assert 0 < before.num_rows < table.num_rows
    wanted = newest_rows(SPEC(before))
    assert None in wanted
    assert_served(server, "s:", wanted)

    # the same rows again, as a table: nothing new; and older ones change nothing
    whole = SPEC(frame(spark, before))
    assert sink(whole.where("id % 2 = 0"), 99) < len(wanted)
    assert_served(server, "s:", wanted)
    assert sink(whole, 99) == len(wanted)
    assert_served(server, "s:", wanted)
    with pytest.raises(BadSpecification, match="no column 'x_sum_10s'"):
        sink(frame(spark, before))

    few = None if SLOW else 2
    look_at_keys(spark, pipe, before, frontier, [*list(wanted)[:few], None, "nobody"])


CHANGED: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "tie": "id",
    "windows": {"10s": wr.time("10s"), "past": wr.time("30s", ending="5s"), "3": RECENT},
    "aggregates": [wr.Sum("x"), wr.Count(), wr.Last("s")],
    "lateness": "20s",
}


def test_changes_to_redis(server: RedisServer, spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """Every batch comes twice, and the one before it once more: as tasks that were thought dead."""
    table = random_stream(300, 6, 4, 20.0)
    spec = wr.Rolling(**CHANGED, emit="changes")
    pipe = Pipe(spark, tmp_path).feed(*split(table, 2, 1))
    sink = wr.spark.RedisSink(spec, server.url, prefix="c:", gone="is_gone", expire="5m")
    plain_sink = wr.spark.RedisSink(spec, server.url, prefix="e:")
    batches: list[tuple[Any, int]] = []
    counts = []

    def write(df: Any, batch: int) -> None:
        rows = df.toArrow()
        frame_again = spark.createDataFrame(rows, df.schema)
        batches.append((frame_again, batch))
        counts.append((rows.num_rows, sink(df, batch)))
        for again, number in batches[-2:]:
            sink(again, number)
        plain_sink(frame_again, batch)

    query = (
        spec(pipe.stream(), buckets=2, gone="is_gone")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(pipe.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert all(rows == written for rows, written in counts)
    frontier = wr.spark.state(str(pipe.checkpoint), spark).frontier
    assert frontier is not None
    at = frontier - timedelta(microseconds=1)
    keys = sorted(set(table["k"].to_pylist()))
    times = pa.array([at] * len(keys), table["t"].type)
    labels = pa.table({"k": keys, "t": times})
    rows = wr.Rolling(**CHANGED).as_of(table, labels, strict=False).to_pylist()
    reader, emptied = Features(server.url, "c:"), Features(server.url, "e:")
    live = 0
    for row, current, empty in zip(
        rows, reader.get_many(keys), emptied.get_many(keys), strict=True
    ):
        own = {name: row[name] for name, _, _ in spec.outputs}
        if any(own[f"count_{label}"] for label in CHANGED["windows"]):
            live += 1
            assert current is not None
            assert empty is not None
            assert equal(current.values, own)
            assert equal(empty.values, own)
        else:
            assert current is None
            assert empty is None or equal(empty.values, own)
    assert 0 < live < len(keys)
    gone = next(
        key for key, current in zip(keys, reader.get_many(keys), strict=True) if not current
    )
    kept = reader._client.hgetall(f"c:{gone}")
    assert sorted(kept) == [b"stamp", b"time"]
    assert 0 < reader._client.pttl(f"c:{gone}") <= 3_600_000
    # it comes back with a later row, for good if nothing expires
    Upserts(server.url, "c:").write([((gone,), 2 * 10**15, {"x": 1})], 0)
    back = reader.get(gone)
    assert back is not None
    assert back.values == {"x": 1}
    assert reader._client.pttl(f"c:{gone}") == -1
    reader.close()
    emptied.close()


def look_at_keys(
    session: Any, pipe: Pipe, rows: pa.Table, frontier: datetime, keys: list[Any]
) -> None:
    """What the state says of keys is what the rows before the frontier say of them."""
    checkpoint = str(pipe.checkpoint)
    ready = rows.take(pa.compute.sort_indices(rows, [("t", "ascending"), ("id", "ascending")]))
    times = pa.array([frontier] * len(keys), rows["t"].type)
    labels = pa.table({"k": pa.array(keys, pa.string()), "t": times})
    wanted = SPEC.as_of(ready, labels, on="t").to_pylist()
    for key, row in zip(keys, wanted, strict=True):
        found = wr.spark.lookup(checkpoint, key, SPEC if key == "nobody" else None, session)
        assert isinstance(found, Current)
        assert found.time == frontier
        assert list(found.values) == [name for name, _, _ in SPEC.outputs]
        for name, value in found.values.items():
            assert equal(value, row[name]), (key, name, value, row[name])
        recount = [r for r in ready.to_pylist() if r["k"] == key]
        start = frontier - timedelta(seconds=10)
        assert found.values["count_10s"] == sum(start < r["t"] for r in recount)
    assert any(row["count_both"] for row in wanted)
    with pytest.raises(BadValue, match="key column 'k' is of type string"):
        wr.spark.lookup(checkpoint, 5, None, session)
    with pytest.raises(BadValue, match="has 2 parts"):
        wr.spark.lookup(checkpoint, ("a", "b"), None, session)
    other = wr.Rolling(key="k", time="t", windows=["10s"], aggregates=[wr.Count()], lateness="20s")
    with pytest.raises(Refused, match="other windows"):
        wr.spark.lookup(checkpoint, "a", other, session)


def test_json_messages(spark: Any) -> None:  # noqa: F811
    good = '{"user":1,"ts":"2020-01-01T00:00:00Z","amount":1.5,"note":"x"}'
    messages = {
        good: None,
        '{"user":2,"ts":"2020-01-01T00:00:01Z"}': None,
        "{": "not a JSON object",
        "\udcff": "not a JSON object",
        "": "not a JSON object",
        "[1]": "not a JSON object",
        '"text"': "not a JSON object",
        '{"user":"one","ts":"2020-01-01T00:00:00Z"}': "user is not a bigint",
        '{"user":1,"ts":"yesterday"}': "ts is not a timestamp",
        '{"user":1,"ts":"2020-01-01T00:00:00Z","amount":"many"}': "amount is not a double",
        '{"user":1}': "ts is missing",
        '{"user":null,"ts":"2020-01-01T00:00:00Z"}': "user is missing",
    }
    values = [text.encode(errors="surrogateescape") for text in messages]
    table = pa.table({"offset": range(len(values) + 1), "value": [*values, None]})
    schema = "user bigint not null, ts timestamp not null, amount double, note string"
    rows, bad = wr.spark.parse(frame(spark, table), schema, keep=["offset"])
    found = {row["offset"]: row.asDict() for row in rows.collect()}
    assert list(found) == [0, 1] or sorted(found) == [0, 1]
    assert (found[0]["user"], found[0]["amount"], found[0]["note"]) == (1, 1.5, "x")
    assert (found[1]["amount"], found[1]["note"]) == (None, None)
    reasons = {row["offset"]: (row["value"], row["reason"]) for row in bad.collect()}
    wanted = [*((value, why) for value, why in zip(values, messages.values(), strict=True))]
    assert reasons == {n: w for n, w in enumerate([*wanted, (None, "no value")]) if w[1]}
    for options, message in (
        ({"format": "xml"}, "format= is one of json, avro"),
        ({"value": "body"}, "no column 'body'"),
        ({"keep": ["user"]}, "no column 'user'"),
    ):
        with pytest.raises(BadSpecification, match=message):
            wr.spark.parse(frame(spark, table), schema, **options)
    with pytest.raises(BadSpecification, match="an Avro record"):
        wr.spark.parse(frame(spark, table), schema, "avro")
