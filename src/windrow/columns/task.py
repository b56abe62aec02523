"""One aggregate over one window of a prepared table: what every kernel's caller starts from."""

# mypy: disable-error-code="no-untyped-def"

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, GeometricMean
from windrow.aggregates.total import Numeric
from windrow.columns.answer_types import answer_type, listed
from windrow.columns.column import Column, array_of
from windrow.columns.jit import njit
from windrow.columns.middles import Middle, stand_ins
from windrow.columns.middles import inserted as with_values
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array, Ranges, shared_out
from windrow.errors import BadValue, SumOverflow


def input_columns(aggregate: Aggregate, table: Prepared) -> list[Column]:
    """The aggregate's inputs, NaN missing where it says so."""
    named = zip(aggregate.columns, aggregate.input_kinds, strict=True)
    adds = isinstance(aggregate, Numeric)
    found = [table.placed(x) if adds or kind == "any" else table.column(x) for x, kind in named]
    return [_input(aggregate, column) for column in found]


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

    def enough(self) -> tuple[Ranges, Array | None]:
        """The ranges that have enough rows for an answer, and which those are; None: all of them.

        Functions that are not windrow's may raise where there are fewer.
        """
        gone = self.missing()
        if gone is None:
            return self.ranges, None
        rows = np.flatnonzero(~gone)
        return self.ranges.some(rows), rows

    def numbers(self, answers: Array) -> pa.Array:
        """Answers that compiled functions made, and what the aggregate says of no rows."""
        missing, empty = self.missing(), self.aggregate.empty
        if empty is None or self.asked:
            return array_of(answers, missing)
        kind = np.result_type(answers.dtype, np.array(empty).dtype)  # whether or not rows are there
        plain = answers.astype(kind, copy=False)
        return array_of(plain if missing is None else np.where(missing, kind.type(empty), plain))

    def listed(self, answers: list[Any], kinds: list[pa.DataType]) -> pa.Array:
        """Answers that Python made of columns of some types."""
        missing = self.missing()
        if missing is not None and (self.asked or self.aggregate.empty is None):
            answers = [None if gone else a for a, gone in zip(answers, missing, strict=True)]
        kind = answer_type(self.aggregate, kinds)
        if kind is not None and pa.types.is_decimal(kind):
            limit = 10 ** (kind.precision - kind.scale)
            large = np.array(
                [a is not None and a.copy_abs() >= limit for a in answers], np.bool_
            )  # abs() would round to the digits of a context
            gone = too_large(self, large, None, answers.__getitem__, str(kind))
            if gone is not None:
                answers = [None if bad else a for a, bad in zip(answers, gone, strict=True)]
        return listed(self.aggregate, answers, kinds)

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
def _too_few(lo, hi, needed, out, first, last):
    found = False
    for i in range(first, last):
        out[i] = hi[i] - lo[i] < needed
        found |= out[i]
    return found


@njit(cache=True, nogil=True)
def _differences(prefix, lo, hi, out):
    for i in range(len(lo)):
        out[i] = prefix[hi[i]] - prefix[lo[i]]


@njit(cache=True, nogil=True)
def _block_differences(prefix, width, first, last, out):
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


def too_large(
    task: Task,
    bad: Array,
    missing: Array | None,
    exactly: Callable[[int], Any],
    kind: str = "int64",
) -> Array | None:
    """What is missing when answers too large for a type are null, or an error about the first."""
    bad = bad if missing is None else bad & ~missing
    if not bad.any():
        return missing
    if task.aggregate.overflow == "error":
        row = int(np.flatnonzero(bad)[0])
        raise SumOverflow(
            f"{task.aggregate!r}: the answer for the window of row {task.table.original_row(row)}, "
            f"column {task.column.name!r}, is {exactly(row)}, which {kind} cannot hold. Cast the "
            'column to float, or say overflow="null"'
        )
    return bad if missing is None else bad | missing
