"""Count how often an aggregate combines: the papers' currency."""

import copy
from collections.abc import Callable
from typing import Any

from windrow.aggregates import Aggregate


class CombineCounter:
    """An aggregate that counts its applications of ⊕ and of the inverse.

    >>> import windrow as wr
    >>> counter = CombineCounter(wr.Max())
    >>> window = wr.windows.DabaLite(counter.aggregate)
    >>> for x in range(4):
    ...     window.insert(x)
    >>> counter.take()
    5
    """

    def __init__(self, aggregate: Aggregate) -> None:
        self.count = 0
        self.aggregate = copy.copy(aggregate)
        self.aggregate.combine = self._counted(aggregate.combine)
        if aggregate.invertible:
            self.aggregate.inverse = self._counted(aggregate.inverse)

    def _counted(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def counted(a: Any, b: Any) -> Any:
            self.count += 1
            return function(a, b)

        return counted

    def take(self) -> int:
        """How many since the last time."""
        count, self.count = self.count, 0
        return count
