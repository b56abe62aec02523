"""A table made ready: sorted by key, time and tie, its columns as plain arrays with masks."""

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.column import (
    Column,
    array_of,
    has_nan,
    numbers_of,
    placed_column,
    plain_column,
    valid_of,
    value_column,
)
from windrow.columns.key_runs import (
    by_code,
    by_time,
    is_sorted,
    key_codes,
    peers,
    runs_if_sorted,
)
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification, BadValue
from windrow.times import NANOSECONDS, Clock, clock_of, unit_of

_SHOWN = 5


class Prepared:
    """The table in the order its windows need.

    ``runs`` says where each key's run begins, and the end, if rows are known to be in that order.
    """

    sorted_for: frozenset[tuple[str, str]] = frozenset()
    """Columns, and what NaN is there, whose sorted blocks more than one answer needs."""
    sorts: dict[Any, Any] | None = None
    """Those blocks, where they are kept."""

    def __init__(
        self,
        table: pa.Table,
        key: tuple[str, ...],
        time: str | None,
        tie: tuple[str, ...],
        unit: str | None,
        threads: int,
        runs: Array | None = None,
    ) -> None:
        self.table = table
        self.threads = threads
        self.key = key
        self.clock: Clock | None = None
        self.size = table.num_rows
        unsorted = None
        if time is not None:
            unsorted, self.clock = time_column(table, time, unit)
        self.order, self.offsets = self._sort(unsorted, tie) if runs is None else (None, runs)
        self.time = unsorted
        if unsorted is not None and self.order is not None:
            self.time = unsorted[self.order]
        self._columns: dict[str, Column] = {}

    def _sort(self, time: Array | None, tie: tuple[str, ...]) -> tuple[Array | None, Array]:
        """The order by key, time and tie (None: as they come), and where each key's run begins."""
        order, offsets = self._by_key_and_time(time)
        return self._by_tie(order, offsets, time, tie) if tie else order, offsets

    def _by_key_and_time(self, time: Array | None) -> tuple[Array | None, Array]:
        unsorted = None if time is None or is_sorted(time, self.threads) else time
        if not self.key:
            order = None if unsorted is None else np.arange(self.size)
            offsets = np.array([0, self.size], np.int64)
        else:
            runs = self._sorted_key(time)
            if runs is not None:
                return None, runs
            codes, count = key_codes(self.table, self.key)
            runs = runs_if_sorted(codes, time, self.threads)
            if runs is not None:
                return None, runs
            order, offsets = by_code(codes, count, np.arange(self.size))
        if unsorted is not None and order is not None:
            by_time(order, offsets, unsorted, self.threads)
        return order, offsets

    def _by_tie(
        self, order: Array | None, offsets: Array, time: Array | None, tie: tuple[str, ...]
    ) -> Array | None:
        """The order where ties decide among rows of equal key and time; only these are compared."""
        times = time if time is None or order is None else time[order]
        places, groups = peers(offsets, np.empty(0, np.int64) if times is None else times)
        rows = places if order is None else order[places]
        tied = self.table.select(list(dict.fromkeys(tie))).take(array_of(rows))
        keys = [key for name in tie for key in tie_keys(tied, name)][::-1]
        inside = np.lexsort((*keys, groups))
        if is_sorted(inside, 1):
            return order
        order = np.arange(self.size) if order is None else order
        order[places] = rows[inside]
        return order

    def _sorted_key(self, time: Array | None) -> Array | None:
        """Where runs begin, if rows already come by one integer key and by time: no hashing."""
        array = plain_column(self.table[self.key[0]])
        if len(self.key) > 1 or array.null_count or not pa.types.is_integer(array.type):
            return None
        return runs_if_sorted(numbers_of(array), time, self.threads)

    def column(self, name: str) -> Column:
        """A column in sorted order."""
        if name not in self._columns:
            column = value_column(self.table[name], name)
            if self.order is not None:
                column.values = column.values[self.order]
                column.valid = None if column.valid is None else column.valid[self.order]
            self._columns[name] = column
        return self._columns[name]

    def placed(self, name: str) -> Column:
        """A column in sorted order for those who pick or count its rows, and do not compare."""
        column = None if name in self._columns else placed_column(self.table[name], name)
        if column is None:
            return self.column(name)
        if self.order is not None:
            column.values = column.values[self.order]
            column.valid = None if column.valid is None else column.valid[self.order]
        return column

    def sorted_arrow(self, name: str) -> pa.Array:
        """A column in sorted order, as Arrow."""
        array = plain_column(self.table[name])
        return array if self.order is None else array.take(array_of(self.order))

    def back(self, answers: pa.Array) -> pa.Array:
        """Answers in the order of the rows as they came."""
        if self.order is None:
            return answers
        return answers.take(self._places)

    @cached_property
    def _places(self) -> pa.Array:
        """Where each row went."""
        kind = np.int32 if self.size < 1 << 31 else np.int64  # half the memory to go through
        place = np.empty(self.size, kind)
        place[self.order] = np.arange(self.size, dtype=kind)
        return array_of(place)

    def original_row(self, sorted_row: int) -> int:
        """Where a sorted row came from."""
        return sorted_row if self.order is None else int(self.order[sorted_row])


def tie_keys(table: pa.Table, name: str) -> list[Array]:
    """What orders by a tie column, the more important first: NaN, then missing ones, are last."""
    column = value_column(table[name], name)
    keys = [column.values]
    if column.is_float and has_nan(column.values, 0, len(column.values)):
        odd = np.isnan(column.values)
        keys = [odd, np.where(odd, 0.0, column.values)]
    return keys if column.valid is None else [~column.valid, *keys]


def time_column(table: pa.Table, name: str, unit: str | None) -> tuple[Array, Clock]:
    """A time column as integers, and how they count."""
    array = plain_column(table[name])
    if array.null_count:
        valid = valid_of(array)
        assert valid is not None
        rows = np.flatnonzero(~valid)
        shown = ", ".join(map(str, rows[:_SHOWN])) + (", …" if len(rows) > _SHOWN else "")
        raise BadValue(
            f"time column {name!r} is missing in {len(rows)} of {len(array)} rows (row {shown}): "
            "drop or fill these rows first"
        )
    kind = table[name].type if pa.types.is_null(table[name].type) else array.type
    if pa.types.is_timestamp(kind):
        clock = Clock(f"timestamps in {kind.unit}", kind.unit, _no, _no)
        return numbers_of(array.view(pa.int64())), clock
    if pa.types.is_date32(kind):
        days = numbers_of(array.view(pa.int32())).astype(np.int64)
        return days, Clock("dates", "d", _no, _no)
    if pa.types.is_date64(kind):
        return numbers_of(array.view(pa.int64())), Clock("dates in ms", "ms", _no, _no)
    if pa.types.is_integer(kind):
        if pa.types.is_uint64(kind) and len(array) and pc.max(array).as_py() >= 1 << 63:
            raise BadValue(f"time column {name!r} has values beyond int64")
        return numbers_of(array).astype(np.int64, copy=False), Clock("integers", None, _no, _no)
    if pa.types.is_floating(kind):
        clock_of(0.0, unit)  # refuses a missing or unknown unit
        factor = NANOSECONDS[unit_of(unit)]
        floats = numbers_of(array).astype(np.float64, copy=False)
        ticks, bad = _nanoseconds(floats, factor)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise BadValue(
                f"time column {name!r}, row {row}: {float(floats[row])!r} {unit} is not a whole "
                "number of nanoseconds, or out of range"
            )
        return ticks, Clock(f"floats in {unit}", "ns", _no, _no)
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    hint = (
        ". Convert texts first, with pandas.to_datetime(), Polars' str.to_datetime() or Spark's "
        "to_timestamp()"
    )
    raise BadSpecification(
        f"time column {name!r} has type {kind}: it must be a timestamp, a date, an integer, or a "
        f"float with unit={hint if texts else ''}"
    )


def same_clock(kind: pa.DataType, name: str, other: pa.DataType, theirs: str) -> None:
    """Refuse to compare times that do not count alike, and those of which one has a zone."""
    both = pa.types.is_timestamp(kind) and pa.types.is_timestamp(other)
    if both and (kind.tz is None) != (other.tz is None):
        raise BadSpecification(
            f"column {theirs!r} has type {other}, and column {name!r} has {kind}: one has a zone, "
            "the other has none. Give both one, or neither"
        )
    days = pa.types.is_date(other) and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    if not both and not days and not (_is_plain_number(kind) and _is_plain_number(other)):
        raise BadSpecification(
            f"column {theirs!r} has type {other}, and the times of column {name!r} are {kind}: "
            "convert one of them"
        )


def _is_plain_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


_LIKE = (
    _is_plain_number,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    *(pa.types.is_decimal, pa.types.is_timestamp, pa.types.is_date, pa.types.is_time),
    pa.types.is_duration,
)
"""Types whose values are compared."""


def same_keys(name: str, ours: pa.Array, theirs: str, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two columns of keys in one type, in which every value is what it was."""
    a, b = ours.type, other.type
    if a == b:
        return ours, other
    if other.null_count == len(other):  # which has no type of its own
        return ours, pa.nulls(len(other), a)
    if ours.null_count == len(ours):
        return pa.nulls(len(ours), b), other
    if not any(like(a) and like(b) for like in _LIKE):
        raise BadSpecification(
            f"the labels' {theirs!r} has type {b}, the events' {name!r} has {a}: convert one of "
            "them, they are never the same"
        )
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        same_clock(a, name, b, theirs)
    whole = pa.types.is_integer(a) and pa.types.is_integer(b)
    unsigned = pa.types.is_uint64(a) or pa.types.is_uint64(b)
    tried = [a, b] if not whole else [pa.decimal128(20, 0) if unsigned else pa.int64()]
    for kind in tried:
        try:
            return ours.cast(kind), other.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as found:
            error = found
    raise BadSpecification(
        f"the labels' {theirs!r} has type {b}, the events' {name!r} has {a}, and not all of their "
        f"values have a place in one of them: {error}. Convert one of them"
    ) from error


def _nanoseconds(floats: Any, factor: int) -> tuple[Any, Any]:
    """The nearest nanoseconds, and where these are not the time that was written.

    Seconds of our days times 10**9 have more bits than a float: whole counts and the rest are
    multiplied apart.
    """
    bad = ~(np.abs(floats) * factor < 2.0**63)
    held = np.where(bad, 0.0, floats)
    whole = np.trunc(held)
    rest = np.floor((held - whole) * factor + 0.5)
    bad |= np.abs(rest / factor - (held - whole)) > np.spacing(np.abs(held)) / 2
    return whole.astype(np.int64) * factor + rest.astype(np.int64), bad


def _no(_: Any) -> Any:
    raise AssertionError("tables convert whole columns")
