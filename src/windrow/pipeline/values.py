"""Values as files and screens have them: of Arrow's columns, and in JSON."""

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def listed(column: Any) -> list[Any]:
    """The values as Python has them; times in nanoseconds, which it has none for, as ISO 8601.

    >>> import pyarrow as pa
    >>> listed(pa.array([1, None], pa.timestamp("ns")))
    ['1970-01-01T00:00:00.000000001', None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", None) == "ns":
        texts = pc.replace_substring(column.cast(pa.string()), " ", "T")
        return texts.to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def as_json(held: Any, default: Callable[[Any], Any], ascii_only: bool = False) -> str:
    """One line of JSON, which has no number for NaN and infinities: texts, as Spark writes them.

    >>> as_json({"x": float("nan"), "y": [1.5, float("-inf")]}, str)
    '{"x": "NaN", "y": [1.5, "-Infinity"]}'
    """
    try:
        return json.dumps(held, default=default, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(held), default=default, ensure_ascii=ascii_only)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {name: _finite(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return value


def plain(value: Any) -> Any:
    """A value that JSON has no word for."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
