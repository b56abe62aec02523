"""Spark streams: windrow's operator against what Spark's users write, side by side in one run.

    python -m benchmarks.streams                 # everything; long, see the parts
    python -m benchmarks.streams --only 1,5      # some of the parts
    python -m benchmarks.streams --scale 0.02    # fewer rows, keys and batches, for a first look

Every side has a Spark session of its own (two local cores), with the same settings: RocksDB with
changelogs, files of rows that were written before, two of them a batch, read as fast as they can
be, into Spark's ``noop`` sink. Each side takes 2 or 8 shuffle partitions, what is faster for it in
a short trial. Times are medians of ``durationMs.triggerExecution`` after warm-up batches. Every
query is then started again from its checkpoint for a few more batches, and its answers for some of
the keys are compared with windrow's answers for the table of all files (without a window: with
PyArrow's). Only a run of everything at full size writes ``benchmarks/results/streams.md``.
"""

import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sheet import Sheet, elsewhere, measure
from benchmarks.stream_worker import Numbers, Stream, files_of, median

START = 1_750_000_000_000_000
"""The first time, in microseconds."""
ROW_BYTES = 24
"""A row's own: key, time and value."""
LOOKBACKS = (10, 100, 1440)
"""In batches."""


@dataclass(frozen=True)
class Table:
    """Files of rows: so many a batch, and so many seconds of time."""

    rows: int
    keys: int
    span: int


TABLES = {
    "usual": Table(200_000, 10_000, 10),
    "large": Table(1_000_000, 100_000, 10),
    "small": Table(20_000, 10_000, 1),
}


@dataclass(frozen=True)
class Found:
    """What a run of a stream came to: its batches after the warm-up."""

    stream: Stream
    batches: list[Numbers]
    partitions: int
    trials: dict[str, float]

    @property
    def seconds(self) -> float:
        return median(self.batches)

    @property
    def speed(self) -> float:
        return median(self.batches, "rows") / self.seconds


class Report(Sheet):
    """Runs the measurements, each once, and keeps what was found."""

    title = "Spark streams"
    headings = ("workload", "partitions", "a batch", "rows a second", "measured", "needed")
    widths = (78, 32, 12, 16, 14, 9, 8)
    circumstances = (
        "local[2], 4 GB for the driver, RocksDB with changelogs, medians of "
        "durationMs.triggerExecution. Each side takes 2 or 8 shuffle partitions, what is faster "
        "for it in a short trial."
    )

    def __init__(self, folder: str, scale: float) -> None:
        super().__init__(folder, scale)
        self.runs: dict[Stream, Found] = {}

    def batches(self, full: int, least: int = 3) -> int:
        """So many batches in a full run, and fewer in a quick one."""
        return max(min(full, least), round(full * self.scale))

    def measure(
        self,
        what: str,
        side: str,
        table: str,
        warm: int,
        count: int,
        lookbacks: tuple[int, ...] = (600,),
        aggregates: tuple[str, ...] = ("max", "count"),
        slide: int = 0,
        more: int = 2,
        partitions: int = 0,
    ) -> Found:
        """One side's query, in a process of its own; a line says what it took."""
        span = TABLES[table].span
        warm, count = self.batches(warm), self.batches(count, 4)
        stream = Stream(
            side, table, span, warm, count, lookbacks, aggregates, slide, more, partitions
        )
        if stream not in self.runs:
            make_table(Path(self.folder), table, warm + count + more, self.scale)
            given = {"folder": self.folder, "stream": asdict(stream)}
            self.runs[stream] = Found(stream, **elsewhere("benchmarks.stream_worker", given))
        found = self.runs[stream]
        self.add(
            f"  {what}; {warm} batches before, {count} measured",
            f"{found.partitions}{tried(found)}",
            f"{found.seconds:.3f} s",
            f"{found.speed:,.0f}",
            "",
        )
        return found

    def note(self, workload: str, measured: str = "", needed: str = "", good: bool = True) -> None:
        """A row without a run of its own."""
        self.add(workload, "", "", "", measured, needed=needed, good=good)

    def at_least(self, workload: str, value: float, least: float) -> None:
        """A bar: the value is no smaller than that."""
        self.note(workload, f"{value:.2f}×", f"≥ {least:g}×", value >= least)

    def at_most(self, workload: str, value: float, most: float) -> None:
        """A bar: the value is no larger than that."""
        self.note(workload, f"{value:.2f}×", f"≤ {most:g}×", value <= most)


def tried(found: Found) -> str:
    """What the other number of partitions took in the trial, beside what was taken."""
    others = [x for count, x in found.trials.items() if int(count) != found.partitions]
    own = found.trials.get(str(found.partitions))
    return f" (trial {own:.2f} s, else {others[0]:.2f} s)" if own and others else ""


def make_table(folder: Path, name: str, batches: int, scale: float) -> None:
    """Two files a batch, once per run; rows are in order of time but for a twentieth of a batch."""
    table = TABLES[name]
    place = folder / name
    place.mkdir(exist_ok=True)
    half = max(250, round(table.rows * scale / 2))
    keys = max(50, round(table.keys * scale))
    step = table.span * 1_000_000 / (2 * half)
    disorder = table.span * 50_000
    for batch in range(batches):
        for part, file in enumerate(files_of(place, batch)):
            if file.exists():
                continue
            number = 2 * batch + part
            generator = np.random.default_rng([11, number])
            times = START + ((np.arange(half) + number * half) * step).astype(np.int64)
            times += generator.integers(-disorder, disorder, half)
            columns = {
                "k": generator.integers(0, keys, half),
                "t": pa.array(times, pa.timestamp("us", tz="UTC")),
                "x": generator.standard_normal(half),
            }
            pq.write_table(pa.table(columns), file)
            read_next = START / 1e6 + number  # the oldest files are read first
            os.utime(file, (read_next, read_next))


# --- the parts ------------------------------------------------------------------------------------


def full_window(report: Report, what: str = "ours, max and count of 10 minutes") -> Found:
    """The usual stream, measured when its window is full."""
    return report.measure(what, "ours", "usual", 66, 20)


def answers(report: Report) -> None:
    own = full_window(report)
    fine = report.measure("window(10 minutes, 10 seconds)", "window", "usual", 12, 10, slide=10)
    coarse = report.measure(
        "window(10 minutes, 1 minute)", "window", "usual", 12, 24, slide=60, more=8
    )
    key = report.measure("transformWithState by key, window not full", "key", "usual", 12, 8)
    report.at_least("window() at a slide of 10 seconds / ours", fine.seconds / own.seconds, 5)
    report.at_least("window() at a slide of 1 minute / ours", coarse.seconds / own.seconds, 1)
    report.at_least("transformWithState by key / ours", key.seconds / own.seconds, 4)


def throughput(report: Report) -> None:
    what = "ours, 1,000,000 rows of 100,000 keys, window not full"
    own = report.measure(what, "ours", "large", 12, 10)
    plain = report.measure("groupBy(key).agg(max, count)", "plain", "large", 12, 10)
    report.at_least("rows a second, ours / groupBy without a window", own.speed / plain.speed, 0.4)


def small_batches(report: Report, lookback: int) -> Found:
    """A lookback in batches, measured when the window is full."""
    length = report.batches(lookback, 2)
    count = 200 if lookback == 100 else 60
    what = f"ours, 20,000 rows, lookback of {length:,} batches"
    warm = lookback + 20
    return report.measure(what, "ours", "small", warm, count, (length,), partitions=2)


def flat(report: Report) -> None:
    found = [small_batches(report, lookback) for lookback in LOOKBACKS]
    for run in found:
        calls, written, read = (
            median(run.batches, f"state_{name}")
            for name in ("calls", "bytes_written", "bytes_read")
        )
        text = f"{calls:.0f} calls, {written / 1e3:,.0f} kB written, {read / 1e3:,.0f} kB read"
        report.note(f"  state a batch at {run.stream.lookbacks[0]:,} batches: {text}")
    for name, what in (("seconds", "time"), ("state_bytes_written", "state bytes written")):
        values = [median(run.batches, name) for run in found]
        workload = f"{what} a batch, largest of the lookbacks / smallest"
        report.at_most(workload, max(values) / min(values), 1.5)


def many_answers(report: Report) -> None:
    one = report.measure("ours, max of 10 minutes", "ours", "usual", 66, 20, aggregates=("max",))
    many = report.measure(
        "ours, max, count, sum, mean of 1, 5, 10 minutes",
        "ours",
        "usual",
        66,
        20,
        (60, 300, 600),
        ("max", "count", "sum", "mean"),
    )
    report.at_most("3 lookbacks × 4 aggregates / 1 × 1", many.seconds / one.seconds, 2.5)


def on_disk(report: Report) -> None:
    last = full_window(report).batches[-1]
    kept = last["kept_rows"]
    names = {"state_bytes": "windrow's state", "files": "RocksDB's files", "memory": "its memory"}
    for name, what in names.items():
        each = last[name] / kept
        workload = f"{what}: {each:.1f} bytes a row of {kept:,.0f} / {ROW_BYTES} of its own"
        if name == "memory":
            report.note(f"  {workload}", f"{each / ROW_BYTES:.2f}×")
        else:
            report.at_most(workload, each / ROW_BYTES, 3)


def no_spike(report: Report) -> None:
    run = small_batches(report, 100)
    calls = [batch["state_calls"] for batch in run.batches]
    moved = [batch["state_bytes_read"] + batch["state_bytes_written"] for batch in run.batches]
    times = [batch["seconds"] for batch in run.batches]
    for what, values in (("state calls", calls), ("state bytes read and written", moved)):
        workload = f"{what} of {len(values)} batches, largest / median"
        report.at_most(workload, max(values) / statistics.median(values), 3)
    slowest = f"{max(times) / statistics.median(times):.2f}×"
    report.note("  time of a batch, largest / median", slowest)


PARTS: dict[int, Callable[[Report], None]] = {
    1: answers,
    2: throughput,
    3: flat,
    4: many_answers,
    5: on_disk,
    6: no_spike,
}


if __name__ == "__main__":
    measure(Report, PARTS, "streams")
