"""Log MTA, the logarithmic monoid tree aggregator: one tree, always right to its root.

A tree over numbered rows (``levels.py``). A new row changes its path to the root, the rows that
leave change the path of the oldest row that stays: every element on the two edges stands for the
rows in the window only, and the root is the answer.

Needs: associativity.
Time: insert at most log2 n, any eviction at most log2 n; query none.
Space: 2n partials and O(log n).
Paper: Villalba, Berral, Carrera, IEEE TPDS 2019, section 4.1; the base of AMTA.
"""

from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs
from windrow.windows.levels import MASK, Levels
from windrow.windows.monoid_tree import MonoidTree


class LogMta(MonoidTree):
    """A tree whose edges are kept up to date."""

    card = Card(
        title="Log MTA (logarithmic monoid tree aggregator)",
        needs="associativity",
        insert="at most log2 n",
        evict="any number of rows at once at most log2 n",
        query="0",
        partials="2n + O(log n)",
    )
    __slots__ = ()

    def _count(self, level: int) -> int:
        return self._end >> level

    def push(self, partial: Partial) -> None:
        """A new leaf, and its path to the root."""
        levels, merge, first, last = self._levels, self._merge, self._first, self._end
        top = (first ^ last).bit_length()
        below = (first ^ max(first, last - 1)).bit_length()  # where the root was
        path = [partial]
        if top > below:  # the root gets a right sibling, of this row alone
            root = self.total()
            path += [partial] * (top - 1)
            path.append(merge(root, partial))
            for level in range(below + 1, top):
                levels.put(level, first >> level, root)
        else:
            for level in range(top):
                number = last >> level
                if number & 1 and number > first >> level:
                    partial = merge(levels.get(level, number - 1), partial)
                path.append(partial)
        for level, value in enumerate(path):
            levels.put(level, last >> level, value)
        self._end = last + 1
        self._answer = STALE
        if not last & MASK:
            levels.sweep(first)

    def _advance(self, first: int) -> None:
        last = self._end - 1
        get, merge = self._levels.get, self._merge
        path = [get(0, first)]
        for level in range(1, (first ^ last).bit_length() + 1):
            head = first >> level - 1
            value = path[-1]
            if not head & 1 and head + 1 <= last >> level - 1:
                value = merge(value, get(level - 1, head + 1))
            path.append(value)
        for level, value in enumerate(path):
            self._levels.put(level, first >> level, value)
        self._first = first

    def _empty_out(self) -> None:
        self._first = self._end

    def total(self) -> Partial:
        """The root."""
        if self._first == self._end:
            return EMPTY
        top = (self._first ^ self._end - 1).bit_length()
        return self._levels.get(top, self._first >> top)

    def stored_partials(self) -> int:
        """Elements of the tree, also dead ones that were not yet freed."""
        return self._levels.stored()

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Invariants 1 and 2, and that the root is the whole window."""
        self._require(self._first <= self._end, f"first {self._first}, end {self._end}")
        self._check_tree(rows)
        if self._first < self._end:
            self._require_same(self.total(), self.rows(), "the root")

    def _edges(self) -> list[tuple[int, range]]:
        """Per level up to the root, the numbers of living elements."""
        first, last = self._first, self._end - 1
        if last < first:
            return []
        top = (first ^ last).bit_length()
        return [(level, range(first >> level, (last >> level) + 1)) for level in range(top + 1)]

    def _state(self) -> tuple[list[int], Runs]:
        get = self._levels.get
        return [self._first, self._end], [
            [get(level, i) for i in numbers] for level, numbers in self._edges()
        ]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        self._first, self._end = numbers
        self._levels = Levels()
        for (level, living), run in zip(self._edges(), runs, strict=True):
            if len(living) != len(run):
                raise ValueError(f"level {level}: {len(run)} elements, expected {len(living)}")
            for i, partial in zip(living, run, strict=True):
                self._levels.put(level, i, partial)
