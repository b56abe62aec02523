"""What the two monoid tree aggregators share: numbered levels, searches, bulk eviction.

A search never looks at single rows of a long stretch: it takes whole elements while they may go,
larger and larger ones, and then smaller and smaller ones to find the border. Evicting k rows at
once costs O(log k) combines to find the border from the old end (``evict_while``), or O(log n) to
find it from the young end (``evict_until``), and then no more than O(log n) to drop them.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Runs, Window
from windrow.windows.levels import BITS, MASK, Levels

Leaves = Callable[[Partial, Partial], bool]
"""Of the total and the oldest rows' partial: whether those rows must leave."""
Fits = Callable[[Partial], bool]
"""Of a window's partial: whether it may stay as it is."""


class MonoidTree(Window):
    """A window that can evict any number of rows, and look for how many, in O(log n) combines."""

    __slots__ = ("_end", "_first", "_levels")

    def _reset(self) -> None:
        self._levels = Levels()
        self._first = self._end = 0

    def __len__(self) -> int:
        return self._end - self._first

    @abstractmethod
    def _count(self, level: int) -> int:
        """How many elements of a level are complete: those before this number."""

    @abstractmethod
    def _advance(self, first: int) -> None:
        """Evict the rows before a number, not all of them; raises before it changes anything."""

    def _parts(self) -> list[tuple[int, int]]:
        """Complete elements, as few as there can be, that make up the window; oldest first."""
        count, end = self._count, self._end
        parts = []
        row, level = self._first, 0
        while row < end:
            while not row >> level & 1 and row >> level + 1 < count(level + 1):
                level += 1
            while row >> level >= count(level):
                level -= 1
            parts.append((level, row >> level))
            row += 1 << level
        return parts

    # --- rows leave -----------------------------------------------------------------------------

    def evict(self) -> None:
        """Remove the oldest row."""
        if self._first == self._end:
            raise self._empty()
        self._evict_before(self._first + 1)
        if not self._first & MASK:
            self._levels.sweep(self._first)

    def bulk_evict(self, n: int) -> None:
        """Remove the ``n`` oldest rows, in O(log n) combines."""
        self._check_bulk(n)
        if n:
            before = self._first
            self._evict_before(before + n)
            if before >> BITS != self._first >> BITS:
                self._levels.sweep(self._first, 1)  # the rest with later operations

    def _evict_before(self, first: int) -> None:
        if first == self._end:
            self._empty_out()
        else:
            self._advance(first)
        self._answer = STALE

    @abstractmethod
    def _empty_out(self) -> None:
        """Evict all rows."""

    def enforce(self, policy: Callable[[Any, Any], bool]) -> int:
        """Remove the longest run of oldest rows that must leave, and say how many they were.

        ``policy(total, oldest)`` is told the answer over the whole window and the answer over some
        of its oldest rows, and says whether these rows must leave. It must be monotone: true for
        some oldest rows, it is true for fewer of them.

        >>> import windrow as wr
        >>> window = wr.windows.Amta(wr.Max())
        >>> for time in (1, 2, 3, 4, 8): window.insert(time)
        >>> window.enforce(lambda newest, old: newest - old >= 4), len(window)
        (4, 1)
        """
        answer = self.aggregate.answer
        return self.evict_while(lambda total, oldest: policy(answer(total), answer(oldest)))

    def evict_while(self, leaves: Leaves) -> int:
        """As ``enforce``, of partials instead of answers."""
        total = self.total()
        found = self.count_while(lambda oldest: leaves(total, oldest))
        if found:
            self._evict_before(self._first + found)
        return found

    def count_while(self, leaves: Callable[[Partial], bool]) -> int:
        """How many of the oldest rows the longest run has whose partial is as asked for."""
        merge, get, count = self._merge, self._levels.get, self._count
        border, end, level = self._first, self._end, 0
        old: Partial = EMPTY
        while border < end:
            grown = merge(old, get(level, border >> level))
            if not leaves(grown):
                break
            old = grown
            border += 1 << level
            if not border >> level & 1:
                level += 1
            while level and border >> level >= count(level):
                level -= 1
        else:
            return end - self._first
        while level:  # the border is inside this element
            level -= 1
            grown = merge(old, get(level, border >> level))
            if leaves(grown):
                old = grown
                border += 1 << level
        return border - self._first

    def evict_until(self, predicate: Callable[[Any], bool]) -> int:
        """Remove oldest rows until the answer over the others is as wished; say how many they were.

        ``predicate(answer)`` must be monotone: true for a window, it is true for every shorter one.
        A window without values satisfies it without being asked.

        >>> import windrow as wr
        >>> window = wr.windows.Amta(wr.Sum())
        >>> for value in (2, 2, 3, 3, 4): window.insert(value)
        >>> window.evict_until(lambda total: total <= 10), window.query()
        (2, 10)
        """
        answer = self.aggregate.answer
        return self.keep_longest(lambda partial: partial is EMPTY or predicate(answer(partial)))

    def keep_longest(self, fits: Fits) -> int:
        """As ``evict_until``, of partials instead of answers."""
        first, end = self._first, self._end
        few = (end - first).bit_length()  # one by one while that is cheaper, as the paper does
        while self._first < end and not fits(self.total()):
            if few:
                self._evict_before(self._first + 1)
                few -= 1
            else:
                self._evict_before(self._find_fitting(fits))
                break
        return self._first - first

    def _find_fitting(self, fits: Fits) -> int:
        """The first row of the longest run of youngest rows that fits; all of them do not."""
        merge, get = self._merge, self._levels.get
        kept: Partial = EMPTY
        for level, number in reversed(self._parts()):
            grown = merge(get(level, number), kept)
            if not fits(grown):
                break
            kept = grown
        else:
            return self._first  # sums of floats, grouped in another way: they do fit
        while level:  # the border is inside this element: always its younger half first
            level -= 1
            number = 2 * number + 1
            grown = merge(get(level, number), kept)
            if fits(grown):
                kept = grown
                number -= 1
        return number + 1

    # --- for tests and the curious --------------------------------------------------------------

    def _living(self, level: int) -> range:
        return range(self._first >> level, self._count(level))

    def rows(self) -> list[Partial]:
        """The rows' partials, oldest first."""
        return [self._levels.get(0, i) for i in range(self._first, self._end)]

    @property
    def first(self) -> int:
        """The number of the oldest row; rows are numbered as they come."""
        return self._first

    @property
    def end(self) -> int:
        """The number that the next row will have."""
        return self._end

    def ends(self) -> tuple[Partial, Partial]:
        """The partials of the oldest and of the youngest row."""
        get = self._levels.get
        return get(0, self._first), get(0, self._end - 1)

    def _check_tree(self, rows: Sequence[Partial] | None) -> None:
        """Every element that stands for rows in the window only is their aggregate."""
        self._require_length(rows)
        get = self._levels.get
        for found, expected in zip(self.rows(), rows or (), strict=False):
            self._require_same(found, [expected], "a row")
        level = 1
        while level < len(self._levels.chunks):
            for i in self._living(level):
                if i << level >= self._first:
                    children = (get(level - 1, 2 * i), get(level - 1, 2 * i + 1))
                    self._require_same(get(level, i), children, f"element {i} of level {level}")
            level += 1

    def _elements(self) -> Runs:
        """All living elements, level by level; those that lost rows are EMPTY."""
        runs: list[list[Partial]] = []
        level = 0
        while not level or self._living(level):
            get = self._levels.get
            runs.append(
                [get(level, i) if i << level >= self._first else EMPTY for i in self._living(level)]
            )
            level += 1
        return runs

    def _take_elements(self, first: int, end: int, runs: Runs) -> None:
        self._first, self._end = first, end
        self._levels = Levels()
        for level, run in enumerate(runs):
            living = self._living(level)
            if len(living) != len(run):
                raise ValueError(f"level {level}: {len(run)} elements, expected {len(living)}")
            for i, partial in zip(living, run, strict=True):
                self._levels.put(level, i, partial)
