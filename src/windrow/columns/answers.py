"""What each aggregate answers for every range of rows, by the kernel that suits its columns."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import (
    EMPTY,
    M4,
    Aggregate,
    All,
    ArgMax,
    ArgMin,
    BottomK,
    Collect,
    Count,
    Distinct,
    Entropy,
    First,
    GeometricMean,
    Last,
    Max,
    MaxCount,
    Mean,
    Median,
    Min,
    MinCount,
    Mode,
    Product,
    Quantile,
    Rank,
    RelativeVariation,
    Spread,
    StdDev,
    Sum,
    TopK,
    Variance,
)
from windrow.aggregates.logic import Any as AnyTrue
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import own
from windrow.columns.answer_types import answer_type
from windrow.columns.builtin import kernels
from windrow.columns.distinct import distinct_answers
from windrow.columns.extremes import corner_answers, few_answers
from windrow.columns.frequencies import entropy_answers, mode_answers
from windrow.columns.jit import njit
from windrow.columns.lists import collect_answers
from windrow.columns.middles import Middle, lifted_runs, needs_lists, stand_ins
from windrow.columns.middles import inserted as with_values
from windrow.columns.moments import float_moments, segment_moments
from windrow.columns.plain import WHOLE, check_types
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.columns.power_sums import power_answers
from windrow.columns.prepare import Column, Prepared, array_of
from windrow.columns.quantiles import quantile_answers
from windrow.columns.ranges import Array, Ranges, shared_out
from windrow.columns.ranks import rank_answers
from windrow.columns.sums import float_sums
from windrow.columns.turned import ORDERED_NAN, ordered, turned
from windrow.errors import BadSpecification, BadValue, SumOverflow

_LARGEST_EXACT = 1 << 53


def input_columns(aggregate: Aggregate, table: Prepared) -> list[Column]:
    """The aggregate's inputs, NaN missing where it says so."""
    return [_input(aggregate, table.column(name)) for name in aggregate.columns]


def _input(aggregate: Aggregate, column: Column) -> Column:
    if aggregate.nan == "missing" and column.is_float:
        good = ~np.isnan(column.values)
        valid = good if column.valid is None else good & column.valid
        return Column(column.name, np.where(valid, column.values, 0.0), valid, column.type)
    return column


class Task:
    """One aggregate over one window of a prepared table.

    With a ``middle``, every range holds the place in the table where it belongs: stand-in rows are
    put in there, or, where there are none for the aggregate, one row whose partial is known.
    """

    weighted = False
    """Whether some rows stand in for others, so that ranges do not say how many there are."""

    def __init__(
        self,
        aggregate: Aggregate,
        table: Prepared,
        ranges: Ranges,
        least: int,
        middle: Middle | None = None,
        place: int = 0,
    ) -> None:
        self.aggregate = aggregate
        self.table = table
        self.ranges = ranges
        self.asked = least  # counts of no rows are 0 unless more is asked for
        self.least = max(1, least)
        self.columns = input_columns(aggregate, table)
        self.size = table.size
        self.middle = middle if middle is not None and middle.rows else None
        self.place = place
        self.stand_ins: list[Any] | None = None
        self.extra = 0
        if self.middle is not None:
            self.weighted = True
            self._insert(self.middle)

    def _insert(self, middle: Middle) -> None:
        found = stand_ins(self.aggregate, middle, self.columns)
        new: list[Any] = [None] * len(self.columns) if found is None else found
        count = 1 if found is None else len(found[0]) if found else 0
        if found:
            self.stand_ins = found[0]
            if type(self.aggregate) is GeometricMean:
                new = [[1] * count]  # its stand-ins are logarithms
        self.columns = [
            with_values(column, self.place, values)
            for column, values in zip(self.columns, new, strict=True)
        ]
        self.size += count
        self.extra = middle.rows - count
        lo, hi = self.ranges.bounds()
        self.ranges = self.ranges.like(lo, hi + hi.dtype.type(count))

    @property
    def column(self) -> Column:
        """The one input."""
        return self.columns[0]

    def present(self) -> Array:
        """How many rows of each range have all inputs."""
        lo, hi = self.ranges.bounds()
        counts = self.together()[1]
        if counts is None:
            return np.subtract(hi, lo, dtype=np.int64) + self.extra
        return differences(counts, self.ranges) + self.extra

    def together(self) -> tuple[Array | None, Array | None]:
        """Where all inputs are valid, and how many such rows come before each row."""
        masks = [c.valid for c in self.columns if c.valid is not None]
        if not masks:
            return None, None
        if len(self.columns) == 1:
            return self.column.valid, self.column.counts
        valid = np.logical_and.reduce(masks)
        counts = np.zeros(len(valid) + 1, np.int64)
        np.cumsum(valid, out=counts[1:])
        return valid, counts

    def missing(self, least: int | None = None) -> Array | None:
        """Which ranges have too few rows for an answer; None where none has."""
        needed = self.least if least is None else least
        if self.middle is None and all(c.valid is None for c in self.columns):
            if needed == 1 and self.ranges.never_empty:
                return None
            if self.ranges.width is not None:  # only the first rows, or all of them
                few = needed - 1 if needed <= self.ranges.width else len(self.ranges)
                gone = np.zeros(len(self.ranges), np.bool_)
                gone[:few] = True
                return gone if few else None
            lo, hi = self.ranges.bounds()
            gone = np.empty(len(lo), np.bool_)
            work = partial(_too_few, lo, hi, needed, gone)
            return gone if any(shared_out(len(lo), self.ranges.threads, work)) else None
        gone = self.present() < needed
        return gone if gone.any() else None

    def listed(self, answers: list[Any], kinds: list[pa.DataType]) -> pa.Array:
        """Answers that Python made of columns of some types."""
        missing = self.missing()
        if missing is not None and (self.asked or self.aggregate.empty is None):
            answers = [None if gone else a for a, gone in zip(answers, missing, strict=True)]
        return pa.array(answers, type=answer_type(self.aggregate, kinds))

    def floats(self) -> Array:
        """The input as floats, 0 where missing."""
        values = self.column.filled(0)
        return values if self.column.is_float else values.astype(np.float64)

    def require_numbers(self, column: Column | None = None) -> None:
        """Refuse what cannot be added, and leave what is exact only one by one to Python."""
        column = self.column if column is None else column
        kind = column.type
        if not column.is_number and not pa.types.is_decimal(kind):
            raise BadValue(
                f"{self.aggregate!r}: column {column.name!r} has type {kind}, which cannot be "
                "added. Cast it to a number, or use Count, First, Last, Min or Max"
            )


@njit(cache=True, nogil=True)
def _too_few(lo, hi, needed, out, first, last):  # type: ignore[no-untyped-def]
    found = False
    for i in range(first, last):
        out[i] = hi[i] - lo[i] < needed
        found |= out[i]
    return found


@njit(cache=True, nogil=True)
def _differences(prefix, lo, hi, out):  # type: ignore[no-untyped-def]
    for i in range(len(lo)):
        out[i] = prefix[hi[i]] - prefix[lo[i]]


@njit(cache=True, nogil=True)
def _block_differences(prefix, width, first, last, out):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        out[i] = prefix[i + 1] - prefix[max(i - width + 1, 0)]


def differences(prefix: Array, ranges: Ranges) -> Array:
    """prefix[hi] − prefix[lo] for every range."""
    out = np.empty(len(ranges), prefix.dtype)
    if ranges.width is not None:
        _block_differences(prefix, ranges.width, 0, len(ranges), out)
    else:
        _differences(prefix, ranges.lo, ranges.hi, out)
    return out


def prefix_sums(values: Array) -> Array:
    """The sum of all values before each one."""
    out = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=out[1:])
    return out


def _count(task: Task) -> pa.Array:
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


def _sum(task: Task) -> pa.Array:
    task.require_numbers()
    column = task.column
    if column.words is not None:
        return _interpreted(task)
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


def _mean(task: Task) -> pa.Array:
    task.require_numbers()
    if task.column.words is not None:
        return _interpreted(task)
    # Tried and lost: dividing a Sum of the same column. A pass over memory costs as much as adding.
    if task.column.is_float and task.column.valid is None and not task.weighted:
        return array_of(float_sums(task.floats(), task.ranges, mean=True), mask=task.missing())
    means = _sums_as_floats(task) / np.maximum(task.present(), 1) + 0.0
    return array_of(means, mask=task.missing())


def _geometric_mean(task: Task) -> pa.Array:
    task.require_numbers()
    if task.column.words is not None:
        return _interpreted(task)
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


def _moments(task: Task) -> pa.Array:
    task.require_numbers()
    aggregate = task.aggregate
    assert isinstance(aggregate, Variance)
    column = task.column
    if column.words is not None:
        return _interpreted(task)
    if not column.is_float and largest_of(column.values) > _LARGEST_EXACT:
        return _interpreted(task)
    if task.middle is not None:
        return _moments_with_middle(task, aggregate)
    out = float_moments(
        task.floats(),
        column.valid,
        column.counts,
        task.ranges,
        aggregate.ddof,
        isinstance(aggregate, StdDev),
    )
    return array_of(out, mask=task.missing(max(task.least, aggregate.ddof + 1)))


def _moments_with_middle(task: Task, aggregate: Variance) -> pa.Array:
    assert task.middle is not None
    column = input_columns(aggregate, task.table)[0]
    x = column.filled(0).astype(np.float64)
    lo, hi = task.ranges.bounds()
    present = task.present()
    out = segment_moments(
        x, column.valid, lo, hi - 1, task.place, present, task.middle.partial, aggregate.ddof
    )
    if out is None:
        return _interpreted(task)
    if isinstance(aggregate, StdDev):
        out = np.sqrt(out)
    return array_of(out, mask=task.missing(max(task.least, aggregate.ddof + 1)))


def _powers(task: Task) -> pa.Array:
    """Covariance, correlation and the like: see ``power_sums``."""
    aggregate = task.aggregate
    assert isinstance(aggregate, PowerSums)
    columns = input_columns(aggregate, task.table)
    for column in columns:
        task.require_numbers(column)
    if any(column.words is not None for column in columns):
        return _interpreted(task)
    masks = [column.valid for column in columns if column.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else None
    out = power_answers(aggregate, columns, valid, task.ranges, task.middle, task.place)
    if out is None:
        return _interpreted(task)
    return array_of(out, mask=task.missing(max(task.least, aggregate.fewest)))


def _extreme(task: Task) -> pa.Array:
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


def _spread(task: Task) -> pa.Array:
    """Two extremes of the same column, and their difference, or that divided by the largest."""
    task.require_numbers()
    if task.column.words is not None:
        return _interpreted(task)
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


def too_large(
    task: Task, bad: Array, missing: Array | None, exactly: Callable[[int], Any]
) -> Array | None:
    """What is missing when answers that int64 cannot hold are null, or an error about the first."""
    bad = bad if missing is None else bad & ~missing
    if not bad.any():
        return missing
    if task.aggregate.overflow == "error":
        row = int(np.flatnonzero(bad)[0])
        raise SumOverflow(
            f"{task.aggregate!r}: the answer for the window of row {task.table.original_row(row)}, "
            f"column {task.column.name!r}, is {exactly(row)}, which int64 cannot hold. Cast the "
            'column to float, or say overflow="null"'
        )
    return bad if missing is None else bad | missing


def _valid_mask(task: Task) -> Array:
    valid = task.together()[0]
    return np.ones(task.size, np.bool_) if valid is None else valid


def _arg_max(task: Task) -> pa.Array:
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


def _max_count(task: Task) -> pa.Array:
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


def _end(task: Task) -> pa.Array:
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


def _interpreted(task: Task) -> pa.Array:
    """Python's own numbers, one by one: decimals, texts, and functions that cannot be compiled."""
    lists = [task.table.sorted_arrow(name).to_pylist() for name in task.aggregate.columns]
    if not lists:
        lists = [[0] * task.table.size]
    rows: list[Any] = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
    if task.middle is not None:
        count = task.size - task.table.size
        known = [EMPTY] * (count - 1) + [task.middle.partial]
        rows[task.place : task.place] = [own.Lifted(partial) for partial in known]
    answers = own.run_interpreted(task.aggregate, rows, task.ranges)
    return task.listed(answers, [column.type for column in task.columns])


def _own(task: Task) -> pa.Array:
    check_types(task.aggregate, task.columns)
    if task.middle is not None:
        return _own_with_middle(task)
    valid, counts = task.together()
    if all(column.words is None for column in task.columns):
        compiled = own.compile_aggregate(
            task.aggregate, tuple(c.values.dtype for c in task.columns), valid is not None
        )
        if compiled.module is not None:
            inputs = tuple(column.filled(0) for column in task.columns)
            out = own.run_compiled(compiled, inputs, valid, counts, task.ranges, task.least)
            if type(task.aggregate) is Product and not task.column.is_float:
                return whole_products(task, out, inputs, valid, counts, lifted=False)
            return array_of(out, mask=task.missing())
    return _interpreted(task)


def whole_products(
    task: Task,
    floats: Array,
    inputs: tuple[Array, ...],
    valid: Array | None,
    counts: Array | None,
    lifted: bool,
) -> pa.Array:
    """Products of integers, given as floats; once more as integers where floats do not tell."""
    missing = task.missing()
    size = np.abs(floats)
    if not (size < _LARGEST_EXACT).all():
        kinds = () if lifted else (np.dtype(np.int64),)
        compiled = own.compile_aggregate(WHOLE, kinds, valid is not None, lifted)
        least = 1 if lifted else task.least  # a lifted row may stand for many
        whole = own.run_compiled(compiled, inputs, valid, counts, task.ranges, least)
        bad = (size > 2.0**63) | ((size == 2.0**63) & ((whole < 0) != (floats < 0)))
        missing = too_large(task, bad, missing, lambda row: f"about {floats[row]:.3g}")
        return array_of(whole, mask=missing)
    return array_of(floats.astype(np.int64), mask=missing)


def _own_with_middle(task: Task) -> pa.Array:
    """Rows are lifted first: the middle's partial is then a row like the others."""
    assert task.middle is not None
    columns = input_columns(task.aggregate, task.table)
    if needs_lists(task.aggregate, columns):
        return _interpreted(task)
    masks = [column.valid for column in columns if column.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else None
    single = np.arange(task.table.size + 1)
    fields = lifted_runs(task.aggregate, columns, valid, single)
    partial = task.middle.partial
    parts = partial if isinstance(task.aggregate.identity, tuple) else (partial,)
    fields = [np.insert(f, task.place, p) for f, p in zip(fields, parts, strict=True)]
    compiled = own.compile_aggregate(task.aggregate, (), False, lifted=True)
    out = own.run_compiled(compiled, tuple(fields), None, None, task.ranges, 0)
    if type(task.aggregate) is Product and not task.column.is_float:
        return whole_products(task, out, tuple(fields), None, None, lifted=True)
    return array_of(out, mask=task.missing())


BY_CLASS: dict[type[Aggregate], Callable[[Task], pa.Array]] = {
    Count: _count,
    Sum: _sum,
    Mean: _mean,
    Variance: _moments,
    StdDev: _moments,
    GeometricMean: _geometric_mean,
    Min: _extreme,
    Max: _extreme,
    MaxCount: _max_count,
    ArgMax: _arg_max,
    ArgMin: _arg_max,
    MinCount: _max_count,
    All: _extreme,
    AnyTrue: _extreme,
    Spread: _spread,
    RelativeVariation: _spread,
    First: _end,
    Last: _end,
    Quantile: quantile_answers,
    Median: quantile_answers,
    Rank: rank_answers,
    Distinct: distinct_answers,
    Mode: mode_answers,
    Entropy: entropy_answers,
    TopK: few_answers,
    BottomK: few_answers,
    Collect: collect_answers,
    M4: corner_answers,
    **dict.fromkeys(POWERS, _powers),
}


NEED_NO_STAND_INS = (Count, Variance, StdDev, *POWERS)
IN_ORDER = (Quantile, Median, Rank, Distinct, Mode, Entropy, TopK, BottomK)
"""Answered from blocks of sorted rows; see ``sorted_blocks``."""
FORWARD_ONLY = (Variance, StdDev, MaxCount, MinCount, ArgMax, ArgMin, M4)
"""Compiled only for ranges that never move back."""


def answer(
    aggregate: Aggregate,
    table: Prepared,
    ranges: Ranges,
    least: int,
    middle: Middle | None = None,
    place: int = 0,
) -> pa.Array:
    """The answers of an aggregate for every range, in sorted order.

    A ``middle`` is a run of rows that belongs before the row at ``place`` and is in every range.
    """
    task = Task(aggregate, table, ranges, least, middle, place)
    if ranges.recalc or (not ranges.monotone and type(aggregate) in FORWARD_ONLY):
        return _interpreted(task)
    without = task.middle is not None and task.stand_ins is None
    if without and type(aggregate) in BY_CLASS and type(aggregate) not in NEED_NO_STAND_INS:
        return _interpreted(task)
    all_ways = isinstance(aggregate, Min | Max | PowerSums)
    if ranges.forced and type(aggregate) in BY_CLASS and not all_ways:
        raise BadSpecification(
            f"algorithm=: {aggregate!r} has no such kernel on columns (Min, Max, Covariance and "
            'its kin, and aggregates of your own have); use "auto"'
        )
    return BY_CLASS.get(type(aggregate), _own)(task)
