"""One bucket of a stream: all rows of some keys, their windows, and the state between two turns.

A turn takes rows in any order and a frontier: the time before which no more rows are expected. Rows
before it are answered, in order of time; the others wait. What is kept lies in a store, as cells
(``windrow.stores.chunks``: in Spark's state, or in any other):

    waiting    rows at or after the frontier, whole
    log        rows before the frontier, only the columns that windows look at, in segments of time
    middles    for each time window a queue of folded segments (``segment_queue``)
    recent     for each rows window the last rows of every key
    totals     for a window that no row leaves what each key's rows amount to (``key_views``)
    counters   for sequential aggregates a state for every key, and no rows (``counter_cells``)

and a *head* that says where everything is; its size does not depend on rows, keys or lengths of
windows. A segment is written once, read while it leaves a window, and removed when it has left the
longest. Between the rows that leave and those that come, all other segments are in every window of
the turn: they come folded, from two cells. So a turn touches a bounded number of cells.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from windrow.columns import carried
from windrow.columns.cells import Cell, Cells, Shelf
from windrow.columns.column import array_of, plain_column, valid_of
from windrow.columns.contract import adapt
from windrow.columns.counter_cells import CounterCells
from windrow.columns.emission import EMISSIONS
from windrow.columns.forms import form_of
from windrow.columns.key_views import EverView, RowsView, view_of
from windrow.columns.prepare import Prepared, time_column
from windrow.columns.ranges import Array
from windrow.columns.stream_plan import (
    FOR_EVER,
    LONG_AGO,
    Chunks,
    Head,
    StreamPlan,
    Turn,
    ticks,
)
from windrow.columns.views import New, TimeView
from windrow.errors import Refused
from windrow.stores.chunks import Space

_MOST_SPLIT = 4
_MOST_WAITING = 64
_NO_TIMES = np.empty(0, np.int64)


class Store(Protocol):
    """Where a bucket's state lies."""

    log: Space
    waiting: Space

    def load(self) -> bytes | None:
        """The head, where there is one."""

    def save(self, head: bytes) -> None:
        """Write the head."""


class Bucket:
    """The state of some keys, for one turn."""

    def __init__(self, plan: StreamPlan, store: Store, head: bytes | None = None) -> None:
        self.store = store
        self.turn = Turn()
        traffic = self.turn.traffic
        data = store.load() if head is None else head
        traffic.calls += 1
        traffic.bytes_read += len(data or b"")
        self.head = Head(plan.contract()) if data is None else Head.from_bytes(data)
        self.plan = plan = self.planned(plan)
        self.spec = plan.spec
        self.log = Cells(store.log, "segment", traffic, self.head.sizes)
        self.waiting = Cells(store.waiting, "waiting rows", traffic)
        self.forms = {a: form_of(a, plan.schema) for a in plan.folded}
        self.adapted = self.head.contract != plan.contract()
        """Whether windows or aggregates are others than those of the last turn."""
        if self.adapted:
            adapt(self)
        self.counters: CounterCells | None = None
        if self.spec.sequential:
            clock = time_column(plan.schema.empty_table(), str(self.spec.time), self.spec.unit)[1]
            self.counters = CounterCells(self, clock)

    def planned(self, plan: StreamPlan) -> StreamPlan:
        """What is to be computed, where the state has a say in it."""
        return plan

    def advance(self, tables: Sequence[pa.Table], frontier: int | None) -> Turn:
        """Take rows, answer those before the frontier, keep the others."""
        head = self.head
        if frontier is None or (head.frontier is not None and frontier < head.frontier):
            frontier = head.frontier
        emit = EMISSIONS[self.plan.emission]
        self.turn.answered = emit(self, self._in_time(tables), frontier)
        return self.turn

    def again(self, tables: Sequence[pa.Table], frontier: int | None) -> Turn:
        """Another turn of the same bucket, which holds its cells until it is closed."""
        self.turn = Turn()
        turn = self.advance(tables, frontier)
        self.adapted = False
        return turn

    def saved(self) -> Any:
        """How it stands between two turns, for ``back``."""
        return self.head.to_bytes(), self.log.saved(), self.waiting.saved(), self.adapted

    @staticmethod
    def back(plan: StreamPlan, store: Store, saved: Any) -> "Bucket":
        """A bucket as it stood."""
        head, log, waiting, adapted = saved
        bucket = Bucket(plan, store, head)
        bucket.log.back(log)
        bucket.waiting.back(waiting)
        bucket.adapted = adapted
        return bucket

    def seed(self, tables: Sequence[pa.Table], until: int, told: bool = False) -> None:
        """Begin with rows from elsewhere: those before a time were answered there.

        ``told``: the same answers came out there.
        """
        if self.head.frontier is not None:
            raise Refused("there is a state already: history= is for a new checkpoint")
        found = carried.parts(tables)
        rows = found.get(carried.ROWS)
        if rows is not None:
            rows = self.plan.aligned(rows)
            valid = valid_of(plain_column(rows[str(self.spec.time)]))
            rows = rows if valid is None else rows.filter(array_of(valid))
        ready = self.released(rows, until)
        new = None if ready is None else self.in_order(ready)
        views = self.views()
        if self.counters is not None and new is not None:
            self.counters.answer(new, {})
        rest = [view for view in views if not self._begins_with(view, found)]
        begun = [view for view in rest if self._goes_on_from_totals(view, found)]
        if new is not None or begun:
            self._keep_apart(new, rest, begun)
        self.adapted = not told
        self.carry(found)

    def _begins_with(self, view: Any, found: dict[str, pa.Table]) -> bool:
        """Whether a rows window has its last rows from elsewhere, some of which the log has too."""
        table = found.get(carried.of_window(repr(self.spec.windows[view.label])))
        if table is None or not isinstance(view, RowsView):
            return False
        head = self.head
        assert head.frontier is not None
        table = self.plan.aligned(table)
        view.keep(table.select(self.plan.kept), head.frontier - self.plan.overlap)
        latest = int(ticks(table, self.spec).max())
        head.latest = max(latest + 1, head.latest or LONG_AGO)
        return True

    def _goes_on_from_totals(self, view: Any, found: dict[str, pa.Table]) -> bool:
        """Whether a window that no row leaves has totals from elsewhere."""
        window = repr(self.spec.windows[view.label])
        totals = carried.total_in(found, window, self.spec.key)
        if totals is None or not isinstance(view, EverView):
            return False
        head = self.head
        assert head.frontier is not None
        rows = found.get(carried.after_total(window))
        ordered = None if rows is None else self.in_order(self.plan.aligned(rows)).table
        view.begin(totals, ordered, head.frontier - self.plan.overlap)
        head.latest = max(view.sight.back_low, head.latest or LONG_AGO)
        return True

    def _keep_apart(self, new: New | None, views: list[Any], begun: list[Any]) -> None:
        """Keep rows of which those before a border are in a window's totals already."""
        kept, times = self._kept_of(new)
        borders = {view: view.sight.back_low for view in begun}
        for low, high in pairwise([LONG_AGO, *sorted(set(borders.values())), FOR_EVER]):
            for view in begun:
                if borders[view] == low:
                    view.go_on()
            some = (times >= low) & (times < high)
            part = [v for v in views if v.looks_back or borders.get(v, low) <= low]
            self._keep(_filtered(kept, some), times[some], part)

    def carry(self, found: dict[str, pa.Table]) -> None:
        """Take over what else there is."""

    def close(self) -> None:
        """Write everything that has changed."""
        head, log = self.head, self.log
        log.flush()
        self.waiting.flush()
        head.log_bytes += log.growth
        head.waiting_bytes += self.waiting.growth
        log.growth = self.waiting.growth = 0
        head.sizes = {}
        for sight in head.sights.values():
            shelf, at = Shelf(log, sight.shelf), sight.borders
            for number in (at.f, ~at.front_sum, ~at.back_sum):
                place = shelf.number(number)
                if log.sizes.get(place):
                    head.sizes[place] = log.sizes[place]
        data = head.to_bytes()
        self.turn.traffic.calls += 1
        self.turn.traffic.bytes_written += len(data)
        self.store.save(data)

    # --- rows that come, wait, and are released -------------------------------------------------

    def _in_time(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """The rows that are not late, and have a time."""
        tables = [self.plan.aligned(table) for table in tables if table.num_rows]
        if not tables:
            return None
        table = pa.concat_tables(tables)
        turn, name = self.turn, str(self.spec.time)
        turn.rows = table.num_rows
        valid = valid_of(plain_column(table[name]))
        if valid is not None:
            turn.without_time = int((~valid).sum())
            turn.late = table.filter(array_of(~valid))
            table = table.filter(array_of(valid))
        if not table.num_rows:
            return None
        times = ticks(table, self.spec)
        turn.latest = int(times.max())
        if self.head.frontier is not None and times.min() < self.head.frontier:
            good = times >= self.head.frontier
            late = table.filter(array_of(~good))
            turn.late = late if turn.late is None else pa.concat_tables([turn.late, late])
            table = table.filter(array_of(good))
        return table if table.num_rows else None

    def released(self, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
        """Rows before the frontier, of those that wait and those that came; the others wait on.

        A cell that is only partly released stays as it is while most of its rows wait, and while
        there are few such cells: else what is left of it is written again, with what came.
        """
        head = self.head
        ready: list[pa.Table] = []
        rest: list[pa.Table] = []
        if came is not None:
            came = came.select(self.plan.held)
            now, later = self._split(came, None, frontier)
            ready.append(now)
            rest.append(later)
        held = [] if frontier is None else [w for w in head.waiting if w[1] < frontier]
        stay: list[list[int]] = []
        for entry in held:
            number, _, latest, _ = entry
            table = self._held(number)
            now, later = self._split(table, head.frontier, frontier)
            ready.append(now)
            if 2 * later.num_rows > table.num_rows and len(stay) < _MOST_SPLIT:
                earliest = int(ticks(later, self.spec).min())
                stay.append([number, earliest, latest, later.num_rows])
            else:
                rest.append(later)
                self.waiting.remove(number)
        head.waiting = [w for w in head.waiting if w not in held] + stay
        self._wait(rest)
        if len(head.waiting) > _MOST_WAITING:
            self._join_two()
        found = [table for table in ready if table.num_rows]
        head.frontier = frontier
        return pa.concat_tables(found) if found else None

    def open_rows(self) -> list[pa.Table]:
        """All rows that wait."""
        tables = [self._held(number) for number, *_ in self.head.waiting]
        return [self._split(table, None, self.head.frontier)[1] for table in tables]

    def _held(self, number: int) -> pa.Table:
        return self.plan.aligned(self.waiting[number].table, self.plan.held)

    def _split(
        self, table: pa.Table, after: int | None, frontier: int | None
    ) -> tuple[pa.Table, pa.Table]:
        """Rows from a time on and before the frontier, and those behind it."""
        if frontier is None:
            return table.slice(0, 0), table
        times = ticks(table, self.spec)
        now = times < frontier
        later = ~now
        if after is not None:
            now = now & (times >= after)
        return _filtered(table, now), _filtered(table, later)

    def _wait(self, tables: list[pa.Table]) -> None:
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        table = pa.concat_tables(tables)
        times = ticks(table, self.spec)
        if len(times) > self.plan.segment_rows:
            order = np.argsort(times, kind="stable")
            table, times = table.take(array_of(order)), times[order]
        for first in range(0, len(times), self.plan.segment_rows):
            some = times[first : first + self.plan.segment_rows]
            number = self.head.next_waiting
            self.head.next_waiting += 1
            self.waiting[number] = Cell(table.slice(first, len(some)).combine_chunks(), {})
            self.head.waiting.append([number, int(some.min()), int(some.max()), len(some)])

    def _join_two(self) -> None:
        """Two cells that wait as one: those that follow each other in time with the fewest rows."""
        head = self.head
        head.waiting.sort(key=lambda entry: entry[1])
        sizes = [a[3] + b[3] for a, b in pairwise(head.waiting)]
        place = sizes.index(min(sizes))
        both = head.waiting[place : place + 2]
        del head.waiting[place : place + 2]
        rows = []
        for number, *_ in both:
            rows.append(self._split(self._held(number), None, head.frontier)[1])
            self.waiting.remove(number)
        self._wait(rows)

    # --- answers, and what is kept for later ones -----------------------------------------------

    def views(self) -> list[Any]:
        """One for every window that rows are kept for."""
        return [view_of(self, label) for label, texts in self.plan.pairs.items() if texts]

    def in_order(self, table: pa.Table) -> New:
        """Rows by key, time and tie."""
        spec = self.spec
        table = table.combine_chunks()
        ready = Prepared(table, spec.key, spec.time, spec.tie, spec.unit, 1)
        if ready.order is not None:
            table = table.take(array_of(ready.order))
        assert ready.time is not None
        return New(table, ready.time, ready.offsets)

    def answers(self, new: New, views: list[Any]) -> dict[str, pa.Array]:
        """The answers of what is asked for, by name."""
        kept = new.table.select(self.plan.kept)
        answers: dict[str, pa.Array] = {}
        if self.counters is not None:
            self.counters.answer(new, answers)
        for view in views:
            view.answer(new, kept, answers)
        return {name: answers[name] for name, _, _ in self.spec.outputs}

    def keep(self, new: New | None, views: list[Any]) -> None:
        """Rows that were released go to where later windows find them."""
        self._keep(*self._kept_of(new), views)

    def _kept_of(self, new: New | None) -> tuple[pa.Table, Array]:
        """What is kept of rows that were released, and their times."""
        if new is None:
            return self.plan.schema.empty_table().select(self.plan.kept), _NO_TIMES
        self.head.latest = max(new.latest + 1, self.head.latest or LONG_AGO)
        return new.table.select(self.plan.kept), new.time

    def _keep(self, kept: pa.Table, times: Array, views: list[Any]) -> None:
        """Rows that some window will still see go to the log, in segments of their own."""
        head = self.head
        assert head.frontier is not None
        horizon = head.frontier - self.plan.overlap
        for view in views:
            if isinstance(view, RowsView):
                view.keep(kept, horizon)
        timed = [view for view in views if isinstance(view, TimeView)]
        if not timed:
            return
        start = min(view.since for view in timed)
        for low, high in self._cuts(times[times >= horizon + start]):
            segment = _filtered(kept, (times >= low) & (times < high))
            self.log[head.next] = Cell(segment, {"low": low, "high": high})
            head.next += 1
            head.log_rows += segment.num_rows
        for view in timed:
            view.take_in(horizon)
        oldest = min(view.sight.tail for view in timed)
        for number in range(head.oldest, oldest):
            head.log_rows -= self.log[number].table.num_rows
            self.log.remove(number)
        head.oldest = oldest

    def _cuts(self, times: Array) -> list[tuple[int, int]]:
        """Where each segment begins and ends; rows of equal time stay together."""
        if not len(times):
            return []
        borders = [int(times.min())]
        if len(times) > self.plan.segment_rows:
            ordered = np.sort(times)
            for place in range(self.plan.segment_rows, len(ordered), self.plan.segment_rows):
                if ordered[place] > borders[-1]:
                    borders.append(int(ordered[place]))
        borders.append(int(times.max()) + 1)
        return list(pairwise(borders))

    def forget_the_dead(self) -> None:
        """If no window can see any row of the log again, it is emptied at once."""
        head = self.head
        if head.latest is None or head.frontier is None:
            return
        starts = [reach.start for reach in self.plan.reaches.values()]
        if self.counters is not None:
            reach = self.counters.reach()
            if reach is None:
                return
            starts.append(-reach)
        if head.latest > head.frontier - self.plan.overlap + min(starts):
            return
        self.log.clear(head.log_bytes)
        head.sights, head.latest, head.log_rows = {}, None, 0
        head.oldest, head.shelves, head.counters = head.next, 1, Chunks()


def _filtered(table: pa.Table, keep: Array) -> pa.Table:
    return table if keep.all() else table.filter(array_of(keep))
