"""DABA Lite one level up: a queue whose rows are segments of a stream, kept in a store.

The algorithm is that of ``windrow.windows.daba_lite``. Here a row is a whole segment, ⊕ merges the
partials of all its keys, and every partial lies in a store under its segment's number; what is kept
beside it are six numbers and the places of two sums. Sublists are ranges of segment numbers:

    F … L … R … A … B … E

so moving a segment from one sublist to the next moves a border, and nothing else. Each operation
reads at most five partials and writes at most four, whatever the length of the queue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Places(Protocol):
    """Partials under numbers."""

    def __getitem__(self, number: int, /) -> Any: ...

    def __setitem__(self, number: int, partial: Any, /) -> None: ...

    def __delitem__(self, number: int, /) -> None: ...


@dataclass
class Borders:
    """Where each sublist begins, and where the sums are; -1 where there is none."""

    f: int = 0
    l: int = 0  # noqa: E741
    r: int = 0
    a: int = 0
    b: int = 0
    e: int = 0
    front_sum: int = -1
    back_sum: int = -1
    sums: int = 0
    """How many sums there have been: each has a place of its own."""


class SegmentQueue:
    """Segments come at the back and leave at the front; ``parts`` are what all of them amount to.

    ``cells`` holds partials: those of segments under their number, sums under numbers below 0.
    """

    def __init__(
        self,
        cells: Places,
        merge: Callable[[Any, Any], Any],
        borders: Borders | None = None,
    ) -> None:
        self.cells = cells
        self.merge = merge
        self.borders = Borders() if borders is None else borders

    def __len__(self) -> int:
        return self.borders.e - self.borders.f

    def start_at(self, number: int) -> None:
        """An empty queue, whose first segment will have this number."""
        self._forget_sums()
        at = self.borders
        for place in range(at.f, at.e):
            del self.cells[place]
        at.f = at.l = at.r = at.a = at.b = at.e = number

    def push(self, partial: Any) -> None:
        """A segment at the back; then one step."""
        at, cells = self.borders, self.cells
        if at.back_sum < 0:
            at.back_sum = at.sums
            at.sums += 1
            cells[~at.back_sum] = partial
        else:
            cells[~at.back_sum] = self.merge(cells[~at.back_sum], partial)
        cells[at.e] = partial
        at.e += 1
        self._step()

    def evict(self) -> None:
        """The segment at the front leaves; then one step."""
        at = self.borders
        del self.cells[at.f]
        at.f += 1
        self._step()

    def parts(self) -> list[Any]:
        """Partials that together, in order, are those of all segments: two at most."""
        at = self.borders
        found = [self.cells[at.f]] if at.f < at.e else []
        if at.f < at.e and at.back_sum >= 0:
            found.append(self.cells[~at.back_sum])
        return found

    def _step(self) -> None:
        at, cells, merge = self.borders, self.cells, self.merge
        if at.l < at.r:  # shrink
            finished = merge(cells[at.l], cells[~at.front_sum])
            turned = merge(cells[at.a - 1], cells[at.a])
            cells[at.l], cells[at.a - 1] = finished, turned
            at.l += 1
            at.a -= 1
        elif at.a < at.b:  # shift
            at.a += 1
            at.l = at.r = at.a
        elif at.f < at.l:  # flip: the front becomes L, the back becomes R; then shrink
            if at.front_sum >= 0:
                del cells[~at.front_sum]
            at.front_sum, at.back_sum = at.back_sum, -1
            cells[at.f] = merge(cells[at.f], cells[~at.front_sum])
            at.l, at.r, at.a, at.b = at.f + 1, at.b, at.e - 1, at.e
        else:  # one segment at most
            at.l = at.r = at.a = at.b = at.e
            self._forget_sums()

    def _forget_sums(self) -> None:
        at = self.borders
        for place in (at.front_sum, at.back_sum):
            if place >= 0:
                del self.cells[~place]
        at.front_sum = at.back_sum = -1
