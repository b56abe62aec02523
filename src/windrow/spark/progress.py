"""What streams report, as text that Prometheus reads: a listener and a small HTTP server."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Borders of the histogram of batch durations."""
_COUNTED = {
    "rows": "Rows that came in",
    "late_rows": "Rows that came after the frontier had passed them, and were left out",
    "rows_without_time": "Rows without a time, left out",
    "answered_rows": "Rows that were answered",
    "overflows": "Sums that did not fit and are null",
    "state_calls": "Calls to Spark's state store",
    "state_bytes_read": "Bytes read from the state",
    "state_bytes_written": "Bytes written to the state",
}
_CURRENT = {
    "waiting_rows": "Rows that wait for the watermark",
    "kept_rows": "Answered rows that windows still look at",
    "state_bytes": "Bytes of windrow's state",
    "watermark_lag_seconds": "Latest time of the last batch with rows, less the frontier",
    "frontier_timestamp_seconds": "Everything before it was answered",
}


@dataclass
class Seen:
    """What is known of one query."""

    name: str
    active: int = 1
    failed: int = 0
    batch: int = -1
    batches: int = 0
    duration_sum: float = 0.0
    durations: list[int] = field(default_factory=lambda: [0] * len(SECONDS))
    counted: dict[str, float] = field(default_factory=dict)
    current: dict[str, float] = field(default_factory=dict)
    """By the metric's name, without its prefix."""


class Metrics(StreamingQueryListener):
    """Collects the progress of all queries of a session, and serves it at ``url``."""

    def __init__(self, session: Any, port: int, host: str) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._queries: dict[str, Seen] = {}
        self._server = ThreadingHTTPServer((host, port), _handler(self.text))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://{host}:{self.port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        session.streams.addListener(self)

    def close(self) -> None:
        """Stop listening and serving."""
        self._session.streams.removeListener(self)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what Spark calls, from a thread of its own ----------------------------------------------

    def onQueryStarted(self, event: Any) -> None:
        """A query began, or began again."""
        with self._lock:
            seen = self._of(str(event.id), event.name)
            seen.active = 1

    def onQueryProgress(self, event: Any) -> None:
        """A batch is done."""
        progress = event.progress
        with self._lock:
            self._take(self._of(str(progress.id), progress.name), progress)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:
        """A query ended, or failed."""
        with self._lock:
            seen = self._of(str(event.id), None)
            seen.active = 0
            seen.failed += event.exception is not None

    def _of(self, identity: str, name: str | None) -> Seen:
        return self._queries.setdefault(identity, Seen(name or identity))

    def _take(self, seen: Seen, progress: Any) -> None:
        if progress.batchId == seen.batch and not progress.numInputRows:
            return  # Spark repeats the last progress of an idle query
        seen.batch = progress.batchId
        seconds = progress.durationMs.get("triggerExecution", 0) / 1000
        seen.batches += 1
        seen.duration_sum += seconds
        for place, border in enumerate(SECONDS):
            seen.durations[place] += seconds <= border
        current = seen.current
        current["batch_id"] = progress.batchId
        current["batch_rows"] = progress.numInputRows
        current["input_rows_per_second"] = progress.inputRowsPerSecond
        current["processed_rows_per_second"] = progress.processedRowsPerSecond
        for name, value in (
            ("store_memory_bytes", sum(op.memoryUsedBytes for op in progress.stateOperators)),
            ("store_rows", sum(op.numRowsTotal for op in progress.stateOperators)),
        ):
            current[name] = value
        watermark = progress.eventTime.get("watermark")
        if watermark:
            at = datetime.fromisoformat(watermark.replace("Z", "+00:00"))
            current["watermark_timestamp_seconds"] = at.timestamp()
        behind = [_number(s.metrics.get("maxOffsetsBehindLatest")) for s in progress.sources]
        known = [number for number in behind if number is not None]
        if known:
            current["source_offsets_behind"] = max(known)
        self._take_own(seen, progress.observedMetrics.get("windrow"))

    def _take_own(self, seen: Seen, own: Any) -> None:
        if own is None:
            return
        found = own.asDict() if hasattr(own, "asDict") else dict(own)
        for name in _COUNTED:
            seen.counted[name] = seen.counted.get(name, 0) + (found.get(name) or 0)
        for name in _CURRENT:
            if found.get(name) is not None:
                seen.current[name] = found[name]

    # --- what Prometheus reads -------------------------------------------------------------------

    def text(self) -> str:
        """All of it, in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in _lines(list(self._queries.values())))


_GAUGES = {
    "batch_id": "Number of the last batch",
    "batch_rows": "Rows of the last batch, as its sources counted them",
    "input_rows_per_second": "Rows a second that come, by the last batch",
    "processed_rows_per_second": "Rows a second that the last batch worked on",
    "store_memory_bytes": "Memory of Spark's state store",
    "store_rows": "Entries of Spark's state store; 0 where it does not count them",
    "watermark_timestamp_seconds": "Spark's watermark",
    "source_offsets_behind": "Messages of the source that are not read yet, most of any partition",
    **_CURRENT,
}


def _lines(queries: list[Seen]) -> Iterator[str]:
    yield from _metric("up", "gauge", "1 while the query runs", queries, lambda seen: seen.active)
    yield from _metric(
        "failures_total", "counter", "Ends with an error", queries, lambda seen: seen.failed
    )
    yield from _metric(
        "batches_total", "counter", "Batches done", queries, lambda seen: seen.batches
    )
    for name, text in _COUNTED.items():
        yield from _metric(
            f"{name}_total", "counter", text, queries, lambda seen, n=name: seen.counted.get(n)
        )
    for name, text in _GAUGES.items():
        yield from _metric(name, "gauge", text, queries, lambda seen, n=name: seen.current.get(n))
    whole = "windrow_stream_batch_duration_seconds"
    yield f"# HELP {whole} How long batches took"
    yield f"# TYPE {whole} histogram"
    for seen in queries:
        label = _label(seen.name)
        for border, count in zip(SECONDS, seen.durations, strict=True):
            yield f'{whole}_bucket{{query="{label}",le="{border:g}"}} {count}'
        yield f'{whole}_bucket{{query="{label}",le="+Inf"}} {seen.batches}'
        yield f'{whole}_sum{{query="{label}"}} {seen.duration_sum!r}'
        yield f'{whole}_count{{query="{label}"}} {seen.batches}'


def _metric(
    name: str, kind: str, text: str, queries: list[Seen], value: Callable[..., Any]
) -> Iterator[str]:
    found = [(seen, value(seen)) for seen in queries]
    known = [(seen, number) for seen, number in found if number is not None]
    if not known:
        return
    whole = f"windrow_stream_{name}"
    yield f"# HELP {whole} {text}"
    yield f"# TYPE {whole} {kind}"
    for seen, number in known:
        yield f'{whole}{{query="{_label(seen.name)}"}} {_shown(number)}'


def _shown(number: Any) -> str:
    """As Prometheus writes numbers."""
    if isinstance(number, float):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(repr(number), repr(number))
    return str(int(number))


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(text: Any) -> float | None:
    return None if text is None else float(text)


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET /metrics."""

        def do_GET(self) -> None:
            """One page."""
            if self.path.partition("?")[0] not in ("/metrics", "/"):
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    return Handler
