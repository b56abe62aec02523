"""DABA Lite: worst-case constant time per operation, with two partials more than there are rows.

DABA without what it never reads: sublists that aggregate to their end keep only the aggregate,
sublists that aggregate from their start keep only the rows, and two partials stand for the whole of
those: aggRA for R and A together, aggB for the back.

    F … L      from this row to B                (evict pops here)
    L … R      from this row to R
    R … A      the row itself                    aggRA = from R to B, while L and R are not empty
    A … B      from this row to B
    B … E      the row itself (insert pushes)    aggB = all of them

Sublists are deques and steps are as in ``daba.py``; aggRA does not change while its border A moves,
which saves one ⊕ per shrink.

Needs: associativity.
Time: query 1, insert 3, evict 2, worst case; on average insert 2, evict 1.
Space: n + 2 partials.
Paper: Tangwongsan, Hirzel, Schneider, VLDB Journal 2021, section 6 (Theorem 13).
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window


class DabaLite(Window):
    """Five sublists of one partial a row, aggRA and aggB; one step per operation.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Max())
    >>> window.insert(5); window.insert(3); window.query()
    5
    >>> window.evict(); window.query(), len(window)
    (3, 1)
    """

    card = Card(
        title="DABA Lite",
        needs="associativity",
        insert="3, average 2",
        evict="2, average 1",
        query="1",
        partials="n + 2",
    )
    queue: ClassVar[type[deque[Partial]]] = deque
    __slots__ = ("_A", "_B", "_F", "_L", "_R", "_aggB", "_aggRA", "_combine")

    def _reset(self) -> None:
        self._F, self._L, self._R, self._A, self._B = (self.queue() for _ in range(5))
        self._combine = self.aggregate.combine
        self._aggRA: Partial = EMPTY
        self._aggB: Partial = EMPTY

    def push(self, partial: Partial) -> None:
        """Onto the back list; then one step."""
        before = self._aggB
        if before is EMPTY or partial is EMPTY:
            self._aggB = self._merge(before, partial)
        else:  # as merge does, without its call: 15 % of a round here and below
            self._aggB = self._combine(before, partial)
        self._B.append(partial)
        try:
            self._fixup()
        except BaseException:
            self._B.pop()
            self._aggB = before
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
        L, A = self._L, self._A
        if L:
            R = self._R
            left, aggRA, right, rest = L[0], self._aggRA, R[-1], A[0]
            if left is EMPTY or aggRA is EMPTY or right is EMPTY or rest is EMPTY:
                finished, turned = self._merge(left, aggRA), self._merge(right, rest)
            else:
                combine = self._combine
                finished, turned = combine(left, aggRA), combine(right, rest)
            L.popleft()
            self._F.append(finished)
            R.pop()
            A.appendleft(turned)
            return "shrink"
        F = self._F
        if A:
            F.append(A.popleft())
            return "shift"
        if F:  # flip: the front becomes L, the back becomes R; then shrink, with A still empty
            aggRA, R = self._aggB, self._B
            finished = self._merge(F[0], aggRA)
            self._F, self._L, self._R, self._B = L, F, R, self._R
            self._aggRA, self._aggB = aggRA, EMPTY
            F.popleft()
            L.append(finished)
            A.append(R.pop())
            return "flip"
        if self._B:
            F.append(self._B.pop())
        self._aggRA = self._aggB = EMPTY
        return "singleton"

    def total(self) -> Partial:
        """The front's aggregate, then aggB."""
        if not self._F:
            return EMPTY
        front, back = self._F[0], self._aggB
        if front is EMPTY or back is EMPTY:
            return self._merge(front, back)
        return self._combine(front, back)

    def __len__(self) -> int:
        return sum(map(len, self._sublists()))

    def _sublists(self) -> tuple[deque[Partial], ...]:
        return self._F, self._L, self._R, self._A, self._B

    def stored_partials(self) -> int:
        """n + 2."""
        return len(self) + 2

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """The size invariant; told the rows, the contents invariants of section 6."""
        self._require_length(rows)
        f, l, r, a, b = map(len, self._sublists())  # noqa: E741
        front = f + l + r + a
        self._require(
            (front == 0 and b == 0) or (l + r + a + 1 == front - b and l == r),
            f"sizes |F|={front} |L|={l} |R|={r} |A|={a} |B|={b} break the size invariant",
        )
        self._require_same(self._aggB, self._B, "aggB")
        if rows is None:
            return
        L, R, A, B = f, f + l, f + l + r, front
        if l:
            self._require_same(self._aggRA, rows[R:B], "aggRA")
        self._require_suffixes(self._F, rows[:B], "F")
        self._require_suffixes(self._L, rows[L:R], "L")
        self._require_suffixes(self._A, rows[A:B], "A")
        for found, expected in zip((*self._R, *self._B), (*rows[R:A], *rows[B:]), strict=True):
            self._require_same(found, [expected], "a row of R or B")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [*map(list, self._sublists()), [self._aggRA, self._aggB]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        *sublists, (self._aggRA, self._aggB) = runs
        self._F, self._L, self._R, self._A, self._B = map(self.queue, sublists)
