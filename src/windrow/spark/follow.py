"""A stream followed: what each batch did, told as it happens, until it ends or is to be stopped."""

import threading
from typing import Any

from windrow.spark.ends import POLL_SECONDS, Tell


def follow(query: Any, tell: Tell, stopping: threading.Event) -> None:
    """Tell of every batch until the stream ends, or is to be stopped; raises what stopped it."""
    last = -1
    while True:
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > last and "windrow" in (progress["observedMetrics"] or {}):
                last = progress["batchId"]
                tell(batch_event(progress))
        if stopping.is_set() and active:
            query.stop()
        if not active:
            break
        stopping.wait(POLL_SECONDS)
    error = query.exception()
    if error is not None and not stopping.is_set():
        raise error


def batch_event(progress: Any) -> dict[str, Any]:
    """What one batch did, in windrow's words."""
    seen = progress["observedMetrics"]["windrow"]
    seen = seen.asDict() if hasattr(seen, "asDict") else dict(seen)
    seconds = progress["batchDuration"] / 1000
    rows = seen["rows"] or 0
    return {
        "event": "batch",
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
        "frontier": None if seen["frontier"] is None else str(seen["frontier"]),
    }
