"""Exact quantiles of any window, from base intervals whose rows are kept sorted; compiled.

Level ℓ holds the active rows in sorted runs of 2^ℓ rows. A window is O(log W) of these runs, and
the k-th smallest of them all is found by placing pivots in each (``quantile_kernels``).

Time: insert amortised log2 N moves of a row, lookup O(log² W) steps for each pivot that is taken.
Space: N·(log2 N + 1) keys of 8 bytes for N rows kept.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
3.3. ``method="lower"`` is its definition: the element at position ⌊φ·n⌋ of the n values in order,
counted from 1; where that is 0, the first.
"""

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, Schema
from windrow.columns.column import array_of
from windrow.columns.ranges import Array
from windrow.columns.shared import quantile_kernels
from windrow.columns.shared.answering import answered
from windrow.columns.shared.base import Shared
from windrow.columns.shared.forms import Form
from windrow.columns.shared.methods import METHODS, interpolated, places
from windrow.columns.shared.values import Batch, as_kind, column_of, keys_of, values_of
from windrow.errors import BadSpecification

LARGEST = np.iinfo(np.int64).max


class Ordered(Aggregate):
    """What quantiles take: any values that can be ordered. It is not combined."""

    kind = "holistic"
    inputs = ("orderable",)
    schema = Schema.single("value", "values")

    @staticmethod
    def combine(a: Any, b: Any) -> Any:
        """Never called."""
        raise NotImplementedError


class OrderedForm(Form):
    """Keys in the values' order."""

    cells = "larger"

    def items(self, batch: Batch, row: int) -> Array:
        """The keys; of rows that are missing, the largest, which are never asked for."""
        keys = keys_of(batch.columns[0])
        return keys if batch.valid is None else np.where(batch.valid, keys, LARGEST)


class Quantiles(Shared):
    """Any quantile of any window of the last rows.

    ``method``: what lies between two rows, as in NumPy; ``"linear"`` as pandas has it, ``"lower"``
    as the paper has it.

    >>> import windrow as wr
    >>> shared = Quantiles(longest=1000)
    >>> shared.insert_many([3.0, 1.0, 4.0, 1.0, 5.0])
    >>> shared.lookup(0, 4, 0.5), shared.lookup(1, 2, 0.25), shared.count_below(0, 4, 4.0)
    (3.0, 1.75, 3)
    """

    forms: ClassVar[dict[type[Aggregate], type[Form]]] = {Ordered: OrderedForm}

    def __init__(
        self,
        longest: int | None = None,
        *,
        method: str = "linear",
        nan: Any = "value",
        dtype: str | None = None,
    ) -> None:
        self.method = _known(method)
        super().__init__(Ordered(nan=nan), longest, dtype=dtype)

    def _allocate(self) -> None:
        levels = (self.longest or self._capacity).bit_length()
        self._runs = np.zeros((levels, self._capacity), np.int64)

    def _append(self, batch: Batch, row: int) -> None:
        quantile_kernels.append(self._runs, self._form.items(batch, row), row)

    def lookup(self, left: int, right: int, phi: float = 0.5, method: str | None = None) -> Any:
        """The quantile ``phi`` of rows ``left`` to ``right``, both included."""
        return self.lookup_many([left], [right], phi, method)[0].as_py()

    def lookup_many(
        self, lefts: Any, rights: Any, phi: Any = 0.5, method: str | None = None
    ) -> pa.Array:
        """The quantiles of many ranges of rows; ``phi`` is one number, or one for each range."""
        left, right = self._ranges(lefts, rights)
        return self._found(left, right, phi=phi, method=method)

    def answer(
        self,
        values: Any,
        lefts: Any,
        rights: Any,
        phi: float = 0.5,
        method: str | None = None,
        *,
        at: Any = None,
    ) -> pa.Array:
        """Add rows, and answer ranges as if each was asked as soon as its last row was there."""
        return answered(self, values, lefts, rights, at, phi=float(phi), method=method)

    def _found(self, left: Array, right: Array, **how: Any) -> pa.Array:
        phi, method = how["phi"], how["method"]
        name = self.method if method is None else _known(method)
        wanted = np.asarray(phi, np.float64)
        if not np.all((wanted >= 0.0) & (wanted <= 1.0)):
            raise BadSpecification(f"a quantile is from 0 to 1, not {phi!r}")
        if wanted.ndim and wanted.shape != left.shape:
            raise BadSpecification(f"{len(left)} ranges, but {wanted.size} quantiles")
        counts = self.present(left, right)
        ranks, weights = places(name, counts, np.broadcast_to(wanted, counts.shape))
        ranks = np.where(counts > 0, ranks, -1)
        keys = np.zeros((len(left), 2), np.int64)
        quantile_kernels.select(self._runs, left, right, ranks, keys)
        missing = counts == 0
        kind = self.kinds[0]
        low, high = values_of(keys[:, 0], kind), values_of(keys[:, 1], kind)
        if weights is None:
            return self._form.typed(low, missing)
        return array_of(interpolated(low, high, weights), missing if missing.any() else None)

    def median(self, left: int, right: int) -> Any:
        """The middle value, or the mean of the two in the middle."""
        return self.lookup(left, right, 0.5, "linear")

    def count_below(self, left: int, right: int, x: float) -> int:
        """How many values of rows ``left`` to ``right`` are below x; NaN is above all others."""
        return int(self._counted([left], [right], [x], False)[0])

    def rank(self, left: int, right: int, x: float) -> int:
        """How many values of rows ``left`` to ``right`` are not above x: the last place of x."""
        return int(self._counted([left], [right], [x], True)[0])

    def count_below_many(self, lefts: Any, rights: Any, x: Any) -> pa.Array:
        """``count_below`` of many ranges; ``x`` is an array, one for each."""
        return array_of(self._counted(lefts, rights, x, False))

    def rank_many(self, lefts: Any, rights: Any, x: Any) -> pa.Array:
        """``rank`` of many ranges; ``x`` is an array, one for each."""
        return array_of(self._counted(lefts, rights, x, True))

    def _counted(self, lefts: Any, rights: Any, x: Any, equal: bool) -> Array:
        left, right = self._ranges(lefts, rights)
        column = column_of(x, "x")
        if column.valid is not None or len(column.values) != len(left):
            raise BadSpecification(f"{len(left)} values to compare with are needed, none missing")
        counts, out = self.present(left, right), np.empty(len(left), np.int64)
        below, above = np.zeros(len(left), np.bool_), np.zeros(len(left), np.bool_)
        if self.kinds[0] != "float64" and column.kind == "float64":  # to the next integer
            found = np.floor(column.values) if equal else np.ceil(column.values)
            below, above = found < -(2.0**63), ~(found < 2.0**63)
            column.values = np.where(below | above, 0.0, found).astype(np.int64)
        keys = keys_of(as_kind(column, self.kinds[0], "x"))
        quantile_kernels.count_before(self._runs, left, right, keys, equal, out)
        return np.where(above, counts, np.where(below, 0, np.minimum(out, counts)))

    def _raw(self, lefts: Array, rights: Array) -> Array:
        raise AssertionError("quantiles have no partials to combine")

    def _stored(self) -> list[range]:
        rows = self.active
        return [
            range(-(-rows.start >> level), rows.stop >> level) for level in range(len(self._runs))
        ]

    def stored_partials(self) -> int:
        """How many keys are in sorted runs of active rows, over all levels."""
        return sum(len(numbers) << level for level, numbers in enumerate(self._stored()))

    def _partials(self) -> list[Array]:
        found = []
        for level, numbers in enumerate(self._stored()):
            rows = np.arange(numbers.start << level, max(numbers.start, numbers.stop) << level)
            found.append(self._runs[level, rows & (self._capacity - 1)])
        return found

    def _options(self) -> tuple[Any, ...]:
        return (self.longest, self.dtype, self.method, self.aggregate.nan)

    @classmethod
    def _like(cls, aggregate: Any, options: tuple[Any, ...]) -> Self:
        longest, dtype, method, nan = options
        return cls(longest, method=method, nan=nan, dtype=dtype)

    @classmethod
    def _fingerprint(cls, aggregate: Aggregate | None) -> bytes:
        return super()._fingerprint(None)


def _known(method: str) -> str:
    if method not in METHODS:
        raise BadSpecification(f"method is one of {', '.join(METHODS)}, not {method!r}")
    return method
