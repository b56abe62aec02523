"""A year of New York flights in this process: pandas in, pandas out, no Spark and no Java.

    python examples/flights_in_columns.py

Every departure gets the state of its airport at that moment: the last hour, day and week, and the
last 50 flights. NumPy, Arrow and Polars tables go in and come out the same way.
"""

import time

from flights import departures

import windrow as wr

FEATURES = wr.Rolling(
    key="origin",
    time="at",
    windows=["1h", "24h", "7d", wr.rows(50)],
    aggregates=[
        wr.Mean("late"),
        wr.Quantile("late", 0.95),
        wr.Max("late"),
        wr.Count("late").alias("left"),
        wr.Count().alias("scheduled"),
        wr.Distinct("plane").alias("planes"),
    ],
)


def main() -> None:
    """Print the plan, each airport's worst hour, and the latest flight's features."""
    table = departures()
    print("\n".join(FEATURES.explain(table).splitlines()[:8]), "...", sep="\n", end="\n\n")
    FEATURES(table.head(100))  # compiled once, kept on disk
    start = time.perf_counter()
    answers = FEATURES(table)
    seconds = time.perf_counter() - start
    print(f"{len(answers):,} rows, {len(FEATURES.outputs)} answers each: {seconds:.2f} s\n")

    busy = answers[answers.left_1h >= 20]
    worst = busy.loc[busy.groupby("origin").late_mean_1h.idxmax()]
    columns = ["origin", "at", "late_mean_1h", "late_p95_1h", "left_1h", "late_mean_7d"]
    print("The worst hour of each airport:")
    print(worst[columns].round(1).to_string(index=False), end="\n\n")

    cancelled = 1 - answers.left_24h / answers.scheduled_24h
    day = answers.assign(cancelled=cancelled)[answers.scheduled_24h >= 200]
    most = day.loc[day.groupby("origin").cancelled.idxmax()]
    print("The day with most cancellations (9 February 2013: a blizzard):")
    shown = most[["origin", "at", "cancelled", "scheduled_24h", "planes_24h"]]
    print(shown.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
