"""A table fed batch by batch: the same answers as in one call, with only the live rows kept."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns import engine
from windrow.columns.batch_tables import as_table
from windrow.columns.column import array_of, chosen_rows
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification, OutOfOrder
from windrow.rolling import Rolling
from windrow.slides import Bounds, Kept, Rows, Session, Time


class Batches:
    """``push`` batches in order of time; rows come back, answered, once nothing can change them.

    >>> import windrow as wr, pyarrow as pa
    >>> stream = wr.Rolling(time="at", windows=[wr.time(10)], aggregates=[wr.Sum("x")]).stream()
    >>> stream.push(pa.table({"at": [1, 5], "x": [1.0, 2.0]}))["x_sum_10"].to_pylist()
    [1.0]
    >>> stream.push(pa.table({"at": [5, 12], "x": [3.0, 4.0]}))["x_sum_10"].to_pylist()
    [6.0, 6.0]
    >>> stream.finish()["x_sum_10"].to_pylist()
    [9.0]

    A row of time t is in the window of its peers, so it waits until a later row of its key has
    come (with ``after``, one that is later by more than that). With ``tie=``, windows of rows wait
    for that too: a row of the same time may still come before it. Kept are the rows that a later
    window can still reach, and those that wait. Within a batch rows may be in any order; a key's
    rows must not be before those of earlier batches.
    """

    def __init__(self, spec: Rolling) -> None:
        others = any(isinstance(w, Bounds | Kept) for w in spec.windows.values())
        if spec.every is not None or others:
            raise BadSpecification(
                "stream(): windows of rows, of time and of sessions only, without every="
            )
        for label, window in spec.windows.items():
            if window.kind == "ever":
                raise BadSpecification(
                    f"stream(): window {label!r} reaches all rows, which would be kept, and read "
                    "with every batch. Sliding keeps a total, and so do Spark streams"
                )
        for name, aggregate, _ in spec.sequential:
            raise BadSpecification(
                f"stream(): {name}: {aggregate!r} has a state for each key and no live rows; "
                "windrow.approx.Bank takes batches"
            )
        self.spec = spec
        self._kept: pa.Table | None = None
        self._answered = np.empty(0, np.bool_)

    @property
    def rows_kept(self) -> int:
        """How many rows are kept for windows to come, answered or not."""
        return 0 if self._kept is None else int(self._kept.num_rows)

    def push(self, batch: Any) -> pa.Table:
        """Take a batch; return the rows that are now certain, with their answers."""
        batch = as_table(batch)
        kept = self._kept
        if kept is not None and batch.schema != kept.schema:
            raise BadSpecification(
                f"this batch has columns {batch.schema.to_string()}; earlier ones had "
                f"{kept.schema.to_string()}"
            )
        before = self.rows_kept
        table = batch if kept is None else pa.concat_tables([kept, batch]).combine_chunks()
        ready = engine.prepare(self.spec, table)
        self._check_order(ready, before)
        answered = np.concatenate([self._answered, np.zeros(batch.num_rows, np.bool_)])
        final, needed = self._certain(ready)
        out = self._answers(table, final & ~answered)
        answered |= final
        keep = needed | ~answered
        self._kept = chosen_rows(table, keep)
        self._answered = answered[keep]
        return out

    def finish(self) -> pa.Table | None:
        """No more rows will come: the rest, with their answers; None where nothing ever came."""
        if self._kept is None:
            return None
        out = self._answers(self._kept, ~self._answered)
        self._kept, self._answered = None, np.empty(0, np.bool_)
        return out

    def _answers(self, table: pa.Table, wanted: Array) -> pa.Table:
        answers = engine.run(self.spec, table)
        out = chosen_rows(table, wanted)
        for name, array in answers.items():
            out = out.append_column(name, array.filter(array_of(wanted)))
        return out

    def _check_order(self, ready: Prepared, before: int) -> None:
        """Sorted rows of a key: those kept must come before the new ones."""
        if ready.order is None or not before:
            return
        new = ready.order >= before
        runs = np.repeat(np.arange(len(ready.offsets) - 1), np.diff(ready.offsets))
        wrong = np.flatnonzero(new[:-1] & ~new[1:] & (runs[:-1] == runs[1:]))
        if len(wrong) and ready.time is not None:
            row = wrong[0]
            if ready.time[row] < ready.time[row + 1]:
                raise OutOfOrder(
                    f"row {int(ready.order[row]) - before} of this batch has time "
                    f"{ready.time[row]}, before {ready.time[row + 1]}, which came in an earlier "
                    "batch for the same key: batches must be in order of time"
                )

    def _certain(self, ready: Prepared) -> tuple[Array, Array]:
        """Which rows no later row can change, and which a later row's window can reach."""
        sizes = np.diff(ready.offsets)
        start, size = np.repeat(ready.offsets[:-1], sizes), np.repeat(sizes, sizes)
        place = np.arange(ready.size) - start
        final = np.ones(ready.size, np.bool_)
        needed = np.zeros(ready.size, np.bool_)
        age = self._age(ready)
        settled = self._settled(age, ready) if self.spec.tie else size
        for label, window in self.spec.windows.items():
            if isinstance(window, Rows):
                final &= place + min(window.after, ready.size) < settled
                reached = place > size - min(window.ending + window.n, ready.size + 1)
                if window.within is not None:
                    reached &= age < engine.limit(ready, window.within, label)
                needed |= reached
                continue
            assert isinstance(window, Time | Session)
            length, ending, after = engine.lengths(ready, window.near, label)
            final &= (age > after - ending) if window.includes_end else (age >= after - ending)
            if isinstance(window, Session):
                lo, _ = engine.window_ranges(self.spec, ready, label, window).bounds()
                last = lo[np.maximum(ready.offsets[1:] - 1, 0)] if ready.size else sizes
                needed |= start + place >= np.repeat(last, sizes)
                continue
            oldest = ending + length
            needed |= (age <= oldest) if window.includes_start else (age < oldest)
        needed |= self._reached_by_waiting(ready, final)
        return self._back(ready, final), self._back(ready, needed)

    @staticmethod
    def _settled(age: Array, ready: Prepared) -> Array:
        """How many rows of a key no later one can stand between: all but those of its last time."""
        before = np.concatenate([[0], np.cumsum(age > 0)])
        starts, ends = ready.offsets[:-1], ready.offsets[1:]
        return np.repeat(before[ends] - before[starts], ends - starts)

    @staticmethod
    def _age(ready: Prepared) -> Array:
        """How much older a row is than the latest of its key; 0 where there are no times."""
        if ready.time is None or not ready.size:
            return np.zeros(ready.size, np.int64)
        return np.repeat(ready.time[ready.offsets[1:] - 1], np.diff(ready.offsets)) - ready.time

    def _reached_by_waiting(self, ready: Prepared, final: Array) -> Array:
        """Rows in a window of a row that waits: all from where its key's first one's begins."""
        needed = np.zeros(ready.size, np.bool_)
        if final.all():
            return needed
        rows = np.arange(ready.size)
        sizes = np.diff(ready.offsets)
        waiting = np.where(final, ready.size, rows)
        first = np.minimum.reduceat(waiting, ready.offsets[:-1][sizes > 0])
        first = np.repeat(first, sizes[sizes > 0])
        for label, window in self.spec.windows.items():
            lo, _ = engine.window_ranges(self.spec, ready, label, window).bounds()
            reach = np.where(first < ready.size, lo[np.minimum(first, ready.size - 1)], ready.size)
            needed |= rows >= reach
        return needed

    @staticmethod
    def _back(ready: Prepared, sorted_rows: Array) -> Array:
        if ready.order is None:
            return sorted_rows
        out: Array = np.empty(ready.size, np.bool_)
        out[ready.order] = sorted_rows
        return out
