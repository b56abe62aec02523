"""A table made ready: sorted by key, time and tie, its columns as plain arrays with masks."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.jit import njit
from windrow.columns.ranges import Array, shared_out
from windrow.errors import BadSpecification, BadValue
from windrow.times import NANOSECONDS, Clock, clock_of

_SHOWN = 5


def is_sorted(x: Array, threads: int) -> bool:
    """Whether no value is below the one before it."""
    return all(shared_out(len(x), threads, partial(_is_sorted, x)))


@njit(cache=True, nogil=True)
def _is_sorted(x, first, last):  # type: ignore[no-untyped-def]
    for i in range(max(first, 1), last):
        if x[i] < x[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _sorted_in_runs(codes, time, first, last):  # type: ignore[no-untyped-def]
    """Whether rows already come by code, and within a code by time."""
    for i in range(max(first, 1), last):
        if codes[i] < codes[i - 1]:
            return False
        if len(time) and codes[i] == codes[i - 1] and time[i] < time[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _run_starts(codes, first, last):  # type: ignore[no-untyped-def]
    """The rows whose code is another than that of the row before."""
    runs = 0
    for i in range(max(first, 1), last):
        runs += codes[i] != codes[i - 1]
    out = np.empty(runs, np.int64)
    runs = 0
    for i in range(max(first, 1), last):
        if codes[i] != codes[i - 1]:
            out[runs] = i
            runs += 1
    return out


def runs_if_sorted(codes: Array, time: Array | None, threads: int) -> Array | None:
    """Where each run of equal codes begins, and the end; None unless rows come by code and time."""
    times = np.empty(0, np.int64) if time is None else time
    if not all(shared_out(len(codes), threads, partial(_sorted_in_runs, codes, times))):
        return None
    return run_starts(codes, threads)


def run_starts(codes: Array, threads: int = 1) -> Array:
    """Where each run of equal codes begins, and the end."""
    starts = shared_out(len(codes), threads, partial(_run_starts, codes))
    return np.concatenate([[0], *starts, [len(codes)]]).astype(np.int64)


@njit(cache=True, nogil=True)
def by_code(codes, count, order):  # type: ignore[no-untyped-def]
    """A stable sort of ``order`` by code, and where each code's run begins."""
    offsets = np.zeros(count + 1, np.int64)
    for code in codes:
        offsets[code + 1] += 1
    for k in range(count):
        offsets[k + 1] += offsets[k]
    place = offsets[:-1].copy()
    out = np.empty(len(codes), np.int64)
    for i in order:
        code = codes[i]
        out[place[code]] = i
        place[code] += 1
    return out, offsets


@njit(cache=True, nogil=True)
def has_nan(x, first, last):  # type: ignore[no-untyped-def]
    """Whether any value of these rows is NaN."""
    for i in range(first, last):
        if x[i] != x[i]:
            return True
    return False


@dataclass
class Column:
    """A column in sorted order: numbers, where valid, with the type to give answers back in."""

    name: str
    values: Array
    valid: Array | None
    type: pa.DataType
    words: pa.Array | None = None
    """For types that are not numbers: the distinct values, ordered; ``values`` are places in it."""

    @property
    def is_float(self) -> bool:
        """Whether values are floats."""
        return bool(self.values.dtype == np.float64)

    @property
    def is_number(self) -> bool:
        """Whether sums make sense."""
        kind = self.type
        return bool(
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        )

    @cached_property
    def counts(self) -> Array | None:
        """How many valid rows come before each row; None where all are valid."""
        if self.valid is None:
            return None
        out = np.zeros(len(self.values) + 1, np.int64)
        np.cumsum(self.valid, out=out[1:])
        return out

    def filled(self, value: Any) -> Array:
        """The values with missing ones replaced."""
        if self.valid is None:
            return self.values
        return np.where(self.valid, self.values, np.array(value, self.values.dtype))

    def arrow(self, values: Array, missing: Array | None) -> pa.Array:
        """Values of this column's kind as Arrow, in its own type."""
        if self.words is not None:
            return self.words.take(array_of(values, missing))
        return typed(values, missing, self.type)


def array_of(values: Array, mask: Array | None = None) -> pa.Array:
    """Numbers as an Arrow array that shares their memory, missing where the mask says.

    ``pyarrow.array`` would import pandas to look at a NumPy array, which takes a quarter of a
    second.
    """
    missing = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    if values.dtype == np.bool_:
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [missing, bits])
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [missing, data])


def numbers_of(array: pa.Array) -> Array:
    """The numbers of an Arrow array without a copy; what is missing is arbitrary.

    ``Array.to_numpy`` would import pandas.
    """
    start, end = array.offset, array.offset + len(array)
    if pa.types.is_boolean(array.type):
        return _bits(array.buffers()[1], start, end)
    data = array.buffers()[1]
    kind = np.dtype(array.type.to_pandas_dtype())
    if data is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(data, kind)[start:end]


def valid_of(array: pa.Array) -> Array | None:
    """Where an Arrow array has values; None where it has them everywhere."""
    if not array.null_count:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:  # a column of type null
        return np.zeros(len(array), np.bool_)
    return _bits(bitmap, array.offset, array.offset + len(array))


def _bits(buffer: Any, start: int, end: int) -> Array:
    if buffer is None or start == end:
        return np.zeros(end - start, np.bool_)
    return np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")[
        start:end
    ].astype(np.bool_)


def typed(values: Array, missing: Array | None, kind: pa.DataType) -> pa.Array:
    """Numbers as an Arrow array of a type that holds them."""
    plain = array_of(values, missing)
    if plain.type == kind:
        return plain
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind) or pa.types.is_duration(kind):
        return plain.view(kind) if not pa.types.is_date64(kind) else plain.cast(kind)
    if pa.types.is_time(kind) or pa.types.is_date(kind):
        return plain.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return plain.cast(kind)


def plain_column(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array without a dictionary."""
    if not isinstance(array, pa.ChunkedArray):
        whole = array
    elif array.num_chunks == 1:  # combine_chunks would copy it
        whole = array.chunk(0)
    else:
        whole = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_null(whole.type):
        whole = whole.cast(pa.float64())
    return whole


def number_column(array: pa.Array, name: str) -> Column:
    """A column's numbers and mask, whatever its type."""
    kind = array.type
    valid = valid_of(array)
    if pa.types.is_floating(kind):
        plain = numbers_of(array).astype(np.float64, copy=False)
        plain = plain if valid is None else np.where(valid, plain, 0.0)
        return Column(name, plain, valid, kind)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        if pa.types.is_uint64(kind) and (pc.max(array).as_py() or 0) >= 1 << 63:
            return _word_column(array, name, valid)
        plain = numbers_of(array).astype(np.int64, copy=False)
        return Column(name, plain if valid is None else np.where(valid, plain, 0), valid, kind)
    if pa.types.is_temporal(kind) and kind.id not in (pa.lib.Type_INTERVAL_MONTH_DAY_NANO,):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        plain = numbers_of(array.view(width)).astype(np.int64, copy=False)
        return Column(name, plain if valid is None else np.where(valid, plain, 0), valid, kind)
    return _word_column(array, name, valid)


def _word_column(array: pa.Array, name: str, valid: Array | None) -> Column:
    try:
        encoded = array.dictionary_encode()
        places = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    except pa.ArrowNotImplementedError:
        raise BadValue(
            f"column {name!r} has type {array.type}, whose values cannot be ordered or added"
        ) from None
    rank = np.empty(len(places), np.int64)
    rank[places] = np.arange(len(places))
    codes = numbers_of(pc.fill_null(encoded.indices, 0))
    values = rank[codes] if len(places) else np.zeros(len(array), np.int64)
    words = encoded.dictionary.take(array_of(places))
    return Column(name, values, valid, array.type, words)


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
        if self.key and not tie:
            runs = self._sorted_key(time)
            if runs is not None:
                return None, runs
        first: Array | None = None
        if tie:
            keys = [key for name in tie for key in tie_keys(self.table, name)][::-1]
            first = np.lexsort((*keys, time) if time is not None else tuple(keys))
        elif time is not None and not is_sorted(time, self.threads):
            first = np.argsort(time, kind="stable")
        if not self.key:
            return first, np.array([0, self.size], np.int64)
        codes, count = key_codes(self.table, self.key)
        if not tie:
            runs = runs_if_sorted(codes, time, self.threads)
            if runs is not None:
                return None, runs
        order, offsets = by_code(codes, count, np.arange(self.size) if first is None else first)
        return order, offsets

    def _sorted_key(self, time: Array | None) -> Array | None:
        """Where runs begin, if rows already come by one integer key and by time: no hashing."""
        array = plain_column(self.table[self.key[0]])
        if len(self.key) > 1 or array.null_count or not pa.types.is_integer(array.type):
            return None
        return runs_if_sorted(numbers_of(array), time, self.threads)

    def column(self, name: str) -> Column:
        """A column in sorted order."""
        if name not in self._columns:
            array = plain_column(self.table[name])
            column = number_column(array, name)
            if self.order is not None:
                column.values = column.values[self.order]
                column.valid = None if column.valid is None else column.valid[self.order]
            self._columns[name] = column
        return self._columns[name]

    def sorted_arrow(self, name: str) -> pa.Array:
        """A column in sorted order, as Arrow."""
        array = plain_column(self.table[name])
        return array if self.order is None else array.take(array_of(self.order))

    def back(self, answers: pa.Array) -> pa.Array:
        """Answers in the order of the rows as they came."""
        if self.order is None:
            return answers
        place = np.empty(self.size, np.int64)
        place[self.order] = np.arange(self.size)
        return answers.take(array_of(place))

    def original_row(self, sorted_row: int) -> int:
        """Where a sorted row came from."""
        return sorted_row if self.order is None else int(self.order[sorted_row])


def tie_keys(table: pa.Table, name: str) -> list[Array]:
    """What orders by a tie column, the more important first: NaN, then missing ones, are last."""
    column = number_column(plain_column(table[name]), name)
    keys = [column.values]
    if column.is_float and has_nan(column.values, 0, len(column.values)):
        odd = np.isnan(column.values)
        keys = [odd, np.where(odd, 0.0, column.values)]
    return keys if column.valid is None else [~column.valid, *keys]


def key_codes(table: pa.Table, key: tuple[str, ...]) -> tuple[Array, int]:
    """One dense code per row for its key; a null key is a key, and so is NaN."""
    codes: Array | None = None
    count = 1
    for name in key:
        array = plain_column(table[name])
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), float("nan"), pc.add(array, 0.0))
        try:
            encoded = array.dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:
            raise BadSpecification(
                f"key column {name!r} has type {array.type}, which cannot be a key: take a column "
                "of texts, numbers or dates"
            ) from None
        own = numbers_of(encoded.indices).astype(np.int64)
        size = max(1, len(encoded.dictionary))
        if codes is None:
            codes, count = own, size
            continue
        together = array_of(codes * size + own).dictionary_encode()
        codes = numbers_of(together.indices).astype(np.int64)
        count = max(1, len(together.dictionary))
    assert codes is not None
    return codes, count


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
    kind = array.type
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
        factor = NANOSECONDS[str(unit)]
        floats = numbers_of(array).astype(np.float64, copy=False)
        ticks = np.rint(floats * factor)
        bad = ~(np.abs(ticks) < 2.0**63) | (ticks / factor != floats)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise BadValue(
                f"time column {name!r}, row {row}: {floats[row]!r} {unit} is not a whole number of "
                "nanoseconds, or out of range"
            )
        return ticks.astype(np.int64), Clock(f"floats in {unit}", "ns", _no, _no)
    raise BadSpecification(
        f"time column {name!r} has type {kind}: it must be a timestamp, a date, an integer, or a "
        "float with unit="
    )


def _no(_: Any) -> Any:
    raise AssertionError("tables convert whole columns")
