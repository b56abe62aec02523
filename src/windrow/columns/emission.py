"""When answers come out of a bucket, and for what.

    rows          every row, once the frontier has passed it
    immediately   every row, in the turn in which it comes, over the rows that have come by then
    ticks         every key at every tick that the frontier has passed, while a window has rows
    changes       every key whose answers just before the frontier are others than a turn ago

Ticks and changes ask for *moments*: a key and a time, with the windows that a row would have there.
What a moment before the frontier sees never changes again, so both have the answers of a table.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numba import njit

from windrow.columns.arranged import codes_of
from windrow.columns.column import array_of, numbers_of, plain_column, typed, valid_of
from windrow.columns.key_runs import by_code
from windrow.columns.key_views import RowsView
from windrow.columns.ranges import Array
from windrow.columns.stream_plan import ticks as ticks_of
from windrow.columns.views import New, State, TimeView
from windrow.windows.compare import equal

Keys = list[pa.Array]


class Rows(State, Protocol):
    """What emission needs of a bucket."""

    adapted: bool

    def released(self, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
        """Rows that the frontier has passed; moves it."""

    def open_rows(self) -> list[pa.Table]:
        """Rows that it has not passed."""

    def in_order(self, table: pa.Table) -> New:
        """Rows by key, time and tie."""

    def views(self) -> list[Any]:
        """One for every window."""

    def answers(self, new: New, views: list[Any]) -> dict[str, pa.Array]:
        """The answers of what is asked for."""

    def keep(self, new: New | None, views: list[Any]) -> None:
        """Keep rows for later windows."""

    def forget_the_dead(self) -> None:
        """Forget what no window sees again."""


def rows(bucket: Rows, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
    """Rows that the frontier has passed."""
    new = _released(bucket, came, frontier)
    if new is None:
        bucket.forget_the_dead()
        return None
    views = bucket.views()
    for view in views:
        view.look(new.earliest, new.latest)
    table = new.table
    for name, array in bucket.answers(new, views).items():
        table = table.append_column(name, array)
    bucket.keep(new, views)
    return table


def immediately(bucket: Rows, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
    """Rows that come, over all that have come by now."""
    table = None if came is None else _at_once(bucket, came)
    if came is not None:
        bucket.turn.answered_rows = came.num_rows
    new = _released(bucket, came, frontier, counted=False)
    if new is not None:
        bucket.keep(new, bucket.views())
    bucket.forget_the_dead()
    return table


_MARK = "__windrow_new"


def _at_once(bucket: Rows, came: pa.Table) -> pa.Table:
    """Rows that wait are part of windows as well; they had their answers."""
    spec, held = bucket.plan.spec, bucket.plan.held
    others = [table for table in bucket.open_rows() if table.num_rows]
    size = sum(table.num_rows for table in others)
    places = np.concatenate([np.full(size, -1), np.arange(came.num_rows)])
    marked = pa.concat_tables([*others, came.select(held)]).append_column(_MARK, array_of(places))
    new = bucket.in_order(marked)
    place = numbers_of(plain_column(new.table[_MARK]))
    new = New(new.table, new.time, new.offsets, place >= 0)
    views = bucket.views()
    first = new.earliest if bucket.head.frontier is None else bucket.head.frontier
    for view in views:
        view.look(min(first, new.earliest), new.latest)
    table = came.take(array_of(place[place >= 0]))
    answers = bucket.answers(new, views)
    for name, _, _ in spec.outputs:
        table = table.append_column(name, answers[name])
    return table


def ticks(bucket: Rows, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
    """Keys at the ticks that the frontier has passed."""
    head, plan = bucket.head, bucket.plan
    before = head.frontier
    new = _released(bucket, came, frontier)
    ends = [
        t for t in (new.latest if new else None, head.latest and head.latest - 1) if t is not None
    ]
    if head.frontier is None or not ends:
        return None
    starts = [reach.start for reach in plan.passing]
    last = min(head.frontier - 1, max(ends) - min(starts))
    low = new.earliest if before is None and new else before
    assert low is not None
    low, high = -((plan.origin - low) // plan.step), (last - plan.origin) // plan.step
    views = bucket.views()
    table = None
    if low <= high:
        first, last = (number * plan.step + plan.origin for number in (low, high))
        for view in views:
            view.look(first, last)
        asked = _tick_moments(bucket, views, new, low, high)
        if asked is not None:
            table = _told(bucket, asked, views, asked.live)
    bucket.keep(new, views)
    bucket.forget_the_dead()
    return table


def changes(bucket: Rows, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
    """Keys whose answers just before the frontier are others than a turn ago."""
    head = bucket.head
    before = head.frontier
    new = _released(bucket, came, frontier)
    if head.frontier is None or (head.latest is None and new is None):
        return None
    last = head.frontier - 1
    first = last if before is None else before - 1
    views = bucket.views()
    for view in views:
        view.look(first, last)
    table = _changed(bucket, views, new, first, last, before is not None)
    bucket.keep(new, views)
    bucket.forget_the_dead()
    return table


Emit = Callable[[Any, pa.Table | None, int | None], pa.Table | None]
EMISSIONS: dict[str, Emit] = {
    "rows": rows,
    "immediately": immediately,
    "ticks": ticks,
    "changes": changes,
}


def _released(
    bucket: Rows, came: pa.Table | None, frontier: int | None, counted: bool = True
) -> New | None:
    table = bucket.released(came, frontier)
    if table is None:
        return None
    if counted:
        bucket.turn.answered_rows = table.num_rows
    return bucket.in_order(table)


# --- moments --------------------------------------------------------------------------------------


def moments(bucket: Rows, keys: Keys, runs: Array, times: Array, new: New | None) -> New:
    """Moments to ask for: for each its time, and in ``runs`` the place of its key; by key, time."""
    plan = bucket.plan
    columns: dict[str, Any] = {}
    for name in plan.kept:
        field = plan.schema.field(name)
        if name in plan.spec.key:
            columns[name] = keys[plan.spec.key.index(name)].take(array_of(runs))
        elif name == plan.spec.time:
            columns[name] = typed(times, None, field.type)
        else:
            columns[name] = pa.nulls(len(times), field.type)
    borders = np.flatnonzero(np.diff(runs)) + 1
    offsets = np.concatenate([[0], borders, [len(runs)]]).astype(np.int64)
    beside = None if new is None else new.table.select(plan.kept)
    live = np.zeros(len(times), np.bool_)
    return New(pa.table(columns), times, offsets, None, beside, live)


def _told(bucket: Rows, asked: New, views: list[Any], which: Array | None) -> pa.Table:
    """Keys, times and answers; ``which`` may still be worked out while answers are."""
    answers = bucket.answers(asked, views)
    table = asked.table.select([*bucket.plan.spec.key, str(bucket.plan.spec.time)])
    for name, array in answers.items():
        table = table.append_column(name, array)
    return table if which is None or which.all() else table.filter(array_of(which))


def _pieces(bucket: Rows, views: list[Any], new: New | None) -> tuple[list[pa.Table], list[Keys]]:
    """All rows that a window may see, in order of time; and keys that all moments see, folded.

    Where a rows window looks back furthest, the last rows of every key: others are in windows only
    together with them.
    """
    longest: TimeView | RowsView = min(views, key=lambda view: view.reach.start)
    tables = [*longest.old, *longest.rows_behind()]
    tables += [] if new is None else [new.table]
    return tables, longest.middle_keys()


def _keys(bucket: Rows, tables: Sequence[pa.Table]) -> list[Keys]:
    names = bucket.plan.spec.key
    return [[plain_column(table[name]) for name in names] for table in tables]


@njit(cache=True)
def _covered(offsets, low, high, runs, out):  # type: ignore[no-untyped-def]
    """The numbers of each run that are in any [low, high], once each; only counts without out."""
    total = 0
    for run in range(len(offsets) - 1):
        following = np.int64(-(2**62))
        for i in range(offsets[run], offsets[run + 1]):
            for k in range(max(following, low[i]), high[i] + 1):
                if len(out):
                    runs[total] = run
                    out[total] = k
                total += 1
            following = max(following, high[i] + 1)
    return total


def _tick_moments(
    bucket: Rows, views: list[Any], new: New | None, low: int, high: int
) -> New | None:
    """Every tick from ``low`` to ``high`` that sees a row of a key."""
    plan = bucket.plan
    step, origin = plan.step, plan.origin
    start = min(reach.start for reach in plan.passing)
    end = max(reach.end for reach in plan.passing)
    tables, folded = _pieces(bucket, [view for view in views if view.lasts], new)
    keys = folded + _keys(bucket, tables)
    # without a key, what is folded has no columns to be counted: it is there or not
    sizes = [len(k[0]) if k else 1 for k in folded] + [table.num_rows for table in tables]
    if not sum(sizes):
        return None
    nothing = np.empty(0, np.int64)
    time = np.concatenate([nothing, *(ticks_of(table, plan.spec) for table in tables)])
    every = sum(sizes) - len(time)
    first = np.concatenate([np.full(every, low), -((origin - (time - end + 1)) // step)])
    last = np.concatenate([np.full(every, high), (time - start - origin) // step])
    codes, count = codes_of(keys, sizes)
    order, offsets = by_code(codes, count, np.arange(len(codes)))
    bounds = (np.maximum(first, low)[order], np.minimum(last, high)[order])
    total = _covered(offsets, *bounds, nothing, nothing)
    if not total:
        return None
    runs, numbers = np.empty(total, np.int64), np.empty(total, np.int64)
    _covered(offsets, *bounds, runs, numbers)
    chosen = first_of_each(keys, order, offsets)
    return moments(bucket, chosen, runs, numbers * step + origin, new)


def first_of_each(keys: Sequence[Keys], order: Array, offsets: Array) -> Keys:
    """Every key once, in order of codes."""
    columns = [pa.concat_arrays(parts) for parts in zip(*keys, strict=True)]
    return [column.take(array_of(order[offsets[:-1]])) for column in columns]


def every_key(bucket: Rows, views: list[Any], new: New | None) -> Keys:
    """Every key that a window may see rows of; nothing where there are none."""
    tables, folded = _pieces(bucket, views, new)
    keys = folded + _keys(bucket, tables)
    sizes = [len(k[0]) if k else 1 for k in folded] + [table.num_rows for table in tables]
    if not sum(sizes):
        return [pa.nulls(0, bucket.plan.schema.field(n).type) for n in bucket.plan.spec.key]
    codes, count = codes_of(keys, sizes)
    return first_of_each(keys, *by_code(codes, count, np.arange(len(codes))))


def stirred(bucket: Rows, views: list[Any], new: New | None, first: int, last: int) -> list[Any]:
    """For each window: rows that enter or leave it after the first moment, up to the last."""
    spec, found = bucket.plan.spec, []
    for view in views:
        start, end = view.reach.start, view.reach.end
        tables = [*view.old, *view.young, *([] if new is None else [new.table])]
        for table in tables:
            times = ticks_of(table, spec)
            enters, leaves = times - end + 1, times - start + 1
            moves = (enters > first) & (enters <= last) | (leaves > first) & (leaves <= last)
            if moves.any():
                found.append((table.filter(array_of(moves)), enters[moves], leaves[moves]))
    return found


def _changed(
    bucket: Rows, views: list[Any], new: New | None, first: int, last: int, told: bool
) -> pa.Table | None:
    """``told``: whether there were answers at the first moment, that may be the same."""
    if bucket.adapted:  # new columns: every key is told
        tables, folded = _pieces(bucket, views, new)
    else:
        since = first if told else -(1 << 62)
        tables, folded = [t for t, _, _ in stirred(bucket, views, new, since, last)], []
    keys = folded + _keys(bucket, tables)
    sizes = [len(k[0]) if k else 1 for k in folded] + [table.num_rows for table in tables]
    if not sum(sizes):
        return None
    codes, count = codes_of(keys, sizes)
    order, offsets = by_code(codes, count, np.arange(len(codes)))
    chosen = first_of_each(keys, order, offsets)
    each = [first, last] if told else [last]
    runs = np.repeat(np.arange(count), len(each))
    times = np.tile(np.array(each, np.int64), count)
    asked = moments(bucket, chosen, runs, times, new)
    table = _told(bucket, asked, views, None)
    assert asked.live is not None
    if not told:
        return _some(bucket, table, asked.live, asked.live)
    now = table.take(array_of(np.arange(1, len(times), 2)))
    then = table.take(array_of(np.arange(0, len(times), 2)))
    live, was_live = asked.live[1::2], asked.live[::2]
    if bucket.adapted:
        return _some(bucket, now, live, live | was_live)
    others = live != was_live
    for name, _, _ in bucket.plan.spec.outputs:
        others |= ~same(plain_column(then[name]), plain_column(now[name]))
    return _some(bucket, now, live, others)


def _some(bucket: Rows, table: pa.Table, live: Array, which: Array) -> pa.Table | None:
    bucket.turn.live = live[which]
    return table.filter(array_of(which)) if which.any() else None


def timeless(kind: pa.DataType) -> pa.DataType:
    """The type with times as integers: Python's end with the year 9999, and with microseconds."""
    if pa.types.is_list(kind):
        return pa.list_(timeless(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, timeless(field.type)) for field in kind])
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(kind) else kind


def same(a: pa.Array, b: pa.Array) -> Array:
    """Where two columns of answers are the same: NaN is itself, and missing is missing."""
    a, b = (column.cast(timeless(column.type)) for column in (a, b))
    kind = a.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        x, y = numbers_of(a), numbers_of(b)
        equals = (x == y) | (x != x) & (y != y)
        there = [np.ones(len(x), np.bool_) if (v := valid_of(c)) is None else v for c in (a, b)]
        return np.asarray((there[0] == there[1]) & (equals | ~there[0]))
    pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
    return np.array([equal(x, y) for x, y in pairs], np.bool_)
