"""Two-Stacks: a queue made of two stacks, each of which knows its own aggregate.

The back stack B aggregates from its bottom up, so that insert is one ⊕; the front stack F
aggregates from each row to its bottom, so that evict is a pop. When F runs empty, *flip* moves all
of B over and aggregates it the other way: rare, and n applications of ⊕ at once.

Needs: associativity.
Time: query 1, insert 1, evict at most n (amortised 1).
Space: 2n partials: each row's own and its aggregate.
Paper: Tangwongsan, Hirzel, Schneider, "In-Order Sliding-Window Aggregation in Worst-Case Constant
Time", VLDB Journal 2021, section 3 (Theorem 3).
"""

from collections import deque
from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window

Pair = tuple[Partial, Partial]


class TwoStacks(Window):
    """Two stacks of (val, agg); flip when the front runs empty."""

    card = Card(
        title="Two-Stacks",
        needs="associativity",
        insert="1",
        evict="n, amortised 1",
        query="1",
        partials="2n",
    )
    __slots__ = ("_B", "_F")

    def _reset(self) -> None:
        self._F: deque[Pair] = deque()  # oldest first: the stack's top is its left end
        self._B: deque[Pair] = deque()

    def push(self, partial: Partial) -> None:
        """Onto B."""
        B = self._B
        B.append((partial, self._merge(B[-1][1], partial) if B else partial))
        self._answer = STALE

    def evict(self) -> None:
        """Off F, after a flip where it is empty."""
        if not self._F:
            if not self._B:
                raise self._empty()
            self._flip()
        self._F.popleft()
        self._answer = STALE

    def _flip(self) -> None:
        merge = self._merge
        F: deque[Pair] = deque()
        agg: Partial = EMPTY
        for val, _ in reversed(self._B):
            agg = merge(val, agg)
            F.appendleft((val, agg))
        self._F = F
        self._B.clear()

    def total(self) -> Partial:
        """F's aggregate, then B's."""
        front = self._F[0][1] if self._F else EMPTY
        back = self._B[-1][1] if self._B else EMPTY
        return self._merge(front, back)

    def __len__(self) -> int:
        return len(self._F) + len(self._B)

    def stored_partials(self) -> int:
        """2n."""
        return 2 * len(self)

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Every val is its row; F aggregates to its right end, B from its left end."""
        self._require_length(rows)
        values = [val for val, _ in (*self._F, *self._B)]
        for found, expected in zip(values, rows or (), strict=False):
            self._require_same(found, [expected], "a val")
        border = len(self._F)
        self._require_suffixes([agg for _, agg in self._F], values[:border], "F.agg")
        self._require_prefixes([agg for _, agg in self._B], values[border:], "B.agg")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [[pair[i] for pair in stack] for stack in (self._F, self._B) for i in (0, 1)]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        front_vals, front_aggs, back_vals, back_aggs = runs
        self._F = deque(zip(front_vals, front_aggs, strict=True))
        self._B = deque(zip(back_vals, back_aggs, strict=True))
