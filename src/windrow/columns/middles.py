"""Middles: what a run of rows amounts to, and the few rows that can stand in for it.

A middle is a partial of the aggregate's own, as ``windrow.aggregates`` has them, and the number of
rows in it. Between the rows that leave and the rows that come, a few *stand-in rows* with the same
partial take its place, and every kernel of the columns runs on as if nothing were missing: the
largest value for a maximum, the floats that make up an exact sum for a sum.
"""

from dataclasses import dataclass
from functools import reduce
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
    Collect,
    Count,
    Distinct,
    Entropy,
    First,
    GeometricMean,
    Histogram,
    Last,
    Max,
    Mean,
    Median,
    Min,
    Mode,
    Quantile,
    Rank,
    RelativeVariation,
    Spread,
    Sum,
    canonical,
    exact,
)
from windrow.aggregates.categories import counted
from windrow.aggregates.logic import Any as AnyTrue
from windrow.aggregates.power_sums import PowerSums
from windrow.aggregates.sorted_runs import merged, without
from windrow.columns import own
from windrow.columns.column import Column, array_of, number_column
from windrow.columns.exact import SIZE, WORDS, accumulate
from windrow.columns.jit import njit
from windrow.columns.picked import FEW, SEVERAL, picked_rows
from windrow.columns.power_sums import power_sums
from windrow.columns.ranges import Array

COUNTED = (Mode, Histogram, Entropy)
RUNS = (Quantile, Median, Rank, Distinct, *COUNTED, Collect)
"""Their partials are runs of values, which stand in for themselves."""
PICKS = {Max: 0, AnyTrue: 0, Min: 1, All: 1, First: 2, Last: 3, ArgMax: 0, ArgMin: 1}
ENDS = (Spread, RelativeVariation)
"""Two rows stand in for a run: the smallest and the largest."""
SQUARES_EXACT = (1e-140, 1e140)
LARGEST_EXACT = 1 << 53
_WORD = 62


@dataclass(frozen=True)
class Middle:
    """The partial of a run of rows, and how many of them had all inputs."""

    partial: Any
    rows: int

    def then(self, aggregate: Aggregate, later: "Middle") -> "Middle":
        """This run and the one after it."""
        return Middle(aggregate.merger()(self.partial, later.partial), self.rows + later.rows)


NOTHING = Middle(EMPTY, 0)


@njit(cache=True, nogil=True)
def pick(x, valid, offsets, how, out):  # type: ignore[no-untyped-def]
    """The row that each run comes down to: by (first) greatest, (first) smallest, first, last."""
    for run in range(len(offsets) - 1):
        best = -1
        for i in range(offsets[run], offsets[run + 1]):
            if not valid[i]:
                continue
            if best < 0 or how == 3:
                best = i
            elif how == 0:
                nan = x[best] != x[best]
                if not nan and (x[i] > x[best] or x[i] != x[i]):
                    best = i
            elif how == 1 and (x[i] < x[best] or x[best] != x[best]):
                best = i
        out[run] = best


def fold(
    aggregate: Aggregate, columns: list[Column], lists: list[list[Any]], offsets: Array
) -> list[Middle]:
    """The middle of every run of rows, oldest row first.

    ``columns`` are the aggregate's inputs; ``lists`` the same as Python values, made only where
    they are needed (see ``needs_lists``).
    """
    sizes = np.diff(offsets)
    masks = [c.valid for c in columns if c.valid is not None]
    valid = np.logical_and.reduce(masks) if masks else np.ones(int(offsets[-1]), np.bool_)
    rows = run_sums(valid.astype(np.int64), offsets) if masks else sizes
    kind = type(aggregate)
    if kind is Count:
        partials: list[Any] = [int(n) for n in rows]
    elif lists:
        partials = _interpreted(aggregate, lists, offsets)
    elif kind in RUNS:
        partials = _sorted_runs(kind, columns[0], valid, offsets)
    elif kind in SEVERAL:
        partials = _several(aggregate, columns, valid, offsets)
    elif kind in PICKS:
        partials = _picked(kind, columns, valid, offsets)
    elif kind in ENDS:
        both = [_picked(end, columns, valid, offsets) for end in (Min, Max)]
        partials = list(zip(*both, strict=True))
    elif kind in (Sum, Mean):
        totals = _totals(columns[0], valid, offsets)
        partials = totals if kind is Sum else _counted(rows, totals)
    elif kind is GeometricMean:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = Column("", np.log(columns[0].filled(1).astype(np.float64)), None, pa.float64())
        partials = _counted(rows, _totals(logs, valid, offsets))
    elif isinstance(aggregate, PowerSums):
        partials = power_sums(aggregate, columns, valid, offsets, rows)
    else:
        partials = _own(aggregate, columns, valid if masks else None, offsets)
    return [NOTHING if not n else Middle(p, int(n)) for n, p in zip(rows, partials, strict=True)]


def needs_lists(aggregate: Aggregate, columns: list[Column]) -> bool:
    """Whether only Python itself can fold this aggregate over these columns."""
    kind = type(aggregate)
    if kind is Count or kind in PICKS or kind in RUNS or kind in SEVERAL:
        return False
    if any(column.words is not None for column in columns):
        return True
    if kind in (Sum, Mean, GeometricMean, *ENDS):
        return False
    if isinstance(aggregate, PowerSums):
        return False
    nulls = any(column.valid is not None for column in columns)
    kinds = tuple(column.values.dtype for column in columns)
    return own.compile_aggregate(aggregate, kinds, nulls).module is None


def run_sums(values: Array, offsets: Array) -> Array:
    """The sum of each run."""
    prefix = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=prefix[1:])
    return prefix[offsets[1:]] - prefix[offsets[:-1]]


def _picked(kind: type, columns: list[Column], valid: Array, offsets: Array) -> list[Any]:
    rows = np.empty(len(offsets) - 1, np.int64)
    pick(columns[-1].values, valid, offsets, PICKS[kind], rows)  # type: ignore[index]
    lists = [_values_at(column, np.maximum(rows, 0)) for column in columns]
    return lists[0] if kind not in (ArgMax, ArgMin) else list(zip(*lists, strict=True))


def _sorted_runs(kind: type, column: Column, valid: Array, offsets: Array) -> list[Any]:
    """The values of every run in order, NaN last: each once, counted, or all, and the newest."""
    out: list[Any] = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        rows = np.flatnonzero(valid[start:end]) + start
        if kind is Collect:
            out.append(tuple(_values_at(column, rows)))
            continue
        places = np.argsort(column.values[rows], kind="stable")
        if kind is Distinct:
            values = column.values[rows[places]]
            new = np.ones(len(values), np.bool_)
            nan = values != values
            new[1:] = (values[1:] != values[:-1]) & ~(nan[1:] & nan[:-1])
            places = places[new]
        run = tuple(_values_at(column, rows[places]))
        if kind in COUNTED:
            out.append(counted(run))
            continue
        newest = _values_at(column, rows[-1:])
        out.append((run, newest[0] if newest else None) if kind is Rank else run)
    return out


def _several(
    aggregate: Aggregate, columns: list[Column], valid: Array, offsets: Array
) -> list[Any]:
    """Partials from the few rows that stand for each run."""
    rows, counts = picked_rows(aggregate, columns, valid, offsets)
    lists = [_values_at(column, rows) for column in columns]
    out: list[Any] = []
    place = 0
    for count in counts.tolist():
        held = [values[place : place + count] for values in lists]
        if isinstance(aggregate, M4):
            out.append(tuple(part for corner in zip(*held, strict=True) for part in corner))
        else:
            out.append(reduce(merged, [(value,) for value in held[0]], ()))
        place += count
    return out


def _values_at(column: Column, rows: Array) -> list[Any]:
    """Values as partials hold them; times, dates and the like as plain numbers."""
    if not len(column.values) or (column.words is not None and not len(column.words)):
        return [None] * len(rows)
    if column.words is not None:
        return column.words.take(array_of(column.values[rows])).to_pylist()  # type: ignore[no-any-return]
    return [canonical(x) for x in column.values[rows].tolist()]


def _totals(column: Column, valid: Array, offsets: Array) -> list[int]:
    """The exact total of every run, as ``windrow.aggregates.exact`` keeps them."""
    if not column.is_float:
        high = run_sums(np.where(valid, column.values >> 32, 0), offsets)
        low = run_sums(np.where(valid, column.values & 0xFFFFFFFF, 0), offsets)
        return [exact.of_int((int(h) << 32) + int(n)) for h, n in zip(high, low, strict=True)]
    words = np.zeros((len(offsets) - 1, SIZE), np.int64)
    accumulate(column.values, valid, offsets, words)
    floats = run_sums(valid.astype(np.int64), offsets)
    return [_total(row.tolist(), int(n)) for row, n in zip(words, floats, strict=True)]


def _units(words: list[int]) -> int:
    """An accumulator in units of 2**-1088, as one integer."""
    return sum(word << 32 * k for k, word in enumerate(words[:WORDS]) if word)


def _total(words: list[int], floats: int) -> int:
    nans, plus, minus = words[WORDS:]
    marks = floats + sum(
        n << (1 + k) * exact.COUNTER_BITS for k, n in enumerate((nans, plus, minus))
    )
    return (_units(words) >> 14 << exact.MARK_BITS) + marks


def _counted(rows: Array, totals: list[int]) -> list[Any]:
    return list(zip(rows.tolist(), totals, strict=True))


def _own(
    aggregate: Aggregate, columns: list[Column], valid: Array | None, offsets: Array
) -> list[Any]:
    fields = lifted_runs(aggregate, columns, valid, offsets)
    lists = [field.tolist() for field in fields]
    return list(zip(*lists, strict=True)) if isinstance(aggregate.identity, tuple) else lists[0]


def lifted_runs(
    aggregate: Aggregate, columns: list[Column], valid: Array | None, offsets: Array
) -> list[Array]:
    """A compiled aggregate's partial of every run, one array per field."""
    kinds = tuple(column.values.dtype for column in columns)
    compiled = own.compile_aggregate(aggregate, kinds, valid is not None)
    assert compiled.module is not None
    identity = aggregate.identity
    fields = identity if isinstance(identity, tuple) else (identity,)
    out = [np.empty(len(offsets) - 1, np.array(field).dtype) for field in fields]
    mask = np.empty(0, np.bool_) if valid is None else valid
    inputs = tuple(column.filled(0) for column in columns)
    compiled.module.fold(*inputs, mask, offsets, np.empty(0, np.int64), 1, *out)
    return out


def _interpreted(aggregate: Aggregate, lists: list[list[Any]], offsets: Array) -> list[Any]:
    lift, merge = aggregate.lifter(), aggregate.merger()
    rows = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
    out = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        partials = [lift(row) for row in rows[start:end]]
        while aggregate.kind == "holistic" and len(partials) > 1:
            # by halves: of partials that grow, one after the other costs the square
            last = partials[-1:] if len(partials) % 2 else []
            partials = [merge(*pair) for pair in zip(partials[::2], partials[1::2], strict=False)]
            partials += last
        out.append(reduce(merge, partials, EMPTY))
    return out


def stand_ins(
    aggregate: Aggregate, middle: Middle, columns: list[Column]
) -> list[list[Any]] | None:
    """Values for each input column that together have the middle's partial; None: there are none.

    Those of a geometric mean are logarithms.
    """
    kind = type(aggregate)
    if kind is Count:
        return [[] for _ in columns]
    if kind in (ArgMax, ArgMin):
        return [[value] for value in middle.partial]
    if kind in ENDS:
        return [list(middle.partial)]
    if kind in PICKS:
        return [[middle.partial]]
    if kind is Rank:
        run, newest = middle.partial
        return [[*without(run, (newest,)), newest]]
    if kind in COUNTED:
        return [[x for x, n in zip(*middle.partial, strict=True) for _ in range(n)]]
    if kind in RUNS or kind in FEW:
        return [list(middle.partial)]
    if kind is M4:
        return [list(middle.partial[::2]), list(middle.partial[1::2])]
    if kind in (Sum, Mean, GeometricMean) and columns[0].words is None:
        total = middle.partial if kind is Sum else middle.partial[1]
        if kind is not GeometricMean and not columns[0].is_float:
            return [_integers(exact.parts(total).total >> exact.FLOAT_UNIT_BITS)]
        floats = _floats(total)
        return None if floats is None else [floats]
    return None


def _integers(total: int) -> list[int]:
    out = []
    while total:
        part = max(min(total, 1 << _WORD), -(1 << _WORD))
        out.append(part)
        total -= part
    return out


def _floats(total: int) -> list[float] | None:
    """Floats whose exact sum is the total; None where it is beyond the largest."""
    rest, _, nans, plus, minus, _ = exact.parts(total)
    out = [float("nan")] * bool(nans) + [float("inf")] * bool(plus) + [-float("inf")] * bool(minus)
    while rest:
        try:
            nearest = rest / exact.FLOAT_UNIT
        except OverflowError:
            return None
        out.append(nearest)
        rest -= exact.of_float(nearest) >> exact.MARK_BITS
    return out


def inserted(column: Column, place: int, values: list[Any] | None) -> Column:
    """The column with some values put in before a row; None: one row that nobody looks at."""
    if values is None:
        valid = None if column.valid is None else np.insert(column.valid, place, True)
        filled = np.insert(column.values, place, 0)
        return Column(column.name, filled, valid, column.type, column.words)
    if not values:
        return column
    valid = None if column.valid is None else np.insert(column.valid, place, [True] * len(values))
    if column.words is None:
        new = np.array(values, column.values.dtype)
        return Column(column.name, np.insert(column.values, place, new), valid, column.type)
    array = column.arrow(column.values, None if column.valid is None else ~column.valid)
    whole = pa.concat_arrays([array[:place], pa.array(values, column.type), array[place:]])
    return number_column(whole, column.name)
