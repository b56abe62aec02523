"""windrow gives every row its window: sliding-window aggregation, the same answer everywhere."""

import importlib
from typing import Any

from windrow import aggregates, approx, errors, greedy, shared, stores, windows
from windrow.aggregates import (
    M4,
    Aggregate,
    ApproxDistinct,
    ApproxQuantile,
    ArgMax,
    Bloom,
    BottomK,
    Collect,
    Concat,
    Count,
    CountMin,
    Distinct,
    Entropy,
    First,
    FrequentItems,
    GeometricMean,
    Last,
    LongestRun,
    Max,
    MaxCount,
    Mean,
    Median,
    Min,
    Mode,
    Quantile,
    Rank,
    Several,
    StdDev,
    Sum,
    TopK,
    Variance,
)
from windrow.rolling import Rolling
from windrow.rules import Rules
from windrow.shared import EACH, Hub
from windrow.slides import at_most, bounds, policy, rows, time, useful
from windrow.sliding import Sliding
from windrow.version import __version__


def __getattr__(name: str) -> Any:
    if name in ("filters", "spark", "testing"):  # loaded when used
        return importlib.import_module(f"windrow.{name}")
    raise AttributeError(f"module 'windrow' has no attribute {name!r}")


__all__ = [
    "EACH",
    "M4",
    "Aggregate",
    "ApproxDistinct",
    "ApproxQuantile",
    "ArgMax",
    "Bloom",
    "BottomK",
    "Collect",
    "Concat",
    "Count",
    "CountMin",
    "Distinct",
    "Entropy",
    "First",
    "FrequentItems",
    "GeometricMean",
    "Hub",
    "Last",
    "LongestRun",
    "Max",
    "MaxCount",
    "Mean",
    "Median",
    "Min",
    "Mode",
    "Quantile",
    "Rank",
    "Rolling",
    "Rules",
    "Several",
    "Sliding",
    "StdDev",
    "Sum",
    "TopK",
    "Variance",
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
