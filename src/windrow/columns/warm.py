"""Run every kernel once on a few rows."""

import math

import pyarrow as pa

from windrow.aggregates import EMPTY, REGISTRY, Aggregate
from windrow.columns.answers import BY_CLASS
from windrow.columns.frames import apply
from windrow.rolling import Rolling
from windrow.slides import bounds, rows, time


def run_everything() -> None:
    """Every built-in aggregate over every kind of window, with and without nulls and keys."""
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
        aggregates = with_kernels()
        for key in (None, "k"):
            apply(Rolling(key=key, time="t", windows=windows, aggregates=aggregates), table)


def with_kernels() -> list[Aggregate]:
    """The built-in aggregates that have compiled code; the others may need other packages."""
    return [
        kind(*["x"] * len(kind("x").input_kinds if name == "Count" else kind().input_kinds))
        for name, kind in REGISTRY.items()
        if kind in BY_CLASS or kind.identity is not EMPTY
    ]
