"""Tables and reports for tests."""

from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "\"quoted' & <b>bold</b>",
    "two\nlines\u2028and more",
    "🦄 𝔘nicode",
)
START = 1_700_000_000_000_000


def readings(
    rows: int = 3000, seed: int = 5, keys: Any = HOSTILE, zone: Any = "Europe/Paris"
) -> Any:
    """Rows of a few keys in order of time, with spikes, a pause, nulls, NaN and infinite ones."""
    generator = np.random.default_rng(seed)
    seconds = np.cumsum(generator.integers(1, 120, rows))
    seconds[rows // 2 :] += 100_000
    value = np.round(generator.normal(20, 3, rows), 3)
    value[generator.integers(0, rows, 5)] = 500.0
    value[7], value[11] = np.nan, np.inf
    missing = generator.random(rows) < 0.02
    # the busier the earlier in the list, so that their order is known
    weights = np.arange(len(keys), 0, -1)
    places = generator.choice(len(keys), rows, p=weights / weights.sum())
    return pa.table(
        {
            "sensor": pa.array([keys[place] for place in places], pa.string()),
            "at": pa.array(START + seconds * 1_000_000, pa.timestamp("us", zone)),
            "value": pa.array(value, mask=missing),
            "unit": pa.array(["°C"] * rows),
        }
    )


def specification(**words: Any) -> wr.Rolling:
    """Three windows of three aggregates."""
    given: dict[str, Any] = {
        "key": "sensor",
        "time": "at",
        "windows": ["10m", "2h", "1d"],
        "aggregates": [
            wr.Mean("value", nan="missing"),
            wr.Max("value", nan="missing").alias("<i>peak</i>"),
            wr.Count(),
        ],
    }
    return wr.Rolling(**(given | words))


def batches(count: int = 30) -> list[dict[str, Any]]:
    """What a stream's batches tell."""
    return [
        {
            "batch": place,
            "seconds": 1.0 + place % 5 / 10,
            "rows": 1000 + place,
            "rows_per_second": 900.0,
            "answered_rows": 1000,
            "late_rows": 3 if place == 4 else 0,
            "rows_without_time": 0,
            "overflows": 0,
            "waiting_rows": 10,
            "kept_rows": 50_000 + place,
            "state_bytes": 2_000_000 + 1000 * place,
            "lag_seconds": None if place == 0 else 60.0 + place,
            "frontier": "2024-01-01 00:00:00",
        }
        for place in range(count)
    ]
