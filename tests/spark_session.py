"""One small Spark session per process, tables for it, and when two tables are the same."""

import math
import os
import sys
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tools.kafka_jars import kept_jars

import windrow as wr
from windrow import java
from windrow.windows.compare import equal

SLOW = os.environ.get("WINDROW_TESTS") == "slow"
"""The long run: everything that CI has not the time for."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For short lives: a third of the processor's time of a test would go into optimising Spark."""
SETTINGS: dict[str, Any] = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.python.daemon.module": "windrow.spark.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
RELATIVE_TOLERANCE = 1e-12


def prepare_environment() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    java.provide()


def started(master: str) -> Any:
    prepare_environment()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config(map=SETTINGS)
    connector = kept_jars()  # which a session has from its start, or not at all
    if connector is not None:
        builder = builder.config(map=connector.spark_setting)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def connected() -> Any:
    """A session through Spark Connect, with the same settings as far as they are SQL's."""
    prepare_environment()
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    for name, value in SETTINGS.items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    assert type(session).__module__.startswith("pyspark.sql.connect")
    return session


@cache
def local_session() -> Any:
    return started("local[2]")


@pytest.fixture(scope="session")
def spark() -> Any:
    return local_session()


def random_table(size: int, keys: int = 3, seed: int = 0, span: int = 300) -> pa.Table:
    """Rows in no order: ties in time, missing values, odd floats, and a column of every kind."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(size) * 10.0 ** generator.integers(-9, 10, size)
    odd = generator.random(size)
    x = np.select([odd < 0.03, odd < 0.06, odd < 0.09], [np.nan, -0.0, 0.0], x)
    whole = generator.integers(-500, 500, size)
    missing = generator.random(size) < 0.15
    texts = [None if n % 7 == 0 else "abcdé"[n % 5] * (n % 3) for n in whole.tolist()]
    cents = [None if n % 11 == 0 else Decimal(n) / 100 for n in whole.tolist()]
    return pa.table(
        {
            "k": pa.array(generator.integers(0, keys, size)),
            "t": pa.array(generator.integers(0, span, size)),
            "id": pa.array(generator.permutation(size)),
            "x": pa.array(x, mask=missing),
            "p": pa.array(np.abs(generator.standard_normal(size)) + 0.01),
            "f": pa.array(generator.standard_normal(size).astype(np.float32)),
            "i": pa.array(whole.astype(np.int32), mask=missing[::-1]),
            "b": pa.array(whole % 2 == 0),
            "s": pa.array(texts, pa.string()),
            "d": pa.array(cents, pa.decimal128(10, 2)),
        }
    )


AGGREGATES: list[Any] = [
    wr.Count(),
    wr.Count("x"),
    wr.Sum("x"),
    wr.Mean("x"),
    wr.Variance("x"),
    wr.StdDev("i"),
    wr.Min("x"),
    wr.Max("x"),
    wr.MaxCount("i"),
    wr.ArgMax("s", "x"),
    wr.First("x"),
    wr.Last("s"),
    wr.GeometricMean("p"),
    wr.Concat("s"),
    wr.Sum("i"),
    wr.Mean("i"),
    wr.Sum("f"),
    wr.Max("f"),
    wr.Sum("d"),
    wr.Min("d"),
    wr.Max("s"),
    wr.Max("b"),
    *(wr.Spread("x"), wr.Product("i", overflow="null"), wr.BitXor("i"), wr.Any("b")),
    *(wr.Correlation("x", "i"), wr.Kurtosis("f")),
]


STRUCTURES: list[Any] = [
    wr.M4("x", "id"),
    wr.TopK("x", 3),
    wr.BottomK("s", 2),
    wr.Collect("i"),
    wr.Mode("s"),
    wr.Histogram("s", most=2),
    wr.Entropy("i"),
    wr.Bloom("i", capacity=20),
    wr.ApproxDistinct("s"),
    wr.ApproxQuantile("i", 0.9, error=0.005),
    wr.FrequentItems("s", share=0.2),
    wr.CountMin("i", of=1),
    wr.CountMin("s", error=0.2),
]
"""Aggregates whose answers are lists, structs or bytes, and sketches; small windows are exact."""


def random_windows(seed: int) -> dict[str, Any]:
    """A window of every kind, with lengths below and above the length of a stretch."""
    generator = np.random.default_rng(seed)
    shift, few = int(generator.integers(1, 90)), int(generator.integers(1, 30))
    closed: Any = generator.choice(["left", "both", "neither"])
    lengths = [int(n) for n in generator.integers(1, 400, 4)]
    return {
        "plain": wr.time(lengths[0]),
        "closed": wr.time(lengths[1], closed=closed),
        "past": wr.time(lengths[2], ending=shift),
        "ahead": wr.time(lengths[3], after=shift),
        "rows": wr.rows(int(generator.integers(1, 200))),
        "rows_past": wr.rows(few, ending=few // 2 + 1),
        "rows_ahead": wr.rows(few, after=few),
    }


def near(found: Any, wanted: Any) -> bool:
    both = isinstance(found, float) and isinstance(wanted, float)
    return both and math.isclose(found, wanted, rel_tol=RELATIVE_TOLERANCE)


def assert_same(found: pa.Table, wanted: pa.Table, spec: wr.Rolling, by: str = "id") -> None:
    """The same rows and bits, in any order; floats that promise less, up to rounding."""
    assert found.column_names == wanted.column_names
    assert found.num_rows == wanted.num_rows
    rounded = {name for name, aggregate, _ in spec.outputs if not aggregate.reproducible}
    lists = [table[by].to_pylist() for table in (found, wanted)]
    places = [sorted(range(len(keys)), key=keys.__getitem__) for keys in lists]
    for name in wanted.column_names:
        columns = [table[name].to_pylist() for table in (found, wanted)]
        for i, j in zip(*places, strict=True):
            got, want = columns[0][i], columns[1][j]
            good = equal(got, want) or (name in rounded and near(got, want))
            assert good, f"{name} where {by} is {lists[1][j]!r}: {got!r}, expected {want!r}"


def frame(spark: Any, table: pa.Table, partitions: int = 3) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(table, schema).repartition(partitions)


def check(
    spark: Any, spec: wr.Rolling, table: pa.Table, given: int = 3, **options: Any
) -> pa.Table:
    """The specification on Spark gives what it gives on columns."""
    found = spec(frame(spark, table, given), **options).toArrow()
    assert_same(found, spec(table), spec)
    return found
