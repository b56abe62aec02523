"""A stream's state from outside, and the settings that tables and streams want."""

import importlib.util
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windrow.columns.stream_plan import Head, aggregate_parts
from windrow.errors import Refused
from windrow.times import moment

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ROCKS_SETTINGS = "spark.sql.streaming.stateStore.rocksdb"
_CROSSING = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}
"""With a limit of bytes, Spark measures the whole Arrow batch after every row."""
_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Through TCP, every task that needs Python waits some 20 ms for an acknowledgement."""


def table_settings() -> dict[str, str]:
    """Settings with which rows cross to Python faster; give them to the session.

    >>> table_settings()["spark.python.daemon.module"]
    'windrow.spark.daemon'

    Nothing is set by windrow itself. ``SparkSession.builder.config(map=table_settings())``.
    """
    settings = {**_CROSSING, "spark.python.daemon.module": "windrow.spark.daemon"}
    if hasattr(socket, "AF_UNIX"):  # Python on Windows has none
        settings[_UNIX_SOCKETS] = "true"
    return settings


def stream_settings(buckets: int = 8) -> dict[str, str]:
    """Settings that streams need (the first) or are better off with; give them to the session.

    >>> stream_settings()["spark.sql.shuffle.partitions"]
    '8'

    Nothing is set by windrow itself. ``SparkSession.builder.config(map=stream_settings())``.
    """
    return {
        PROVIDER: ROCKS,
        f"{_ROCKS_SETTINGS}.changelogCheckpointing.enabled": "true",
        f"{_ROCKS_SETTINGS}.trackTotalNumberOfRows": "false",
        "spark.sql.shuffle.partitions": str(buckets),
        **_CROSSING,
    }


def refuse_other_providers(session: Any) -> None:
    """Spark's operator keeps its state in RocksDB only, and talks by protobuf: it says so late."""
    if not _has_protobuf():
        raise ImportError(
            "Spark streams need protobuf, which is not installed: pip install 'windrow[spark]'",
            name="google.protobuf",
        )
    found = session.conf.get(PROVIDER, "")
    if "RocksDB" not in str(found):
        raise Refused(
            f"Spark's stateful operator needs the RocksDB state store: set {PROVIDER} to {ROCKS} "
            "before the query starts; windrow.spark.stream_settings() has this and other settings"
        )


def _has_protobuf() -> bool:
    try:
        return importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # there is nothing of google's at all
        return False


@dataclass(frozen=True)
class BucketState:
    """What one bucket of keys holds."""

    bucket: int
    frontier: datetime | None
    """Rows before this time were answered."""
    rows_kept: int
    rows_waiting: int
    bytes: int
    segments: dict[str, int]
    """How many folded segments each window has."""


@dataclass(frozen=True)
class StreamState:
    """What a checkpoint's state holds."""

    version: int
    windows: dict[str, str]
    aggregates: list[str]
    key: list[str]
    time: str
    columns_kept: list[str]
    buckets: list[BucketState]

    @property
    def rows_kept(self) -> int:
        """Rows that windows still look at."""
        return sum(bucket.rows_kept for bucket in self.buckets)

    @property
    def rows_waiting(self) -> int:
        """Rows that have not been answered yet."""
        return sum(bucket.rows_waiting for bucket in self.buckets)

    @property
    def bytes(self) -> int:
        """Bytes of all cells."""
        return sum(bucket.bytes for bucket in self.buckets)

    @property
    def frontier(self) -> datetime | None:
        """Rows before this time were answered; buckets without such rows may not know it yet."""
        return max((b.frontier for b in self.buckets if b.frontier is not None), default=None)

    def __str__(self) -> str:
        by = f"by {', '.join(self.key)}" if self.key else "without a key"
        lines = [
            f"stream {by}, time {self.time}: state of version {self.version}",
            f"windows: {', '.join(self.windows)}",
            f"aggregates: {', '.join(self.aggregates)}",
            f"kept of each row: {', '.join(self.columns_kept)}",
            f"answered up to {self.frontier or 'nothing yet'}: {self.rows_kept:,} rows kept, "
            f"{self.rows_waiting:,} waiting, {self.bytes:,} bytes in {len(self.buckets)} buckets",
        ]
        for bucket in self.buckets:
            segments = ", ".join(f"{label} {n}" for label, n in bucket.segments.items())
            lines.append(
                f"  bucket {bucket.bucket}: {bucket.rows_kept:,} kept, {bucket.rows_waiting:,} "
                f"waiting, {bucket.bytes:,} bytes; segments: {segments or 'none'}"
            )
        return "\n".join(lines)


def state(checkpoint: str, session: Any = None) -> StreamState:
    """What the state of a stream holds, read from its checkpoint; the stream may be running."""
    if session is None:
        from pyspark.sql import SparkSession

        session = SparkSession.active()
    reader = session.read.format("statestore").option("stateVarName", "head")
    rows = reader.load(str(checkpoint)).select("key.*", "value.head").collect()
    heads = sorted((row[0], Head.from_bytes(bytes(row[1]))) for row in rows)
    if not heads:
        raise Refused(f"{checkpoint}: the checkpoint has no state of windrow's yet")
    contract = heads[0][1].contract
    return StreamState(
        contract["version"],
        contract["windows"],
        [_short(text) for text in _aggregates(contract)],
        contract["key"],
        contract["time"],
        contract["kept"],
        [_bucket(bucket, head) for bucket, head in heads],
    )


def _aggregates(contract: dict[str, Any]) -> list[str]:
    counted = [text.partition(" over ")[0] for text in contract.get("sequential", [])]
    return [*contract["aggregates"], *dict.fromkeys(counted)]


def _short(text: str) -> str:
    """``windrow.Sum Sum(overflow='null')(amount)`` is ``Sum(amount)``."""
    owner, _, columns = aggregate_parts(text)
    return f"{owner.rpartition('.')[2]}({columns})"


def _bucket(bucket: int, head: Head) -> BucketState:
    frontier = None
    if head.frontier is not None:
        frontier = moment(head.frontier)
    segments = {
        label: sight.borders.e - sight.borders.f
        for label, sight in head.sights.items()
        if not (sight.filled or sight.totals.count)
    }
    size = head.log_bytes + head.waiting_bytes
    return BucketState(bucket, frontier, head.log_rows, head.waiting_rows, size, segments)
