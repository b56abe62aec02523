"""A table's or a micro-batch's latest row of every key, to Redis; see ``windrow.serving``."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling
from windrow.serving import Upserts
from windrow.slides import Rows, Session
from windrow.spark.axis import quoted
from windrow.spark.keyed import crossed
from windrow.times import EVER, Duration, duration

_PLACE = "__windrow_place"
_COUNTED = "written long"


class RedisSink:
    """Keeps the current values of every key in Redis; for ``foreachBatch``, and for tables.

    Of each key the latest row counts, by time and then by the specification's ``tie``. Rows are
    written where they are, by Spark's tasks; nothing is collected. A batch that is done again
    writes the same, and a row never replaces a later one. ``version``: raise it when a replay with
    other aggregates shall replace what an earlier run wrote for the same times. ``gone``: with
    ``emit="changes"``, the column of that name; where it is true, the key is removed.

        sink = wr.spark.RedisSink(features, "redis://127.0.0.1:6379/0", prefix="user:", expire="7d")
        features(stream).writeStream.foreachBatch(sink).option("checkpointLocation", ...).start()
        sink(features(table))
    """

    def __init__(
        self,
        features: Rolling,
        url: str = "redis://127.0.0.1:6379/0",
        *,
        prefix: str = "",
        columns: Sequence[str] = (),
        late: str | None = None,
        gone: str | None = None,
        version: int = 0,
        expire: Any = None,
        patience: Any = "30s",
    ) -> None:
        if not features.key or features.time is None:
            raise Refused("values are kept by key and ordered by time: Rolling(key=, time=, ...)")
        if isinstance(columns, str):
            raise BadSpecification(f"columns= is a list of names: columns=[{columns!r}]")
        self.key, self.time, self.tie = list(features.key), str(features.time), list(features.tie)
        self.values = [*columns, *(name for name, _, _ in features.outputs)]
        self.late, self.gone = late, gone
        if gone is not None and features.emit != "changes":
            raise Refused('gone= is for emit="changes", where keys without rows come out once more')
        if expire is not None and features.emit == "changes":
            _refuse_short(features, expire)
        self.upserts = Upserts(url, prefix, version, expire, patience)

    def __call__(self, df: Any, batch: int = 0) -> int:
        """Write; returns how many keys got other values, or the same again."""
        tie = [name for name in self.tie if name in df.columns]  # ticks and changes need none
        names = list(dict.fromkeys([*self.key, self.time, *tie, *self.values]))
        names += [self.gone] if self.gone is not None else []
        self._refuse_without(df, names)
        if self.late is not None:
            df = df.where(~F.col(quoted(self.late)))
        rows = df.select(*map(quoted, names))
        counts = crossed(rows, self._writer(batch, tie), names, _COUNTED)
        found = counts.agg(F.sum("written")).first()
        return int(found[0] or 0)

    def _refuse_without(self, df: Any, names: list[str]) -> None:
        wanted = [*names, *([self.late] if self.late is not None else [])]
        missing = [name for name in wanted if name not in df.columns]
        if missing:
            raise BadSpecification(
                f"no column {', '.join(map(repr, missing))} to write: the table has "
                f"{', '.join(df.columns)}. The sink takes what its specification gave"
            )

    def _writer(self, batch: int, tie: list[str]) -> Any:
        key, time, values, gone = self.key, self.time, self.values, self.gone
        upserts = self.upserts

        def windrow_to_redis(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            written = 0
            for rows in batches:
                if rows.num_rows:
                    table = newest(pa.Table.from_batches([rows]), key, time, tie)
                    written += upserts.write(upserted(table, key, time, values, gone), batch)
            yield pa.record_batch([pa.array([written], pa.int64())], names=["written"])

        return windrow_to_redis


def newest(table: pa.Table, key: list[str], time: str, tie: list[str]) -> pa.Table:
    """The last row of every key, by time and then by tie; of rows without a time none."""
    table = table.filter(table[time].is_valid())
    order = [(name, "ascending") for name in dict.fromkeys([time, *tie])]
    table = table.take(pa.compute.sort_indices(table, order))
    places = pa.array(range(table.num_rows), pa.int64())
    last = table.select(key).append_column(_PLACE, places).group_by(key)
    return table.take(last.aggregate([(_PLACE, "max")])[f"{_PLACE}_max"])


def upserted(
    table: pa.Table, key: list[str], time: str, values: list[str], gone: str | None = None
) -> Iterator[tuple[tuple[Any, ...], int, dict[str, Any] | None]]:
    """Rows as ``Upserts`` wants them."""
    times = table[time]
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    if not pa.types.is_integer(times.type):
        raise Refused(f"time column {time!r} has type {times.type}: rows are ordered by timestamps")
    keys = zip(*(table[name].to_pylist() for name in key), strict=True)
    columns = zip(*(table[name].to_pylist() for name in values), strict=True)
    left = [False] * table.num_rows if gone is None else table[gone].to_pylist()
    for own, micros, found, is_gone in zip(keys, times.to_pylist(), columns, left, strict=True):
        yield own, micros, None if is_gone else dict(zip(values, found, strict=True))


def _refuse_short(features: Rolling, expire: Any) -> None:
    """A key whose answers stay the same is not written again, for as long as its window is."""
    longest = max(map(_reach, features.windows.values())) + _nanoseconds(features.lateness)
    if 0 < _nanoseconds(duration(expire, "expire=")) <= longest:
        raise BadSpecification(
            f"expire={expire!r} would remove keys that are still in their windows: with "
            'emit="changes" a key is only written when its answers change. Make it longer than the '
            "longest window and lateness=, or leave it out: gone= removes keys that have no rows"
        )


def _reach(window: Any) -> int:
    if isinstance(window, Rows):
        return _nanoseconds(window.within)
    if isinstance(window, Session):  # its answers may stay the same for as long as it goes on
        return EVER.nanoseconds
    return _nanoseconds(window.length) + _nanoseconds(window.ending)


def _nanoseconds(length: Any) -> int:
    return length.nanoseconds if isinstance(length, Duration) else 0
