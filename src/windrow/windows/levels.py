"""The levels of a monoid tree: elements by level and number, in chunks.

Rows are numbered from 0 as they come and keep their number for life. Element i of level l stands
for the rows [i·2^l, (i+1)·2^l), its children are the elements 2i and 2i + 1 of the level below. So
the position of an element says what it is about, nothing is ever renumbered, and what lies before
the oldest row is dead: it can be forgotten at any time, by anybody.
"""

from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial

BITS = 9
SIZE = 1 << BITS
"""Elements in a chunk."""
MASK = SIZE - 1
_SWEPT_AT_ONCE = 4

Chunk = list[Partial]


class Levels:
    """Chunks in memory."""

    __slots__ = ("_swept", "chunks")

    def __init__(self) -> None:
        self.chunks: list[dict[int, Chunk]] = []
        self._swept: list[int] = []  # per level: chunks before this one are gone

    def get(self, level: int, number: int) -> Partial:
        """An element that was put and is not dead."""
        return self.chunks[level][number >> BITS][number & MASK]

    def put(self, level: int, number: int, partial: Partial) -> None:
        """An element's value: of the level's next one, or of one that is there.

        Elements that were dead before their time came are left out.
        """
        if level == len(self.chunks):
            self._grow()
        chunk = self.chunks[level].get(number >> BITS)
        if chunk is None:
            chunk = self._begin(level, number >> BITS)
        place = number & MASK
        if len(chunk) == place:
            chunk.append(partial)
        elif len(chunk) < place:
            chunk.extend([EMPTY] * (place - len(chunk)))
            chunk.append(partial)
        else:
            chunk[place] = partial

    def _grow(self) -> None:
        self.chunks.append({})
        self._swept.append(-1)

    def _begin(self, level: int, name: int) -> Chunk:
        chunk: Chunk = []
        self.chunks[level][name] = chunk
        if self._swept[level] < 0:
            self._swept[level] = name
        return chunk

    def check(self, partials: Sequence[Partial]) -> None:
        """Raise for partials that cannot be held here; in memory all can."""

    def remove_last(self, level: int, number: int) -> None:
        """Take back the element that was put last."""
        self.chunks[level][number >> BITS].pop()

    def sweep(self, first: int, budget: int = _SWEPT_AT_ONCE) -> None:
        """Free a few chunks that lie before the oldest row: a bounded amount of work."""
        for level, chunks in enumerate(self.chunks):
            name, living = self._swept[level], first >> level >> BITS
            if name < 0:
                continue
            while name < living and budget:
                if chunks.pop(name, None) is not None:
                    budget -= 1
                name += 1
            self._swept[level] = name

    def stored(self) -> int:
        """How many elements are held here, the dead that were not yet freed among them."""
        return sum(len(chunk) for chunks in self.chunks for chunk in chunks.values())
