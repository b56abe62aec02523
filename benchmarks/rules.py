"""Ten thousand rules over ten thousand keys and a million events: events a second, and memory.

python -m benchmarks.rules [--events N]
"""

import argparse
import gc
import random
import resource
import time
from typing import Any

import windrow as wr
from benchmarks.report import RESULTS, Report

RULES = 10_000
KEYS = 10_000
EVENTS = 1_000_000
LENGTHS = (60, 300, 900)
COLUMNS = ("price", "size")


def conditions(count: int, generator: random.Random) -> list[tuple[str, str]]:
    """Four fifths are a threshold of one aggregate, the others are joined conditions."""
    out = []
    for number in range(count):
        length = generator.choice(LENGTHS)
        kind = number % 10
        if kind < 3:
            text = f"count({length}) >= {generator.randint(20, 400)}"
        elif kind < 6:
            text = f"sum(size, {length}) > {generator.randint(5_000, 400_000)}"
        elif kind < 8:
            text = f"max(price, {length}) > {100 + generator.expovariate(0.2) + 8:.3f}"
        else:
            text = (
                f"max(price, {length}) > {100 + generator.expovariate(0.2) + 8:.3f}"
                f" and mean(size, 60) > {generator.uniform(1.5, 4):.3f} * mean(size, 900)"
            )
        out.append((f"rule {number}", text))
    return out


def events(count: int, keys: int, generator: random.Random) -> list[dict[str, Any]]:
    """Trades of keys as unequal as stocks: a few take most of them; 100 a second."""
    weights = [1 / (rank + 10) for rank in range(keys)]
    names = generator.choices(range(keys), weights, k=count)
    return [
        {
            "key": name,
            "at": number // 100,
            "price": 100 + generator.gauss(0, 2),
            "size": int(generator.expovariate(0.01)) + 1,
        }
        for number, name in enumerate(names)
    ]


def memory() -> int:
    """The most that this process had resident, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def added(rules: wr.Rules, texts: list[tuple[str, str]]) -> float:
    """Seconds to add a rule to what is running, on average."""
    start = time.perf_counter()
    for name, text in texts:
        rules.add(name, text)
    return (time.perf_counter() - start) / len(texts)


def run(report: Report, count: int) -> None:
    generator = random.Random(7)
    rules = wr.Rules(conditions(RULES, generator), key="key", time="at")
    rows = events(count, KEYS, generator)
    gc.collect()
    before = memory()
    start = time.perf_counter()
    changes = 0
    for row in rows:
        changes += len(rules.insert(row))
    seconds = time.perf_counter() - start
    report.heading(f"{RULES:,} rules × {KEYS:,} keys × {count:,} events")
    report.line("events a second", f"{count / seconds:,.0f}")
    report.line("pairs of rule and key that started or stopped", f"{changes:,}")
    report.line("memory for rules, keys and rows in windows", f"{(memory() - before) >> 20:,} MB")
    report.line("pairs that fire at the end", f"{len(rules.firing()):,}")
    print(rules.explain())


def cost_of_a_rule(report: Report) -> None:
    """Rules that few keys pass, added while 1,000 to 100,000 keys are live."""
    report.heading("one more rule, while it runs")
    for kind, text in (
        ("a filter finds the keys", "sum(size, 900) > {}"),
        ("every key is asked", "mean(size, 900) > {}"),
    ):
        count = 100 if "filter" in kind else 3
        figures = []
        for keys in (1_000, 10_000, 100_000):
            generator = random.Random(3)
            rules = wr.Rules([("first", text.format(10**9))], key="key", time="at")
            for number in range(3 * keys):
                rules.insert(
                    {"key": number % keys, "at": number * 300 // keys, "size": number % 97}
                )
            rules.add("warm", text.format(10**8))
            limits = [int(10 ** generator.uniform(5, 8)) for _ in range(count)]
            texts = [(f"more {i}", text.format(limit)) for i, limit in enumerate(limits)]
            figures.append(added(rules, texts))
        shown = ", ".join(f"{seconds * 1e6:,.0f}" for seconds in figures)
        grows = figures[-1] / figures[0]
        needed = "sublinear" if "filter" in kind else ""
        report.line(
            f"µs a rule at 1,000, 10,000, 100,000 keys: {shown}; {kind}",
            f"{grows:.1f}× for 100×",
            needed,
            not needed or grows < 50,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=EVENTS)
    options = parser.parse_args()
    report = Report(("windrow",))
    run(report, options.events)
    cost_of_a_rule(report)
    if options.events == EVENTS:
        text = "Rules over every key of a stream; `make bench-rules`. One process, one core."
        (RESULTS / "rules.md").write_text(report.markdown("Rules", text))


if __name__ == "__main__":
    main()
