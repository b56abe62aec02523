"""How an aggregate's rows become cells, and cells answers."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.aggregates import (
    Aggregate,
    ArgMax,
    Count,
    First,
    Last,
    Max,
    MaxCount,
    Mean,
    Min,
    Sum,
)
from windrow.columns.column import array_of
from windrow.columns.jit import njit
from windrow.columns.ranges import Array
from windrow.columns.shared.cells import LEAST, words
from windrow.columns.shared.limbs import rounded
from windrow.columns.shared.values import Batch, keys_of, values_of
from windrow.errors import SumOverflow

if TYPE_CHECKING:
    from windrow.columns.shared.base import Shared


class Form:
    """One aggregate's cells; ``cells`` names their kind as ``cells.no_cells`` knows it."""

    cells: ClassVar[str]

    def __init__(self, shared: "Shared") -> None:
        self.shared = shared
        self.aggregate: Aggregate = shared.aggregate

    def items(self, batch: Batch, row: int) -> Array:
        """What ``cells.lift`` makes partials of, one for each row."""
        raise NotImplementedError

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """The answers of ranges whose partials are known."""
        raise NotImplementedError

    def typed(self, values: Array, missing: Array | None, column: int = 0) -> pa.Array:
        """Values of a column's own kind: canonical, and as Arrow."""
        kind = self.shared.kinds[column]
        if kind == "float64":
            values = np.where(np.isnan(values), np.nan, values) + 0.0
        elif kind == "bool":
            values = values.astype(np.bool_)
        return array_of(values, missing if missing is not None and missing.any() else None)

    def rows(self, rows: Array, missing: Array, column: int = 0) -> pa.Array:
        """The values that some rows hold."""
        ring = self.shared.rings[column]
        bits = ring[np.where(missing, 0, rows) & (len(ring) - 1)]
        floats = self.shared.kinds[column] == "float64"
        return self.typed(bits.view(np.float64) if floats else bits, missing, column)


class CountForm(Form):
    """Rows, or those that are not missing."""

    cells = "count"

    def items(self, batch: Batch, row: int) -> Array:
        """One for each row that counts."""
        if batch.valid is None:
            return np.ones(batch.size, np.int64)
        return batch.valid.astype(np.int64)

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """As they are."""
        return array_of(raw.view(np.int64))


class ExtremeForm(Form):
    """Max and Min: keys, of which the largest wins."""

    cells = "larger"

    def __init__(self, shared: "Shared") -> None:
        super().__init__(shared)
        self.smallest = type(self.aggregate) is Min

    def items(self, batch: Batch, row: int) -> Array:
        """The keys; of rows that are missing, the key that never wins."""
        keys = keys_of(batch.columns[0], self.smallest)
        return keys if batch.valid is None else np.where(batch.valid, keys, LEAST)

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """Back from keys."""
        missing = self.shared.missing(lefts, rights)
        return self.typed(values_of(raw, self.shared.kinds[0], self.smallest), missing)


class EndForm(Form):
    """First and Last: the number of the row that has the answer."""

    cells = "larger"

    def __init__(self, shared: "Shared") -> None:
        super().__init__(shared)
        self.turn = -1 if type(self.aggregate) is First else 0

    def items(self, batch: Batch, row: int) -> Array:
        """The row's number, turned so that the one wanted is the largest."""
        rows = np.arange(row, row + batch.size) ^ self.turn
        return rows if batch.valid is None else np.where(batch.valid, rows, LEAST)

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """What the row holds."""
        missing = raw == LEAST
        return self.rows(raw ^ self.turn, missing)


class MaxCountForm(Form):
    """The largest key, and how often it came."""

    cells = "pair"

    def items(self, batch: Batch, row: int) -> Array:
        """The key, once."""
        out = np.ones((batch.size, 2), np.int64)
        out[:, 0] = keys_of(batch.columns[0])
        if batch.valid is not None:
            out[~batch.valid] = LEAST
        return out

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """The count alone."""
        return array_of(np.maximum(words(raw)[:, 1], 0))


class ArgMaxForm(Form):
    """The largest key of the second input, and its oldest row."""

    cells = "pair"

    def items(self, batch: Batch, row: int) -> Array:
        """The key and the row's number, turned so that the oldest is the largest."""
        out = np.empty((batch.size, 2), np.int64)
        out[:, 0] = keys_of(batch.columns[1])
        out[:, 1] = ~np.arange(row, row + batch.size)
        if batch.valid is not None:
            out[~batch.valid] = LEAST
        return out

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """What the first input holds there."""
        turned = words(raw)[:, 1]
        return self.rows(~turned, turned == LEAST)


@njit(cache=True, nogil=True)
def narrowed(words, out):  # type: ignore[no-untyped-def]
    """Sums of two words as int64; the first that does not fit, or -1."""
    bad = -1
    for i in range(len(words)):
        low = np.int64(words[i, 0])
        out[i] = low
        if np.int64(words[i, 1]) != low >> 63 and bad < 0:
            bad = i
    return bad


class SumForm(Form):
    """Sums of integers, in two words: exact whatever comes."""

    cells = "wide"

    def items(self, batch: Batch, row: int) -> Array:
        """The values; 0 where missing."""
        return batch.filled()

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """Checked here and only here: a sum beyond int64 is an error, or null."""
        raw = words(raw)
        out = np.empty(len(raw), np.int64)
        missing = self.shared.missing(lefts, rights)
        bad = narrowed(raw, out)
        if bad >= 0 and self.aggregate.overflow == "error":
            raise self._overflow(raw[bad], int(lefts[bad]), int(rights[bad]))
        if bad >= 0:
            beyond = raw[:, 1].view(np.int64) != out >> 63
            missing = beyond if missing is None else missing | beyond
        return array_of(out, missing if missing is not None and missing.any() else None)

    def _overflow(self, words: Array, left: int, right: int) -> SumOverflow:
        number = int.from_bytes(words.tobytes(), "little", signed=True)
        return SumOverflow(
            f"{self.aggregate!r}: the sum of rows {left} to {right} is {number}, which int64 "
            'cannot hold. Insert floats, or say overflow="null"'
        )


class MeanForm(SumForm):
    """Sums of integers, rounded once and divided once."""

    def answers(self, raw: Array, lefts: Array, rights: Array) -> pa.Array:
        """The rounded sum, divided."""
        sums = np.empty(len(raw))
        rounded(words(raw), 0, sums)
        return self.divided(sums, lefts, rights)

    def divided(self, sums: Array, lefts: Array, rights: Array) -> pa.Array:
        """By how many rows are present."""
        counts, missing = self.shared.present(lefts, rights), self.shared.missing(lefts, rights)
        return array_of(sums / np.maximum(counts, 1) + 0.0, missing)


FORMS: dict[type[Aggregate], type[Form]] = {
    Count: CountForm,
    Sum: SumForm,
    Mean: MeanForm,
    Max: ExtremeForm,
    Min: ExtremeForm,
    First: EndForm,
    Last: EndForm,
    MaxCount: MaxCountForm,
    ArgMax: ArgMaxForm,
}
"""What base intervals, landmarks and the structures for comparison compile."""


def compiled_names(forms: dict[type[Aggregate], Any]) -> str:
    """Which aggregates, for messages."""
    return ", ".join(kind.__name__ for kind in forms)
