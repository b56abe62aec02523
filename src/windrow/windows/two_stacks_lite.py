"""Two-Stacks Lite: Two-Stacks without what it never reads.

Of the front list only the aggregates are read, of the back list only the rows and one aggregate of
all of them, aggB. Best throughput of the algorithms that need nothing but associativity; its flip
is a latency spike of n − 1 applications of ⊕.

Needs: associativity.
Time: query 1, insert 1, evict at most n (amortised 1).
Space: n + 1 partials.
Paper: Tangwongsan, Hirzel, Schneider, VLDB Journal 2021, section 4 (Theorem 7); the idea is from
Theodorakis et al., "Hammer Slide", 2018.
"""

from collections import deque
from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window


class TwoStacksLite(Window):
    """A front list of aggregates, a back list of rows, and aggB."""

    card = Card(
        title="Two-Stacks Lite",
        needs="associativity",
        insert="1",
        evict="n, amortised 1",
        query="1",
        partials="n + 1",
    )
    __slots__ = ("_B", "_F", "_aggB")

    def _reset(self) -> None:
        self._F: deque[Partial] = deque()
        self._B: deque[Partial] = deque()
        self._aggB: Partial = EMPTY

    def push(self, partial: Partial) -> None:
        """Onto the back list."""
        self._aggB = self._merge(self._aggB, partial)
        self._B.append(partial)
        self._answer = STALE

    def evict(self) -> None:
        """Off the front list, after a flip where it is empty."""
        if not self._F:
            if not self._B:
                raise self._empty()
            self._flip()
        self._F.popleft()
        self._answer = STALE

    def _flip(self) -> None:
        merge = self._merge
        F: deque[Partial] = deque()
        agg: Partial = EMPTY
        for row in reversed(self._B):
            agg = merge(row, agg)
            F.appendleft(agg)
        self._F = F
        self._B.clear()
        self._aggB = EMPTY

    def total(self) -> Partial:
        """The front's aggregate, then aggB."""
        return self._merge(self._F[0], self._aggB) if self._F else self._aggB

    def __len__(self) -> int:
        return len(self._F) + len(self._B)

    def stored_partials(self) -> int:
        """n + 1."""
        return len(self) + 1

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """aggB is the back list's; told the rows, the front list's are checked too."""
        self._require_length(rows)
        self._require_same(self._aggB, self._B, "aggB")
        if rows is not None:
            border = len(self._F)
            self._require_suffixes(self._F, rows[:border], "F")
            for found, expected in zip(self._B, rows[border:], strict=True):
                self._require_same(found, [expected], "a row of B")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [list(self._F), list(self._B), [self._aggB]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        front, back, (self._aggB,) = runs
        self._F, self._B = deque(front), deque(back)
