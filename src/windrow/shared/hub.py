"""Thousands of continuous queries over one stream, and over each of its keys, sharing their state.

Queries of one aggregate and column share one structure, whatever their windows; a mean shares what
a sum and a count keep. A query can be registered and dropped at any time.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import repeat
from typing import Any, Self

from windrow.aggregates import Aggregate, Family, Partial, as_aggregate
from windrow.aggregates.values import listed, rows_of
from windrow.errors import BadSpecification, OutOfOrder
from windrow.shared.line import Extent, Line, Window, as_suffix_or_historical
from windrow.shared.query import EACH, Each, Queries, Query, as_key, make_query
from windrow.shared.substream import Choice, Substream
from windrow.shared.told import Told
from windrow.slides import Rows
from windrow.times import duration
from windrow.words import Lines

__all__ = ["EACH", "Each", "Hub", "Lifted", "Query", "as_key"]

Lifted = tuple[int | None, Substream | None, list[Partial], list[Partial]]
"""A row's time, its key's stream, and its partials for the whole stream and for the key's."""


class Hub:
    """Register queries, insert rows, look answers up.

    >>> import windrow as wr
    >>> hub = wr.Hub()
    >>> high = hub.register(wr.Max(), wr.rows(3))
    >>> mean = hub.register(wr.Mean(), wr.rows(2, ending=1))
    >>> hub.insert_many([5, 1, 2, 4])
    >>> hub.lookup(high), hub.lookup(mean)
    (4, 1.5)

    ``key=`` says whose rows a query is about: nobody's in particular (the whole stream), one key's,
    or ``wr.EACH`` key's. Where aggregates name columns, rows are mappings. Times never go back,
    over all keys together, and answers are as of the newest row, or of a later moment ``now=``.

    A key is dropped when no window can hold a row of it any more; where windows of rows keep keys
    for ever, ``idle=`` says after how long without a row a key is dropped.

    A query that is registered while rows come finds the rows that the queries before it kept: those
    of its own aggregate and column, as far back as they were needed. ``complete(query)`` says
    whether its window is whole.
    """

    def __init__(self, *, idle: Any = None, unit: str | None = None) -> None:
        self._unit = unit
        self._idle = None if idle is None else duration(idle, "idle=")
        self._queries = Queries()
        self._names = 0
        self.clock = Line(unit)  # the whole stream's time, also when nobody asks for its rows
        self._whole = Substream(unit)
        self._keys: dict[Hashable, Substream] = {}  # by their last row: the idlest come first
        self._advanced: int | None = None
        self._lost = False  # whether rows came of keys that were not kept
        self._lost_at: int | None = None  # and when the last of them was
        self.on_drop: Callable[[Any], None] | None = None
        self._extents: dict[Window, Extent] = {}
        self._told = Told()
        self._idle_ticks: int | None = None
        self._idle_version = -1  # of the queries for which that is known

    # --- queries --------------------------------------------------------------------------------

    def register(
        self, aggregate: Aggregate | type[Aggregate], window: Any, key: Any = None
    ) -> Query:
        """A new query; ask for its answer with ``lookup``."""
        made = as_aggregate(aggregate)
        found = as_suffix_or_historical(window)
        query = make_query(self._names, made, found, as_key(key))
        if self.clock.clock is not None and not isinstance(found, Rows):
            self.clock.length(found.length)  # a length that cannot be meant is an error now
        self._names += 1
        self._queries.add(query)
        return query

    def drop(self, query: Query) -> None:
        """Answer a query no more; what only it needed is let go."""
        self._queries.require(query)
        self._queries.remove(query)
        self._told.forget(query)

    @property
    def queries(self) -> list[Query]:
        """The queries, in the order they were registered."""
        return list(self._queries.by_number.values())

    def _whole_stream(self) -> Substream:
        if self._whole.version != self._queries.version:
            self._whole.follow(self._queries.plan(None), self._queries.version)
        return self._whole

    def substream(self, key: Any) -> Substream | None:
        """What is kept of a key, if anything."""
        found = self._keys.get(key)
        if found is not None and found.version != self._queries.version:
            found.follow(self._queries.plan(key), self._queries.version)
        return found

    # --- rows -----------------------------------------------------------------------------------

    def insert(self, value: Any, key: Any = None, at: Any = None) -> None:
        """A row; a value, key or time that is refused changes nothing."""
        key = as_key(key)
        self.take(key, at, self.lifted(value, key, at))

    def take(self, key: Any, at: Any, row: Lifted) -> None:
        """A row that ``lifted`` checked, before anything else came."""
        ticks, stream, _, _ = row
        self._push(stream, at, row)
        if stream is not None:
            stream.append(ticks)
            self._keys.pop(key, None)
            self._keys[key] = stream
            self._told.touch(key)
        elif key is not None:
            self._lose(True, ticks)
        self._whole.append(ticks)
        self.clock.append(ticks)
        self.clock.forget(self.clock.end - 1)
        if ticks is not None:
            self._drop_idle(ticks)

    def _push(self, stream: Substream | None, at: Any, row: Lifted) -> None:
        """A row for the whole stream and for its key's, or for none."""
        ticks, _, partials, own = row
        try:
            self._whole.line.admit(at)
            self._whole.push(partials, ticks)
        except BaseException:
            self._undecide([])
            raise
        if stream is not None:
            try:
                stream.line.admit(at)
                stream.push(own, ticks)
            except BaseException:
                self._whole.take_back()
                self._undecide([])
                raise

    def _lose(self, rows: bool, ticks: int | None) -> None:
        """A key's rows up to then are not kept: what comes of a key may not be all."""
        self._lost |= rows
        if ticks is not None:
            self._lost_at = ticks if self._lost_at is None else max(self._lost_at, ticks)

    def _unseen(self) -> Substream:
        """A key of which nothing is kept."""
        stream = Substream(self._unit)
        stream.line.lost, stream.line.gone = self._lost, self._lost_at
        return stream

    def _undecide(self, families: list[Family]) -> None:
        """A row that is refused decides nothing about those to come."""
        self.clock.undecide()
        self._whole.line.undecide()
        for family in families:
            family.forget()

    def lifted(self, value: Any, key: Any, at: Any) -> Lifted:
        """A row's partials; what ``insert`` would raise is raised, and nothing is changed."""
        unknown: list[Family] = []
        try:
            return self._lifted(value, key, at, unknown)
        except BaseException:
            self._undecide(unknown)
            raise

    def _lifted(self, value: Any, key: Any, at: Any, unknown: list[Family]) -> Lifted:
        ticks = self.clock.admit(at)
        if self._advanced is not None and (ticks is None or ticks < self._advanced):
            raise OutOfOrder(
                f"time {at!r} is before {self.shown(self._advanced)!r}, which was said to have "
                "passed: sort the rows by time"
            )
        whole = self._whole_stream()
        stream = None
        if key is not None:
            stream = self.substream(key)
            plan = self._queries.plan(key)
            if stream is None and plan.choices:
                stream = self._unseen()
                stream.follow(plan, self._queries.version)
        elif self._queries.need_keys:
            raise BadSpecification("queries are about keys: insert(value, key=...)")
        for one in (whole, stream):
            if one is not None:
                one.measure(self.clock)
        if ticks is not None:
            self._measure_silence()
        unknown += whole.undecided() + ([] if stream is None else stream.undecided())
        return ticks, stream, whole.lift(value), [] if stream is None else stream.lift(value)

    def advance(self, now: Any) -> int | None:
        """Time has passed without a row: answers are as of then, and no earlier row may come."""
        self._advanced = self.clock.now(now)
        if self._advanced is not None:
            self._drop_idle(self._advanced)
        return self._advanced

    def _moment(self, now: Any) -> int | None:
        return self.now_ticks if now is None else self.clock.now(now)

    @property
    def now_ticks(self) -> int | None:
        """The newest row's time, or the later one that ``advance`` said."""
        newest = self.clock.now(None)
        if newest is None or self._advanced is None:
            return newest
        return max(newest, self._advanced)

    def ticks(self, at: Any) -> int | None:
        """A moment as the hub counts."""
        return None if at is None else self.clock.now(at)

    def shown(self, ticks: int | None) -> Any:
        """A moment as the rows' times are."""
        return (
            None
            if ticks is None or self.clock.clock is None
            else self.clock.clock.from_ticks(ticks)
        )

    def insert_many(
        self,
        values: Iterable[Any] | Mapping[str, Iterable[Any]],
        keys: Iterable[Any] | None = None,
        at: Iterable[Any] | None = None,
    ) -> None:
        """Rows in order: values, a mapping from columns to values, or a table of pyarrow."""
        rows = rows_of(values)
        owners: list[Any] = [None] * len(rows) if keys is None else listed(keys)
        moments: list[Any] = [None] * len(rows) if at is None else listed(at)
        if not len(rows) == len(owners) == len(moments):
            raise BadSpecification(
                f"{len(rows)} rows with keys= of {len(owners)} and at= of {len(moments)}: "
                "each row needs its own"
            )
        for value, key, moment in zip(rows, owners, moments, strict=True):
            self.insert(value, key, moment)

    def _measure_silence(self) -> None:
        if self._idle_version != self._queries.version:
            self._idle_ticks = self._queries.longest_silence(self.clock, self._idle)
            self._idle_version = self._queries.version

    def _drop_idle(self, now: int) -> None:
        self._measure_silence()
        if self._idle_ticks is None:
            return
        while self._keys:
            key = next(iter(self._keys))
            newest = self._keys[key].line.newest
            if newest >= now - self._idle_ticks:
                return
            del self._keys[key]
            self._lose(self._idle is None, newest)  # idle= says that such a key begins anew
            self._told.touch(key)
            if self.on_drop is not None:
                self.on_drop(key)

    @property
    def keys(self) -> list[Any]:
        """The keys that have rows, those that were silent for longest first."""
        return list(self._keys)

    # --- answers --------------------------------------------------------------------------------

    def lookup(self, query: Query, key: Any = None, now: Any = None) -> Any:
        """A query's answer as of now; ``key=`` for queries of each key."""
        self._queries.require(query)
        key = as_key(key)
        if query.key is not EACH and key is not None and key != query.key:
            raise BadSpecification(f"{query!r} is not about {key!r}")
        if query.key is EACH and key is None:
            raise BadSpecification(f"{query!r} is about each key: lookup(query, key=...)")
        return self._answer(query, key if query.key is EACH else query.key, self._moment(now))

    def lookup_many(
        self, queries: Iterable[Query], keys: Iterable[Any] | None = None, now: Any = None
    ) -> list[Any]:
        """The answers of several queries, with a key each where they are of each key."""
        asked = repeat(None) if keys is None else keys
        return [self.lookup(q, key, now) for q, key in zip(queries, asked, strict=False)]

    def complete(self, query: Query, key: Any = None, now: Any = None) -> bool:
        """Whether the hub knows all rows of the query's window: not so soon after it registered."""
        self._queries.require(query)
        about = as_key(key) if query.key is EACH else query.key
        if not self.clock.end:
            return True
        stream = self._whole_stream() if about is None else self.substream(about)
        moment, extent = self._moment(now), self.extent(query.window)
        if stream is None:
            return not self._unseen().line.misses(extent, moment)
        return all(stream.complete(part, extent, moment) for part in query.names)

    def extent(self, window: Window) -> Extent:
        """A window as this hub's rows count."""
        found = self._extents.get(window)
        if found is None:
            found = self._extents[window] = self.clock.extent(window)
        return found

    def _answer(self, query: Query, key: Any, now: int | None) -> Any:
        stream = self._whole_stream() if key is None else self.substream(key)
        if stream is None or not stream.line.end:
            return query.aggregate.empty
        left, right = stream.line.span(self.extent(query.window), now)
        if len(query.names) == 1:
            return stream.answer(query.names[0], query.aggregate, left, right)
        return query.aggregate.answer(query.assemble(stream.totals(query.names, left, right)))

    def changes(self, now: Any = None) -> dict[Any, Any]:
        """The answers that are others than when last asked, by query, or by (query, key)."""
        moment = self._moment(now)
        queries = [(query, query.key is EACH) for query in self.queries]
        return self._told.changes(
            queries, self._keys, lambda query, key: self._answer(query, key, moment), moment
        )

    # --- for the curious ------------------------------------------------------------------------

    def choices(self, key: Any = None) -> list[Choice]:
        """The structures of the whole stream, or of a key (``EACH``: of any key)."""
        stream = self._whole_stream()
        return list((stream.plan if key is None else self._queries.plan(key)).choices.values())

    def stored_partials(self) -> int:
        """Partials kept, over all keys."""
        streams = [self._whole, *self._keys.values()]
        return sum(stream.stored_partials() for stream in streams)

    def explain(self) -> str:
        """Which structures serve which queries, and why."""
        lines = [
            f"{len(self._queries)} queries, {len(self._keys)} keys, "
            f"{self.stored_partials()} partials kept"
        ]
        named = [key for key in self._queries.about if key is not None and key is not EACH]
        for key in (None, EACH, *named):
            choices = self.choices(key)
            if not choices:
                continue
            title = "the whole stream" if key is None else "each key"
            lines.append(title if key is None or key is EACH else f"key {key!r}")
            for choice in choices:
                card = choice.structure.card
                lines.append(
                    f"  {choice.part!r} for {len(choice.windows)} windows: {card.title}, "
                    f"{choice.reason}; update {card.update}, lookup {card.lookup}"
                )
        return Lines("\n".join(lines))

    def __repr__(self) -> str:
        return f"<Hub of {len(self._queries)} queries and {len(self._keys)} keys>"

    # --- bytes ----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Queries and rows: versioned, checksummed, no pickle."""
        from windrow.shared.hub_bytes import write

        return write(self)

    @classmethod
    def from_bytes(cls, data: bytes, own: Iterable[type[Aggregate]] = ()) -> Self:
        """What ``to_bytes`` wrote; ``own`` are the aggregates that are not windrow's."""
        from windrow.shared.hub_bytes import read

        hub = cls()
        read(hub, data, own)
        return hub
