"""Monotone deque: keep only rows that can still be the answer.

Where a ⊕ b is always a or b, a row that loses against a younger one can never win again: it is
dropped when the younger one comes. What is left is ordered, and the answer is at its old end.

Needs: ``selective``.
Time: insert at most n (amortised 2), evict 0, query 0.
Space: at most n partials, each with its row's number; few for random data, n for a falling maximum.
Published: folklore (the ascending-minima problem); correct for every associative selective ⊕:
x ⊕ lost ⊕ y = x ⊕ y once lost ⊕ y = y.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from windrow.aggregates import EMPTY, Aggregate, Partial
from windrow.errors import InvariantBroken
from windrow.windows.base import STALE, Card, Runs, Window


class MonotoneDeque(Window):
    """The rows that no younger row beats."""

    card = Card(
        title="Monotone deque",
        needs="a ⊕ b is a or b (`selective`)",
        insert="n, amortised 2",
        evict="0",
        query="0",
        partials="at most n",
    )
    __slots__ = ("_combine", "_evicted", "_inserted", "_rows")

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Without selectivity a dropped row would be missing."""
        if aggregate.selective:
            return None
        return (
            f"{aggregate.name} is not selective: its answer is not one of the rows, so none may be "
            "dropped. Use "
            + ("SubtractOnEvict, " if aggregate.invertible else "")
            + "TwoStacksLite"
            " or DabaLite"
        )

    def _reset(self) -> None:
        self._combine = self.aggregate.combine  # kept rows are never EMPTY
        self._rows: deque[tuple[int, Partial]] = deque()
        self._evicted = self._inserted = 0

    def push(self, partial: Partial) -> None:
        """Drop what it beats, then keep it."""
        if partial is not EMPTY:
            rows, combine, beaten = self._rows, self._combine, 0
            for _, row in reversed(rows):
                winner = combine(row, partial)
                if winner is not partial:
                    if winner is not row:
                        raise InvariantBroken(
                            f"{self.aggregate!r} promises selective, but made {winner!r} of "
                            f"{row!r} and {partial!r}: it must return one of them, itself"
                        )
                    break
                beaten += 1
            while beaten:
                rows.pop()
                beaten -= 1
            rows.append((self._inserted, partial))
        self._inserted += 1
        self._answer = STALE

    def evict(self) -> None:
        """The oldest row leaves, kept or not."""
        if self._evicted == self._inserted:
            raise self._empty()
        rows = self._rows
        if rows and rows[0][0] == self._evicted:
            rows.popleft()
        self._evicted += 1
        self._answer = STALE

    def total(self) -> Partial:
        """The oldest row kept."""
        return self._rows[0][1] if self._rows else EMPTY

    def __len__(self) -> int:
        return self._inserted - self._evicted

    def stored_partials(self) -> int:
        """At most n."""
        return len(self._rows)

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Kept rows are in the window, in order, and each beats the next."""
        self._require_length(rows)
        numbers = [number for number, _ in self._rows]
        self._require(
            all(a < b for a, b in pairwise([self._evicted - 1, *numbers, self._inserted])),
            f"row numbers {numbers} are not rising within the window",
        )
        for (_, a), (_, b) in pairwise(self._rows):
            self._require(self._combine(a, b) is a, f"{a!r} does not beat the younger {b!r}")
        if rows is not None:
            self._require_same(self.total(), rows, "the oldest row kept")

    def _state(self) -> tuple[list[int], Runs]:
        numbers = [number - self._evicted for number, _ in self._rows]
        return [len(self), *numbers], [[row for _, row in self._rows]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        if numbers[0] >= 1 << 62:
            raise ValueError(f"{numbers[0]} rows")
        self._evicted, self._inserted = 0, numbers[0]
        (run,) = runs
        self._rows = deque(zip(numbers[1:], run, strict=True))
