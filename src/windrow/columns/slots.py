"""Slots: what is kept of a run of rows, as columns, so that thousands of keys fold in one call.

A slot turns rows into columns (``lift``) and makes the columns of a run as short as it can
(``fold``), in the same form: rows that stand in for the run. The largest value for a maximum, one
to three floats with the same exact sum for a sum. Whatever reads rows reads stand-ins as well, so
folded runs can be folded again, in any grouping, and answers come from the kernels of the columns.

Aggregates share slots: sum and mean of a column need the same one, and so do all deviations.

Here: what a slot is, and those that keep rows or pick some. ``sum_slots`` has those of sums,
``partial_slots`` those of partials; ``forms`` says which ones an aggregate needs.
"""

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates import Aggregate
from windrow.columns.column import array_of, number_column, numbers_of, valid_of
from windrow.columns.middles import PICKS, pick, run_sums
from windrow.columns.picked import picked_rows
from windrow.columns.prepare import Prepared
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


def present_rows(aggregate: Aggregate, rows: Prepared) -> Array | None:
    """Which rows have all inputs; None where all have."""
    masks = [c.valid for c in input_columns(aggregate, rows) if c.valid is not None]
    return np.logical_and.reduce(masks) if masks else None


def missing_of(valid: Array | None) -> Array | None:
    """Which rows are missing; None where none is."""
    return None if valid is None else ~valid


class RowsSlot(Slot):
    """How many rows have all inputs."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.name = f"rows{aggregate.columns!r}{' without NaN' * (aggregate.nan == 'missing')}"

    def lift(self, rows: Prepared) -> Arrays:
        """One, or none."""
        valid = present_rows(self.aggregate, rows)
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
        valid = present_rows(self.aggregate, rows)
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
