"""Slots of partials: what aggregates without a slot of their own are folded to, compiled or not."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import EMPTY, Aggregate
from windrow.columns import own
from windrow.columns.column import Column, array_of, numbers_of, valid_of
from windrow.columns.middles import lifted_runs, run_sums
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array
from windrow.columns.slots import Arrays, Slot, missing_of, present_rows
from windrow.columns.task import input_columns


class OwnSlot(Slot):
    """The fields of a compiled aggregate's partial."""

    def __init__(self, aggregate: Aggregate, columns: list[Column]) -> None:
        self.aggregate = aggregate
        self.columns = columns
        """What the inputs are, without rows."""
        self.name = f"{aggregate.identification}{aggregate.columns!r}"

    def lift(self, rows: Prepared) -> Arrays:
        """Every row lifted."""
        valid = present_rows(self.aggregate, rows)
        columns = input_columns(self.aggregate, rows)
        fields = lifted_runs(self.aggregate, columns, valid, np.arange(rows.size + 1))
        return [array_of(field, missing_of(valid)) for field in fields]

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
