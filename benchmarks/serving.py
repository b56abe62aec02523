"""Serving: examples/feature_server.py over loopback, and the sink's writes, on a real Redis.

    python -m benchmarks.serving                 # writes benchmarks/results/serving.md

The server runs in a process of its own, as a user starts it. Clients are threads of another process
that keep their connection and ask for random keys one after the other; a latency is the time from
sending a request to having read the whole answer. Redis has its append-only file on.
"""

import argparse
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from tools.redis_server import RedisServer

from benchmarks.report import RESULTS, Report
from windrow.serving import Upserts

SERVER = Path(__file__).parent.parent / "examples" / "feature_server.py"
KEYS = 100_000
VALUES = {
    f"amount_{name}_{window}": 123.456789 / (n + 3)
    for n, (window, name) in enumerate(
        (window, name) for window in ("1m", "10m", "1h") for name in ("sum", "max", "mean", "count")
    )
}


def ask(port: int, requests: int, seed: int, out: list[float]) -> None:
    """One client's requests, one after the other."""
    chance = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    for _ in range(requests):
        key = chance.randrange(KEYS)
        begun = time.perf_counter()
        connection.request("GET", f"/features/{key}")
        body = connection.getresponse().read()
        out.append(time.perf_counter() - begun)
        assert json.loads(body)["values"] == VALUES
    connection.close()


def measure(port: int, clients: int, requests: int) -> tuple[np.ndarray, float]:
    """All latencies in milliseconds, and requests a second."""
    found: list[list[float]] = [[] for _ in range(clients)]
    threads = [
        threading.Thread(target=ask, args=(port, requests // clients, n, found[n]))
        for n in range(clients)
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    whole = np.array([latency for some in found for latency in some]) * 1000
    return whole, len(whole) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    given = parser.parse_args()
    report = Report(("redis", "numpy"))
    with RedisServer() as redis:
        upserts = Upserts(redis.url, "user:", expire="30d")
        report.heading("Writing, 12 values a key, 1,000 keys a round trip")
        for what, stamp in (("new keys", 1), ("keys that are there", 2), ("rows out of date", 0)):
            begun = time.perf_counter()
            written = upserts.write((((k,), stamp, VALUES) for k in range(KEYS)), 0)
            speed = KEYS / (time.perf_counter() - begun)
            assert written == (KEYS if stamp else 0)
            report.line(f"{KEYS:,} {what}", f"{speed:,.0f} keys a second")
        command = [sys.executable, str(SERVER), "--url", redis.url, "--prefix", "user:"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split(":")[2].split("/")[0])
            report.heading("Reading over HTTP: one key's 12 values")
            measure(port, 1, 1000)
            for clients in (1, 4):
                latencies, speed = measure(port, clients, given.requests)
                p50, p99, p999 = np.percentile(latencies, [50, 99, 99.9])
                what = f"{clients} client{'s' if clients > 1 else ''}, {given.requests:,} requests"
                report.line(f"{what}: median", f"{p50:.2f} ms")
                bar = "< 2 ms" if clients == 1 else ""
                report.line(f"{what}: p99", f"{p99:.2f} ms", bar, p99 < 2 or not bar)
                report.line(f"{what}: p99.9", f"{p999:.2f} ms")
                report.line(f"{what}: requests a second", f"{speed:,.0f}")
        finally:
            server.terminate()
            server.wait()
    text = "`make bench-serving`: examples/feature_server.py and the sink's writes on loopback."
    (RESULTS / "serving.md").write_text(report.markdown("Serving", text))
    if report.missed:
        sys.exit(f"missed: {', '.join(report.missed)}")


if __name__ == "__main__":
    main()
