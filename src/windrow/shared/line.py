"""Which rows a window holds: rows are numbered from 0 as they come, and may have times."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from windrow.errors import BadSpecification, BadValue, OutOfOrder, Refused, WindrowError
from windrow.slides import Bounds, Kept, Rows, Time, as_window
from windrow.times import Clock, Duration, clock_of, is_missing

Window = Rows | Time


def as_suffix_or_historical(window: Any) -> Window:
    """A window of rows or time that ends now or before; others are refused."""
    found = as_window(window)
    if isinstance(found, Bounds | Kept) or found.after:
        raise Refused(
            f"{found.label}: shared windows end now, or some rows or time ago (ending=); this one "
            "looks at later rows, or its length is not fixed. Use Rolling, or Sliding"
        )
    return found


@dataclass(frozen=True)
class Reach:
    """How far back rows may still be asked for; None on both sides keeps them all."""

    rows: int | None = None
    times: tuple[tuple[Duration | int, Duration | int], ...] = ()

    @staticmethod
    def of(longest: Any) -> "Reach":
        """From a number of rows, a window, or several windows."""
        if longest is None:
            return Reach()
        if isinstance(longest, int) and not isinstance(longest, bool):
            if longest < 1:
                raise BadSpecification(f"longest= is a number of rows from 1 on, not {longest}")
            return Reach(longest)
        several = isinstance(longest, Iterable) and not isinstance(longest, str)
        windows = [as_suffix_or_historical(w) for w in (longest if several else [longest])]
        rows = [w.n + w.ending for w in windows if isinstance(w, Rows)]
        times = tuple((w.length, w.ending) for w in windows if isinstance(w, Time))
        return Reach(max(rows, default=None), times)

    @property
    def everything(self) -> bool:
        """Whether no row is ever let go."""
        return self.rows is None and not self.times


class Line:
    """The rows of one stream by number and, where they have them, by time."""

    def __init__(self, unit: str | None = None) -> None:
        self.first = 0
        self.end = 0
        self.clock: Clock | None = None
        self.example: Any = None
        self.newest = 0
        """The time of the newest row, in ticks."""
        self._unit = unit
        self._times: list[int] = []  # of the rows from _base on
        self._base = 0
        self._gone: int | None = None  # the time of the youngest row let go
        self._aged = 0
        self._lengths: dict[Any, int] = {}

    def admit(self, at: Any) -> int | None:
        """A row's time in ticks, checked; nothing is changed but the clock that it sets."""
        if at is None:
            if self.clock is not None:
                raise BadSpecification("the rows before had times: insert(value, at=...)")
            return None
        if self.clock is None:
            if self.end:
                raise BadSpecification(
                    "rows came without a time before: all with times or all without"
                )
            clock = clock_of(at, self._unit)
        else:
            clock = self.clock
        ticks = self._ticks(clock, at)
        if self.clock is None:
            self.clock, self.example = clock, at
        if self.end and ticks < self.newest:
            raise OutOfOrder(
                f"time {at!r} is before {clock.from_ticks(self.newest)!r}, which came already: "
                "sort the rows by time"
            )
        return ticks

    @staticmethod
    def _ticks(clock: Clock, at: Any) -> int:
        if is_missing(at):
            raise BadValue("the row has no time: give every row one, or leave the row out")
        try:
            return clock.to_ticks(at)
        except WindrowError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadValue(
                f"{at!r} ({type(at).__name__}) is not a time like the ones before, which were "
                f"{clock.kind}"
            ) from error

    def now(self, at: Any) -> int | None:
        """A moment in ticks; by default that of the newest row."""
        if at is None or self.clock is None:
            return self.newest if self.clock is not None and self.end else None
        ticks = self._ticks(self.clock, at)
        if self.end and ticks < self.newest:
            raise OutOfOrder(f"now={at!r} is before the newest row's time: rows cannot be unseen")
        return ticks

    def append(self, ticks: int | None) -> None:
        """The next row."""
        self.end += 1
        if ticks is not None:
            self.newest = ticks
            self._times.append(ticks)

    def time(self, number: int) -> int:
        """A row's time."""
        return self._times[number - self._base]

    def times(self) -> list[int]:
        """The times of the rows that are there; none where they have none."""
        return self._times[self.first - self._base :] if self.clock is not None else []

    def trim(self, reach: Reach) -> int:
        """Let go of the rows that no window can reach any more, and say which is the first left."""
        if reach.everything:
            return self.first
        limit = self.end
        if reach.rows is not None:
            limit = min(limit, self.end - reach.rows)
        if reach.times:
            if self.clock is None:
                raise BadSpecification("longest= is about time: insert(value, at=...)")
            ticks = max(self.length(a) + self.length(b) for a, b in reach.times)
            oldest, times, base = self.newest - ticks, self._times, self._base
            while times[self._aged - base] < oldest:
                self._aged += 1
            limit = min(limit, self._aged)
        self.forget(limit)
        return self.first

    def restore(self, first: int, example: Any, times: Sequence[int], rows: int) -> None:
        """Take over rows that were kept elsewhere."""
        if (example is None) != (not times) or (times and len(times) != rows):
            raise BadValue(f"{len(times)} times of {rows} rows")
        if any(a > b for a, b in pairwise(times)):
            raise OutOfOrder("the times go back")
        self.first = self._base = self._aged = first
        self.end = first + rows
        if times:
            self.clock, self.example = clock_of(example, self._unit), example
            self._times = list(times)
            self.newest = times[-1]

    def forget(self, limit: int) -> None:
        """Let go of the rows with smaller numbers."""
        if limit <= self.first:
            return
        if self.clock is not None:
            self._gone = self._times[limit - 1 - self._base]
            if limit - self._base > max(64, self.end - limit):  # more dead than alive
                del self._times[: limit - self._base]
                self._base = limit
        self.first = limit
        self._aged = max(self._aged, limit)

    def length(self, length: Duration | int) -> int:
        """A length of time in ticks."""
        if not length:
            return 0
        found = self._lengths.get(length)
        if found is None:
            assert self.clock is not None
            found = self._lengths[length] = self.clock.length(length, "the window")
        return found

    def span(self, window: Window, now: int | None) -> tuple[int, int]:
        """The rows of a window as of ``now``: from the first of them to before the second."""
        left, right, missed = self.span_of_those_left(window, now)
        if missed:
            raise Refused(
                f"window {window.label!r} reaches back to rows that were let go: they are kept as "
                "far back as longest= says"
            )
        return left, right

    def span_of_those_left(self, window: Window, now: int | None) -> tuple[int, int, bool]:
        """The rows of a window that are still there, and whether others would have been in it."""
        if not self.end:
            return 0, 0, False
        if isinstance(window, Rows):
            right = max(self.end - window.ending, 0)
            left = max(right - window.n, 0)
            if window.within is not None:
                self._need_times(window)
                assert now is not None
                left = max(left, self._after(now - self.length(window.within), False))
            missed = left < self.first and left < right
            left = max(left, self.first)
            return left, max(left, right), missed
        self._need_times(window)
        assert now is not None
        end = now - self.length(window.ending)
        start = end - self.length(window.length)
        left, right = self._after(start, window.includes_start), self._until(end, window)
        gone = self._gone
        missed = gone is not None and (gone > start or (gone == start and window.includes_start))
        return left, max(left, right), missed

    def _need_times(self, window: Window) -> None:
        if self.clock is None and self.end:
            raise BadSpecification(
                f"window {window.label!r} is about time, and the rows came without: "
                "insert(value, at=...)"
            )

    def _after(self, start: int, included: bool) -> int:
        find = bisect_left if included else bisect_right
        return find(self._times, start, self.first - self._base) + self._base

    def _until(self, end: int, window: Time) -> int:
        find = bisect_right if window.includes_end else bisect_left
        return find(self._times, end, self.first - self._base) + self._base
