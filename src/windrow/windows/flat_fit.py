"""FlatFIT, the flat and fast index traverser: rows with pointers over what is already combined.

Row i keeps the aggregate of rows i … next(i) − 1. A query walks from the oldest row along the
pointers to the end and, on its way back, makes every row on the path point to the end: the next
walk is short. Insert and evict apply no ⊕ at all, so this is the algorithm for many changes between
queries and expensive ⊕.

The ring doubles when it is full and halves when it is three quarters empty, so that the window may
have any size.

Needs: associativity.
Time: insert and evict 0, query at most n − 1, amortised O(1) per operation.
Space: n partials and n indices.
Paper: Shein, Chrysanthis, Labrinidis, "FlatFIT", SSDBM 2017; with resizing as in Tangwongsan et
al., VLDB Journal 2021, section 7.
"""

from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window

_SMALLEST = 4


class FlatFit(Window):
    """A ring of (partial, pointer), compressed by the queries that walk it."""

    card = Card(
        title="FlatFIT",
        needs="associativity",
        insert="0",
        evict="0",
        query="n − 1, amortised O(1)",
        partials="n, and n indices",
    )
    __slots__ = ("_capacity", "_front", "_next", "_partials", "_size")

    def _reset(self) -> None:
        self._capacity = _SMALLEST
        self._partials: list[Partial] = [EMPTY] * _SMALLEST
        self._next = [0] * _SMALLEST
        self._front = self._size = 0  # front counts all rows ever evicted; slots are modulo

    def _resize(self, capacity: int) -> None:
        partials: list[Partial] = [EMPTY] * capacity
        pointers = [0] * capacity
        for i in range(self._front, self._front + self._size):
            partials[i % capacity] = self._partials[i % self._capacity]
            pointers[i % capacity] = self._next[i % self._capacity]
        self._partials, self._next, self._capacity = partials, pointers, capacity

    def push(self, partial: Partial) -> None:
        """A row that points to the one after it."""
        if self._size == self._capacity:
            self._resize(2 * self._capacity)
        number = self._front + self._size
        slot = number % self._capacity
        self._partials[slot] = partial
        self._next[slot] = number + 1
        self._size += 1
        self._answer = STALE

    def evict(self) -> None:
        """Forget the oldest."""
        if not self._size:
            raise self._empty()
        self._partials[self._front % self._capacity] = EMPTY
        self._front += 1
        self._size -= 1
        if self._capacity > _SMALLEST and self._size <= self._capacity // 4:
            self._resize(self._capacity // 2)
        self._answer = STALE

    def total(self) -> Partial:
        """Walk to the end, then shorten the path for the next walk."""
        if not self._size:
            return EMPTY
        partials, pointers, capacity, merge = (
            self._partials,
            self._next,
            self._capacity,
            self._merge,
        )
        end = self._front + self._size
        path = []
        number = self._front
        while number < end:
            path.append(number % capacity)
            number = pointers[number % capacity]
        partial = partials[path.pop()]
        while path:
            slot = path.pop()
            partial = merge(partials[slot], partial)
            partials[slot] = partial
            pointers[slot] = end
        return partial

    def __len__(self) -> int:
        return self._size

    def stored_partials(self) -> int:
        """n, and as many indices."""
        return self._size

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Every row points past itself and not past the end, and holds what it jumps over."""
        self._require_length(rows)
        front, capacity, end = self._front, self._capacity, self._front + self._size
        self._require(
            len(self._partials) == len(self._next) == capacity and self._size <= capacity,
            f"{self._size} rows do not fit {len(self._partials)} slots of {capacity}",
        )
        for number in range(front, end):
            pointer = self._next[number % capacity]
            self._require(number < pointer <= end, f"row {number} points to {pointer} of {end}")
            if rows is not None:  # runs overlap: quadratic, and only where tests ask for it
                self._require_same(
                    self._partials[number % capacity],
                    rows[number - front : pointer - front],
                    f"row {number}",
                )

    def _state(self) -> tuple[list[int], Runs]:
        window = range(self._front, self._front + self._size)
        pointers = [self._next[number % self._capacity] - self._front for number in window]
        return pointers, [[self._partials[number % self._capacity] for number in window]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        (run,) = runs
        self._size, self._front = len(run), 0
        while self._capacity < self._size:
            self._capacity *= 2
        unused = self._capacity - self._size
        self._partials = [*run, *[EMPTY] * unused]
        self._next = [*numbers, *[0] * unused]
