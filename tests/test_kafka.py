"""Kafka for real: JSON and Avro from topics, results and dead letters to topics, and kills."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.kafka_broker import KafkaBroker, create_topics
from tools.kafka_jars import kept_jars
from tools.redis_server import RedisServer

from tests.blocks import page_folder, run_page
from tests.examples import EXAMPLES, example
from tests.spark_session import SLOW, spark  # noqa: F401

PAGE = Path(__file__).parent.parent / "docs" / "serving.md"
KAFKA = "kafka_to_redis"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        create_topics(started.address, payments=2, payments_avro=1, features=1, dead_letters=1)
        yield started


def test_from_topics_to_redis_and_topics(
    spark: Any,  # noqa: F811
    broker: KafkaBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example's query, stopped after its first results and started again."""
    assert kept_jars() is not None, "the session began without the connector: `make kafka` first"
    shown = example(KAFKA)
    rows = shown.payments(400)
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", 2)
    with RedisServer() as redis:
        where = (session, broker.address, redis.url, str(tmp_path))
        shown.produce(broker.address, rows[:200])
        queries = shown.start_query(*where)
        first = shown.consume(broker.address, "features", len)
        for query in queries:
            query.stop()
        shown.produce(broker.address, rows[200:], end=True)
        queries = shown.start_query(*where)
        results = shown.consume(
            broker.address, "features", lambda found: len(shown.placed(found)) >= len(rows)
        )
        letters = shown.consume(broker.address, "dead_letters", lambda found: len(found) >= 4)
        for query in queries:
            query.stop()
        shown.report(rows, results, letters, redis.url)
    assert 0 < len(first) < len(rows)
    check(capsys.readouterr().out.splitlines(), len(rows))


def check(lines: list[str], count: int) -> None:
    """What the example tells: every payment's result is that of the table, and Redis has the last.

    A message that comes twice has the same result twice; the example checks that by itself.
    """
    assert any(line.endswith(f" results, {count:,} of them different messages'") for line in lines)
    assert "same as the table: True" in lines
    assert "users with current values in Redis: 20 of 20" in lines
    letters = [line for line in lines if line.startswith("dead letter")]
    assert len(letters) == 2
    assert any(
        line.startswith('dead letter b\'{"user": "nobody"}\' from payments/')
        and line.endswith(": user is not a bigint")
        for line in letters
    )
    assert any(
        line.startswith("dead letter b'\\x02' from payments_avro/0/")
        and line.endswith(": not Avro of the schema")
        for line in letters
    )


def test_the_page_about_serving(
    spark: Any,  # noqa: F811
    broker: KafkaBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RedisServer() as redis, page_folder(spark, tmp_path, monkeypatch) as names:
        servers = {"127.0.0.1:9092": broker.address, "redis://127.0.0.1:6379/0": redis.url}
        assert run_page(PAGE, names, servers) == 3
        assert names["found"] is None


@pytest.mark.skipif(not SLOW, reason="two queries and a broker: a minute")
def test_a_query_that_is_killed() -> None:
    """The example as it is run: nothing is lost, and what comes twice is the same."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{KAFKA}.py")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert "killed the query after its first results" in lines
    check(lines, 3000)
