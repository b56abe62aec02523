"""For comparison only: a balanced tree (PSoup), materialise all and materialise none, compiled.

They are what the paper measures its algorithms against, in the same form: the same rows, the same
cells, the same lookups.
"""

# mypy: disable-error-code="no-untyped-def"

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np

from windrow.aggregates import Aggregate, Count, Mean, Sum
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared import tree_kernels
from windrow.columns.shared.base import Shared
from windrow.columns.shared.cells import combine, identity, inverse, lift, load, no_cells, store
from windrow.columns.shared.forms import CountForm, Form, MeanForm, SumForm
from windrow.columns.shared.mixed import no_batch, parted
from windrow.columns.shared.rings import power_of_two, read_ring, write_ring
from windrow.columns.shared.values import Batch
from windrow.errors import BadSpecification

U = np.uint64


class Tree(Shared):
    """A balanced search tree over the rows: O(log N) for updates and lookups."""

    def _allocate(self) -> None:
        size = self._kept + 1
        kind = self._form.cells
        self._nodes = np.zeros((size, 3), np.int64)
        self._keys = np.zeros(size, np.int64)
        self._own, self._total = no_cells(kind, size), no_cells(kind, size)
        self._state = np.array([0, self._end, self._end, 0, 0], np.int64)

    def _all(self) -> tuple[Array, ...]:
        return self._nodes, self._keys, self._own, self._total, self._state

    def _append(self, batch: Batch, row: int) -> None:
        tree_kernels.append(*self._all(), self._form.items(batch, row), self._kept)

    def _raw(self, lefts: Array, rights: Array) -> Array:
        out = no_cells(self._form.cells, len(lefts))
        tree_kernels.look_up(*self._all(), lefts, rights, out)
        return out

    def stored_partials(self) -> int:
        """Two for each row: its own, and its subtree's."""
        return 2 * len(self)

    def _partials(self) -> list[Array]:
        rows = np.arange(self.active.start, self.active.stop)
        return [self._raw(rows, rows), self._raw(np.full_like(rows, self.active.start), rows)]


@njit(inline="always")
def _folded(rows, cells, left, right):
    """All rows of a range, one after the other; two runs where the ring's end is between them."""
    partial = identity(cells)
    size = right - left + 1
    start = left & (len(rows) - 1)
    head = min(size, len(rows) - start)
    for i in range(start, start + head):
        partial = combine(partial, lift(cells, rows, i))
    for i in range(size - head):
        partial = combine(partial, lift(cells, rows, i))
    return partial


@njit(cache=True, nogil=True)
def _fold_many(rows, lefts, rights, out):
    for i in range(len(lefts)):
        store(out, i, _folded(rows, out, lefts[U(i)], rights[U(i)]))


@njit(cache=True, nogil=True)
def mixed_none(rows, row, updates, items, widths, out):
    """Updates and lookups of the last rows, one at a time in the order given."""
    mask = len(rows) - 1
    for i in range(len(updates)):
        if updates[U(i)]:
            rows[U(row & mask)] = items[U(i)]
            row += 1
        else:
            store(out, i, _folded(rows, out, row - widths[U(i)], row - 1))
    return row


@njit(cache=True, nogil=True)
def mixed_batches_none(ring, row, updates, items, widths, out, size):
    """The same, ``size`` operations at a time: their rows, then their lookups where they were."""
    mask = len(ring) - 1
    rows, lefts, rights = no_batch(items, size)
    asked = 0
    for start in range(0, len(updates), size):
        count, lookups = parted(updates, items, widths, start, row, rows, lefts, rights)
        for j in range(count):
            ring[U((row + j) & mask)] = rows[U(j)]
        for j in range(lookups):
            store(out, asked + j, _folded(ring, out, lefts[U(j)], rights[U(j)]))
        row += count
        asked += lookups
    return asked


class MaterialiseNone(Shared):
    """The rows alone, as they came: an update stores one, a lookup lifts and folds W."""

    def _allocate(self) -> None:
        shape = (self._capacity, 2) if self._form.cells == "pair" else self._capacity
        self._rows = np.zeros(shape, np.int64)

    def _append(self, batch: Batch, row: int) -> None:
        write_ring(self._rows, row, self._form.items(batch, row))

    def _raw(self, lefts: Array, rights: Array) -> Array:
        out = no_cells(self._form.cells, len(lefts))
        _fold_many(self._rows, lefts, rights, out)
        return out

    def stored_partials(self) -> int:
        """None."""
        return 0

    def _partials(self) -> list[Array]:
        return [read_ring(self._rows, self.active.start, self.active.stop)]


@njit(cache=True, nogil=True)
def _update_all(cells, results, widths, row, value):
    """One row into every result, and the row that leaves each out of it."""
    mask = len(cells) - 1
    for k in range(len(widths)):
        gone = load(cells, (row - widths[U(k)]) & mask)
        store(results, k, inverse(combine(load(results, k), value), gone))
    store(cells, row & mask, value)


@njit(cache=True, nogil=True)
def append_all(cells, results, widths, items, row):
    """Rows from ``row`` on, one after the other."""
    for i in range(len(items)):
        _update_all(cells, results, widths, row + i, lift(cells, items, i))


@njit(cache=True, nogil=True)
def mixed_all(cells, results, widths, row, updates, items, asked, out):
    """Updates and lookups one at a time; ``asked`` are places in ``widths``."""
    for i in range(len(updates)):
        if updates[U(i)]:
            _update_all(cells, results, widths, row, lift(cells, items, i))
            row += 1
        else:
            store(out, i, load(results, asked[U(i)]))
    return row


class MaterialiseAll(Shared):
    """The answer of every window, always: an update changes all of them, a lookup reads one.

    ``widths``: of the windows, all of which end at the last row. What can be subtracted only.
    """

    historical = False
    forms: ClassVar[dict[type[Aggregate], type[Form]]] = {
        Count: CountForm,
        Sum: SumForm,
        Mean: MeanForm,
    }

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        longest: int | None = None,
        *,
        widths: Iterable[int],
        dtype: str | None = None,
    ) -> None:
        self.widths = np.array(sorted(set(widths)), np.int64)
        if not len(self.widths) or self.widths[0] < 1:
            raise BadSpecification("widths are those of the windows, from 1 on")
        super().__init__(aggregate, max(longest or 0, int(self.widths[-1])), dtype=dtype)

    def _allocate(self) -> None:
        kind = self._form.cells
        self._cells = no_cells(kind, power_of_two(self._capacity + 1))
        self._results = no_cells(kind, len(self.widths))

    def _append(self, batch: Batch, row: int) -> None:
        items = self._form.items(batch, row)
        append_all(self._cells, self._results, self.widths, items, row)

    def _raw(self, lefts: Array, rights: Array) -> Array:
        asked = rights - lefts + 1
        whole = lefts == self.active.start  # all rows, fewer than the window's width
        places = np.minimum(np.searchsorted(self.widths, asked), len(self.widths) - 1)
        good = (self.widths[places] == asked) | (whole & (self.widths[places] >= asked))
        if not np.all(good & (rights == self.active.stop - 1)):
            raise BadSpecification("only windows of the widths named, that end at the last row")
        return self._results[places].copy()

    def stored_partials(self) -> int:
        """One for each row and each window."""
        return len(self) + len(self.widths)

    def _partials(self) -> list[Array]:
        return [self._results]

    def _options(self) -> tuple[Any, ...]:
        return (self.longest, self.dtype, tuple(self.widths.tolist()))

    @classmethod
    def _like(cls, aggregate: Any, options: tuple[Any, ...]) -> Self:
        longest, dtype, widths = options
        return cls(aggregate, longest, widths=widths, dtype=dtype)
