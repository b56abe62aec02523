"""The stateful operator of rules on streams: rows and texts of rules in, events out."""

from typing import Any

import pyarrow as pa

from windrow.spark.envelopes import sealed
from windrow.spark.stream_worker import CELL, NUMBER, BucketProcessor, StateSpace, StateStore

MARK = {b"windrow": b"rules"}
"""What an envelope of rules has, and one of rows has not."""


class _RuleStore(StateStore):
    """A bucket's state, with a place for rules."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self.rules = StateSpace(handle.getMapState("rules", NUMBER, CELL))


class RuleProcessor(BucketProcessor):
    """Takes rows and texts of rules, gives events."""

    def opened(self, handle: Any) -> StateStore:
        """Where the state lies."""
        return _RuleStore(handle)

    def bucket(self, key: Any, tables: list[pa.Table]) -> tuple[Any, list[pa.Table]]:
        """The newest text is in force for everything in this batch."""
        from windrow.columns.alarms import RuleBucket

        texts = [row for t in tables if _is_rules(t) for row in t.to_pylist()]
        newest = max(texts, key=lambda row: (row["place"], row["version"]), default=None)
        given = None if newest is None else (str(newest["version"]), str(newest["text"]))
        rows = [table for table in tables if not _is_rules(table)]
        # a history's rules are those of a bucket that begins with it
        before = self.extras.rules if key[0] in self.history else None
        return RuleBucket(self.plan, self.store, given, key[0] == 0, before), rows

    def sealed(self, turn: Any) -> bytes | None:
        """The events."""
        return None if turn.answered is None else sealed(turn.answered)


def _is_rules(table: pa.Table) -> bool:
    return MARK.items() <= (table.schema.metadata or {}).items()
