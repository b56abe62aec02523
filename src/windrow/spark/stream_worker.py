"""The stateful operator of a stream: one bucket of keys after the other, in Spark's workers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from windrow.spark.envelopes import opened, sealed, settled

if TYPE_CHECKING:
    from windrow.stores.chunks import Space

METRICS = (
    "rows",
    "late_rows",
    "rows_without_time",
    "answered_rows",
    "emitted_rows",
    "overflows",
    "rules",
    "rejected_rules",
    "waiting_rows",
    "kept_rows",
    "state_bytes",
    "state_calls",
    "state_bytes_read",
    "state_bytes_written",
    "latest",
    "frontier",
)
"""What every bucket says of every turn; ``latest`` and ``frontier`` are microseconds."""

OUTPUT = T.StructType(
    [T.StructField("payload", T.BinaryType()), *(T.StructField(n, T.LongType()) for n in METRICS)]
)
_HEAD = T.StructType([T.StructField("head", T.BinaryType())])
NUMBER = T.StructType([T.StructField("number", T.LongType())])
CELL = T.StructType([T.StructField("cell", T.BinaryType())])


class StateSpace:
    """Cells as a map of Spark's state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def get(self, number: int) -> bytes | None:
        """A cell, where there is one."""
        found = self.state.getValue((number,))
        return None if found is None else found[0]

    def put(self, number: int, data: bytes) -> None:
        """Write a cell."""
        self.state.updateValue((number,), (data,))

    def remove(self, number: int) -> None:
        """Forget a cell."""
        self.state.removeKey((number,))

    def clear(self) -> None:
        """Forget them all."""
        self.state.clear()


class StateStore:
    """A bucket's state in Spark."""

    log: "Space"
    waiting: "Space"

    def __init__(self, handle: Any) -> None:
        self.head = handle.getValueState("head", _HEAD)
        self.log = StateSpace(handle.getMapState("log", NUMBER, CELL))
        self.waiting = StateSpace(handle.getMapState("waiting", NUMBER, CELL))

    def load(self) -> bytes | None:
        """The head, where there is one."""
        found = self.head.get()
        return None if found is None else bytes(found[0])

    def save(self, head: bytes) -> None:
        """Write the head."""
        self.head.update((head,))


@dataclass(frozen=True)
class Extras:
    """Columns that say more of a row, and when the clock takes over."""

    late: str | None = None
    """True in late rows, which come out without answers."""
    gone: str | None = None
    """True in keys whose windows have no more rows."""
    idle: int | None = None
    """After so many milliseconds without rows, time goes on by the clock."""
    until: int | None = None
    """Rows of a history before this time, in microseconds, were answered already."""
    told: bool = False
    """The history is of a stream that gave out the same answers."""
    rules: tuple[str, str] | None = None
    """The version and the text of the rules of a history."""


class BucketProcessor(StatefulProcessor):
    """Takes envelopes, gives envelopes; ``plan`` is a ``StreamPlan``."""

    def __init__(
        self, plan: Any, kinds: dict[str, pa.DataType], extras: Extras | None = None
    ) -> None:
        self.plan, self.kinds, self.extras = plan, kinds, extras or Extras()

    def init(self, handle: Any) -> None:
        """Called once for every task."""
        self.handle = handle
        self.store = self.opened(handle)
        self.called: set[int] = set()
        self.history: dict[int, list[pa.Table]] = {}

    def opened(self, handle: Any) -> StateStore:
        """Where the state lies."""
        return StateStore(handle)

    def bucket(self, key: Any, tables: list[pa.Table]) -> tuple[Any, list[pa.Table]]:
        """A bucket for one turn, and the rows that came for it."""
        from windrow.columns.bucket import Bucket

        return Bucket(self.plan, self.store), tables

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Rows came for a bucket."""
        tables = [opened(row[1]) for row in rows if row[1] is not None]
        yield self._turn(key, tables, timerValues, True)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        """Rows of a bucket from before the stream, envelope by envelope; its own rows follow.

        Spark may have other buckets' histories come before those.
        """
        known = self.history.setdefault(key[0], [])
        if initialState[1] is not None:
            known.append(opened(initialState[1]))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """The watermark passed a row that waits, or time goes on by the clock."""
        if key[0] not in self.called:
            yield self._turn(key, [], timerValues, False)

    def close(self) -> None:
        """Called once for every task; nothing is left open."""
        settled()

    def _turn(self, key: Any, tables: list[pa.Table], timerValues: Any, came: bool) -> Any:
        self.called.add(key[0])
        bucket, tables = self.bucket(key, tables)
        if key[0] in self.history:
            bucket.seed(self.history.pop(key[0]), self.extras.until, self.extras.told)
        frontier = self._frontier(bucket.head, came, timerValues)
        turn = bucket.advance(tables, frontier)
        self._ask_to_be_called(bucket.head, timerValues, turn.traffic)
        bucket.close()
        head, traffic = bucket.head, turn.traffic
        numbers = (
            turn.rows,
            turn.late_rows,
            turn.without_time,
            turn.answered_rows,
            turn.emitted_rows,
            turn.overflows,
            turn.rules,
            turn.rejected_rules,
            head.waiting_rows,
            head.log_rows,
            head.size,
            traffic.calls,
            traffic.bytes_read,
            traffic.bytes_written,
            turn.latest,
            head.frontier,
        )
        return Row(payload=self.sealed(turn), **dict(zip(METRICS, numbers, strict=True)))

    def _frontier(self, head: Any, came: bool, timerValues: Any) -> int | None:
        """The watermark, in microseconds; without rows for long, as if it went on by the clock.

        Every bucket is called in every batch that has rows, and from then on in every batch
        without: so all of them have the same frontier.
        """
        watermark = timerValues.getCurrentWatermarkInMs()
        idle = self.extras.idle
        if idle is not None:
            now = timerValues.getCurrentProcessingTimeInMs()
            if came or head.active is None:
                head.active = now
            elif watermark > 0 and now - head.active >= idle:
                watermark += now - head.active
        return watermark * 1000 if watermark > 0 else None

    def _ask_to_be_called(self, head: Any, timerValues: Any, traffic: Any) -> None:
        """A timer for the next time that something is to be done, unless it is set already."""
        if self.extras.idle is None:
            now = timerValues.getCurrentWatermarkInMs()
            wanted = self._next_watermark(head, now)
        else:
            now = timerValues.getCurrentProcessingTimeInMs()
            wanted = now + 1
        if head.timer is not None and head.timer <= now:
            head.timer = None
        if wanted is not None and (head.timer is None or wanted < head.timer):
            self.handle.registerTimer(wanted)
            traffic.calls += 1
            head.timer = wanted

    def _next_watermark(self, head: Any, watermark: int) -> int | None:
        """When the first row that waits is due; keys are looked at whenever the watermark moves."""
        if self.plan.emission in ("ticks", "changes", "rules") and head.latest is not None:
            return int(watermark + 1)
        if head.earliest_waiting is None or self.plan.emission == "immediately":
            return None
        return max(int(head.earliest_waiting) // 1000 + 1, watermark + 1)

    def sealed(self, turn: Any) -> bytes | None:
        """What comes out, as one value."""
        from windrow.spark.worker import fitted

        tables = []
        late, gone = self.extras.late, self.extras.gone
        if turn.answered is not None:
            table = fitted(turn.answered, self.kinds)
            if gone is not None:
                flags = pa.array([not live for live in turn.live.tolist()], pa.bool_())
                table = table.append_column(gone, flags)
            tables.append(self._flagged(table, False))
        if late is not None and turn.late is not None:
            table = turn.late
            for name, kind in self.kinds.items():
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
            tables.append(self._flagged(table, True))
        return sealed(pa.concat_tables(tables)) if tables else None

    def _flagged(self, table: pa.Table, late: bool) -> pa.Table:
        if self.extras.late is None:
            return table
        flags = pa.repeat(pa.scalar(late), table.num_rows)
        return table.append_column(self.extras.late, flags)
