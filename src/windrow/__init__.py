"""windrow gives every row its window: sliding-window aggregation, the same answer everywhere."""

import importlib
import typing

from windrow import aggregates, approx, errors, greedy, shared, stores, windows
from windrow.aggregates import (
    Aggregate,
    All,
    Any,
    ArgMax,
    ArgMin,
    BitAnd,
    BitOr,
    BitXor,
    Concat,
    Correlation,
    Count,
    Covariance,
    Distinct,
    First,
    GeometricMean,
    Kurtosis,
    Last,
    LongestRun,
    LongestRunTime,
    Max,
    MaxCount,
    Mean,
    Median,
    Min,
    MinCount,
    Product,
    Quantile,
    Rank,
    RelativeVariation,
    Several,
    Skewness,
    Slope,
    Spread,
    StdDev,
    Sum,
    Variance,
    WeightedMean,
)
from windrow.rolling import Rolling
from windrow.rules import Rules
from windrow.shared import EACH, Hub
from windrow.slides import at_most, bounds, policy, rows, time, useful
from windrow.sliding import Sliding
from windrow.version import __version__


def __getattr__(name: str) -> typing.Any:
    if name in ("filters", "spark", "testing"):  # loaded when used
        return importlib.import_module(f"windrow.{name}")
    raise AttributeError(f"module 'windrow' has no attribute {name!r}")


__all__ = [
    "EACH",
    "Aggregate",
    "All",
    "Any",
    "ArgMax",
    "ArgMin",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Concat",
    "Correlation",
    "Count",
    "Covariance",
    "Distinct",
    "First",
    "GeometricMean",
    "Hub",
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
    "Product",
    "Quantile",
    "Rank",
    "RelativeVariation",
    "Rolling",
    "Rules",
    "Several",
    "Skewness",
    "Sliding",
    "Slope",
    "Spread",
    "StdDev",
    "Sum",
    "Variance",
    "WeightedMean",
    "__version__",
    "aggregates",
    "approx",
    "at_most",
    "bounds",
    "errors",
    "greedy",
    "policy",
    "rows",
    "shared",
    "stores",
    "time",
    "useful",
    "windows",
]
