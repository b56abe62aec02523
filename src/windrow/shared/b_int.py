"""B-INT, base intervals: any window of a stream from O(log W) stored partials.

A base interval of level ℓ covers 2^ℓ rows whose first position is a multiple of 2^ℓ. Every window
is a run of base intervals that rise and then fall in length, at most two of each level. Positions
count from 0 here (the paper counts from 1).

Needs: associativity.
Time: insert amortised 1 application of ⊕; lookup of a window of W rows at most 2·log2 W.
Space: fewer than 2·N partials for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.1.
"""

from collections.abc import Iterable
from typing import Any

from windrow.aggregates import EMPTY, Aggregate, Partial, as_aggregate
from windrow.errors import BadSpecification, InvariantBroken
from windrow.windows.compare import same


class BInt:
    """All rows inserted so far; look any range of them up.

    >>> import windrow as wr
    >>> shared = BInt(wr.Max())
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(1, 3), shared.lookup(0, 4)
    (4, 5)
    """

    def __init__(self, aggregate: Aggregate | type[Aggregate]) -> None:
        self.aggregate = as_aggregate(aggregate)
        self._lift = self.aggregate.lifter()
        self._merge = self.aggregate.merger()
        self._levels: list[list[Partial]] = [[]]

    def __len__(self) -> int:
        return len(self._levels[0])

    def insert(self, value: Any) -> None:
        """Add a row; every base interval that it completes is combined from its two halves."""
        levels, merge = self._levels, self._merge
        levels[0].append(self._lift(value))
        level = 0
        while len(levels[level]) % 2 == 0:
            if level + 1 == len(levels):
                levels.append([])
            levels[level + 1].append(merge(levels[level][-2], levels[level][-1]))
            level += 1

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add rows in order."""
        for value in values:
            self.insert(value)

    def intervals(self, left: int, right: int) -> list[tuple[int, int]]:
        """The base intervals (level, number) that make up rows ``left`` to ``right``, in order."""
        if not 0 <= left <= right < len(self):
            raise BadSpecification(
                f"rows {left} to {right} are not within the {len(self)} rows there are"
            )
        front: list[tuple[int, int]] = []
        back: list[tuple[int, int]] = []
        low, high, level = left, right + 1, 0
        while low < high:
            if low & 1:
                front.append((level, low))
                low += 1
            if high & 1:
                high -= 1
                back.append((level, high))
            low >>= 1
            high >>= 1
            level += 1
        return front + back[::-1]

    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``, both included."""
        partial: Partial = EMPTY
        for level, number in self.intervals(left, right):
            partial = self._merge(partial, self._levels[level][number])
        return partial

    def lookup(self, left: int, right: int) -> Any:
        """The aggregate of rows ``left`` to ``right``, both included."""
        return self.aggregate.answer(self.total(left, right))

    def stored_partials(self) -> int:
        """Fewer than twice the rows."""
        return sum(map(len, self._levels))

    def check_invariants(self) -> None:
        """Every base interval is its halves' aggregate, and all that are complete are there."""
        for level in range(1, len(self._levels)):
            below = self._levels[level - 1]
            if len(self._levels[level]) != len(below) // 2:
                raise InvariantBroken(f"level {level} has {len(self._levels[level])} intervals")
            for number, partial in enumerate(self._levels[level]):
                halves = self._merge(below[2 * number], below[2 * number + 1])
                if not same(self.aggregate, partial, halves):
                    raise InvariantBroken(f"interval {number} of level {level} is {partial!r}")
