"""Slots: what is kept of a run of rows, as columns, so that thousands of keys fold in one call.

A slot turns rows into columns (``lift``) and makes the columns of a run as short as it can
(``fold``), in the same form: rows that stand in for the run. The largest value for a maximum, one
to three floats with the same exact sum for a sum. Whatever reads rows reads stand-ins as well, so
folded runs can be folded again, in any grouping, and answers come from the kernels of the columns.

Aggregates share slots: sum and mean of a column need the same one, and so do all deviations.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates import (
    EMPTY,
    Aggregate,
    Count,
    GeometricMean,
    Mean,
    StdDev,
    Sum,
    Variance,
)
from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.columns import own
from windrow.columns.expansions import shortest, shortest_integers, squares
from windrow.columns.middles import (
    ENDS,
    LARGEST_EXACT,
    PICKS,
    RUNS,
    SQUARES_EXACT,
    lifted_runs,
    pick,
    run_sums,
)
from windrow.columns.picked import SEVERAL, picked_rows
from windrow.columns.plain import COMPILED
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.columns.power_sums import degree, parts_of, plain_inputs
from windrow.columns.prepare import Column, Prepared, array_of, number_column, numbers_of, valid_of
from windrow.columns.ranges import Array
from windrow.columns.task import input_columns

Arrays = list[pa.Array]


class Slot(ABC):
    """Columns that stand for the rows of an aggregate; a row without a value is null in all."""

    name: str

    @abstractmethod
    def lift(self, rows: Prepared) -> Arrays:
        """One entry for every row."""

    @abstractmethod
    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """Fewer entries for every run, one run after the other, and how many for each."""


def _present(aggregate: Aggregate, rows: Prepared) -> Array | None:
    """Which rows have all inputs; None where all have."""
    masks = [c.valid for c in input_columns(aggregate, rows) if c.valid is not None]
    return np.logical_and.reduce(masks) if masks else None


def _mask(valid: Array | None) -> Array | None:
    return None if valid is None else ~valid


class RowsSlot(Slot):
    """How many rows have all inputs."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.name = f"rows{aggregate.columns!r}{' without NaN' * (aggregate.nan == 'missing')}"

    def lift(self, rows: Prepared) -> Arrays:
        """One, or none."""
        valid = _present(self.aggregate, rows)
        ones = np.ones(rows.size, np.int64) if valid is None else valid.astype(np.int64)
        return [array_of(ones)]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """Added up."""
        total = run_sums(filled(arrays[0]), offsets)
        return [array_of(total)], np.ones(len(total), np.int64)


def filled(array: pa.Array) -> Array:
    """The numbers of an array, 0 where it has none."""
    values, valid = numbers_of(array), valid_of(array)
    return values if valid is None else np.where(valid, values, 0)


class InputSlot(Slot):
    """The inputs themselves, for aggregates that need every row of their windows."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.name = f"{self._what()}{aggregate.columns!r}"

    def _what(self) -> str:
        """Quantiles of a column share it."""
        return f"inputs{' without NaN' * (self.aggregate.nan == 'missing')}"

    def lift(self, rows: Prepared) -> Arrays:
        """The inputs themselves."""
        valid = _present(self.aggregate, rows)
        arrays = [rows.sorted_arrow(column) for column in self.aggregate.columns]
        if valid is None:
            return arrays
        keep = array_of(valid)
        return [pc.if_else(keep, array, pa.scalar(None, array.type)) for array in arrays]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """All of them: nothing stands in for a row here."""
        return arrays, np.diff(offsets)


class PickSlot(InputSlot):
    """The one row of a run that decides: the largest, the first, ..."""

    def __init__(self, aggregate: Aggregate, *how: int) -> None:
        super().__init__(aggregate)
        self.how = how or (PICKS[type(aggregate)],)

    def _what(self) -> str:
        return self.aggregate.description()

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """The row that is picked, or one for each way of picking, where there is any."""
        column = number_column(arrays[-1], "")
        valid = np.ones(len(column.values), np.bool_) if column.valid is None else column.valid
        found = np.empty((len(offsets) - 1, len(self.how)), np.int64)
        for place, how in enumerate(self.how):
            pick(column.values, valid, offsets, how, found[:, place])
        some = found[:, 0] >= 0
        counts = some.astype(np.int64) * len(self.how)
        return [array.take(array_of(found[some].ravel())) for array in arrays], counts


class SeveralSlot(InputSlot):
    """The few rows of a run that decide: its largest values, its corners."""

    def _what(self) -> str:
        return self.aggregate.description()

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """The rows that are picked."""
        columns = [number_column(array, "") for array in arrays]
        valid = valid_of(arrays[0])  # a row without one input is null in all
        present = np.ones(len(arrays[0]), np.bool_) if valid is None else valid
        rows, counts = picked_rows(self.aggregate, columns, present, offsets)
        return [array.take(array_of(rows)) for array in arrays], counts


class TotalSlot(Slot):
    """Numbers with the same exact sum as the run's."""

    def __init__(self, aggregate: Aggregate, logarithm: bool = False) -> None:
        self.aggregate = aggregate
        self.logarithm = logarithm
        text = "logarithm" if logarithm else "total"
        odd = " without NaN" * (aggregate.nan == "missing")
        self.name = f"{text}({aggregate.columns[0]}{odd})"

    def lift(self, rows: Prepared) -> Arrays:
        """The numbers, or their logarithms."""
        column = input_columns(self.aggregate, rows)[0]
        values = column.values
        if self.logarithm:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(values.astype(np.float64))
        return [array_of(values, _mask(column.valid))]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """As few as will do."""
        values, mask = numbers_of(arrays[0]), valid_of(arrays[0])
        valid = np.ones(len(values), np.bool_) if mask is None else mask
        out = np.empty(len(values) + 1, values.dtype)
        counts = np.empty(len(offsets) - 1, np.int64)
        kernel = shortest if values.dtype == np.float64 else shortest_integers
        size = kernel(values, valid, offsets, out, counts)
        return [array_of(out[:size])], counts


def _odd(column: Column) -> Array | None:
    """Where a value or its square cannot be told in floats without rounding; None: nowhere."""
    size = np.abs(column.filled(0))
    if column.is_float:
        low, high = SQUARES_EXACT
        odd = (size != 0) & np.isfinite(size) & ((size < low) | (size > high))
    else:
        odd = (size > LARGEST_EXACT) | (size < 0)  # the smallest integer has no absolute value
    return odd if odd.any() else None


class PowerSlot(TotalSlot):
    """Values, or one of two parts of their squares, as floats; odd ones are left to ``OddSlot``."""

    def __init__(self, aggregate: Aggregate, part: str) -> None:
        super().__init__(aggregate)
        self.part = part
        self.name = f"{part} {self.name}"

    def lift(self, rows: Prepared) -> Arrays:
        """One part of every value."""
        column = input_columns(self.aggregate, rows)[0]
        mask, odd = _mask(column.valid), _odd(column)
        if odd is not None:
            mask = odd if mask is None else odd | mask
        values = column.filled(0).astype(np.float64)
        if self.part != "value":
            high, low = np.empty(len(values)), np.empty(len(values))
            squares(values, high, low)
            values = high if self.part == "high" else low
        return [array_of(values, mask)]


class OddSlot(Slot):
    """Partials, as bytes, of rows whose squares floats cannot hold: there are hardly ever any."""

    def __init__(self, aggregate: Variance) -> None:
        # shared by all its kinds
        self.aggregate: Variance | PowerSums = Variance(*aggregate.columns, nan=aggregate.nan)
        self.name = f"odd {self.aggregate.description()}({aggregate.columns[0]})"

    def lift(self, rows: Prepared) -> Arrays:
        """Odd rows only."""
        column = input_columns(self.aggregate, rows)[0]
        odd = _odd(column)
        if odd is None:
            return [pa.nulls(rows.size, pa.binary())]
        write, lift = self.aggregate.to_bytes, self.aggregate.lift
        texts: list[bytes | None] = [None] * rows.size
        for row in np.flatnonzero(odd).tolist():
            texts[row] = write(lift(column.values[row].item()))
        return [pa.array(texts, pa.binary())]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """Combined, where there are any."""
        some = np.zeros(len(offsets) - 1, np.int64)
        if arrays[0].null_count == len(arrays[0]):
            return [arrays[0][:0]], some
        found: list[bytes] = []
        texts = arrays[0].to_pylist()
        read, write = self.aggregate.from_bytes, self.aggregate.to_bytes
        for run, (start, end) in enumerate(pairwise(offsets.tolist())):
            partials = [read(text) for text in texts[start:end] if text is not None]
            if partials:
                found.append(write(reduce(self.aggregate.combine, partials)))
                some[run] = 1
        return [pa.array(found, pa.binary())], some


class MonomialSlot(Slot):
    """Floats, side by side, that a monomial of the inputs is the sum of; odd rows have none."""

    def __init__(self, aggregate: PowerSums, monomial: Monomial) -> None:
        self.aggregate, self.monomial = aggregate, monomial
        odd = " without NaN" * (aggregate.nan == "missing")
        # odd rows depend on the highest degree, so that this is part of what it is
        degrees = f"{monomial} of {degree(aggregate.monomials)}"
        self.name = f"power {degrees}{aggregate.columns!r}{odd}"

    def lift(self, rows: Prepared) -> Arrays:
        """The floats that each row consists of."""
        valid = _present(self.aggregate, rows)
        inputs, odd = plain_inputs(self.aggregate, input_columns(self.aggregate, rows), valid)
        mask = _mask(valid)
        if odd is not None:
            mask = odd if mask is None else odd | mask
        return [array_of(part, mask) for part in parts_of((self.monomial,), inputs)[0]]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """As few as will do, row by row."""
        width = len(arrays)
        values = np.column_stack([numbers_of(array) for array in arrays]).ravel()
        mask = valid_of(arrays[0])
        valid = np.ones(len(values), np.bool_) if mask is None else np.repeat(mask, width)
        out = np.zeros(len(values) + width, np.float64)
        counts = np.empty(len(offsets) - 1, np.int64)
        size = shortest(values, valid, offsets * width, out, counts)
        entries = -(-counts // width)
        grid = np.zeros(int(entries.sum()) * width)
        starts = (np.cumsum(entries) - entries) * width - (np.cumsum(counts) - counts)
        grid[np.repeat(starts, counts) + np.arange(size)] = out[:size]
        columns = grid.reshape(-1, width)
        return [array_of(np.ascontiguousarray(columns[:, k])) for k in range(width)], entries


class PowerOddSlot(OddSlot):
    """The same for power sums."""

    def __init__(self, aggregate: PowerSums) -> None:
        self.aggregate = self.powers = aggregate
        self.name = f"odd {aggregate.description()}{aggregate.columns!r}"

    def lift(self, rows: Prepared) -> Arrays:
        """Odd rows only."""
        columns = input_columns(self.powers, rows)
        _, odd = plain_inputs(self.powers, columns, _present(self.powers, rows))
        if odd is None:
            return [pa.nulls(rows.size, pa.binary())]
        texts: list[bytes | None] = [None] * rows.size
        for row in np.flatnonzero(odd).tolist():
            partial = self.aggregate.lift(*(column.values[row].item() for column in columns))
            texts[row] = self.aggregate.to_bytes(partial)
        return [pa.array(texts, pa.binary())]


class OwnSlot(Slot):
    """The fields of a compiled aggregate's partial."""

    def __init__(self, aggregate: Aggregate, columns: list[Column]) -> None:
        self.aggregate = aggregate
        self.columns = columns
        """What the inputs are, without rows."""
        self.name = f"{aggregate.identification}{aggregate.columns!r}"

    def lift(self, rows: Prepared) -> Arrays:
        """Every row lifted."""
        valid = _present(self.aggregate, rows)
        columns = input_columns(self.aggregate, rows)
        fields = lifted_runs(self.aggregate, columns, valid, np.arange(rows.size + 1))
        return [array_of(field, _mask(valid)) for field in fields]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """Combined, one partial for each run."""
        mask = valid_of(arrays[0])
        some = np.ones(len(offsets) - 1, np.bool_)
        if mask is not None:
            some = run_sums(mask.astype(np.int64), offsets) > 0
        compiled = own.compile_aggregate(self.aggregate, (), mask is not None, lifted=True)
        assert compiled.module is not None
        inputs = [numbers_of(array) for array in arrays]
        out = [np.empty(len(some), values.dtype) for values in inputs]
        valid = np.empty(0, np.bool_) if mask is None else mask
        compiled.module.fold(*inputs, valid, offsets, np.empty(0, np.int64), 1, *out)
        return [array_of(field[some]) for field in out], some.astype(np.int64)


class PythonSlot(Slot):
    """Inputs as they are, and partials as bytes of the aggregate's schema; Python combines them."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.name = f"{aggregate.identification}{aggregate.columns!r}"

    def lift(self, rows: Prepared) -> Arrays:
        """The inputs, and no partial."""
        arrays = [rows.sorted_arrow(column) for column in self.aggregate.columns]
        return [*arrays, pa.nulls(rows.size, pa.binary())]

    def rows(self, arrays: Arrays) -> list[Any]:
        """Values, and partials among them."""
        lists = [array.to_pylist() for array in arrays[:-1]]
        values: list[Any] = lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))
        values = values if lists else [0] * len(arrays[-1])
        read = self.aggregate.from_bytes
        partials = arrays[-1].to_pylist()
        return [
            value if partial is None else own.Lifted(read(partial))
            for value, partial in zip(values, partials, strict=True)
        ]

    def fold(self, arrays: Arrays, offsets: Array) -> tuple[Arrays, Array]:
        """One partial for each run that has any."""
        lift, merge = self.aggregate.lifter(), self.aggregate.merger()
        rows = self.rows(arrays)
        found: list[bytes] = []
        some = np.zeros(len(offsets) - 1, np.int64)
        for run, (start, end) in enumerate(pairwise(offsets.tolist())):
            partial: Any = EMPTY
            for row in rows[start:end]:
                partial = merge(partial, row.partial if type(row) is own.Lifted else lift(row))
            if partial is not EMPTY:
                found.append(self.aggregate.to_bytes(partial))
                some[run] = 1
        nothing = [pa.nulls(len(found), array.type) for array in arrays[:-1]]
        return [*nothing, pa.array(found, pa.binary())], some


@dataclass(frozen=True)
class Form:
    """The slots of an aggregate: how many rows, and what they amount to (nothing for a count)."""

    aggregate: Aggregate
    rows: RowsSlot
    slots: tuple[Slot, ...] = ()

    @property
    def slot(self) -> Slot | None:
        """The one that says what kind of form it is."""
        return self.slots[0] if self.slots else None


def form_of(aggregate: Aggregate, schema: pa.Schema) -> Form:
    """The form that suits an aggregate over columns of these types."""
    rows = RowsSlot(aggregate)
    kind = type(aggregate)
    if kind is Count:
        return Form(aggregate, rows)
    empty = [number_column(pa.array([], schema.field(c).type), c) for c in aggregate.columns]
    if kind in PICKS:
        return Form(aggregate, rows, (PickSlot(aggregate),))
    if kind in SEVERAL:
        return Form(aggregate, rows, (SeveralSlot(aggregate),))
    if kind in ENDS and all(column.words is None for column in empty):
        return Form(aggregate, rows, (PickSlot(aggregate, 1, 0),))
    if kind in RUNS:
        return Form(aggregate, rows, (InputSlot(aggregate),))
    plain = all(column.words is None and column.type != pa.uint64() for column in empty)
    if kind in (Sum, Mean) and plain:
        return Form(aggregate, rows, (TotalSlot(aggregate),))
    if isinstance(aggregate, Variance) and plain and kind in (Variance, StdDev):
        parts = [PowerSlot(aggregate, part) for part in ("value", "high", "low")]
        return Form(aggregate, rows, (*parts, OddSlot(aggregate)))
    if isinstance(aggregate, PowerSums) and plain and kind in POWERS:
        sums = [MonomialSlot(aggregate, monomial) for monomial in aggregate.monomials]
        return Form(aggregate, rows, (*sums, PowerOddSlot(aggregate)))
    if kind is GeometricMean and plain:
        return Form(aggregate, rows, (TotalSlot(aggregate, logarithm=True),))
    if (kind in COMPILED or kind.__module__.partition(".")[0] != "windrow") and plain:
        kinds = tuple(column.values.dtype for column in empty)
        both = [own.compile_aggregate(aggregate, kinds, nulls) for nulls in (False, True)]
        if all(compiled.module is not None for compiled in both):
            return Form(aggregate, rows, (OwnSlot(aggregate, empty),))
    return Form(aggregate, rows, (PythonSlot(aggregate),))
