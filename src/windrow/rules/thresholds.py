"""Rules that wait for the same operand, in order of their thresholds.

Those that a value passes are all before (or all behind) one place in that order, so of thousands of
rules only those between the old value's place and the new one's are looked at.
"""

from bisect import bisect_left, bisect_right, insort
from typing import Any

from windrow.errors import BadValue
from windrow.rules.expression import Operand

Entry = tuple[float, int]


class Thresholds:
    """The rules ``operand sign number`` for one operand and one sign, by number."""

    def __init__(self, operand: Operand, sign: str, slot: int) -> None:
        self.operand = operand
        self.sign = sign
        self.slot = slot
        """Where a key keeps the operand's value of the last time."""
        self._entries: list[Entry] = []  # (number, the rule's number)
        self._numbers: list[float] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, number: float, rule: int) -> None:
        """A rule with this threshold."""
        insort(self._entries, (number, rule))
        insort(self._numbers, number)

    def remove(self, number: float, rule: int) -> None:
        """Forget a rule."""
        place = bisect_left(self._entries, (number, rule))
        del self._entries[place]
        del self._numbers[place]

    def _place(self, value: Any) -> int:
        """Where the rules that the value passes end (``>``) or begin (``<``)."""
        upward = self.sign[0] == ">"
        if value is None or value != value:
            return 0 if upward else len(self._numbers)
        after = self.sign in (">=", "<")
        try:
            return (bisect_right if after else bisect_left)(self._numbers, value)
        except TypeError as error:
            about = self.operand.column or "a feature"
            raise BadValue(f"{about} {self.sign} a number: {value!r} is not one") from error

    def passed(self, value: Any) -> list[int]:
        """The rules that a value passes."""
        place = self._place(value)
        entries = self._entries[:place] if self.sign[0] == ">" else self._entries[place:]
        return [rule for _, rule in entries]

    def passes_any(self, value: Any) -> bool:
        """Whether a value passes any rule."""
        place = self._place(value)
        return place > 0 if self.sign[0] == ">" else place < len(self._numbers)

    def crossed(self, old: Any, new: Any) -> tuple[list[int], list[int], bool]:
        """The rules that only the new value passes, those that only the old one did; and whether
        the new one passes any."""
        before, after = self._place(old), self._place(new)
        upward = self.sign[0] == ">"
        passes = after > 0 if upward else after < len(self._numbers)
        if before == after:
            return [], [], passes
        low, high = (before, after) if before < after else (after, before)
        between = [rule for _, rule in self._entries[low:high]]
        return (between, [], passes) if (after > before) == upward else ([], between, passes)
