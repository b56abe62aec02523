"""What each aggregate answers for every range of rows, and by which kernel: one table for all."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates import (
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
    Histogram,
    Last,
    Max,
    MaxCount,
    Mean,
    Median,
    Min,
    MinCount,
    Mode,
    Quantile,
    Rank,
    RelativeVariation,
    Spread,
    Sum,
    TopK,
)
from windrow.aggregates.logic import Any as AnyTrue
from windrow.columns.distinct import distinct_answers, histogram_answers
from windrow.columns.extremes import (
    arg_answers,
    corner_answers,
    end_answers,
    extreme_answers,
    extreme_count_answers,
    spread_answers,
)
from windrow.columns.frequencies import entropy_answers, mode_answers
from windrow.columns.lists import collect_answers
from windrow.columns.middles import Middle
from windrow.columns.own_answers import interpreted, own_answers
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.columns.prepare import Prepared
from windrow.columns.quantiles import quantile_answers
from windrow.columns.ranges import Ranges
from windrow.columns.ranks import rank_answers
from windrow.columns.task import Task
from windrow.columns.top_k import few_answers
from windrow.columns.totals import (
    count_answers,
    geometric_mean_answers,
    mean_answers,
    power_sum_answers,
    sum_answers,
)
from windrow.errors import BadSpecification


@dataclass(frozen=True)
class Way:
    """How a built-in aggregate is answered, and what its kernels can do."""

    answers: Callable[[Task], pa.Array]
    stand_ins: bool = True
    """With a middle, it needs rows that stand in for it."""
    by_order: bool = False
    """Answered from blocks of sorted rows; see ``sorted_blocks``."""
    forward_only: bool = False
    """Compiled only for ranges that never move back."""
    any_algorithm: bool = False
    """Compiled for every algorithm that can be asked for."""


_POWERS = Way(power_sum_answers, stand_ins=False, any_algorithm=True)
_EXTREME = Way(extreme_answers, any_algorithm=True)
_SPREAD = Way(spread_answers)
_END = Way(end_answers)
_ARG = Way(arg_answers, forward_only=True)
_EXTREME_COUNT = Way(extreme_count_answers, forward_only=True)
_QUANTILE = Way(quantile_answers, by_order=True)
_FEW = Way(few_answers, by_order=True)

BUILT_IN: dict[type[Aggregate], Way] = {
    Count: Way(count_answers, stand_ins=False),
    Sum: Way(sum_answers),
    Mean: Way(mean_answers),
    GeometricMean: Way(geometric_mean_answers),
    **dict.fromkeys(POWERS, _POWERS),
    Min: _EXTREME,
    Max: _EXTREME,
    All: _EXTREME,
    AnyTrue: _EXTREME,
    Spread: _SPREAD,
    RelativeVariation: _SPREAD,
    MaxCount: _EXTREME_COUNT,
    MinCount: _EXTREME_COUNT,
    ArgMax: _ARG,
    ArgMin: _ARG,
    First: _END,
    Last: _END,
    M4: Way(corner_answers, forward_only=True),
    TopK: _FEW,
    BottomK: _FEW,
    Quantile: _QUANTILE,
    Median: _QUANTILE,
    Rank: Way(rank_answers, by_order=True),
    Distinct: Way(distinct_answers, by_order=True),
    Mode: Way(mode_answers, by_order=True),
    Histogram: Way(histogram_answers, by_order=True),
    Entropy: Way(entropy_answers, by_order=True),
    Collect: Way(collect_answers),
}
"""Aggregates with kernels of their own; all others are yours, or answered as if they were."""
_OWN = Way(own_answers, stand_ins=False, any_algorithm=True)


def way_of(aggregate: Aggregate) -> Way:
    """How an aggregate is answered on columns."""
    return BUILT_IN.get(type(aggregate), _OWN)


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
    way = way_of(aggregate)
    without = task.middle is not None and task.stand_ins is None
    if ranges.recalc or (way.forward_only and not ranges.monotone) or (way.stand_ins and without):
        return interpreted(task)
    if ranges.forced and not way.any_algorithm:
        raise BadSpecification(
            f"algorithm=: {aggregate!r} has no such kernel on columns (Min, Max, Covariance and "
            'its kin, and aggregates of your own have); use "auto"'
        )
    return way.answers(task)
