"""Run every kernel once on a few rows."""

import math

import pyarrow as pa

from windrow.aggregates import REGISTRY, ApproxCount, ApproxSum
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
        aggregates = [
            kind(*["x"] * len(kind("x").input_kinds if name == "Count" else kind().input_kinds))
            for name, kind in REGISTRY.items()
            if name != "Concat"
        ]
        for key in (None, "k"):
            apply(Rolling(key=key, time="t", windows=windows, aggregates=aggregates), table)
    counted = [ApproxSum("x", maximum=9, epsilon=0.1), ApproxCount("x", epsilon=0.1)]
    both = [rows(2), time(5)]
    apply(Rolling(key="k", time="t", windows=both, aggregates=counted), table)
