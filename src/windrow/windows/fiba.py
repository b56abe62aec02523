"""FiBA, the finger B-tree aggregator: rows may come late, and many may leave at once.

A B-tree in order of time. A node keeps the aggregate of what is below it; a node on the left or
right edge leaves out its child on that edge, so that a change at an end stays near that end. What
is above is carried down to the first and the last leaf (the fingers), which give the answer:

    total = first leaf ⊕ left chain ⊕ right chain ⊕ last leaf

(The paper's left and right aggregates are a chain with its leaf, and its root stands apart; this
form costs one ⊕ less for each insert and evict, and one more for a query.) A row finds its place
from both ends at once: up the two edges in step, then down. The tree is in ``fiba_tree.py``.

Needs: associativity.
Time: query 3; insert amortised O(log d) where d rows lie between it and the nearer end, in order
1.3 on average; evict 1.7 on average in order; each at most O(log n). Any number of rows leaves at
once for O(log n), and a range of times is answered for O(log n).
Space: 1.3n partials in order, at most 1.75n + O(log n): a row's, a node's, and two for each level.
Paper: Tangwongsan, Hirzel, Schneider, "Optimal and General Out-of-Order Sliding-Window
Aggregation", VLDB 2019; for bulk eviction "Out-of-Order Sliding-Window Aggregation with Efficient
Bulk Evictions and Insertions", VLDB 2023.
"""

import operator
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from numbers import Integral
from typing import Any

from windrow.aggregates import Partial
from windrow.errors import BadSpecification, BadValue
from windrow.windows.base import STALE, Card, Runs, Window
from windrow.windows.fiba_tree import MOST_CHILDREN, MOST_ROWS, Node, Tree

_INT64 = 1 << 63


class Fiba(Window):
    """A B-tree with fingers at both ends; ``at`` is the row's time, an integer of 64 bits.

    Rows of equal time stay in order of arrival. Without ``at``, rows come at the young end and
    their times count up from 0; while rows are in the window, all come with a time or all without.
    Also a bulk eviction whose ⊕ raises changes nothing.

    >>> import windrow as wr
    >>> from windrow.windows.fiba import Fiba
    >>> window = Fiba(wr.Concat())
    >>> for time, text in ((10, "a"), (30, "c"), (20, "b"), (40, "d")):
    ...     window.insert(text, at=time)
    >>> window.query(), window.query_range(15, 30)
    ('abcd', 'bc')
    >>> window.evict_before(30), window.query(), window.oldest
    (2, 'cd', 30)
    """

    card = Card(
        title="FiBA (finger B-tree)",
        needs="associativity",
        insert="O(log d) amortised, d rows from the nearer end",
        evict="O(1) amortised, any number at once O(log n)",
        query="3",
        partials="at most 1.75n + O(log n)",
    )
    __slots__ = ("_numbered", "_size", "_tree")

    def _reset(self) -> None:
        self._tree = Tree(self._merge)
        self._size = 0
        self._numbered = False

    # --- the protocol, with times ---------------------------------------------------------------

    def insert(self, value: Any, at: int | None = None) -> None:
        """Add a value in its place in time, after rows of equal time."""
        time = self._time(at)
        self._put(self._lift(value), time, at is None)

    def push(self, partial: Partial, at: int | None = None) -> None:
        """Add one row's partial in its place in time: ``insert`` without ``lift``."""
        self._put(partial, self._time(at), at is None)

    def _time(self, at: int | None) -> int:
        """The row's time, or the next number; nothing changes."""
        if self._size and self._numbered != (at is None):
            came, comes = ("without", "with") if self._numbered else ("with", "without")
            raise BadSpecification(
                f"the rows in this window came {came} a time and this one comes {comes} one: "
                "give at= for all of them or for none"
            )
        if at is None:
            return self._tree.right[0].times[-1] + 1 if self._size else 0
        time = _integer(at, "at=")
        if not -_INT64 <= time < _INT64:
            raise BadValue(f"at={at!r} is beyond 64 bits")
        return time

    def _put(self, partial: Partial, time: int, numbered: bool) -> None:
        self._tree.insert(partial, time)
        self._size += 1
        self._numbered = numbered
        self._answer = STALE

    def evict(self) -> None:
        """Remove the oldest row."""
        if not self._size:
            raise self._empty()
        self._remove(1)

    def bulk_evict(self, n: int) -> None:
        """Remove the ``n`` oldest rows, at about the cost of removing a few."""
        if isinstance(n, Integral) and not isinstance(n, bool) and 0 < n < self._size:
            self._remove(int(n))
        else:
            super().bulk_evict(n)

    def evict_before(self, time: int) -> int:
        """Remove all rows of an earlier time than this, and return how many those were."""
        gone = self.count_before(_integer(time, "evict_before()"))
        if gone:
            self._remove(gone)
        return gone

    def count_before(self, time: int) -> int:
        """How many rows have an earlier time than this."""
        return self._tree.count_before(time)

    def _remove(self, n: int) -> None:
        if n == self._size:
            old = self._tree
            self._reset()
            self._tree.bury(old)
        else:
            self._tree.evict(n)
            self._size -= n
        self._answer = STALE

    def total(self) -> Partial:
        """The first leaf, the two chains, the last leaf."""
        return self._tree.total()

    def query_range(self, first: int, last: int) -> Any:
        """The aggregate of the rows with first ≤ time ≤ last."""
        first, last = _integer(first, "query_range()"), _integer(last, "query_range()")
        return self.aggregate.answer(self._tree.between(first, last))

    @property
    def oldest(self) -> int | None:
        """The time of the oldest row, or None."""
        return self._tree.left[0].times[0] if self._size else None

    @property
    def youngest(self) -> int | None:
        """The time of the youngest row, or None."""
        return self._tree.right[0].times[-1] if self._size else None

    def __len__(self) -> int:
        return self._size

    # --- for tests and the curious --------------------------------------------------------------

    def stored_partials(self) -> int:
        """Each row's, each node's and the chains'; counted by walking the tree."""
        return self._size + sum(map(len, self._tree.levels())) + 2 * len(self._tree.left)

    def check_invariants(self, rows: Sequence[Partial] | None = None) -> None:
        """Arity, order, edges, and every aggregate against its rows."""
        self._require_length(rows)
        require, tree = self._require, self._tree
        levels = tree.levels()
        found, times = _rows(levels[0])
        require(len(found) == len(times) == self._size, "rows, times and size differ")
        require(all(a <= b for a, b in pairwise(times)), "times are not in order")
        if times:
            low, high = times[0], times[-1]
            require(low >= -_INT64 and high < _INT64, "a time is beyond 64 bits")
            counted = high - low + 1 == len(set(times)) == len(times)
            require(counted or not self._numbered, "times are not numbers in a row")
        for a, b in zip(found, rows or (), strict=False):
            self._require_same(a, [b], "a row")
        require(tree.left == [nodes[0] for nodes in levels], "the left spine is not the left edge")
        require(tree.right == [nodes[-1] for nodes in levels], "the right one is not the right")
        begins = [*range(self._size + 1)]  # the row that each item of the level begins with
        for level, nodes in enumerate(levels):
            ends = [0, *accumulate(len(node.items) for node in nodes)]
            inner = level > 0
            for node, (start, end) in zip(nodes, pairwise(ends), strict=True):
                first, last = node is tree.left[level], node is tree.right[level]
                self._require_arity(node, level, first or last)
                borders = [times[begin] for begin in begins[start + inner : end]]
                require(node.times == borders, f"times {node.times} instead of {borders}")
                own = slice(begins[start + (inner and first)], begins[end - (inner and last)])
                require(node.rows == own.stop - own.start, f"a node counts {node.rows} rows")
                self._require_same(node.agg, found[own], f"an aggregate of level {level}")
            begins = [begins[end] for end in ends]
        top = len(levels) - 1
        require(len(tree.left_chain) == len(tree.right_chain) == top + 1, "chains of other lengths")
        for k in range(top + 1):
            above = [node.agg for node in tree.left[k + 1 :]]
            self._require_same(tree.left_chain[k], above, f"left chain {k}")
            above = [node.agg for node in tree.right[k + 1 : top]]
            self._require_same(tree.right_chain[k], above[::-1], f"right chain {k}")

    def _require_arity(self, node: Node, level: int, spine: bool) -> None:
        most = MOST_CHILDREN if level else MOST_ROWS
        least = (most + 1) // 2
        if spine:
            least = 2 if level else min(1, self._size)
        width = len(node.items)
        self._require(least <= width <= most, f"{width} items, not {least} to {most}")

    # --- bytes ----------------------------------------------------------------------------------

    def _state(self) -> tuple[list[int], Runs]:
        """The first time in zigzag, as it may be negative; differences; every node's width."""
        tree = self._tree
        levels = tree.levels()
        rows, times = _rows(levels[0])
        numbers = [int(self._numbered)]
        if times:
            numbers.append(2 * times[0] if times[0] >= 0 else -2 * times[0] - 1)
            numbers += [b - a for a, b in pairwise(times)]
        nodes = [*chain.from_iterable(levels)]
        numbers += [len(node.items) for node in nodes]
        aggs = [node.agg for node in nodes]
        return numbers, [rows, aggs, tree.left_chain[:], tree.right_chain[:]]

    def _restore(self, numbers: list[int], runs: Runs) -> None:
        rows, aggs, left_chain, right_chain = runs
        self._reset()
        if not rows:
            return
        numbered, zigzag, *rest = numbers
        oldest = -(zigzag + 1) // 2 if zigzag & 1 else zigzag // 2
        begins = [*accumulate(rest[: len(rows) - 1], initial=oldest)]  # the time of each item
        widths = iter(rest[len(rows) - 1 :])
        tree, items, level = self._tree, rows, 0
        tree.left, tree.right = [], []
        levels = []
        while not level or len(items) > 1:
            nodes, end = [], 0
            for width in widths:
                start, end = end, end + width
                nodes.append(Node(begins[start + (level > 0) : end], items[start:end]))
                begins[len(nodes) - 1] = begins[start]
                if end >= len(items):
                    break
            if end != len(items):
                raise ValueError("the nodes do not hold what is below them")
            tree.left.append(nodes[0])
            tree.right.append(nodes[-1])
            for node in nodes:
                below = tree.own(node, level) if level else ()
                node.rows = sum([child.rows for child in below]) if level else len(node.items)
            levels.append(nodes)
            items, level = nodes, level + 1
        for node, agg in zip(chain.from_iterable(levels), aggs, strict=True):
            node.agg = agg
        if next(widths, None) is not None:
            raise ValueError("there are more nodes than the tree has")
        tree.left_chain, tree.right_chain = list(left_chain), list(right_chain)
        self._size, self._numbered = len(rows), bool(numbered)


def _rows(leaves: list[Node]) -> tuple[list[Partial], list[int]]:
    items = [partial for leaf in leaves for partial in leaf.items]
    return items, [time for leaf in leaves for time in leaf.times]


def _integer(time: Any, what: str) -> int:
    if type(time) is int:
        return time
    if isinstance(time, Integral) and not isinstance(time, bool):
        return operator.index(time)
    raise BadValue(
        f"{what}: {time!r} ({type(time).__name__}) is not a time: this window's are integers"
    )
