"""Run every kernel once on a few rows."""

import math

import pyarrow as pa

from windrow.aggregates import EMPTY, REGISTRY, Aggregate, ApproxCount, ApproxSum
from windrow.aggregates.power_sums import PowerSums
from windrow.columns.answers import BUILT_IN
from windrow.columns.frames import apply
from windrow.rolling import Rolling
from windrow.slides import bounds, rows, time


def run_everything() -> None:
    """Built-in aggregates over all kinds of windows, with and without nulls and keys."""
    columns = [
        pa.array([1.0, 2.0, 4.0, 1e300]),
        pa.array([1.0, None, math.nan, 2.0]),
        pa.array([1, 2, 3, 4]),
        pa.array([1, None, 2, 3]),
    ]
    windows = {
        "rows": rows(2),
        "late": rows(2, ending=1, within=3),
        "time": time(5),
        "any": bounds("b", "t"),
    }
    for column in columns:
        table = pa.table({"k": [0, 0, 1, 1], "t": [1, 2, 3, 4], "b": [0, 2, 1, 0], "x": column})
        table = table.append_column("yes", pa.array([True, False, None, True]))
        aggregates = with_kernels()
        # moments take seconds to compile: what slides forward only
        moments = [a for a in aggregates if isinstance(a, PowerSums)]
        others = [a for a in aggregates if not isinstance(a, PowerSums)]
        apply(Rolling(time="t", windows=[rows(2)], aggregates=moments), table)
        for key in (None, "k"):
            apply(Rolling(key=key, time="t", windows=windows, aggregates=others), table)
    counted = [ApproxSum("x", maximum=9, epsilon=0.1), ApproxCount("x", epsilon=0.1)]
    both = [rows(2), time(5)]
    apply(Rolling(key="k", time="t", windows=both, aggregates=counted), table)


def with_kernels() -> list[Aggregate]:
    """The built-in aggregates that have compiled code; the others may need other packages."""
    names = {"integer": "t", "boolean": "yes"}
    found = []
    for name, kind in REGISTRY.items():
        if kind in BUILT_IN or kind.identity is not EMPTY or issubclass(kind, PowerSums):
            inputs = kind("x").input_kinds if name == "Count" else kind().input_kinds
            found.append(kind(*(names.get(wanted, "x") for wanted in inputs)))
    return found
