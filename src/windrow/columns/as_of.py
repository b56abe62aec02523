"""Point-in-time features: for every label, the events that were known at its time.

Events and labels become one table, sorted by key and time; a label's range holds only events, and
events are never copied.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns import bounds as find
from windrow.columns import engine
from windrow.columns.answers import answer
from windrow.columns.column import Column, array_of, numbers_of, plain_column, whole_column
from windrow.columns.jit import njit
from windrow.columns.masked import plain
from windrow.columns.prepare import Prepared, same_clock, same_keys
from windrow.columns.ranges import Array, Ranges
from windrow.columns.stretch import Part
from windrow.errors import BadSpecification, BadValue, Refused
from windrow.rolling import Rolling
from windrow.slides import Bounds, Kept, Rows, Session

IS_LABEL = "__windrow_is_label"


def label_names(spec: Rolling, on: Any) -> dict[str, str]:
    """What the key and time columns are called among the labels."""
    if spec.time is None:
        raise BadSpecification("as_of() is about time: say which column, time=...")
    names = {name: name for name in (*spec.key, spec.time)}
    if isinstance(on, str):
        names[spec.time] = on
    elif isinstance(on, Mapping):
        for ours, theirs in on.items():
            if ours not in names:
                raise BadSpecification(
                    f"on=: {ours!r} is neither the key nor the time of the events; those are "
                    f"{', '.join(map(repr, names))}"
                )
            names[ours] = theirs
    elif on is not None:
        raise BadSpecification(
            "on= is the label's time column, or a dict from the events' key and time columns to "
            f"the labels', not {on!r}"
        )
    return names


def refuse(spec: Rolling) -> None:
    """Windows that have no meaning for a label, or that would look into its future."""
    if spec.every is not None:
        raise Refused("as_of() answers labels, not ticks: leave every= out")
    for name, aggregate, _ in spec.sequential:
        raise Refused(f"as_of(): {name}: {aggregate!r} answers rows, and a label is none")
    for label, window in spec.windows.items():
        if isinstance(window, Bounds):
            raise Refused(f"as_of(): window {label!r} takes its bounds from the events' own rows")
        if isinstance(window, Kept):
            raise Refused(
                f"as_of(): window {label!r} is kept by policies, which decide when a row comes; a "
                "label is no row. Use windows of rows or of time"
            )
        if window.after:
            raise Refused(f"as_of(): window {label!r} looks into the label's future (after=)")


def check_labels(spec: Rolling, names: Mapping[str, str], columns: list[str]) -> None:
    """Raise unless the labels have key and time, and no answer hides one of their columns."""
    for ours, theirs in names.items():
        if theirs not in columns:
            raise BadSpecification(
                f"the labels have no column {theirs!r} (for the events' {ours!r}); they have "
                f"{', '.join(map(repr, columns))}. Say on={{{ours!r}: ...}}"
            )
    for name, aggregate, _ in spec.outputs:
        if name in columns:
            raise BadSpecification(
                f"the labels have a column {name!r} already, which {aggregate!r} would hide: "
                "rename it with .alias(...)"
            )


def missing_label_times(name: str, how_many: str) -> str:
    """What is said of labels without a time."""
    return (
        f"time column {name!r} of the labels is missing in {how_many} rows: drop or fill these "
        "rows first"
    )


@njit(cache=True, nogil=True)
def _rows_before(offsets, time, query_offsets, queries, n, ending, strict, lo, hi):  # type: ignore[no-untyped-def]
    """The last ``n`` events before a query's time (or up to it), ``ending`` of them left out."""
    for run in range(len(offsets) - 1):
        start, end = offsets[run], offsets[run + 1]
        high = start
        for i in range(query_offsets[run], query_offsets[run + 1]):
            while high < end and (
                time[high] < queries[i] or (not strict and time[high] == queries[i])
            ):
                high += 1
            hi[i] = max(high - ending, start)
            lo[i] = max(high - ending - n, start)


class _Events(Part):
    """Events alone, with answers for labels, which ``came`` as these rows."""

    def __init__(self, ready: Prepared, is_label: Array, came: Array) -> None:
        super().__init__(ready, np.flatnonzero(~is_label))
        self.came = came

    def column(self, name: str) -> Column:
        """A column of the events, without the labels' missing ones in between."""
        if name not in self._columns:
            column = Prepared.column(self, name)
            if column.valid is not None and column.valid.all():
                column.valid = None
        return self._columns[name]

    def original_row(self, sorted_row: int) -> int:
        """The label that an answer is for."""
        return int(self.came[sorted_row])


def answers(
    spec: Rolling, ready: Prepared, is_label: Array, came: Array, strict: bool
) -> dict[str, pa.Array]:
    """The answers at the time of every label, over events alone, in sorted order."""
    assert ready.time is not None
    labels = np.flatnonzero(is_label)
    part = _Events(ready, is_label, came)
    before = np.zeros(ready.size + 1, np.int64)
    np.cumsum(~is_label, out=before[1:])
    offsets = before[ready.offsets]
    out: dict[str, pa.Array] = {}
    for label, window in spec.windows.items():
        lo, hi = np.empty(ready.size, np.int32), np.empty(ready.size, np.int32)
        if isinstance(window, Rows):
            n, ending = (min(x, ready.size) for x in (window.n, window.ending))
            _rows_before(offsets, part.time, ready.offsets, ready.time, n, ending, strict, lo, hi)
            if window.within is not None:
                age = engine.limit(ready, window.within, label)
                find.cut_older(part.time, ready.time, age, 0, ready.size, lo, hi)
        elif isinstance(window, Session):
            find.session_bounds(
                *(offsets[:-1], offsets[1:], part.time, ready.offsets, ready.time),
                *(engine.pause(ready, label, window), window.includes_end and not strict, lo, hi),
            )
        else:
            length, ending, _ = engine.lengths(ready, window, label)  # type: ignore[arg-type]
            with_end = window.includes_end and not (strict and not ending)  # type: ignore[union-attr]
            with_start = window.includes_start  # type: ignore[union-attr]
            find.tick_bounds(
                offsets,
                part.time,
                ready.offsets,
                ready.time,
                length,
                ending,
                with_start,
                with_end,
                lo,
                hi,
            )
        ranges = Ranges(lo[labels], hi[labels], len(labels))
        for name, aggregate, found in spec.outputs:
            if found == label:
                out[name] = answer(aggregate, part, ranges, spec.min_rows)
    return out


def joined(spec: Rolling, events: pa.Table, labels: pa.Table, on: Any) -> pa.Table:
    """Events and labels in one table, the labels without inputs."""
    names = label_names(spec, on)
    spec.check_columns([n for n in events.column_names if n not in _answer_names(spec)])
    check_labels(spec, names, labels.column_names)
    used = dict.fromkeys([*names, *spec.tie, *(c for a in spec.aggregates for c in a.columns)])
    size = labels.num_rows
    columns: dict[str, Any] = {}
    for name in used:
        array = plain_column(events[name]) if name in names else whole_column(events[name])
        if name in names:
            other = plain_column(labels[names[name]])
            if name == spec.time and other.null_count:
                raise BadValue(
                    missing_label_times(names[name], f"{other.null_count:,} of {size:,}")
                )
            if name != spec.time:
                array, other = same_keys(name, array, names[name], other)
            elif other.type != array.type:
                array, other = _same_times(name, array, names[name], other)
        else:
            other = pa.nulls(size, array.type)
        columns[name] = pa.concat_arrays([array, other])
    flags = np.arange(events.num_rows + size) >= events.num_rows
    return pa.table(columns | {IS_LABEL: array_of(flags)})


def _same_times(name: str, ours: pa.Array, theirs: str, other: pa.Array) -> tuple[Any, Any]:
    """Times of events and labels in the finer of two units."""
    if not len(other):
        return ours, pa.nulls(0, ours.type)
    same_clock(ours.type, name, other.type, theirs)
    kind = ours.type
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(other.type):
        units = ("s", "ms", "us", "ns")
        kind = pa.timestamp(max(kind.unit, other.type.unit, key=units.index), kind.tz)
    elif pa.types.is_integer(kind) and pa.types.is_integer(other.type):
        kind = pa.int64()
    try:
        return ours.cast(kind), other.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadSpecification(
            f"the labels' {theirs!r} has type {other.type}, the events' {name!r} has "
            f"{ours.type}: {error}"
        ) from error


def _answer_names(spec: Rolling) -> set[str]:
    return {name for name, _, _ in spec.outputs}


def run(
    spec: Rolling, events: pa.Table, labels: pa.Table, on: Any, strict: bool
) -> dict[str, pa.Array]:
    """Every answer column, in the order of the labels."""
    refuse(spec)
    spec, events = plain(spec, events)
    table = joined(spec, events, labels, on)
    ready = engine.prepare(spec, table)
    flags = numbers_of(plain_column(table[IS_LABEL]))
    order = np.arange(ready.size) if ready.order is None else ready.order
    flags = flags[order]
    came = order[flags] - events.num_rows
    place = np.empty(len(came), np.int64)
    place[came] = np.arange(len(came))
    found = answers(spec, ready, flags, came, strict)
    return {name: array.take(array_of(place)) for name, array in found.items()}


class AsOf:
    """The carry for sorted partitions: by key, time, labels after events of their time, tie.

    ``push`` gives back the labels; kept are the events that a later label can reach.
    """

    by_number = False

    def __init__(self, spec: Rolling, strict: bool) -> None:
        self.spec = copy.copy(spec)
        self.spec.tie = ()
        self.spec.threads = 1
        self._strict = strict
        self._kept: pa.Table | None = None

    @property
    def rows_kept(self) -> int:
        """How many events are kept for labels to come."""
        return 0 if self._kept is None else int(self._kept.num_rows)

    def push(self, batch: pa.Table, last: bool = False) -> pa.Table:
        """Take one row or more; return the labels among them with their answers."""
        table = batch if self._kept is None else pa.concat_tables([self._kept, batch])
        ready = engine.prepare(self.spec, table)
        flags = numbers_of(plain_column(table[IS_LABEL]))
        came = np.arange(np.count_nonzero(flags))
        found = answers(self.spec, ready, flags, came, self._strict)
        out = table.filter(array_of(flags))
        for name, array in found.items():
            out = out.append_column(name, array)
        self._kept = None if last else self._live(table, ready, flags)
        return out

    def _live(self, table: pa.Table, ready: Prepared, flags: Array) -> pa.Table:
        assert ready.time is not None
        start = int(ready.offsets[-2])
        time = ready.time[start:]
        events = np.flatnonzero(~flags[start:])
        first = known = len(events)
        if self._strict:  # a label of the latest time may still come: it knows none of that time
            known = int(np.searchsorted(time[events], time[-1]))
        for label, window in self.spec.windows.items():
            if isinstance(window, Rows):
                reached = max(0, known - window.ending - window.n)
                if window.within is not None:
                    oldest = time[-1] - engine.limit(ready, window.within, label)
                    reached = max(reached, int(np.searchsorted(time[events], oldest)))
            elif isinstance(window, Session):
                gap, reached = engine.pause(ready, label, window), known
                if known and time[-1] - time[events[known - 1]] <= gap:
                    reached = engine.session_start(time[events], known - 1, gap)
            else:
                length, ending, _ = engine.lengths(ready, window, label)  # type: ignore[arg-type]
                oldest = time[-1] - ending - length
                reached = int(np.searchsorted(time[events], oldest))
            first = min(first, reached)
        return table.take(array_of(start + events[first:]))
