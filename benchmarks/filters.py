"""Filters: the experiment of section 6.3 and what goes with it, side by side in one run.

    python -m benchmarks.filters               # everything, about 4 minutes
    python -m benchmarks.filters --only 1,2    # some of the parts

Parts: 1 the index against others, 2 CI-COUNT over p (Figure 12), 3 CI-SUM, CI-MAX, 4 memory and
rates from Python. A day of trades is made up: 5,000 symbols with Zipf's popularity, busy at open
and close. Times are the best of several. Only a run of everything writes
``benchmarks/results/filters.md`` and its picture.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import filter_kernels as kernels
from benchmarks.report import RESULTS, Report
from windrow.columns.filters import idle, ordered, stabbing
from windrow.columns.filters.pool import new_pool
from windrow.columns.ranges import Array
from windrow.filters import CiCount, CiMax, CiSum
from windrow.filters.ci_extreme import _ordered
from windrow.filters.precision import count_inner, count_outer, sum_inner

SYMBOLS = 5000
MINUTE = 60_000
LONGEST = 180 * MINUTE
OPEN, CLOSE = 570 * MINUTE, 960 * MINUTE
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


def best(run: Callable[[], Any], repeat: int = 3) -> float:
    found = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def trades(n: int) -> tuple[Array, Array, Array, Array]:
    """(symbol, time in ms, shares, price), in order of time."""
    rng = np.random.default_rng(2004)
    popularity = 1 / np.arange(1, SYMBOLS + 1)
    symbol = rng.choice(rng.permutation(SYMBOLS), n, p=popularity / popularity.sum())
    day = rng.beta(0.7, 0.7, n) * (CLOSE - OPEN) + OPEN
    shares = np.ceil(rng.lognormal(5.5, 1.2, n))
    base = rng.lognormal(3.3, 0.8, SYMBOLS)
    price = np.round(base[symbol] * np.exp(rng.normal(0, 0.01, n)), 2)
    return symbol.astype(np.int64), np.sort(day).astype(np.int64), shares, price


def queries_of(values_in: Callable[[int], Array], count: int, seed: int) -> list[tuple[int, float]]:
    """Windows of 15 minutes to 3 hours, each with a threshold that 3 to 5 % of symbols pass."""
    rng = np.random.default_rng(seed)
    found = []
    for T in rng.integers(15 * MINUTE, LONGEST + 1, 40):
        values = np.sort(values_in(int(T)))[::-1]
        for share in rng.uniform(0.03, 0.05, count // 40):
            found.append((int(T), float(values[int(share * SYMBOLS)])))
    order = rng.permutation(len(found))
    return [found[k] for k in order]


# --- 1 --------------------------------------------------------------------------------------------


def indexes(report: Report) -> None:
    report.heading("The index of a level: 200 of 5,000 keys read off, a key's time set anew")
    rng = np.random.default_rng(1)
    n = 200_000
    slots = rng.integers(0, SYMBOLS, n)
    values = np.arange(n) - rng.integers(0, 20_000, n)  # times that only grow for a key
    last = np.zeros(SYMBOLS, np.int64)
    for i in range(n):
        values[i] = last[slots[i]] = max(values[i], last[slots[i]])
    out = np.empty(2 * SYMBOLS, np.int64)
    borders = np.full(5000, np.sort(last)[-200])

    def heap() -> tuple[Array, Array, Array]:
        pool, free = new_pool(1 << 17)
        index = np.zeros(ordered.FIELDS, np.int64)
        assert ordered.start(pool, free, index, 13)
        return pool, free, index

    pool, free, index = heap()
    tree = np.full(2 << 13, -1, np.int64)
    stack = np.empty(64, np.int64)
    runs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "heap, four children (kept)": (
            lambda: kernels.heap_updates(pool, free, index, slots, values),
            lambda: kernels.heap_lookups(pool, index, borders, out),
        ),
        "tournament tree": (
            lambda: kernels.tournament_updates(tree, slots, values),
            lambda: kernels.tournament_lookups(tree, borders, stack, out),
        ),
        "no index, all times looked at": (
            lambda: last.__setitem__(slots, values),
            lambda: kernels.scan_lookups(last, borders, out),
        ),
    }
    for name, (update, lookup) in runs.items():
        update()
        lookup()

        def fresh() -> None:
            nonlocal pool, free, index
            if "heap" in name:
                pool, free, index = heap()
            tree[:] = -1

        updating = math.inf
        for _ in range(3):
            fresh()
            updating = min(updating, best(update, 1))
        reading = best(lookup)
        report.line(
            f"{name}: an update; a lookup",
            f"{updating / n * 1e9:.0f} ns; {reading / 5000 * 1e6:.2f} µs",
        )
    report.heading("Reading 10 keys off the index of a level, by the number of keys")
    for size in (1_000, 10_000, 100_000, 1_000_000):
        bits = (size - 1).bit_length()
        pool, free = new_pool(1 << bits + 5)
        index = np.zeros(ordered.FIELDS, np.int64)
        ordered.start(pool, free, index, bits)
        kernels.heap_updates(pool, free, index, rng.permutation(size), np.arange(size))
        borders = np.full(2000, size - 10)
        out = np.empty(size + 1, np.int64)
        kernels.heap_lookups(pool, index, borders[:10], out)
        seconds = best(lambda: kernels.heap_lookups(pool, index, borders, out)) / 2000
        report.line(f"{size:,} keys", f"{seconds * 1e9:.0f} ns")


# --- 2 --------------------------------------------------------------------------------------------


def interleaved(
    report: Report, symbol: Array, at: Array, start: int
) -> list[tuple[int, float, float]]:
    report.heading(
        "Section 6.3: 5,000 symbols, windows of 15 minutes to 3 hours, 3 to 5 % pass; rows and "
        "lookups in turn, exact answers"
    )

    def loaded(p: int) -> CiCount:
        made = CiCount(LONGEST, per_size=p)
        made.insert_many(np.arange(SYMBOLS), np.full(SYMBOLS, at[0]))  # slots are symbols
        made.insert_many(symbol[:start], at[:start])
        return made

    filter = loaded(1)
    now = int(at[start - 1])

    def values_in(T: int) -> Array:
        since = np.searchsorted(at[:start], now - T, side="right")
        return np.bincount(symbol[since:start], minlength=SYMBOLS)

    asked = queries_of(values_in, 2000, 5)
    told, out = np.zeros(4, np.int64), np.empty(4 * SYMBOLS, np.int64)
    plain = np.array([[T, int(v), 0, 0] for T, v in asked], np.int64)

    def drive(filter: CiCount, run: Callable[[Any, int, int], int], n: int) -> float:
        """Seconds for n rows with a lookup after each."""
        done, seconds = start, 0.0
        store = kernels.store_of(filter)  # type: ignore[no-untyped-call]
        while done < start + n:
            begun = time.perf_counter()
            done = run(store, done, start + n)
            seconds += time.perf_counter() - begun
            if done < start + n:  # room is made outside, as the filters do
                need = int(filter._state[idle.NEED])
                filter._grow(need)
                store = kernels.store_of(filter)  # type: ignore[no-untyped-call]
        return seconds

    naive = {}
    for name, probing, choosy, n in (
        ("one R-INT per key", False, False, 1500),
        ("one R-INT per key that has rows enough", False, True, 5000),
        ("one look per key", True, True, 10_000),
    ):
        rates = []
        for _ in range(5):
            filter = loaded(1)
            args = (plain, symbol, at)

            def run(store: Any, first: int, last: int) -> int:
                empty = (filter._levels, filter._indexes)
                return int(
                    kernels.count_naive(
                        store,
                        *empty,
                        LONGEST,
                        *args,
                        first,
                        last,
                        probing,
                        choosy,
                        SYMBOLS,
                        out,
                        told,
                    )
                )

            drive(filter, run, 10)
            filter = loaded(1)
            told[:] = 0
            rates.append(2 * n / drive(filter, run, n))
        naive[name] = max(rates)
        report.line(
            f"{name}: inputs a second (selectivity {told[3] / n / SYMBOLS:.3f})",
            f"{naive[name]:,.0f}",
        )
    slow = naive["one R-INT per key"]
    found: list[tuple[int, float, float]] = []
    n = 100_000
    for p in SIZES:
        rate, share = 0.0, 0.0
        for _ in range(5):
            filter = loaded(p)
            for _, v in asked:
                filter._index(count_inner(p, int(v)), False)
                filter._index(count_outer(p, int(v)), False)
            levels = [
                (
                    T,
                    int(v),
                    filter._index(count_inner(p, int(v)), False),
                    filter._index(count_outer(p, int(v)), False),
                )
                for T, v in asked
            ]
            queries = np.array(levels, np.int64)
            told[:] = 0

            def run(store: Any, first: int, last: int) -> int:
                table = (filter._levels, filter._indexes, p, LONGEST, filter._marks)
                return int(
                    kernels.count_filter(store, *table, queries, symbol, at, first, last, out, told)
                )

            rate = max(rate, 2 * n / drive(filter, run, n))
            share = told[3] / n / SYMBOLS
        found.append((p, rate, rate / slow))
        report.line(
            f"CI-COUNT, p = {p} (ε = {filter.error:.2f}, {len(filter.indexed_levels())} levels "
            f"asked for, selectivity {share:.3f})",
            f"{rate:,.0f}, {rate / slow:.1f}×",
        )
    p, rate, ratio = max(found, key=lambda one: one[1])
    report.line(
        f"CI-COUNT, best p = {p}, against one R-INT per key", f"{ratio:.1f}×", "≥ 15×", ratio >= 15
    )
    for name, rate_of in naive.items():
        if name != "one R-INT per key":
            report.line(f"CI-COUNT, best p = {p}, against {name}", f"{rate / rate_of:.1f}×")
    found += [(0, rate_of, rate_of / slow) for rate_of in list(naive.values())[1:]]
    return found


# --- 3 --------------------------------------------------------------------------------------------


def sums_and_extremes(report: Report, day: tuple[Array, Array, Array, Array], start: int) -> None:
    report.heading("CI-SUM of shares and CI-MAX of prices: lookups that 3 to 5 % of symbols pass")
    symbol, at, shares, price = day
    now = int(at[start - 1])
    told, out = np.zeros(4, np.int64), np.empty(1 << 20, np.int64)
    sums = CiSum(LONGEST, per_size=8)
    sums.insert_many(np.arange(SYMBOLS), np.zeros(SYMBOLS), np.full(SYMBOLS, at[0]))
    sums.insert_many(symbol[:start], shares[:start], at[:start])

    def volume(T: int) -> Array:
        since = np.searchsorted(at[:start], now - T, side="right")
        return np.bincount(symbol[since:start], shares[since:start], minlength=SYMBOLS)

    asked = queries_of(volume, 2000, 6)
    limits = np.array([v for _, v in asked])
    for _, v in asked:
        sums._index(sum_inner(8, v), False)
        sums._index(sums._outer(v), False)
    rows = [
        (T, 0, sums._index(sum_inner(8, v), False), sums._index(sums._outer(v), False))
        for T, v in asked
    ]
    queries = np.array(rows, np.int64)

    def run_sums(naive: bool, n: int) -> float:
        args = (queries, limits, now, 0, n, naive, SYMBOLS, out, told)
        store = (sums._keys, sums._state)

        def run() -> None:
            told[:] = 0
            kernels.many_sum_lookups(
                store, sums._ring, sums._pool, sums._indexes, sums._marks, *args
            )

        run()
        return best(run) / n

    slow, share = run_sums(True, 300), told[3] / 300 / SYMBOLS
    quick = run_sums(False, 20_000)
    report.line(
        f"sum: a lookup, one R-INT per key (selectivity {share:.3f})", f"{slow * 1e6:.1f} µs"
    )
    report.line(
        f"sum: a lookup, CI-SUM, p = 8 (selectivity {told[3] / 20_000 / SYMBOLS:.3f})",
        f"{quick * 1e6:.2f} µs, {slow / quick:.1f}×",
    )
    n = 200_000

    def more(filter: Any, values: Array) -> float:
        part = slice(start, start + n)
        seconds = best(lambda: filter.insert_many(symbol[part], values[part], at[part]), 1)
        return n / seconds

    report.line(
        f"sum: rows a second in batches, {len(sums.indexed_levels())} levels indexed",
        f"{more(sums, shares):,.0f}",
    )
    high = CiMax(LONGEST)
    high.insert_many(np.arange(SYMBOLS), np.zeros(SYMBOLS), np.full(SYMBOLS, at[0]))
    high.insert_many(symbol[:start], price[:start], at[:start])

    def highest(T: int) -> Array:
        since = np.searchsorted(at[:start], now - T, side="right")
        found = np.full(SYMBOLS, -1.0)
        np.maximum.at(found, symbol[since:start], price[since:start])
        return found

    wanted = queries_of(highest, 2000, 7)
    inside = _ordered(np.array([v for _, v in wanted]))
    queries = np.array([(T, int(v), 0, 0) for (T, _), v in zip(wanted, inside, strict=True)])

    steps = kernels.staircases(high._keys, high._ends, high._ranks, SYMBOLS)

    def run_max(naive: bool, n: int) -> float:
        args = (queries, now, 0, n, naive, SYMBOLS, out, told)
        tree = (high._ends, high._ranks, high._pool, high._high)

        def run() -> None:
            told[:] = 0
            kernels.many_max_lookups(*steps, *tree, *args)

        run()
        return best(run) / n

    slow, share = run_max(True, 500), told[3] / 500 / SYMBOLS
    quick = run_max(False, 20_000)
    report.line(
        f"max: a lookup, one staircase per key (selectivity {share:.3f})", f"{slow * 1e6:.1f} µs"
    )
    report.line(
        f"max: a lookup, CI-MAX (selectivity {told[3] / 20_000 / SYMBOLS:.3f})",
        f"{quick * 1e6:.2f} µs, {slow / quick:.1f}×",
    )
    report.line("max: rows a second in batches", f"{more(high, price):,.0f}")
    live = int(high._ends[stabbing.END] - high._ends[stabbing.START])
    report.line(
        "max: rows in the longest window, points of staircases, bytes",
        f"{live:,}, {high.stored_timestamps():,}, {high.bytes():,}",
    )


# --- 4 --------------------------------------------------------------------------------------------


def from_python(report: Report, symbol: Array, at: Array, start: int) -> None:
    report.heading("CI-COUNT from Python, p = 8, and its memory")
    n = 500_000
    for name, exact in (("rows kept", True), ("exact=False", False)):
        filter = CiCount(LONGEST, per_size=8, exact=exact)
        filter.insert("warm", at=0)
        begun = time.perf_counter()
        filter.insert_many(symbol[:start], at[:start])
        rate = start / (time.perf_counter() - begun)
        report.line(f"{name}, no level asked for: rows a second in batches", f"{rate:,.0f}")
        before = filter.bytes()
        now = int(at[start - 1])
        for v in np.unique(np.geomspace(1, 20_000, 400).astype(np.int64)).tolist():
            filter.candidates(now, LONGEST, at_least=v)
        begun = time.perf_counter()
        filter.insert_many(symbol[start : start + n], at[start : start + n])
        rate = n / (time.perf_counter() - begun)
        levels = len(filter.indexed_levels())
        report.line(f"{name}, {levels} levels indexed: rows a second in batches", f"{rate:,.0f}")
        report.line(
            f"{name}: bytes a key, without and with indexes; times kept a key",
            f"{before / len(filter):,.0f}; {filter.bytes() / len(filter):,.0f}; "
            f"{filter.stored_timestamps() / len(filter):,.0f}",
        )
        if not exact:
            continue
        now = int(at[start + n - 1])
        keys = symbol[:20_000].tolist()

        def one_by_one() -> None:
            for key in keys:
                filter.insert(key, at=now)

        row = best(one_by_one) / len(keys)
        report.line("one row, insert(key, at=...)", f"{row * 1e6:.1f} µs")
        counts = np.sort(np.bincount(symbol[: start + n], minlength=SYMBOLS))[::-1]
        v = int(counts[int(0.03 * SYMBOLS)]) // 4
        per = (
            best(lambda: [filter.lookup(now, 90 * MINUTE, at_least=v) for _ in range(1000)]) / 1000
        )
        told = filter.explain(now, 90 * MINUTE, at_least=v)
        report.line(
            f"one lookup, lookup(now, T, at_least=v), {told.answered} keys found",
            f"{per * 1e6:.1f} µs",
        )
        report.line("one row and one lookup in turn: inputs a second", f"{2 / (row + per):,.0f}")


def picture(found: list[tuple[int, float, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    curve = [(p, rate) for p, rate, _ in found if p]
    axis.plot([p for p, _ in curve], [rate for _, rate in curve], marker="o", label="CI-COUNT")
    slow = found[0][1] / found[0][2]
    enough, look = (rate for p, rate, _ in found if not p)
    axis.axhline(look, color="tab:green", linestyle=":", label="one look per key")
    axis.axhline(enough, color="tab:orange", linestyle="-.", label="R-INT, keys with rows enough")
    axis.axhline(slow, color="grey", linestyle="--", label="one R-INT per key")
    axis.set(
        xlabel="p, levels of each size",
        ylabel="inputs a second (rows and lookups)",
        title="5,000 symbols, 3–5 % pass, exact answers (Figure 12)",
        yscale="log",
    )
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="1,2,3,4")
    parts = {int(part) for part in parser.parse_args().only.split(",")}
    report = Report(("numpy", "numba"))
    day = trades(2_000_000)
    symbol, at = day[0], day[1]
    start = int(np.searchsorted(at, OPEN + 240 * MINUTE))
    found: list[tuple[int, float, float]] = []
    if 1 in parts:
        indexes(report)
    if 2 in parts:
        found = interleaved(report, symbol, at, start)
    if 3 in parts:
        sums_and_extremes(report, day, start)
    if 4 in parts:
        from_python(report, symbol, at, start)
    if len(parts) == 4:
        text = "Written by `make bench-filters`; the picture beside it shows Figure 12."
        (RESULTS / "filters.md").write_text(report.markdown("Filters", text))
        picture(found, RESULTS / "filters.png")
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
