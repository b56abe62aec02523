"""B-INT, base intervals: any window of a stream from O(log W) stored partials.

A base interval of level ℓ covers 2^ℓ rows whose first number is a multiple of 2^ℓ. Every window is
a run of base intervals that rise and then fall in length, at most two of each level. Rows are
numbered from 0 here (the paper counts from 1). An interval is kept while all its rows can be asked
for.

Needs: associativity.
Update: amortised 1 application of ⊕.
Lookup: at most 2·log2 W applications for a window of W rows.
Space: fewer than 2·N partials for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.1.1. Windows of time are found by bisection in the rows' times; the paper leaves them to its full
version.
"""

from windrow.aggregates import EMPTY, Partial
from windrow.errors import InvariantBroken
from windrow.shared.base import Card, Shared
from windrow.shared.ring import Ring


class BInt(Shared):
    """Base intervals over the newest rows; look any range of them up.

    >>> import windrow as wr
    >>> shared = BInt(wr.Max())
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(1, 3), shared.lookup(0, 4)
    (4, 5)
    >>> shared.query(wr.rows(2, ending=2))
    4
    """

    card = Card(
        title="B-INT",
        needs="associativity",
        update="1 amortised, log2 N at most",
        lookup="2·log2 W at most",
        partials="2·N",
    )

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        rows = Ring()
        rows.start(number)
        self._levels = [rows]

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Add a row; every base interval that it completes is combined from its two halves."""
        levels, merge = self._levels, self._merge
        made, level, count = [partial], 0, levels[0].end + 1
        while not count & 1:
            lower, left = levels[level], count - 2
            if left < lower.first:  # the interval began with rows that are gone, and so did longer
                break
            made.append(merge(lower[left], made[-1]))
            level, count = level + 1, count >> 1
            if level == len(levels):
                levels.append(Ring())
            if levels[level].end != count - 1:
                levels[level].start(count - 1)
        for ring, interval in zip(levels, made, strict=False):
            ring.append(interval)

    def forget(self, limit: int) -> None:
        """Intervals with a row before this one go."""
        for level, ring in enumerate(self._levels):
            ring.forget(-(-limit >> level))
        while len(self._levels) > 1 and not self._levels[-1]:
            self._levels.pop()

    def row(self, number: int) -> Partial:
        """The interval of one row."""
        return self._levels[0][number]

    def intervals(self, left: int, right: int) -> list[tuple[int, int]]:
        """The base intervals (level, number) that make up rows ``left`` to ``right``, in order."""
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
        front: Partial = EMPTY
        back: Partial = EMPTY
        low, high, level = left, right + 1, 0
        levels, merge = self._levels, self._merge
        while low < high:
            if low & 1:
                front = merge(front, levels[level][low])
                low += 1
            if high & 1:
                high -= 1
                back = merge(levels[level][high], back)
            low >>= 1
            high >>= 1
            level += 1
        return merge(front, back)

    def stored_partials(self) -> int:
        """At most twice the rows."""
        return sum(map(len, self._levels))

    def check_invariants(self) -> None:
        """Every base interval is its rows' aggregate, and all whose rows are there are kept."""
        first, end = self.line.first, self.line.end
        for level, ring in enumerate(self._levels):
            numbers = range(-(-first >> level), end >> level)
            if (ring.first, ring.end) != (numbers.start, numbers.stop) and (ring or numbers):
                raise InvariantBroken(f"BInt: level {level} holds {ring.first} to {ring.end - 1}")
            for number in numbers:
                rows = range(number << level, (number + 1) << level)
                self._require(ring[number], rows, f"interval {number} of level {level}")
        level = len(self._levels)
        if (-(-first >> level)) < (end >> level):
            raise InvariantBroken(f"BInt: level {level} is missing")
