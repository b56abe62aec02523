"""The tables of the pipeline: departures with the state of their airport, and each one's worst."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import windrow as wr

spark = SparkSession.active()
FEATURES = wr.Rolling(
    key="origin",
    time="at",
    windows=["1h", "24h"],
    aggregates=[wr.Mean("late"), wr.Quantile("late", 0.95), wr.Count("late").alias("left")],
)


@dp.materialized_view
def departures_with_features() -> DataFrame:
    """Every departure; no schema may be asked for while tables are declared, so it is given."""
    columns = "flight bigint, origin string, carrier string, at timestamp, late double"
    flights = spark.read.schema(columns).parquet("FOLDER/flights.parquet")
    return FEATURES(flights, schema=columns)


@dp.materialized_view
def worst_hours() -> DataFrame:
    """The worst hour of each airport, in plain SQL over the other table."""
    return spark.sql(
        "SELECT origin, max_by(at, late_mean_1h) AS at, max(late_mean_1h) AS late_mean_1h "
        "FROM departures_with_features WHERE left_1h >= 20 GROUP BY origin"
    )
