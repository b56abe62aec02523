"""Answers that are rows of the window: the largest, the smallest, the first, the last, all four."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import ArgMin, First, Min, MinCount, RelativeVariation
from windrow.columns.answer_types import corners
from windrow.columns.builtin import kernels
from windrow.columns.column import array_of
from windrow.columns.jit import njit
from windrow.columns.lists import canonical_values
from windrow.columns.own_answers import interpreted
from windrow.columns.picked import falling
from windrow.columns.ranges import Array, Ranges
from windrow.columns.task import Task, too_large
from windrow.columns.turned import ORDERED_NAN, ordered, turned
from windrow.errors import BadValue


def extreme_answers(task: Task) -> pa.Array:
    """The largest or smallest value of every range; of booleans, whether any or all are true."""
    column = task.column
    if task.aggregate.input_kinds == ("boolean",) and not pa.types.is_boolean(column.type):
        raise BadValue(
            f"{task.aggregate!r}: column {column.name!r} has type {column.type}, not booleans: "
            "compare it with something first"
        )
    out = _extremes(task, isinstance(task.aggregate, Min))
    missing = task.missing()
    if column.words is not None and missing is not None:
        out[missing] = 0
    return column.arrow(out, missing)


def _extremes(task: Task, smallest: bool) -> Array:
    """The smallest or largest value of every range; those of empty ones are arbitrary."""
    column = task.column
    values, was_turned = ordered(column, task.ranges.threads)
    if values.dtype == np.float64:
        never: Any = np.inf if smallest else -np.inf
    else:
        limits = np.iinfo(np.int64)
        never = np.int64(limits.max if smallest else limits.min)
    if column.valid is not None:
        values = np.where(column.valid, values, never)
    out = np.empty(len(task.ranges), values.dtype)
    zero = values.dtype.type(0)
    module = kernels("min" if smallest else "max")
    task.ranges.in_parallel(
        lambda first, last: task.ranges.run(module, (values,), first, last, never, zero, out)
    )
    if was_turned:
        back = np.empty(len(out), np.int64)
        turned(out, back)
        out = np.where(out == ORDERED_NAN, np.nan, back.view(np.float64))
    return out


def spread_answers(task: Task) -> pa.Array:
    """Two extremes of the same column, and their difference, or that divided by the largest."""
    task.require_numbers()
    if task.column.words is not None:
        return interpreted(task)
    low, high = (_extremes(task, smallest) for smallest in (True, False))
    missing = task.missing()
    if missing is not None:
        low, high = (np.where(missing, high.dtype.type(0), x) for x in (low, high))
    with np.errstate(all="ignore"):
        gaps = high - low
        if type(task.aggregate) is RelativeVariation:
            if not task.column.is_float:  # differences of 64 bits fit where there is no sign
                gaps = gaps.view(np.uint64).astype(np.float64)
            shares = gaps / high
            shares = np.where((high == 0) & (gaps > 0), np.inf, shares) + 0.0
            return array_of(np.where(np.isnan(shares), np.nan, shares), mask=missing)
    if not task.column.is_float:
        missing = too_large(task, gaps < 0, missing, lambda row: int(high[row]) - int(low[row]))
        return array_of(gaps, mask=missing)
    return array_of(np.where(np.isnan(gaps), np.nan, gaps), mask=missing)


def _valid_mask(task: Task) -> Array:
    valid = task.together()[0]
    return np.ones(task.size, np.bool_) if valid is None else valid


def arg_answers(task: Task) -> pa.Array:
    """The first input where the second is largest, or smallest."""
    values, _ = ordered(task.columns[1], task.ranges.threads)
    rows = np.empty(len(task.ranges), np.int64)
    valid = _valid_mask(task)
    module = kernels("arg_min" if isinstance(task.aggregate, ArgMin) else "arg_max")
    task.ranges.in_parallel(
        lambda first, last: task.ranges.run(module, (values, valid), first, last, rows)
    )
    return _taken(task, rows, task.missing())


def _taken(task: Task, rows: Array, missing: Array | None) -> pa.Array:
    gone = (rows < 0) if missing is None else (rows < 0) | missing
    column = task.columns[0]
    safe = np.where(gone, 0, rows)
    if not len(column.values):
        return pa.nulls(len(rows), column.type)
    values = column.values[safe]
    if column.is_float:
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    return column.arrow(values, gone if gone.any() else None)


def extreme_count_answers(task: Task) -> pa.Array:
    """How often the largest, or smallest, value of every range is in it."""
    values, _ = ordered(task.column, task.ranges.threads)
    out = np.empty(len(task.ranges), np.int64)
    valid = _valid_mask(task)
    module = kernels("min_count" if isinstance(task.aggregate, MinCount) else "max_count")
    task.ranges.in_parallel(
        lambda first, last: task.ranges.run(module, (values, valid), first, last, out)
    )
    return array_of(out, mask=task.missing() if task.asked else None)


@njit(cache=True, nogil=True)
def next_valid(valid, out):  # type: ignore[no-untyped-def]
    """For each row the first valid one from it on."""
    following = len(valid)
    for k in range(len(valid)):
        i = len(valid) - 1 - k
        if valid[i]:
            following = i
        out[i] = following


@njit(cache=True, nogil=True)
def previous_valid(valid, out):  # type: ignore[no-untyped-def]
    """For each row the last valid one up to it."""
    previous = -1
    for i in range(len(valid)):
        if valid[i]:
            previous = i
        out[i] = previous


def end_answers(task: Task) -> pa.Array:
    """The first or the last value of every range."""
    lo, hi = task.ranges.bounds()
    valid = task.column.valid
    empty = hi <= lo
    if isinstance(task.aggregate, First):
        rows = lo
        if valid is not None:
            place = np.empty(len(valid) + 1, np.int64)
            place[-1] = len(valid)
            next_valid(valid, place[:-1])
            rows = place[lo]
        rows = np.where(empty | (rows >= hi), -1, rows)
    else:
        rows = hi - 1
        if valid is not None:
            place = np.empty(len(valid), np.int64)
            previous_valid(valid, place)
            rows = place[np.maximum(rows, 0)] if len(place) else rows
        rows = np.where(empty | (rows < lo), -1, rows)
    return _taken(task, rows, task.missing())


def corner_answers(task: Task) -> pa.Array:
    """First, smallest, largest and last value of every range, each with its time."""
    columns, ranges = task.columns, task.ranges
    kind = corners([column.type for column in columns])
    if not task.size:
        return pa.nulls(len(ranges), kind)
    lo, hi = (bound.astype(np.int64) for bound in ranges.bounds())
    valid, counts = task.together()
    if valid is None or counts is None:
        gone, first, last = hi <= lo, lo, hi - 1
        valid = np.ones(task.size, np.bool_)
    else:
        gone = counts[np.maximum(lo, hi)] == counts[lo]
        kept = np.append(np.flatnonzero(valid), 0)  # with a row to look at where there is none
        first, last = kept[counts[lo]], kept[counts[hi] - 1]
    missing = task.missing()
    gone = gone if missing is None else gone | missing
    high, _ = ordered(columns[0], ranges.threads)
    rows = [first, _best(ranges, falling(high), valid), _best(ranges, high, valid), last]
    arrays = [
        column.arrow(canonical_values(column, np.where(gone, 0, place)), gone)
        for place in rows
        for column in columns
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=array_of(gone))


def _best(ranges: Ranges, keys: Array, valid: Array) -> Array:
    """The row of the largest key of every range, the oldest of equal ones."""
    module = kernels("arg_max")
    out = np.empty(len(ranges), np.int64)
    ranges.in_parallel(lambda first, last: ranges.run(module, (keys, valid), first, last, out))
    return out
