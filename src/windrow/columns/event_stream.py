"""A stream in this process: rows in any order within the lateness, answers as on Spark's streams.

What Spark's stateful operator runs for each share of the keys (``bucket``) runs here for all keys.
A push is one turn: rows come, the frontier moves to the latest time less the lateness, and what it
has passed is answered. A push that raises is taken back. In a store, what changed since the last
flush is written with the next, all or nothing.
"""

import copy
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns import engine
from windrow.columns.batch_tables import as_table, without_views
from windrow.columns.bucket import Bucket
from windrow.columns.column import array_of, plain_column, typed
from windrow.columns.masked import plain
from windrow.columns.prepare import time_column
from windrow.columns.stream_plan import Head, StreamPlan, overflow_is_null, reaches_of
from windrow.errors import BadBytes, BadSpecification, BadValue, Refused
from windrow.rolling import Rolling
from windrow.slides import Time
from windrow.stores import Memory, Store
from windrow.stores.chunks import ChunkStore
from windrow.support import refuse_on_streams
from windrow.times import Clock, Duration, duration, is_missing

_RESERVED = "__windrow_"
ARRIVAL = f"{_RESERVED}arrival"
"""The number of a row, which orders rows of equal time and tie as they came."""
_EARLIEST, _LATEST = -(1 << 60), 3 << 60
"""Times that differ by less than a window is long that no row leaves."""


class EventStream:
    """``push`` batches as they come; rows come back, answered, once the frontier has passed them.

    >>> import windrow as wr, pyarrow as pa
    >>> features = wr.Rolling(
    ...     time="at", windows=[wr.time(10)], aggregates=[wr.Sum("x")], lateness=5
    ... )
    >>> stream = features.stream()
    >>> stream.push(pa.table({"at": [3, 12], "x": [1.0, 2.0]}))["x_sum_10"].to_pylist()
    [1.0]
    >>> stream.push(pa.table({"at": [8, 6, 20], "x": [4.0, 8.0, 16.0]})).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'at': 8, 'x': 4.0, 'x_sum_10': 5.0}, {'at': 12, 'x': 2.0, 'x_sum_10': 7.0}]
    >>> stream.late.to_pylist(), stream.frontier
    ([{'at': 6, 'x': 8.0}], 15)
    >>> stream.finish()["x_sum_10"].to_pylist()
    [18.0]

    The frontier is the latest time so far, less ``lateness=``. Rows before it are answered, in
    order of time; a row that comes behind it is in ``late`` until the next push, and in no window.
    With ``emit="changes"``, ``emit="immediately"`` and ``every=`` answers come out as they do on
    Spark streams (``docs/emission.md``); ``gone=`` names a column that says which keys have no rows
    any more.

    ``store=`` and ``name=`` keep the state in a store. ``flush()`` writes it; opened again under
    its name, also after a crash, the stream goes on from there, and ``restored_through`` says how
    many rows it had taken: push those behind them again.
    """

    def __init__(
        self,
        spec: Rolling,
        gone: str | None = None,
        store: Store | None = None,
        name: str | None = None,
    ) -> None:
        _refuse(spec, gone, store, name)
        self.spec, self._gone = spec, gone
        self._store = Memory() if store is None else store
        self._durable = store is not None
        self._prefix = f"windrow-stream/{quote(name or '', safe='')}/".encode()
        self._chunks = ChunkStore(self._store, self._prefix, later=True)
        self.restored_through = 0
        """How many rows the stream had taken when it was opened."""
        self.late: pa.Table | None = None
        """The rows of the last push that came behind the frontier, or have no time."""
        self.late_rows = 0
        """How many rows were late, or without a time, since the stream was opened."""
        self.overflows = 0
        """How many answers were too large to be told, and are null."""
        self._bucket: Bucket | None = None
        self._closed = self._kept = False
        found = self._chunks.load()
        if found is not None:
            self.restored_through = Head.from_bytes(found).arrivals
            columns = self._store.get(self._prefix + b"columns")
            if columns is None:
                raise BadBytes(f"stream {name!r}: the store has its head, but not its columns")
            self._open(pa.ipc.read_schema(pa.py_buffer(columns)))
            self._kept = True
        self._store.windows += 1

    # --- rows -----------------------------------------------------------------------------------

    def push(self, batch: Any) -> pa.Table:
        """Take rows, and return what the frontier has passed; rows that raise are not taken."""
        table = without_views(as_table(batch))
        if self._bucket is None and not self._closed:
            self._open(table.schema)
        bucket = self._require_open()
        table = self._as_before(table)
        rows = plain(self.spec, table)[1].select(
            [name for name in self._plan.schema.names if name != ARRIVAL]
        )
        first = bucket.head.arrivals
        rows = rows.append_column(ARRIVAL, array_of(np.arange(first, first + len(rows))))
        ends = pc.min_max(plain_column(table[self._time]))
        frontier = bucket.head.frontier
        if ends["max"].is_valid:
            self._ticks(ends["min"])
            reached = self._ticks(ends["max"]) - self._delay
            frontier = reached if frontier is None else max(frontier, reached)
        return self._turn([rows], frontier)

    def _as_before(self, table: pa.Table) -> pa.Table:
        """A batch with the columns of those before; one of missing values alone has any type."""
        known = self._schema
        if set(table.column_names) == set(known.names) and len(table.schema) == len(known):
            table = table.select(known.names)
            pairs = list(zip(table.schema, known, strict=True))
            if all(a.type == b.type or pa.types.is_null(a.type) for a, b in pairs):
                return table.cast(known)
        raise BadSpecification(
            f"this batch has columns {_shown(table.schema)}; earlier ones had {_shown(known)}"
        )

    def advance(self, at: Any) -> pa.Table:
        """Time has passed without a row, as if one had come at ``at``; return what that passes."""
        bucket = self._require_open()
        moment = self._moment(at)
        reached, frontier = self._ticks(moment) - self._delay, bucket.head.frontier
        return self._turn([], reached if frontier is None else max(frontier, reached))

    def finish(self) -> pa.Table | None:
        """No more rows will come: what is left; None where nothing ever came.

        A store stays as it was at the last flush.
        """
        if self._bucket is None and not self._closed:
            self.close()
            return None
        out = self._turn([], self._end(self._require_open().head))
        self.close()
        return out

    def _end(self, head: Head) -> int | None:
        """A time that is after all rows, and in which none of them is in a window that ends."""
        known = [head.frontier, head.latest, *(latest + 1 for _, _, latest, _ in head.waiting)]
        times = [time for time in known if time is not None]
        longest = max((-reach.start for reach in self._plan.passing), default=0)
        return max(times) + longest + 1 if times else None

    def _turn(self, rows: list[pa.Table], frontier: int | None) -> pa.Table:
        bucket = self._require_open()
        before = bucket.saved()
        try:
            turn = bucket.again(rows, frontier)
            out = self._out(turn)
        except BaseException:
            # nothing was ever taken: which columns there are is open again
            self._bucket = Bucket.back(self._plan, self._chunks, before) if self._kept else None
            raise
        self._kept = True
        bucket.head.arrivals += sum(len(table) for table in rows)
        self.late = None if turn.late is None else turn.late.select(self._came)
        self.late_rows += 0 if turn.late is None else turn.late.num_rows
        self.overflows += turn.overflows
        return out

    def _out(self, turn: Any) -> pa.Table:
        """What comes out of a turn, with the columns and types that it always has."""
        found = turn.answered
        if found is None:
            return self._nothing
        if self._gone is not None:
            gone = array_of(~np.asarray(turn.live, np.bool_))
            found = found.append_column(self._gone, gone)
        found = found.select(self._nothing.column_names)
        times = time_column(found, self._time, None)[0]
        if self._plan.emission != "immediately" and (np.diff(times) < 0).any():
            found = found.take(array_of(np.argsort(times, kind="stable")))
        kinds = zip(self._nothing.schema, found.schema, strict=True)
        fields = [mine if pa.types.is_null(usual.type) else usual for usual, mine in kinds]
        return found.cast(pa.schema([field.with_nullable(True) for field in fields]))

    # --- how it stands --------------------------------------------------------------------------

    @property
    def frontier(self) -> Any:
        """All before this time is answered; None where nothing has come."""
        head = None if self._bucket is None else self._bucket.head
        if head is None or head.frontier is None:
            return None
        kind = self._schema.field(self._time).type
        return typed(np.array([head.frontier]), None, kind)[0].as_py()

    @property
    def waiting_rows(self) -> int:
        """How many rows the frontier has not passed."""
        return 0 if self._bucket is None else self._bucket.head.waiting_rows

    @property
    def rows_kept(self) -> int:
        """How many rows are kept for windows to come, besides those that wait."""
        return 0 if self._bucket is None else self._bucket.head.log_rows

    # --- in a store -----------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the state to the store: what is written survives this process."""
        if not self._durable:
            raise BadSpecification(
                "this stream is in memory only: store= and name= keep it in a store"
            )
        if self._bucket is None and not self._closed:
            return  # nothing came
        self._require_open().close()
        columns = self._schema.serialize().to_pybytes()
        self._chunks.write_with({self._prefix + b"columns": columns})
        self._bucket = Bucket(self._plan, self._chunks)  # which holds no cells but those it reads

    def close(self) -> None:
        """Let go of the store, as it was at the last flush; the stream takes nothing more."""
        if not self._closed:
            self._closed = True
            self._store.windows -= 1
            if not self._store.windows:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._durable and not self._closed:
            self.flush()
        self.close()

    def _require_open(self) -> Bucket:
        if self._closed:
            raise BadSpecification("this stream was finished or closed: open another")
        if self._bucket is None:
            raise BadSpecification("nothing has come yet: push a batch first, of no rows perhaps")
        return self._bucket

    def _open(self, schema: pa.Schema) -> None:
        """Make the bucket: it is known which columns there are."""
        schema = pa.schema([field.with_nullable(True).remove_metadata() for field in schema])
        hidden = [name for name in schema.names if name.startswith(_RESERVED)]
        if hidden:
            raise BadSpecification(
                f"column {hidden[0]!r}: names that begin with {_RESERVED} are windrow's"
            )
        spec, self._time, self._schema = self.spec, str(self.spec.time), schema
        self._came = list(schema.names)
        spec.check_columns(schema.names)
        empty = schema.empty_table()
        self._delay = _delay(spec, clock_of_times(empty, spec))
        planned, with_masks = plain(spec, empty)
        planned = copy.copy(planned)
        planned.threads = 1
        overflow_is_null(planned)
        rows = with_masks.schema
        if spec.emit == "changes" or spec.every is not None:
            used = {*spec.key, self._time, *spec.tie}
            used |= {column for aggregate in planned.aggregates for column in aggregate.columns}
            rows = pa.schema([field for field in rows if field.name in used])
            self._came = [name for name in rows.names if name in schema.names]
        planned.tie = (*planned.tie, ARRIVAL)
        rows = rows.append(pa.field(ARRIVAL, pa.int64()))
        clock = clock_of_times(empty, spec)
        step = origin = 0
        if spec.every is not None:
            from windrow.columns.ticks import given_origin

            step = clock.length(spec.every, "every=")
            origin = given_origin(spec, clock)
        self._nothing = _shape(spec, empty, clock)
        if self._gone is not None:
            if self._gone in self._nothing.column_names:
                raise BadSpecification(f"gone={self._gone!r}: there is such a column already")
            self._nothing = self._nothing.append_column(self._gone, pa.array([], pa.bool_()))
        self._plan = StreamPlan(
            *(planned, rows, reaches_of(planned, clock)),
            step=step,
            origin=origin,
            made=tuple(name for name in rows.names if name not in schema.names),
        )
        self._bucket = Bucket(self._plan, self._chunks)

    def _ticks(self, moment: pa.Scalar) -> int:
        table = pa.table({self._time: pa.repeat(moment, 1)})
        found = int(time_column(table, self._time, None)[0][0])
        if not _EARLIEST <= found < _LATEST:
            raise BadValue(
                f"{moment.as_py()} in column {self._time!r} is too far from the other times for "
                "a stream, which counts in 62 bits: nanoseconds reach from 1934 to 2079. Leave "
                "the row out, or convert the column to microseconds"
            )
        return found

    def _moment(self, at: Any) -> pa.Scalar:
        """A time as a person gives it, as the column has them."""
        kind = self._schema.field(self._time).type
        why = "it is missing" if is_missing(at) else ""
        if not why and isinstance(at, datetime) and pa.types.is_timestamp(kind):
            zones = {at.utcoffset() is not None, kind.tz is not None}
            why = "one has a zone, the other has none" if len(zones) > 1 else ""
        if isinstance(at, float) and not at.is_integer():
            why = "it is no whole number"
        if not why:
            try:
                return pa.array([at]).cast(kind)[0]
            except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
                why = str(error)
        raise BadValue(f"advance(): {at!r} is not a time like those of {self._time!r}: {why}")


def _refuse(spec: Rolling, gone: Any, store: Any, name: Any) -> None:
    if spec.time is None:
        raise Refused("a stream with lateness= needs time=, the column that lateness is about")
    refuse_on_streams(spec)
    if gone is not None and spec.emit != "changes":
        raise Refused('gone= is for emit="changes", where keys without rows come out once more')
    if (store is None) != (name is None):
        raise BadSpecification("stream(): store= and name= go together")
    if name is not None and (not isinstance(name, str) or not name):
        raise BadSpecification(f"stream(): name= is a text, not {name!r}")
    if store is not None and not isinstance(store, Store):
        raise BadSpecification(
            f'store= is a store, as in windrow.stores.Rocks("folder"), not {store!r}'
        )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def clock_of_times(table: pa.Table, spec: Rolling) -> Clock:
    """How a table's times count; floats are not taken, since moments are made of integers."""
    kind = plain_column(table[str(spec.time)]).type
    if pa.types.is_floating(kind):
        raise Refused(
            f"time column {spec.time!r} has type {kind}: a stream takes timestamps, dates and "
            "integers. Convert the column first"
        )
    return time_column(table, str(spec.time), spec.unit)[1]


def _delay(spec: Rolling, clock: Clock) -> int:
    lateness = spec.lateness
    assert lateness is not None
    zero = isinstance(lateness, Duration) and not lateness.nanoseconds
    return 0 if zero else clock.length(lateness, "lateness=")


def _shape(spec: Rolling, empty: pa.Table, clock: Clock) -> pa.Table:
    """What comes out, without rows."""
    if spec.emit == "changes":
        spec = copy.copy(spec)
        spec.every = 1 if clock.unit is None else duration(f"1{clock.unit}", "every=")
        spec.windows = {label: Time(spec.every) for label in spec.windows}
    found = engine.run(spec, empty)
    if spec.every is not None:
        return pa.table(found)
    for name, array in found.items():
        empty = empty.append_column(name, array)
    return empty
