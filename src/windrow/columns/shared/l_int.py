"""L-INT, landmark intervals, compiled: windows of known widths by one application of ⊕.

Landmarks are the rows whose numbers are multiples of Wmin. A window of Wmin rows or more holds one:
it is what lies before its first landmark (``backward``: of every row, all rows up to the next
landmark) and what lies from there on (``forward``: of every row, all rows from each of the last
⌈Wmax / Wmin⌉ landmarks up to it).

Needs: associativity, and widths in classes (Wmin, Wmax), each of which has landmarks of its own.
Time, for Wmax = 2·Wmin: insert amortised 3 applications of ⊕ for each class, lookup 1.
Space, for Wmax = 2·Wmin: 3·N + Wmin partials for each class, of N rows kept. Where all windows end
at the last row (``suffix=True``), Wmax + Wmin + 2: over classes that double, 3·N together.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.1.2 (c = 2: at most 5·N partials, 4 applications).
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared.base import Shared
from windrow.columns.shared.cells import combine, lift, load, no_cells, store
from windrow.columns.shared.rings import power_of_two
from windrow.columns.shared.values import Batch
from windrow.errors import BadSpecification

U = np.uint64


@njit(cache=True, nogil=True)
def append(elements, forward, backward, items, row, least, count):  # type: ignore[no-untyped-def]
    """Rows from ``row`` on: prefixes since each landmark, and suffixes when one is reached."""
    recent, back = len(elements) - 1, len(backward) - 1
    fore = len(forward) // count - 1
    phase = row % least
    for i in range(len(items)):
        value = lift(elements, items, i)
        store(elements, row & recent, value)
        here, before = (row & fore) * count, ((row - 1) & fore) * count
        if phase == 0:  # a landmark: every prefix is one landmark further away
            for j in range(count - 1, 0, -1):
                store(forward, here + j, combine(load(forward, before + j - 1), value))
            store(forward, here, value)
        else:
            for j in range(count):
                store(forward, here + j, combine(load(forward, before + j), value))
        phase += 1
        if phase == least:
            phase = 0
            store(backward, row & back, value)
            for r in range(row - 1, row - least, -1):
                value = combine(load(elements, r & recent), value)
                store(backward, r & back, value)
        row += 1


@njit(cache=True, nogil=True)
def look_up(forward, backward, lefts, rights, least, count, out):  # type: ignore[no-untyped-def]
    """The partials of ranges that have a landmark; ``False`` for one that is not answered here."""
    fore, back = len(forward) // count - 1, len(backward) - 1
    for i in range(len(lefts)):
        left, right = lefts[U(i)], rights[U(i)]
        landmark = (left + least - 1) // least
        j = right // least - landmark
        if j < 0 or j >= count:
            return False
        partial = load(forward, (right & fore) * count + j)
        if landmark * least != left:
            partial = combine(load(backward, left & back), partial)
        store(out, i, partial)
    return True


class LInt(Shared):
    """Windows of the last rows whose widths fall into classes, from landmarks.

    ``widths``: one (least, most) for each class, or a list of widths, which are put into classes
    that double. ``suffix``: only windows that end at the last row, in a fraction of the space.

    >>> import windrow as wr
    >>> shared = LInt(wr.Max(), widths=[(2, 4)])
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(0, 1), shared.lookup(1, 3), shared.query(wr.rows(4))
    (3, 4, 5)
    """

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        longest: int | None = None,
        *,
        widths: Iterable[Any],
        suffix: bool = False,
        dtype: str | None = None,
    ) -> None:
        self.classes = classes_of(widths)
        self.suffix = suffix
        self.historical = not suffix
        widest = self.classes[-1][1]
        if suffix:
            longest = max(widest, longest or 0)
        if longest is not None and longest < widest:
            raise BadSpecification(f"longest={longest} rows do not hold windows of {widest}")
        super().__init__(aggregate, longest, dtype=dtype)

    def _allocate(self) -> None:
        kind, capacity = self._form.cells, self._capacity
        self._marked: list[tuple[Array, Array, Array]] = []
        for least, most in self.classes:
            back = power_of_two(most) if self.suffix else capacity
            fore = 1 if self.suffix else capacity
            elements = no_cells(kind, power_of_two(least))
            forward = no_cells(kind, fore * _landmarks(least, most))
            self._marked.append((elements, forward, no_cells(kind, back)))

    def _append(self, batch: Batch, row: int) -> None:
        items = self._form.items(batch, row)
        for (least, most), cells in zip(self.classes, self._marked, strict=True):
            append(*cells, items, row, least, _landmarks(least, most))

    def _raw(self, lefts: Array, rights: Array) -> Array:
        if self.suffix and len(rights) and rights.min() < self.active.stop - 1:
            raise BadSpecification(
                f"row {rights.min()} is not the last row ({self.active.stop - 1}): suffix=True "
                "answers windows that end there and no others"
            )
        out = no_cells(self._form.cells, len(lefts))
        if len(self.classes) == 1:
            if not self._of_class(0, lefts, rights, out):
                raise self._unanswered(lefts, rights)
            return out
        left_over = np.ones(len(lefts), np.bool_)
        for number, (least, most) in enumerate(self.classes):
            landmark = (lefts + least - 1) // least
            j = rights // least - landmark
            fits = left_over & (j >= 0) & (j < _landmarks(least, most))
            rows = np.flatnonzero(fits)
            if len(rows):
                part = no_cells(self._form.cells, len(rows))
                self._of_class(number, lefts[rows], rights[rows], part)
                out[rows] = part
                left_over &= ~fits
        if left_over.any():
            raise self._unanswered(lefts[left_over], rights[left_over])
        return out

    def _of_class(self, number: int, lefts: Array, rights: Array, out: Array) -> bool:
        least, most = self.classes[number]
        _, forward, backward = self._marked[number]
        count = _landmarks(least, most)
        return bool(look_up(forward, backward, lefts, rights, least, count, out))

    def _unanswered(self, lefts: Array, rights: Array) -> BadSpecification:
        shown = ", ".join(f"{least} to {most}" for least, most in self.classes)
        outside = [
            (int(a), int(b))
            for a, b in zip(lefts, rights, strict=True)
            if not any(least <= b - a + 1 <= most for least, most in self.classes)
        ]
        a, b = (outside or [(int(lefts[0]), int(rights[0]))])[0]
        return BadSpecification(
            f"rows {a} to {b} are {b - a + 1} rows: this LInt answers windows of {shown} rows. "
            "Name the width in widths=, or use BInt"
        )

    def stored_partials(self) -> int:
        """(c + 1)·N + Wmin for each class, c = ⌈Wmax / Wmin⌉; see above for ``suffix``."""
        held = len(self)
        return sum(
            (_landmarks(a, b) if self.suffix else _landmarks(a, b) * held)
            + min(held, b if self.suffix else held)
            + min(held, a)
            for a, b in self.classes
        )

    def _partials(self) -> list[Array]:
        """Forward and backward partials whose landmark is an active row, or follows one."""
        found = []
        rows = self.active
        numbers = np.arange(rows.start, rows.stop)
        for (least, most), (_, forward, backward) in zip(self.classes, self._marked, strict=True):
            count = _landmarks(least, most)
            kept = numbers[-min(len(numbers), most) :] if self.suffix and len(numbers) else numbers
            ended = kept[(kept // least + 1) * least <= rows.stop]
            found.append(backward[ended & (len(backward) - 1)])
            for j in range(count):
                fore = len(forward) // count - 1
                right = numbers[-1:] if self.suffix else numbers
                right = right[(right // least - j) * least >= rows.start]
                found.append(forward[(right & fore) * count + j])
        return found

    def _options(self) -> tuple[Any, ...]:
        return (self.longest, self.dtype, tuple(self.classes), self.suffix)

    @classmethod
    def _like(cls, aggregate: Any, options: tuple[Any, ...]) -> Self:
        longest, dtype, classes, suffix = options
        return cls(aggregate, longest, widths=classes, suffix=suffix, dtype=dtype)

    def lookup_many(self, lefts: Any, rights: Any) -> pa.Array:
        """The aggregates of many ranges of rows, both ends included; widths must be in a class."""
        return super().lookup_many(lefts, rights)


def _landmarks(least: int, most: int) -> int:
    """From how many landmarks on prefixes are kept."""
    return -(-most // least)


def classes_of(widths: Iterable[Any]) -> list[tuple[int, int]]:
    """Classes of widths as given, or, of plain widths, classes within a factor of two.

    >>> classes_of([(1000, 2000)]), classes_of([1, 2, 5, 7, 100])
    ([(1000, 2000)], [(1, 2), (5, 7), (100, 100)])
    """
    given = list(widths)
    classes: list[tuple[int, int]] = []
    if all(isinstance(one, tuple) for one in given):
        classes = sorted((int(least), int(most)) for least, most in given)
    else:
        for width in sorted(set(map(int, given))):
            if classes and width <= 2 * classes[-1][0]:
                classes[-1] = (classes[-1][0], width)
            else:
                classes.append((width, width))
    if not classes or any(not 1 <= least <= most for least, most in classes):
        raise BadSpecification(f"widths are (least, most) with 1 ≤ least ≤ most, not {given!r}")
    return sorted(classes, key=lambda pair: pair[1])
