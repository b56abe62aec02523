"""What the rules know of a key between two looks at it."""

from collections.abc import Mapping
from typing import Any


class KeyState:
    """What is known of a key: its last row, what its operands were, and which rules fire."""

    __slots__ = ("due", "firing", "number", "row", "values")

    def __init__(self, row: Mapping[str, Any], number: int) -> None:
        self.row = row
        self.number = number  # keys that came later have larger ones
        self.values: list[Any] = []  # by the slot of the simple rules' thresholds
        self.firing: set[int] = set()  # rules that are not simple
        self.due: int | None = None  # when its windows change next, if a rule could care

    def make_room(self, slots: int) -> None:
        """For the values of so many slots."""
        if len(self.values) < slots:
            self.values += [None] * (slots - len(self.values))


NO_KEY = ("windrow: no key",)
"""Stands for a missing key, which is a key: for a hub None is the whole stream."""


def told(key: Any) -> Any:
    """A key as people have it."""
    return None if key == NO_KEY else key
