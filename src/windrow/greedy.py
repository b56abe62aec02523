"""Greedy SWA: windows that only move forward, with the fewest applications of ⊕ there can be.

The current window is a binary tree. A node covers a range of rows; a right child always keeps its
aggregate, a left child's is dropped once its parent's is known, since no later window can use it.
To slide, the largest subtrees that the new window can reuse and the new rows are folded from the
right, so that what may be needed again is kept.

Needs: associativity.
Combines: the minimum possible by associativity alone, fewer than 3n in all (the last W of n rows
need 3 − 4/W a row, whatever the algorithm); a repeated window costs none.
Space: O(longest window).
Paper: Basin, Klaedtke, Zălinescu, "Greedily computing associative aggregations on sliding windows",
Information Processing Letters 2015 (Theorems 2, 5 and section 5).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from windrow.aggregates import EMPTY, Aggregate, Partial, as_aggregate
from windrow.aggregates.values import listed
from windrow.errors import BadSpecification, InvariantBroken
from windrow.windows.compare import same

_DROPPED = object()


class _Node:
    """A subtree: rows ``left`` to ``right``, their aggregate, and two children or none."""

    __slots__ = ("after", "before", "left", "right", "value")

    def __init__(
        self,
        left: int,
        right: int,
        value: Partial,
        before: "_Node | None" = None,
        after: "_Node | None" = None,
    ) -> None:
        self.left, self.right, self.value = left, right, value
        self.before, self.after = before, after


class Greedy:
    """The online form: give rows as they come, and windows as they are wanted.

    >>> import windrow as wr
    >>> online = Greedy(wr.Sum())
    >>> for value in (2, 4, 5):
    ...     online.insert(value)
    >>> online.window(0, 2)
    11
    >>> online.insert(2)
    >>> online.window(0, 3), online.window(1, 3)
    (13, 11)
    """

    def __init__(self, aggregate: Aggregate | type[Aggregate]) -> None:
        self.aggregate = as_aggregate(aggregate)
        self._lift = self.aggregate.lifter()
        self._merge = self.aggregate.merger()
        self._rows: dict[int, Partial] = {}  # inserted, not yet in the tree
        self._inserted = 0
        self._tree: _Node | None = None

    def insert(self, value: Any) -> None:
        """Add the next row."""
        self._rows[self._inserted] = self._lift(value)
        self._inserted += 1

    def window(self, left: int, right: int) -> Any:
        """The aggregate of rows ``left`` to ``right`` (0-based, both included)."""
        return self.aggregate.answer(self.total(left, right))

    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``: ``window`` without ``lower``."""
        tree = self._tree
        before = (0, -1) if tree is None else (tree.left, tree.right)
        if not 0 <= left <= right < self._inserted:
            raise BadSpecification(
                f"window ({left}, {right}) is not within the {self._inserted} rows there are"
            )
        if left < before[0] or right < before[1]:
            raise BadSpecification(
                f"window ({left}, {right}) follows {before} and moves back: greedy windows only "
                "move forward. Sort the windows, or use windrow.shared.BInt"
            )
        new_from = max(left, before[1] + 1)
        pieces = [_Node(i, i, self._rows[i]) for i in range(right, new_from - 1, -1)]
        pieces += self._reusable(left)
        whole = pieces[0]
        for piece in pieces[1:]:
            value = self._merge(piece.value, whole.value)
            whole = _Node(piece.left, whole.right, value, piece, whole)
        for piece in pieces[1:]:
            piece.value = _DROPPED  # a left child now; only the value of the whole is used again
        for i in range(before[1] + 1, right + 1):
            del self._rows[i]
        self._tree = whole
        return whole.value

    def _reusable(self, left: int) -> list[_Node]:
        """The largest subtrees within rows from ``left`` on, youngest first."""
        node, found = self._tree, []
        if node is None or left > node.right:
            return []
        while node is not None and node.left != left:
            before, after = node.before, node.after
            assert after is not None
            if left >= after.left:
                node = after
            else:
                found.append(after)
                node = before
        return [*found, node] if node is not None else found

    def stored_partials(self) -> int:
        """Nodes that keep their aggregate."""
        return sum(node.value is not _DROPPED for node in self._nodes())

    def _nodes(self) -> Iterator[_Node]:
        stack = [self._tree] if self._tree is not None else []
        while stack:
            node = stack.pop()
            yield node
            stack += [child for child in (node.before, node.after) if child is not None]

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Conditions S1 to S3 and V1 to V3 of section 3; ``rows`` are the partials of all rows."""

        def require(holds: bool, condition: str) -> None:
            if not holds:
                raise InvariantBroken(f"Greedy: condition {condition} does not hold")

        if self._tree is not None:
            require(self._tree.value is not _DROPPED, "V3")
        for node in self._nodes():
            before, after = node.before, node.after
            require(node.left <= node.right, "S1")
            if node.left == node.right:
                require(before is None and after is None, "S2")
            else:
                require(
                    before is not None
                    and after is not None
                    and (before.left, after.right) == (node.left, node.right)
                    and before.right + 1 == after.left,
                    "S3",
                )
            if after is not None:
                require(after.value is not _DROPPED, "V2")
            if rows is not None and node.value is not _DROPPED:
                expected: Partial = EMPTY
                for row in rows[node.left : node.right + 1]:
                    expected = self._merge(expected, row)
                require(same(self.aggregate, node.value, expected), "V1")


def sliding_window(
    aggregate: Aggregate | type[Aggregate],
    values: Iterable[Any],
    windows: Iterable[tuple[int, int]],
) -> list[Any]:
    """The aggregate of each window, a 0-based (left, right) pair with both ends included.

    Neither end may move back from one window to the next.

    >>> import windrow as wr
    >>> sliding_window(wr.Sum(), (2, 4, 5, 2), [(0, 2), (0, 3), (1, 3)])
    [11, 13, 11]
    """
    online = Greedy(aggregate)
    for value in listed(values):
        online.insert(value)
    return [online.window(left, right) for left, right in windows]
