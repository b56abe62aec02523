"""The tree of ``fiba.py``: a B-tree in order of time, changed from its two ends.

All leaves are at one depth and hold the rows. Inner nodes on a spine (the left or the right edge)
have at least two children, other nodes at least half of the most. Rows leave at the old end only,
so only the left spine can become thin, and only its nodes are ever fused with a neighbour.

A node keeps the aggregate of what is below it, except for children on a spine. Chains bring the
rest of the spines down to the two leaves at the ends, the fingers:

    left chain, level k     what is above and right of the left spine's node of level k, with the
                            root, without the right spine below it
    right chain, level k    what is above and left of the right spine's node, without the root
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from windrow.aggregates import EMPTY, Partial

MOST_ROWS = 4
MOST_CHILDREN = 6
"""In a leaf, and in an inner node. With fewer than 5 children a split and a fusion could follow
each other on every level. Of what was tried at n = 4,096 (2 to 8 rows, 5 to 16 children), more rows
make an eviction dearer (8: 3.2 ⊕ instead of 1.7), fewer an insert, more children a late row."""


_FREED_AT_ONCE = 8


class Node:
    """Some rows (a leaf) or children, oldest first.

    A leaf's ``times`` are its rows'; an inner node's stand between its children: the time of the
    first row to their right. ``agg`` and ``rows`` leave out children on a spine.
    """

    __slots__ = ("agg", "items", "rows", "times")

    def __init__(self, times: list[int], items: list[Any]) -> None:
        self.times = times
        self.items = items
        self.agg: Partial = EMPTY
        self.rows = 0


class Tree:
    """The two spines, leaf first and root last, with their chains; all else hangs below them.

    An operation whose ⊕ raises changes nothing.
    """

    __slots__ = ("_gone", "_merge", "_saved", "left", "left_chain", "right", "right_chain")

    def __init__(self, merge: Callable[[Partial, Partial], Partial]) -> None:
        root = Node([], [])
        self.left, self.right = [root], [root]
        self.left_chain: list[Partial] = [EMPTY]
        self.right_chain: list[Partial] = [EMPTY]
        self._merge = merge
        self._saved: list[tuple[Node, list[int], list[Any], Partial, int]] = []
        self._gone: list[Node] = []  # subtrees that were cut off, freed a few nodes at a time

    def levels(self) -> list[list[Node]]:
        """All nodes, leaves first."""
        levels = [[self.left[-1]]]
        for _ in self.left[1:]:
            levels.append([child for node in levels[-1] for child in node.items])
        return levels[::-1]

    # --- insert ---------------------------------------------------------------------------------

    def insert(self, partial: Partial, time: int) -> None:
        """A row after all rows of its time and earlier ones."""
        if self._gone:
            self.free_some()
        leaf = self.right[0]
        times = leaf.times
        if len(times) < MOST_ROWS and (not times or time >= times[-1]):
            leaf.agg = self._merge(leaf.agg, partial)
            times.append(time)
            leaf.items.append(partial)
            leaf.rows += 1
        else:
            with self._all_or_nothing():
                self._place(partial, time)

    def _place(self, partial: Partial, time: int) -> None:
        """Up both spines until the time is below one of them; down to a leaf; split upwards."""
        left, right = self.left, self.right
        level, top = 0, len(left) - 1
        while level < top and left[level + 1].times[0] <= time < right[level + 1].times[-1]:
            level += 1
        spine = left if level < top and time < left[level + 1].times[0] else right
        node, absorbs = spine[level], level
        parents = spine[level + 1 :]
        for _ in range(level):
            parents.insert(0, node)
            node = node.items[bisect_right(node.times, time)]
        i = bisect_right(node.times, time)
        last = node is right[0] and i == len(node.times)
        self._insert_at(node, i, i, time, partial)
        level = 0
        while True:
            if len(node.items) > (MOST_CHILDREN if level else MOST_ROWS):
                if level == len(left) - 1:
                    parents.append(self._raise_root(node))
                separator, other = self._split(node, level, last)
                if not last:  # after the last, what is left is what it had without its spine child
                    self._refresh(node, level)
                self._refresh(other, level)
                node = parents[level]
                i = bisect_right(node.times, time)
                self._insert_at(node, i, i + 1, separator, other)
            elif last and len(node.items) > 2:  # its last child has just left the spine
                node.agg = self._merge(node.agg, node.items[-2].agg)
                node.rows += node.items[-2].rows
                break
            else:
                self._refresh(node, level)
                if level >= absorbs:
                    break
                node = parents[level]
                self._edit(node)
            level += 1
        self._carry_down(node, level)

    def _insert_at(self, node: Node, i: int, j: int, time: int, item: Any) -> None:
        self._edit(node)
        node.times.insert(i, time)
        node.items.insert(j, item)

    def _raise_root(self, child: Node) -> Node:
        root = Node([], [child])
        for spine in (self.left, self.right):
            spine.append(root)
        for aggs in (self.left_chain, self.right_chain):
            aggs.append(EMPTY)
        return root

    def _split(self, node: Node, level: int, last: bool) -> tuple[int, Node]:
        """Half of a node, or as little as a spine may have, goes to a new one on its right.

        After the last row the node stays as full as it can be, and its aggregate what it was: with
        halves, a row in order costs 5.5 ⊕ instead of 1.3.
        """
        inner = min(level, 1)
        middle = len(node.items) - 1 - inner if last else len(node.items) // 2
        separator = node.times[middle - inner]
        other = Node(node.times[middle:], node.items[middle:])
        del node.times[middle - inner :], node.items[middle:]
        if node is self.right[level]:
            self.right[level] = other
        return separator, other

    # --- evict ----------------------------------------------------------------------------------

    def evict(self, n: int) -> None:
        """Drop the ``n`` oldest rows; at least one stays."""
        self.free_some()
        leaf = self.left[0]
        if n < len(leaf.items):
            leaf.agg = reduce(self._merge, leaf.items[n:])
            del leaf.times[:n], leaf.items[:n]
            leaf.rows -= n
        else:
            before = len(self._gone)
            try:
                with self._all_or_nothing():
                    self._cut(n)
            except BaseException:
                del self._gone[before:]
                raise

    def bury(self, other: "Tree") -> None:
        """Free another tree, too, by and by."""
        self._gone += [other.left[-1], *other._gone]

    def free_some(self) -> None:
        """Let a few nodes go: freeing a million at once would be the pause that is not wanted."""
        gone = self._gone
        for _ in range(min(len(gone), _FREED_AT_ONCE)):
            node = gone.pop()
            if node.items and isinstance(node.items[0], Node):
                gone += node.items

    def _cut(self, n: int) -> None:
        """Drop what is left of a path from the left spine down to the row that will be oldest."""
        left, right = self.left, self.right
        reach = 0
        while reach < len(left) - 1 and n >= left[reach].rows:
            n -= left[reach].rows
            reach += 1
        node, i = left[reach], 1
        for level in range(reach, 0, -1):
            end = len(node.items) - (node is right[level])  # the spine's child counts only its own
            while i < end and n >= node.items[i].rows:
                n -= node.items[i].rows
                i += 1
            self._drop(node, i)
            left[level] = node
            node, i = node.items[0], 0
        left[0] = node
        if n:
            self._drop(node, n)
            self._refresh(node, 0)
        self._lower_root()
        shared: set[int] = set()
        for level in range(min(reach, len(left) - 2), 0, -1):
            reach = max(reach, self._thicken(level, shared))
        reach = min(reach, len(left) - 1)
        for level in range(1, reach + 1):
            if level in shared and level < len(left) - 1:
                self._refresh(left[level + 1].items[1], level)
            self._refresh(left[level], level)
        self._carry_down(left[reach], reach)

    def _drop(self, node: Node, n: int) -> None:
        self._edit(node)
        if n and isinstance(node.items[0], Node):
            self._gone += node.items[:n]
        del node.times[:n], node.items[:n]

    def _lower_root(self) -> None:
        while len(self.left) > 1 and len(self.left[-1].items) == 1:
            for levels in (self.left, self.right, self.left_chain, self.right_chain):
                levels.pop()
            self.left_chain[-1] = self.right_chain[-1] = EMPTY

    def _thicken(self, level: int, shared: set[int]) -> int:
        """Fuse a left-spine node of one child with its neighbour, or share; then see its parent.

        Returns the highest level that changed; ``shared`` collects levels of changed neighbours.
        """
        left = self.left
        while level < len(left) - 1 and len(left[level].items) == 1:
            parent = left[level + 1]
            node, other = parent.items[:2]
            for each in (parent, node, other):
                self._edit(each)
            node.times.append(parent.times[0])
            if len(other.items) < MOST_CHILDREN:
                node.times += other.times
                node.items += other.items
                del parent.times[0], parent.items[1]
                if other is self.right[level]:
                    self.right[level] = node
                self._lower_root()
            else:
                half = len(other.items) // 2
                node.times += other.times[: half - 1]
                node.items += other.items[:half]
                parent.times[0] = other.times[half - 1]
                del other.times[:half], other.items[:half]
                shared.add(level)
            level += 1
        return level

    # --- aggregates -----------------------------------------------------------------------------

    def own(self, node: Node, level: int) -> list[Node]:
        """An inner node's children that are on no spine."""
        end = len(node.items) - (node is self.right[level])
        return node.items[int(node is self.left[level]) : end]

    def _refresh(self, node: Node, level: int) -> None:
        """A node's aggregate and number of rows, from its items."""
        if level:
            own = self.own(node, level)
            node.agg = reduce(self._merge, [child.agg for child in own], EMPTY)
            node.rows = sum([child.rows for child in own])
        else:
            node.agg = reduce(self._merge, node.items)
            node.rows = len(node.items)

    def _carry_down(self, node: Node, level: int) -> None:
        """Bring what changed in a spine's node to the chains below it."""
        left, right, top = self.left, self.right, len(self.left) - 1
        if node is left[level]:
            aggs = self.left_chain
            for k in range(level - 1, -1, -1):
                aggs[k] = self._merge(left[k + 1].agg, aggs[k + 1])
        if node is right[level]:
            aggs = self.right_chain
            for k in range(level - 1, -1, -1):
                aggs[k] = EMPTY if k == top - 1 else self._merge(aggs[k + 1], right[k + 1].agg)

    def total(self) -> Partial:
        """The first leaf, the two chains, the last leaf."""
        if len(self.left) == 1:
            return self.left[0].agg
        merge = self._merge
        older = merge(self.left[0].agg, self.left_chain[0])
        return merge(older, merge(self.right_chain[0], self.right[0].agg))

    def between(self, first: int, last: int) -> Partial:
        """The rows with first ≤ time ≤ last."""
        return self._between(self.left[-1], len(self.left) - 1, first, last)

    def _between(self, node: Node, level: int, first: int | None, last: int | None) -> Partial:
        """Without a bound (None) where the rows below the node are known to keep it."""
        spine = node is self.left[level] or node is self.right[level]
        if first is None and last is None and not (spine and level):
            return node.agg
        start = 0 if first is None else bisect_left(node.times, first)
        end = len(node.times) if last is None else bisect_right(node.times, last)
        if not level:
            return reduce(self._merge, node.items[start:end], EMPTY)
        total: Partial = EMPTY
        for i in range(start, end + 1):
            low, high = first if i == start else None, last if i == end else None
            total = self._merge(total, self._between(node.items[i], level - 1, low, high))
        return total

    def count_before(self, time: int) -> int:
        """How many rows are of an earlier time."""
        left = self.left
        level = count = 0
        while level < len(left) - 1 and left[level + 1].times[0] < time:
            count += left[level].rows
            level += 1
        node, first = left[level], 1  # the child on the spine is counted
        for _ in range(level):
            i = bisect_left(node.times, time)
            count += sum(child.rows for child in node.items[first:i])
            node, first = node.items[i], 0
        return count + bisect_left(node.times, time)

    # --- all or nothing -------------------------------------------------------------------------

    def _edit(self, node: Node) -> None:
        """Remember a node before it changes."""
        self._saved.append((node, node.times[:], node.items[:], node.agg, node.rows))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If ⊕ raises, the nodes that were remembered, and the spines, are as they were."""
        spines = self.left[:], self.right[:], self.left_chain[:], self.right_chain[:]
        try:
            yield
        except BaseException:
            for node, times, items, agg, rows in reversed(self._saved):
                node.times, node.items, node.agg, node.rows = times, items, agg, rows
            self.left, self.right, self.left_chain, self.right_chain = spines
            raise
        finally:
            self._saved.clear()
