"""Rows that come sorted, batch after batch: only the live rows of the keys that may go on are kept.

What a sorted partition needs and nothing more. Rows sorted by key and time: the last key of a batch
may go on in the next one, every other key is done. Rows that come by one number (see ``ordered``):
the keys that share the last prefix may go on. Batches are gathered until there are as many new rows
as kept ones, so that a row is looked at twice at most, however long its windows are.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from windrow.columns import engine
from windrow.columns.column import array_of
from windrow.columns.gathered import gathered
from windrow.columns.ordered import ORDER, arranged, whole_moments
from windrow.columns.prepare import Prepared, time_column
from windrow.columns.ranges import Array
from windrow.columns.sequential import Counters, keys_of_runs, machines_of, scattered
from windrow.rolling import Rolling
from windrow.slides import Bounds, Kept, Rows, Session

GATHERED_ROWS = 1 << 17
GATHERED_BYTES = 64 << 20

Answers = Callable[[Rolling, Prepared], dict[str, pa.Array]]


class Carry:
    """``push`` sorted tables; rows come back with their answers once nothing can change them.

    ``answers`` makes the answer columns of a prepared table, one value per row. ``by_number``: rows
    come by their column ``ORDER``, and the rows of a moment in one table.
    """

    def __init__(
        self, spec: Rolling, answers: Answers = engine.answers, by_number: bool = False
    ) -> None:
        self.spec = copy.copy(spec)
        self.spec.threads = 1
        if not by_number:
            self.spec.tie = ()  # the rows come in that order
        self.by_number = by_number
        self._answers = answers
        self._folded = folded_only(self.spec)
        self._counters: Counters | None = None
        self._kept: pa.Table | None = None
        self._answered: Array = np.empty(0, np.bool_)
        self._ticked: int | None = None

    @property
    def rows_kept(self) -> int:
        """How many rows are kept for windows to come, answered or not."""
        return 0 if self._kept is None else int(self._kept.num_rows)

    def push(self, batch: pa.Table, last: bool = False) -> pa.Table:
        """Take one row or more; return those that are certain. ``last``: no more will come."""
        table, answered, ready, going_on = self._prepared(batch)
        final, needed = np.ones(ready.size, np.bool_), np.zeros(ready.size, np.bool_)
        if not last:
            runs = ready.offsets[-going_on - 1 :]
            latest = 0 if ready.time is None else int(ready.time[runs[1:] - 1].max())
            for start, end in pairwise(runs.tolist()):
                until, since = self._reach(ready, start, end, latest)
                final[until:end] = False
                needed[since:end] = True
        if self.spec.every is not None:
            out = self._ticks(table, ready, int(ready.offsets[-2]), last)
        else:
            new = final & ~answered
            found: dict[str, pa.Array] = {}
            if self._folded.outputs:
                found = self._answers(self._folded, ready)
            if self.spec.sequential:
                found |= self._fed(table, ready, new, 0 if last else going_on)
            out = table
            for name, _, _ in self.spec.outputs:
                out = out.append_column(name, found[name])
            out = _chosen(out, new)
        self._kept = _chosen(table, needed) if needed.any() else None
        self._answered = final[needed]
        return out.drop_columns([ORDER]) if self.by_number else out

    def _fed(
        self, table: pa.Table, ready: Prepared, new: Array, going_on: int
    ) -> dict[str, pa.Array]:
        """Sequential answers of the rows that are certain now; counters of keys that go on stay."""
        if self._counters is None:
            self._counters = Counters(machines_of(self.spec, ready.clock), [], 0)
        runs = len(ready.offsets) - 1
        keys = keys_of_runs(table, self.spec.key, ready.offsets[:-1])
        slots = self._counters.places(keys, runs)
        found = self._counters.feed(ready, slots, new)
        self._counters = self._counters.taken(slots[runs - going_on :])
        return {name: scattered(array, new) for name, array in found.items()}

    def _prepared(self, batch: pa.Table) -> tuple[pa.Table, Array, Prepared, int]:
        """All rows in order, which of them were answered before, and how many keys may go on."""
        table = batch if self._kept is None else pa.concat_tables([self._kept, batch])
        answered = np.zeros(table.num_rows, np.bool_)
        answered[: self.rows_kept] = self._answered
        if not self.by_number:
            return table, answered, engine.prepare(self.spec, table), 1
        places, runs, going_on = arranged(self.spec, table)
        if places is not None:
            table, answered = table.combine_chunks().take(array_of(places)), answered[places]
        return table, answered, engine.prepare(self.spec, table, runs), going_on

    def _reach(self, ready: Prepared, start: int, end: int, latest: int) -> tuple[int, int]:
        """The first row of a run that later rows can change, and that a later window can reach.

        ``latest``: no later row has a time before that.
        """
        windows = self.spec.windows
        if any(isinstance(window, Bounds | Kept) for window in windows.values()):
            return start, start
        final = end
        for label, window in windows.items():
            if isinstance(window, Rows):
                final = min(final, end - window.after)
                continue
            _, ending, after = self._lengths(ready, label)
            assert ready.time is not None
            side: Any = "left" if window.includes_end else "right"  # type: ignore[union-attr]
            until = latest + ending - after
            final = min(final, start + int(np.searchsorted(ready.time[start:end], until, side)))
        final = max(final, start)
        if not self._folded.outputs:
            return final, final
        needed = final
        waiting = latest
        if ready.time is not None and final < end and self.spec.every is None:
            waiting = int(ready.time[final])
        for label, window in windows.items():
            if isinstance(window, Rows):
                reached = final - window.ending - window.n + 1
                if window.within is not None:
                    oldest = waiting - engine.limit(ready, window.within, label)
                    reached = max(reached, _first_from(ready, start, end, oldest))
            elif isinstance(window, Session):
                reached = _session_from(ready, label, window, start, end, final, latest)
            else:
                length, ending, _ = self._lengths(ready, label)
                reached = _first_from(ready, start, end, waiting - ending - length)
            needed = min(needed, reached)
        return final, max(needed, start)

    def _lengths(self, ready: Prepared, label: str) -> tuple[int, int, int]:
        window = self.spec.windows[label]
        return engine.lengths(ready, window.near, label)  # type: ignore[union-attr]

    def _ticks(self, table: pa.Table, ready: Prepared, start: int, last: bool) -> pa.Table:
        """Ticks after those given out before, and before the time of the key that may go on.

        The key that went on, those in between, and the one that may go on are done one by one.
        """
        assert ready.time is not None
        size = ready.size
        carried = int(ready.offsets[1]) if self._ticked is not None else 0
        after = self._ticked
        out = []
        if carried and (last or start >= carried):
            out.append(self._some_ticks(table.slice(0, carried), after, None))
            after = None
        else:
            carried = 0
        if last:
            out.append(self._some_ticks(table.slice(carried), None, None))
            return pa.concat_tables(out)
        latest = int(ready.time[size - 1])
        out.append(self._some_ticks(table.slice(carried, start - carried), None, None))
        out.append(self._some_ticks(table.slice(start), after, latest))
        self._ticked = latest - 1
        return pa.concat_tables(out)

    def _some_ticks(self, table: pa.Table, after: int | None, before: int | None) -> pa.Table:
        assert self.spec.time is not None
        ready = engine.prepare(self.spec, table)
        out = pa.table(self._answers(self.spec, ready))
        ticks = time_column(out, self.spec.time, self.spec.unit)[0]
        keep = np.ones(len(ticks), np.bool_)
        keep &= True if after is None else ticks > after
        keep &= True if before is None else ticks < before
        return out.filter(array_of(keep))


def folded_only(spec: Rolling) -> Rolling:
    """The specification without its sequential outputs, which have states instead of live rows."""
    if not spec.sequential:
        return spec
    return spec.part(lambda aggregate, _: aggregate.kind != "sequential")


def _first_from(ready: Prepared, start: int, end: int, oldest: int) -> int:
    """The first row of a run whose time is not before ``oldest``."""
    assert ready.time is not None
    return start + int(np.searchsorted(ready.time[start:end], oldest))


def _session_from(
    ready: Prepared, label: str, window: Session, start: int, end: int, final: int, latest: int
) -> int:
    """The first row of a run in the session of its first row that waits, or else of its last one.

    ``latest``: no later row has a time before that.
    """
    assert ready.time is not None
    gap, time = engine.pause(ready, label, window), ready.time[start:end]
    place = min(final, end - 1) - start
    if final == end and latest - int(time[-1]) > gap:
        return end
    return start + engine.session_start(time, place, gap)


def _chosen(table: pa.Table, rows: Array) -> pa.Table:
    """The rows that are marked, without a copy where they follow each other."""
    places = np.flatnonzero(rows)
    if not len(places):
        return table.slice(0, 0)
    if places[-1] - places[0] + 1 == len(places):
        return table.slice(int(places[0]), len(places))
    return table.take(array_of(places))


class Carrier(Protocol):
    """What takes sorted rows, keeps some, and gives back what is certain."""

    by_number: bool

    @property
    def rows_kept(self) -> int:
        """How many rows are kept."""

    def push(self, batch: pa.Table, last: bool = False) -> pa.Table:
        """Take one row or more."""


def run_sorted(batches: Iterable[pa.RecordBatch], carry: Carrier) -> Iterator[pa.Table]:
    """Every row of a sorted partition with its answers."""

    def enough(rows: int, size: int) -> bool:
        """As many rows as the carry keeps, and enough to be worth it."""
        return rows >= carry.rows_kept and (rows >= GATHERED_ROWS or size >= GATHERED_BYTES)

    waiting: pa.Table | None = None
    tables = gathered(batches, enough)
    for table in whole_moments(tables) if carry.by_number else tables:
        if waiting is not None:
            yield carry.push(waiting)
        waiting = table
    if waiting is not None:
        yield carry.push(waiting, last=True)
