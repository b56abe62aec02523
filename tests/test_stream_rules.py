"""Rules on streams, in Spark: the events of plain Python, over reloads and restarts."""

# mypy: disable-error-code="misc,index,operator"

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import spark  # noqa: F401
from tests.stream_session import Pipe, random_stream, split
from tests.test_alarms import Oracle
from tests.test_stream_emission import _two_partitions, frontier, plain  # noqa: F401
from windrow.columns.rule_set import watched
from windrow.errors import BadSpecification, Refused
from windrow.times import Clock

pytestmark = pytest.mark.xdist_group("streams")
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
    rejected = [
        (r["rule"], r["message"], r["version"]) for r in plain(table) if r["event"] == "rejected"
    ]
    assert len(rejected) == 2
    assert rejected[0][1].startswith("line 11: cannot read 'count(\"10s\") >='")
    assert rejected[1] == (
        "long",
        "line 3: 3m is longer than longest=, for which rows are kept",
        "second.jsonl",
    )
    metrics = [step["observedMetrics"]["windrow"] for step in progress + later]
    assert [m["rules"] for m in metrics] == [2] * reloaded + [2] * len(later)
    assert all(m["rejected_rules"] == 1 for m in metrics)
    values = [
        dict(row["values"]) for row in plain(table) if row["rule"] == "high" and row["values"]
    ]
    assert all(set(v) <= {"max(x, '1m')", "x"} for v in values)
    assert any(v["max(x, '1m')"] > 10 for v in values)


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
