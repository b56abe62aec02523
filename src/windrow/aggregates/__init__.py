"""Aggregates: identity, lift, combine, lower, their kind, and what is promised of them."""

from windrow.aggregates.approximate import ApproxCount, ApproxSum
from windrow.aggregates.base import Aggregate, Partial, as_aggregate
from windrow.aggregates.concat import Concat
from windrow.aggregates.count import Count
from windrow.aggregates.distinct import Distinct
from windrow.aggregates.ends import First, Last
from windrow.aggregates.extremes import ArgMax, Max, MaxCount, Min
from windrow.aggregates.geometric_mean import GeometricMean
from windrow.aggregates.moments import StdDev, Variance
from windrow.aggregates.quantile import Median, Quantile
from windrow.aggregates.rank import Rank
from windrow.aggregates.runs import LongestRun
from windrow.aggregates.schema import EMPTY, Field, Schema
from windrow.aggregates.several import Several
from windrow.aggregates.total import Mean, Sum
from windrow.aggregates.values import Family, canonical

REGISTRY: dict[str, type[Aggregate]] = {
    kind.__name__: kind
    for kind in (
        Count,
        Sum,
        Mean,
        Variance,
        StdDev,
        Min,
        Max,
        MaxCount,
        ArgMax,
        First,
        Last,
        GeometricMean,
        LongestRun,
        Concat,
        Quantile,
        Median,
        Rank,
        Distinct,
    )
}
"""Every built-in aggregate. Tests, benchmarks, the planner and the docs all read this."""

SEQUENTIAL: dict[str, type[Aggregate]] = {kind.__name__: kind for kind in (ApproxCount, ApproxSum)}
"""Those without a combine: they run in ``Rolling``, on rows in order."""

__all__ = [
    "EMPTY",
    "REGISTRY",
    "SEQUENTIAL",
    "Aggregate",
    "ApproxCount",
    "ApproxSum",
    "ArgMax",
    "Concat",
    "Count",
    "Distinct",
    "Family",
    "Field",
    "First",
    "GeometricMean",
    "Last",
    "LongestRun",
    "Max",
    "MaxCount",
    "Mean",
    "Median",
    "Min",
    "Partial",
    "Quantile",
    "Rank",
    "Schema",
    "Several",
    "StdDev",
    "Sum",
    "Variance",
    "as_aggregate",
    "canonical",
]
