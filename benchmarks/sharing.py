"""Shared windows: the experiments of the resource sharing paper's sections 6.1 and 6.2.

    python -m benchmarks.sharing               # everything, about a minute
    python -m benchmarks.sharing --only 1      # some of the parts

Parts: 1 a thousand SUM operators against the alternatives (Figure 9), one operation at a time and
in batches, 2 updates against Nmax and lookups against W (Figures 10 and 11), 3 the rates at
Nmax = 100,000. One core, all compiled, the best of several. Only a run of everything writes
``benchmarks/results/sharing.md`` and its pictures.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

import windrow as wr
from benchmarks.report import RESULTS, Report
from windrow.columns.shared import (
    BInt,
    LInt,
    Quantiles,
    RInt,
    b_int,
    baselines,
    r_int,
    tree_kernels,
)
from windrow.columns.shared.base import Shared
from windrow.columns.shared.bits import bits_of
from windrow.columns.shared.cells import lift, no_cells, words
from windrow.columns.shared.limbs import rounded, two_words
from windrow.columns.shared.rings import power_of_two, write_ring

Array = np.ndarray[Any, Any]
Curves = dict[str, list[tuple[float, float]]]
WIDEST = 1000
GRID = -100
"""Floats are added up as multiples of 2**GRID, in two words: exact for the numbers used here."""
U = np.uint64
MIXES = [i / 10 for i in range(11)]


def rate(run: Callable[[], Any], operations: int, repeat: int = 5) -> float:
    """Operations a second, the best of several."""
    best = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return operations / best


def shown(a_second: float) -> str:
    if a_second >= 1e6:
        return f"{a_second / 1e6:,.1f} million/s"
    return f"{a_second:,.0f} /s"


@overload(lift)
def lift_float(cells, items, i):  # type: ignore[no-untyped-def]
    if items.dtype != types.float64:
        return None
    return lambda cells, items, i: two_words(bits_of(items[U(i)]), GRID)


# --- 1: a thousand operators ----------------------------------------------------------------------


@dataclass(frozen=True)
class Mix:
    """Operations in a random order; ``widths`` are of the lookups, ``values`` of the updates."""

    before: Array
    updates: Array
    values: Array
    widths: Array
    widest: int


def workload(share: float, operations: int, widest: int, floats: bool = False) -> Mix:
    """A share of updates, the rest lookups of one of ``widest`` operators, all as likely."""
    generator = np.random.default_rng(1)
    values: Array = generator.integers(-1000, 1000, operations + widest)
    if floats:
        values = generator.normal(size=operations + widest)
    return Mix(
        values[:widest],
        generator.random(operations) < share,
        values[widest:],
        generator.integers(1, widest + 1, operations),
        widest,
    )


Prepare = Callable[[Mix, str], Callable[[Array], Any]]
TOGETHER = 1024
"""Operations of a batch."""


def running(mix: Mix, kind: str) -> Callable[[Array], Any]:
    totals = no_cells(kind, power_of_two(mix.widest + 1))
    r_int.append(totals, mix.before, 0)
    row = len(mix.before)
    return lambda out: r_int.mixed(totals, row, mix.updates, mix.values, mix.widths, out)


def base_intervals(mix: Mix, kind: str) -> Callable[[Array], Any]:
    cells = no_cells(kind, 2 * power_of_two(mix.widest))
    levels = mix.widest.bit_length() - 1
    b_int.append(cells, mix.before, 0, levels)
    row = len(mix.before)
    return lambda out: b_int.mixed(cells, levels, row, mix.updates, mix.values, mix.widths, out)


def _tree(mix: Mix, kind: str, longest: int) -> tuple[Array, ...]:
    size = longest + 1
    nodes, keys = np.zeros((size, 3), np.int64), np.zeros(size, np.int64)
    own, total = no_cells(kind, size), no_cells(kind, size)
    parts = (nodes, keys, own, total, np.zeros(5, np.int64))
    tree_kernels.append(*parts, mix.before, longest)
    return parts


def tree(mix: Mix, kind: str) -> Callable[[Array], Any]:
    parts = _tree(mix, kind, mix.widest)
    return lambda out: tree_kernels.mixed(
        *parts, mix.widest, mix.updates, mix.values, mix.widths, out
    )


def materialise_all(mix: Mix, kind: str) -> Callable[[Array], Any]:
    cells = no_cells(kind, power_of_two(mix.widest))
    results = no_cells(kind, mix.widest)
    widths = np.arange(1, mix.widest + 1)
    baselines.append_all(cells, results, widths, mix.before, 0)
    row, asked = len(mix.before), mix.widths - 1
    return lambda out: baselines.mixed_all(
        cells, results, widths, row, mix.updates, mix.values, asked, out
    )


def materialise_none(mix: Mix, kind: str) -> Callable[[Array], Any]:
    rows = np.zeros(power_of_two(mix.widest), mix.values.dtype)
    write_ring(rows, 0, mix.before)
    row = len(mix.before)
    return lambda out: baselines.mixed_none(rows, row, mix.updates, mix.values, mix.widths, out)


def running_batches(mix: Mix, kind: str) -> Callable[[Array], Any]:
    totals = no_cells(kind, power_of_two(mix.widest + TOGETHER + 1))
    r_int.append(totals, mix.before, 0)
    operations = (len(mix.before), mix.updates, mix.values, mix.widths)
    return lambda out: r_int.mixed_batches(totals, *operations, out, TOGETHER)


def base_interval_batches(mix: Mix, kind: str) -> Callable[[Array], Any]:
    cells = no_cells(kind, 2 * power_of_two(mix.widest + TOGETHER))
    levels = mix.widest.bit_length() - 1
    b_int.append(cells, mix.before, 0, levels)
    operations = (len(mix.before), mix.updates, mix.values, mix.widths)
    return lambda out: b_int.mixed_batches(cells, levels, *operations, out, TOGETHER)


def tree_batches(mix: Mix, kind: str) -> Callable[[Array], Any]:
    longest = mix.widest + TOGETHER
    parts = _tree(mix, kind, longest)
    operations = (longest, mix.updates, mix.values, mix.widths)
    return lambda out: tree_kernels.mixed_batches(*parts, *operations, out, TOGETHER)


def materialise_none_batches(mix: Mix, kind: str) -> Callable[[Array], Any]:
    rows = np.zeros(power_of_two(mix.widest + TOGETHER), mix.values.dtype)
    write_ring(rows, 0, mix.before)
    operations = (len(mix.before), mix.updates, mix.values, mix.widths)
    return lambda out: baselines.mixed_batches_none(rows, *operations, out, TOGETHER)


DRIVERS: dict[str, Prepare] = {
    "R-INT": running,
    "B-INT": base_intervals,
    "balanced tree": tree,
    "materialise all": materialise_all,
    "materialise none": materialise_none,
}
"""One operation at a time: each is answered before the next is looked at."""

BATCHES: dict[str, Prepare] = {
    "R-INT": running_batches,
    "B-INT": base_interval_batches,
    "balanced tree": tree_batches,
    "materialise none": materialise_none_batches,
}
"""A batch of operations at a time. Materialising all has no such form: its rows are results."""


def mixed_rate(name: str, share: float, floats: bool, drivers: dict[str, Prepare]) -> float:
    """Operations a second of one structure; fewer are run where each costs more."""
    operations = 50_000 if name.startswith("materialise") else 400_000
    mix = workload(share, operations, WIDEST, floats)
    run = drivers[name](mix, "wide")
    out, answers = no_cells("wide", operations), np.empty(operations)
    lookups = operations if drivers is DRIVERS else int(np.count_nonzero(~mix.updates))

    def once() -> None:
        run(out)
        if floats:
            rounded(words(out[:lookups]), GRID, answers)

    once()  # compiled, and in the cache
    return rate(once, operations, 5 if name.startswith("materialise") else 9)


def mixes(report: Report, floats: bool) -> tuple[Curves, Curves]:
    """The tables of one type of values, and the bars: every structure in its faster form."""
    what = "float64" if floats else "int64"
    forms = {"one operation at a time": DRIVERS, f"batches of {TOGETHER:,}": BATCHES}
    measured: list[Curves] = []
    for form, drivers in forms.items():
        report.heading(f"1,000 SUM operators of {what}, millions of operations a second, {form}")
        curves: Curves = {
            name: [(share, mixed_rate(name, share, floats, drivers)) for share in MIXES]
            for name in drivers
        }
        report.line("share of updates", ", ".join(curves))
        for i, share in enumerate(MIXES):
            found = [points[i][1] for points in curves.values()]
            report.line(f"{share:.1f}", ", ".join(f"{r / 1e6:.3g}" for r in found))
        measured.append(curves)
    single, batched = measured
    best: Curves = {
        name: [
            (share, max(alone, together))
            for (share, alone), (_, together) in zip(points, batched.get(name, points), strict=True)
        ]
        for name, points in single.items()
    }
    report.heading(f"1,000 SUM operators of {what}, each structure in its faster form (Figure 9)")
    for name in ("R-INT", "B-INT"):
        for other in ("materialise all", "materialise none"):
            ratio = best[name][5][1] / best[other][5][1]
            report.line(f"{what}: {name} / {other} at 0.5", f"{ratio:.1f}×", "≥ 10×", ratio >= 10)
            alone = single[name][5][1] / single[other][5][1]
            report.line("the same, both one operation at a time", f"{alone:.1f}×")
        least = min(
            a / b
            for (share, a), (_, b) in zip(best[name], best["balanced tree"], strict=True)
            if share >= 0.2
        )
        report.line(f"{what}: {name} / tree, least from 0.2 up", f"{least:.1f}×", "> 1×", least > 1)
    return single, batched


def operators(report: Report) -> dict[str, Curves]:
    panels: dict[str, Curves] = {}
    for what, floats in (("float64", True), ("int64", False)):
        single, batched = mixes(report, floats)
        panels[what] = batched | {f"{name}, one at a time": c for name, c in single.items()}
    return panels


# --- 2: updates against Nmax, lookups against W ---------------------------------------------------


def structures(longest: int) -> dict[str, Shared]:
    return {
        "R-INT, sum": RInt(wr.Sum(), longest, dtype="float64"),
        "B-INT, max": BInt(wr.Max(), longest, dtype="float64"),
        "quantile": Quantiles(longest, dtype="float64"),
    }


def values(size: int) -> Array:
    return np.random.default_rng(2).normal(size=size)


def update_rate(shared: Shared, size: int, column: Array | None = None) -> float:
    """Rows a second into a full structure, given as one array."""
    rows = values(size) if column is None else column
    shared.insert_many(rows[: max(1000, min(size, shared.longest or size))])
    return rate(lambda: shared.insert_many(rows), len(rows), 4)


def lookup_rate(shared: Shared, size: int, width: int | None = None) -> float:
    """Lookups a second of ranges of random rows, or of random ranges of one width."""
    generator = np.random.default_rng(3)
    active = shared.active
    if width is None:
        ends = np.sort(generator.integers(active.start, active.stop, (size, 2)), axis=1)
        lefts, rights = ends[:, 0].copy(), ends[:, 1].copy()
    else:
        lefts = generator.integers(active.start, active.stop - width + 1, size)
        rights = lefts + width - 1
    shared.lookup_many(lefts[:1000], rights[:1000])
    return rate(lambda: shared.lookup_many(lefts, rights), size, 4)


def curves_of_rates(report: Report) -> tuple[Curves, Curves]:
    updates: Curves = {}
    lookups: Curves = {}
    report.heading("Updates a second against Nmax (Figure 10)")
    sizes = {"R-INT, sum": 2_000_000, "B-INT, max": 2_000_000, "quantile": 1_000_000}
    for exponent in (2, 3, 4, 5, 6):
        for name, shared in structures(10**exponent).items():
            found = update_rate(shared, sizes[name])
            updates.setdefault(name, []).append((10.0**exponent, found))
            report.line(f"{name}, Nmax = 10^{exponent}", shown(found))
    report.heading("Lookups a second against W, at Nmax = 10^6 (Figure 11)")
    asked = {"R-INT, sum": 1_000_000, "B-INT, max": 300_000, "quantile": 30_000}
    for name, shared in structures(10**6).items():
        shared.insert_many(values(1_500_000))
        for width in (10, 100, 1000, 10_000, 100_000, 500_000):
            found = lookup_rate(shared, asked[name], width)
            lookups.setdefault(name, []).append((width, found))
            report.line(f"{name}, W = {width:,}", shown(found))
    return updates, lookups


# --- 3: the rates that are needed -----------------------------------------------------------------


def bars(report: Report) -> None:
    report.heading("Rates at Nmax = 100,000")
    n = 100_000
    whole = np.random.default_rng(4).integers(-(10**9), 10**9, 2_000_000)
    floats = values(2_000_000)
    table: list[tuple[str, Shared, Array, int, float, float]] = [
        ("B-INT, max of float64", BInt(wr.Max(), n), floats, 500_000, 10e6, 1e6),
        ("B-INT, max of int64", BInt(wr.Max(), n), whole, 500_000, 10e6, 1e6),
        ("R-INT, sum of float64", RInt(wr.Sum(), n), floats, 1_000_000, 20e6, 10e6),
        ("R-INT, sum of int64", RInt(wr.Sum(), n), whole, 1_000_000, 20e6, 10e6),
        ("quantile of float64", Quantiles(n), floats[:1_000_000], 50_000, 1e6, 30e3),
        ("quantile of int64", Quantiles(n), whole[:1_000_000], 50_000, 1e6, 30e3),
    ]
    for name, shared, column, asked, update, lookup in table:
        found = update_rate(shared, len(column), column)
        report.line(f"{name}, updates", shown(found), f"≥ {shown(update)}", found >= update)
        found = lookup_rate(shared, asked)
        report.line(f"{name}, random lookups", shown(found), f"≥ {shown(lookup)}", found >= lookup)
    others: list[tuple[str, Shared, Array]] = [
        ("B-INT, sum of int64", BInt(wr.Sum(), n), whole),
        ("B-INT, max count", BInt(wr.MaxCount(), n), whole),
        ("B-INT, first", BInt(wr.First(), n), floats),
        ("R-INT, mean of float64", RInt(wr.Mean(), n), floats),
        ("R-INT, geometric mean", RInt(wr.GeometricMean(), n), np.abs(floats)),
        ("R-INT, variance of float64", RInt(wr.Variance(), n), floats),
        ("R-INT, std of float64", RInt(wr.StdDev(), n), floats),
        ("R-INT, count", RInt(wr.Count(), n), whole),
    ]
    for name, shared, column in others:
        report.line(f"{name}, updates", shown(update_rate(shared, len(column), column)))
        report.line(f"{name}, random lookups", shown(lookup_rate(shared, 300_000)))
    landmarks = LInt(wr.Max(), n, widths=[(1000, 2000)])
    report.line("L-INT, max, (1000, 2000), updates", shown(update_rate(landmarks, 2_000_000)))
    report.line(
        "L-INT, max, (1000, 2000), lookups of 1500 rows",
        shown(lookup_rate(landmarks, 500_000, 1500)),
    )
    wide = BInt(wr.Max(), n)
    wide.insert_many(floats)
    report.line("B-INT, max, lookups of 1500 rows", shown(lookup_rate(wide, 500_000, 1500)))


# --- the page and its pictures --------------------------------------------------------------------


def picture(
    panels: dict[str, Curves], labels: tuple[str, str], logarithmic: bool, name: str
) -> None:
    """Curves side by side, one axis for each title."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (5.6 * len(panels) + 2, 4.2) if len(panels) > 1 else (6.4, 4.2)
    figure, axes = plt.subplots(
        1, len(panels), figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for axis, (title, curves) in zip(axes[0], panels.items(), strict=True):
        colours: dict[str, str] = {}
        for label, points in curves.items():
            structure, _, form = label.partition(", ")
            colour = colours.setdefault(structure, f"C{len(colours)}")
            style = "--" if form == "one at a time" else "-"
            x, y = zip(*points, strict=True)
            axis.plot(x, y, style, color=colour, marker="o", markersize=4, label=label)
        axis.set(yscale="log", title=title, xlabel=labels[0])
        if logarithmic:
            axis.set_xscale("log")
        axis.grid(alpha=0.3, which="both")
    axes[0][0].set_ylabel(labels[1])
    if len(panels) > 1:
        handles, labels_shown = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels_shown, fontsize=8, loc="outside right center")
    else:
        axes[0][0].legend(fontsize=8)
    figure.savefig(RESULTS / name, dpi=110)
    plt.close(figure)


def pictures(figure_9: dict[str, Curves], figure_10: Curves, figure_11: Curves) -> None:
    picture(
        {f"1,000 SUM operators, {kind}": curves for kind, curves in figure_9.items()},
        ("share of updates", "operations a second"),
        False,
        "sharing_mixes.png",
    )
    picture(
        {"Updates against the longest window": figure_10},
        ("Nmax, rows", "updates a second"),
        True,
        "sharing_updates.png",
    )
    picture(
        {"Lookups against their width, Nmax = 1,000,000": figure_11},
        ("W, rows", "lookups a second"),
        True,
        "sharing_lookups.png",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="1,2,3")
    parts = {int(part) for part in parser.parse_args().only.split(",")}
    report = Report(("numpy", "numba", "pyarrow"))
    figure_9: dict[str, Curves] = {}
    figure_10: Curves = {}
    figure_11: Curves = {}
    if 1 in parts:
        figure_9 = operators(report)
    if 2 in parts:
        figure_10, figure_11 = curves_of_rates(report)
    if 3 in parts:
        bars(report)
    if len(parts) == 3:
        text = (
            "Written by `make bench-sharing`; one core, all compiled. The pictures beside it are "
            "Figures 9 (`sharing_mixes.png`), 10 (`sharing_updates.png`) and 11 "
            "(`sharing_lookups.png`) of the paper. Sums are exact in every structure and made of "
            "the same two words: correctly rounded for floats, 128 bits for int64. Materialising "
            "nothing keeps the rows as they came, so that floats are brought into fixed point at "
            "every lookup (2 ns a row); of int64 it folds about three rows a nanosecond.\n\n"
            "The mixed operations of Figure 9 come in two forms. *One at a time*, each is done "
            "before the next is looked at, and a processor cannot guess whether that is a row or "
            f"a lookup. In *batches* of {TOGETHER:,} operations, the same ones in the same order, "
            "rows are put apart from lookups, all rows come first, and then every lookup is "
            "answered for the rows it was asked at: windows that end in the past are what these "
            "structures are for, and the answers are the same. The time of putting them apart is "
            "counted. Materialising all has no such form, since only the newest results are "
            "there. The bars compare every structure in its faster form; the ratio of both one "
            "at a time stands below, and there B-INT of int64 does not reach ten."
        )
        (RESULTS / "sharing.md").write_text(report.markdown("Shared windows", text))
        pictures(figure_9, figure_10, figure_11)
    for what in report.missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
