"""One window over the whole table: no key to partition by, and still no single task.

    python examples/no_key_on_spark.py

Spark's own window without PARTITION BY moves all rows to one task (and warns that it does). Here
time is cut into stretches, each of them a task; what a stretch needs of the ones before is one
small partial. The answers are compared with Spark's.
"""

import os
import sys

from flights import departures
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import windrow as wr

LATE = wr.Rolling(
    time="at",
    windows=["6h"],
    aggregates=[wr.Max("late"), wr.Count(), wr.Count("late").alias("left")],
)
STRETCH_ROWS = 100_000  # 5 million unless said, for tables larger than this one


def main() -> None:
    """Print the plan, the busiest six hours of each quarter, and how many tasks did it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("windrow: no key")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.python.daemon.module", "windrow.spark.daemon")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    table = spark.createDataFrame(departures().drop(columns="plane"))
    table = table.withColumn("late", F.nanvl("late", F.lit(None))).cache()
    print(LATE.explain(table, stretch_rows=STRETCH_ROWS), end="\n\n")
    answers = LATE(table, stretch_rows=STRETCH_ROWS).cache()
    print("All of New York as one airport: the busiest six hours of each quarter")
    (
        answers.groupBy(F.quarter("at").alias("quarter"))
        .agg(F.max_by(F.struct("at", "count_6h", "left_6h", "late_max_6h"), "count_6h").alias("b"))
        .select("quarter", "b.*")
        .orderBy("quarter")
        .show(truncate=False)
    )
    seconds = F.unix_micros("at")
    frame = Window.orderBy(seconds).rangeBetween(-6 * 3_600_000_000 + 1, 0)
    own = table.withColumn("count_6h", F.count("*").over(frame))
    own = own.withColumn("late_max_6h", F.max("late").over(frame)).cache()
    names = ["flight", "count_6h", "late_max_6h"]
    different = answers.select(*names).exceptAll(own.select(*names)).count()
    print(f"rows with another answer than Spark's own window: {different}")
    for name, found in (("windrow", answers), ("Spark's own window", own)):
        task = F.spark_partition_id()
        busy = len(found.groupBy(task).agg(F.max("late_max_6h")).collect())
        print(f"{name}: rows in {busy} task{'s' if busy > 1 else ''}")
    spark.stop()


if __name__ == "__main__":
    main()
