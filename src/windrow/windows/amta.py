"""AMTA, the amortised monoid tree aggregator: evicts a million rows as easily as one.

A forest over numbered rows (``levels.py``): an element is put where it belongs when the pair of its
children gets a right neighbour, so its value is final. Before a row called the *split*, suffixes
are kept; after it, one total:

    first … split     R0, and a stack of what R0 will be when the element at the head of each
                      level is gone: the next one on top
    split … end       R1, which every new row is combined with

Evicting one row pops the next R0 off the stack and pushes the heads of what that opened. Evicting
many pops all that is passed. When the split is reached, stack, R0 and R1 are made anew from the
forest. (The paper makes them anew whenever the highest level grows, too; keeping the split where
it was is as right, and saves that.) Elements that lost some of their rows are never read.

Needs: associativity.
Time: insert 2 and evict 1 on average, query 1; any eviction at most 4·log2 n, insert at most
1 + log2 n.
Space: 2n partials and O(log n), of which only O(log n) are in use at a time.
Paper: Villalba, Berral, Carrera, "Constant-Time Sliding Window Framework with Reduced Memory
Footprint and Efficient Bulk Evictions", IEEE TPDS 2019, section 4.2.
"""

from collections.abc import Sequence
from typing import Any

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs
from windrow.windows.levels import MASK, Levels
from windrow.windows.monoid_tree import MonoidTree

Stack = tuple[Partial, Any] | None
"""Linked, so that an eviction leaves the old one as it was until it has succeeded."""


class Amta(MonoidTree):
    """A forest with R0, R1 and a stack.

    >>> import windrow as wr
    >>> window = wr.windows.Amta(wr.Max())
    >>> for x in (5, 3, 4, 1): window.insert(x)
    >>> window.bulk_evict(2); window.query()
    4
    """

    card = Card(
        title="AMTA (amortised monoid tree aggregator)",
        needs="associativity",
        insert="average 2, at most 1 + log2 n",
        evict="average 1; any number of rows at once at most 4·log2 n",
        query="1",
        partials="2n + O(log n)",
    )
    __slots__ = ("_R0", "_R1", "_split", "_stack")

    def _reset(self) -> None:
        super()._reset()
        self._split = 0
        self._R0: Partial = EMPTY
        self._R1: Partial = EMPTY
        self._stack: Stack = None

    def _count(self, level: int) -> int:
        return (self._end + 1 >> level) - 1

    def push(self, partial: Partial) -> None:
        """Into the forest, and onto R1."""
        levels, merge, first, end = self._levels, self._merge, self._first, self._end
        total = merge(self._R1, partial)
        if end & 1 or end <= first:
            levels.put(0, end, partial)
        else:
            made = []  # parents of pairs that now have a right neighbour
            level, count = 0, end
            while count and not count & 1 and count > first >> level:
                younger = levels.get(level, count - 1)
                older = levels.get(level, count - 2) if count - 2 >= first >> level else EMPTY
                made.append(merge(older, younger))
                level, count = level + 1, (count >> 1) - 1
            levels.check(made)
            levels.put(0, end, partial)
            count = end
            for level, parent in enumerate(made, 1):
                count = (count >> 1) - 1
                levels.put(level, count, parent)
        self._R1 = total
        self._end = end + 1
        self._answer = STALE
        if not end & MASK:
            levels.sweep(first)

    def evict(self) -> None:
        """Remove the oldest row: what R0 becomes is on the stack, every other time on its top."""
        first, stack = self._first, self._stack
        if first & 1 or first + 1 >= self._split or stack is None:
            super().evict()
        else:
            self._R0, self._stack = stack
            self._first = first + 1
            self._answer = STALE

    def save_point(self) -> tuple[Any, ...]:
        """What ``take_back`` needs, should what follows the next ``push`` fail."""
        return self._first, self._end, self._split, self._R0, self._R1, self._stack

    def take_back(self, point: tuple[Any, ...]) -> None:
        """Undo the one ``push`` since, and what ``evict_while`` and its kin let go."""
        first, end, split, R0, R1, stack = point
        level, count = 0, end
        self._levels.remove_last(0, end)
        while count and not count & 1 and count > first >> level:
            level, count = level + 1, (count >> 1) - 1
            self._levels.remove_last(level, count)
        self._first, self._end, self._split = first, end, split
        self._R0, self._R1, self._stack = R0, R1, stack
        self._answer = STALE

    def total(self) -> Partial:
        """R0, then R1."""
        return self._merge(self._R0, self._R1)

    def _advance(self, first: int) -> None:
        if first >= self._split:
            self._split_anew(first)
            return
        merge, get, stack = self._merge, self._levels.get, self._stack
        changed = (self._first ^ first).bit_length() - 1  # the highest level whose head leaves
        passed = self._first & (2 << changed) - 1
        front: Partial = EMPTY
        for _ in range(changed + 1 - passed.bit_count()):  # levels whose head is a left sibling
            assert stack is not None
            front, stack = stack
        for level in range(changed - 1, -1, -1):
            head = first >> level
            if not head & 1:
                suffix = merge(get(level, head + 1), EMPTY if stack is None else stack[0])
                stack = (suffix, stack)
        if first & (1 << changed) - 1:
            front = merge(get(0, first), EMPTY if stack is None else stack[0])
        self._first, self._R0, self._stack = first, front, stack

    def take_levels(self, levels: Levels, first: int, end: int) -> None:
        """Go on over levels that hold the rows from ``first`` to ``end``."""
        self._levels, self._first, self._end = levels, first, end
        self._answer = STALE
        if first == end:
            self._empty_out()
        else:
            self._split_anew(first)

    def _split_anew(self, first: int) -> None:
        """R0 and its stack over the oldest tree from a row on, R1 over the others."""
        merge, get, count = self._merge, self._levels.get, self._count
        top = (self._end - first).bit_length()
        while first >> top >= count(top):
            top -= 1
        split = count(top) << top
        stack: Stack = None
        suffix: Partial = EMPTY
        for level in range(top, -1, -1):
            head = first >> level
            if not head & 1 and head + 1 < count(level):
                suffix = merge(get(level, head + 1), suffix)
                stack = (suffix, stack)
        front = merge(get(0, first), suffix)
        back: Partial = EMPTY
        for level in range(top - 1, -1, -1):
            for number in range(2 * count(level + 1), count(level)):
                back = merge(back, get(level, number))
        self._first, self._split = first, split
        self._R0, self._R1, self._stack = front, back, stack

    def _empty_out(self) -> None:
        self._first = self._split = self._end
        self._R0 = self._R1 = EMPTY
        self._stack = None

    # --- for tests and the curious --------------------------------------------------------------

    def stored_partials(self) -> int:
        """Elements of the forest (also dead ones that were not yet freed), stack, R0 and R1."""
        return self._levels.stored() + len(self._stacked()) + 2

    def _stacked(self) -> list[Partial]:
        """The stack, its top first."""
        found, stack = [], self._stack
        while stack is not None:
            partial, stack = stack
            found.append(partial)
        return found

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Invariants 1 to 3, and what R0, R1 and the stack stand for."""
        first, split, end = self._first, self._split, self._end
        self._require(first <= split <= end, f"first {first}, split {split}, end {end}")
        self._check_tree(rows)
        mine = self.rows()
        self._require_same(self._R0, mine[: split - first], "R0")
        self._require_same(self._R1, mine[split - first :], "R1")
        starts = [
            ((first >> level) + 1) << level
            for level in range(split.bit_length())
            if not first >> level & 1 and ((first >> level) + 1) << level < split
        ]
        stacked = self._stacked()
        self._require(
            first == split or len(stacked) == len(starts),
            f"{len(stacked)} suffixes on the stack, expected {len(starts)}",
        )
        for found, start in zip(stacked, starts, strict=False):
            self._require_same(found, mine[start - first : split - first], f"suffix from {start}")

    def _state(self) -> tuple[list[int], Runs]:
        return [self._first, self._end, self._split], [
            *self._elements(),
            self._stacked(),
            [self._R0, self._R1],
        ]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        first, end, self._split = numbers
        *elements, stacked, (self._R0, self._R1) = runs
        self._take_elements(first, end, elements)
        self._stack = None
        for partial in reversed(stacked):
            self._stack = (partial, self._stack)
