"""Rules from a file changed in place and from a table: the source by itself, and on streams."""

# mypy: disable-error-code="misc,index,operator"

import base64
import json
import os
import time
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import spark  # noqa: F401
from tests.stream_session import Pipe
from tests.test_alarms import Oracle
from tests.test_stream_emission import _two_partitions, frontier, plain  # noqa: F401
from tests.test_stream_rules import COMMON, FIRST, PARTS, SECOND, events
from windrow.columns.rule_set import watched
from windrow.errors import BadSpecification
from windrow.spark import rule_source
from windrow.spark.rule_source import RuleSource
from windrow.times import Clock

ONE = '[[rule]]\nname = "busy"\nwhen = \'count("20s") >= 2\'\n'
BROKEN = ONE + '\n[[rule]]\nname = "half'
THIRD = ONE + '\n[[rule]]\nname = "pair"\nwhen = \'count("5s") >= 2\'\n'


def reader(path: Path) -> Any:
    return RuleSource({"file": str(path)}).streamReader(None)


def texts(source: Any, start: dict[str, str], end: dict[str, str]) -> list[tuple[Any, ...]]:
    return [row for part in source.partitions(start, end) for row in source.read(part)]


def old(path: Path, text: str, seconds: float = 60) -> None:
    path.write_text(text)
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_file_as_a_source(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(ONE)
    source = reader(path)
    start = source.initialOffset()
    first = source.latestOffset(start, None)
    ((_, version, text),) = texts(source, start, first)
    assert text == ONE
    assert version.startswith("rules.toml 20")
    assert source.latestOffset(first, None) == first
    assert texts(source, first, first) == []
    os.utime(path, (1, 1))  # written again as it was: nothing to do
    assert source.latestOffset(first, None) == first
    path.unlink()  # away for a moment
    assert source.latestOffset(first, None) == first
    path.write_text("")  # cut off, and not yet written
    assert source.latestOffset(first, None) == first
    path.write_bytes(ONE.encode() + "\N{DEGREE SIGN}".encode()[:1])  # in the middle of a character
    assert source.latestOffset(first, None) == first
    old(path, BROKEN)  # it stays that way: told as it is
    broken = source.latestOffset(first, None)
    assert texts(source, first, broken)[0][2] == BROKEN
    # another process, after a crash: the checkpoint knows the texts, the file is another by now
    again = reader(path)
    old(path, THIRD, 30)
    assert texts(again, start, first) == [(0, version, ONE)]
    third = again.latestOffset(broken, None)
    assert texts(again, first, third)[0][2] == THIRD
    assert again.latestOffset(first, None) == third  # asked twice, told twice
    path.unlink()
    assert reader(path).latestOffset(broken, None) == broken
    assert reader(path).latestOffset(start, None) == start
    assert texts(again, start, start) == []


def test_a_file_that_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is broken and new is waited for; what is whole then is taken."""
    path = tmp_path / "rules.toml"
    waited = []

    def sleep(then: str | None) -> Any:
        def wait(seconds: float) -> None:
            waited.append(seconds)
            if then is not None:
                path.write_text(then)

        return wait

    source = reader(path)
    for finished, wanted in ((THIRD, THIRD), (BROKEN + "\n", None), (None, BROKEN)):
        path.write_text(BROKEN)
        # of that module only: other threads of this process sleep too; and no time goes by in it,
        # so that a machine that is busy for a second does not find the file settled
        clock = SimpleNamespace(time=lambda: path.stat().st_mtime, sleep=sleep(finished))
        monkeypatch.setattr(rule_source, "time", clock)
        found = source._look()
        assert (None if found is None else found[1]) == wanted
    assert len(waited) == 3
    assert all(0 < seconds <= 1 for seconds in waited)


# --- on streams -----------------------------------------------------------------------------------


def given(step: Any) -> tuple[str, str] | None:
    """The rules that came with a batch, from its offsets."""
    (source,) = [s for s in step["sources"] if "FileStreamSource" not in s["description"]]
    if not source["numInputRows"]:
        return None
    end = source["endOffset"]
    end = json.loads(end) if isinstance(end, str) else end
    return end["version"], zlib.decompress(base64.b64decode(end["text"])).decode()


class Sink:
    """Keeps events; the batch in which it is told to fails before anything is written."""

    def __init__(self) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.fails = False

    def __call__(self, batch: Any, number: int) -> None:
        if self.fails:
            raise RuntimeError("the sink is away")
        self.tables[number] = batch.toArrow()


def test_a_file_changed_while_the_stream_runs(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    """Over a crash with another text afterwards, and a file that is gone for a while."""
    pipe, path, sink = Pipe(spark, tmp_path, "end"), tmp_path / "rules.toml", Sink()
    old(path, FIRST, 90)

    def start() -> Any:
        answers = wr.spark.rules(pipe.stream(), path, **COMMON)
        writer = answers.writeStream.foreachBatch(sink)
        return writer.option("checkpointLocation", str(pipe.checkpoint)).start()

    pipe.feed(PARTS[0])
    query = start()
    query.processAllAvailable()
    sink.fails = True
    old(path, SECOND, 80)
    with pytest.raises(Exception, match="the sink is away"):
        query.processAllAvailable()
    progress = list(query.recentProgress)
    sink.fails = False
    old(path, THIRD, 70)
    query = start()
    query.processAllAvailable()  # the failed batch with its rules, then another with the third
    path.unlink()
    pipe.feed(PARTS[1])
    query.processAllAvailable()
    old(path, ONE, 60)
    pipe.feed(PARTS[2], end=True)
    query.processAllAvailable()
    query.stop()
    progress += query.recentProgress
    steps = [step for step in progress if "windrow" in step["observedMetrics"]]
    came = [g[1] for g in map(given, steps) if g is not None]
    assert came == [FIRST, SECOND, THIRD, ONE]
    clock = Clock("times", "us", int, int)
    oracle = Oracle(watched(PARTS[0].schema, "k", "t", "id", "2m", clock, 2))
    waiting, wanted, versions = PARTS[:3], [], []
    for step in steps:
        files = next(s for s in step["sources"] if "FileStreamSource" in s["description"])
        rows = plain(waiting.pop(0)) if files["numInputRows"] else []
        found = oracle.turn(rows, frontier(step), given(step))
        wanted += [(*event, oracle.version) for event in found]
        if rows:
            versions.append(oracle.rules.text)
    assert not waiting
    assert versions[:2] == [FIRST, THIRD]
    assert versions[2] in (THIRD, ONE)  # Spark may have planned the batch as the file was written
    told = pa.concat_tables(sink.tables.values())
    assert sorted(events(told), key=repr) == sorted(wanted, key=repr)
    assert len({event[-1] for event in wanted}) >= 3
    rejected = [r for r in plain(told) if r["event"] == "rejected"]
    assert [r["message"][:8] for r in rejected] == ["line 11:", "line 3: "]
    assert [r["version"][-8:] for r in rejected] == [given(s)[0][-8:] for s in steps if given(s)][
        :2
    ]


def test_a_table_that_is_read_again(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    pipe, folder = Pipe(spark, tmp_path, "end"), str(tmp_path / "rules")

    def put(*rows: tuple[Any, ...]) -> None:
        columns = "name string, when string, until string, version int"
        spark.createDataFrame(rows, columns).coalesce(1).write.mode("overwrite").parquet(folder)

    put(
        ("busy", 'count("20s") >= 2', None, 7),
        ("ever", 'count("2m") >= 1', None, 7),
        ("also", 'count("20s") >=', None, 7),
    )
    pipe.feed(PARTS[0])
    answers = wr.spark.rules(
        pipe.stream(), lambda: spark.read.parquet(folder), reread="1ms", **COMMON
    )
    sink = Sink()
    checkpoint = str(pipe.checkpoint)
    query = answers.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    put(("busy", 'count("20s") >= 3', 'count("20s") < 1', 8))
    pipe.feed(PARTS[1])
    query.processAllAvailable()
    pipe.feed(PARTS[2], end=True)
    query.processAllAvailable()
    query.stop()
    told = plain(pa.concat_tables(sink.tables.values()))
    rejected = [
        (r["rule"], r["message"][:7], r["version"]) for r in told if r["event"] == "rejected"
    ]
    assert rejected == [("also", "line 1:", "7")]
    assert {r["rule"] for r in told if r["version"] == "7"} == {"also", "busy", "ever"}
    assert {(r["rule"], r["event"]) for r in told if r["version"] == "8"} >= {
        ("ever", "stopped"),
        ("busy", "started"),
    }
    steps = [s for s in query.recentProgress if "windrow" in s["observedMetrics"]]
    assert [g[0] for g in map(given, steps) if g is not None] == ["7", "8"]


def test_refusals(spark: Any, tmp_path: Path) -> None:  # noqa: F811
    stream = Pipe(spark, tmp_path, "end").feed(PARTS[0]).stream()
    table = spark.createDataFrame([("a", "b")], "name string, text string")
    for source, message in (
        (tmp_path / "none.toml", "there is no file"),
        (table, "give a function that reads it"),
        (stream, "has columns version and text"),
        (lambda: table, "name, when and perhaps until and version; the function gave name, text"),
        (lambda: 3, "the function gave 3"),
    ):
        with pytest.raises(BadSpecification, match=message):
            wr.spark.rules(stream, source, **COMMON)
    good = table.withColumnRenamed("text", "when")
    with pytest.raises(BadSpecification, match="reread="):
        wr.spark.rules(stream, lambda: good, reread=5, **COMMON)
