"""Aggregates: identity, lift, combine, lower, their kind, and what is promised of them."""

from windrow.aggregates.approx_distinct import ApproxDistinct
from windrow.aggregates.approx_quantile import ApproxQuantile
from windrow.aggregates.approximate import ApproxCount, ApproxSum
from windrow.aggregates.base import Aggregate, Partial, as_aggregate
from windrow.aggregates.bits import BitAnd, BitOr, BitXor
from windrow.aggregates.bloom import Bloom
from windrow.aggregates.categories import Entropy, Histogram, Mode
from windrow.aggregates.collect import Collect
from windrow.aggregates.concat import Concat
from windrow.aggregates.count import Count
from windrow.aggregates.count_min import CountMin
from windrow.aggregates.distinct import Distinct
from windrow.aggregates.ends import First, Last
from windrow.aggregates.extremes import ArgMax, ArgMin, Max, MaxCount, Min, MinCount
from windrow.aggregates.frequent_items import FrequentItems
from windrow.aggregates.geometric_mean import GeometricMean
from windrow.aggregates.logic import All, Any
from windrow.aggregates.m4 import M4
from windrow.aggregates.moments import StdDev, Variance
from windrow.aggregates.product import Product
from windrow.aggregates.quantile import Median, Quantile
from windrow.aggregates.rank import Rank
from windrow.aggregates.relations import Correlation, Covariance, Slope, WeightedMean
from windrow.aggregates.runs import LongestRun, LongestRunTime
from windrow.aggregates.schema import EMPTY, Field, Schema
from windrow.aggregates.several import Several
from windrow.aggregates.shape import Kurtosis, Skewness
from windrow.aggregates.spread import RelativeVariation, Spread
from windrow.aggregates.top import BottomK, TopK
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
        M4,
        TopK,
        BottomK,
        Collect,
        Mode,
        Histogram,
        Entropy,
        Bloom,
        ApproxDistinct,
        ApproxQuantile,
        FrequentItems,
        CountMin,
        LongestRunTime,
        ArgMin,
        MinCount,
        Spread,
        RelativeVariation,
        Product,
        WeightedMean,
        Covariance,
        Correlation,
        Slope,
        Skewness,
        Kurtosis,
        All,
        Any,
        BitAnd,
        BitOr,
        BitXor,
    )
}
"""Every built-in aggregate. Tests, benchmarks, the planner and the docs all read this."""

SEQUENTIAL: dict[str, type[Aggregate]] = {kind.__name__: kind for kind in (ApproxCount, ApproxSum)}
"""Those without a combine: they run in ``Rolling``, on rows in order."""

__all__ = [
    "EMPTY",
    "M4",
    "REGISTRY",
    "SEQUENTIAL",
    "Aggregate",
    "All",
    "Any",
    "ApproxCount",
    "ApproxDistinct",
    "ApproxQuantile",
    "ApproxSum",
    "ArgMax",
    "ArgMin",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Bloom",
    "BottomK",
    "Collect",
    "Concat",
    "Correlation",
    "Count",
    "CountMin",
    "Covariance",
    "Distinct",
    "Entropy",
    "Family",
    "Field",
    "First",
    "FrequentItems",
    "GeometricMean",
    "Histogram",
    "Kurtosis",
    "Last",
    "LongestRun",
    "LongestRunTime",
    "Max",
    "MaxCount",
    "Mean",
    "Median",
    "Min",
    "MinCount",
    "Mode",
    "Partial",
    "Product",
    "Quantile",
    "Rank",
    "RelativeVariation",
    "Schema",
    "Several",
    "Skewness",
    "Slope",
    "Spread",
    "StdDev",
    "Sum",
    "TopK",
    "Variance",
    "WeightedMean",
    "as_aggregate",
    "canonical",
]
