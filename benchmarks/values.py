"""One value at a time: every algorithm against a bare ``collections.deque``.

    python -m benchmarks.values            # everything, a few minutes
    python -m benchmarks.values --quick    # smaller windows, for a first look

A round is evict + insert + query; its cost is shown in microseconds and as a ratio to append +
popleft of a bare deque, timed in the same kind of loop in the same run. Static windows,
fill-and-drain and event-time windows follow section 7 of the DABA paper. Latency percentiles and
the largest number of combines in one operation show who spikes. Results: ``benchmarks/results/``.
"""

import argparse
import json
import platform
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

import windrow as wr
from windrow.testing import CountedWindow
from windrow.windows import ALGORITHMS, DabaLite, Recalc, TwoStacksLite, Window

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
VALUES = [random.Random(7).random() for _ in range(1 << 12)]
FAST = {name: algorithm for name, algorithm in ALGORITHMS.items() if algorithm is not Recalc}
AGGREGATES: dict[str, Callable[[], wr.Aggregate]] = {"Max": wr.Max, "Sum": wr.Sum}


def best(run: Callable[[], int], repeat: int = 5) -> float:
    """Seconds per round, best of several; ``run`` returns how many rounds it made."""
    found = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        rounds = run()
        found = min(found, (time.perf_counter() - start) / rounds)
    return found


def bare_deque(size: int) -> float:
    queue = deque(VALUES * (size // len(VALUES) + 1), maxlen=None)
    while len(queue) > size:
        queue.pop()
    append, popleft = queue.append, queue.popleft

    def run() -> int:
        for value in VALUES * 20:
            append(value)
            popleft()
        return len(VALUES) * 20

    return best(run, 40)  # the base of every ratio: long enough to meet a quiet moment


def repeats(size: int) -> int:
    """Large windows take long enough to be steady; small ones are run several times."""
    return 5 if size <= 1 << 14 else 2


def filled(algorithm: type[Window], aggregate: wr.Aggregate, size: int) -> Window:
    window = algorithm(aggregate)
    for i in range(size):
        window.insert(VALUES[i & 4095])
    return window


def static(algorithm: type[Window], aggregate: wr.Aggregate, size: int) -> float:
    """Evict, insert, query at a fixed size, for at least two whole flip cycles."""
    window = filled(algorithm, aggregate, size)
    evict, insert, query = window.evict, window.insert, window.query
    rounds = max(8, 2 * size // len(VALUES))

    def run() -> int:
        for value in VALUES * rounds:
            evict()
            insert(value)
            query()
        return len(VALUES) * rounds

    return best(run, repeats(size))


def fill_and_drain(algorithm: type[Window], aggregate: wr.Aggregate, size: int) -> float:
    """Insert and query up to the size, then evict down to nothing; per row."""
    window = algorithm(aggregate)
    times = max(1, 20_000 // size)

    def run() -> int:
        for _ in range(times):
            for i in range(size):
                window.insert(VALUES[i & 4095])
                window.query()
            for _ in range(size):
                window.evict()
        return size * times

    return best(run, repeats(size))


def event_time(algorithm: type[Window], aggregate: wr.Aggregate, size: int) -> float:
    """A time window over irregular times, whose size fluctuates around ``size``."""
    generator = random.Random(3)
    gaps = [generator.choice((0, 1, 1, 2, 2, 3, 12)) for _ in range(len(VALUES))]
    mean_gap = sum(gaps) / len(gaps)
    sliding = wr.Sliding(wr.time(max(1, int(size * mean_gap))), aggregate, algorithm)
    now = 0
    for i in range(size):
        now += gaps[i & 4095]
        sliding.insert(VALUES[i & 4095], at=now)

    rounds = max(4, 2 * size // len(VALUES))

    def run() -> int:
        nonlocal now
        for gap, value in zip(gaps * rounds, VALUES * rounds, strict=True):
            now += gap
            sliding.insert(value, at=now)
        return len(VALUES) * rounds

    return best(run, repeats(size))


def latencies(algorithm: type[Window], size: int, rounds: int) -> dict[str, float]:
    """Percentiles of single rounds, in microseconds."""
    window = filled(algorithm, wr.Max(), size)
    clock = time.perf_counter_ns
    spent = []
    for i in range(rounds):
        value = VALUES[i & 4095]
        start = clock()
        window.evict()
        window.insert(value)
        window.query()
        spent.append(clock() - start)
    spent.sort()
    return {
        name: spent[min(len(spent) - 1, int(len(spent) * share))] / 1000
        for name, share in (("median", 0.5), ("p99", 0.99), ("p99.99", 0.9999), ("max", 1.0))
    }


def spikes(size: int, rounds: int) -> dict[str, int]:
    """The largest number of combines in one operation, over many rounds."""
    found = {}
    for algorithm in (DabaLite, TwoStacksLite):
        counted = CountedWindow(algorithm, wr.Max())
        for i in range(size):
            counted.insert(VALUES[i & 4095])
        for i in range(rounds):
            counted.evict()
            counted.insert(VALUES[i & 4095])
            counted.query()
        found[algorithm.__name__] = max(counted.worst.values())
    return found


def table(title: str, sizes: list[int], rows: dict[str, list[float | None]], base: float) -> None:
    print(f"\n{title}: microseconds per round (ratio to a bare deque)")
    print(f"{'':16}" + "".join(f"{'2^' + str(s.bit_length() - 1):>16}" for s in sizes))
    for name, row in rows.items():
        cells = [f"{'-':>16}" if x is None else f"{x * 1e6:8.2f} ({x / base:5.0f})" for x in row]
        print(f"{name:16}" + "".join(f"{cell:>16}" for cell in cells))


def plot(results: dict[str, Any], sizes: list[int], base: float) -> Path:
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), sharey=True)
    titles = {"static": "static", "drain": "fill and drain", "event": "event time"}
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        for name, row in results[key]["Max"].items():
            points = [(s, x / base) for s, x in zip(sizes, row, strict=True) if x is not None]
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        axis.set(xscale="log", yscale="log", title=title, xlabel="rows in the window")
        axis.set_xscale("log", base=2)
        axis.axhline(45, color="grey", linewidth=0.7, linestyle=":")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("time of a round / bare deque append + popleft")
    axes[0].legend(fontsize=8)
    figure.suptitle(
        "Max, one value at a time: insert + evict + query (dotted: 45 × the bare deque)"
    )
    figure.tight_layout()
    path = RESULTS / "values.png"
    figure.savefig(path, dpi=90)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="windows up to 2^12, fewer rounds")
    quick = parser.parse_args().quick
    RESULTS.mkdir(exist_ok=True)
    sizes = [1 << e for e in ((4, 8, 12) if quick else (4, 6, 8, 10, 12, 14, 16, 18, 20))]
    base = bare_deque(1024)
    print(f"{platform.machine()}, Python {platform.python_version()}, windrow {wr.__version__}")
    print(f"bare deque, append + popleft: {base * 1e9:.1f} ns")
    experiments = {"static": static, "drain": fill_and_drain, "event": event_time}
    results: dict[str, Any] = {"bare_deque_ns": base * 1e9, "sizes": sizes}
    for key, experiment in experiments.items():
        results[key] = {}
        for label, make in AGGREGATES.items():
            if label == "Sum" and key != "static":
                continue
            rows: dict[str, list[float | None]] = {}
            for name, algorithm in ALGORITHMS.items():
                if algorithm.refuses(make()):
                    continue
                rows[name] = [
                    None
                    if (algorithm is Recalc and size > 256) or (label == "Sum" and size > 1 << 14)
                    else experiment(algorithm, make(), size)
                    for size in sizes
                ]
            results[key][label] = rows
            table(f"{key}, {label}", sizes, rows, base)
    print("\nlatency of single rounds at 2^14 rows, Max, microseconds")
    results["latency"] = {}
    for name, algorithm in FAST.items():
        if algorithm.refuses(wr.Max()) is None:
            found = latencies(algorithm, 1 << 14, 20_000 if quick else 200_000)
            results["latency"][name] = found
            print(f"{name:16}" + "".join(f"  {k} {v:9.1f}" for k, v in found.items()))
    rounds = 50_000 if quick else 1_000_000
    results["spikes"] = spikes(1 << 14, rounds)
    print(f"\nlargest number of combines in one operation, W = 2^14, {rounds:,} rounds:")
    for name, worst in results["spikes"].items():
        print(f"  {name:16} {worst:,}")
    static_ratio = max(x / base for x in results["static"]["Max"]["DabaLite"] if x is not None)
    print(f"\nDabaLite with Max, slowest size: {static_ratio:.1f}× the bare deque (bar: 45×)")
    (RESULTS / "values.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"plot: {plot(results, sizes, base)}")
    if not quick and (static_ratio > 45 or results["spikes"]["DabaLite"] > 3):
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
