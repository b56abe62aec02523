"""Subtract on evict: one running total, from which the oldest row is taken out.

Keeps the rows and their total. Only for aggregates whose ``inverse`` is exact: counts, integers,
and sums of floats because windrow keeps those exactly. A total of rounded floats is refused, since
what rounding added never leaves: after one row of 1e15 had left a window of 1,000 numbers near 1, a
running sum in two words was wrong in 92 % of the later rows.

Needs: ``invertible``, without ``float64`` fields in the partial.
Time: insert applies ⊕ once, evict the inverse once, query nothing; worst case.
Space: n + 1 partials.
Published: folklore; see Tangwongsan, Hirzel, Schneider, VLDB Journal 2021, section 2.
"""

from collections import deque
from collections.abc import Sequence

from windrow.aggregates import EMPTY, REGISTRY, Aggregate, Partial
from windrow.errors import BadValue
from windrow.windows.base import STALE, Card, Runs, Window


def _has_float(partial: Partial) -> bool:
    if isinstance(partial, tuple):
        return any(map(_has_float, partial))
    return isinstance(partial, float)


class SubtractOnEvict(Window):
    """Keep a running total; take the oldest row out by the exact inverse."""

    card = Card(
        title="Subtract on evict",
        needs="an exact inverse",
        insert="1",
        evict="1 inverse",
        query="0",
        partials="n + 1",
    )
    __slots__ = ("_count", "_inverse", "_rows", "_total", "_untyped")

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Without an exact inverse the answer would be wrong."""
        if not aggregate.invertible:
            return (
                f"{aggregate.name} is not invertible: what the oldest row hid cannot be found by "
                "taking that row out. Use TwoStacksLite or DabaLite"
                + (", or MonotoneDeque" if aggregate.selective else "")
            )
        if aggregate.partial_schema.has_floats:
            return (
                f"its partial {aggregate.partial_schema} has rounded floats, and rounding errors "
                "stay when a row leaves. Use TwoStacksLite or DabaLite, or build it from "
                "windrow.Sum, whose totals are exact"
            )
        return None

    def _reset(self) -> None:
        self._inverse = self.aggregate.inverse
        self._untyped = type(self.aggregate) not in REGISTRY.values()
        self._rows: deque[Partial] = deque()
        self._total: Partial = EMPTY
        self._count = 0

    def push(self, partial: Partial) -> None:
        """Add it to the total."""
        if partial is not EMPTY:
            if self._untyped and _has_float(partial):
                raise BadValue(
                    f"{self.aggregate!r} made the partial {partial!r} with a rounded float in it, "
                    "and rounding errors stay when a row leaves. Use TwoStacksLite or DabaLite"
                )
            self._total = self._merge(self._total, partial)
            self._count += 1
        self._rows.append(partial)
        self._answer = STALE

    def evict(self) -> None:
        """Take the oldest out; the last one leaves no total at all."""
        if not self._rows:
            raise self._empty()
        oldest = self._rows[0]
        if oldest is not EMPTY:
            self._total = self._inverse(self._total, oldest) if self._count > 1 else EMPTY
            self._count -= 1
        self._rows.popleft()
        self._answer = STALE

    def total(self) -> Partial:
        """Already there."""
        return self._total

    def __len__(self) -> int:
        return len(self._rows)

    def stored_partials(self) -> int:
        """n + 1."""
        return len(self._rows) + 1

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """The total is the rows' total."""
        self._require_length(rows)
        full = sum(row is not EMPTY for row in self._rows)
        self._require(full == self._count, f"counts {self._count} rows, holds {full}")
        self._require_same(self._total, self._rows if rows is None else rows, "the total")

    def _state(self) -> tuple[list[int], Runs]:
        return [], [list(self._rows), [self._total]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        run, (self._total,) = runs
        self._rows = deque(run)
        self._count = sum(row is not EMPTY for row in run)
