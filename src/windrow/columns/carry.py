"""Rows that come sorted by key and time, batch after batch: only the live rows of one key are kept.

What a sorted partition needs and nothing more: the last key of a batch may go on in the next one,
every other key is done. Batches are gathered until there are as many new rows as kept ones, so that
a row is looked at twice at most, however long its windows are.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from windrow.columns import engine
from windrow.columns.prepare import Prepared, array_of, time_column
from windrow.rolling import Rolling
from windrow.slides import Bounds, Rows

GATHERED_ROWS = 1 << 17
GATHERED_BYTES = 64 << 20

Answers = Callable[[Rolling, Prepared], dict[str, pa.Array]]


class Carry:
    """``push`` sorted tables; rows come back with their answers once nothing can change them.

    ``answers`` makes the answer columns of a prepared table, one value per row.
    """

    def __init__(self, spec: Rolling, answers: Answers = engine.answers) -> None:
        self.spec = copy.copy(spec)
        self.spec.tie = ()  # the rows come in that order
        self.spec.threads = 1
        self._answers = answers
        self._kept: pa.Table | None = None
        self._answered = 0
        self._ticked: int | None = None

    @property
    def rows_kept(self) -> int:
        """How many rows are kept for windows to come, answered or not."""
        return 0 if self._kept is None else int(self._kept.num_rows)

    def push(self, batch: pa.Table, last: bool = False) -> pa.Table:
        """Take one row or more; return those that are certain. ``last``: no more will come."""
        table = batch if self._kept is None else pa.concat_tables([self._kept, batch])
        ready = engine.prepare(self.spec, table)
        start = int(ready.offsets[-2])  # of the key that may go on
        final, needed = (table.num_rows, table.num_rows) if last else self._reach(ready, start)
        if self.spec.every is not None:
            out = self._ticks(table, ready, start, last)
        else:
            size = final - self._answered
            out = table.slice(self._answered, size)
            for name, array in self._answers(self.spec, ready).items():
                out = out.append_column(name, array.slice(self._answered, size))
        self._kept = table.slice(needed) if needed < table.num_rows else None
        self._answered = max(0, final - needed)
        return out

    def _reach(self, ready: Prepared, start: int) -> tuple[int, int]:
        """How many rows no later row can change, and the first that a later window can reach."""
        size, windows = ready.size, self.spec.windows
        if any(isinstance(window, Bounds) for window in windows.values()):
            return start, start
        final = size
        for label, window in windows.items():
            if isinstance(window, Rows):
                final = min(final, size - window.after)
                continue
            _, ending, after = self._lengths(ready, label)
            assert ready.time is not None
            side: Any = "left" if window.includes_end else "right"  # type: ignore[union-attr]
            until = ready.time[-1] + ending - after
            final = min(final, start + int(np.searchsorted(ready.time[start:], until, side)))
        final = max(final, start)
        needed = final
        waiting = size - 1 if self.spec.every is not None else min(final, size - 1)
        for label, window in windows.items():
            if isinstance(window, Rows):
                reached = final - window.ending - window.n + 1
                if window.within is not None:
                    age = engine.limit(ready, window.within, label)
                    reached = max(reached, _first_from(ready, start, waiting, age))
            else:
                length, ending, _ = self._lengths(ready, label)
                reached = _first_from(ready, start, waiting, ending + length)
            needed = min(needed, reached)
        return final, max(needed, start)

    def _lengths(self, ready: Prepared, label: str) -> tuple[int, int, int]:
        window = self.spec.windows[label]
        return engine.lengths(ready, window, label)  # type: ignore[arg-type]

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
        ticks = time_column(out, self.spec.time, None)[0]
        keep = np.ones(len(ticks), np.bool_)
        keep &= True if after is None else ticks > after
        keep &= True if before is None else ticks < before
        return out.filter(array_of(keep))


def _first_from(ready: Prepared, start: int, row: int, age: int) -> int:
    """The first row from ``start`` on that is at most ``age`` older than ``row``."""
    assert ready.time is not None
    return start + int(np.searchsorted(ready.time[start:], ready.time[row] - age))


class Carrier(Protocol):
    """What takes sorted rows, keeps some, and gives back what is certain."""

    @property
    def rows_kept(self) -> int:
        """How many rows are kept."""

    def push(self, batch: pa.Table, last: bool = False) -> pa.Table:
        """Take one row or more."""


def gathered(batches: Iterable[pa.RecordBatch], carry: Carrier) -> Iterator[pa.Table]:
    """Tables of several batches each: as many rows as the carry keeps, or enough to be worth it."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= carry.rows_kept and (rows >= GATHERED_ROWS or size >= GATHERED_BYTES):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def run_sorted(batches: Iterable[pa.RecordBatch], carry: Carrier) -> Iterator[pa.Table]:
    """Every row of a sorted partition with its answers."""
    waiting: pa.Table | None = None
    for table in gathered(batches, carry):
        if waiting is not None:
            yield carry.push(waiting)
        waiting = table
    if waiting is not None:
        yield carry.push(waiting, last=True)
