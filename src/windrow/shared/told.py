"""What a hub has told: which answers are others than when last asked."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from windrow.shared.query import Query
from windrow.slides import Rows
from windrow.windows.compare import equal


class Told:
    """The answers that were told last, by query and key."""

    def __init__(self) -> None:
        self.touched: set[Any] = set()
        """Keys that had a row, or were dropped, since last asked."""
        self._answers: dict[int, dict[Any, Any]] = {}
        self._at: int | None = None

    def touch(self, key: Any) -> None:
        """A key had a row, or was dropped; nobody need know while nothing was told."""
        if self._answers:
            self.touched.add(key)

    def forget(self, query: Query) -> None:
        """A query that was dropped."""
        self._answers.pop(query.number, None)

    def changes(
        self,
        queries: Iterable[tuple[Query, bool]],
        keys: Collection[Any],
        answer: Callable[[Query, Any], Any],
        moment: int | None,
    ) -> dict[Any, Any]:
        """The answers that changed, by query, or by (query, key) where it is of each key."""
        passed = moment != self._at
        out: dict[Any, Any] = {}
        for query, each in queries:
            told = self._answers.setdefault(query.number, {})
            if not each:
                new = answer(query, query.key)
                if query.key not in told or not equal(told[query.key], new):
                    out[query] = told[query.key] = new
                continue
            slides = passed and (not isinstance(query.window, Rows) or query.window.needs_time)
            for key in dict.fromkeys([*keys, *told]):
                if not (slides or key in self.touched or key not in told):
                    continue
                new = answer(query, key)
                if key not in told or not equal(told[key], new):
                    out[(query, key)] = told[key] = new
                if key not in keys:  # dropped, and told for the last time
                    del told[key]
        self.touched = set()
        self._at = moment
        return out
