"""An aggregate of your own that learns: a naive Bayes classifier over a sliding window.

    python examples/own_classifier.py

The partial holds what the classifier needs of the rows before the newest one (how many, and sums
and squares of each feature, for both classes), and the newest row itself. ⊕ trains on the newest
row of the left side and adds up, so models merge like any partial; ``lower`` asks the model about
the newest row, whose label it has not seen. One call then trains and tests at every row, and what
is too old is forgotten: where the world changes, a short memory is right again sooner.
"""

import math
import time

import numpy as np

import windrow as wr


class NaiveBayes(wr.Aggregate):
    """The probability that the newest row is of class 1, learnt from the window's older rows.

    Features are taken to be normal and independent within each class.
    """

    #           newest row: is there one, x, y, label    of each class: rows, Σx, Σy, Σx², Σy²
    identity = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def lift(x, y, label):
        """A row that nothing is known before."""
        return (1.0, x, y, label * 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def combine(a, b):
        """Train on the newest row of the older side; the younger side's is the newest of both."""
        if a[0] == 0.0:
            return b
        if b[0] == 0.0:
            return a
        x, y, one = a[1], a[2], a[3]
        zero = 1.0 - one
        return (
            b[0],
            b[1],
            b[2],
            b[3],
            a[4] + b[4] + zero,
            a[5] + b[5] + zero * x,
            a[6] + b[6] + zero * y,
            a[7] + b[7] + zero * x * x,
            a[8] + b[8] + zero * y * y,
            a[9] + b[9] + one,
            a[10] + b[10] + one * x,
            a[11] + b[11] + one * y,
            a[12] + b[12] + one * x * x,
            a[13] + b[13] + one * y * y,
        )

    def lower(p):
        """Bayes' rule."""
        if p[4] < 2.0 or p[9] < 2.0:
            return 0.5
        score = math.log(p[9] / p[4])
        for feature in range(2):
            value = p[1] if feature == 0 else p[2]
            for side in range(2):
                n = p[9] if side else p[4]
                total = (p[10] if side else p[5]) if feature == 0 else (p[11] if side else p[6])
                squares = (p[12] if side else p[7]) if feature == 0 else (p[13] if side else p[8])
                mean = total / n
                variance = max(squares / n - mean * mean, 1e-9)
                fit = -0.5 * (math.log(variance) + (value - mean) ** 2 / variance)
                score += fit if side else -fit
        return 1.0 / (1.0 + math.exp(-max(min(score, 500.0), -500.0)))


def readings(size: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Two classes of sensor readings; a third of the way in, the sensor is mounted upside down."""
    generator = np.random.default_rng(seed)
    label = generator.random(size) < 0.4
    turned = np.where(np.arange(size) < size // 3, 1.0, -1.0)
    x = generator.normal(np.where(label, 1.0, -0.6) * turned, 1.0)
    y = generator.normal(np.where(label, 0.5, -0.8) * turned, 1.3)
    return {"x": x, "y": y, "label": label.astype(np.int64)}


def main(size: int = 120_000) -> None:
    """Print how often each memory is right, before and after the change."""
    memories = {f"{n:,} rows": wr.rows(n) for n in (300, 3_000, 30_000)}
    rolling = wr.Rolling(windows=memories, aggregates=[NaiveBayes("x", "y", "label").alias("p")])
    table = readings(size)
    rolling({name: column[:10] for name, column in table.items()})  # compiled once, kept on disk
    start = time.perf_counter()
    answers = rolling(table)
    seconds = time.perf_counter() - start
    print(f"{size:,} rows, three models each, trained and asked at every row: {seconds:.2f} s\n")
    parts = 12
    print(f"{'rows':>17}  " + "".join(f"{name:>14}" for name in memories))
    for part in range(parts):
        low, high = size * part // parts, size * (part + 1) // parts
        right = [
            np.mean((answers[f"p_{name}"][low:high] > 0.5) == table["label"][low:high])
            for name in memories
        ]
        change = "   ← turned upside down" if low <= size // 3 < high else ""
        shown = "".join(f"{share:>13.1%} " for share in right)
        print(f"{low:>8,}–{high:>8,}  {shown}{change}")
    print(
        "\nA long memory is a little better while nothing changes, and wrong for long when it does."
    )


if __name__ == "__main__":
    main()
