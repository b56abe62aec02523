"""The keys that a new rule may fire for, found by filters instead of asking every key.

There is a filter for Count, Sum of what is never negative, Max and Min over a window of time that
ends now. It is made when a rule about such a window is first added to rows that are there, from
what the hub keeps of them; later rows are handed on in batches.
"""

from collections.abc import Mapping
from typing import Any

from windrow.aggregates import EMPTY, Aggregate, Count, Max, Min, Sum
from windrow.errors import WindrowError
from windrow.rules.key_state import NO_KEY
from windrow.shared import Hub, Query
from windrow.slides import Time
from windrow.times import is_missing

_BATCH = 8192
_SIGNS: dict[type[Aggregate], str] = {Count: ">", Sum: ">", Max: "<>", Min: "<>"}
"""What a filter can tell: a key without rows counts 0, which only every key could tell."""

Name = tuple[type[Aggregate], tuple[str, ...]]


class Kept:
    """A filter of one aggregate and column, and the rows that it was not given yet."""

    def __init__(self, name: Name, longest: int) -> None:
        self.kind, self.columns = name
        self.longest = longest
        self.why_not: str | None = None
        self._filter = _made(self.kind, longest)
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._times: list[int] = []

    def take_over(self, hub: Hub, query: Query) -> None:
        """The rows that a hub has."""
        rows = []
        for key in hub.keys:
            if key == NO_KEY:
                continue
            stream = hub.substream(key)
            assert stream is not None
            line, held = stream.line, stream.held[query.names[0]]
            for number in range(max(line.first, held.start), line.end):
                partial = held.structure.row(number)
                if partial is not EMPTY:
                    rows.append((line.time(number), key, query.aggregate.answer(partial)))
        rows.sort(key=lambda row: row[0])
        self._times = [time for time, _, _ in rows]
        self._keys = [key for _, key, _ in rows]
        self._values = [value for _, _, value in rows]
        self.flush()

    def insert(self, key: Any, row: Mapping[str, Any], now: int) -> None:
        """A row, for the next batch."""
        value = row.get(self.columns[0]) if self.columns else None
        if self.why_not is not None or (self.columns and is_missing(value)):
            return
        self._keys.append(key)
        self._values.append(value)
        self._times.append(now)
        if len(self._keys) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand the rows on; values that a filter refuses end its use."""
        if not self._keys:
            return
        try:
            columns = () if self.kind is Count else (self._values,)
            self._filter.insert_many(self._keys, *columns, self._times)
        except WindrowError as error:
            self.why_not = str(error)
        self._keys, self._values, self._times = [], [], []

    def keys(self, now: int, length: int, sign: str, number: float) -> list[Any] | None:
        """A superset of the keys that pass, or None where the filter cannot tell."""
        self.flush()
        if self.why_not is not None:
            return None
        bound: Any = {"at_least" if sign[0] == ">" else "at_most": number}
        return list(self._filter.candidates(now, length, **bound))


def _made(kind: type[Aggregate], longest: int) -> Any:
    from windrow.filters import CiCount, CiMax, CiMin, CiSum

    made: dict[type[Aggregate], Any] = {Count: CiCount, Sum: CiSum, Max: CiMax, Min: CiMin}
    return made[kind](longest)


class Candidates:
    """The filters in use."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._kept: dict[Name, Kept] = {}

    def insert(self, key: Any, row: Mapping[str, Any], now: int | None) -> None:
        """A row, for every filter."""
        for kept in self._kept.values():
            assert now is not None
            kept.insert(key, row, now)

    def keys(self, query: Query, sign: str, number: float) -> list[Any] | None:
        """A superset of the keys whose value passes, or None: ask them all."""
        now = self._hub.now_ticks
        if now is None or not _applies(query) or sign[0] not in _SIGNS[type(query.aggregate)]:
            return None
        assert isinstance(query.window, Time)
        length = self._hub.clock.length(query.window.length)
        name = (type(query.aggregate), query.aggregate.columns)
        kept = self._kept.get(name)
        if kept is None or kept.longest < length:
            kept = self._kept[name] = Kept(name, length)
            kept.take_over(self._hub, query)
        return kept.keys(now, length, sign, number)

    def why(self, query: Query) -> str:
        """How the keys for a new rule about this are found."""
        if not _applies(query):
            return "a new rule asks every key (filters: Count, Sum, Max, Min of suffixes in time)"
        kept = self._kept.get((type(query.aggregate), query.aggregate.columns))
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
