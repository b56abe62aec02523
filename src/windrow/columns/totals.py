"""Counts, sums, means and moments of every range."""

import math
from itertools import accumulate

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, Sum
from windrow.aggregates.exact import ratio
from windrow.aggregates.power_sums import PowerSums
from windrow.columns.answer_types import answer_type
from windrow.columns.column import Column, array_of
from windrow.columns.decimals import LARGEST_SCALE, decimals_of, divided
from windrow.columns.own_answers import interpreted
from windrow.columns.power_sums import power_answers
from windrow.columns.ranges import Array, Ranges
from windrow.columns.sums import float_sums
from windrow.columns.task import Task, differences, input_columns, prefix_sums
from windrow.errors import SumOverflow


def count_answers(task: Task) -> pa.Array:
    """How many rows every range has."""
    answers = task.present()
    gone = answers < task.asked if task.asked else None
    return array_of(answers, mask=gone)


def _integer_sums(values: Array, ranges: Ranges) -> tuple[Array, Array, Array]:
    """Sums as (high, low): high·2**32 + low, with 0 ≤ low < 2**32; and which fit 64 bits."""
    high = differences(prefix_sums(values >> 32), ranges)
    low = differences(prefix_sums(values & 0xFFFFFFFF), ranges)
    high += low >> 32
    low &= 0xFFFFFFFF
    return high, low, (high >= -(1 << 31)) & (high < 1 << 31)


def largest_of(values: Array) -> int:
    """The largest absolute value."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def _surely_fits(values: Array, ranges: Ranges) -> bool:
    return largest_of(values) * max(1, ranges.widest(0, len(ranges))) < 1 << 62


def units_to_add(aggregate: Aggregate, column: Column) -> Array | None:
    """Decimals as integers that are added instead of them; None where they cannot be."""
    few = type(aggregate) is Sum or column.type.scale <= LARGEST_SCALE
    return column.units if few else None


def _decimal_sums(task: Task, units: Array) -> pa.Array:
    """Sums of units, which 128 bits hold however many rows there are."""
    if _surely_fits(units, task.ranges):
        low = differences(prefix_sums(units), task.ranges)
        high = low >> 63
    else:
        upper, lower, _ = _integer_sums(units, task.ranges)
        low, high = (upper << 32) + lower, upper >> 32
    kind = answer_type(task.aggregate, [task.column.type])
    return decimals_of(high, low, task.missing(), kind)


def _decimal_means(task: Task, units: Array) -> pa.Array:
    """Sums of units divided by a power of 10, rounded once, and by the number of rows."""
    high, low, fits = _integer_sums(units, task.ranges)
    power = 10**task.column.type.scale
    quotients, certain = divided((high << 32) + low, float(power))
    for row in np.flatnonzero(~(fits & certain)):
        quotients[row] = ratio(int(high[row]) * (1 << 32) + int(low[row]), power)
    return array_of(quotients / np.maximum(task.present(), 1) + 0.0, mask=task.missing())


def sum_answers(task: Task) -> pa.Array:
    """The sum of every range, rounded once, or checked where it is of integers."""
    task.require_numbers()
    column = task.column
    if column.words is not None:
        units = units_to_add(task.aggregate, column)
        return interpreted(task) if units is None else _decimal_sums(task, units)
    if column.is_float:
        return array_of(float_sums(task.floats(), task.ranges), mask=task.missing())
    values = column.filled(0)
    if _surely_fits(values, task.ranges):
        total = differences(prefix_sums(values), task.ranges)
        return array_of(total, mask=task.missing())
    high, low, fits = _integer_sums(values, task.ranges)
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
    values = task.column.filled(0)
    if _surely_fits(values, task.ranges):
        return differences(prefix_sums(values), task.ranges).astype(np.float64)
    high, low, fits = _integer_sums(values, task.ranges)
    out = ((high << 32) + low).astype(np.float64)
    for row in np.flatnonzero(~fits):
        out[row] = float(int(high[row]) * (1 << 32) + int(low[row]))
    return out


def mean_answers(task: Task) -> pa.Array:
    """The mean of every range: its sum, divided once."""
    task.require_numbers()
    if task.column.words is not None:
        units = units_to_add(task.aggregate, task.column)
        return interpreted(task) if units is None else _decimal_means(task, units)
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


def _decimal_powers(task: Task, aggregate: PowerSums) -> pa.Array:
    """Sums of powers of units, in Python's integers, from which the aggregate makes answers."""
    wholes = [c.units if c.words is not None else c.filled(0) for c in task.columns]
    known = [x for x in wholes if x is not None and x.dtype.kind != "f"]
    if task.middle is not None or len(known) < len(wholes):
        return interpreted(task)
    valid = task.together()[0]
    inputs = [(x if valid is None else np.where(valid, x, 0)).tolist() for x in known]
    units = [1 if c.words is None else 10**c.type.scale for c in task.columns]
    lo, hi = (bound.tolist() for bound in task.ranges.bounds())
    sums = []
    for monomial in aggregate.monomials:
        powers = [
            [x**power for x in values] for values, power in zip(inputs, monomial, strict=True)
        ]
        before = list(accumulate(map(math.prod, zip(*powers, strict=True)), initial=0))
        sums.append([before[end] - before[start] for start, end in zip(lo, hi, strict=True)])
    missing = task.missing(max(task.least, aggregate.fewest))
    rows = range(len(lo)) if missing is None else np.flatnonzero(~missing).tolist()
    present = task.present().tolist()
    out = np.zeros(len(lo))
    for i in rows:
        out[i] = aggregate.value(present[i], [sums_[i] for sums_ in sums], units) + 0.0
    return array_of(out, mask=missing)


def power_sum_answers(task: Task) -> pa.Array:
    """Variance, covariance and the like: see ``power_sums``."""
    aggregate = task.aggregate
    assert isinstance(aggregate, PowerSums)
    columns = input_columns(aggregate, task.table)
    for column in columns:
        task.require_numbers(column)
    if any(column.words is not None for column in columns):
        return _decimal_powers(task, aggregate)
    masks = [column.valid for column in columns if column.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else None
    out = power_answers(aggregate, columns, valid, task.ranges, task.middle, task.place)
    if out is None:
        return interpreted(task)
    return array_of(out, mask=task.missing(max(task.least, aggregate.fewest)))
