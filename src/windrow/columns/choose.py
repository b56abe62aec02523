"""Which algorithm answers an aggregate over some ranges of rows, and why."""

from dataclasses import dataclass

from windrow.aggregates import (
    Aggregate,
    Collect,
    Count,
    Distinct,
    Entropy,
    First,
    GeometricMean,
    Histogram,
    Last,
    Mean,
    Mode,
    Product,
    Sum,
)
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import own
from windrow.columns.answers import BUILT_IN, way_of
from windrow.columns.column import Column
from windrow.columns.middles import ENDS
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Ranges
from windrow.columns.task import input_columns
from windrow.columns.totals import units_to_add


@dataclass(frozen=True)
class Plan:
    """How an aggregate is answered over some ranges, and why."""

    algorithm: str
    reason: str
    combines: str | None

    def __str__(self) -> str:
        cost = "" if self.combines is None else f"; {self.combines} combines a row"
        return f"{self.algorithm}, {self.reason}{cost}"


def plan(aggregate: Aggregate, table: Prepared, ranges: Ranges) -> Plan:
    """The ladder for columns, from the special to the general."""
    if aggregate.kind == "sequential":
        return Plan("counter", "compiled; one for each key, fed in order", None)
    kind = type(aggregate)
    numbers = input_columns(aggregate, table)
    words = any(column.words is not None for column in numbers)
    if ranges.recalc:
        return Plan("recalc", "asked for: every window folded from scratch", "W − 1")
    if kind in (Count, First, Last):
        return Plan("lookup", "the answer is a difference of counts, or one row", None)
    if kind is Collect:
        return Plan("lookup", "the answer is the range itself", None)
    way = way_of(aggregate)
    if way.by_order:
        return _in_order(aggregate, table, ranges)
    adds = kind in (Sum, Mean, GeometricMean, *POWERS, *ENDS)
    if kind in (Sum, Mean) and words and units_to_add(aggregate, numbers[0]) is not None:
        words = False
    interpreted = "interpreted" if adds and words else None
    if kind in (Sum, Mean) and not words and not numbers[0].is_float:
        return Plan("subtract_on_evict", "integers have an exact inverse: prefix sums", None)
    if not ranges.monotone:
        if kind in (Sum, Mean, GeometricMean) and not interpreted:
            return Plan("subtract_on_evict", "exact accumulators, ranges in any order", None)
        if way.forward_only or interpreted:
            return Plan("b_int", "interpreted base intervals: ranges move back", "2·log2 W")
    if kind not in BUILT_IN:
        interpreted = _why_interpreted(aggregate, numbers, words)
    elif ranges.slides and isinstance(aggregate, PowerSums) and not interpreted:
        reason = "compiled; running sums of powers in three parts, each answer proven, or decided"
        return Plan("subtract_on_evict", f"{reason} exactly", None)
    elif ranges.slides and kind in (Sum, Mean, GeometricMean) and not interpreted:
        reason = "compiled; exact running sums, or two_stacks_lite where sizes differ too much"
        return Plan("subtract_on_evict", reason, None)
    tree = not ranges.monotone
    asked_for = {None: "two_stacks_lite", "steady": "daba_lite", "greedy": "greedy"}
    algorithm = "b_int" if tree else asked_for[ranges.forced]
    expected = {
        "b_int": "up to 2·log2 W",
        "daba_lite": "4 to 6",
        "greedy": "the fewest possible, below 3",
        "two_stacks_lite": "at most 3",
    }
    if interpreted:
        return Plan("b_int" if tree else "two_stacks_lite", interpreted, expected[algorithm])
    reason = "compiled; " + (
        "blocks of W rows"
        if ranges.width is not None
        else "ranges move back"
        if tree
        else "asked for"
        if ranges.forced
        else "ranges only move forward"
    )
    return Plan(algorithm, reason + _inside(aggregate), expected[algorithm])


def _inside(aggregate: Aggregate) -> str:
    """What is carried, where that is not what one would think."""
    if isinstance(aggregate, PowerSums):
        return "; power sums in three words, each answer proven, or decided by exact integers"
    if type(aggregate) in ENDS:
        return "; two extremes, then their difference"
    if type(aggregate) is Product:
        return "; two words and an exponent"
    return ""


def _in_order(aggregate: Aggregate, table: Prepared, ranges: Ranges) -> Plan:
    counts = type(aggregate) in (Distinct, Mode, Histogram, Entropy)
    how = "counts up and down" if counts else "a bit for each row in a window"
    blocks = "blocks of rows, each sorted once"
    if not ranges.monotone:
        blocks = "all rows sorted once, answers in an order in which ranges move little"
    shared = (aggregate.columns[0], aggregate.nan) in table.sorted_for
    more = f"; shares the sort of {aggregate.columns[0]!r} where that is cheaper" * shared
    return Plan("sorted_blocks", f"compiled; {blocks}; {how}{more}", None)


def _why_interpreted(aggregate: Aggregate, columns: list[Column], words: bool) -> str | None:
    if words:
        named = next(column for column in columns if column.words is not None)
        return f"interpreted: column {named.name!r} has type {named.type}"
    nulls = any(column.valid is not None for column in columns)
    kinds = tuple(column.values.dtype for column in columns)
    compiled = own.compile_aggregate(aggregate, kinds, nulls)
    return None if compiled.module is not None else f"interpreted: {compiled.reason}"
