"""Kafka → features → Redis on one machine, with everything killed once on the way.

    python -m benchmarks.end_to_end                        # 5 million events; writes the page
    python -m benchmarks.end_to_end --events 200000        # a first look

Events are produced at a steady rate, each at the time that it says (JSON, one topic partition, so
that their order is kept; 10,000 keys). The query answers 3 lookbacks × 4 aggregates and keeps the
current values of every key in Redis, whose append-only file is on. A quarter of the way the broker
is killed with SIGKILL and started again, half-way the query (driver and workers), at three
quarters Redis. At the end every key's values in Redis are compared with those that the columns
engine gives for the table of all events: the longest lookback holds the whole run, so that an event
that was lost or counted twice anywhere shows.

The latency of an event is the time from when it was due until Redis has values that include it, as
a client sees it that asks for some keys every 20 ms. The lateness of one second is part of it.
Then the query runs again over the whole topic, without a stop, for events a second.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import redis
from tools.kafka_broker import KafkaBroker, create_topics
from tools.kafka_jars import KAFKA
from tools.redis_server import RedisServer

from benchmarks.end_to_end_parts import FEATURES, TOPIC, WARM_UP, Run
from benchmarks.report import RESULTS, Report
from windrow.serving import Features, key_name

PROBES = 64
PATIENCE = 300.0
NAMES = [name for name, _, _ in FEATURES.outputs]


class Program:
    """A part in a process group of its own; everything of it is killed at once."""

    def __init__(self, folder: str, what: str, run: Run, *more: str) -> None:
        self.log = Path(folder, f"{what}.log")
        command = [sys.executable, "-m", "benchmarks.end_to_end_parts", what, run.as_json(), *more]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, start_new_session=True, stderr=log, stdout=subprocess.PIPE, text=True
            )

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def output(self) -> str:
        """What it printed, when it has ended by itself."""
        said, _ = self.process.communicate()
        if self.process.returncode:
            sys.exit(f"{self.process.args!r} failed:\n{self.said()}")
        return str(said)

    def require(self) -> None:
        if self.process.poll() is not None:
            sys.exit(f"{self.process.args!r} ended:\n{self.said()}")

    def said(self) -> str:
        """The lines of its log that name an error, and its end."""
        lines = self.log.read_text().splitlines()
        named = [line[:300] for line in lines if "Error" in line or "Exception" in line]
        return "\n".join([*named[:20], "...", *lines[-5:]])


def whole_table(run: Run) -> pa.Table:
    users, times, amounts = (np.concatenate(part) for part in zip(*run.blocks(), strict=True))
    stamps = pa.array(times).cast(pa.timestamp("us", "UTC"))
    return pa.table({"user": users, "at": stamps, "amount": amounts})


def expected(table: pa.Table) -> dict[int, dict[str, Any]]:
    """The last row of every user, with the answers of the columns engine."""
    answers = FEATURES(table)
    users = answers["user"].to_numpy()[::-1]
    found, places = np.unique(users, return_index=True)
    last = answers.take(pa.array(len(users) - 1 - places))
    return dict(zip(found.tolist(), last.select(["at", *NAMES]).to_pylist(), strict=True))


class Watch(threading.Thread):
    """A client that looks at some keys all the time: when did it see which event?"""

    def __init__(self, run: Run, users: list[int]) -> None:
        super().__init__(daemon=True)
        self.users = users
        self.keys = [key_name("user:", [user]) for user in users]
        self.client = redis.Redis.from_url(run.redis, socket_timeout=2, socket_connect_timeout=2)
        self.seen: list[tuple[int, int, int]] = []
        """User, event time in Redis, and when that was seen, in microseconds."""
        self.ended = threading.Event()

    def run(self) -> None:
        known: dict[int, int] = {}
        while not self.ended.wait(0.02):
            with contextlib.suppress(redis.RedisError), self.client.pipeline(False) as pipe:
                for key in self.keys:
                    pipe.hget(key, "time")
                found = pipe.execute()
                now = time.time_ns() // 1000
                for user, text in zip(self.users, found, strict=True):
                    if text is not None and known.get(user) != int(text):
                        known[user] = int(text)
                        self.seen.append((user, known[user], now))

    def latencies(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Of every event of the users that are watched: its time, and how long it took, in s."""
        users, times = table["user"].to_numpy(), table["at"].cast(pa.int64()).to_numpy()
        due, took = [], []
        for user in self.users:
            own = times[users == user]
            entries = [(at, now) for who, at, now in self.seen if who == user]
            upto, seen = (np.array(part) for part in zip(*entries, strict=True))
            upto = np.maximum.accumulate(upto)
            places = np.searchsorted(upto, own)
            assert places.max() < len(upto), f"user {user} was never seen with its last event"
            due.append(own)
            took.append((seen[places] - own) / 1e6)
        return np.concatenate(due), np.concatenate(took)


def served(run: Run, prefix: str, wanted: dict[int, dict[str, Any]]) -> tuple[int, int]:
    """How many keys have another time than expected, and how many other values."""
    reader = Features(run.redis, prefix)
    other_time = other_values = 0
    for (_, row), found in zip(wanted.items(), reader.get_many(wanted), strict=True):
        if found is None or found.time != row["at"]:
            other_time += 1
        elif found.values != {name: row[name] for name in NAMES}:
            other_values += 1
    reader.close()
    return other_time, other_values


@contextlib.contextmanager
def servers(run: Run) -> Iterator[tuple[Run, KafkaBroker, RedisServer]]:
    kafka, store = Path(run.folder, "kafka"), Path(run.folder, "redis")
    store.mkdir()
    with KafkaBroker(str(kafka), "1g") as broker, RedisServer(str(store)) as server:
        create_topics(broker.address, **{TOPIC: 1})
        yield replace(run, address=broker.address, redis=server.url), broker, server


def wait_until(true: Any, program: Program, what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        program.require()
        if time.monotonic() > until:
            sys.exit(f"{what}: not within {PATIENCE:.0f} s\n{program.said()}")
        time.sleep(0.2)


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def live(given: Run, report: Report) -> None:
    with servers(given) as (empty, broker, server):
        program = Program(empty.folder, "live", empty, "user:")
        commits = Path(empty.folder, "live", "commits")
        Program(empty.folder, "warm", empty).output()
        client = Features(empty.redis, "user:")
        wait_until(lambda: client.get(-1) is not None, program, "the first answers")
        run = replace(empty, start=time.time_ns() // 1000 + 2_000_000)
        watch = Watch(run, list(range(0, run.keys, max(1, run.keys // PROBES)))[:PROBES])
        watch.start()
        sender = Program(run.folder, "produce", run)
        length = run.events / run.rate
        start = run.start / 1e6
        outages = []
        print("first batches are done, events are produced", flush=True)
        sleep_until(start + length / 4)
        program.require()
        begun = time.time()
        broker.kill()
        broker.start()
        outages.append(("the broker", time.time() - begun))
        print(outages[-1], flush=True)
        sleep_until(start + length / 2)
        program.require()
        begun = time.time()
        before = len(list(commits.iterdir()))
        program.kill()
        program = Program(run.folder, "live", run, "user:")
        wait_until(lambda: len(list(commits.iterdir())) > before, program, "the query again")
        outages.append(("the query, to its next batch", time.time() - begun))
        print(outages[-1], flush=True)
        sleep_until(start + length * 3 / 4)
        program.require()
        begun = time.time()
        server.kill()
        time.sleep(1)
        server.start()
        outages.append(("Redis", time.time() - begun))
        print(outages[-1], flush=True)
        sender.output()
        table = whole_table(run)
        wanted = expected(table)
        wait_until(lambda: served(run, "user:", wanted)[0] == 0, program, "all events in Redis")
        seconds = time.time() - start
        watch.ended.set()
        watch.join()
        other = served(run, "user:", wanted)
        program.kill()
        summarise(run, report, watch.latencies(table), outages, seconds, other)
        again(run, report, wanted)


def summarise(
    run: Run,
    report: Report,
    latencies: tuple[np.ndarray, np.ndarray],
    outages: list[tuple[str, float]],
    seconds: float,
    other: tuple[int, int],
) -> None:
    report.heading(f"Live: {run.events:,} events of {run.keys:,} keys, {run.rate:,} a second")
    for what, length in outages:
        report.line(f"killed and started again: {what}; away for", f"{length:.1f} s")
    report.line("from the first event to the last answer in Redis", f"{seconds:.1f} s")
    for what, count in zip(("event time", "values"), other, strict=True):
        text = f"keys whose {what} in Redis is not that of the batch answer"
        report.line(text, f"{count} of {run.keys:,}", "0", count == 0)
    due, took = latencies
    length = run.events / run.rate * 1e6
    calm = took[(due > run.start + 0.05 * length) & (due < run.start + 0.24 * length)]
    for what, some in (("before the first kill", calm), ("whole run, kills included", took)):
        percentiles = np.percentile(some, [50, 90, 99])
        shown = " / ".join(f"{p:.2f}" for p in [*percentiles, some.max()])
        report.line(f"latency, {what} ({len(some):,} events): p50 / p90 / p99 / max", f"{shown} s")


def again(run: Run, report: Report, wanted: dict[int, dict[str, Any]]) -> None:
    steps = json.loads(Program(run.folder, "again", run, "again:").output().splitlines()[-1])
    report.heading("The whole topic at once, nothing killed")
    other = served(run, "again:", wanted)
    rows, late = sum(step["rows"] for step in steps), sum(step["late"] for step in steps)
    first, rest = steps[0], [step for step in steps[1:] if step["rows"]]
    report.line(
        f"events (with {WARM_UP:,} to warm up and an end), batches", f"{rows:,}, {len(steps)}"
    )
    report.line("late events", f"{late}", "0", late == 0)
    report.line("keys other than the batch answer", f"{sum(other)}", "0", sum(other) == 0)
    total = rows / sum(step["seconds"] for step in steps)
    report.line("events a second, over all batches", f"{total:,.0f}")
    if rest:
        speed = sum(s["rows"] for s in rest) / sum(s["seconds"] for s in rest)
        report.line(
            f"  without the first one, which took {first['seconds']:.1f} s", f"{speed:,.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=20_000, help="events a second, live")
    given = parser.parse_args()
    report = Report(("pyspark", "pyarrow", "numba", "numpy", "redis", "confluent-kafka"))
    with tempfile.TemporaryDirectory() as folder:
        live(Run("", "", folder, given.events, given.keys, given.rate), report)
    text = f"{__doc__.split(chr(10) * 2, 2)[2]}\nKafka {KAFKA}, one broker; `make bench-kafka`."
    page = report.markdown("End to end: Kafka → features → Redis", text)
    if given.events >= 5_000_000:
        (RESULTS / "end_to_end.md").write_text(page)
    if report.missed:
        sys.exit(f"missed: {', '.join(report.missed)}")


if __name__ == "__main__":
    main()
