"""What policies ask about, as arrays for a kernel: from columns, with missing values masked."""

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, Count, First, Last, Max, Min, Sum
from windrow.columns import own
from windrow.columns.column import Column
from windrow.columns.extremes import next_valid, previous_valid
from windrow.columns.kept_text import Dimension
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.columns.task import input_columns, prefix_sums
from windrow.columns.totals import largest_of

_LIMITS = np.iinfo(np.int64)
_FITS = 1 << 62


class NotCompiled(Exception):
    """Why a window's policies are interpreted."""


class Dimensions:
    """The dimensions of one window, each once."""

    def __init__(self, table: Prepared) -> None:
        self.table = table
        self.found: list[Dimension] = []

    def _known(self, about: Aggregate, way: str, make: Any) -> Dimension:
        for d in self.found:
            same = d.aggregate.identification == about.identification and d.way == way
            if same and d.aggregate.columns == about.columns and type(d.aggregate) is type(about):
                return d
        made = Dimension(len(self.found), about, way)
        make(made)
        made.arrays = {name: _plain(array) for name, array in made.arrays.items()}
        self.found.append(made)
        return made

    # --- what a policy asks for ------------------------------------------------------------------

    def ordered(self, about: Aggregate) -> Dimension:
        """For ``useful``: Max and Min, whose columns only have to be in order."""
        if type(about) not in (Max, Min):
            raise NotCompiled(f"useful({about!r}): only Max and Min are compiled")
        return self._extreme(about)

    def bounded(self, about: Aggregate) -> Dimension:
        """For ``at_most``."""
        kind = type(about)
        if kind is Count:
            return self._count(about)
        if kind not in (Max, Sum):
            raise NotCompiled(f"at_most({about!r}): only Count, Sum and Max are compiled")
        self._number(about)
        if kind is not Sum:
            return self._extreme(about)
        column = self._input(about)
        return self._float_sum(about) if column.is_float else self._sum(about)

    def asked(self, about: Aggregate) -> Dimension:
        """For a function of answers, which must be the numbers that Python would see."""
        kind = type(about)
        if kind is Count:
            return self._count(about)
        for column in self._inputs(about):
            if not column.is_number or (pa.types.is_boolean(column.type) and kind is not Sum):
                raise NotCompiled(f"column {column.name!r} has type {column.type}")
        if kind is Sum:
            return self._asked_sum(about)
        if kind in (Max, Min):
            return self._extreme(about)
        if kind in (First, Last):
            return self._end(about)
        return self._own(about)

    def limit(self, about: Aggregate, bounded: Dimension) -> Dimension:
        """The column of travelling limits, comparable with the answers it limits."""
        self._number(about)
        column = self._input(about)
        values = column.values
        if bounded.answers == np.float64:
            values = values if column.is_float else _rounded_down(values)
        elif column.is_float:
            if not np.all(values >= float(_LIMITS.min)):
                raise NotCompiled(f"limits {column.name!r} that no integer is below, or NaN")
            high = values >= -float(_LIMITS.min)
            values = np.where(high, 0, np.floor(values)).astype(np.int64)
            values[high] = _LIMITS.max

        def make(d: Dimension) -> None:
            d.arrays = {"x": values, "w": self._places(column, last=True)}
            if bounded.way == "float_sum":
                d.arrays["u"] = half_units(values)

        return self._known(about, f"limit of {bounded.number}", make)

    # --- how each is kept ------------------------------------------------------------------------

    def _inputs(self, about: Aggregate) -> list[Column]:
        found = input_columns(about, self.table)
        for column in found:
            if column.words is not None and type(about) not in (Max, Min):
                raise NotCompiled(f"column {column.name!r} has type {column.type}")
        return found

    def _input(self, about: Aggregate) -> Column:
        return self._inputs(about)[0]

    def _number(self, about: Aggregate) -> None:
        column = self._input(about)
        if not column.is_number or column.words is not None:
            raise NotCompiled(f"column {column.name!r} has type {column.type}")

    def _counts(self, column: Column) -> Array:
        counts = column.counts
        return np.arange(self.table.size + 1) if counts is None else counts

    def _valid(self, columns: list[Column]) -> Array:
        masks = [column.valid for column in columns if column.valid is not None]
        if not masks:
            return np.ones(self.table.size, np.bool_)
        found: Array = np.logical_and.reduce(masks)
        return found

    def _places(self, column: Column, last: bool) -> Array:
        valid = self._valid([column])
        out = np.empty(len(valid), np.int64)
        (previous_valid if last else next_valid)(valid, out)
        return out

    def _count(self, about: Aggregate) -> Dimension:
        def make(d: Dimension) -> None:
            d.answers, d.bits = np.dtype(np.int64), self.table.size.bit_length()
            if about.columns:
                columns = input_columns(about, self.table)
                d.arrays = {"c": self._counts(columns[0])}

        return self._known(about, "count" if about.columns else "rows", make)

    def _sum(self, about: Aggregate) -> Dimension:
        def make(d: Dimension) -> None:
            column = self._input(about)
            d.arrays = {"p": prefix_sums(column.filled(0)), "c": self._counts(column)}
            d.answers = np.dtype(np.int64)

        return self._known(about, "sum", make)

    def _asked_sum(self, about: Aggregate) -> Dimension:
        column = self._input(about)
        if column.is_float:
            raise NotCompiled(f"{about!r} of floats, rounded once, is compiled for at_most() only")
        most = largest_of(column.filled(0)) * self.table.size
        if most >= _FITS:
            raise NotCompiled(f"{about!r} might be longer than 64 bits")
        found = self._sum(about)
        found.bits = most.bit_length()
        return found

    def _extreme(self, about: Aggregate) -> Dimension:
        def make(d: Dimension) -> None:
            column = self._input(about)
            values = column.values + 0.0 if column.is_float else column.values  # no -0.0
            size = len(values)
            d.arrays = {
                "x": values,
                "v": self._valid([column]),
                "s0_": np.empty(size, values.dtype),
                "g": np.empty(size, np.bool_),
            }
            d.answers = values.dtype
            d.bits = 0 if column.is_float else max(1, largest_of(values).bit_length())

        return self._known(about, "min" if type(about) is Min else "max", make)

    def _end(self, about: Aggregate) -> Dimension:
        last = type(about) is Last

        def make(d: Dimension) -> None:
            column = self._input(about)
            values = column.values + 0.0 if column.is_float else column.values
            d.arrays = {"x": values, "w": self._places(column, last)}
            d.answers = values.dtype
            d.bits = 0 if column.is_float else max(1, largest_of(values).bit_length())

        return self._known(about, "last" if last else "first", make)

    def _own(self, about: Aggregate) -> Dimension:
        columns = self._inputs(about)
        kinds = tuple(column.values.dtype for column in columns)
        compiled = own.compile_aggregate(about, kinds, True)
        if compiled.module is None:
            raise NotCompiled(f"{about!r}: {compiled.reason}")
        module = compiled.module

        def make(d: Dimension) -> None:
            identity = about.identity
            fields = identity if isinstance(identity, tuple) else (identity,)
            d.fields = len(fields)
            d.inputs = tuple(f"x{i}_" for i in range(len(columns)))
            values = {
                name: column.filled(0) for name, column in zip(d.inputs, columns, strict=True)
            }
            size = self.table.size
            stacks = {f"s{i}_": np.empty(size, np.array(f).dtype) for i, f in enumerate(fields)}
            d.arrays = values | {"v": self._valid(columns)} | stacks | {"g": np.empty(size, bool)}
            d.answers = compiled.answers
            assert compiled.answers is not None
            d.bits = 31 if compiled.answers.kind in "iub" else 0
            d.names = {
                "lift#": module.lift,
                "combine#": module.combine,
                "lower#": module.lower,
                "identity#": identity,
            }

        return self._known(about, "own", make)

    def _float_sum(self, about: Aggregate) -> Dimension:
        def make(d: Dimension) -> None:
            column = self._input(about)
            values = column.filled(0.0)
            odd = ~np.isfinite(values)
            none = np.empty(0, np.int64)
            nans = infinities = none
            if odd.any():
                nans, infinities = prefix_sums(np.isnan(values)), prefix_sums(np.isinf(values))
                values = np.where(odd, 0.0, values)
            size = len(values)
            d.arrays = {
                "x": np.ascontiguousarray(values),
                "h": np.empty(size),
                "l": np.empty(size),
                "c": self._counts(column),
                "n": nans,
                "m": infinities,
                "points": np.empty((0, 0), np.int64),
            }
            d.answers = np.dtype(np.float64)

        return self._known(about, "float_sum", make)


def _plain(array: Array) -> Array:
    """Of one kind for numba, which compiles again for arrays that are read-only or have gaps."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else array.copy()


def limited(limit: Any, floats: bool) -> Any:
    """The largest answer that is at most a limit, as answers are: so comparisons are exact."""
    number: Any = limit.item() if isinstance(limit, np.generic) else limit
    if not isinstance(limit, np.generic | Real | Decimal):
        raise NotCompiled(f"the limit {limit!r} is a {type(limit).__name__}")
    if floats:
        try:
            value = float(number)
        except OverflowError:
            value = math.inf if number > 0 else -math.inf
        return math.nextafter(value, -math.inf) if value > number else value
    if math.isinf(number):
        floor = _LIMITS.max if number > 0 else _LIMITS.min - 1
    else:
        floor = math.floor(number)
    if floor < _LIMITS.min:
        raise NotCompiled(f"the limit {limit!r} is below all integers of 64 bits")
    return min(floor, _LIMITS.max)


def half_units(limits: Array) -> Array:
    """From limit + half a unit on, a number is rounded to more than the limit."""
    with np.errstate(invalid="ignore", over="ignore"):
        above = np.nextafter(limits, np.inf) - limits
        below = limits - np.nextafter(limits, -np.inf)
    found: Array = np.where(np.isfinite(above), above, below) / 2
    return found


def _rounded_down(values: Array) -> Array:
    """Integers as the largest floats that are not above them."""
    near = values.astype(np.float64)
    above = near >= 2.0**63
    above |= np.where(above, 0.0, near).astype(np.int64) > values
    found: Array = np.where(above, np.nextafter(near, -np.inf), near)
    return found
