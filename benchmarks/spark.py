"""Spark tables: windrow's kernels against Spark's own window operator, side by side in one run.

    python -m benchmarks.spark                 # everything, about half an hour
    python -m benchmarks.spark --only 1,5      # some of the parts
    python -m benchmarks.spark --scale 0.05    # a twentieth of the rows, for a first look

Every measurement has a Spark session of its own (two local cores unless said otherwise), with equal
settings for both sides; times are the best of three, written to Spark's ``noop`` sink. Spark's
operator is timed with its segment tree, and without it where that takes no more than a minute.
Answers of both sides are compared on a slice before anything is timed. Only a run of everything at
full size writes ``benchmarks/results/spark.md``.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sheet import Sheet, elsewhere, measure
from benchmarks.spark_worker import FLAT_WIDTHS, GAP, LOOKBACKS, PLANNER_WIDTHS, Numbers, Setup

TABLES = {"eight": 2_000_000, "balanced": 4_000_000, "hot": 4_000_000, "line": 20_000_000}
TABLES |= {"many": 20_000_000, "sixteen": 16_000_000}
"""All but ``many`` have eight keys."""


class Report(Sheet):
    """Runs the measurements, and keeps what was found."""

    title = "Spark tables"
    headings = (
        *("workload", "ours", "ns a row", "native, tree", "native, no tree", "measured", "needed"),
    )
    widths = (68, 9, 9, 13, 16, 9, 9, 7)
    circumstances = (
        "local[2], 8 shuffle partitions, none of them put together, 8 GB for the driver, best of "
        "three unless said otherwise."
    )
    notes = """\
**Own aggregate.** 50 times the best UDF over a window would be about 125 ns a row, for everything.
Rows to Python and back as they are, without shuffle, sort and windows, take more than that, and so
do Spark's shuffle and sort without Python (`--only 4` prints both); the kernel takes 27 ns. UDFs
are timed on all rows too: on a twentieth of them, most of it in one partition, they would seem
twice as slow as they are. Tried besides: shuffling sorted pieces
as Arrow instead of rows, which is 1.0 to 1.5 times as fast on narrow rows in eight partitions, 0.63
times on wide ones, and would not last: a task's rows are shared out over all partitions, so that
with hundreds of these a piece is a few hundred rows, and costs more than it spares; shuffles
without compression, without checksums, with larger buffers, another codec or Spark's sorting
writer, none of which is more than 15 % faster; a scalar UDF of just the columns that aggregates
need, which is 3 to 4 % faster, but Spark moves limits below it, and windows that look ahead would
miss rows.
"""

    def measure(self, job: str, tables: list[str], **settings: bool | int) -> Numbers:
        """The numbers of one job."""
        setup = Setup(job, self.folder, self.scale, **settings)  # type: ignore[arg-type]
        for name in tables:
            make_table(name, setup)
        numbers: Numbers = elsewhere("benchmarks.spark_worker", asdict(setup))
        return numbers

    def count(self, full: int) -> int:
        return Setup("", self.folder, self.scale).rows(full)

    def note(
        self,
        workload: str,
        rows: int,
        measured: str = "",
        *,
        ours: float | None = None,
        tree: float | None = None,
        plain: float | None = None,
        needed: str = "",
        good: bool = True,
    ) -> None:
        """One row; times in seconds."""
        each = f"{ours / self.count(rows) * 1e9:.0f}" if ours is not None and rows else ""
        numbers = (seconds(ours), each, seconds(tree), seconds(plain), measured)
        self.add(workload, *numbers, needed=needed, good=good)

    def faster(self, workload: str, rows: int, times: Numbers, peer: str, least: float) -> None:
        """A bar: the peer takes at least so many times as long as ours."""
        ratio = times[peer] / times["ours"]
        self.note(
            workload,
            rows,
            f"{ratio:.2f}×",
            ours=times["ours"],
            tree=times.get("tree"),
            plain=times.get("plain"),
            needed=f"≥ {least:g}×",
            good=ratio >= least,
        )

    def at_most(
        self,
        workload: str,
        value: float,
        most: float,
        unit: str = "×",
        rows: int = 0,
        ours: float | None = None,
        tree: float | None = None,
        plain: float | None = None,
    ) -> None:
        """A bar: the value is no larger than that."""
        self.note(
            workload,
            rows,
            f"{value:.2f}{unit}",
            ours=ours,
            tree=tree,
            plain=plain,
            needed=f"≤ {most:g}{unit}",
            good=value <= most,
        )


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def make_table(name: str, setup: Setup) -> None:
    """A table of keys, irregular times and positive values, once per run; rows in order of time."""
    folder = Path(setup.folder) / name
    if folder.exists():
        return
    folder.mkdir()
    rows = setup.rows(TABLES[name])
    generator = np.random.default_rng(11)
    times = np.cumsum(1 + generator.exponential(GAP, rows).astype(np.int64))
    values = np.abs(generator.standard_normal(rows)) * 100 + 1
    keys = generator.integers(0, 8, rows)
    if name == "hot":
        keys = np.where(generator.random(rows) < 0.9, 0, generator.integers(1, 8, rows))
    elif name == "many":
        keys = generator.permutation(np.arange(rows) // 20)
    table = pa.table({"k": pa.array(keys.astype(np.int32)), "t": times, "x": values})
    pq.write_table(table, folder / "part.parquet", row_group_size=max(10_000, rows // 8))


# --- the parts ------------------------------------------------------------------------------------


def rows_windows(report: Report) -> None:
    times = report.measure("max_of_rows", ["eight"])
    what = "max over 1,000 rows, 8 keys"
    report.faster(f"{what}: with the tree", 2_000_000, times, "tree", 1.3)
    report.faster(f"{what}: without (once)", 2_000_000, times, "plain", 10)


def many_aggregates(report: Report) -> None:
    times = report.measure("four_by_three", ["eight"])
    what = "max, sum, mean, std over 60, 600, 3,600 rows"
    report.faster(f"{what} (no tree: 1/20, ×20)", 2_000_000, times, "tree", 6)


def time_windows(report: Report) -> None:
    times = report.measure("time_windows", ["eight"])
    what = "max, sum over times of about 100 and 1,000 rows"
    report.faster(f"{what} (no tree: 1/10)", 2_000_000, times, "tree", 2)


def own_aggregate(report: Report) -> None:
    found = report.measure("geo_mean", ["eight", "sixteen"])
    rows = report.count(2_000_000)
    ours, many = found.pop("ours"), found.pop("ours, many")
    floors = {
        "shuffle and sort by Spark, without Python": ("placed", "placed, many"),
        "rows to Python and back, without shuffle, sort and windows": ("crossed", "crossed, many"),
    }
    least = {what: [found.pop(name) for name in names] for what, names in floors.items()}
    for name, each in found.items():
        report.note(f"  {name}", 0, f"{each * 1e9:,.0f} ns a row, {each / ours:.1f}×")
    over = {name: each for name, each in found.items() if name.endswith("over the window")}
    best = min(over, key=lambda name: over[name])
    times = {"ours": ours * rows, "best": over[best] * rows}
    report.faster(f"own geometric mean, 1,000 rows: {best}", 2_000_000, times, "best", 50)
    large = 16_000_000
    whole = many * report.count(large)
    report.note("  the same, 16 million rows", large, f"{over[best] / many:.2f}×", ours=whole)
    for what, times_each in least.items():
        for each, count in zip(times_each, (2_000_000, large), strict=True):
            report.note(f"  {what}, {count:,} rows", 0, f"{each * 1e9:.0f} ns a row")


def small_windows(report: Report) -> None:
    found = report.measure("small_windows", ["eight"])
    for width in PLANNER_WIDTHS:
        name = f"max over {width:,} rows"
        times = {who: found.get(f"{who} {width}") for who in ("ours", "tree", "plain", "auto")}
        ours, tree, auto = (found[f"{who} {width}"] for who in ("ours", "tree", "auto"))
        shown = {"ours": ours, "tree": tree, "plain": times["plain"]}
        if width == 10:
            report.at_most(f"{name}, kernel / native", ours / tree, 1.2, "×", 2_000_000, **shown)
        report.at_most(
            f"{name}, planner's {auto:.2f} s / best, tree on",
            auto / min(ours, tree),
            1.1,
            "×",
            2_000_000,
            **shown,
        )
        plain, auto_plain = times["plain"], found.get(f"auto_plain {width}")
        if plain is not None and auto_plain is not None:
            ratio = auto_plain / min(ours, plain)
            what = f"{name}, planner's {auto_plain:.2f} s / best, tree off"
            report.at_most(what, ratio, 1.1, "×", 2_000_000, **shown)
    found = report.measure("flat", ["eight"])
    for width in FLAT_WIDTHS:
        ours, tree = found[f"ours {width}"], found[f"tree {width}"]
        report.note(f"  max over {width:,} rows, one key", 2_000_000, ours=ours, tree=tree)
    times_of_width = [found[f"ours {width}"] for width in FLAT_WIDTHS]
    ratio = max(times_of_width) / min(times_of_width)
    report.at_most("slowest of 100 to 1,000,000 rows / fastest", ratio, 1.3)


def without_key(report: Report) -> None:
    times = report.measure("no_key", ["line"])
    what = "no key, max over 10 % of the span"
    report.faster(f"{what} (native once)", 20_000_000, times, "tree", 1.5)
    for how, pinned in (("local[1], which uses both cores", False), ("one core", True)):
        alone = report.measure("no_key_alone", ["line"], cores=1, pinned=pinned)
        two = {"ours": times["ours"], "alone": alone["ours"]}
        report.faster(f"{what}: {how} / two", 20_000_000, two, "alone", 1.6)
    report.at_most("  most memory of a Python worker", times["memory"] / 1e9, 1.5, " GB")
    found = report.measure("no_key_shuffle", ["line"], events=True)
    for share in LOOKBACKS:
        what = f"  rows shuffled / rows, {share * 100:g} % of the span"
        report.at_most(what, found[str(share)], 2.1)


def sizes_of_keys(report: Report) -> None:
    found = report.measure("hot_key", ["balanced", "hot"])
    for label in ("time", "rows"):
        name = f"max over 1,000 rows by {label}"
        balanced, hot, without, tree = (
            found[f"{who} {label}"] for who in ("balanced", "hot", "without", "tree")
        )
        report.note(f"  {name}, 8 equal keys", 4_000_000, ours=balanced)
        what = f"{name}, 90 % in one key / equal keys"
        report.at_most(what, without / balanced, 1.5, "×", 4_000_000, without, tree)
        what = "  the same with hot_rows, which pays only with more cores"
        report.note(what, 4_000_000, f"{hot / balanced:.2f}×", ours=hot)
    found = report.measure("many_keys", ["many"])
    for label in ("time", "rows"):
        times = {who: found[f"{who} {label}"] for who in ("ours", "tree", "plain")}
        what = f"1,000,000 keys of 20 rows, max of 10 by {label}"
        report.faster(what, 20_000_000, times, "tree", 1)


def first_job(report: Report) -> None:
    for daemon, name in ((False, "Spark's daemon"), (True, "windrow.spark.daemon")):
        found = [report.measure("first_job", ["eight"], daemon=daemon, cores=8) for _ in range(3)]
        first, second = (min(numbers[which] for numbers in found) for which in ("first", "second"))
        report.note(f"first job, 8 workers, {name}", 0, f"then {second:.2f} s", ours=first)
    for tcp, name in ((True, "through TCP"), (False, "through Unix sockets")):
        found_small = report.measure("small_job", ["eight"], tcp=tcp)
        what = f"max over 1,000 rows, 20,000 rows in 8 tasks, {name} (best of 10)"
        report.note(what, 0, ours=found_small["ours"])


PARTS: dict[int, Callable[[Report], None]] = {
    1: rows_windows,
    2: many_aggregates,
    3: time_windows,
    4: own_aggregate,
    5: small_windows,
    6: without_key,
    7: sizes_of_keys,
    8: first_job,
}


if __name__ == "__main__":
    measure(Report, PARTS, "spark")
