"""A year in a line: small pictures of characters, and where the months are."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from windrow import times

Array = np.ndarray[Any, Any]
HEIGHTS = "▁▂▃▄▅▆▇█"
HOME = ZoneInfo("America/New_York")
YEAR = (datetime(2013, 1, 1, tzinfo=HOME), datetime(2014, 1, 1, tzinfo=HOME))
_HEAT = ("green3", "green3", "chartreuse3", "yellow3", "gold3", "orange3", "dark_orange3", "red3")


def microseconds(time: datetime) -> int:
    """Since 1970, as the tables count."""
    return round(time.timestamp()) * 1_000_000


def moment(ticks: int) -> datetime:
    """The time in New York."""
    return times.moment(int(ticks)).astimezone(HOME)


def day(ticks: int) -> str:
    """``Fri 8 Feb``."""
    time = moment(ticks)
    return f"{time:%a} {time.day} {time:%b}"


def minute(ticks: int) -> str:
    """``Fri 8 Feb 17:05``."""
    return f"{day(ticks)} {moment(ticks):%H:%M}"


def stretches(times: Array, values: Array, parts: int) -> Array:
    """The largest value in each of equal parts of the year; NaN where there is none."""
    first, last = (microseconds(end) for end in YEAR)
    places = np.clip((times - first) * parts // (last - first), 0, parts - 1)
    highest = np.full(parts, -np.inf)
    np.maximum.at(highest, places, np.nan_to_num(values, nan=-np.inf))
    return np.where(np.isneginf(highest), np.nan, highest)


def levels(values: Sequence[float] | Array, top: float) -> list[int | None]:
    """How high each is, from 0 to 7 of ``top``; None where there is nothing.

    >>> levels([0.0, 5.0, 10.0, float("nan")], 10.0)
    [0, 4, 7, None]
    """
    scale = len(HEIGHTS) / top if top > 0 else 0.0
    return [
        None if value != value else min(len(HEIGHTS) - 1, max(0, int(value * scale)))
        for value in map(float, values)
    ]


def line(values: Sequence[float] | Array, top: float) -> Any:
    """A line of small bars, green to red, for rich."""
    from rich.text import Text

    drawn = Text()
    for level in levels(values, top):
        if level is None:
            drawn.append(" ")
        else:
            drawn.append(HEIGHTS[level], style=_HEAT[level])
    return drawn


def bar(value: float, top: float, width: int) -> Any:
    """One bar that lies."""
    from rich.text import Text

    eighths = round(8 * width * value / top) if top > 0 else 0
    text = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8].strip())
    return Text(text.ljust(width), style=_HEAT[levels([value], top)[0] or 0])


def months(parts: int) -> str:
    """Where each month begins in a line of so many parts.

    >>> months(52)
    'Jan Feb Mar Apr  May  Jun Jul  Aug Sep Oct  Nov Dec '
    """
    first, last = (microseconds(end) for end in YEAR)
    text = [" "] * parts
    for month in range(1, 13):
        begin = datetime(2013, month, 1, tzinfo=HOME)
        place = (microseconds(begin) - first) * parts // (last - first)
        name = begin.strftime("%b") if parts >= 48 else begin.strftime("%b")[0]
        text[place : place + len(name)] = name
    return "".join(text[:parts])


def ticks(table: pa.Table, name: str) -> Array:
    """A column of times as numbers."""
    found: Array = table[name].cast(pa.int64()).to_numpy()
    return found


def numbers(table: pa.Table, name: str) -> Array:
    """A column of numbers, NaN where there is none."""
    found: Array = table[name].cast(pa.float64()).to_numpy()
    return found
