"""Running totals in fixed point: how wide they are, and what is answered from them."""

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.aggregates import StdDev, Sum, Variance, exact
from windrow.columns.column import array_of
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared import limbs
from windrow.columns.shared.forms import Form
from windrow.columns.shared.moments import moments
from windrow.columns.shared.rings import since
from windrow.columns.shared.values import Batch
from windrow.columns.sums import spread

if TYPE_CHECKING:
    from windrow.columns.shared.r_int import RInt

_SMALLEST = -1074
_SPARE = 12


class Totals:
    """A ring of running totals of Σx, and of Σx² with ``squares``, as multiples of 2**grid."""

    def __init__(self, capacity: int, floats: bool, squares: bool) -> None:
        self.capacity = capacity
        self.floats = floats
        self.squares = squares
        self.words = 2
        self.grid = -90 if floats else 0
        self._allocate()

    def _allocate(self) -> None:
        words = 3 * self.words if self.squares else self.words
        self.totals = np.zeros((self.capacity, words), np.uint64)

    def _needed(self, added: Array, rows: int) -> tuple[int, int] | None:
        """The exponent of the last bit of any row, and one that no sum of rows reaches."""
        if not self.floats:
            return None  # 2**63 rows of int64 fit two words
        smallest, largest = spread(added, 0, len(added))
        if largest == 0.0:
            return None
        low = max(math.frexp(smallest)[1] - 53, _SMALLEST)
        # rows that came while there were fewer may have been larger: 6 bits cover 1 + ln(rows)
        return low, math.frexp(largest)[1] + rows.bit_length() + 7

    def fits(self, added: Array, rows: int) -> bool:
        """Whether windows of so many rows of this size can be told apart; odd values are 0."""
        needed = self._needed(_finite(added), rows)
        if needed is None:
            return True
        low, high = needed
        return low >= self.grid and high <= self.grid + 64 * self.words

    def widen(self, added: Array, rows: int) -> None:
        """Start again with as many words as these rows need, and some bits to spare at both ends.

        So rows that are a little smaller or larger each time do not make it start again each time.
        """
        needed = self._needed(_finite(added), rows)
        assert needed is not None
        low, high = needed
        self.words = max(2, -(-(high - low + _SPARE) // 64))
        spare = 64 * self.words - (high - low)
        self.grid = max(low - spare // 2, _SMALLEST)
        self._allocate()

    def append(self, added: Array, row: int) -> None:
        """The totals after each row."""
        if not self.floats:
            limbs.append(self.totals, row, added, False, 0, self.words, self.squares)
            return
        bits = _finite(added).view(np.int64)
        if self.words == 2 and not self.squares:
            limbs.append_two(self.totals, row, bits, self.grid)
        else:
            limbs.append(self.totals, row, bits, True, self.grid, self.words, self.squares)

    def differences(self, lefts: Array, rights: Array) -> Array:
        """The totals of ranges of rows."""
        out = np.empty((len(lefts), self.totals.shape[1]), np.uint64)
        limbs.differences(self.totals, lefts, rights, self.words, out)
        return out

    def comparable(self, found: Array) -> Array:
        """Totals of single rows as floats, which do not depend on the grid."""
        out = np.empty(len(found))
        limbs.rounded(found[:, : self.words].copy(), self.grid, out)
        return out


def _finite(added: Array) -> Array:
    if added.dtype != np.float64:
        return added
    good = np.isfinite(added)
    return added if good.all() else np.where(good, added, 0.0)


class TotalsForm(Form):
    """Sum and Mean: of integers in two words, of floats in fixed point."""

    cells = "wide"
    shared: "RInt"

    def added(self, batch: Batch) -> Array:
        """What is added up: 0 where missing."""
        return batch.filled()

    def items(self, batch: Batch, row: int) -> Array:
        """The same."""
        return batch.filled()

    def _special(self, sums: Array, lefts: Array, rights: Array) -> Array:
        """NaN and infinities, where a range holds some."""
        marks = self.shared._marks
        if marks is None:
            return sums
        nans, plus, minus = (since(marks, lefts, rights, column) for column in (1, 2, 3))
        sums = np.where(plus > 0, np.inf, np.where(minus > 0, -np.inf, sums))
        return np.where((nans > 0) | ((plus > 0) & (minus > 0)), np.nan, sums)

    def _sums(self, raw: Array, lefts: Array, rights: Array) -> Array:
        assert self.shared.fixed is not None
        sums = np.empty(len(raw))
        limbs.rounded(raw, self.shared.fixed.grid, sums)
        return self._special(sums, lefts, rights)

    def _divided(self, sums: Array, lefts: Array, rights: Array) -> Array:
        means: Array = sums / np.maximum(self.shared.present(lefts, rights), 1) + 0.0
        return means

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """Rounded once; a mean is divided once."""
        if self.shared.fixed is None:
            return self.shared.integer_form.answers(raw, lefts, rights)
        sums = self._sums(raw, lefts, rights)
        if type(self.aggregate) is not Sum:
            sums = self._divided(sums, lefts, rights)
        return array_of(sums, self.shared.missing(lefts, rights))


@njit(cache=True, nogil=True)
def _logarithms(values, out):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        v = values[i]
        out[i] = math.log(v) if v > 0 else -np.inf if v == 0 else np.nan


@njit(cache=True, nogil=True)
def _exponentials(means):  # type: ignore[no-untyped-def]
    for i in range(len(means)):
        means[i] = math.exp(means[i])


class GeometricForm(TotalsForm):
    """Sums of logarithms."""

    def added(self, batch: Batch) -> Array:
        """The logarithms, 0 where missing."""
        logs = np.empty(batch.size)
        _logarithms(batch.columns[0].astype(np.float64), logs)
        return logs if batch.valid is None else np.where(batch.valid, logs, 0.0)

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """Back from logarithms."""
        means = self._divided(self._sums(raw, lefts, rights), lefts, rights)
        _exponentials(means)
        return array_of(means, self.shared.missing(lefts, rights))


class MomentsForm(TotalsForm):
    """Exact power sums; the few answers that two words cannot decide are left to Python's ints."""

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """Correctly rounded, as everywhere."""
        aggregate, fixed = self.aggregate, self.shared.fixed
        assert isinstance(aggregate, Variance)
        assert fixed is not None
        counts = self.shared.present(lefts, rights)
        out = np.zeros(len(raw))
        doubtful = np.empty(len(raw), np.int64)
        root = type(aggregate) is StdDev
        found = moments(raw, fixed.words, fixed.grid, counts, aggregate.ddof, root, out, doubtful)
        for i in doubtful[:found]:
            out[i] = self._exactly(aggregate, raw[i], int(counts[i]), fixed.words, fixed.grid)
        marks = self.shared._marks
        if marks is not None:
            odd = sum(since(marks, lefts, rights, column) for column in (1, 2, 3))
            out = np.where(odd > 0, np.nan, out)
        few = counts <= aggregate.ddof
        return array_of(out, few if few.any() else None)

    @staticmethod
    def _exactly(aggregate: Variance, words: Array, rows: int, size: int, grid: int) -> float:
        total, squares = (
            int.from_bytes(part.tobytes(), "little", signed=True)
            for part in (words[:size], words[size:])
        )
        up = grid + exact.FLOAT_UNIT_BITS
        partial = (rows, total << up + exact.MARK_BITS, squares << 2 * up + exact.MARK_BITS)
        answer = aggregate.lower(partial)
        assert answer is not None
        return answer
