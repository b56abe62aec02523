"""Count combines and stored partials: the papers' currency."""

import copy
from collections.abc import Callable
from typing import Any

from windrow.aggregates import Aggregate, as_aggregate
from windrow.windows import Window


class CombineCounter:
    """An aggregate that counts its applications of ⊕ and of the inverse.

    >>> import windrow as wr
    >>> counter = CombineCounter(wr.Max())
    >>> window = wr.windows.DabaLite(counter.aggregate)
    >>> for x in range(4):
    ...     window.insert(x)
    >>> counter.take()
    3
    """

    def __init__(self, aggregate: Aggregate | type[Aggregate]) -> None:
        aggregate = as_aggregate(aggregate)
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


class CountedWindow:
    """A window whose operations return how often they combined, and which remembers the most.

    >>> import windrow as wr
    >>> counted = CountedWindow(wr.windows.DabaLite, wr.Max())
    >>> [counted.insert(x) for x in range(4)]
    [0, 1, 0, 2]
    >>> counted.evict(), counted.query(), counted.answer, counted.most_stored
    (2, 0, 3, 6)
    """

    def __init__(self, algorithm: type[Window], aggregate: Aggregate | type[Aggregate]) -> None:
        self._counter = CombineCounter(aggregate)
        self.window = algorithm(self._counter.aggregate)
        self.answer: Any = None
        self.most_stored = 0
        self.worst = {"insert": 0, "evict": 0, "bulk_evict": 0, "query": 0}

    def _done(self, operation: str) -> int:
        combines = self._counter.take()
        self.worst[operation] = max(self.worst[operation], combines)
        return combines

    def insert(self, value: Any) -> int:
        """Insert; returns the number of combines, as the others do."""
        self.window.insert(value)
        self.most_stored = max(self.most_stored, self.window.stored_partials())
        return self._done("insert")

    def evict(self) -> int:
        """Evict the oldest row."""
        self.window.evict()
        self.most_stored = max(self.most_stored, self.window.stored_partials())
        return self._done("evict")

    def bulk_evict(self, n: int) -> int:
        """Evict the n oldest rows."""
        self.window.bulk_evict(n)
        return self._done("bulk_evict")

    def query(self) -> int:
        """Query; the answer is in ``answer``."""
        self.answer = self.window.query()
        return self._done("query")
