"""Run as a program: the same answers on executors of their own, through Connect, after failures.

python -m tests.spark_elsewhere cluster|connect|retries FOLDER
"""

# mypy: disable-error-code="misc,index,operator"

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow as wr
from tests.spark_session import (
    SLOW,
    assert_same,
    connected,
    random_table,
    started,
)
from tests.stream_elsewhere import check as check_stream

TABLE = random_table(300, seed=21)
WINDOWS: dict[str, Any] = {"w": wr.time(40), "long": wr.time(250), "r": wr.rows(60)}
PATHS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "keyed": ({"key": "k"}, {}),
    "one line": ({}, {"partitions": 4}),
    "hot keys": ({"key": "k"}, {"hot_rows": 90, "partitions": 5}),
    "native": ({"key": "k", "engine": "native"}, {}),
}


FAILING = ["keyed", "one line"] if SLOW else ["one line"]


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


def specification(name: str) -> tuple[wr.Rolling, dict[str, Any]]:
    changed, options = PATHS[name]
    windows, aggregates = WINDOWS, AGGREGATES
    if name == "native":
        windows, aggregates = {"r": WINDOWS["r"]}, [wr.Max("x"), wr.Count(), wr.Sum("i")]
    spec = wr.Rolling(time="t", tie="id", windows=windows, aggregates=aggregates, **changed)
    return spec, options


def check_all(source: Any, names: list[str]) -> None:
    for name in names:
        spec, options = specification(name)
        assert_same(spec(source, **options).toArrow(), spec(TABLE), spec)
        print("same:", name, flush=True)


def cluster(folder: Path) -> None:
    session = started("local-cluster[2,1,1024]")

    def executor(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for batch in batches:
            where = [os.environ["SPARK_EXECUTOR_DIRS"]] * batch.num_rows
            yield pa.record_batch([pa.array(where)], names=["folder"])

    df = session.createDataFrame(TABLE).repartition(4)
    check_all(df, ["keyed", "one line"])
    folders = df.mapInArrow(executor, "folder string").distinct().count()
    assert folders == 2, f"{folders} executors had work"
    check_stream(session, folder, "stream", AGGREGATES)
    session.stop()


def connect(_: Path) -> None:
    session = connected()
    df = session.createDataFrame(TABLE).repartition(4)
    check_all(df, list(PATHS))
    spec, options = specification("one line")
    assert "in 4 stretches" in spec.explain(df, **options)
    session.stop()


def retries(folder: Path) -> None:
    session = started("local[2,4]")
    marks = str(folder)

    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import tempfile

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        first = True
        for batch in batches:
            yield batch
            if context.partitionId() == 1 and context.attemptNumber() == 0 and first:
                tempfile.mkstemp(dir=marks)
                raise RuntimeError("the first attempt fails")
            first = False

    source = session.createDataFrame(TABLE).repartition(3)
    df = source.mapInArrow(fails_once, source.schema)
    for name in FAILING:
        before = len(list(folder.iterdir()))
        check_all(df, [name])
        assert len(list(folder.iterdir())) > before, "nothing failed"
    mark = folder / "killed"
    fatal = Fatal("s", mark=str(mark))
    check_stream(session, folder / "stream", "worker killed", [fatal, wr.Sum("x"), wr.Count()])
    assert mark.exists(), "no worker was killed"
    session.stop()


if __name__ == "__main__":
    {"cluster": cluster, "connect": connect, "retries": retries}[sys.argv[1]](Path(sys.argv[2]))
