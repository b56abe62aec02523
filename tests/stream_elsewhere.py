"""Run as a program: streams through Connect, killed, and started again.

python -m tests.stream_elsewhere connect FOLDER
python -m tests.stream_elsewhere killed FOLDER rows|changes|ticks|rules ...
"""

# mypy: disable-error-code="misc,index,operator"

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import windrow as wr
from tests.emission_oracle import Changes
from tests.spark_session import SETTINGS, SLOW, assert_same, connected, started
from tests.stream_session import SECOND, Pipe, counts, random_stream, split
from tests.test_alarms import Oracle
from tests.test_stream_emission import plain
from windrow.columns.rule_set import watched
from windrow.columns.stretch import Reach
from windrow.times import Clock

PARTS = split(random_stream(240, 6, 31, 20), 3, 31)
MANY = split(random_stream(600, 6, 32, 20), 80 if SLOW else 7, 32)
SOME = split(random_stream(300, 6, 33, 20), 50 if SLOW else 4, 33)
"""For several queries at once."""
END = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Where the last row is, which lets all others out."""
WINDOWS: dict[str, Any] = {
    "w": wr.time("40s"),
    "long": wr.time("2h"),
    "r": wr.rows(6, within="3m"),
}
COMMON: dict[str, Any] = {"key": "k", "time": "t", "tie": "id", "lateness": "20s"}


class Squares(wr.Aggregate):
    """An aggregate that only this program knows."""

    identity = 0
    commutative = True

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return x * x

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return a + b


AGGREGATES: list[Any] = [
    wr.Sum("x"),
    wr.Count(),
    wr.Max("s"),
    wr.Last("d"),
    wr.StdDev("i"),
    wr.Concat("s"),
    Squares("i"),
]


def table_of(parts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(parts)


def check(session: Any, folder: Path, name: str, aggregates: list[Any]) -> None:
    """A few batches, told that they end."""
    spec = wr.Rolling(**COMMON, windows=WINDOWS, aggregates=aggregates)
    table = table_of(PARTS)
    pipe = Pipe(session, folder, "end").feed(*PARTS, end=True)
    progress = pipe.run(spec, buckets=4)
    assert_same(pipe.found(), spec(table), spec)
    if name != "connect":  # where Spark gives metrics without their names
        assert counts(progress)["rows"] == counts(progress)["answered_rows"] == table.num_rows
    print("same:", name, flush=True)


def connect(folder: Path) -> None:
    session = connected()
    check(session, folder, "connect", AGGREGATES)
    session.stop()


# --- killed, and started again --------------------------------------------------------------------

RULES = """
[[rule]]
name = "busy"
when = 'count("20s") >= 2'

[[rule]]
name = "calm"
when = 'count("10s") >= 2'
until = 'count("1m") < 2'
"""
OTHER_RULES = """
[[rule]]
name = "busy"
when = 'count("30s") >= 2'

[[rule]]
name = "high"
when = 'max(x, "1m") > 10 and x > 0'
"""
EXACT = [wr.Sum("x"), wr.Count(), wr.Max("s"), wr.Concat("s")]
TIMED = {label: window for label, window in WINDOWS.items() if label != "r"}
EMITTED: dict[str, wr.Rolling] = {
    "rows": wr.Rolling(**COMMON, windows=WINDOWS, aggregates=AGGREGATES),
    "changes": wr.Rolling(**COMMON, windows=WINDOWS, aggregates=EXACT, emit="changes"),
    "ticks": wr.Rolling(**COMMON, windows=TIMED, aggregates=EXACT, every="1m"),
}
WATCHED = ["k", "t", "id", "x", "s"]


class Killed(Pipe):
    """One of several queries that read the same folder."""

    def __init__(self, session: Any, folder: Path, name: str) -> None:
        super().__init__(session, folder, "end")
        self.name, self.rules = name, folder / "rules"
        self.sink, self.checkpoint = folder / f"out_{name}", folder / f"checkpoint_{name}"
        self.describe(SOME[0].schema)

    @property
    def answers(self) -> Any:
        """What comes out."""
        if self.name in EMITTED:
            buckets = 4 if self.name == "rows" else 2
            return EMITTED[self.name](self.stream(), buckets=buckets, flush="end")
        stream = self.stream().select(*WATCHED, "end")
        return wr.spark.rules(stream, self.rules, **COMMON, longest="2m", buckets=2, flush="end")

    def check(self) -> None:
        """Compare what came out, of all runs together, with what must."""
        found = self.found()
        if self.name in ("rows", "ticks"):
            spec = EMITTED[self.name]
            wanted = spec(table_of(MANY if self.name == "rows" else SOME))
            if self.name == "rows":
                assert_same(found, wanted, spec)
            else:
                assert texts(found) == texts(wanted)
        else:
            wanted_rows = changed() if self.name == "changes" else alarmed(self.folder)
            assert len(wanted_rows) > 30
            assert texts(found) == sorted(map(repr, wanted_rows))
        print("same:", self.name, flush=True)


def texts(table: Any) -> list[str]:
    """Rows as texts that can be put in order; of events what names them."""
    rows = plain(table)
    if "event" in table.column_names:
        return sorted(repr([r["t"], r["rule"], r["k"], r["event"], r["version"]]) for r in rows)
    return sorted(repr(list(row.values())) for row in rows)


def frontiers() -> list[int | None]:
    """The watermark in microseconds when each part comes, and at the end of time."""
    late = 20 * SECOND
    latest = [max(row["t"] for row in plain(part)) for part in SOME]
    found: list[int | None] = [None]
    found += [max(latest[:count]) - late for count in range(1, len(SOME))]
    return [*found, int(END) * SECOND - late]


def changed() -> list[list[Any]]:
    """All changes there must be: no row comes behind the watermark, so turns follow from parts."""
    spec = EMITTED["changes"]
    lengths = {"w": 40, "long": 7200, "r": 180}
    reaches = {label: Reach(label, "time", 1 - n * SECOND, 1) for label, n in lengths.items()}
    oracle, out = Changes(spec, reaches), []
    for part, frontier in zip([*SOME, SOME[0].slice(0, 0)], frontiers(), strict=True):
        out += oracle.turn(plain(part), frontier)
    return out


def alarmed(folder: Path) -> list[list[Any]]:
    """All events there must be; a file says with which part other rules came."""
    schema = SOME[0].select(WATCHED).schema
    watch = watched(schema, "k", "t", "id", "2m", Clock("times", "us", int, int), 2)
    oracle, out = Oracle(watch), []
    reload = json.loads((folder / "reload.json").read_text())
    for place, part in enumerate([*SOME, SOME[0].slice(0, 0)]):
        given = ("first.toml", RULES) if place == 0 else None
        if place == reload["files"]:
            if reload["frontier"]:  # of the last batch before it, which may have had no rows
                out += [[*e, oracle.version] for e in oracle.turn([], reload["frontier"], None)]
            given = ("second.toml", OTHER_RULES)
        found = oracle.turn(plain(part.select(WATCHED)), frontiers()[place], given)
        out += [[*event, oracle.version] for event in found]
    return out


def killed(folder: Path, *names: str) -> None:
    """Queries that run until their source says that it ends, or until somebody kills them."""
    SETTINGS["spark.sql.streaming.stateStore.maintenanceInterval"] = "300ms"
    SETTINGS["spark.sql.streaming.stateStore.minDeltasForSnapshot"] = "2"
    SETTINGS["spark.sql.streaming.minBatchesToRetain"] = "3"
    SETTINGS["spark.sql.streaming.fileSink.log.compactInterval"] = "4"
    SETTINGS["spark.sql.shuffle.partitions"] = "2"
    SETTINGS["spark.python.daemon.module"] = "windrow.spark.daemon"  # workers start faster
    session = started("local[2]")
    pipes = [Killed(session, folder, name) for name in names]
    queries = [
        pipe.answers.writeStream.format("parquet")
        .option("path", str(pipe.sink))
        .option("checkpointLocation", str(pipe.checkpoint))
        .start()
        for pipe in pipes
    ]
    print("started", flush=True)
    for query in queries:
        while query.isActive and not any(_at_the_end(step) for step in query.recentProgress):
            time.sleep(0.1)
        query.stop()
        if query.exception() is not None:
            raise query.exception()
    for pipe in pipes:
        pipe.check()
    session.stop()


def _at_the_end(step: Any) -> bool:
    seen = step["observedMetrics"].get("windrow")
    return bool(seen) and (seen["frontier_timestamp_seconds"] or 0) > END - 3600


if __name__ == "__main__":
    what: dict[str, Any] = {
        "connect": connect,
        "killed": killed,
    }
    what[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
