"""Rows as they come, made ready: numbers of 64 bits, and which are missing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns.column import number_column, plain_column
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared.cells import LEAST
from windrow.errors import BadValue, Refused

KINDS = ("int64", "float64", "bool")
_EXACT = 1 << 53
_SCALARS: dict[type, type] = {float: np.float64, bool: np.int64}
_NAMES: dict[type, str] = {float: "float64", bool: "bool"}
_WAY_OUT = "use the object form in windrow.shared, which takes any values"


@dataclass
class Column:
    """One input of some rows; ``kind`` is None where nothing but missing values came."""

    values: Array
    valid: Array | None
    kind: str | None


@dataclass
class Batch:
    """Rows: the inputs, and which rows have all of them (None: every row)."""

    size: int
    columns: list[Array]
    valid: Array | None

    def filled(self, column: int = 0) -> Array:
        """An input with 0 where a row is missing."""
        values = self.columns[column]
        return values if self.valid is None else np.where(self.valid, values, values.dtype.type(0))


def column_of(values: Any, who: str) -> Column:
    """Values of a NumPy array, an Arrow array or a list as numbers; other types are refused."""
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return _of_numpy(values, who)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        given = list(values)
        if len(given) == 1 and type(given[0]) in _SCALARS:
            return Column(np.array(given, _SCALARS[type(given[0])]), None, _NAMES[type(given[0])])
        try:
            values = pa.array(given)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise Refused(f"{who}: these values are not of one 64-bit type: {_WAY_OUT}") from error
    if pa.types.is_null(values.type):
        size = len(values)
        return Column(np.zeros(size, np.int64), np.zeros(size, np.bool_), None)
    array = plain_column(values)
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise Refused(f"{who}: values of type {kind} are not compiled: {_WAY_OUT}")
    column = number_column(array, "values")
    if column.words is not None:
        raise Refused(f"{who}: values beyond int64 are not compiled: {_WAY_OUT}")
    name = "float64" if column.is_float else "bool" if pa.types.is_boolean(kind) else "int64"
    return Column(np.ascontiguousarray(column.values), column.valid, name)


def _of_numpy(values: Array, who: str) -> Column:
    if values.ndim != 1:
        raise BadValue(f"{who}: values come as one column, not as an array of shape {values.shape}")
    kind = values.dtype.kind
    if kind == "u" and len(values) and int(values.max()) > np.iinfo(np.int64).max:
        raise Refused(f"{who}: values beyond int64 are not compiled: {_WAY_OUT}")
    if kind in "biu":
        whole = np.ascontiguousarray(values, np.int64)
        return Column(whole, None, "bool" if kind == "b" else "int64")
    if kind == "f" and values.dtype.itemsize <= 8:
        return Column(np.ascontiguousarray(values, np.float64), None, "float64")
    raise Refused(f"{who}: values of type {values.dtype} are not compiled: {_WAY_OUT}")


def joined_kind(before: str | None, now: str | None, who: str) -> str | None:
    """The kind of a column that takes more values."""
    if now is None or before == now:
        return before
    if before is None:
        return now
    if "float64" not in (before, now):
        return "int64"
    if before == "float64":
        return before
    raise Refused(
        f'{who}: floats cannot join the {before} values that came before: say dtype="float64" '
        f"from the start, or {_WAY_OUT}"
    )


def as_kind(column: Column, kind: str | None, who: str) -> Array:
    """A column's values in the kind that the window has."""
    if kind != "float64" or column.values.dtype == np.float64:
        return column.values
    values = column.values
    if len(values) and (int(values.max()) > _EXACT or int(values.min()) < -_EXACT):
        raise Refused(f"{who}: integers beyond 2**53 cannot join floats exactly: {_WAY_OUT}")
    return values.astype(np.float64)


_MAGNITUDE = 0x7FFFFFFFFFFFFFFF
_INFINITE = 0x7FF0000000000000
_NAN = 0x7FF8000000000000


@njit(cache=True, nogil=True)
def _float_keys(bits, turn, out):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        b = bits[i]
        if b & _MAGNITUDE > _INFINITE:
            b = _NAN
        elif b == LEAST:  # -0.0
            b = 0
        out[i] = (b if b >= 0 else b ^ _MAGNITUDE) ^ turn


def keys_of(values: Array, smallest: bool = False) -> Array:
    """Integers in the values' order, NaN the largest; ``smallest`` turns the order round."""
    turn = -1 if smallest else 0
    if values.dtype != np.float64:
        return values ^ np.int64(turn) if smallest else values
    out = np.empty(len(values), np.int64)
    _float_keys(values.view(np.int64), turn, out)
    return out


def values_of(keys: Array, kind: str | None, smallest: bool = False) -> Array:
    """The values that have these keys."""
    if smallest:
        keys = ~keys
    if kind != "float64":
        return keys
    return np.where(keys >= 0, keys, keys ^ np.int64(_MAGNITUDE)).view(np.float64)
