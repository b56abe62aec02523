"""Spark's patterns of times (``dd.MM.yyyy HH:mm``), as this process reads them."""

import re
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import BadSpecification

_LETTERS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MMM": "%b",
    "MM": "%m",
    "M": "%m",
    "dd": "%d",
    "d": "%d",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "h": "%I",
    "mm": "%M",
    "m": "%M",
    "ss": "%S",
    "s": "%S",
    "a": "%p",
    "Z": "%z",
    "XXX": "%z",
    "xxx": "%z",
}
_WIDTHS = {"%Y": r"\d{4}", "%b": r"\w+", "%p": r"\w+"}
_CENTURY = timedelta(36_525)
_PART = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")


def strptime_form(pattern: str) -> str:
    """The pattern as ``strptime`` has it.

    >>> strptime_form("dd.MM.yyyy'T'HH:mm")
    '%d.%m.%YT%H:%M'
    """
    out = ""
    for part in _PART.finditer(pattern):
        if part[2] is None:
            out += (part[0] if part[1] is None else part[1] or "'").replace("%", "%%")
        elif part[0] in _LETTERS:
            out += _LETTERS[part[0]]
        else:
            raise BadSpecification(
                f"{part[0]!r} in the pattern {pattern!r} is not known in process: known are "
                f'{", ".join(_LETTERS)}. On Spark others are, engine = "spark"'
            )
    return out


def parsed(texts: Any, pattern: str) -> Any:
    """Times of that form, in UTC; None where a text is of another.

    >>> parsed(pa.chunked_array([["29.02.2024"]]), "dd.MM.yyyy")[0].as_py().isoformat()
    '2024-02-29T00:00:00+00:00'
    >>> parsed(pa.chunked_array([["30.02.2024"]]), "dd.MM.yyyy") is None
    True
    """
    form = strptime_form(pattern)
    try:
        times = pc.strptime(texts, format=form, unit="us")
    except pa.ArrowInvalid:
        return None
    if "%y" in form:  # Spark's are from 2000 on, strptime's from 1969
        times = pc.if_else(pc.less(pc.year(times), 2000), pc.add(times, _CENTURY), times)
    if times.type.tz:
        return times
    real = pc.all(pc.equal(pc.day(times), _days(texts, form))).as_py()  # strptime takes 30 February
    return None if real is False else pc.assume_timezone(times, "UTC")


def _days(texts: Any, form: str) -> Any:
    """The days of the month, as they are written; null where the form has none."""
    if "%d" not in form:
        return pa.nulls(len(texts), pa.int64())
    before, _, _ = form.partition("%d")
    escaped = re.escape(before).replace("\\%", "%")
    found = re.sub(r"%[A-Za-z]", lambda part: _WIDTHS.get(part[0], r"\d{1,2}"), escaped)
    expression = f"^{found}\\s*(?P<day>\\d{{1,2}})" if found else "^\\s*(?P<day>\\d{1,2})"
    return pc.struct_field(pc.extract_regex(texts, expression), "day").cast(pa.int64())
