"""One stretch of a table that is too long for one worker: its own rows, with rows from elsewhere.

A window is a *reach* along an axis (time, or the row's place in the whole order): row t looks at
[t + start, t + end). For the stretch [s, e), rows in [s + start, e + start) leave while it is
worked on, rows in [s + end − 1, e + end − 1) come, and whatever lies between is in every window:
the middle. That is Two-Stacks, with the flip placed at the border of a stretch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns.answers import answer
from windrow.columns.column import Column, array_of, number_column, numbers_of, plain_column
from windrow.columns.jit import njit
from windrow.columns.key_runs import by_code
from windrow.columns.middles import NOTHING, Middle, fold, needs_lists
from windrow.columns.prepare import Prepared, time_column
from windrow.columns.ranges import Array, Ranges
from windrow.columns.task import input_columns
from windrow.rolling import Rolling
from windrow.slides import Time

OWN = 62
"""The bit of a row's roles that says it is one of the stretch's own."""
SEGMENT_BITS = 40
"""From this bit on, roles hold the number of the stretch; the bits below are windows."""
MOST_WINDOWS = SEGMENT_BITS


@dataclass(frozen=True)
class Reach:
    """Where a window looks, in steps of its axis: from ``start`` on, up to but without ``end``."""

    label: str
    axis: str
    start: int
    end: int

    @property
    def near(self) -> int:
        """A row comes in while the stretch of ``t − near`` is worked on."""
        return self.end - 1


def time_reach(window: Time, label: str, length: int, ending: int, after: int = 0) -> Reach:
    """Where a window of time looks, its lengths given in ticks."""
    start = -ending - length + (0 if window.includes_start else 1)
    return Reach(label, "time", start, -ending + after + (1 if window.includes_end else 0))


class Part(Prepared):
    """Some rows of a prepared table, in its order."""

    def __init__(self, ready: Prepared, rows: Array) -> None:
        self.whole = ready
        self.rows = rows
        self.table, self.threads, self.key = ready.table, ready.threads, ready.key
        self.clock, self.size = ready.clock, len(rows)
        self.order = rows if ready.order is None else ready.order[rows]
        self.time = None if ready.time is None else ready.time[rows]
        self._columns = {}

    def column(self, name: str) -> Column:
        """A column of these rows."""
        if name not in self._columns:
            own = self.whole.column(name)
            valid = None if own.valid is None else own.valid[self.rows]
            valid = None if valid is not None and valid.all() else valid
            self._columns[name] = Column(name, own.values[self.rows], valid, own.type, own.words)
        return self._columns[name]


@njit(cache=True, nogil=True)
def _reached(data, queries, start, end, lo, hi):  # type: ignore[no-untyped-def]
    """For each query its range of data; both are sorted."""
    low = high = 0
    for i in range(len(queries)):
        while low < len(data) and data[low] < queries[i] + start:
            low += 1
        while high < len(data) and data[high] < queries[i] + end:
            high += 1
        hi[i] = high
        lo[i] = min(low, high)


def reach_ranges(data: Array, queries: Array, start: int, end: int) -> Ranges:
    """The ranges of ``data`` that each of ``queries`` reaches."""
    lo, hi = np.empty(len(queries), np.int32), np.empty(len(queries), np.int32)
    _reached(data, queries, start, end, lo, hi)
    return Ranges(lo, hi, len(queries))


def stretch_answers(
    spec: Rolling,
    table: pa.Table,
    roles: Array,
    places: Array | None,
    reaches: list[Reach],
    begin: dict[str, int],
    middles: dict[str, Middle],
) -> tuple[dict[str, pa.Array], Array]:
    """The answers of the stretch's own rows, and which rows those are, both in the table's order.

    ``roles`` says for each row, bit by bit, for which windows it is data, and whether it is one of
    the stretch's own. ``begin`` is where the stretch begins on each axis.
    """
    tie = spec.tie if places is None else ()
    if places is not None:
        table = table.append_column("__windrow_place", array_of(places))
    ready = Prepared(
        table, (), spec.time if places is None else "__windrow_place", tie, spec.unit, 1
    )
    order = np.arange(ready.size) if ready.order is None else ready.order
    axes: dict[str, Array] = {}
    if places is not None:
        axes["place"] = ready.time  # type: ignore[assignment]
        if spec.time is not None:
            axes["time"] = _ticks(table, spec)[order]
    else:
        axes["time"] = ready.time  # type: ignore[assignment]
    role = roles[order]
    own = np.flatnonzero(role >> OWN & 1)
    out: dict[str, pa.Array] = {}
    as_they_came = np.argsort(order[own], kind="stable")
    for number, reach in enumerate(reaches):
        axis = axes[reach.axis]
        data = np.flatnonzero(role >> number & 1)
        part = Part(ready, data)
        ranges = reach_ranges(axis[data], axis[own], reach.start, reach.end)
        border = int(np.searchsorted(axis[data], begin[reach.axis] + reach.near))
        for name, aggregate, label in spec.outputs:
            if label == reach.label:
                middle = middles.get(name, NOTHING)
                found = answer(aggregate, part, ranges, spec.min_rows, middle, border)
                out[name] = found.take(array_of(as_they_came))
    return out, np.sort(order[own])


def _ticks(table: pa.Table, spec: Rolling) -> Array:
    assert spec.time is not None
    return time_column(table, spec.time, spec.unit)[0]


def fold_runs(
    spec: Rolling, table: pa.Table, codes: Array, count: int, label: str, in_order: bool
) -> dict[str, list[Middle]]:
    """Each output's middle for every group of rows; ``in_order``: rows by time and tie."""
    first: Any = np.arange(table.num_rows)
    if in_order and "__windrow_place" in table.column_names:
        first = np.argsort(numbers_of(plain_column(table["__windrow_place"])), kind="stable")
    elif in_order:
        first = Prepared(table, (), spec.time, spec.tie, spec.unit, 1).order
        first = np.arange(table.num_rows) if first is None else first
    order, offsets = by_code(codes, count, first)
    ready = _Rows(table, order)
    out: dict[str, list[Middle]] = {}
    for name, aggregate, found in spec.outputs:
        if found == label:
            columns = input_columns(aggregate, ready)
            lists = []
            if needs_lists(aggregate, columns):
                lists = [ready.sorted_arrow(c).to_pylist() for c in aggregate.columns]
            out[name] = fold(aggregate, columns, lists, offsets)
    return out


class _Rows(Prepared):
    """A table in an order that is known."""

    def __init__(self, table: pa.Table, order: Array) -> None:
        self.table, self.order, self.size = table, order, len(order)
        self._columns = {}

    def column(self, name: str) -> Column:
        """A column in that order."""
        if name not in self._columns:
            column = number_column(plain_column(self.table[name]), name)
            column.values = column.values[self.order]
            column.valid = None if column.valid is None else column.valid[self.order]
            self._columns[name] = column
        return self._columns[name]
