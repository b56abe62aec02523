"""Points of a line: all of them where they are few, else the four corners of each column of pixels.

A line through the first, smallest, largest and last value of the rows in each column looks like the
line through all rows (M4: Jugel et al., VLDB 2014), so no spike is lost. Corners of corners are the
corners of all rows: parts of a table may be reduced apart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CORNERS = 4


@dataclass(frozen=True)
class Columns:
    """A stretch of time cut into columns of pixels."""

    first: float
    last: float
    count: int

    def of(self, times: Array) -> Array:
        """The column that each time is in."""
        span = float(self.last) - float(self.first)
        if span <= 0:
            return np.zeros(len(times), np.int64)
        places = (times - self.first) * (self.count / span)
        return np.clip(places.astype(np.int64), 0, self.count - 1)


def corners(times: Array, values: Array, columns: Columns) -> Array:
    """The places of the rows to draw, of rows in order of time.

    A value that is no finite number is not drawn; a column that has no other is there with one such
    row, by which the line is broken.
    """
    if not len(times):
        return np.empty(0, np.int64)
    column = columns.of(times)
    finite = np.flatnonzero(np.isfinite(values))
    kept = [_starts(column)[~np.isin(column[_starts(column)], column[finite])]]
    if len(finite):
        inside = column[finite]
        begins = _starts(inside)
        ends = np.append(begins[1:], len(finite)) - 1
        by_value = finite[np.lexsort((values[finite], inside))]
        kept += [finite[begins], finite[ends], by_value[begins], by_value[ends]]
    return np.unique(np.concatenate(kept))


def _starts(sorted_columns: Array) -> Array:
    """Where each run of equal columns begins."""
    return np.flatnonzero(np.append(True, sorted_columns[1:] != sorted_columns[:-1]))


@dataclass
class Line:
    """One answer of one key over time."""

    times: Array
    values: Array
    columns: int | None = None
    """Of how many columns of pixels these are the corners; None: every row is here."""

    @property
    def whole(self) -> bool:
        """Whether every row is here."""
        return self.columns is None

    def thinner(self, columns: Columns) -> "Line":
        """The same line with fewer points."""
        if len(self.times) <= CORNERS * columns.count:
            return self
        kept = corners(self.times, self.values, columns)
        return Line(self.times[kept], self.values[kept], columns.count)


def line(times: Array, values: Array, columns: Columns) -> Line:
    """A line of rows in order of time."""
    return Line(times, values).thinner(columns)


def numbers(values: Array) -> list[Any]:
    """Values for JSON: whole ones exactly, others to nine digits, None for what is not finite."""
    out: list[Any] = []
    for value in values.tolist():
        if value != value or value in (float("inf"), float("-inf")):
            out.append(None)
        elif isinstance(value, int) or (value == int(value) and abs(value) < 2**53):
            out.append(int(value))
        else:
            out.append(float(f"{value:.9g}"))
    return out
