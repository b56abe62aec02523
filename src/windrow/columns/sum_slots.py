"""Slots of sums: a few floats whose exact sum is that of the run's values, squares or products.

Odd rows, whose squares or products floats cannot hold, are kept apart, as partials in bytes.
"""

from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, Variance
from windrow.aggregates.power_sums import Monomial, PowerSums
from windrow.columns.column import Column, array_of, numbers_of, valid_of
from windrow.columns.expansions import shortest, shortest_integers, squares
from windrow.columns.middles import LARGEST_EXACT, SQUARES_EXACT
from windrow.columns.power_sums import degree, parts_of, plain_inputs
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.columns.slots import Arrays, Slot, missing_of, present_rows
from windrow.columns.task import input_columns


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
        return [array_of(values, missing_of(column.valid))]

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
        mask, odd = missing_of(column.valid), _odd(column)
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
        valid = present_rows(self.aggregate, rows)
        inputs, odd = plain_inputs(self.aggregate, input_columns(self.aggregate, rows), valid)
        mask = missing_of(valid)
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
        _, odd = plain_inputs(self.powers, columns, present_rows(self.powers, rows))
        if odd is None:
            return [pa.nulls(rows.size, pa.binary())]
        texts: list[bytes | None] = [None] * rows.size
        for row in np.flatnonzero(odd).tolist():
            partial = self.aggregate.lift(*(column.values[row].item() for column in columns))
            texts[row] = self.aggregate.to_bytes(partial)
        return [pa.array(texts, pa.binary())]
