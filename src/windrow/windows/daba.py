"""DABA, the de-amortised banker's aggregator: Two-Stacks whose flip is spread over the operations.

The window is a queue cut by the pointers F ≤ L ≤ R ≤ A ≤ B ≤ E. The part from F to B is the front
list, from B to E the back list; L, R and A cut the front list into what is already aggregated to
its end and three sublists that are being turned round, one step per operation:

    F … L      agg: from this row to B           (evict pops here)
    L … R      agg: from this row to R
    R … A      agg: from R to this row
    A … B      agg: from this row to B
    B … E      agg: from B to this row           (insert pushes here)

When L, R and A are used up the front and the back have equal length, and *flip* renames the front
to L and the back to R without touching a row. Then every insert and evict does one *shrink* (one
row of L and one of R are finished) until L and R are empty, and then one *shift*.

Each sublist is a ``collections.deque`` here: a pointer step moves one row between neighbours. A
deque is a chain of fixed blocks that never copies itself: in any operation one row enters or leaves
and at most two change their sublist, whatever the size of the window.

Needs: associativity.
Time: query 1, insert 4, evict 3, worst case; on average insert 2.5, evict 1.5.
Space: 2n partials.
Paper: Tangwongsan, Hirzel, Schneider, VLDB Journal 2021, section 5 (Theorem 10).
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window

Pair = tuple[Partial, Partial]


class Daba(Window):
    """Five sublists of (val, agg), and one step of turning round per operation."""

    card = Card(
        title="DABA",
        needs="associativity",
        insert="4, average 2.5",
        evict="3, average 1.5",
        query="1",
        partials="2n",
    )
    queue: ClassVar[type[deque[Pair]]] = deque
    __slots__ = ("_A", "_B", "_F", "_L", "_R")

    def _reset(self) -> None:
        self._F, self._L, self._R, self._A, self._B = (self.queue() for _ in range(5))

    def push(self, partial: Partial) -> None:
        """Onto the back list; then one step."""
        B = self._B
        B.append((partial, self._merge(B[-1][1], partial) if B else partial))
        try:
            self._fixup()
        except BaseException:
            B.pop()
            raise
        self._answer = STALE

    def evict(self) -> None:
        """Off the front list; then one step."""
        F = self._F
        if not F:
            raise self._empty()
        oldest = F.popleft()
        try:
            self._fixup()
        except BaseException:
            F.appendleft(oldest)
            raise
        self._answer = STALE

    def _fixup(self) -> str:
        """Restore the size invariant; each case computes before it changes anything."""
        F, L, A, merge = self._F, self._L, self._A, self._merge
        if L:
            R = self._R
            val, agg = L[0]
            last, suffix = R[-1]
            rest = A[0][1]
            finished = (val, merge(merge(agg, suffix), rest))
            turned = (last, merge(last, rest))
            L.popleft()
            F.append(finished)
            R.pop()
            A.appendleft(turned)
            return "shrink"
        if A:
            F.append(A.popleft())
            return "shift"
        if F:  # flip: the front becomes L, the back becomes R; then shrink, with A still empty
            R = self._B
            val, agg = F[0]
            finished = (val, merge(agg, R[-1][1]))
            self._F, self._L, self._R, self._B = L, F, R, self._R
            F.popleft()
            L.append(finished)
            last = R.pop()[0]
            A.append((last, last))
            return "flip"
        if self._B:
            F.append(self._B.pop())
        return "singleton"

    def total(self) -> Partial:
        """The front's aggregate, then the back's."""
        front = self._F[0][1] if self._F else EMPTY
        back = self._B[-1][1] if self._B else EMPTY
        return self._merge(front, back)

    def __len__(self) -> int:
        return sum(map(len, self._sublists()))

    def _sublists(self) -> tuple[deque[Pair], ...]:
        return self._F, self._L, self._R, self._A, self._B

    def stored_partials(self) -> int:
        """2n."""
        return 2 * len(self)

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """The size, the values and the partial-aggregate invariants of section 5."""
        self._require_length(rows)
        f, l, r, a, b = map(len, self._sublists())  # noqa: E741
        front = f + l + r + a
        self._require(
            (front == 0 and b == 0) or (l + r + a + 1 == front - b and l == r),
            f"sizes |F|={front} |L|={l} |R|={r} |A|={a} |B|={b} break the size invariant",
        )
        values = [val for sublist in self._sublists() for val, _ in sublist]
        for found, expected in zip(values, rows or (), strict=False):
            self._require_same(found, [expected], "a val")
        L, R, A, B = f, f + l, f + l + r, front
        aggs = [agg for sublist in self._sublists() for _, agg in sublist]
        self._require_suffixes(aggs[:L], values[:B], "F.agg")
        self._require_suffixes(aggs[L:R], values[L:R], "L.agg")
        self._require_prefixes(aggs[R:A], values[R:A], "R.agg")
        self._require_suffixes(aggs[A:B], values[A:B], "A.agg")
        self._require_prefixes(aggs[B:], values[B:], "B.agg")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [[pair[i] for pair in sublist] for sublist in self._sublists() for i in (0, 1)]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        vals, aggs = runs[::2], runs[1::2]
        self._F, self._L, self._R, self._A, self._B = (
            self.queue(zip(v, g, strict=True)) for v, g in zip(vals, aggs, strict=True)
        )
