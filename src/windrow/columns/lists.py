"""Answers that are lists of a column's values, one list for each range."""

import numpy as np
import pyarrow as pa

from windrow.columns.column import Column
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.task import Task
from windrow.errors import BadValue

_LONGEST = (1 << 31) - 1


def offsets_of(task: Task, lengths: Array, missing: Array | None) -> Array:
    """Where each list begins, and the end; ranges that are missing have none."""
    if missing is not None:
        lengths[missing] = 0
    total = int(lengths.sum())
    if total > _LONGEST:
        raise BadValue(
            f"{task.aggregate!r}: the lists of all {len(lengths):,} rows have {total:,} values "
            "together, more than a column can hold. Take a number (a count, an extreme) instead of "
            "a list, a shorter window, or a part of the table"
        )
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def list_array(column: Column, values: Array, offsets: Array, missing: Array | None) -> pa.Array:
    """Lists of values of a column's kind."""
    return lists_of(column.arrow(values, None), offsets, missing)


def lists_of(inside: pa.Array, offsets: Array, missing: Array | None) -> pa.Array:
    """Lists of what an array holds."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32))]
    if missing is not None:
        buffers[0] = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    kind = pa.list_(inside.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers, children=[inside])


def canonical_values(column: Column, rows: Array) -> Array:
    """A column's numbers at some rows: one NaN, no negative zero."""
    values = column.values[rows]
    return np.where(np.isnan(values), np.nan, values + 0.0) if column.is_float else values


@njit(cache=True, nogil=True)
def _filled(kept, starts, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(offsets) - 1):
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = kept[starts[i] + j]


def collect_answers(task: Task) -> pa.Array:
    """All values of every range, in order."""
    column: Column = task.column
    lo, hi = (bound.astype(np.int64) for bound in task.ranges.bounds())
    hi = np.maximum(lo, hi)
    kept = np.arange(len(column.values))
    if column.valid is not None:
        kept = np.flatnonzero(column.valid)
        assert column.counts is not None
        lo, hi = column.counts[lo], column.counts[hi]
    missing = task.missing()
    offsets = offsets_of(task, hi - lo, missing)
    rows = np.empty(int(offsets[-1]), np.int64)
    _filled(kept, lo, offsets, rows)
    return list_array(column, canonical_values(column, rows), offsets, missing)
