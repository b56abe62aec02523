"""Running total: what all rows so far amount to, for windows that rows leave all at once or never.

Keeps one partial, and no rows; there is nothing to evict but all of them.

Needs: associativity.
Time: insert applies ⊕ once, query nothing; worst case.
Space: 1 partial.
"""

from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.errors import Refused
from windrow.windows.base import STALE, Card, Runs, Window


class RunningTotal(Window):
    """Put every row to the total."""

    card = Card(
        title="Running total",
        needs="rows that leave all at once, or never",
        insert="1",
        evict="all at once: 0",
        query="0",
        partials="1",
    )
    __slots__ = ("_count", "_total")

    def _reset(self) -> None:
        self._total: Partial = EMPTY
        self._count = 0

    def push(self, partial: Partial) -> None:
        """Add it to the total."""
        self._total = self._merge(self._total, partial)
        self._count += 1
        self._answer = STALE

    def evict(self) -> None:
        """Rows are not kept, so none can be taken out."""
        if not self._count:
            raise self._empty()
        raise Refused("a running total keeps no rows: take an algorithm from which rows can leave")

    def bulk_evict(self, n: int) -> None:
        """Only none, or all."""
        if n == 0 and self._count:
            return
        super().bulk_evict(n)

    def total(self) -> Partial:
        """Already there."""
        return self._total

    def __len__(self) -> int:
        return self._count

    def stored_partials(self) -> int:
        """One."""
        return 1

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """The total is the rows' total."""
        self._require_length(rows)
        if rows is not None:
            self._require_same(self._total, rows, "the total")

    def _state(self) -> tuple[list[int], Runs]:
        return [self._count], [[self._total]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        [self._count], [[self._total]] = numbers, runs
