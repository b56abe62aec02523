"""Time is an integer inside, in the unit it came in; durations are elapsed time.

``"1d"`` is 24 hours whatever the zone. A conversion that would lose precision is an error.
"""

import difflib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from windrow.errors import BadSpecification, BadValue, WindrowError

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
}
_SPELLINGS = {
    "ns": "ns nanosecond nanoseconds",
    "us": "us µs microsecond microseconds",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "m": "m min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
    "w": "w week weeks",
}
_UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
_PIECE = re.compile(r"\s*(\d+)\s*([a-zµ]+)\s*,?", re.IGNORECASE)


@dataclass(frozen=True)
class Duration:
    """Elapsed time in nanoseconds, with the short form it is shown as."""

    nanoseconds: int
    label: str


EVER = Duration(1 << 80, "ever")
"""Longer than all time, in any unit, also one that is not known."""
_BEYOND = 1 << 65

Length = str | int | timedelta | np.timedelta64 | Duration
"""A length of time as a person may give it."""


def duration(value: Any, what: str) -> Duration | int:
    """A length of time from ``"90s"``, ``"1 hour"``, ``"1h30m"``, a timedelta, or an integer.

    >>> duration("1 hour", "window")
    Duration(nanoseconds=3600000000000, label='1h')
    """
    if isinstance(value, Duration):
        return value
    if isinstance(value, bool):
        raise BadSpecification(f"{what}: {value!r} is not a length of time")
    if isinstance(value, str):
        return _parse(value, what)
    if isinstance(value, timedelta):
        nanoseconds = value // timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
        return Duration(nanoseconds, _label(nanoseconds))
    if isinstance(value, np.timedelta64):
        nanoseconds = _timedelta64(value, what)
        return Duration(nanoseconds, _label(nanoseconds))
    if isinstance(value, Integral):
        return int(value)
    raise BadSpecification(
        f'{what}: {value!r} is not a length of time; write "90s", "1 hour", a timedelta, or an '
        "integer where times are integers"
    )


def _parse(text: str, what: str) -> Duration:
    nanoseconds, label, position = 0, "", 0
    stripped = text.strip()
    while position < len(stripped):
        piece = _PIECE.match(stripped, position)
        # "5M" is months elsewhere, so a single letter means what it says
        word = piece[2] if piece and len(piece[2]) == 1 else piece[2].lower() if piece else ""
        unit = _UNITS.get(word)
        if not piece or not unit:
            hint = ""
            if piece and (piece[2] == "M" or word.startswith(("mo", "y", "q"))):
                hint = " Months and years have no fixed length: say how many days."
            elif piece and word in ("row", "rows"):
                hint = f" So many rows are rows({piece[1]}), in a file {{ rows = {piece[1]} }}."
            elif piece:
                close = difflib.get_close_matches(word, _UNITS, 1)
                hint = f" Did you mean {f'{piece[1]} {close[0]}'!r}?" if close else ""
            raise BadSpecification(
                f"{what}: cannot read {text!r} as a length of time at {stripped[position:]!r}. "
                f'Write a number and a unit, as in "90s", "1 hour", "1h30m"; units are '
                f"{', '.join(NANOSECONDS)} and their full names.{hint}"
            )
        nanoseconds += int(piece[1]) * NANOSECONDS[unit]
        label += f"{int(piece[1])}{unit}"
        position = piece.end()
    if not label:
        raise BadSpecification(f'{what}: empty; write a length of time such as "1h"')
    return Duration(nanoseconds, label)


def _timedelta64(value: np.timedelta64, what: str) -> int:
    unit, step = np.datetime_data(value.dtype)
    name = {"D": "d", "W": "w"}.get(unit, unit)
    if name not in NANOSECONDS or np.isnat(value):
        raise BadSpecification(f"{what}: {value!r} has no fixed length")
    return int(value.astype(np.int64)) * step * NANOSECONDS[name]


def _label(nanoseconds: int) -> str:
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if nanoseconds and nanoseconds % NANOSECONDS[unit] == 0:
            return f"{nanoseconds // NANOSECONDS[unit]}{unit}"
    return f"{nanoseconds}ns"


NO_TIME = (TypeError, ValueError, AttributeError, OverflowError)
"""What Python raises where something is no time."""


@dataclass(frozen=True)
class Clock:
    """How times of one kind become integers and back."""

    kind: str
    unit: str | None  # None: plain integers
    to_ticks: Callable[[Any], int]
    from_ticks: Callable[[int], Any]

    def ticks(self, at: Any) -> int:
        """The time of a row, of a kind that may be another than that of the rows before."""
        try:
            return self.to_ticks(at)
        except WindrowError:
            raise
        except NO_TIME as error:
            raise self.refusal(at) from error

    def refusal(self, at: Any) -> BadValue:
        """What to say of a row whose time is of another kind."""
        return BadValue(
            f"{at!r} ({type(at).__name__}) is not a time like the ones before, which were "
            f"{self.kind}"
        )

    def length(self, length: Duration | int, what: str) -> int:
        """A duration in ticks."""
        if length == EVER:
            return _BEYOND
        if self.unit is None:
            if isinstance(length, Duration):
                raise BadSpecification(
                    f"{what}: times are integers, whose unit is not known here, so the length must "
                    f"be an integer in the same unit, not {length.label!r}"
                )
            return length
        if not isinstance(length, Duration):
            raise BadSpecification(
                f'{what}: times are {self.kind}, so the length needs a unit: "{length}s", say, '
                f"not {length}"
            )
        ticks, rest = divmod(length.nanoseconds, NANOSECONDS[self.unit])
        if rest:
            raise BadSpecification(
                f"{what}: {length.label!r} is not a whole number of {self.unit}, the unit of these "
                "times: convert the times to a finer unit"
            )
        return ticks


_EPOCH = datetime(1970, 1, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INT64 = 1 << 63


def moment(microseconds: int) -> datetime:
    """So long after 1970, in UTC; the first or last of all datetimes where that is none of them."""
    first, last = (day.replace(tzinfo=UTC) for day in (datetime.min, datetime.max))
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return last if microseconds > 0 else first


def clock_of(value: Any, unit: str | None = None) -> Clock:
    """The clock for times like this one; ``unit`` says what a plain number counts."""
    if is_missing(value):
        raise BadValue("the row has no time: give every row one, or leave the row out")
    if isinstance(value, datetime):
        aware = value.utcoffset() is not None
        kind = f"datetimes with{'' if aware else 'out'} a zone"
        epoch = EPOCH if aware else _EPOCH
        return Clock(kind, "us", partial(_from_datetime, epoch), partial(_to_datetime, epoch))
    if isinstance(value, date):
        return Clock("dates", "d", _from_date, date.fromordinal)
    if isinstance(value, np.datetime64):
        return _clock_of_datetime64(value)
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        if unit is not None:
            return _clock_in_units(unit)
        if isinstance(value, Integral):
            return Clock("integers", None, _from_integer, operator.index)
        raise BadSpecification(
            'times are floats, so say what they count with unit= ("s", "ms", "us" or "ns"): '
            "they are kept as whole nanoseconds"
        )
    raise BadValue(
        f"{value!r} ({type(value).__name__}) is not a time: use an integer, a datetime, a date, a "
        "numpy.datetime64, or a float with unit="
    )


def is_missing(value: Any) -> bool:
    """None, and what pandas, NumPy and Arrow have in its place: NaT, NA and scalars of nothing."""
    name = type(value).__name__
    if value is None or name in ("NaTType", "NAType"):
        return True
    if name.endswith("Scalar") and getattr(value, "is_valid", True) is False:
        return True
    return isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))


def _from_datetime(epoch: datetime, value: datetime) -> int:
    ticks, rest = divmod(value - epoch, _MICROSECOND)
    finer: int = getattr(value, "nanosecond", 0)  # pandas' Timestamp
    if rest or finer:
        raise BadValue(
            f"{value!r} is finer than microseconds, which datetimes are kept in: give "
            "numpy.datetime64 in ns instead"
        )
    return ticks


def _to_datetime(epoch: datetime, ticks: int) -> datetime:
    return epoch + ticks * _MICROSECOND


def _from_date(value: date) -> int:
    if isinstance(value, datetime):
        raise BadValue(f"{value!r} is a datetime among dates")
    return value.toordinal()


def _from_integer(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("a truth value is not a time")
    ticks = operator.index(value)
    if not -_INT64 <= ticks < _INT64:
        raise BadValue(f"time {ticks} is beyond 64 bits")
    return ticks


def _clock_of_datetime64(value: np.datetime64) -> Clock:
    unit, step = np.datetime_data(value.dtype)
    name = {"D": "d", "W": "w"}.get(unit, unit)
    if name not in NANOSECONDS or step != 1:
        raise BadValue(
            f"{value!r} counts in steps of {step} {unit}: convert it to D, h, m, s, ms, us or ns"
        )
    return Clock(
        f"datetime64[{unit}]", name, partial(_from_datetime64, unit), partial(_to_datetime64, unit)
    )


def _from_datetime64(unit: str, value: np.datetime64) -> int:
    converted = value.astype(f"datetime64[{unit}]", casting="safe")
    if converted.astype(value.dtype) != value:
        raise BadValue(f"{value!r} is out of range in {unit}, the unit of the times before")
    return int(converted.astype(np.int64))


def _to_datetime64(unit: str, ticks: int) -> np.datetime64:
    return np.datetime64(ticks, unit)  # type: ignore[call-overload,no-any-return]


def unit_of(word: Any) -> str:
    """The short name of a unit of time.

    >>> unit_of("seconds")
    's'
    """
    found = _UNITS.get(word) if isinstance(word, str) else None
    if found is None:
        raise BadSpecification(f"unit={word!r} is not one of {', '.join(NANOSECONDS)}")
    return found


def _clock_in_units(unit: str) -> Clock:
    factor = NANOSECONDS[unit_of(unit)]
    return Clock(
        f"numbers of {unit}", "ns", partial(_from_number, unit, factor), partial(_to_number, factor)
    )


def _from_number(unit: str, factor: int, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError("not a number")
    whole = float(value)
    if whole != whole or whole in (float("inf"), float("-inf")):
        raise BadValue(f"{value!r} is not a time")
    numerator, denominator = whole.as_integer_ratio()
    ticks = (2 * numerator * factor + denominator) // (2 * denominator)
    if ticks / factor != whole:
        raise BadValue(
            f"{value!r} {unit} is not a whole number of nanoseconds; round it first, as in "
            f"round(t, 9) for seconds"
        )
    if not -_INT64 <= ticks < _INT64:
        raise BadValue(f"time {value!r} {unit} is beyond 64 bits of nanoseconds")
    return ticks


def _to_number(factor: int, ticks: int) -> float:
    return ticks / factor
