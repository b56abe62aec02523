"""FlatFAT, the reactive aggregator: a perfect binary tree over a ring of rows.

Node i's children are 2i and 2i + 1; rows are the leaves, in a ring whose capacity is a power of
two. Changing a leaf recomputes its path to the root. Where the ring wraps round, the root would
combine young rows before old ones, so the answer is put together from the two runs.

Needs: associativity.
Time: insert and evict at most 1 + log2 of the capacity (amortised, with resizing); query 1 unless
the ring is wrapped, then at most 2·log2 of the capacity; resizing n.
Space: at most 4n partials, counting nodes that hold one (2n for a full tree).
Paper: Tangwongsan, Hirzel, Schneider, Wu, "General Incremental Sliding-Window Aggregation", VLDB
2015; summarised in VLDB Journal 2021, section 8.1.
"""

from collections.abc import Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.windows.base import STALE, Card, Runs, Window

_SMALLEST = 2


class FlatFat(Window):
    """A perfect tree, resized by halves and doubles."""

    card = Card(
        title="FlatFAT (reactive aggregator)",
        needs="associativity",
        insert="O(log n) amortised",
        evict="O(log n) amortised",
        query="O(log n)",
        partials="at most 4n",
    )
    __slots__ = ("_capacity", "_front", "_size", "_tree")

    def _reset(self) -> None:
        self._build([], _SMALLEST)

    def _build(self, rows: Sequence[Partial], capacity: int) -> None:
        tree = [EMPTY] * capacity + list(rows) + [EMPTY] * (capacity - len(rows))
        merge = self._merge
        for node in range(capacity - 1, 0, -1):
            tree[node] = merge(tree[2 * node], tree[2 * node + 1])
        self._tree: list[Partial] = tree
        self._capacity = capacity
        self._front, self._size = 0, len(rows)

    def _rows(self) -> list[Partial]:
        capacity, front = self._capacity, self._front
        return [self._tree[capacity + (front + i) % capacity] for i in range(self._size)]

    def _set(self, slot: int, partial: Partial) -> None:
        """Compute the whole path before writing it."""
        tree, merge = self._tree, self._merge
        node = self._capacity + slot
        path = [partial]
        while node > 1:
            if node & 1:
                partial = merge(tree[node - 1], partial)
            else:
                partial = merge(partial, tree[node + 1])
            path.append(partial)
            node >>= 1
        node = self._capacity + slot
        for partial in path:
            tree[node] = partial
            node >>= 1

    def push(self, partial: Partial) -> None:
        """Into the next leaf."""
        if self._size == self._capacity:
            self._build(self._rows(), 2 * self._capacity)
        self._set((self._front + self._size) % self._capacity, partial)
        self._size += 1
        self._answer = STALE

    def evict(self) -> None:
        """Empty the oldest leaf."""
        if not self._size:
            raise self._empty()
        if self._capacity > _SMALLEST and self._size - 1 <= self._capacity // 4:
            self._build(self._rows()[1:], self._capacity // 2)
        else:
            self._set(self._front, EMPTY)
            self._front = (self._front + 1) % self._capacity
            self._size -= 1
        self._answer = STALE

    def total(self) -> Partial:
        """The root; or the old run, then the young run, where the ring is wrapped."""
        end = self._front + self._size
        if end <= self._capacity:
            return self._tree[1]
        return self._merge(self._suffix(self._front), self._prefix(end - self._capacity - 1))

    def _suffix(self, slot: int) -> Partial:
        """From a leaf to the right edge."""
        tree, merge = self._tree, self._merge
        node = self._capacity + slot
        partial = tree[node]
        while node > 1:
            if not node & 1:
                partial = merge(partial, tree[node + 1])
            node >>= 1
        return partial

    def _prefix(self, slot: int) -> Partial:
        """From the left edge to a leaf."""
        tree, merge = self._tree, self._merge
        node = self._capacity + slot
        partial = tree[node]
        while node > 1:
            if node & 1:
                partial = merge(tree[node - 1], partial)
            node >>= 1
        return partial

    def __len__(self) -> int:
        return self._size

    def stored_partials(self) -> int:
        """Nodes that hold a partial; a leaf of a row counts also where its value is missing."""
        inner = sum(node is not EMPTY for node in self._tree[: self._capacity])
        return inner + self._size

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Every node is its children's aggregate; leaves outside the window are empty."""
        self._require_length(rows)
        tree, capacity = self._tree, self._capacity
        self._require(
            len(tree) == 2 * capacity
            and 0 <= self._front < capacity
            and 0 <= self._size <= capacity
            and capacity >= _SMALLEST
            and capacity & (capacity - 1) == 0,
            f"{len(tree)} nodes, front {self._front}, size {self._size} do not fit {capacity}",
        )
        for node in range(1, capacity):
            self._require_same(tree[node], (tree[2 * node], tree[2 * node + 1]), f"node {node}")
        for i in range(self._size, capacity):
            leaf = tree[capacity + (self._front + i) % capacity]
            self._require(leaf is EMPTY, f"a leaf outside the window holds {leaf!r}")
        for found, expected in zip(self._rows(), rows or (), strict=False):
            self._require_same(found, [expected], "a leaf")

    def _state(self) -> tuple[list[int], Runs]:
        return [self._capacity, self._front, self._size], [list(self._tree)]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        self._capacity, self._front, self._size = numbers
        (self._tree,) = runs
