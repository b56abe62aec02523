"""A training set without a look into the future: what was known two hours before each departure.

    python examples/training_set.py

The question: will this flight leave more than 15 minutes late? A delay is known when the plane has
left, not when it should have left, so that is the time of the events; labels ask two hours before
the schedule. ``as_of`` gives each label the answers over the events before its moment. The same
call takes two Spark tables.
"""

import pandas as pd
from flights import departures

import windrow as wr

KNOWN = wr.Rolling(
    key="origin",
    time="left",
    windows=["1h", "3h", "24h"],
    aggregates=[wr.Mean("late"), wr.Quantile("late", 0.9), wr.Count()],
)


def separation(score: pd.Series, is_late: pd.Series) -> float:
    """How often a late flight has the higher score than a punctual one (AUC); 0.5 is chance."""
    rank = score.rank()
    late = int(is_late.sum())
    return float((rank[is_late].sum() - late * (late + 1) / 2) / (late * (len(rank) - late)))


def main() -> None:
    """Print a few rows of the training set, and what looking ahead would have pretended."""
    table = departures().dropna(subset="late")
    events = table.assign(left=table["at"] + pd.to_timedelta(table.late, "min"))
    labels = pd.DataFrame(
        {
            "origin": table.origin,
            "asked": table["at"] - pd.Timedelta("2h"),
            "is_late": table.late > 15,
        }
    ).iloc[::10]
    training = KNOWN.as_of(events, labels, on="asked").dropna()
    print(f"{len(events):,} events, {len(labels):,} questions, {len(training):,} with an answer\n")
    shown = ["origin", "asked", "late_mean_1h", "late_p90_3h", "count_1h", "is_late"]
    print(training[shown].iloc[1000:1005].round(1).to_string(index=False), end="\n\n")

    # the mistake: the same features by the schedule's time, as if delays were known in advance
    ahead = labels.assign(asked=labels.asked + pd.Timedelta("2h"))
    leaking = wr.Rolling(
        key="origin", time="at", windows=["1h"], aggregates=[wr.Mean("late"), wr.Count()]
    )
    leaked = leaking.as_of(events, ahead, on="asked", strict=False).dropna()
    half = pd.Timestamp("2013-07-01", tz="UTC")
    for name, found, column in (
        ("known two hours before", training, "late_mean_3h"),
        ("with a look ahead", leaked, "late_mean_1h"),
    ):
        later = found[found.asked >= half]
        auc = separation(later[column], later.is_late)
        print(f"{name:<24} AUC {auc:.3f} in the second half of the year")
    print("\nThe second figure is what a model would promise, and never keep.")


if __name__ == "__main__":
    main()
