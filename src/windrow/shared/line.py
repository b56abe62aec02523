"""Which rows a window holds: rows are numbered from 0 as they come, and may have times."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from windrow.errors import BadSpecification, BadValue, OutOfOrder, Refused
from windrow.slides import Bounds, Kept, Rows, Session, Time, as_window
from windrow.times import EVER, Clock, Duration, clock_of, is_missing

Window = Rows | Time


def as_suffix_or_historical(window: Any) -> Window:
    """A window of rows or time that ends now or before; others are refused."""
    found = as_window(window)
    if isinstance(found, Bounds | Kept | Session) or found.after:
        raise Refused(
            f"{found.label}: shared windows end now, or some rows or time ago (ending=); this one "
            "looks at later rows, or its length is not fixed. Use Rolling, or Sliding"
        )
    if EVER in (getattr(found, "length", None), getattr(found, "within", None)):
        raise Refused(
            f"{found.label}: shared windows keep the rows of the longest, and of this one that "
            "would be all, for ever. Use Sliding or Rolling, which keep one total"
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

    def ticks(self, line: "Line") -> int | None:
        """The reach in time as a line counts it."""
        if not self.times:
            return None
        if line.clock is None:
            raise BadSpecification("longest= is about time: insert(value, at=...)")
        return max(line.length(length) + line.length(ending) for length, ending in self.times)


class Extent(NamedTuple):
    """A window as a line counts it: rows, or ticks, with how to find its ends among the times."""

    window: Window
    rows: int | None
    ending: int
    length: int | None
    after: Callable[[list[int], int, int], int]
    until: Callable[[list[int], int, int], int]


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
        self.lost = False
        """Whether rows may have come before number 0 that were not kept."""
        self.gone: int | None = None
        """The time of the youngest row let go, or not kept."""
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
        return clock.ticks(at)

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

    def trim(self, rows: int | None, ticks: int | None) -> int:
        """Let go of what is further back than so many rows and so much time; the first row left."""
        limit = self.end if rows is None else self.end - rows
        if ticks is not None:
            oldest, times, base = self.newest - ticks, self._times, self._base
            while times[self._aged - base] < oldest:
                self._aged += 1
            limit = min(limit, self._aged)
        if limit > self.first:
            self.forget(limit)
        return self.first

    def undecide(self) -> None:
        """A row that is refused does not say whether rows have times, and of which kind."""
        if not self.end:
            self.clock = self.example = None

    def restore(
        self, first: int, example: Any, times: Sequence[int], rows: int, newest: int | None = None
    ) -> None:
        """Take over rows that were kept elsewhere; ``newest`` is known where none is left."""
        if len(times) != (0 if example is None else rows):
            raise BadValue(f"{len(times)} times of {rows} rows")
        if any(a > b for a, b in pairwise(times)):
            raise OutOfOrder("the times go back")
        self.first = self._base = self._aged = first
        self.end = first + rows
        if example is not None:
            self.clock, self.example = clock_of(example, self._unit), example
            self._times = list(times)
            known = self.clock.ticks(example) if newest is None else newest
            self.newest = times[-1] if times else known

    def forget(self, limit: int) -> None:
        """Let go of the rows with smaller numbers."""
        if limit <= self.first:
            return
        if self.clock is not None:
            self.gone = self._times[limit - 1 - self._base]
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

    def extent(self, window: Window) -> Extent:
        """A window as this line counts."""
        if window.needs_time and self.clock is None:
            raise BadSpecification(
                f"window {window.label!r} is about time, and the rows came without: "
                "insert(value, at=...)"
            )
        if isinstance(window, Rows):
            within = None if window.within is None else self.length(window.within)
            return Extent(window, window.n, window.ending, within, bisect_right, bisect_right)
        return Extent(
            window,
            None,
            self.length(window.ending),
            self.length(window.length),
            bisect_left if window.includes_start else bisect_right,
            bisect_right if window.includes_end else bisect_left,
        )

    def span(self, extent: Extent, now: int | None) -> tuple[int, int]:
        """The rows of a window that are still there: the first, and the first behind them."""
        first = self.first
        if extent.rows is not None:
            right = self.end - extent.ending
            left = right - extent.rows
            if extent.length is not None and now is not None:
                place = bisect_right(self._times, now - extent.length, first - self._base)
                left = max(left, place + self._base)
            left = max(left, first)
            return left, right if right > left else left
        if now is None:
            return first, first
        base, times, end = self._base, self._times, now - extent.ending
        left = extent.after(times, end - extent.length, first - base) + base  # type: ignore[operator]
        right = extent.until(times, end, first - base) + base
        return left, right if right > left else left

    def misses(self, extent: Extent, now: int | None) -> bool:
        """Whether rows that were let go would have been in the window."""
        if extent.rows is not None:
            right = self.end - extent.ending
            left = right - extent.rows
            old = extent.length is not None and self._older(extent, now)
            reaches = max(left, 0) < min(self.first, right) or (self.lost and left < 0)
            return reaches and not old
        return self.gone is not None and not self._older(extent, now)

    def _older(self, extent: Extent, now: int | None) -> bool:
        """Whether all that was let go is older than the window."""
        if self.gone is None or now is None:
            return True
        start = now - (0 if extent.rows is not None else extent.ending) - (extent.length or 0)
        return self.gone < start or (self.gone == start and extent.after is bisect_right)
