"""Watch trades for two patterns that a trading site once offered, over every stock at once.

    python examples/watching_trades.py

One rule looks for stocks that fall while buyers press, the other for stocks that swing while their
volume surges. The trades of one morning are made up: most stocks drift, two of them do something.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import windrow as wr

RULES = [
    (
        "downward momentum",
        '20 <= price <= 200 and price < 0.98 * first(price, "20m")'
        ' and sum(toward_ask, "2m") >= 0.7 * sum(size, "2m")',
    ),
    (
        "volume surge",
        '20 <= price <= 200 and max(price, "30m") - min(price, "30m") > 0.03 * price'
        ' and mean(size, "5m") > 4 * mean(size, "30m", ending="5m")',
    ),
]


def trades() -> Iterator[dict[str, Any]]:
    """Two hours of trades in thirty stocks, about two a second."""
    generator = random.Random(11)
    prices = {f"STOCK{i:02}": generator.uniform(15, 220) for i in range(30)}
    prices["STOCK07"], prices["STOCK21"] = 80.0, 120.0
    at = datetime(2024, 3, 1, 9, 30)
    for _ in range(14_400):
        at += timedelta(seconds=0.5)
        minute = (at.hour - 9) * 60 + at.minute - 30
        symbol = generator.choice(list(prices))
        size = 100 * generator.randint(1, 5)
        drift, pressed = 0.0, 0.5
        if symbol == "STOCK07" and 60 <= minute < 75:  # sold off, and buyers step in
            drift, pressed = -0.001, 0.9
        if symbol == "STOCK21" and 90 <= minute < 96:  # news
            drift, size = 0.0025, size * 12
        prices[symbol] *= 1 + drift + generator.gauss(0, 0.0002)
        toward_ask = size if generator.random() < pressed else 0
        yield {
            "symbol": symbol,
            "at": at,
            "price": round(prices[symbol], 2),
            "size": size,
            "toward_ask": toward_ask,
        }


def main() -> None:
    """Feed the trades to the rules, and print what changes."""
    rules = wr.Rules(RULES, key="symbol", time="at")
    seen = 0
    for trade in trades():
        for change in rules.insert(trade):
            sign = "▲" if change.started else "▽"
            print(f"{change.at:%H:%M:%S} {sign} {change.key} {change.rule}")
        seen += 1
    print(f"\n{seen:,} trades; at the end fire: {rules.firing() or 'none'}\n")
    print(rules.explain())


if __name__ == "__main__":
    main()
