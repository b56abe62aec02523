"""Rules on streams, in Spark: the events of plain Python, over reloads and restarts."""

# mypy: disable-error-code="misc,index,operator"

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import windrow as wr
from tests.spark_session import spark  # noqa: F401
from tests.stream_session import Pipe, random_stream, split
from tests.test_alarms import Oracle
from tests.test_stream_emission import _two_partitions, frontier, plain  # noqa: F401
from windrow.columns.rule_set import watched
from windrow.errors import BadSpecification, Refused
from windrow.times import Clock

PARTS = split(random_stream(160, 5, 61, 20).select(["k", "t", "id", "x", "s"]), 4, 61)
COMMON: dict[str, Any] = {
    "key": "k",
    "time": "t",
    "tie": "id",
    "longest": "2m",
    "lateness": "20s",
    "buckets": 2,
    "flush": "end",
}
FIRST = """
[[rule]]
name = "busy"
when = 'count("20s") >= 3'

[[rule]]
name = "calm"
when = 'count("10s") >= 2'
until = 'count("1m") < 2'

[[rule]]
name = "broken"
when = 'count("10s") >='
"""
SECOND = """{"name": "busy", "when": "count('20s') >= 2"}
{"name": "high", "when": "max(x, '1m') > 10 and x > 0"}
{"name": "long", "when": "count('3m') > 1"}
"""


def put(folder: Path, name: str, text: str, at: int) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder.parent / name
    hidden.write_text(text)
    os.utime(hidden, (at, at))
    hidden.rename(folder / name)


def events(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = [row for row in plain(table) if row["event"] != "rejected"]
    return [(r["t"], r["rule"], r["k"], r["event"], r["version"]) for r in rows]


def test_rules_that_change_while_the_stream_runs(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    pipe = Pipe(spark, tmp_path, "end")
    folder = tmp_path / "rules"
    put(folder, "first.toml", FIRST, 10**9)

    def run(*parts: pa.Table, end: bool = False) -> list[Any]:
        pipe.feed(*parts, end=end)
        return pipe.start(wr.spark.rules(pipe.stream(), folder, **COMMON))

    progress = run(*PARTS[:2])
    put(folder, "second.jsonl", SECOND, 10**9 + 5)
    later = run(*PARTS[2:], end=True)
    reloaded = len(progress)
    schema = PARTS[0].schema
    clock = Clock("times", "us", int, int)
    oracle = Oracle(watched(schema, "k", "t", "id", "2m", clock, 2))
    waiting, wanted = list(PARTS), []
    for number, step in enumerate(progress + later):
        rows = plain(waiting.pop(0)) if step["numInputRows"] else []
        given = {0: ("first.toml", FIRST), reloaded: ("second.jsonl", SECOND)}.get(number)
        found = oracle.turn(rows, frontier(step), given)
        wanted += [(*event, oracle.version) for event in found]
    assert not waiting
    table = pipe.found()
    assert sorted(events(table), key=repr) == sorted(wanted, key=repr)
    assert {event[-1] for event in wanted} == {"first.toml", "second.jsonl"}
    assert {event[1] for event in wanted} >= {"busy", "calm", "high"}
    told = [row for row in plain(table) if row["event"] == "rejected"]  # files come in any order
    rejected = sorted((row["version"], row["rule"], row["message"]) for row in told)
    assert len(rejected) == 2
    assert rejected[0][2].startswith("line 11: cannot read 'count(\"10s\") >='")
    assert rejected[1] == (
        "second.jsonl",
        "long",
        "line 3: 3m is longer than longest=, for which rows are kept",
    )
    metrics = [step["observedMetrics"]["windrow"] for step in progress + later]
    assert [m["rules"] for m in metrics] == [2] * reloaded + [2] * len(later)
    assert all(m["rejected_rules"] == 1 for m in metrics)
    values = [
        dict(row["values"]) for row in plain(table) if row["rule"] == "high" and row["values"]
    ]
    assert all(set(v) <= {"max(x, '1m')", "x"} for v in values)
    assert any(v["max(x, '1m')"] > 10 for v in values)


def test_rules_from_a_table_and_another_number_of_buckets(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """Rules go on firing in the state of another query, and are told no second time."""
    rules = tmp_path / "rules"
    line = json.dumps({"version": "7", "text": SECOND})
    put(rules, "0.json", json.dumps({"version": "6", "text": FIRST}) + "\n" + line, 10**9)
    source = spark.readStream.schema("version string, text string").json(str(rules))
    old = Pipe(spark, tmp_path / "old", "end").feed(*PARTS[:2])
    progress = old.start(wr.spark.rules(old.stream(), source, **COMMON))
    schema = StructType([field for field in old.schema.fields if field.name != "end"])
    history = wr.spark.history(str(old.checkpoint), schema, spark)
    assert history.rules == ("7", SECOND)
    new = Pipe(spark, tmp_path / "new", "end").feed(*PARTS[2:], end=True)
    more = COMMON | {"buckets": 3, "history": history}
    later = new.start(wr.spark.rules(new.stream(), source, **more))
    clock = Clock("times", "us", int, int)
    oracle = Oracle(watched(PARTS[0].schema, "k", "t", "id", "2m", clock, 2))
    waiting, wanted, at = list(PARTS), [], None
    for number, step in enumerate(progress + later):
        rows = plain(waiting.pop(0)) if step["numInputRows"] else []
        at = max((t for t in (at, frontier(step)) if t is not None), default=None)
        found = oracle.turn(rows, at, ("7", SECOND) if number == 0 else None)
        wanted.append([(*event, oracle.version) for event in found])
        if number == len(progress) - 1:
            assert oracle.firing, "nothing fires when the bucket changes"
    assert not waiting
    before = [event for part in wanted[: len(progress)] for event in part]
    after = [event for part in wanted[len(progress) :] for event in part]
    assert sorted(events(old.found()), key=repr) == sorted(before, key=repr)
    assert sorted(events(new.found()), key=repr) == sorted(after, key=repr)
    assert after
    assert any(event[3] == "stopped" for event in after)
    with pytest.raises(Refused, match="window 'longest' looks back further than the history"):
        wr.spark.rules(new.stream(), source, **(more | {"longest": "3m"}))


def test_rules_stop_by_the_clock() -> None:
    """Time goes on by the clock when nothing comes, for rules as for keys."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import TimerValues
    from pyspark.sql.streaming.tws_tester import TwsTester

    from windrow.spark.envelopes import opened, sealed
    from windrow.spark.rule_worker import RuleProcessor
    from windrow.spark.stream_worker import Extras

    table = pa.table(
        {
            "k": ["a", "a"],
            "t": pa.array([100_000_000, 101_000_000], pa.timestamp("us", "UTC")),
        }
    )
    text = """{"name": "busy", "when": "count('20s') >= 2"}
{"name": "idle", "when": "count('30s') < 1"}"""
    clock = Clock("times", "us", int, int)
    watch = watched(table.schema, "k", "t", None, "1m", clock, text=text, version="3")
    processor = RuleProcessor(watch, {}, Extras(idle=30_000))
    tester = TwsTester(processor, timeMode="ProcessingTime")

    def batch(at: int, watermark: int, rows: pa.Table | None = None) -> list[Any]:
        processor.init(tester.handle)
        setattr(tester, "_getTimerValues", lambda: TimerValues(10**7 + at, watermark))  # noqa: B010
        turns = list(tester.setProcessingTime(10**7 + at))
        if rows is not None:
            turns = list(tester.test(0, [Row(bucket=0, payload=sealed(rows))]))
        told = [e for turn in turns if turn.payload for e in plain(opened(turn.payload))]
        return [(e["t"] // 1000, e["rule"], e["event"], e["version"]) for e in told]

    assert batch(0, 0, table) == []
    assert batch(1_000, 81_000) == []  # 20 seconds of lateness before the last row
    assert batch(30_000, 81_000) == [(101_000, "busy", "started", "3")]
    # at 131.1 seconds: one row has left 20 seconds, both have left 30
    assert batch(50_100, 81_000) == [
        (120_000, "busy", "stopped", "3"),
        (131_000, "idle", "started", "3"),
    ]
    assert batch(60_000, 81_000) == []
    assert batch(80_100, 81_000) == [(161_000, "idle", "stopped", "3")]  # nothing within a minute
    assert batch(99_000, 81_000) == []


def test_refusals(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    pipe = Pipe(spark, tmp_path, "end").feed(PARTS[0])
    stream = pipe.stream()
    good = [("busy", 'count("20s") >= 3')]
    with pytest.raises(Refused, match="is for streams"):
        wr.spark.rules(spark.createDataFrame(PARTS[0]), good, **COMMON)
    with pytest.raises(BadSpecification, match="rules are a list of"):
        wr.spark.rules(stream, 3, **COMMON)
    with pytest.raises(BadSpecification, match=r"rule 'bad': .*is not a condition"):
        wr.spark.rules(stream, [("bad", "1 + 2")], **COMMON)
    with pytest.raises(BadSpecification, match="rule 'order': it depends on the order"):
        wr.spark.rules(stream, [("order", "x > 3")], **(COMMON | {"tie": None}))
    with pytest.raises(BadSpecification, match="longest= is a length of time"):
        wr.spark.rules(stream, good, **(COMMON | {"longest": wr.rows(3)}))
    found = wr.spark.rules(stream, good, **COMMON).schema
    assert found.names == ["event", "rule", "k", "t", "values", "version", "message"]
    assert found["values"].dataType.simpleString() == "map<string,double>"
