"""A list whose items keep their number for life, and whose oldest can be let go."""

from typing import Any


class Ring:
    """Items numbered as they come, in a circular list whose length is a power of two."""

    __slots__ = ("_items", "_mask", "end", "first")

    def __init__(self) -> None:
        self._items: list[Any] = [None] * 8
        self._mask = 7
        self.first = 0
        self.end = 0

    def __len__(self) -> int:
        return self.end - self.first

    def __getitem__(self, number: int) -> Any:
        return self._items[number & self._mask]

    def append(self, item: Any) -> None:
        """The next item."""
        if self.end - self.first > self._mask:
            self._grow()
        self._items[self.end & self._mask] = item
        self.end += 1

    def start(self, number: int) -> None:
        """The next item has this number; there is none now."""
        self.forget(self.end)
        self.first = self.end = number

    def forget(self, before: int) -> None:
        """Let go of the items with smaller numbers."""
        items, mask = self._items, self._mask
        before = min(before, self.end)
        while self.first < before:
            items[self.first & mask] = None
            self.first += 1

    def _grow(self) -> None:
        items = [self[number] for number in range(self.first, self.end)]
        self._mask = 2 * self._mask + 1
        self._items = [None] * (self._mask + 1)
        for number, item in enumerate(items, self.first):
            self._items[number & self._mask] = item
