"""Columns for aggregates that count only some rows: their inputs, missing in all others."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.where import Masked, Where
from windrow.columns.column import array_of, numbers_of, plain_column, valid_of, whole_column
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification
from windrow.rolling import Rolling


def plain(spec: Rolling, table: pa.Table) -> tuple[Rolling, pa.Table]:
    """A specification whose aggregates count all rows, and the table with the columns it needs."""
    if not spec.masked:
        return spec, table
    answers = {name for name, _, _ in spec.outputs}
    spec.check_columns([name for name in table.column_names if name not in answers])
    spec, columns = spec.plain()
    for column in columns:
        table = table.append_column(column.name, _made(table, column))
    return spec, table


def _made(table: pa.Table, masked: Masked) -> pa.Array:
    counts = np.logical_and.reduce([_holds(table, where) for where in masked.where])
    if masked.column is None:
        return array_of(counts, ~counts)
    rows = array_of(np.arange(table.num_rows), ~counts)
    column = whole_column(table[masked.column])
    if not pa.types.is_dictionary(column.type):  # whose order may matter
        column = plain_column(column)
    return column.take(rows)


def _holds(table: pa.Table, where: Where) -> Array:
    """In which rows it is true."""
    kind = table[where.column].type
    if pa.types.is_null(kind.value_type if pa.types.is_dictionary(kind) else kind):
        return np.zeros(table.num_rows, np.bool_)
    column = plain_column(table[where.column])
    if not where.values and not pa.types.is_boolean(column.type):
        raise BadSpecification(
            f"{where}: column {where.column!r} has type {column.type}, and is neither true nor "
            f"false: say which values count, .where({where.column!r}, ...)"
        )
    if not where.values:
        return _true(column)
    wanted = [_scalar(where, value, column.type) for value in where.values]
    if pa.types.is_float16(column.type):  # which Arrow does not compare
        column, wanted = column.cast(pa.float32()), [value.cast(pa.float32()) for value in wanted]
    found = np.zeros(table.num_rows, np.bool_)
    for value in wanted:
        found |= _true(pc.equal(column, value))
    return found


_WHOLE = 1 << 63


def _scalar(where: Where, value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value in the column's type, which must have it exactly, or nearly where it is a float."""
    why = "it is of another kind"
    if _FAMILIES[type(value)](kind):
        try:
            if pa.types.is_decimal(kind):
                return pa.scalar(Decimal(str(value)), kind)
            if (
                pa.types.is_floating(kind)
                and not -_WHOLE <= value < _WHOLE
                and value == float(value)
            ):
                value = float(value)  # an integer that Arrow cannot make a float of
            if isinstance(value, float):  # given the type at once, 1.5 would become 1
                return pa.scalar(value).cast(kind)
            return pa.scalar(value, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
            why = str(error)
    raise BadSpecification(
        f"{where}: column {where.column!r} has type {kind}, which is never {value!r}: {why}"
    )


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    fixed = types.is_fixed_size_binary(kind)
    return bool(fixed or types.is_binary(kind) or types.is_large_binary(kind))


_FAMILIES: dict[type, Callable[[pa.DataType], bool]] = {
    bool: pa.types.is_boolean,
    int: _is_number,
    float: _is_number,
    str: _is_text,
    bytes: _is_bytes,
}
"""Which columns can have a value of Python's."""


def _true(column: pa.Array) -> Array:
    valid, truth = valid_of(column), numbers_of(column)
    return truth if valid is None else truth & valid
