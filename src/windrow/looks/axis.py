"""Times of a report: whole numbers to draw by, and texts in the data's own zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from windrow.slides import Rows, Time, WindowSpec
from windrow.times import EVER, NANOSECONDS, Duration

Array = np.ndarray[Any, Any]
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Axis:
    """What times count: microseconds (``kind="time"``), a number of their own, or rows."""

    kind: str
    zone: str | None = None
    unit: str | None = None
    """What floats count."""

    @classmethod
    def of(cls, type_: pa.DataType, unit: str | None = None) -> "Axis":
        """The axis of a column of times."""
        if pa.types.is_timestamp(type_):
            return cls("time", type_.tz)
        if pa.types.is_date(type_):
            return cls("time")
        return cls("number", unit=unit)

    def ticks(self, column: pa.ChunkedArray) -> tuple[Array, Array]:
        """Times as numbers, and where there are any; finer than microseconds is cut off."""
        valid = np.asarray(column.is_valid())
        if self.kind == "time":
            whole = pa.timestamp(
                "us", column.type.tz if pa.types.is_timestamp(column.type) else None
            )
            column = column.cast(whole, safe=False).cast(pa.int64())
        elif not pa.types.is_integer(column.type):
            return _plain(column.cast(pa.float64()), 0.0), valid
        return _plain(column.cast(pa.int64()), 0), valid

    def length(self, window: WindowSpec) -> float | None:
        """A window's length in ticks; None where it has none."""
        length: Any = None
        if isinstance(window, Time):
            length = window.length
        elif isinstance(window, Rows):
            length = window.within
        if length == EVER:
            return None
        if not isinstance(length, Duration):
            return None if length is None else float(length)
        if self.kind == "time":
            return length.nanoseconds / 1000
        return length.nanoseconds / NANOSECONDS[self.unit or "s"]

    def shown(self, tick: Any) -> str:
        """A time for people."""
        if self.kind != "time":
            return f"{tick:,}" if isinstance(tick, int) else f"{tick:,.9g}"
        try:
            moment = _EPOCH + timedelta(microseconds=int(tick))
            if self.zone is not None:
                moment = moment.replace(tzinfo=UTC).astimezone(_zone(self.zone))
        except OverflowError:
            return f"{tick} µs from 1970"
        text = moment.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
        text = text.removesuffix(":00") if text.count(":") == 2 else text
        return text if self.zone is None else f"{text} {moment.tzname()}"

    def span(self, ticks: float) -> str:
        """How long, for people.

        >>> Axis("time").span(5_400_000_000), Axis("number").span(12)
        ('1.5 h', '12')
        """
        if self.kind != "time":
            return f"{ticks:,.6g}"
        seconds = ticks / 1e6
        for limit, name, factor in _SPANS:
            if seconds < limit:
                return f"{seconds / factor:,.3g} {name}"
        return f"{seconds / 86_400:,.0f} days"


_SPANS = (
    (1, "ms", 1e-3),
    (120, "s", 1),
    (5400, "min", 60),
    (172_800, "h", 3600),
    (8.64e6, "days", 86_400),
)


def _plain(column: Any, nothing: Any) -> Array:
    return np.asarray(column.fill_null(nothing).combine_chunks().to_numpy(zero_copy_only=False))


def _zone(name: str) -> tzinfo:
    if name[:1] in "+-" and len(name) == 6:
        sign = -1 if name[0] == "-" else 1
        return timezone(sign * timedelta(hours=int(name[1:3]), minutes=int(name[4:])), name)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC
