"""Keys, times and values of a batch as arrays, from lists, NumPy and Arrow."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.column import array_of, number_column, numbers_of, plain_column, valid_of
from windrow.columns.ranges import Array
from windrow.errors import BadValue
from windrow.times import Clock, clock_of


def canonical(key: Any) -> Any:
    """One form for equal keys: NumPy's scalars as Python's, one NaN, no negative zero."""
    if isinstance(key, np.generic) and not isinstance(key, np.datetime64):
        key = key.item()
    if type(key) is float:
        return math.nan if key != key else key + 0.0
    return key


def key_codes(keys: Any) -> tuple[Array, list[Any]]:
    """A number for each row, and the distinct keys that the numbers stand for."""
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iufb" and keys.dtype.itemsize <= 8:
        keys = array_of(keys.astype(np.float64) if keys.dtype.kind == "f" else keys)
    if isinstance(keys, (pa.Array, pa.ChunkedArray)):
        array = plain_column(keys)
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), math.nan, pc.add(array, 0.0))
        encoded = array.dictionary_encode(null_encoding="encode")
        codes = numbers_of(encoded.indices).astype(np.int64)
        return codes, [canonical(key) for key in encoded.dictionary.to_pylist()]
    code_of: dict[Any, int] = {}
    plain = keys.tolist() if isinstance(keys, np.ndarray) else keys
    try:
        found = [code_of.setdefault(canonical(key), len(code_of)) for key in plain]
    except TypeError as error:
        raise BadValue(f"a key must be hashable: {error}") from error
    return np.array(found, np.int64), list(code_of)


def ticks_of(
    at: Any, clock: Clock | None, unit: str | None, tick: Callable[[Clock, Any], int]
) -> tuple[Array, Clock | None]:
    """Times as whole numbers, and the clock that counts them."""
    if isinstance(at, (pa.Array, pa.ChunkedArray)):
        array = plain_column(at)
        if array.null_count:
            raise BadValue("the column of times has nulls: give every row a time, or leave it out")
        if pa.types.is_timestamp(array.type):
            at = numbers_of(array.view(pa.int64())).view(f"datetime64[{array.type.unit}]")
        elif pa.types.is_integer(array.type):
            at = numbers_of(array)
        else:
            at = array.to_pylist()
    if isinstance(at, np.ndarray) and at.ndim == 1 and len(at):
        if at.dtype.kind == "M":
            if np.isnat(at).any():
                raise BadValue("a time is NaT: give every row a time, or leave it out")
            clock = clock_of(at[0]) if clock is None else clock
            if clock.kind.startswith("datetime64"):
                return _in_clock(at, clock.kind), clock
        if at.dtype.kind in "iu" and at.dtype != np.uint64 and unit is None:
            clock = clock_of(0) if clock is None else clock
            if clock.unit is None:
                return at.astype(np.int64), clock
        at = list(at)
    times = list(at)
    if not times:
        return np.empty(0, np.int64), clock
    used = clock_of(times[0], unit) if clock is None else clock
    return np.array([tick(used, time) for time in times], np.int64), used


def _in_clock(at: Array, kind: str) -> Array:
    same = at.astype(kind)
    if (same.astype(at.dtype) != at).any():
        raise BadValue(f"times are {at.dtype}, finer than {kind}, the unit of the times before")
    return same.view(np.int64)


def numbers(values: Any) -> tuple[Array, Array | None, bool]:
    """Values as floats that lost nothing, where there are any, and whether all were integers."""
    if not isinstance(values, (np.ndarray, pa.Array, pa.ChunkedArray)):
        values = list(values)
        whole = all(value is None or isinstance(value, (int, np.integer)) for value in values)
        present = np.array([value is not None for value in values], np.bool_)
        try:
            found = np.array([0.0 if v is None else float(v) for v in values], np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadValue(f"a value is not a number that a float can hold: {error}") from error
        for row, value in enumerate(values):
            if isinstance(value, (int, np.integer)) and int(found[row]) != int(value):
                raise _too_long(row, value)
        return found, None if present.all() else present, whole
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iufb":
            return numbers(values.tolist())
        present_, plain = None, values
    else:
        column = number_column(plain_column(values), "values")
        if column.words is not None or not column.is_number:
            raise BadValue(f"values have type {column.type}: a filter compares numbers")
        present_, plain = valid_of(plain_column(values)), column.filled(0)
    found = plain.astype(np.float64)
    whole = plain.dtype.kind in "iub"
    if whole and plain.dtype.itemsize == 8 and len(plain):
        wrong = np.flatnonzero((np.abs(found) > 2.0**53) & (found.astype(object) != plain))
        if len(wrong):
            raise _too_long(int(wrong[0]), plain[wrong[0]])
    return found, present_, whole


def _too_long(row: int, value: Any) -> BadValue:
    return BadValue(
        f"row {row}: the integer {value} has more than 53 significant bits, and filters keep "
        "values as floats: scale it, or use wr.Hub, which keeps integers of any size"
    )
