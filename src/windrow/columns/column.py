"""A column as plain numbers and a mask, and the way there from Arrow and back.

Nothing is copied where memory can be shared, and nothing here imports pandas, which pyarrow's own
conversions do. Types that are not numbers become places in an ordered list of their values, so
that every kernel sees floats or integers only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.decimals import decimals_of, units_of
from windrow.columns.jit import njit
from windrow.columns.radix import keyed, restored, sort
from windrow.columns.ranges import Array
from windrow.errors import BadValue

_SOME = 1 << 12
_ALL_VALID = np.empty(0, np.bool_)


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
    """For types that are not numbers: the distinct values, ordered; ``values`` are places in it.

    Of a ``placed_column`` they are neither distinct nor ordered.
    """

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

    @cached_property
    def units(self) -> Array | None:
        """Decimals in units of their last digit, 0 where missing; None where 64 bits do not do."""
        if self.words is None or not pa.types.is_decimal(self.words.type):
            return None
        units = units_of(self.words, valid_of(self.words))
        if units is None or not len(units):
            return None
        found = units[self.values]
        return found if self.valid is None else np.where(self.valid, found, 0)

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


def whole_column(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    if array.num_chunks == 1:  # combine_chunks would copy it
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)


def chosen_rows(table: pa.Table, wanted: Array) -> pa.Table:
    """Some rows of a table, whatever types Arrow can choose from only by way of others."""
    mask = array_of(wanted)
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_run_end_encoded(kind):
            plain = pc.run_end_decode(column).filter(mask)
            columns.append(pc.run_end_encode(plain, run_end_type=kind.run_end_type))
        elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
            texts = pa.types.is_string_view(kind)
            wide = column.cast(pa.large_string() if texts else pa.large_binary())
            columns.append(wide.filter(mask).cast(kind))
        else:
            columns.append(column.filter(mask))
    return pa.table(columns, schema=table.schema)


def plain_column(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array, of a type that Arrow's functions take."""
    whole = whole_column(array)
    if pa.types.is_run_end_encoded(whole.type):
        whole = pc.run_end_decode(whole)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    kind = whole.type
    if pa.types.is_null(kind):
        return whole.cast(pa.float64())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return whole.cast(pa.large_string() if kind == pa.string_view() else pa.large_binary())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return whole.cast(pa.decimal128(kind.precision, kind.scale))
    return whole


def value_column(array: pa.ChunkedArray | pa.Array, name: str) -> Column:
    """A column's numbers and mask; categories that have an order keep it."""
    whole = whole_column(array)
    if pa.types.is_dictionary(whole.type) and whole.type.ordered:
        words = plain_column(whole.dictionary)
        texts = pa.types.is_string(words.type) or pa.types.is_large_string(words.type)
        if texts and not words.null_count and len(pc.unique(words)) == len(words):
            codes = numbers_of(pc.fill_null(whole.indices, 0)).astype(np.int64)
            return Column(name, codes, valid_of(whole), words.type, words)
    return number_column(plain_column(whole), name)


def placed_column(array: pa.ChunkedArray | pa.Array, name: str) -> Column | None:
    """A column whose rows are only picked or counted: its words are in no order, so none is found.

    None where values are numbers, which ``value_column`` takes as they are.
    """
    whole = whole_column(array)
    if pa.types.is_dictionary(whole.type) and not whole.dictionary.null_count:
        words = plain_column(whole.dictionary)
        if _has_words(words.type):
            codes = numbers_of(pc.fill_null(whole.indices, 0)).astype(np.int64)
            return Column(name, codes, valid_of(whole), words.type, words)
    whole = plain_column(whole)
    if not _has_words(whole.type):
        return None
    return Column(name, np.arange(len(whole)), valid_of(whole), whole.type, whole)


def _has_words(kind: pa.DataType) -> bool:
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(texts or pa.types.is_binary(kind) or pa.types.is_decimal(kind))


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
    units = units_of(array, valid) if pa.types.is_decimal(array.type) else None
    if units is not None and len(units) < 1 << 31:
        some = array[:_SOME]
        if 2 * len(some.unique()) > len(some):  # hashing is faster where few are distinct
            return _unit_column(array, name, valid, units)
    try:
        encoded = array.dictionary_encode()
        places = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    except pa.ArrowNotImplementedError:
        raise BadValue(
            f"column {name!r} has type {array.type}, whose values cannot be ordered or added: make "
            "a column of what you need of them first"
        ) from None
    rank = np.empty(len(places), np.int64)
    rank[places] = np.arange(len(places))
    codes = numbers_of(pc.fill_null(encoded.indices, 0))
    values = rank[codes] if len(places) else np.zeros(len(array), np.int64)
    words = encoded.dictionary.take(array_of(places))
    return Column(name, values, valid, array.type, words)


def _unit_column(array: pa.Array, name: str, valid: Array | None, units: Array) -> Column:
    """Decimals as places among the distinct ones, which are found by sorting whole numbers."""
    size = len(units)
    keys, rows = np.empty(size, np.uint64), np.empty(0 if valid is None else size, np.int32)
    count = keyed(units, _ALL_VALID if valid is None else valid, False, keys, rows)
    rank = np.empty(size, np.int32)
    ordered = np.empty(count, np.int64)
    restored(sort(keys[:count], rows[:count], False, rank), False, ordered)
    first = np.ones(count, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    places = np.cumsum(first) - 1
    values = places[rank] if count else np.zeros(size, np.int64)
    distinct = ordered[first]
    words = decimals_of(distinct >> 63, distinct, None, array.type)
    return Column(
        name, values if valid is None else np.where(valid, values, 0), valid, array.type, words
    )
