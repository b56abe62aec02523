"""R-INT, running intervals: any window from two running totals and one inverse.

Keeps the total of all rows before each row. A window's total is the difference of two of them, so
the aggregate must have an exact inverse: counts, sums (windrow keeps those exactly) and what is
built from them. How many rows have a value is counted beside, so that a window without any is
known to be empty.

Needs: ``invertible``, without rounded floats in the partial.
Update: 1 application of ⊕.
Lookup: 1 inverse.
Space: N + 1 partials for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.2.
"""

from windrow.aggregates import EMPTY, REGISTRY, Aggregate, Partial
from windrow.errors import InvariantBroken
from windrow.shared.base import Card, Shared, check_exact
from windrow.shared.ring import Ring
from windrow.windows import SubtractOnEvict
from windrow.windows.compare import same


class RInt(Shared):
    """Running totals of the newest rows.

    >>> import windrow as wr
    >>> shared = RInt(wr.Sum())
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(1, 3), shared.query(wr.rows(2))
    (6, 6)
    """

    card = Card(
        title="R-INT",
        needs="an exact inverse",
        update="1",
        lookup="1 inverse",
        partials="N + 1",
    )

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Without an exact inverse of a bounded partial."""
        if aggregate.kind == "holistic":
            return "running totals of all rows would grow for ever. Use BInt or LInt"
        reason = SubtractOnEvict.refuses(aggregate)
        return None if reason is None else reason.partition(" Use ")[0] + " Use BInt or LInt"

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        self._inverse = self.aggregate.inverse
        self._untyped = type(self.aggregate) not in REGISTRY.values()
        self._totals, self._present = Ring(), Ring()
        self._totals.start(number)
        self._present.start(number)
        self._totals.append(EMPTY)
        self._present.append(0)
        self._total: Partial = EMPTY
        self._count = 0

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Add a row to the running total."""
        if partial is not EMPTY:
            if self._untyped:
                check_exact(self.aggregate, partial)
            self._total = self._merge(self._total, partial)
            self._count += 1
        self._totals.append(self._total)
        self._present.append(self._count)

    def forget(self, limit: int) -> None:
        """The totals before the first row that is left."""
        self._totals.forget(limit)
        self._present.forget(limit)

    def row(self, number: int) -> Partial:
        """One row, taken out of the totals again."""
        return self.total(number, number)

    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``, both included."""
        before = self._present[left]
        if self._present[right + 1] == before:
            return EMPTY
        total = self._totals[right + 1]
        return total if not before else self._inverse(total, self._totals[left])

    def stored_partials(self) -> int:
        """One for every row, and one before the first."""
        return len(self._totals)

    def check_invariants(self) -> None:
        """Each total is the one before it with a row more."""
        first, end = self.line.first, self.line.end
        if (self._totals.first, self._totals.end) != (first, end + 1):
            raise InvariantBroken("RInt: totals of other rows than those that are there")
        for number in range(first, end):
            total = self._merge(self._totals[number], self.row(number))
            if not same(self.aggregate, total, self._totals[number + 1]):
                raise InvariantBroken(f"RInt: the total before row {number + 1} is {total!r}")
            step = self._present[number + 1] - self._present[number]
            if step not in (0, 1):
                raise InvariantBroken(f"RInt: row {number} counts {step} times")
