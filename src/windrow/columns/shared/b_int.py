"""B-INT, base intervals, compiled: any window of a stream from O(log W) stored partials.

A base interval of level ℓ covers 2^ℓ rows, the first of which is a multiple of 2^ℓ. Level 0 is a
ring of the last Nmax rows' partials, level 1 of half as many, and so on, in one array: the top at
place 1, level ℓ from place capacity >> ℓ on.

Needs: associativity. Sums of floats are left to R-INT, which makes one subtraction of them.
Time: insert amortised 1 application of ⊕; lookup of a window of W rows at most 2·log2 W.
Space: fewer than 2·N partials for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, sections
3.1 and 5.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared.base import Shared
from windrow.columns.shared.bits import (
    leading_zeros,
    ones,
    trailing_zeros,
    trailing_zeros_of_half,
)
from windrow.columns.shared.cells import combine, identity, lift, load, no_cells, store
from windrow.columns.shared.mixed import no_batch, parted
from windrow.columns.shared.values import Batch

U = np.uint64
_CHUNK = 1 << 12
"""Rows whose levels are made one after the other: they fit the nearest cache."""
_TOGETHER = 64
"""Lookups whose intervals are found together."""


@njit(cache=True, nogil=True)
def append(cells, items, row, levels):
    """Rows from ``row`` on, and every base interval that they complete."""
    capacity = len(cells) >> 1
    done = 0
    while done < len(items):
        size = min(_CHUNK, capacity, len(items) - done)
        first, last = row + done, row + done + size
        for i in range(size):
            place = capacity + ((first + i) & (capacity - 1))
            store(cells, place, lift(cells, items, done + i))
        for level in range(1, levels + 1):
            a, b = first >> level, last >> level
            if a == b:
                break
            width, below = capacity >> level, capacity >> (level - 1)
            for k in range(a, b):
                half = below + ((2 * k) & (below - 1))
                both = combine(load(cells, half), load(cells, half + 1))
                store(cells, width + (k & (width - 1)), both)
        done += size


@njit(inline="always")
def _parts(capacity, left, right):
    """Where the intervals of rows ``left`` to ``right`` are: lengths and places of both kinds.

    First come intervals that grow, then intervals that shrink. The row between the two kinds, m, is
    the one divisible by the highest power of two. The lengths of the intervals before it are the
    bits of m − left, those of the intervals from it on the bits of right + 1 − m.
    """
    at, end = U(left), U(right) + U(1)
    top = U(63 - leading_zeros(at ^ end))
    m = (end >> top) << top
    behind = capacity + U(1) + ((m - U(1)) & (capacity - U(1)))
    return m - at, end - m, behind, capacity + (m & (capacity - U(1)))


@njit(inline="always")
def _three(cells, front, back, before, after, behind, here):
    """The next three intervals of each kind, and what is left of their lengths.

    Level ℓ of the row in place p of level 0 is in place p >> ℓ. (The second kind is taken from
    behind, which all these ⊕ allow.) Where there are no more, the level is 32 and the place 0,
    which holds nothing: places have fewer bits. Tried and lost: one at a time, more at a time, a
    loop over levels, the nine runs of blocks of four, intervals between their halves in place of
    heap order, and places computed for 64 lookups at once, level by level.
    """
    for _ in range(3):
        level = trailing_zeros_of_half(before)
        front = combine(front, load(cells, (behind - before) >> level))
        before &= before - U(1)
        level = trailing_zeros_of_half(after)
        after &= after - U(1)
        back = combine(back, load(cells, (here + after) >> level))
    return front, back, before, after


@njit(inline="always")
def _combined(cells, before, after, behind, here):
    """The partial of the intervals that ``_parts`` found, three at a time.

    Three, since a processor cannot guess how many there are.
    """
    front, back = identity(cells), identity(cells)
    more = True
    while more:
        front, back, before, after = _three(cells, front, back, before, after, behind, here)
        more = before | after != U(0)
    return combine(front, back)


@njit(cache=True, nogil=True)
def look_up(cells, lefts, rights, out):
    """The partials of many ranges, 64 at a time.

    Where their intervals are is found by vector instructions. Then each takes as many intervals as
    most of them need, whether it has them or not, and those that have more take the rest: nothing
    is left for the processor to guess.
    """
    capacity = U(len(cells) >> 1)
    befores, afters = np.empty(_TOGETHER, U), np.empty(_TOGETHER, U)
    behinds, heres = np.empty(_TOGETHER, U), np.empty(_TOGETHER, U)
    waiting = np.empty(_TOGETHER, np.int64)
    for start in range(0, len(lefts), _TOGETHER):
        size = min(_TOGETHER, len(lefts) - start)
        intervals = U(0)
        for j in range(size):
            i = U(start + j)
            before, after, behind, here = _parts(capacity, lefts[i], rights[i])
            befores[U(j)], afters[U(j)], behinds[U(j)], heres[U(j)] = before, after, behind, here
            intervals += max(ones(before), ones(after))
        threes = (np.int64(intervals) // size + 2) // 3  # of the mean
        more = 0
        for j in range(size):
            before, after, behind, here = befores[U(j)], afters[U(j)], behinds[U(j)], heres[U(j)]
            front, back = identity(cells), identity(cells)
            for _ in range(threes):
                front, back, before, after = _three(cells, front, back, before, after, behind, here)
            store(out, start + j, combine(front, back))
            waiting[U(more)] = j
            more += int(before | after != U(0))
        for k in range(more):
            j = waiting[U(k)]
            before, after = befores[U(j)], afters[U(j)]
            for _ in range(3 * threes):
                before &= before - U(1)
                after &= after - U(1)
            rest = _combined(cells, before, after, behinds[U(j)], heres[U(j)])
            store(out, start + j, combine(load(out, start + j), rest))


@njit(cache=True, nogil=True)
def mixed(cells, levels, row, updates, items, widths, out):
    """Updates and lookups of the last rows, one at a time in the order given."""
    capacity = len(cells) >> 1
    for i in range(len(updates)):
        if updates[U(i)]:
            partial = lift(cells, items, i)
            place = U(capacity + (row & (capacity - 1)))
            store(cells, place, partial)
            row += 1
            for _ in range(trailing_zeros(U(row | 1 << levels))):  # it is a right half
                partial = combine(load(cells, place - U(1)), partial)
                place >>= U(1)
                store(cells, place, partial)
        else:
            before, after, behind, here = _parts(U(capacity), row - widths[U(i)], row - 1)
            store(out, i, _combined(cells, before, after, behind, here))
    return row


@njit(cache=True, nogil=True)
def mixed_batches(cells, levels, row, updates, items, widths, out, size):
    """The same, ``size`` operations at a time: their rows, then their lookups where they were.

    The ring must hold as many rows more than the widest window.
    """
    rows, lefts, rights = no_batch(items, size)
    asked = 0
    for start in range(0, len(updates), size):
        count, lookups = parted(updates, items, widths, start, row, rows, lefts, rights)
        append(cells, rows[:count], row, levels)
        look_up(cells, lefts[:lookups], rights[:lookups], out[asked : asked + lookups])
        row += count
        asked += lookups
    return asked


class BInt(Shared):
    """All windows of the last rows, from base intervals.

    >>> import windrow as wr
    >>> shared = BInt(wr.Max(), longest=4)
    >>> shared.insert_many([3, 1, 4, 1, 5])
    >>> shared.lookup(2, 3), shared.query(wr.rows(100)), shared.active
    (4, 5, range(1, 5))
    """

    def _allocate(self) -> None:
        self._cells = no_cells(self._form.cells, 2 * self._capacity)

    @property
    def _levels(self) -> int:
        """The level of the longest interval that can be asked for."""
        return (self.longest or self._capacity).bit_length() - 1

    def _append(self, batch: Batch, row: int) -> None:
        append(self._cells, self._form.items(batch, row), row, self._levels)

    def _raw(self, lefts: Array, rights: Array) -> Array:
        out = no_cells(self._form.cells, len(lefts))
        look_up(self._cells, lefts, rights, out)
        return out

    def intervals(self, left: int, right: int) -> list[tuple[int, int]]:
        """The base intervals (level, number) that make up rows ``left`` to ``right``, in order."""
        end = right + 1
        top = (left ^ end).bit_length() - 1
        m = end >> top << top
        found = []
        before, after = m - left, end - m
        while before:
            level = (before & -before).bit_length() - 1
            found.append((level, m - before >> level))
            before &= before - 1
        while after:
            level = after.bit_length() - 1
            found.append((level, end - after >> level))
            after ^= 1 << level
        return found

    def _stored(self) -> list[range]:
        """By level, the numbers of the base intervals of active rows."""
        rows = self.active
        levels = range(self._levels + 1)
        return [range(-(-rows.start >> level), rows.stop >> level) for level in levels]

    def stored_partials(self) -> int:
        """Fewer than twice the rows."""
        return sum(map(len, self._stored()))

    def _partials(self) -> list[Array]:
        found = []
        for level, numbers in enumerate(self._stored()):
            width = self._capacity >> level
            places = np.arange(numbers.start, max(numbers.start, numbers.stop)) & (width - 1)
            found.append(self._cells[width + places])
        return found
