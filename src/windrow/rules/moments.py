"""When keys are looked at though no event came: at the moments in which their windows change.

Most rules cannot start just because a row leaves a window (a count falls, and the rule waits for a
high one). While all are like that, they are *calm*, and only keys where one fires or may fire are
looked at. One other rule, or one negative value in a sum that was taken to only fall, makes them
*restless*: from then on every key is looked at whenever its windows change.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from windrow.aggregates import Count, Max, Min, Sum
from windrow.rules.expression import Threshold
from windrow.rules.key_state import KeyState
from windrow.shared import Query
from windrow.slides import Rows


class Moments:
    """The keys that are to be looked at, by when; and whether that must be all of them."""

    def __init__(self) -> None:
        self.restless = False
        """Whether a key where nothing fires can have a rule start by itself."""
        self.due: list[tuple[int, int, Any]] = []  # a heap: when, and of which key, oldest first
        self.never_negative: set[str] = set()  # columns whose sums only fall when rows leave

    def schedule(self, key: Any, state: KeyState, due: int | None) -> None:
        """Look at a key then, and not before."""
        if due is not None and due != state.due:
            heappush(self.due, (due, state.number, key))
        state.due = due

    def pop(self, until: int) -> tuple[int, int, Any] | None:
        """The next moment, and the key's number and name; it may have another moment since."""
        if not self.due or self.due[0][0] > until:
            return None
        return heappop(self.due)

    def keeps_calm(
        self, guard: Threshold | None, queries: dict[int, Query], rows_came: bool
    ) -> bool:
        """Whether a rule that waits for this cannot start just because a row leaves a window."""
        if guard is None:
            return False
        if guard.operand.feature is None:
            return True
        query = queries[guard.operand.feature]
        window, aggregate = query.window, query.aggregate
        if window.ending or not (isinstance(window, Rows) or window.includes_end):
            return False
        if type(aggregate) is Sum and guard.sign[0] == ">" and not rows_came:
            self.never_negative.add(aggregate.columns[0])
            return True
        falls = {Count: ">", Max: ">", Min: "<"}.get(type(aggregate))
        return falls == guard.sign[0]

    def disturbed_by(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has a negative value where none was expected."""
        for column in self.never_negative:
            value = row.get(column)
            if value is not None and not value >= 0:
                return True
        return False

    def become_restless(self) -> None:
        """For good."""
        self.restless = True
        self.never_negative.clear()
