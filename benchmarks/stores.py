"""Monoid trees and stores: the experiments of the AMTA paper, side by side in one run.

    python -m benchmarks.stores                # everything, about 15 minutes
    python -m benchmarks.stores --only 1,3     # some of the parts
    python -m benchmarks.stores --bits 14      # smaller windows, for a first look

Parts: 1 combines, 2 latency against window size (Figure 6), 3 bulk eviction (Figure 7), 4 memory
(Figure 8), 5 operators (Table 2), 6 dimensions (Figure 9), 7 stores against memory. Times are the
best of several; a round is insert, slide, answer. Only a run of everything at full size writes
``benchmarks/results/stores.md`` and its picture.
"""

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.redis_server import RedisServer

import windrow as wr
from benchmarks.report import RESULTS, Report
from windrow.testing import CombineCounter
from windrow.windows import Amta, DabaLite, Fiba, LogMta, MonoidTree, Recalc, Window

VALUES = [random.Random(7).random() + 0.5 for _ in range(1 << 12)]
Curves = dict[str, list[tuple[float, float]]]


def micro(seconds: float) -> str:
    """A time a person can read."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.2f} {unit}"
    return f"{seconds * 1e9:,.0f} ns"


def best(run: Callable[[], Any], repeat: int = 3) -> float:
    found = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def filled(kind: type[Window], aggregate: wr.Aggregate, size: int) -> Window:
    window = kind(aggregate)
    insert = window.insert
    for i in range(size):
        insert(VALUES[i & 4095])
    return window


def rounds_of(window: Window, n: int) -> Callable[[], None]:
    def run() -> None:
        insert, evict, query = window.insert, window.evict, window.query
        for i in range(n):
            insert(VALUES[i & 4095])
            evict()
            query()

    return run


def inserts_of(sliding: wr.Sliding, n: int) -> Callable[[], None]:
    def run() -> None:
        insert = sliding.insert
        for i in range(n):
            insert(VALUES[i & 4095])

    return run


# --- 1 --------------------------------------------------------------------------------------------


def combines(report: Report, bits: int) -> None:
    report.heading("Combines")
    for kind, low, high in ((Amta, 10, min(20, bits)), (Fiba, 10, min(17, bits))):
        averages = {}
        for size in (low, high):
            counter = CombineCounter(wr.Max())
            window = filled(kind, counter.aggregate, 1 << size)
            counter.take()
            worst = {"insert": 0, "evict": 0}
            total = {"insert": 0, "evict": 0}
            for i in range(1 << size):
                window.insert(VALUES[i & 4095])
                made = counter.take()
                total["insert"] += made
                worst["insert"] = max(worst["insert"], made)
                window.evict()
                made = counter.take()
                total["evict"] += made
                worst["evict"] = max(worst["evict"], made)
            averages[size] = sum(total.values()) / (1 << size)
            report.line(
                f"{kind.__name__}, n = 2^{size}: average insert, evict; worst insert, evict",
                f"{total['insert'] / (1 << size):.3f}, {total['evict'] / (1 << size):.3f}; "
                f"{worst['insert']}, {worst['evict']}",
            )
            limit = 4 * size
            report.line(
                f"{kind.__name__}, n = 2^{size}: worst single operation",
                f"{max(worst.values())}",
                f"≤ {limit}",
                max(worst.values()) <= limit,
            )
            bulk = 0
            generator = random.Random(3)
            for _ in range(200):
                gone = int(2 ** generator.uniform(0, size - 1))
                window.bulk_evict(gone)
                bulk = max(bulk, counter.take())
                for i in range(min(gone, 2000)):
                    window.insert(VALUES[i & 4095])
                counter.take()
                if len(window) < 1 << size - 1:
                    break
            report.line(
                f"{kind.__name__}, n = 2^{size}: worst bulk eviction, any size",
                f"{bulk}",
                f"≤ {limit}",
                bulk <= limit,
            )
        grown = averages[high] / averages[low]
        report.line(
            f"{kind.__name__}: average at 2^{high} / at 2^{low}",
            f"{grown:.3f}×",
            "≤ 1.1×",
            grown <= 1.1,
        )


# --- 2 and 3 --------------------------------------------------------------------------------------


def latencies(report: Report, bits: int) -> Curves:
    report.heading("Latency of a round against window size (Figure 6), Max")
    curves: Curves = {}
    for size in [*range(0, bits, 4), bits]:
        told = []
        for kind in (Recalc, DabaLite, LogMta, Amta):
            if kind is Recalc and size > 12:
                continue
            window = filled(kind, wr.Max(), 1 << size)
            n = 200 if kind is Recalc else 40_000
            seconds = best(rounds_of(window, n)) / n
            curves.setdefault(kind.__name__, []).append((size, seconds))
            told.append(f"{kind.__name__} {micro(seconds)}")
            del window
        with tempfile.TemporaryDirectory() as folder:
            for name, options in (
                ("Sliding, Amta", {"algorithm": "Amta"}),
                ("Sliding, Amta in Rocks", {"store": wr.stores.Rocks(folder), "name": "w"}),
            ):
                sliding = wr.Sliding(wr.rows(1 << size), wr.Max(), **options)
                inserts_of(sliding, 1 << size)()
                seconds = best(inserts_of(sliding, 40_000)) / 40_000
                curves.setdefault(name, []).append((size, seconds))
                told.append(f"{name} {micro(seconds)}")
                sliding.close()
        report.line(f"2^{size} rows: {'; '.join(told)}", "")
    return curves


def bulk(report: Report, bits: int) -> Curves:
    report.heading(f"Bulk eviction from a window of 2^{bits} rows (Figure 7)")
    curves: Curves = {}
    sizes = [0, *range(4, bits - 2, 4), bits - 2]
    for kind in (Amta, LogMta, Fiba):
        window = filled(kind, wr.Max(), (1 << bits) + (1 << bits - 1))
        window.bulk_evict(1 << bits - 1)
        found: dict[int, float] = {}
        for size in sizes:
            times = []
            for _ in range(1 if size == bits - 2 else 9):
                start = time.perf_counter()
                window.bulk_evict(1 << size)
                times.append(time.perf_counter() - start)
                if size <= 12:
                    for i in range(1 << size):
                        window.insert(VALUES[i & 4095])
            found[size] = sorted(times)[len(times) // 2]
        curves[kind.__name__] = list(found.items())
        shown = "; ".join(f"2^{size} {micro(seconds)}" for size, seconds in found.items())
        report.line(f"{kind.__name__}: {shown}", "")
        many, one = found[bits - 2], found[0]
        if kind is Amta:
            report.line(
                f"Amta: evicting 2^{bits - 2} / evicting one",
                f"{many / one:.1f}×",
                "≤ 50×",
                many <= 50 * one,
            )
            amta = many
    window = filled(DabaLite, wr.Max(), 1 << bits)
    start = time.perf_counter()
    for _ in range(1 << bits - 2):
        window.evict()
    single = time.perf_counter() - start
    report.line(
        f"DabaLite: 2^{bits - 2} rows one by one {micro(single)} / Amta at once {micro(amta)}",
        f"{single / amta:,.0f}×",
        "≥ 1,000×",
        single >= 1000 * amta,
    )
    with tempfile.TemporaryDirectory() as folder:
        store = wr.stores.Rocks(folder)
        sliding = wr.Sliding(wr.rows(1 << bits), wr.Max(), store=store, name="w")
        inserts_of(sliding, 1 << bits)()
        found = {}
        for size in sizes:
            calls = store.calls
            start = time.perf_counter()
            sliding.window.bulk_evict(1 << size)
            found[size] = time.perf_counter() - start
            calls = store.calls - calls
        curves["Amta in Rocks"] = list(found.items())
        shown = "; ".join(f"2^{size} {micro(seconds)}" for size, seconds in found.items())
        report.line(f"Amta in Rocks: {shown} (the last one with {calls} calls)", "")
        sliding.close()
    return curves


# --- 4 --------------------------------------------------------------------------------------------

_CHILD = """
import gc, sys
import windrow as wr
where, *sizes = sys.argv[1:]
values = [i * 7919 % 4096 / 8 for i in range(4096)]
options = {"algorithm": "Amta"} if where == "memory" else {
    "store": wr.stores.Rocks(where), "name": "w"}
sliding = wr.Sliding(wr.rows(1 << 40), wr.Max(), **options)
done = 0
for size in map(int, sizes):
    while done < size:
        sliding.insert(values[done & 4095])
        done += 1
    gc.collect()
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * 4096, flush=True)
"""


def memory(report: Report, bits: int) -> None:
    report.heading("Resident memory of the process (Figure 8), Max")
    low, high = 1 << bits - 2, 1 << bits
    with tempfile.TemporaryDirectory() as folder:
        for where in ("memory", folder):
            command = [sys.executable, "-c", _CHILD, where, "0", str(low), str(high)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            start, small, large = (int(line) / 2**20 for line in said.split())
            name = (
                "in memory"
                if where == "memory"
                else "in Rocks (write buffers 2 × 4 MB, cache 4 MB)"
            )
            report.line(
                f"{name}: empty, 2^{bits - 2} rows, 2^{bits} rows",
                f"{start:.0f}, {small:.0f}, {large:.0f} MB",
            )
    report.line(
        f"in Rocks: 2^{bits} rows more than 2^{bits - 2} rows",
        f"{large - small:.1f} MB",
        "≤ 8 MB",
        large - small <= 8,
    )


def useful_rounds_of(window: MonoidTree, size: int, n: int) -> Callable[[], None]:
    """Insert, let go what is useless or too much, query."""
    useless: Callable[[Any, Any], bool] = window.aggregate.useless  # type: ignore[attr-defined]

    def run() -> None:
        for i in range(n):
            window.insert(VALUES[i & 4095])
            if len(window) > size:
                window.evict()
            window.evict_while(useless)
            window.query()

    return run


# --- 5 --------------------------------------------------------------------------------------------

OPERATORS: dict[str, Callable[[], wr.Aggregate]] = {
    "sum": wr.Sum,
    "mean": wr.Mean,
    "geometric mean": wr.GeometricMean,
    "standard deviation": wr.StdDev,
    "max": wr.Max,
    "longest run": wr.LongestRun,
}


def operators(report: Report, bits: int) -> None:
    bits = min(bits, 20)
    report.heading(
        f"Operators (Table 2): a round, 2^{bits} rows; max and longest run let go what is useless"
    )
    n = 30_000
    for name, make in OPERATORS.items():
        told = []
        window = filled(Recalc, make(), 1 << min(bits, 14))
        scale = 2.0 ** (bits - min(bits, 14))
        told.append(f"Recalc {micro(best(rounds_of(window, 3), 1) / 3 * scale)}")
        useful = name in ("max", "longest run")
        for kind in (DabaLite, LogMta, Amta):
            window = filled(kind, make(), 1 << bits)
            run = rounds_of(window, n)
            if useful and isinstance(window, MonoidTree):
                run = useful_rounds_of(window, 1 << bits, n)
            told.append(f"{kind.__name__} {micro(best(run) / n)}")
            del window
        kept: Any = wr.rows(1 << bits)
        if useful:
            kept = wr.useful(make()) & kept
        with tempfile.TemporaryDirectory() as folder:
            kinds: dict[str, dict[str, Any]] = {
                "Sliding, Amta": {"algorithm": "Amta"},
                "Sliding, Amta in Rocks": {"store": wr.stores.Rocks(folder), "name": "w"},
            }
            for label, options in kinds.items():
                sliding = wr.Sliding(kept, make(), **options)
                inserts_of(sliding, 1 << bits)()
                told.append(f"{label} {micro(best(inserts_of(sliding, n)) / n)}")
                sliding.close()
        report.line(f"{name}: {'; '.join(told)}", "")


# --- 6 --------------------------------------------------------------------------------------------


def dimensions(report: Report) -> None:
    report.heading("k dimensions in one window of 2^15 rows in Rocks (Figure 9)")
    found: dict[int, float] = {}
    for k in (1, 2, 5, 10, 20, 30, 40, 50):
        with tempfile.TemporaryDirectory() as folder:
            counts = [wr.Count().alias(f"count{i}") for i in range(k)]
            sliding = wr.Sliding(
                wr.rows(1 << 15), wr.Several(*counts), store=wr.stores.Rocks(folder), name="w"
            )
            inserts_of(sliding, 1 << 15)()
            found[k] = best(inserts_of(sliding, 15_000), 2) / 15_000
            sliding.close()
        apart = k * found[1]
        report.line(f"k = {k}: a round; k windows apart", f"{micro(found[k])}; {micro(apart)}")
    slope = (found[50] - found[1]) / 49
    report.line("a further dimension / a window of its own", f"{slope / found[1]:.2f}×")


# --- 7 --------------------------------------------------------------------------------------------


def throughput(report: Report, bits: int) -> None:
    bits = min(bits, 17)
    report.heading(f"Stores against memory: a round of Sliding over 2^{bits} rows")
    n = 1 << bits
    for name, make in (("Max", wr.Max), ("Sum", wr.Sum), ("StdDev", wr.StdDev)):
        with tempfile.TemporaryDirectory() as folder, RedisServer() as server:
            stores: dict[str, tuple[Any, float]] = {
                "memory": (None, 0),
                "Rocks": (wr.stores.Rocks(folder), 3),
                "Redis": (wr.stores.Redis(server.url), 10),
            }
            base = 0.0
            for where, (store, most) in stores.items():
                options = {"algorithm": "Amta"} if store is None else {"store": store, "name": "w"}
                sliding = wr.Sliding(wr.rows(n), make(), **options)
                inserts_of(sliding, n)()
                seconds = best(inserts_of(sliding, n)) / n
                base = base or seconds
                ratio = seconds / base
                report.line(
                    f"{name} in {where}",
                    f"{micro(seconds)}, {ratio:.2f}×",
                    f"≤ {most:.0f}×" if most else "",
                    not most or ratio <= most,
                )
                if store is not None and name == "Max":
                    calls_of(report, where, store, n)
                sliding.close()


def calls_of(report: Report, where: str, store: wr.stores.Store, n: int) -> None:
    """Inserts and evictions apart: a window that grows, and then lets go row by row."""
    sliding = wr.Sliding(wr.rows(1 << 40), wr.Max(), store=store, name="calls")
    before = store.calls
    inserts_of(sliding, n)()
    sliding.flush()
    inserting = store.calls - before
    for _ in range(n - 1):
        sliding.window.evict()
    evicting = store.calls - before - inserting
    for what, calls in (("insert", inserting), ("single evict", evicting)):
        report.line(
            f"{where}: calls for each {what}",
            f"1/{n / max(calls, 1):,.0f}",
            "≤ 1/100",
            calls <= n / 100,
        )
    sliding.delete()


def picture(figure_6: Curves, figure_7: Curves, bits: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    titles = ("A round against window size", f"Evicting at once from 2^{bits} rows")
    for axis, curves, title in zip(axes, (figure_6, figure_7), titles, strict=True):
        for name, points in curves.items():
            axis.plot([2**x for x, _ in points], [y for _, y in points], marker="o", label=name)
        axis.set(xscale="log", yscale="log", title=title, xlabel="rows", ylabel="seconds")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="1,2,3,4,5,6,7")
    parser.add_argument("--bits", type=int, default=22)
    options = parser.parse_args()
    parts = {int(part) for part in options.only.split(",")}
    bits = options.bits
    report = Report(("numpy", "rocksdict", "redis"))
    figure_6: Curves = {}
    figure_7: Curves = {}
    if 1 in parts:
        combines(report, bits)
    if 2 in parts:
        figure_6 = latencies(report, bits)
    if 3 in parts:
        figure_7 = bulk(report, bits)
    if 4 in parts:
        memory(report, bits)
    if 5 in parts:
        operators(report, bits)
    if 6 in parts:
        dimensions(report)
    if 7 in parts:
        throughput(report, bits)
    if len(parts) == 7 and bits == 22:
        text = "Written by `make bench-stores`; the picture beside it shows Figures 6 and 7."
        (RESULTS / "stores.md").write_text(report.markdown("Monoid trees and stores", text))
        picture(figure_6, figure_7, bits, RESULTS / "stores.png")
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
