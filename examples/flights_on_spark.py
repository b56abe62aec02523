"""A year of New York flights on Spark: every departure with the state of its airport at that time.

Shows a keyed table, an aggregate written here, a table without any key (which Spark's own windows
would move to one task), and point-in-time features for a handful of questions.
"""

import os
import sys

import pandas as pd
from flights import year
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow as wr


class Recovery(wr.Aggregate):
    """How many minutes are made up in the air per minute of late departure."""

    identity = (0.0, 0.0)
    commutative = True

    def lift(left, arrived):
        """Minutes late on leaving and on arriving, where it left late."""
        return (left, arrived) if left > 0.0 else (0.0, 0.0)

    def combine(a, b):
        """Add both."""
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):
        """The share that was made up."""
        return (p[0] - p[1]) / p[0] if p[0] > 0.0 else 0.0


def flights(spark: SparkSession) -> DataFrame:
    """Scheduled departures with their delays, as a Spark table."""
    raw = year()
    table = pd.DataFrame(
        {
            "flight": raw.index.astype("int64"),
            "origin": raw.origin,
            "carrier": raw.carrier,
            "at": pd.to_datetime(raw.time_hour, utc=True) + pd.to_timedelta(raw.minute, "min"),
            "late": raw.dep_delay,
            "late_arrival": raw.arr_delay,
        }
    )
    return spark.createDataFrame(table).withColumn(
        "cancelled", F.col("late").isNull() | F.isnan("late")
    )


def main() -> None:
    """Print three small tables."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("windrow: a year of flights")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.python.daemon.module", "windrow.spark.daemon")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    table = flights(spark).cache()
    late = wr.Max("late", nan="missing")

    by_airport = wr.Rolling(
        key="origin",
        time="at",
        windows=["1h", "24h", "7d"],
        aggregates=[
            wr.Mean("late", nan="missing"),
            late,
            wr.Count("late", nan="missing").alias("departures"),
            Recovery("late", "late_arrival", nan="missing").alias("recovery"),
        ],
    )
    print(by_airport.explain(table), end="\n\n")
    answered = by_airport(table)
    print("The worst hours of the year, at each airport's worst moment:")
    (
        answered.where("departures_1h >= 20")
        .groupBy("origin")
        .agg(
            F.max_by(
                F.struct("at", "late_mean_1h", "late_max_1h", "departures_1h", "recovery_7d"),
                "late_mean_1h",
            ).alias("worst")
        )
        .select("origin", "worst.*")
        .orderBy("origin")
        .show(truncate=False)
    )

    everywhere = wr.Rolling(time="at", windows=["6h"], aggregates=[late, wr.Count()])
    print(everywhere.explain(table), end="\n\n")
    print("All three airports as one, no key: the busiest six hours of each quarter:")
    (
        everywhere(table)
        .groupBy(F.quarter("at").alias("quarter"))
        .agg(F.max_by(F.struct("at", "count_6h", "late_max_6h"), "count_6h").alias("busiest"))
        .select("quarter", "busiest.*")
        .orderBy("quarter")
        .show(truncate=False)
    )

    asked = spark.sql(
        "select * from values ('JFK', timestamp'2013-02-08 12:00'), "
        "('EWR', timestamp'2013-07-01 18:00'), ('LGA', timestamp'2013-12-24 08:00') "
        "as (origin, asked)"
    )
    print("What was known when somebody asked (nothing of the hour after):")
    known = wr.Rolling(
        key="origin",
        time="at",
        windows=["24h"],
        aggregates=[wr.Mean("late", nan="missing"), wr.Count()],
    )
    known.as_of(table, asked, on="asked").orderBy("asked").show(truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
