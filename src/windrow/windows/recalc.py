"""Recalculate from scratch: the oracle.

Keeps the rows and folds all of them at every query. Slow and plainly right: every other algorithm
is compared with it.

Needs: associativity is not even needed, since rows are folded from the left.
Time: insert and evict apply ⊕ no time, query n − 1 times.
Space: n partials.
Published: folklore; section 8.1 of Tangwongsan, Hirzel, Schneider, VLDB Journal 2021.
"""

from collections import deque
from collections.abc import Sequence
from functools import reduce

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window


class Recalc(Window):
    """Fold all rows at every query."""

    card = Card(
        title="Recalculate from scratch",
        needs="nothing",
        insert="0",
        evict="0",
        query="n − 1",
        partials="n",
    )
    __slots__ = ("_rows",)

    def _reset(self) -> None:
        self._rows: deque[Partial] = deque()

    def push(self, partial: Partial) -> None:
        """Keep it."""
        self._rows.append(partial)
        self._answer = STALE

    def evict(self) -> None:
        """Drop the oldest."""
        if not self._rows:
            raise self._empty()
        self._rows.popleft()
        self._answer = STALE

    def total(self) -> Partial:
        """All rows, from the left."""
        return reduce(self._merge, self._rows, EMPTY)

    def __len__(self) -> int:
        return len(self._rows)

    def stored_partials(self) -> int:
        """n."""
        return len(self._rows)

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """The rows are the rows."""
        self._require_length(rows)
        for found, expected in zip(self._rows, rows or (), strict=False):
            self._require_same(found, [expected], "a row")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [list(self._rows)]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        (run,) = runs
        self._rows = deque(run)
