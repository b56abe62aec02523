"""R-INT, running intervals, compiled: any window of a stream by one subtraction.

The total of all rows before each active row, and after the last one, is kept in a ring; a window is
the difference of two of them. Integers are added in two words, floats as fixed-point numbers of as
many words as their range needs (``limbs``), so that what is taken out leaves no trace.

Needs: ⊕ that can be taken back: Count, Sum, Mean, GeometricMean, Variance, StdDev, Last.
Time: insert 1 application of ⊕, lookup 1 of its inverse.
Space: N + 1 partials for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.2.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import ClassVar

import numpy as np

from windrow.aggregates import Aggregate, Count, GeometricMean, Last, Mean, StdDev, Sum, Variance
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared.base import Shared
from windrow.columns.shared.cells import LEAST, combine, inverse, lift, load, no_cells, store
from windrow.columns.shared.forms import CountForm, EndForm, Form, MeanForm, SumForm
from windrow.columns.shared.mixed import no_batch, parted
from windrow.columns.shared.totals import GeometricForm, MomentsForm, Totals, TotalsForm
from windrow.columns.shared.values import Batch

U = np.uint64


@njit(cache=True, nogil=True)
def append(totals, items, row):
    """The running totals after each row."""
    mask = len(totals) - 1
    running = load(totals, row & mask)
    for i in range(len(items)):
        running = combine(running, lift(totals, items, i))
        row += 1
        store(totals, row & mask, running)


@njit(cache=True, nogil=True)
def subtracted(totals, lefts, rights, out):
    """The total after the right row, less that before the left one, of many ranges."""
    mask = len(totals) - 1
    for i in range(len(lefts)):
        after = load(totals, (rights[U(i)] + 1) & mask)
        store(out, i, inverse(after, load(totals, lefts[U(i)] & mask)))


@njit(cache=True, nogil=True)
def mixed(totals, row, updates, items, widths, out):
    """Updates and lookups of the last rows, one at a time in the order given."""
    mask = len(totals) - 1
    for i in range(len(updates)):
        newest = load(totals, row & mask)
        if updates[U(i)]:
            row += 1
            store(totals, row & mask, combine(newest, lift(totals, items, i)))
        else:
            store(out, i, inverse(newest, load(totals, (row - widths[U(i)]) & mask)))
    return row


@njit(cache=True, nogil=True)
def mixed_batches(totals, row, updates, items, widths, out, size):
    """The same, ``size`` operations at a time: their rows, then their lookups where they were."""
    rows, lefts, rights = no_batch(items, size)
    asked = 0
    for start in range(0, len(updates), size):
        count, lookups = parted(updates, items, widths, start, row, rows, lefts, rights)
        append(totals, rows[:count], row)
        subtracted(totals, lefts[:lookups], rights[:lookups], out[asked : asked + lookups])
        row += count
        asked += lookups
    return asked


class RInt(Shared):
    """All windows of the last rows, by subtracting running totals.

    >>> import windrow as wr
    >>> shared = RInt(wr.Sum())
    >>> shared.insert_many([1e20, 0.1, 0.2, -1e20])
    >>> shared.lookup(1, 2), shared.lookup(0, 3)
    (0.30000000000000004, 0.30000000000000004)
    """

    forms: ClassVar[dict[type[Aggregate], type[Form]]] = {
        Count: CountForm,
        Sum: TotalsForm,
        Mean: TotalsForm,
        GeometricMean: GeometricForm,
        Variance: MomentsForm,
        StdDev: MomentsForm,
        Last: EndForm,
    }
    why_not: ClassVar[str] = "it needs aggregates that can be subtracted; use BInt or LInt"
    _fixed: Totals | None

    def _check_kinds(self, kinds: list[str | None]) -> None:
        """Every kind is compiled."""

    def _allocate(self) -> None:
        kind = type(self.aggregate)
        floats = kind in (Sum, Mean) and "float64" in self.kinds
        if floats or kind in (GeometricMean, Variance, StdDev):
            whole = kind not in (GeometricMean,) and "float64" not in self.kinds
            squares = kind in (Variance, StdDev)
            self._fixed = Totals(self._prefixes, not whole, squares)
        else:
            self._fixed = None
            self._totals = no_cells(self._form.cells, self._prefixes)

    @property
    def integer_form(self) -> Form:
        """How sums of integers are answered: as they are everywhere."""
        return (SumForm if type(self.aggregate) is Sum else MeanForm)(self)

    @property
    def fixed(self) -> Totals | None:
        """The fixed-point totals, where that is what is kept."""
        return self._fixed

    def _odd(self, batch: Batch) -> Array | None:
        if self._fixed is None or not self._fixed.floats:
            return None
        assert isinstance(self._form, TotalsForm)
        added = self._form.added(batch)
        return None if np.isfinite(added).all() else added

    def _append(self, batch: Batch, row: int) -> None:
        if self._fixed is None:
            append(self._totals, self._form.items(batch, row), row)
            return
        assert isinstance(self._form, TotalsForm)
        added = self._form.added(batch)
        rows = max(len(self.active), 1) + batch.size if self.longest is None else self.longest
        if not self._fixed.fits(added, rows):
            held, _ = self._held()
            start = self.active.start
            before = self._form.added(held)
            self._fixed.widen(np.concatenate([before, added]), rows)
            self._fixed.append(before, start)
        self._fixed.append(added, row)

    def _raw(self, lefts: Array, rights: Array) -> Array:
        if self._fixed is not None:
            return self._fixed.differences(lefts, rights)
        if self._totals.dtype == np.int64:  # Last: what came before it has left no trace
            last = self._totals[(rights + 1) & (len(self._totals) - 1)]
            return np.where(last < lefts, LEAST, last)
        out = no_cells(self._form.cells, len(lefts))
        subtracted(self._totals, lefts, rights, out)
        return out

    def stored_partials(self) -> int:
        """One more than rows."""
        return len(self) + 1

    def _partials(self) -> list[Array]:
        rows = np.arange(self.active.start, self.active.stop)
        found = self._raw(rows, rows)
        if self._fixed is None:
            return [found]
        return [self._fixed.comparable(found)]
