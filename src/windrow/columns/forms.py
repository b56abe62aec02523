"""Forms: which slots an aggregate needs over columns of given types; one ladder decides."""

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates import Aggregate, Count, GeometricMean, Mean, StdDev, Sum, Variance
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import own
from windrow.columns.column import number_column
from windrow.columns.middles import ENDS, PICKS, RUNS
from windrow.columns.partial_slots import OwnSlot, PythonSlot
from windrow.columns.picked import SEVERAL
from windrow.columns.plain import COMPILED
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.columns.slots import InputSlot, PickSlot, RowsSlot, SeveralSlot, Slot
from windrow.columns.sum_slots import MonomialSlot, OddSlot, PowerOddSlot, PowerSlot, TotalSlot


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
