"""The values of one key at one moment, each looked up once; and when they change next."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from windrow.aggregates import Aggregate, canonical
from windrow.shared import Hub, Query
from windrow.shared.line import Extent, Window
from windrow.shared.parts import Assemble
from windrow.shared.substream import PartKey, Substream
from windrow.times import is_missing

_UNKNOWN: Any = object()


class Feature(NamedTuple):
    """A windowed aggregate: where its window stands in the list, and what its answer is made of."""

    window: int
    parts: tuple[PartKey, ...]
    aggregate: Aggregate
    assemble: Assemble


class Features:
    """The windowed aggregates that rules are about, and their distinct windows."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.queries: dict[int, Query] = {}
        self.features: dict[int, Feature] = {}
        self.windows: dict[Window, int] = {}
        self._extents: list[Extent] = []
        self._next = 0

    def add(self, query: Query) -> int:
        """One more; its number is its own for ever."""
        number, self._next = self._next, self._next + 1
        self.queries[number] = query
        self._place(number, query)
        return number

    def drop(self, number: int) -> None:
        """One less."""
        query = self.queries.pop(number)
        self.hub.drop(query)
        del self.features[number]
        if all(other.window != query.window for other in self.queries.values()):
            self.windows, self._extents = {}, []
            for one, other in self.queries.items():
                self._place(one, other)

    def _place(self, number: int, query: Query) -> None:
        place = self.windows.setdefault(query.window, len(self.windows))
        self.features[number] = Feature(place, query.names, query.aggregate, query.assemble)

    def extents(self) -> list[Extent]:
        """The windows as the rows count, which are there."""
        if len(self._extents) < len(self.windows):
            self._extents = [self.hub.extent(window) for window in self.windows]
        return self._extents


class Instant:
    """A key at a moment."""

    __slots__ = ("_features", "_now", "_row", "_spans", "_stream", "_values")

    def __init__(
        self, features: Features, stream: Substream | None, now: int | None, row: Mapping[str, Any]
    ) -> None:
        self._features, self._stream, self._now, self._row = features, stream, now, row
        self._values: dict[int, Any] = {}
        self._spans: list[tuple[int, int]] = []
        if stream is not None:
            span = stream.line.span
            self._spans = [span(extent, now) for extent in features.extents()]

    def feature(self, number: int) -> Any:
        """A windowed aggregate's value now."""
        value = self._values.get(number, _UNKNOWN)
        if value is not _UNKNOWN:
            return value
        window, parts, aggregate, assemble = self._features.features[number]
        stream = self._stream
        if stream is None:
            value = aggregate.empty
        else:
            left, right = self._spans[window]
            if len(parts) == 1:
                value = stream.answer(parts[0], aggregate, left, right)
            else:
                value = aggregate.answer(assemble(stream.totals(parts, left, right)))
        self._values[number] = value
        return value

    def column(self, name: str) -> Any:
        """A value of the key's last row; missing where it has no such column."""
        value = self._row.get(name)
        return None if is_missing(value) else canonical(value)

    def next_change(self) -> int | None:
        """The next moment when a row leaves or enters one of the windows."""
        if self._stream is None or self._now is None:
            return None
        line = self._stream.line
        due: int | None = None
        for extent, (left, right) in zip(self._features.extents(), self._spans, strict=True):
            if extent.length is None:
                continue
            timed = extent.rows is None
            if left < right:
                window = extent.window
                both = timed and window.includes_start  # type: ignore[union-attr]
                moment = line.time(left) + extent.length + (extent.ending if timed else 0) + both
                if due is None or moment < due:
                    due = moment
            if timed and right < line.end:
                inside = extent.window.includes_end  # type: ignore[union-attr]
                moment = line.time(right) + extent.ending + (not inside)
                if due is None or moment < due:
                    due = moment
        return due
