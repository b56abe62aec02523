"""windrow gives every row its window: sliding-window aggregation, the same answer everywhere."""

import importlib
import typing

from windrow import aggregates, approx, errors, stores, windows
from windrow.aggregates import (
    M4,
    Aggregate,
    All,
    Any,
    ApproxCount,
    ApproxDistinct,
    ApproxQuantile,
    ApproxSum,
    ArgMax,
    ArgMin,
    BitAnd,
    BitOr,
    BitXor,
    Bloom,
    BottomK,
    Collect,
    Concat,
    Correlation,
    Count,
    CountMin,
    Covariance,
    Distinct,
    Entropy,
    First,
    FrequentItems,
    GeometricMean,
    Histogram,
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
    Mode,
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
    TopK,
    Variance,
    WeightedMean,
)
from windrow.aggregates.other_names import meant as _meant
from windrow.rolling import Rolling, Window
from windrow.slides import at_most, bounds, policy, rows, session, time, useful
from windrow.sliding import Sliding
from windrow.version import __version__

if typing.TYPE_CHECKING:
    from types import ModuleType

    from windrow import filters as filters
    from windrow import greedy, shared
    from windrow import serving as serving
    from windrow import testing as testing
    from windrow.rules import Rules
    from windrow.shared import EACH, Hub

    report: ModuleType
    spark: ModuleType  # a checker that looked into them would read all of PySpark

_LATER = {"EACH": "windrow.shared", "Hub": "windrow.shared", "Rules": "windrow.rules"}
"""Loaded when used, and so are the packages below."""
_PACKAGES = ("filters", "greedy", "report", "serving", "shared", "spark", "testing")


if not typing.TYPE_CHECKING:  # a checker would believe that every name is there

    def __getattr__(name: str) -> typing.Any:
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), name)
        if name in _PACKAGES:
            return importlib.import_module(f"windrow.{name}")
        word = None if name.startswith("_") else _meant(name, __all__)
        hint = f". Did you mean windrow.{word}?" if word else ""
        raise AttributeError(f"module 'windrow' has no attribute {name!r}{hint}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *_PACKAGES})


__all__ = [
    "EACH",
    "M4",
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
    "First",
    "FrequentItems",
    "GeometricMean",
    "Histogram",
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
    "Mode",
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
    "TopK",
    "Variance",
    "WeightedMean",
    "Window",
    "__version__",
    "aggregates",
    "approx",
    "at_most",
    "bounds",
    "errors",
    "greedy",
    "policy",
    "rows",
    "session",
    "shared",
    "stores",
    "time",
    "useful",
    "windows",
]
