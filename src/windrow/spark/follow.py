"""A stream followed: what each batch did, told as it happens, until it ends or is to be stopped."""

import threading
from typing import Any

from windrow.spark.ends import EVENTS, POLL_SECONDS, Tell
from windrow.times import moment


def follow(queries: dict[str, Any], tell: Tell, stopping: threading.Event) -> None:
    """Tell of every batch until the streams end, or are to be stopped; raises what stopped one.

    ``queries``: by what their batches are told as, ``batch`` or ``rules``. When one fails the other
    is stopped, too.
    """
    last = dict.fromkeys(queries, -1)
    failed: Any = None
    while True:
        active = {name: query.isActive for name, query in queries.items()}
        for name, query in queries.items():
            for progress in query.recentProgress:
                seen = progress["observedMetrics"] or {}
                if progress["batchId"] > last[name] and "windrow" in seen:
                    last[name] = progress["batchId"]
                    tell(batch_event(progress, name))
            if not active[name] and failed is None:
                failed = query.exception()
        for name, query in queries.items():
            if active[name] and (stopping.is_set() or failed is not None):
                query.stop()
        if not any(active.values()):
            break
        stopping.wait(POLL_SECONDS)
    if failed is not None and not stopping.is_set():
        raise failed


def batch_event(progress: Any, kind: str = "batch") -> dict[str, Any]:
    """What one batch did, in windrow's words."""
    seen = _plain(progress["observedMetrics"]["windrow"])
    seconds = progress["batchDuration"] / 1000
    rows = seen["rows"] or 0
    told = {}
    if kind == "rules":
        events = _plain(progress["observedMetrics"][EVENTS])
        told = {name: events[name] or 0 for name in ("events", "rejected")}
        told |= {name: seen[name] or 0 for name in ("rules", "rejected_rules")}
    return {
        "event": kind,
        "batch": progress["batchId"],
        "at": progress["timestamp"],
        "seconds": seconds,
        "rows": rows,
        "rows_per_second": round(rows / seconds, 1) if seconds else None,
        "answered_rows": seen["answered_rows"] or 0,
        "late_rows": seen["late_rows"] or 0,
        "rows_without_time": seen["rows_without_time"] or 0,
        "overflows": seen["overflows"] or 0,
        "waiting_rows": seen["waiting_rows"] or 0,
        "kept_rows": seen["kept_rows"] or 0,
        "state_bytes": seen["state_bytes"] or 0,
        "lag_seconds": seen["watermark_lag_seconds"],
        "frontier": _text(seen["frontier_timestamp_seconds"]),
        **told,
    }


def _text(seconds: float | None) -> str | None:
    """A time since 1970, as a text in UTC."""
    return None if seconds is None else str(moment(round(seconds * 1e6)))


def _plain(row: Any) -> dict[str, Any]:
    return row.asDict() if hasattr(row, "asDict") else dict(row)
