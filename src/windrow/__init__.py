"""windrow gives every row its window: sliding-window aggregation, the same answer everywhere."""

import importlib
from typing import Any

from windrow import aggregates, approx, errors, greedy, shared, stores, windows
from windrow.aggregates import (
    Aggregate,
    ArgMax,
    Concat,
    Count,
    Distinct,
    First,
    GeometricMean,
    Last,
    LongestRun,
    Max,
    MaxCount,
    Mean,
    Median,
    Min,
    Quantile,
    Rank,
    Several,
    StdDev,
    Sum,
    Variance,
)
from windrow.rolling import Rolling
from windrow.rules import Rules
from windrow.shared import EACH, Hub
from windrow.slides import at_most, bounds, policy, rows, time, useful
from windrow.sliding import Sliding
from windrow.version import __version__


def __getattr__(name: str) -> Any:
    if name in ("filters", "serving", "spark", "testing"):  # loaded when used
        return importlib.import_module(f"windrow.{name}")
    raise AttributeError(f"module 'windrow' has no attribute {name!r}")


__all__ = [
    "EACH",
    "Aggregate",
    "ArgMax",
    "Concat",
    "Count",
    "Distinct",
    "First",
    "GeometricMean",
    "Hub",
    "Last",
    "LongestRun",
    "Max",
    "MaxCount",
    "Mean",
    "Median",
    "Min",
    "Quantile",
    "Rank",
    "Rolling",
    "Rules",
    "Several",
    "Sliding",
    "StdDev",
    "Sum",
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
