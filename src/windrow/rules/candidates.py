"""The keys that a new rule may fire for, found by filters instead of asking every key.

A filter is kept for each aggregate and column that some rule asks about over a window of time that
ends now: Count, Sum of what is never negative, Max and Min. Rows are handed on in batches.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windrow.aggregates import Aggregate, Count, Max, Min, Sum
from windrow.errors import WindrowError
from windrow.shared import Query
from windrow.shared.line import Line
from windrow.slides import Time
from windrow.times import is_missing

if TYPE_CHECKING:
    from windrow.filters import CiCount, CiMax, CiMin, CiSum

    Filter = CiCount | CiSum | CiMax | CiMin

_BATCH = 8192
_SIGNS: dict[type[Aggregate], str] = {Count: ">", Sum: ">", Max: "<>", Min: "<>"}
"""What a filter can tell: a key without rows counts 0, which only every key could tell."""

Name = tuple[type[Aggregate], tuple[str, ...]]


class Kept:
    """A filter, and the rows that it was not given yet."""

    def __init__(self, name: Name, longest: int) -> None:
        self.name = name
        self.longest = longest
        self.why_not: str | None = None
        self._filter: Filter | None = None
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._times: list[int] = []

    def insert(self, key: Any, row: Mapping[str, Any], now: int) -> None:
        """A row, for the next batch."""
        if self.why_not is not None:
            return
        column = self.name[1]
        value = row.get(column[0]) if column else None
        if column and is_missing(value):
            return
        self._keys.append(key)
        self._values.append(value)
        self._times.append(now)
        if len(self._keys) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand the rows on; values that a filter refuses end its use."""
        if not self._keys or self.why_not is not None:
            return
        try:
            if self._filter is None:
                self._filter = _made(self.name[0], self.longest)
            if self.name[0] is Count:
                self._filter.insert_many(self._keys, self._times)
            else:
                self._filter.insert_many(self._keys, self._values, self._times)
        except WindrowError as error:
            self.why_not, self._filter = str(error), None
        self._keys, self._values, self._times = [], [], []

    def keys(self, now: int, length: int, sign: str, number: float) -> list[Any] | None:
        """A superset of the keys that pass, or None where the filter cannot tell."""
        self.flush()
        if self.why_not is not None or length > self.longest:
            return None
        if self._filter is None:
            return []
        bound: Any = {"at_least" if sign[0] == ">" else "at_most": number}
        return list(self._filter.candidates(now, length, **bound))


def _made(kind: type[Aggregate], longest: int) -> "Filter":
    from windrow import filters

    made = {Count: filters.CiCount, Sum: filters.CiSum, Max: filters.CiMax, Min: filters.CiMin}
    found: Filter = made[kind](longest)
    return found


class Candidates:
    """The filters in use."""

    def __init__(self) -> None:
        self._kept: dict[Name, Kept] = {}
        self._queries = 0

    def insert(
        self, queries: list[Query], key: Any, row: Mapping[str, Any], now: int | None, line: Line
    ) -> None:
        """A row, for every filter."""
        if now is None:
            return
        if len(queries) > self._queries:
            self._look_at(queries, line)
        for kept in self._kept.values():
            kept.insert(key, row, now)

    def _look_at(self, queries: list[Query], line: Line) -> None:
        new = queries[self._queries :]
        self._queries = len(queries)
        known = set(self._kept)
        for query in new:
            if not _applies(query):
                continue
            assert isinstance(query.window, Time)
            length = line.length(query.window.length)
            name = (type(query.aggregate), query.aggregate.columns)
            if name not in self._kept:
                self._kept[name] = Kept(name, length)
            elif name not in known:  # nothing was kept yet
                self._kept[name].longest = max(self._kept[name].longest, length)

    def keys(
        self, query: Query, sign: str, number: float, now: int | None, line: Line
    ) -> list[Any] | None:
        """A superset of the keys whose value passes, or None: ask them all."""
        kept = self._kept.get((type(query.aggregate), query.aggregate.columns))
        if kept is None or now is None or not _applies(query):
            return None
        if sign[0] not in _SIGNS[type(query.aggregate)]:
            return None
        assert isinstance(query.window, Time)
        return kept.keys(now, line.length(query.window.length), sign, number)

    def why(self, query: Query) -> str:
        """How the keys for a new rule about this are found."""
        kept = self._kept.get((type(query.aggregate), query.aggregate.columns))
        if not _applies(query):
            return "a new rule asks every key (filters are for suffix windows of time)"
        if kept is not None and kept.why_not is not None:
            return f"a new rule asks every key ({kept.why_not})"
        return "a new rule asks a filter for the keys that may pass"


def _applies(query: Query) -> bool:
    window, aggregate = query.window, query.aggregate
    return (
        type(aggregate) in _SIGNS
        and aggregate.nan == "value"
        and isinstance(window, Time)
        and not window.ending
        and window.closed == "right"
    )
