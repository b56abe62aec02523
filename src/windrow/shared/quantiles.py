"""Exact quantiles of any window: base intervals whose values are kept sorted.

A window is O(log W) sorted runs. The value at a place among all of them is found by pivots: the
middle of the longest run is looked for in every other one, and what lies on the wrong side of it is
left out, until one value is left. Quantiles, ranks and counts of any kind come from the same runs.

Needs: values that can be ordered.
Update: amortised log2 N moves of a value.
Lookup: O(log2 W) runs, O(log W) pivots, a bisection in each run for each pivot.
Space: N·log2 N values for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.3, which gives no selection in detail. Its quantile is ``method="lower"``.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import repeat
from typing import Any

from windrow.aggregates import EMPTY, Aggregate, Quantile, canonical
from windrow.aggregates.quantile import Method, interpolated, position
from windrow.aggregates.sorted_runs import Run, before_nan
from windrow.errors import BadSpecification, Refused
from windrow.shared.b_int import BInt
from windrow.shared.base import Card
from windrow.shared.line import Line


def select(runs: list[Run], place: int) -> Any:
    """The value at a place, from 0 on, among all values of some sorted runs."""
    lows = [0] * len(runs)
    highs = [before_nan(run) for run in runs]
    if place >= sum(highs):
        return math.nan
    while True:
        longest = max(range(len(runs)), key=lambda i: highs[i] - lows[i])
        pivot = runs[longest][(lows[longest] + highs[longest]) // 2]
        ends = zip(runs, lows, highs, strict=True)
        before = [bisect_left(run, pivot, low, high) for run, low, high in ends]
        below = sum(before) - sum(lows)
        if place < below:
            highs = before
            continue
        behind = zip(runs, before, highs, strict=True)
        after = [bisect_right(run, pivot, start, high) for run, start, high in behind]
        upto = sum(after) - sum(lows)
        if place < upto:
            return pivot
        place -= upto
        lows = after


def quantile_of(aggregate: Quantile, runs: list[Run]) -> Any:
    """An aggregate's answer over all values of some sorted runs."""
    size = sum(map(len, runs))
    if not size:
        return aggregate.empty
    place, fraction = position(aggregate.method, aggregate.phi, size)
    value = select(runs, place)
    if aggregate.picks:
        return value
    low = float(value)
    return interpolated(low, float(select(runs, place + 1)) if fraction else low, fraction)


class Quantiles(BInt):
    """Any quantile, rank or count of any window of the newest rows.

    >>> import windrow as wr
    >>> shared = Quantiles(longest=1000)
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(0, 4), shared.lookup(1, 2, 0.25), shared.count_below(0, 4, 4)
    (3.0, 1.75, 3)
    >>> shared.query(wr.rows(2), phi=0.9, method="lower")
    1
    """

    card = Card(
        title="B-INT of sorted runs",
        needs="values that can be ordered",
        update="log2 N moves amortised",
        lookup="O(log² W · log log W) steps",
        partials="N·log2 N values",
    )

    def __init__(
        self,
        longest: Any = None,
        *,
        method: Method = "linear",
        nan: Any = "value",
        aggregate: Aggregate | None = None,
        unit: str | None = None,
        line: Line | None = None,
    ) -> None:
        made = Quantile(phi=0.5, method=method, nan=nan) if aggregate is None else aggregate
        super().__init__(made, longest, unit=unit, line=line)

    @classmethod
    def refuses(cls, aggregate: Aggregate) -> str | None:
        """Only quantiles can be selected."""
        return None if isinstance(aggregate, Quantile) else "it is not a quantile"

    def runs(self, left: int, right: int) -> list[Run]:
        """The sorted runs of rows ``left`` to ``right``, both included."""
        levels = self._levels
        found = [levels[level][number] for level, number in self.intervals(left, right)]
        return [run for run in found if run is not EMPTY]

    def answer_of(self, aggregate: Aggregate, left: int, end: int) -> Any:
        """A quantile of the rows from ``left`` to before ``end``."""
        assert isinstance(aggregate, Quantile)
        return quantile_of(aggregate, self.runs(left, end - 1) if left < end else [])

    def _asked(self, phi: float | None, method: Method | None) -> Quantile:
        own = self.aggregate
        assert isinstance(own, Quantile)
        if phi is None and method is None:
            return own
        asked = Quantile(phi=own.phi if phi is None else phi, method=method or own.method)
        if own.picks and not asked.picks:
            raise Refused(
                f"method={asked.method!r} interpolates, and values were taken for {own!r}: make it "
                'with method="linear"'
            )
        return asked

    def lookup(
        self, left: int, right: int, phi: float | None = None, method: Method | None = None
    ) -> Any:
        """The quantile ``phi`` of rows ``left`` to ``right``, both included; 0.5 unless said."""
        self._require_active(left, right)
        return self.answer_of(self._asked(phi, method), left, right + 1)

    def lookup_many(
        self,
        lefts: Iterable[int],
        rights: Iterable[int],
        phi: Any = None,
        method: Method | None = None,
    ) -> list[Any]:
        """The quantiles of runs of rows; ``phi`` is one number, or one for each."""
        phis = phi if isinstance(phi, Iterable) else repeat(phi)
        ranges = list(zip(lefts, rights, strict=True))
        return [self.lookup(a, b, p, method) for (a, b), p in zip(ranges, phis, strict=False)]

    def answer(
        self,
        values: Iterable[Any],
        lefts: Iterable[int],
        rights: Iterable[int],
        phi: float | None = None,
        method: Method | None = None,
        *,
        at: Any = None,
    ) -> list[Any]:
        """Add rows, and answer ranges as if each was asked as soon as its last row was there."""

        def ask(left: int, right: int) -> Any:
            return self.lookup(left, right, phi, method)

        return self._answered(values, lefts, rights, at, ask)

    def query(
        self, window: Any, now: Any = None, phi: float | None = None, method: Method | None = None
    ) -> Any:
        """The quantile of a window as of the newest row, or of a later moment ``now``."""
        asked = self._asked(phi, method)
        return self.answer_of(asked, *self.span(window, now)) if self.line.end else asked.empty

    def median(self, left: int, right: int) -> Any:
        """The middle value, or the mean of the two in the middle."""
        return self.lookup(left, right, 0.5, "linear")

    def count_below(self, left: int, right: int, x: Any) -> int:
        """How many values of rows ``left`` to ``right`` are below x; NaN is above all others."""
        return self._counted(left, right, canonical(x), bisect_left)

    def rank(self, left: int, right: int, x: Any) -> int:
        """How many values of rows ``left`` to ``right`` are not above x: the last place of x."""
        return self._counted(left, right, canonical(x), bisect_right)

    def _counted(self, left: int, right: int, x: Any, find: Any) -> int:
        self._require_active(left, right)
        if x is None:
            raise BadSpecification("a missing value has no rank")
        count = 0
        for run in self.runs(left, right):
            solid = before_nan(run)
            if x == x:
                count += find(run, x, 0, solid)
            else:
                count += solid if find is bisect_left else len(run)
        return count
