"""Payments from Kafka, features to Redis and back to Kafka; the query is killed on the way.

Starts a broker and a Redis server on loopback, produces JSON and Avro messages with some poison
among them, runs the query in a process of its own, kills it with SIGKILL and starts it again. Then
it reads the results from their topic, and compares them with the same features over the table of
all payments.

    python examples/kafka_to_redis.py            # everything; needs `make kafka` and `make redis`
"""

import contextlib
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import windrow as wr

sys.path.insert(0, str(Path(__file__).parent.parent))  # the servers are in tools/

FEATURES = wr.Rolling(
    key="user",
    time="at",
    tie=["topic", "partition", "offset"],
    windows=["1m", "10m", "1h"],
    aggregates=[wr.Sum("amount"), wr.Max("amount"), wr.Count(), wr.Mean("amount")],
    lateness="1 minute",
)
JSON = "user bigint not null, at timestamp not null, amount double, is_end boolean"
AVRO = json.dumps(
    {
        "type": "record",
        "name": "payment",
        "fields": [
            {"name": "user", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "amount", "type": "double"},
        ],
    }
)
TO_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Spark's own format has no microseconds."""
PLACE = ("topic", "partition", "offset")
"""What names a message: results carry it, so whoever reads them can leave out what comes twice."""
START = datetime(2026, 3, 1, tzinfo=UTC)


# --- the query ------------------------------------------------------------------------------------


def run_query(address: str, redis: str, folder: str) -> None:
    """Start the query in a session of its own, and wait."""
    from pyspark.sql import SparkSession
    from tools.kafka_jars import jars

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("windrow: Kafka to Redis")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map=jars().spark_setting)
        .config(map=wr.spark.stream_settings(buckets=2))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with wr.spark.metrics(spark) as metrics:
        start_query(spark, address, redis, folder)
        print(f"metrics at {metrics.url}", flush=True)
        spark.streams.awaitAnyTermination()


def start_query(spark: Any, address: str, redis: str, folder: str) -> list[Any]:
    """From two topics to Redis and a topic; what cannot be read goes to another one."""
    from pyspark.sql import functions as F

    kafka = {"kafka.bootstrap.servers": address}

    def topic(name: str) -> Any:
        reader = spark.readStream.format("kafka").options(**kafka).option("subscribe", name)
        return reader.option("startingOffsets", "earliest").load()

    good, bad = wr.spark.parse(topic("payments"), JSON, keep=PLACE)
    more, worse = wr.spark.parse(topic("payments_avro"), AVRO, "avro", keep=PLACE)
    payments = good.unionByName(more.withColumn("is_end", F.lit(False)))
    to_redis = wr.spark.RedisSink(FEATURES, redis, prefix="user:", expire="30d")

    def write(batch: Any, number: int) -> None:
        batch = batch.persist()  # two outputs: computed once
        to_redis(batch, number)
        result = batch.select(F.col("user").cast("string").alias("key"), as_json(batch.columns))
        result.write.format("kafka").options(**kafka).option("topic", "features").save()
        batch.unpersist()

    def as_json(columns: list[str]) -> Any:
        return F.to_json(F.struct(*columns), TO_JSON).alias("value")

    answers = FEATURES(payments, buckets=2, flush="is_end").writeStream.queryName("features")
    letters = bad.unionByName(worse).select("key", "value", headers())
    dead = letters.writeStream.queryName("dead letters").format("kafka").options(**kafka)
    dead = dead.option("topic", "dead_letters").option("checkpointLocation", f"{folder}/dead")
    answers = answers.foreachBatch(write).option("checkpointLocation", f"{folder}/features")
    return [dead.start(), answers.start()]


def headers() -> Any:
    """Why a message is a dead letter, and where it was, beside the message as it came."""
    from pyspark.sql import functions as F

    where = F.concat_ws("/", *PLACE)
    pairs = [F.struct(F.lit(k).alias("key"), v.cast("binary").alias("value")) for k, v in
             (("reason", F.col("reason")), ("from", where))]  # fmt: skip
    return F.array(*pairs).alias("headers")


# --- around it ------------------------------------------------------------------------------------


def payments(count: int) -> list[tuple[int, datetime, float]]:
    """Payments in order of time: user, time, amount."""
    chance = random.Random(1)
    times = sorted(chance.randrange(7_200_000_000) for _ in range(count))
    return [
        (chance.randrange(20), START + timedelta(microseconds=at), chance.gauss(0, 1))
        for at in times
    ]


def as_avro(user: int, at: datetime, amount: float) -> bytes:
    """A payment in Avro's binary form: zigzag numbers, and a double."""

    def number(value: int) -> bytes:
        value, out = value << 1 ^ value >> 63, b""
        while value > 127:
            value, out = value >> 7, out + bytes([value & 127 | 128])
        return out + bytes([value])

    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return number(user) + number(micros) + struct.pack("<d", amount)


def produce(address: str, some: list[tuple[int, datetime, float]], end: bool = False) -> None:
    """Every other payment as Avro; and after them poison, or the message that ends the replay."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 2})
    for place, (user, at, amount) in enumerate(some):
        if place % 2:
            producer.produce("payments_avro", as_avro(user, at, amount), key=str(user))
        else:
            text = json.dumps({"user": user, "at": at.isoformat(), "amount": amount})
            producer.produce("payments", text, key=str(user))
    producer.produce("payments", b'{"user": "nobody"}')
    producer.produce("payments_avro", b"\x02")
    if end:
        mark = {"user": 0, "at": START.isoformat(), "amount": 0, "is_end": True}
        producer.produce("payments", json.dumps(mark))
    producer.flush(60)


@contextlib.contextmanager
def query(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The query in a process group of its own; SIGKILL at the end of the block."""
    command = [sys.executable, __file__, "query", *arguments]
    with Path(arguments[-1], "query.log").open("a") as log:
        process = subprocess.Popen(command, start_new_session=True, stderr=log)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def consume(address: str, topic: str, enough: Any, seconds: float = 180) -> list[Any]:
    """The messages of a topic from its beginning, until there are enough of them."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 2})
    consumer.subscribe([topic])
    found: list[Any] = []
    until = time.monotonic() + seconds
    while not enough(found):
        if time.monotonic() > until:
            raise TimeoutError(f"{len(found)} messages in {topic} after {seconds} s")
        found += [m for m in consumer.consume(1000, 0.2) if not m.error()]
    consumer.close()
    return found


def placed(messages: list[Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Results by the message they answer: what came twice is the same, and once here."""
    rows = [json.loads(message.value()) for message in messages]
    found = {tuple(row[name] for name in PLACE): row for row in rows}
    assert all(found[tuple(row[name] for name in PLACE)] == row for row in rows)
    return found


def main(count: int = 3000) -> None:
    """Run it all, and say what came out."""
    from tools.kafka_broker import KafkaBroker, create_topics
    from tools.redis_server import RedisServer

    rows = payments(count)
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker, RedisServer() as redis:
        create_topics(broker.address, payments=2, payments_avro=2, features=2, dead_letters=1)
        arguments = (broker.address, redis.url, folder)
        produce(broker.address, rows[: count // 2])
        with query(*arguments):
            consume(broker.address, "features", len)
        print("killed the query after its first results", flush=True)
        produce(broker.address, rows[count // 2 :], end=True)
        with query(*arguments):
            results = consume(broker.address, "features", lambda found: len(placed(found)) >= count)
            letters = consume(broker.address, "dead_letters", lambda found: len(found) >= 4)
        report(rows, results, letters, redis.url)


def as_table(rows: list[Any]) -> Any:
    """Payments as columns."""
    import pyarrow as pa

    names = ("user", "at", "amount")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(values) for name, values in columns})


def report(rows: list[Any], results: list[Any], letters: list[Any], redis: str) -> None:
    """Compare what came out with the table of all payments."""
    found = placed(results)
    print(f"{len(results):,} results, {len(found):,} of them different messages'")
    spec = wr.Rolling(
        key="user", time="at", windows=FEATURES.windows, aggregates=FEATURES.aggregates
    )
    table = spec(as_table(rows)).to_pylist()
    names = [name for name, _, _ in FEATURES.outputs]
    mine = sorted(
        (row["user"], datetime.fromisoformat(row["at"]), *map(row.get, names))
        for row in found.values()
    )
    theirs = sorted((row["user"], row["at"], *map(row.get, names)) for row in table)
    print(f"same as the table: {mine == theirs}")
    reader = wr.serving.Features(redis, "user:")
    newest = {row["user"]: row for row in table}
    served = {user: reader.get(user) for user in newest}
    same = [u for u, c in served.items() if c and c.values == {n: newest[u][n] for n in names}]
    print(f"users with current values in Redis: {len(same)} of {len(newest)}")
    for letter in {message.value(): message for message in letters}.values():
        said = {name: value.decode() for name, value in letter.headers()}
        print(f"dead letter {letter.value()!r} from {said['from']}: {said['reason']}")
    reader.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["query"]:
        run_query(*sys.argv[2:])
    else:
        main()
