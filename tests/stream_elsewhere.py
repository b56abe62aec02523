"""Run as a program: streams on executors of their own, through Connect, killed, and started again.

python -m tests.stream_elsewhere cluster|connect|workers|killed FOLDER
"""

# mypy: disable-error-code="misc,index,operator"

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import windrow as wr
from tests.spark_session import SETTINGS, SLOW, assert_same, connected, started
from tests.stream_session import Pipe, counts, random_stream, split

PARTS = split(random_stream(240, 6, 31, 20), 3, 31)
MANY = split(random_stream(600, 6, 32, 20), 80 if SLOW else 12, 32)
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


class Fatal(wr.Aggregate):
    """Texts, one after the other; the first process that sees a certain one is killed."""

    identity = ""

    def __init__(self, *columns: str, mark: str) -> None:
        super().__init__(*columns)
        self.mark = mark

    def lift(self, x: str) -> str:
        if x == "dd":
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return x
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    def combine(self, a: str, b: str) -> str:
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


def cluster(folder: Path) -> None:
    session = started("local-cluster[2,1,1024]")
    check(session, folder, "cluster", AGGREGATES)
    session.stop()


def connect(folder: Path) -> None:
    session = connected()
    check(session, folder, "connect", AGGREGATES)
    session.stop()


def workers(folder: Path) -> None:
    session = started("local[2,4]")
    mark = folder / "killed"
    fatal = Fatal("s", mark=str(mark))
    check(session, folder / "stream", "workers", [fatal, wr.Sum("x"), wr.Count()])
    assert mark.exists(), "no worker was killed"
    session.stop()


def killed(folder: Path) -> None:
    """A query that runs until its source says that it ends, or until somebody kills it."""
    SETTINGS["spark.sql.streaming.stateStore.maintenanceInterval"] = "300ms"
    SETTINGS["spark.sql.streaming.stateStore.minDeltasForSnapshot"] = "2"
    SETTINGS["spark.sql.streaming.minBatchesToRetain"] = "3"
    SETTINGS["spark.sql.streaming.fileSink.log.compactInterval"] = "4"
    SETTINGS["spark.sql.shuffle.partitions"] = "2"
    session = started("local[2]")
    pipe = Pipe(session, folder, "end")
    pipe.describe(MANY[0].schema)
    spec = wr.Rolling(**COMMON, windows=WINDOWS, aggregates=AGGREGATES)
    query = (
        spec(pipe.stream(), buckets=4, flush="end")
        .writeStream.format("parquet")
        .option("path", str(pipe.sink))
        .option("checkpointLocation", str(pipe.checkpoint))
        .start()
    )
    print("started", flush=True)
    while query.isActive:
        last = query.lastProgress
        seen = last["observedMetrics"].get("windrow") if last else None
        if seen and str(seen["frontier"]).startswith("9998"):
            break
        time.sleep(0.1)
    query.stop()
    if query.exception() is not None:
        raise query.exception()
    assert_same(pipe.found(), spec(table_of(MANY)), spec)
    print("same: killed", flush=True)
    session.stop()


if __name__ == "__main__":
    what = {"cluster": cluster, "connect": connect, "workers": workers, "killed": killed}
    what[sys.argv[1]](Path(sys.argv[2]))
