"""Counts, sums, means and moments of every range."""

import numpy as np
import pyarrow as pa

from windrow.aggregates.power_sums import PowerSums
from windrow.columns.column import array_of
from windrow.columns.own_answers import interpreted
from windrow.columns.power_sums import power_answers
from windrow.columns.ranges import Array
from windrow.columns.sums import float_sums
from windrow.columns.task import Task, differences, input_columns, prefix_sums
from windrow.errors import SumOverflow


def count_answers(task: Task) -> pa.Array:
    """How many rows every range has."""
    answers = task.present()
    gone = answers < task.asked if task.asked else None
    return array_of(answers, mask=gone)


def _integer_sums(task: Task) -> tuple[Array, Array, Array]:
    """Sums as (high, low): high·2**32 + low, with 0 ≤ low < 2**32; and which fit 64 bits."""
    values = task.column.filled(0)
    high = differences(prefix_sums(values >> 32), task.ranges)
    low = differences(prefix_sums(values & 0xFFFFFFFF), task.ranges)
    high += low >> 32
    low &= 0xFFFFFFFF
    return high, low, (high >= -(1 << 31)) & (high < 1 << 31)


def largest_of(values: Array) -> int:
    """The largest absolute value."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def _surely_fits(task: Task) -> bool:
    largest = largest_of(task.column.filled(0))
    return largest * max(1, task.ranges.widest(0, len(task.ranges))) < 1 << 62


def sum_answers(task: Task) -> pa.Array:
    """The sum of every range, rounded once, or checked where it is of integers."""
    task.require_numbers()
    column = task.column
    if column.words is not None:
        return interpreted(task)
    if column.is_float:
        return array_of(float_sums(task.floats(), task.ranges), mask=task.missing())
    if _surely_fits(task):
        total = differences(prefix_sums(column.filled(0)), task.ranges)
        return array_of(total, mask=task.missing())
    high, low, fits = _integer_sums(task)
    missing = task.missing()
    bad = ~fits if missing is None else ~fits & ~missing
    if bad.any():
        if task.aggregate.overflow == "error":
            row = int(np.flatnonzero(bad)[0])
            number = int(high[row]) * (1 << 32) + int(low[row])
            raise SumOverflow(
                f"{task.aggregate!r}: the window of row {task.table.original_row(row)} sums column "
                f"{column.name!r} to {number}, which int64 cannot hold. Cast the column to float "
                'or decimal, or say overflow="null"'
            )
        missing = bad if missing is None else bad | missing
    return array_of((high << 32) + low, mask=missing)


def _sums_as_floats(task: Task) -> Array:
    """Each sum rounded once to a float."""
    if task.column.is_float:
        return float_sums(task.floats(), task.ranges)
    if _surely_fits(task):
        return differences(prefix_sums(task.column.filled(0)), task.ranges).astype(np.float64)
    high, low, fits = _integer_sums(task)
    out = ((high << 32) + low).astype(np.float64)
    for row in np.flatnonzero(~fits):
        out[row] = float(int(high[row]) * (1 << 32) + int(low[row]))
    return out


def mean_answers(task: Task) -> pa.Array:
    """The mean of every range: its sum, divided once."""
    task.require_numbers()
    if task.column.words is not None:
        return interpreted(task)
    # Tried and lost: dividing a Sum of the same column. A pass over memory costs as much as adding.
    if task.column.is_float and task.column.valid is None and not task.weighted:
        return array_of(float_sums(task.floats(), task.ranges, mean=True), mask=task.missing())
    means = _sums_as_floats(task) / np.maximum(task.present(), 1) + 0.0
    return array_of(means, mask=task.missing())


def geometric_mean_answers(task: Task) -> pa.Array:
    """The geometric mean of every range."""
    task.require_numbers()
    if task.column.words is not None:
        return interpreted(task)
    values = task.floats()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = np.log(values)
        if task.column.valid is not None:
            logs = np.where(task.column.valid, logs, 0.0)
        if task.stand_ins is not None:
            logs[task.place : task.place + len(task.stand_ins)] = task.stand_ins
    return means_of_logarithms(task, logs)


def means_of_logarithms(task: Task, logs: Array) -> pa.Array:
    """Geometric means; logarithms are 0 where values are missing."""
    with np.errstate(invalid="ignore", over="ignore"):
        answers = np.exp(float_sums(logs, task.ranges) / np.maximum(task.present(), 1))
    return array_of(answers, mask=task.missing())


def power_sum_answers(task: Task) -> pa.Array:
    """Variance, covariance and the like: see ``power_sums``."""
    aggregate = task.aggregate
    assert isinstance(aggregate, PowerSums)
    columns = input_columns(aggregate, task.table)
    for column in columns:
        task.require_numbers(column)
    if any(column.words is not None for column in columns):
        return interpreted(task)
    masks = [column.valid for column in columns if column.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else None
    out = power_answers(aggregate, columns, valid, task.ranges, task.middle, task.place)
    if out is None:
        return interpreted(task)
    return array_of(out, mask=task.missing(max(task.least, aggregate.fewest)))
