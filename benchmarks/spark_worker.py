"""One measurement in a Spark session of its own; started by ``benchmarks.spark``.

    python -m benchmarks.spark_worker '{"job": "max_of_rows", "folder": ..., "scale": 1.0}'

A job returns numbers by name, which are printed as JSON on the last line. Times are seconds to
write to Spark's ``noop`` sink, the plan's own small jobs included.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession, Window, functions

import windrow as wr

F: Any = functions
GAP = 1000
"""Ticks between two rows, on average."""
PLANNER_WIDTHS = (10, 30, 100, 1000)
FLAT_WIDTHS = (100, 1000, 10_000, 100_000, 1_000_000)
LOOKBACKS = (0.0001, 0.01, 0.1, 0.3, 0.6)
"""Shares of a table's span."""
DAEMONS = ("pyspark.daemon", "windrow.spark.daemon")
TREE = "spark.sql.window.segmentTree.enabled"

Make = Callable[[Any], Any]
"""Makes a table of a table, or a column of a column."""
Run = Callable[[], float]
Numbers = dict[str, float]


@dataclass(frozen=True)
class Setup:
    """What to measure, and in which session."""

    job: str
    folder: str
    scale: float
    cores: int = 2
    daemon: bool = True
    pinned: bool = False
    events: bool = False
    tcp: bool = False

    def rows(self, full: int) -> int:
        """So many rows in a full run, and fewer in a quick one."""
        return max(1000, round(full * self.scale))


class Bench:
    """A session, its tables, and how runs are timed."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.session = _session(setup)

    def table(self, name: str) -> Any:
        return self.session.read.parquet(str(Path(self.setup.folder) / name))

    def timed(self, make: Callable[[], Any], tree: bool = True) -> Run:
        """A run that builds a table and writes it nowhere; the segment tree on or off."""

        def run() -> float:
            self.session.conf.set(TREE, str(tree).lower())
            start = time.perf_counter()
            make().write.format("noop").mode("overwrite").save()
            return time.perf_counter() - start

        return run

    def both(self, question: "Question", df: Any) -> dict[str, Run]:
        """Ours, and Spark's operator with its segment tree."""
        return {
            "ours": self.timed(partial(question.ours, df)),
            "tree": self.timed(partial(question.native, df)),
        }

    def without_tree(self, question: "Question", df: Any, times: int = 1) -> Numbers:
        """Spark's operator without its segment tree, once, for so many times the rows."""
        return {"plain": self.timed(partial(question.native, df), tree=False)() * times}

    def same(self, question: "Question", df: Any, **options: Any) -> None:
        """Both sides give the same answers for every row."""
        self.same_tables(question.ours(df, **options), question.native(df))

    def same_tables(self, *tables: Any) -> None:
        """Both tables hold the same rows with the same answers, whatever these are called."""
        self.session.conf.set(TREE, "true")
        left, right = (table.toPandas().sort_values("t").to_numpy(np.float64) for table in tables)
        assert len(left) == len(right) > 0
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-6)


def _session(setup: Setup) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "8g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # else slices get one core
        **wr.spark.table_settings(),
        "spark.log.level": "ERROR",
        "spark.local.dir": str(Path(setup.folder) / "spill"),
    }
    if not setup.daemon:
        del settings["spark.python.daemon.module"]
    if setup.tcp:
        del settings["spark.python.unix.domain.socket.enabled"]
    if setup.events:
        events = Path(setup.folder) / "events"
        events.mkdir(exist_ok=True)
        settings |= {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
    builder: Any = SparkSession.builder
    builder = builder.master(f"local[{setup.cores}]").appName("windrow benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def race(runs: Mapping[str, Run], repeat: int = 3, warm: bool = True) -> Numbers:
    """The best of several rounds, all runs in turn in every round."""
    if warm:
        for run in runs.values():
            run()
    rounds = [{name: run() for name, run in runs.items()} for _ in range(repeat)]
    return {name: min(times[name] for times in rounds) for name in runs}


def head(df: Any, rows: int) -> Any:
    """About so many rows: the earliest."""
    return df.where(F.col("t") < rows * (GAP + 1))


def small(df: Any) -> Any:
    """A slice on which answers are compared."""
    return head(df, 20_000)


FUNCTIONS: dict[str, tuple[type[wr.Aggregate], Make]] = {
    "max": (wr.Max, F.max),
    "sum": (wr.Sum, F.sum),
    "mean": (wr.Mean, F.avg),
    "std": (wr.StdDev, F.stddev_samp),
}


@dataclass(frozen=True)
class Question:
    """Aggregates of ``x`` over windows, by key and time, put to both sides."""

    windows: list[Any]
    names: tuple[str, ...] = ("max",)
    key: str | None = "k"

    def ours(self, df: Any, engine: Any = "kernel", **options: Any) -> Any:
        aggregates = [FUNCTIONS[name][0]("x") for name in self.names]
        return features(df, self.windows, aggregates, engine, self.key, **options)

    def native(self, df: Any) -> Any:
        answers = [
            FUNCTIONS[name][1]("x").over(frame(window, self.key))
            for window in self.windows
            for name in self.names
        ]
        return df.select("*", *(answer.alias(f"answer_{i}") for i, answer in enumerate(answers)))


def features(
    df: Any,
    windows: list[Any],
    aggregates: list[wr.Aggregate],
    engine: Any = "kernel",
    key: str | None = "k",
    **options: Any,
) -> Any:
    """Our table."""
    spec = wr.Rolling(
        key=key, time="t", tie="any", windows=windows, aggregates=aggregates, engine=engine
    )
    return spec(df, **options)


def frame(window: Any, key: str | None = "k") -> Any:
    """A window in Spark's words; both ends of a frame belong to it."""
    within = Window.partitionBy(*([key] if key else [])).orderBy("t")
    if window.kind == "rows":
        return within.rowsBetween(1 - window.n, 0)
    return within.rangeBetween(1 - window.length, 0)


# --- keyed tables ---------------------------------------------------------------------------------


def max_of_rows(bench: Bench) -> Numbers:
    """The largest of 1,000 rows, 8 keys."""
    df, question = bench.table("eight"), Question([wr.rows(1000)])
    bench.same(question, small(df))
    return race(bench.both(question, df)) | bench.without_tree(question, df)


def four_by_three(bench: Bench) -> Numbers:
    """Four aggregates of three windows; without the tree, on fewer rows."""
    df = bench.table("eight")
    question = Question([wr.rows(n) for n in (60, 600, 3600)], ("max", "sum", "mean", "std"))
    bench.same(question, small(df))
    few = bench.setup.rows(100_000)
    return race(bench.both(question, df)) | bench.without_tree(question, head(df, few), 20)


def time_windows(bench: Bench) -> Numbers:
    """Two aggregates of two lookbacks; without the tree, on fewer rows."""
    df = bench.table("eight")
    question = Question([wr.time(8 * GAP * rows) for rows in (100, 1000)], ("max", "sum"))
    bench.same(question, small(df))
    few = bench.setup.rows(200_000)
    return race(bench.both(question, df)) | bench.without_tree(question, head(df, few), 10)


def small_windows(bench: Bench) -> Numbers:
    """Few rows a window: the kernel, Spark's operator, and what the planner takes."""
    df = bench.table("eight")
    found: Numbers = {}
    for width in PLANNER_WIDTHS:
        question = Question([wr.rows(width)])
        bench.same(question, small(df))
        runs = bench.both(question, df)
        planned = partial(question.ours, df, engine="auto")
        runs["auto"] = bench.timed(planned)
        if width <= 100:
            runs["plain"] = bench.timed(partial(question.native, df), tree=False)
            runs["auto_plain"] = bench.timed(planned, tree=False)
        found |= {f"{name} {width}": value for name, value in race(runs, repeat=5).items()}
    return found


def flat(bench: Bench) -> Numbers:
    """The same rows in one key, with ever larger windows; Spark's operator once each."""
    df = bench.table("eight").withColumn("k", F.lit(0))
    questions = {width: Question([wr.rows(width)]) for width in FLAT_WIDTHS}
    found = race({f"ours {w}": bench.both(q, df)["ours"] for w, q in questions.items()})
    return found | {f"tree {w}": bench.both(q, df)["tree"]() for w, q in questions.items()}


# --- tables without a key -------------------------------------------------------------------------


def no_key(bench: Bench) -> Numbers:
    """One line of rows, a tenth of its span: ours, Spark's one task once, and a worker's memory."""
    df = bench.table("line")
    for share in (0.001, 0.1, 0.6):
        bench.same(share_of_span(20_000, share), small(df), partitions=5)
    runs = bench.both(share_of_span(bench.setup.rows(20_000_000), 0.1), df)
    with peak_of_workers() as peak:
        times = race({"ours": runs["ours"]})
    return times | {"memory": peak[0], "tree": runs["tree"]()}


def no_key_alone(bench: Bench) -> Numbers:
    """Ours only, for a session with fewer cores."""
    question = share_of_span(bench.setup.rows(20_000_000), 0.1)
    return race({"ours": bench.both(question, bench.table("line"))["ours"]})


def share_of_span(rows: int, share: float) -> Question:
    return Question([wr.time(int(rows * (GAP + 1) * share))], key=None)


def no_key_shuffle(bench: Bench) -> Numbers:
    """Rows written to shuffles per row of the table, over all jobs, for several lookbacks."""
    rows = bench.setup.rows(4_000_000)
    df = head(bench.table("line"), rows)
    total = df.count()
    context = bench.session.sparkContext
    for share in LOOKBACKS:
        context.setLocalProperty("benchmark.lookback", str(share))
        bench.both(share_of_span(rows, share), df)["ours"]()
    context.setLocalProperty("benchmark.lookback", None)
    bench.session.stop()
    (log,) = (Path(bench.setup.folder) / "events").iterdir()
    written = shuffled(log)
    return {str(share): written[str(share)] / total for share in LOOKBACKS}


def shuffled(log: Path) -> dict[str, int]:
    """Records written to shuffles by the tasks of each lookback's jobs."""
    label_of: dict[int, str] = {}
    written: dict[str, int] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            label = event.get("Properties", {}).get("benchmark.lookback")
            label_of |= {stage: label for stage in event["Stage IDs"] if label}
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in label_of:
            label = label_of[event["Stage ID"]]
            shuffle = event["Task Metrics"]["Shuffle Write Metrics"]
            written[label] = written.get(label, 0) + shuffle["Shuffle Records Written"]
    return written


@contextmanager
def peak_of_workers() -> Iterator[list[float]]:
    """The most memory that any one Python worker of this process has held, in bytes."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak[0] = max([peak[0], *map(held, python_workers())])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def held(process: int) -> int:
    """The high-water mark of a process's resident memory."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), 0)


def python_workers() -> list[int]:
    """Spark's Python processes among the descendants of this one."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after = (entry / "stat").read_text().rpartition(")")[2]
                commands[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(after.split()[1])
    found = []
    for process, command in commands.items():
        if any(name in command.split("\0") for name in DAEMONS):
            ancestor = process
            while ancestor in parents and ancestor != os.getpid():
                ancestor = parents[ancestor]
            found += [process] if ancestor == os.getpid() else []
    return found


# --- an aggregate of one's own --------------------------------------------------------------------


class GeoMean(wr.Aggregate):
    """The user's own."""

    identity = (0.0, 0)
    commutative = True

    @staticmethod
    def lift(x):  # type: ignore[no-untyped-def]
        return (math.log(x), 1)

    @staticmethod
    def combine(a, b):  # type: ignore[no-untyped-def]
        return (a[0] + b[0], a[1] + b[1])

    @staticmethod
    def lower(p):  # type: ignore[no-untyped-def]
        return math.exp(p[0] / p[1])


def per_key(answers: Make) -> Make:
    """A table by ``applyInPandas``, from a function of one key's values in order."""

    def work(rows: Any) -> Any:
        rows = rows.sort_values("t")
        return rows.assign(answer=answers(rows["x"]))

    def make(df: Any) -> Any:
        return df.groupBy("k").applyInPandas(work, "k int, t long, x double, answer double")

    return make


def geo_mean_candidates(width: int) -> dict[str, Make]:
    """What a Spark user can write: own aggregates first, rewrites without one last."""
    within = frame(wr.rows(width))

    def one(x: Any) -> Any:
        return np.exp(np.log(x).mean())

    def by_pandas(x: pd.Series) -> float:
        return float(one(x.to_numpy()))

    def by_arrow(x: pa.Array) -> float:
        return float(one(x.to_numpy(zero_copy_only=False)))

    pandas_udf, arrow_udf = F.pandas_udf, F.arrow_udf
    columns = {
        "pandas UDF over the window": pandas_udf(by_pandas, "double")("x").over(within),
        "Arrow UDF over the window": arrow_udf(by_arrow, "double")("x").over(within),
        "rewritten: exp(avg(log(x))) in Spark": F.exp(F.avg(F.log("x")).over(within)),
    }
    by_key: dict[str, Make] = {
        "rolling.apply per key": lambda x: x.rolling(width, 1).apply(one, raw=True),
        "rolling.apply per key, by numba": lambda x: x.rolling(width, 1).apply(
            one, raw=True, engine="numba"
        ),
        "rewritten: rolling mean of logs per key": lambda x: np.exp(
            np.log(x).rolling(width, 1).mean()
        ),
    }
    makes: dict[str, Make] = {
        name: partial(_with_answer, column) for name, column in columns.items()
    }
    return makes | {name: per_key(answers) for name, answers in by_key.items()}


def _with_answer(column: Any, df: Any) -> Any:
    return df.withColumn("answer", column)


def geo_mean(bench: Bench) -> Numbers:
    """Seconds per row: ours, what Spark does for any window in Python, and what users can write.

    All on the same rows: on a twentieth of them a UDF would seem twice as slow as it is.
    """
    df, many = bench.table("eight"), bench.table("sixteen")
    rows = bench.setup.rows(2_000_000)

    def ours(df: Any) -> Any:
        return features(df, [wr.rows(1000)], [GeoMean("x")])

    def placed(df: Any) -> Any:
        """The least that Spark has to do for a window: rows by key, in order."""
        number = F.shiftleft(F.col("k").cast("long"), 54).bitwiseOR(F.col("t"))
        return df.repartition("k").withColumn("n", number).sortWithinPartitions("n")

    def crossed(df: Any) -> Any:
        """The least that Python has to do: every row there and back, as it is."""
        return df.mapInArrow(lambda batches: batches, df.schema)

    makes = {"ours": ours, "placed": placed, "crossed": crossed}
    runs = {name: bench.timed(partial(make, df)) for name, make in makes.items()}
    runs |= {f"{name}, many": bench.timed(partial(make, many)) for name, make in makes.items()}
    sizes = {name: bench.setup.rows(16_000_000) if "many" in name else rows for name in runs}
    tiny = head(df, 2000)
    for name, make in geo_mean_candidates(1000).items():
        bench.same_tables(ours(tiny), make(tiny))
        runs[name] = bench.timed(partial(make, df))
        sizes[name] = rows
    return {name: best / sizes[name] for name, best in race(runs).items()}


# --- keys of all sizes ----------------------------------------------------------------------------


def hot_key(bench: Bench) -> Numbers:
    """Nine rows of ten in one key, against the same rows in eight equal keys."""
    balanced, hot = bench.table("balanced"), bench.table("hot")
    most = bench.setup.rows(500_000)
    found: Numbers = {}
    for label, window in (("time", wr.time(8 * GAP * 1000)), ("rows", wr.rows(1000))):
        question = Question([window])
        bench.same(question, small(hot), hot_rows=2000)
        runs = {
            "balanced": bench.timed(partial(question.ours, balanced)),
            "hot": bench.timed(partial(question.ours, hot, hot_rows=most)),
            "without": bench.timed(partial(question.ours, hot)),
            "tree": bench.timed(partial(question.native, hot)),
        }
        found |= {f"{name} {label}": value for name, value in race(runs).items()}
    return found


def many_keys(bench: Bench) -> Numbers:
    """A million keys of twenty rows, about ten rows a window."""
    df = bench.table("many")
    half = bench.setup.rows(20_000_000) * (GAP + 1) // 2
    found: Numbers = {}
    for label, window in (("time", wr.time(half)), ("rows", wr.rows(10))):
        question = Question([window])
        bench.same(question, small(df))
        times = race(bench.both(question, df), warm=False) | bench.without_tree(question, df)
        found |= {f"{name} {label}": value for name, value in times.items()}
    return found


def first_job(bench: Bench) -> Numbers:
    """The first and the second job that need Python, in eight workers, after one without Python."""
    question = Question([wr.rows(1000)], ("max", "sum"))
    df = head(bench.table("eight"), 20_000)
    bench.timed(partial(question.native, df))()
    ours = bench.timed(partial(question.ours, df, partitions=8))
    return {"first": ours(), "second": ours()}


def small_job(bench: Bench) -> Numbers:
    """A table so small that what it takes is what every table takes, in eight tasks."""
    df = head(bench.table("eight"), 20_000).cache()
    ours = partial(Question([wr.rows(1000)]).ours, df, partitions=8)
    return race({"ours": bench.timed(ours)}, repeat=10)


JOBS: dict[str, Callable[[Bench], Numbers]] = {
    job.__name__: job
    for job in (
        max_of_rows,
        four_by_three,
        time_windows,
        geo_mean,
        small_windows,
        flat,
        no_key,
        no_key_alone,
        no_key_shuffle,
        hot_key,
        many_keys,
        first_job,
        small_job,
    )
}


def main() -> None:
    setup = Setup(**json.loads(sys.argv[1]))
    if setup.pinned:  # the session and all it starts share one core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(JOBS[setup.job](Bench(setup))))


if __name__ == "__main__":
    main()
