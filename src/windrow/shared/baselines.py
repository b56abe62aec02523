"""What sharing is compared with: all answers kept, none kept, and a balanced tree.

In the same form as the others, so that tests and experiments can exchange them; no planner chooses
them.
"""

from typing import Any, Self

from windrow.aggregates import EMPTY, Aggregate, Partial
from windrow.errors import InvariantBroken, Refused
from windrow.shared.base import Card, Shared
from windrow.shared.line import Line, as_suffix_or_historical
from windrow.shared.ring import Ring
from windrow.slides import Rows
from windrow.windows import SubtractOnEvict, TwoStacksLite


class MaterialiseNone(Shared):
    """Keep the rows, fold them when asked."""

    card = Card("materialise none", "associativity", "0", "W − 1", "N")

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        self._rows = Ring()
        self._rows.start(number)

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Keep the row."""
        self._rows.append(partial)

    def forget(self, limit: int) -> None:
        """Let rows go."""
        self._rows.forget(limit)

    def row(self, number: int) -> Partial:
        """One row's own partial."""
        return self._rows[number]

    def total(self, left: int, right: int) -> Partial:
        """Fold the rows."""
        partial: Partial = EMPTY
        for number in range(left, right + 1):
            partial = self._merge(partial, self._rows[number])
        return partial

    def stored_partials(self) -> int:
        """The rows."""
        return len(self._rows)

    def check_invariants(self) -> None:
        """The rows are those that can be asked for."""
        if (self._rows.first, self._rows.end) != (self.line.first, self.line.end):
            raise InvariantBroken(f"{type(self).__name__}: other rows than those that are there")


class MaterialiseAll(MaterialiseNone):
    """Keep every window's answer up to date: windows of rows that are known before."""

    card = Card("materialise all", "windows known", "3 for each window", "0", "N for each window")

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        windows: Any,
        *,
        unit: str | None = None,
        line: Line | None = None,
    ) -> None:
        found = [as_suffix_or_historical(window) for window in windows]
        self._windows = [w for w in found if isinstance(w, Rows) and w.within is None]
        if len(self._windows) < len(found):
            raise Refused("MaterialiseAll is for windows of rows")
        super().__init__(aggregate, found, unit=unit, line=line)

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        super().begin(number)
        subtracts = SubtractOnEvict.refuses(self.aggregate) is None
        kind = SubtractOnEvict if subtracts else TwoStacksLite
        self._kept = [kind(self.aggregate) for _ in self._windows]

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Every window takes a row in and lets one go."""
        super().push(partial)
        for spec, window in zip(self._windows, self._kept, strict=True):
            entering = self._rows.end - 1 - spec.ending
            if entering >= self._rows.first:
                window.push(self._rows[entering])
                if len(window) > spec.n:
                    window.evict()

    def total(self, left: int, right: int) -> Partial:
        """The kept answer of the window that has these rows now."""
        end = self.line.end
        for spec, window in zip(self._windows, self._kept, strict=True):
            if right == end - 1 - spec.ending and left == right - len(window) + 1:
                return window.total()
        raise Refused(f"rows {left} to {right} are no window that is kept")

    def stored_partials(self) -> int:
        """The rows, and those of each window."""
        return len(self._rows) + sum(window.stored_partials() for window in self._kept)


class Node:
    """A row in the tree, with the aggregate of everything below it."""

    __slots__ = ("height", "left", "number", "right", "row", "total")

    def __init__(self, number: int, row: Partial) -> None:
        self.number = number
        self.row = row
        self.total = row
        self.height = 1
        self.left: Self | None = None
        self.right: Self | None = None


class Tree(Shared):
    """A balanced search tree by row number (AVL), with an aggregate in every node, as in PSoup."""

    card = Card("balanced tree", "associativity", "2·log2 N", "4·log2 N", "2·N")

    def begin(self, number: int) -> None:
        """No rows; the next one has this number."""
        self._root: Any = None
        self._first = self._end = number

    def push(self, partial: Partial, ticks: int | None = None) -> None:
        """Insert the row at the right end."""
        self._root = self._with_last(self._root, Node(self._end, partial))
        self._end += 1

    def _with_last(self, node: Any, new: Node) -> Any:
        if node is None:
            return new
        node.right = self._with_last(node.right, new)
        return self._balanced(node)

    def forget(self, limit: int) -> None:
        """Delete rows at the left end."""
        while self._first < limit:
            self._root = self._without_first(self._root)
            self._first += 1

    def _without_first(self, node: Any) -> Any:
        if node.left is None:
            return node.right
        node.left = self._without_first(node.left)
        return self._balanced(node)

    def _balanced(self, node: Any) -> Any:
        tilt = _height(node.left) - _height(node.right)
        if tilt > 1:
            if _height(node.left.left) < _height(node.left.right):
                node.left = self._rotated(node.left, "right", "left")
            return self._rotated(node, "left", "right")
        if tilt < -1:
            if _height(node.right.right) < _height(node.right.left):
                node.right = self._rotated(node.right, "left", "right")
            return self._rotated(node, "right", "left")
        return self._refreshed(node)

    def _rotated(self, node: Any, up: str, down: str) -> Any:
        child = getattr(node, up)
        setattr(node, up, getattr(child, down))
        setattr(child, down, self._refreshed(node))
        return self._refreshed(child)

    def _refreshed(self, node: Any) -> Any:
        node.height = 1 + max(_height(node.left), _height(node.right))
        total = node.row if node.left is None else self._merge(node.left.total, node.row)
        node.total = total if node.right is None else self._merge(total, node.right.total)
        return node

    def row(self, number: int) -> Partial:
        """One row's own partial."""
        node = self._root
        while node.number != number:
            node = node.left if number < node.number else node.right
        return node.row

    def total(self, left: int, right: int) -> Partial:
        """The partial of rows ``left`` to ``right``, both included."""
        return self._within(self._root, left, right)

    def _within(self, node: Any, left: int, right: int) -> Partial:
        merge = self._merge
        while not left <= node.number <= right:
            node = node.right if node.number < left else node.left
        before: Partial = EMPTY
        after: Partial = EMPTY
        down = node.left
        while down is not None:
            if down.number < left:
                down = down.right
                continue
            inner = down.row if down.right is None else merge(down.row, down.right.total)
            before = merge(inner, before)
            down = down.left
        down = node.right
        while down is not None:
            if down.number > right:
                down = down.left
                continue
            inner = down.row if down.left is None else merge(down.left.total, down.row)
            after = merge(after, inner)
            down = down.right
        return merge(merge(before, node.row), after)

    def stored_partials(self) -> int:
        """A row and an aggregate in every node."""
        return 2 * (self._end - self._first)

    def check_invariants(self) -> None:
        """Rows in order, heights within one, aggregates right."""
        numbers: list[int] = []
        self._check(self._root, numbers)
        if numbers != list(self.active):
            raise InvariantBroken("Tree: other rows than those that are there")

    def _check(self, node: Any, numbers: list[int]) -> None:
        if node is None:
            return
        start = len(numbers)
        self._check(node.left, numbers)
        numbers.append(node.number)
        self._check(node.right, numbers)
        if abs(_height(node.left) - _height(node.right)) > 1:
            raise InvariantBroken(f"Tree: row {node.number} is out of balance")
        self._require(node.total, numbers[start:], f"the aggregate at row {node.number}")


def _height(node: Any) -> int:
    return 0 if node is None else int(node.height)
