"""The two programs of benchmarks/end_to_end.py: who produces events, and the query.

Both are started as processes, with their arguments as JSON, so that they can be killed.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import windrow as wr

TOPIC = "events"
BLOCK = 10_000
WARM_UP = 20_000
SCHEMA = "user bigint not null, at bigint not null, amount double, is_end boolean"
FEATURES = wr.Rolling(
    key="user",
    time="at",
    windows=["10s", "1m", "1h"],
    aggregates=[wr.Sum("amount"), wr.Max("amount"), wr.Mean("amount"), wr.Count()],
    lateness="1s",
)


@dataclass(frozen=True)
class Run:
    """What both programs and the check must agree on; times in microseconds."""

    address: str
    redis: str
    folder: str
    events: int
    keys: int
    rate: int
    start: int = 0

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    def times(self, first: int, count: int) -> np.ndarray:
        """When events are due: they say it, and are sent then."""
        return self.start + np.arange(first, first + count, dtype=np.int64) * 1_000_000 // self.rate

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """All events in order: user, time, amount; always the same."""
        for first in range(0, self.events, BLOCK):
            count = min(BLOCK, self.events - first)
            chance = np.random.default_rng([7, first])
            users = chance.integers(0, self.keys, count)
            yield users, self.times(first, count), chance.standard_normal(count)


def producer(address: str) -> Any:
    """Rides out a broker that is away, and sends nothing twice."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 0,
            "queue.buffering.max.messages": 5_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
        }
    )


def warm(run: Run) -> None:
    """Some events of users that are not looked at, so that everything is loaded."""
    sender = producer(run.address)
    begin = time.time_ns() // 1000 - 10_000_000
    for place in range(WARM_UP):
        at = begin + place * 10_000_000 // WARM_UP
        sender.produce(TOPIC, b'{"user":%d,"at":%d,"amount":1.0}' % (-1 - place % 50, at))
    sender.flush(60)


def produce(run: Run) -> None:
    """Every event when it is due, and the one that says that no more come."""
    sender = producer(run.address)
    for users, times, amounts in run.blocks():
        rows = zip(users.tolist(), times.tolist(), amounts.tolist(), strict=True)
        for place, (user, at, amount) in enumerate(rows):
            if place % 100 == 0:
                early = at / 1e6 - time.time()
                if early > 0:
                    sender.poll(0)
                    time.sleep(early)
            text = b'{"user":%d,"at":%d,"amount":%r}' % (user, at, amount)
            sender.produce(TOPIC, text)
        sender.poll(0)
    sender.produce(TOPIC, b'{"user":-1,"at":%d,"is_end":true}' % run.start)
    sender.flush(300)


def query(run: Run, prefix: str, name: str, once: bool) -> None:
    """From the topic to Redis; ``once`` is for a topic that is full already."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F
    from tools.kafka_jars import jars

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config(map=jars().spark_setting)
        .config(map=dict(wr.spark.stream_settings(buckets=2)))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    options = {
        "kafka.bootstrap.servers": run.address,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "minPartitions": "2",
        "maxOffsetsPerTrigger": "500000" if once else "200000",
    }
    messages = spark.readStream.format("kafka").options(**options).load()
    events, _ = wr.spark.parse(messages, SCHEMA)
    events = events.withColumn("at", F.timestamp_micros("at"))
    sink = wr.spark.RedisSink(FEATURES, run.redis, prefix=prefix, patience="60s")
    writer = (
        FEATURES(events, buckets=2, flush="is_end")
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", f"{run.folder}/{name}")
    )
    if once:
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        print(json.dumps([summary(step) for step in running.recentProgress]))
    else:
        writer.start().awaitTermination()


def summary(step: Any) -> dict[str, Any]:
    own = step["observedMetrics"]["windrow"]
    seconds = step["durationMs"]["triggerExecution"] / 1000
    return {
        "rows": step["numInputRows"],
        "seconds": seconds,
        "late": own["late_rows"],
        "answered": own["answered_rows"],
    }


if __name__ == "__main__":
    given = Run(**json.loads(sys.argv[2]))
    if sys.argv[1] == "produce":
        produce(given)
    elif sys.argv[1] == "warm":
        warm(given)
    else:
        query(given, sys.argv[3], sys.argv[1], once=sys.argv[1] == "again")
