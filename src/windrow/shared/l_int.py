"""L-INT, landmark intervals: any window of a known width from two stored partials, one ⊕.

For windows between ``least`` and ``most`` wide, time (or the row's number) is cut into cells that
are ``least`` wide, and the first row of each cell is a landmark. Kept are, for every landmark, the
aggregates that end just before it and reach back into the cell before, and those that begin at it
and reach ``most`` forward. A window holds a landmark, since it is at least a cell wide: what comes
before the first one in it is one stored aggregate, the rest another.

Widths that differ by more than a factor of two get classes of their own. A class whose windows all
end now needs no more than the running aggregate of each landmark, and only of those that its
windows still reach: the suffix form.

Needs: associativity, and the windows' widths.
Update: 3 applications of ⊕ amortised for each class (2 in the suffix form's last landmarks, and 1
for the aggregates that end before a landmark, made when it comes).
Lookup: 1 application.
Space: at most 5·N partials for N rows and one class; suffix classes 2 to 4 times their widest
window, so that all of them together take O(N).
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.1.2, which keeps longer aggregates before the landmarks, and has only numbers, not times.
"""

from collections.abc import Iterable
from typing import Any

from windrow.aggregates import Aggregate, Partial
from windrow.errors import BadSpecification, InvariantBroken, Refused
from windrow.shared.base import Card, Shared
from windrow.shared.line import Line, Window, as_suffix_or_historical
from windrow.shared.ring import Ring
from windrow.slides import Rows, Time
from windrow.times import Duration

SPREAD = 2
"""Widths within this factor share a class."""


class Landmark:
    """A row, with the aggregates that end before it and those that begin with it."""

    __slots__ = ("after", "axis", "before", "current", "number")

    def __init__(self, number: int, axis: int, before: list[Partial], first: Partial) -> None:
        self.number = number
        self.axis = axis
        self.before = before  # before[i] is of the i + 1 rows in front of it
        self.after: list[Partial] | None = [first]  # after[i] is of it and i rows more
        self.current: Partial = first


class WidthClass:
    """Windows whose widths are within a factor of two."""

    def __init__(self, windows: list[Window]) -> None:
        self.windows = windows
        self.timed = isinstance(windows[0], Time)
        self.suffix = all(not window.ending and _includes_end(window) for window in windows)
        self.least = 0
        self.span = 0

    def begin(self, line: Line, number: int) -> None:
        """No rows; the next one has this number."""
        self._line = line
        self._cell: int | None = None
        self.landmarks = Ring()
        self._tail: tuple[int, list[Partial]] = (-1, [])
        self._number = number
        self.least = 0

    def _settle(self) -> None:
        """The widths in ticks, now that there is a clock."""
        widths = [self._line.length(w.length) if isinstance(w, Time) else w.n for w in self.windows]
        self.least = min(widths)
        self.span = max(widths) + (1 if self.timed else 0)

    def plan(self, merge: Any, rows: Ring, partial: Partial, ticks: int | None) -> Any:
        """What the next row changes: computed first, so that an error changes nothing."""
        number = rows.end
        if not self.least:
            if self.timed and ticks is None:
                raise BadSpecification("windows of time need times: insert(value, at=...)")
            self._settle()
        axis = ticks if self.timed else number
        assert axis is not None
        cell = axis // self.least
        before = None
        if cell != self._cell:
            before = self._ends_before(merge, rows, number)
        grown = []
        landmarks = self.landmarks
        for place in range(landmarks.end - 1, landmarks.first - 1, -1):
            landmark = landmarks[place]
            if axis - landmark.axis >= self.span:
                break
            grown.append((landmark, merge(landmark.current, partial)))
        return number, axis, cell, before, grown, partial

    def commit(self, planned: Any) -> None:
        """The change that ``plan`` found."""
        number, axis, cell, before, grown, partial = planned
        for landmark, total in grown:
            landmark.current = total
            if not self.suffix:
                landmark.after.append(total)
        if before is not None:
            landmark = Landmark(number, axis, before, partial)
            if self.suffix:
                landmark.after = None
            self.landmarks.append(landmark)
            self._cell = cell
        if self.suffix:
            landmarks = self.landmarks
            while axis - landmarks[landmarks.first].axis >= self.span:
                landmarks.forget(landmarks.first + 1)
        self._number = number + 1

    def _ends_before(self, merge: Any, rows: Ring, number: int) -> list[Partial]:
        """The aggregates that end before a row and reach back to the last landmark."""
        known, tail = self._tail
        if known == number:
            return tail
        landmarks = self.landmarks
        start = landmarks[landmarks.end - 1].number if landmarks else number
        start = max(start + 1, rows.first)  # from the landmark itself on, it has its own
        out: list[Partial] = []
        for place in range(number - 1, start - 1, -1):
            out.append(merge(rows[place], out[-1]) if out else rows[place])
        return out

    def forget(self, limit: int) -> None:
        """Landmarks before the first row that is left help no window."""
        landmarks = self.landmarks
        while landmarks and landmarks[landmarks.first].number < limit:
            if landmarks.end - landmarks.first == 1:
                break  # the open cell's: where the next aggregates before a landmark begin
            landmarks.forget(landmarks.first + 1)

    def total(self, merge: Any, rows: Ring, left: int, right: int) -> tuple[Partial] | None:
        """The partial of a run of rows, or None where this class cannot tell."""
        landmark = self._first_from(left)
        if landmark is None or landmark.number > right:
            if landmark is None and right == self._number - 1:
                self._tail = (self._number, self._ends_before(merge, rows, self._number))
                before = self._tail[1]
            elif landmark is not None and landmark.number == right + 1:
                before = landmark.before
            else:
                return None
            width = right - left
            return (before[width],) if width < len(before) else None
        after = self._after(landmark, right)
        if after is None or landmark.number == left:
            return after
        width = landmark.number - left
        if width > len(landmark.before):
            return None
        return (merge(landmark.before[width - 1], after[0]),)

    def _first_from(self, left: int) -> Landmark | None:
        landmarks = self.landmarks
        low, high = landmarks.first, landmarks.end
        while low < high:
            middle = (low + high) >> 1
            if landmarks[middle].number < left:
                low = middle + 1
            else:
                high = middle
        found: Landmark | None = landmarks[low] if low < landmarks.end else None
        return found

    def _after(self, landmark: Landmark, right: int) -> tuple[Partial] | None:
        length = right - landmark.number
        if landmark.after is None:
            return (landmark.current,) if right == self._number - 1 else None
        return (landmark.after[length],) if length < len(landmark.after) else None

    def stored(self) -> int:
        """Partials kept, besides the rows."""
        found = [self.landmarks[n] for n in range(self.landmarks.first, self.landmarks.end)]
        return sum(len(x.before) + (1 if x.after is None else len(x.after)) for x in found)


def _includes_end(window: Window) -> bool:
    return not isinstance(window, Time) or window.includes_end


def _width(window: Window) -> int:
    if isinstance(window, Rows):
        return window.n
    length = window.length
    return length.nanoseconds if isinstance(length, Duration) else length


def width_classes(windows: Iterable[Window]) -> list[list[Window]]:
    """Windows in classes: rows apart from time, and none twice as wide as the narrowest."""
    classes: list[list[Window]] = []
    for window in sorted(windows, key=lambda w: (w.kind, _width(w))):
        last = classes[-1] if classes else None
        if last and last[0].kind == window.kind and _width(window) <= SPREAD * _width(last[0]):
            last.append(window)
        else:
            classes.append([window])
    return classes


class LInt(Shared):
    """Landmark intervals for windows whose widths are known.

    >>> import windrow as wr
    >>> shared = LInt(wr.Max(), [wr.rows(2), wr.rows(3, ending=1)])
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.query(wr.rows(2)), shared.query(wr.rows(3, ending=1)), shared.lookup(2, 4)
    (5, 4, 5)
    """

    card = Card(
        title="L-INT",
        needs="associativity, and widths known",
        update="4 amortised for each class of widths, W at most",
        lookup="1",
        partials="5·N for one class of widths; O(N) for all where windows end now",
    )

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        windows: Any,
        longest: Any = None,
        *,
        unit: str | None = None,
        line: Line | None = None,
    ) -> None:
        listed = windows if isinstance(windows, Iterable) and not isinstance(windows, str) else None
        found = [as_suffix_or_historical(w) for w in ([windows] if listed is None else listed)]
        if not found:
            raise BadSpecification("LInt needs the windows that will be asked for")
        for window in found:
            if isinstance(window, Rows) and window.within is not None:
                raise Refused(f"{window.label}: with within= a window has no width. Use BInt")
        self.classes = [WidthClass(group) for group in width_classes(found)]
        super().__init__(aggregate, found if longest is None else longest, unit=unit, line=line)

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        self._rows = Ring()
        self._rows.start(number)
        for group in self.classes:
            group.begin(self.line, number)

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Carry on the aggregates of the landmarks that the row's windows can hold."""
        merge, rows = self._merge, self._rows
        planned = [group.plan(merge, rows, partial, ticks) for group in self.classes]
        rows.append(partial)
        for group, change in zip(self.classes, planned, strict=True):
            group.commit(change)

    def forget(self, limit: int) -> None:
        """Rows and landmarks before this row."""
        self._rows.forget(limit)
        for group in self.classes:
            group.forget(limit)

    def row(self, number: int) -> Partial:
        """One row's own partial."""
        return self._rows[number]

    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``, both included."""
        for group in self.classes:
            found = group.total(self._merge, self._rows, left, right)
            if found is not None:
                return found[0]
        widths = ", ".join(window.label for group in self.classes for window in group.windows)
        raise Refused(
            f"rows {left} to {right} are no window that LInt was made for ({widths}). Use BInt"
        )

    def stored_partials(self) -> int:
        """Rows, and the aggregates before and after every landmark."""
        return len(self._rows) + sum(group.stored() for group in self.classes)

    def check_invariants(self) -> None:
        """Every aggregate at a landmark is its rows' aggregate."""
        first = self._rows.first
        for group in self.classes:
            for place in range(group.landmarks.first, group.landmarks.end):
                landmark = group.landmarks[place]
                number = landmark.number
                for i, found in enumerate(landmark.before):
                    if number - 1 - i >= first:
                        rows = range(number - 1 - i, number)
                        self._require(found, rows, f"{i + 1} rows before {number}")
                for i, found in enumerate(landmark.after or []):
                    if number >= first:
                        rows = range(number, number + i + 1)
                        self._require(found, rows, f"{i + 1} rows from {number}")
            numbers = [group.landmarks[n].number for n in range(*_ends(group.landmarks))]
            if numbers != sorted(set(numbers)):
                raise InvariantBroken(f"LInt: landmarks {numbers} are out of order")


def _ends(ring: Ring) -> tuple[int, int]:
    return ring.first, ring.end
