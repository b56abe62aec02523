"""Counters in few bits: their sizes against the lower bounds, their errors, and their speed.

    python -m benchmarks.approx   # half a minute; writes results/approx.md and approx.png

Times are the best of several on one core.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, Report
from windrow.approx import Bank, Count, ExponentialHistogram, Sum
from windrow.approx.bits import Packed

Array = np.ndarray[Any, Any]
INVERSES = (4, 10, 30, 60, 100, 1000, 10_000, 100_000)


def best(run: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def sizes(report: Report) -> None:
    report.heading("Bits of one counter, against the lower bound (needed: at most 3 × bound + 8)")
    for exponent, inverse in product((4, 8, 12, 16, 20, 24, 30), INVERSES):
        counter = Count(2**exponent, Fraction(1, inverse))
        bits, bound = counter.bits(), counter.lower_bound_bits()
        what = f"Count, W = 2^{exponent}, ε = 1/{inverse}: {counter.algorithm}"
        limit = 3 * bound + 8
        report.line(what, f"{bits:,} bits, bound {bound:,}", f"≤ {limit:,}", bits <= limit)
    for exponent, inverse in product((8, 12, 20, 30), INVERSES):
        total = Sum(2**exponent, 1500, Fraction(1, inverse))
        bits, bound = total.bits(), total.lower_bound_bits()
        what = f"Sum, R = 1500, W = 2^{exponent}, ε = 1/{inverse}: {total.algorithm}"
        limit = 3 * bound + 8
        report.line(what, f"{bits:,} bits, bound {bound:,}", f"≤ {limit:,}", bits <= limit)


def corners(report: Report) -> None:
    report.heading("Sums over a fine grid: where bits exceed 3 × bound + 8")
    beyond = tried = 0
    most = 0.0
    inverses = sorted({round(4 * 1.25**j) for j in range(60)})
    for W, R, inverse in product(
        [1, 2, 3, 5, 9, 16, 33, 64, 100, 333, 1000, 4096, 10**5, 2**20, 2**30],
        [1, 2, 10, 255, 1500, 10**6],
        inverses,
    ):
        if min(W, inverse) > 2**20:
            continue
        total = Sum(W, R, Fraction(1, inverse))
        tried += 1
        limit = 3 * total.lower_bound_bits() + 8
        beyond += total.bits() > limit
        most = max(most, total.bits() / limit)
    report.line(f"of {tried:,} (W, R, ε)", f"{beyond:,}, at most {most:.2f} ×", "0", not beyond)
    beyond, most, tried = 0, 0.0, 30_000
    chance = random.Random(1)
    for _ in range(tried):
        W = int(2 ** chance.uniform(0, 20))
        about = 2 * W / 2 ** chance.uniform(-3, 3)
        total = Sum(W, chance.choice([1, 10, 255, 1500, 10**6, 10**9]), 1 / max(4, int(about)))
        limit = 3 * total.lower_bound_bits() + 8
        beyond += total.bits() > limit
        most = max(most, total.bits() / limit)
    what = f"of {tried:,} more, random, with 2Wε from 1/8 to 8"
    report.line(what, f"{beyond:,}, at most {most:.2f} ×")


def gold(report: Report) -> tuple[list[float], list[float], float, int]:
    report.heading("The gold price: W = 3,600,000, R = 1500, ε = 1/1500")
    rng = np.random.default_rng(1)
    W = 3_600_000
    drift = np.cumsum(rng.normal(0, 0.01, 3 * W)) + 30 * np.sin(np.arange(3 * W) / 5e5)
    prices = np.clip(np.rint(1200 + drift), 1000, 1500).astype(np.int64)
    counter = Sum(W, 1500, 1 / 1500)
    sums = np.concatenate([[0], np.cumsum(prices)])
    truth, estimate, worst = [], [], 0.0
    for start in range(0, len(prices), 20_000):
        counter.insert_many(prices[start : start + 20_000])
        end = min(start + 20_000, len(prices))
        exact = float(sums[end] - sums[max(0, end - W)])
        worst = max(worst, abs(counter.query() - exact))
        truth.append(exact / W)
        estimate.append(counter.query() / W)
    size = len(counter.to_bytes())
    report.line("bytes, header included", f"{size}", "≤ 128", size <= 128)
    report.line("bits of the fields", f"{counter.bits()}")
    report.line(
        "largest error of the average seen, in $",
        f"{worst / W:.3f}",
        f"≤ {counter.error_bound / W:.3f}",
        worst <= counter.error_bound,
    )
    histogram = ExponentialHistogram(W, 0.001, 1500)
    histogram.insert_many(prices[:300_000])
    held = histogram.bits() / 8
    ratio = held / size
    what = "exponential histogram, 0.1 %, after 300,000 prices: bytes"
    report.line(what, f"{held:,.0f} = {ratio:.0f}×", "≥ 100×", ratio >= 100)
    most = histogram.most_buckets() * histogram.bucket_bits() / 8
    report.line("exponential histogram, full: bytes", f"{most:,.0f} = {most / size:.0f}×")
    return truth, estimate, counter.error_bound / W, 20_000


def five(report: Report) -> None:
    report.heading("Counting within ±5")
    for W in (10**4, 10**6, 10**8):
        counter = Count(W, Fraction(5, W))
        share = counter.bits() / W
        good = counter.error_bound <= 5 and share <= 0.11
        report.line(f"W = {W:,}: bits / W", f"{share:.4f}", "≈ 0.1", good)


class Touching(Packed):
    __slots__ = ("touched",)
    touched: int

    def get(self, offset: int, width: int) -> int:
        self.touched += 1
        return super().get(offset, width)

    def put(self, offset: int, width: int, value: int) -> None:
        self.touched += 1
        super().put(offset, width, value)


def operations(report: Report) -> None:
    report.heading("Packed fields read or written by one insert, counted; at most, over 5,000")
    for exponent in (4, 10, 16, 22, 30):
        for counter in (Count(2**exponent, 0.01), Sum(2**exponent, 1500, 0.01)):
            packed = Touching(counter.bits())
            counter._packed = packed
            most = 0
            for j in range(5_000):
                packed.touched = 0
                counter.insert(j % 2)
                most = max(most, packed.touched)
            what = f"{type(counter).__name__}, W = 2^{exponent}"
            report.line(what, f"{most}", "≤ 4", most <= 4)


def streams() -> Iterator[tuple[str, Any, Array]]:
    rng = np.random.default_rng(0)
    bits = rng.random(20_000_000) < 0.3
    values = rng.integers(0, 1501, 20_000_000)
    yield "Count, W = 1,000,000, ε = 1 %, truth values", Count(10**6, 0.01), bits
    yield "Count, W = 1,000,000, within ±5", Count(10**6, 5e-6), bits
    yield "Count, W = 1000, exact", Count(1000, 1e-9), bits
    yield "Sum, gold", Sum(3_600_000, 1500, 1 / 1500), values
    yield "Sum, W = 1000, ε = 0.001 % (Algorithm 3)", Sum(1000, 1500, 1e-5), values


def speed(report: Report) -> None:
    report.heading("Inserts a second, one counter, compiled, one core")
    for what, counter, values in streams():
        counter.insert_many(values[:1000])
        rate = len(values) / best(lambda: counter.insert_many(values)) / 1e6
        report.line(what, f"{rate:,.0f} million/s", "≥ 100", rate >= 100)


def banks(report: Report) -> None:
    report.heading("A bank of 1 million keys, random order, one core")
    rng = np.random.default_rng(0)
    for kind, maximum in (("count", 1), ("sum", 1500)):
        bank = Bank(kind, 1000, 0.01, maximum)
        everyone = rng.permutation(1_000_000) * 7919
        bank.insert_many(everyone[:10])
        rate = 1 / best(lambda: bank.insert_many(everyone), 1)
        report.line(f"{kind}: first insert of each key", f"{rate:.1f} million/s")
        keys = everyone[rng.integers(0, 1_000_000, 4_000_000)]
        values = rng.integers(0, maximum, len(keys), endpoint=True)
        rate = 4 / best(lambda: bank.insert_many(keys, values), 5)
        report.line(f"{kind}: (key, value) inserts", f"{rate:.1f} million/s", "≥ 3", rate >= 3)
        rate = 4 / best(lambda: bank.query(keys))
        report.line(f"{kind}: queries", f"{rate:.1f} million/s")
        a_key, limit = bank.nbytes / len(bank), 1.25 * bank.bits() / 8 + 16
        what = f"{kind}: bytes a key ({bank.bits()} bits each)"
        report.line(what, f"{a_key:.1f}", f"≤ {limit:.1f}", a_key <= limit)


def picture(drawn: tuple[list[float], list[float], float, int], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    truth, estimate, band, step = drawn
    first = 3_600_000 // step
    hours = np.arange(first, len(truth)) * step / 3_600_000
    exact, answer = np.array(truth[first:]), np.array(estimate[first:])
    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    axis.fill_between(hours, exact - band, exact + band, alpha=0.25, label=f"truth ± {band:.2f} $")
    axis.plot(hours, exact, label="true average of the last hour", linewidth=2)
    axis.plot(hours, answer, label="estimate", linewidth=1, color="black")
    title = "Average of 3.6 million prices from about 100 bytes"
    axis.set(xlabel="hours", ylabel="$", title=title)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)


def main() -> int:
    report = Report(("numpy", "numba"))
    sizes(report)
    corners(report)
    drawn = gold(report)
    five(report)
    operations(report)
    speed(report)
    banks(report)
    text = "Written by `make bench-approx`; the picture beside it shows the gold price."
    (RESULTS / "approx.md").write_text(report.markdown("Approximate counts and sums", text))
    picture(drawn, RESULTS / "approx.png")
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
