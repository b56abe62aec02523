"""Kafka for real: JSON and Avro from topics, results and dead letters to topics, and kills."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.kafka_broker import KafkaBroker, create_topics
from tools.kafka_jars import kept_jars

import windrow as wr
from tests.spark_session import SLOW, spark  # noqa: F401

pytestmark = pytest.mark.xdist_group("streams")
EXAMPLE = Path(__file__).parent.parent / "examples" / "kafka_to_redis.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("kafka_to_redis", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        create_topics(started.address, payments=2, payments_avro=1, features=1, dead_letters=1)
        yield started


def test_from_topics_to_topics(spark: Any, broker: KafkaBroker, tmp_path: Path) -> None:  # noqa: F811
    from pyspark.sql import functions as F

    assert kept_jars() is not None, "the session began without the connector: `make kafka` first"
    shown = example()
    rows = shown.payments(400)
    shown.produce(broker.address, rows, end=True)
    options = {"kafka.bootstrap.servers": broker.address, "startingOffsets": "earliest"}

    def topic(name: str, stream: bool = True) -> Any:
        reader = spark.readStream if stream else spark.read
        return reader.format("kafka").options(**options).option("subscribe", name).load()

    good, bad = wr.spark.parse(topic("payments"), shown.JSON, keep=shown.PLACE)
    more, worse = wr.spark.parse(topic("payments_avro"), shown.AVRO, "avro", keep=shown.PLACE)
    payments = good.unionByName(more.withColumn("is_end", F.lit(False)))
    answers = shown.FEATURES(payments, buckets=3, flush="is_end")
    value = F.to_json(F.struct(*answers.columns), shown.TO_JSON).alias("value")
    letters = bad.unionByName(worse).select("value", shown.headers())
    for name, messages in (("features", answers.select(value)), ("dead_letters", letters)):
        query = (
            messages.writeStream.format("kafka")
            .options(**options, topic=name)
            .option("checkpointLocation", str(tmp_path / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = [json.loads(row.value) for row in topic("features", stream=False).collect()]
    spec = wr.Rolling(
        key="user",
        time="at",
        windows=shown.FEATURES.windows,
        aggregates=shown.FEATURES.aggregates,
    )
    wanted = {(row["user"], row["at"].isoformat(timespec="microseconds")): row for row in
              spec(shown.as_table(rows)).to_pylist()}  # fmt: skip
    assert len(found) == len(wanted) == len(rows)
    for row in found:
        expected = wanted[row["user"], row["at"].replace("Z", "+00:00")]
        names = [name for name, _, _ in spec.outputs]
        assert [row[name] for name in names] == [expected[name] for name in names]
    reader = spark.read.format("kafka").options(**options, includeHeaders="true")
    said = reader.option("subscribe", "dead_letters").load().select("value", "headers").collect()
    assert len(said) == 2
    reasons = {
        bytes(row.value): {h.key: bytes(h.value).decode() for h in row.headers} for row in said
    }
    assert reasons[b'{"user": "nobody"}']["reason"] == "user is not a bigint"
    assert reasons[b"\x02"] == {"reason": "not Avro of the schema", "from": "payments_avro/0/200"}


@pytest.mark.skipif(not SLOW, reason="two queries and a broker: a minute")
def test_a_query_that_is_killed() -> None:
    """The example: nothing is lost, and what comes twice is the same."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert "killed the query after its first results" in lines
    assert "same as the table: True" in lines
    assert "users with current values in Redis: 20 of 20" in lines
    assert sum(line.startswith("dead letter") for line in lines) == 2
