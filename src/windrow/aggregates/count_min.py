"""About how often each value occurs: never too low, and seldom much too high."""

import math
import struct
from collections import Counter
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from windrow.aggregates.base import Options
from windrow.aggregates.hashed import Array, added, as_hashes
from windrow.aggregates.hashing import hash64
from windrow.aggregates.sketches import Sketch, checked_share, datasketches
from windrow.errors import BadBytes

_HEAD = struct.Struct("<4sBQ")
_MAGIC = b"WCMS"
_FEW, _TABLE = 0, 1
_SIGN = 1 << 63
_NOTHING: Any = object()


def _pairs(data: bytes) -> tuple[Array, Array]:
    """The hashes and counts of a short form."""
    count = _HEAD.unpack_from(data)[2]
    return as_hashes(data, _HEAD.size, count), as_hashes(data, _HEAD.size + 8 * count, count)


class CountMin(Sketch):
    """A CountMin sketch of the window's values: about how often each occurs, never too low.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.CountMin(of="b"))
    >>> [window.insert(x) for x in "abbcb"]
    [0, 1, 2, 2, 3]

    With ``of=`` the answer is the count of that value. Without, it is the sketch as bytes, which
    ``CountMin.estimate(answer, value)`` asks. A count is too high by at most ``error`` (default
    0.01) of the rows with probability ``confidence`` (default 0.99). Until as many different values
    have come as would fill the table, their hashes are counted, and counts are exact. The same rows
    give the same bits on every engine, in any order and grouping.
    """

    reproducible = True
    inputs = ("any",)
    name = "count_min"

    def __init__(
        self,
        *columns: str,
        error: float = 0.01,
        confidence: float = 0.99,
        of: Any = _NOTHING,
        **options: Unpack[Options],
    ) -> None:
        self.error = checked_share("CountMin", "error", error, 1e-6, 0.5)
        self.confidence = checked_share("CountMin", "confidence", confidence, 0.5, 1 - 1e-9)
        super().__init__(*columns, **options)
        if of is not _NOTHING:
            self.of = of
            self.empty = 0

    def options(self) -> dict[str, Any]:
        """Error, confidence, and the value that is asked for."""
        return {k: v for k, v in super().options().items() if k != "empty"}

    @property
    def asks(self) -> bool:
        """Whether the answer is the count of one value."""
        return hasattr(self, "of")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table: ⌈ln 1/(1 − confidence)⌉ and ⌈e / error⌉."""
        rows = math.ceil(math.log(1 / (1 - self.confidence)))
        return max(1, rows), max(3, math.ceil(math.e / self.error))

    @property
    def error_bound(self) -> float:
        """How much too high a count is at most, as a share of the rows, at that confidence."""
        return math.e / self.shape[1]

    @property
    def approximation(self) -> str:
        """How far off, and how large."""
        rows, columns = self.shape
        return (
            f"approximate: counts too high by at most {100 * self.error_bound:.2g} % of the rows "
            f"in {100 * self.confidence:g} % of cases, never too low; "
            f"at most {8 * rows * columns + 40:,} bytes"
        )

    def _few(self, hashes: Array, counts: Array) -> bytes:
        """Counted hashes while they are fewer than the table's numbers; their number decides."""
        if 2 * len(hashes) < math.prod(self.shape):
            head = _HEAD.pack(_MAGIC, _FEW, len(hashes))
            return head + hashes.astype("<u8").tobytes() + counts.astype("<u8").tobytes()
        return self._written(self._table(hashes, counts))

    def _table(self, hashes: Array, counts: Array) -> Any:
        table = datasketches().count_min_sketch(*self.shape)
        for value, n in zip(hashes.tolist(), counts.tolist(), strict=True):
            table.update(value - _SIGN, n)
        return table

    @staticmethod
    def _written(table: Any) -> bytes:
        data: bytes = table.serialize()
        return _HEAD.pack(_MAGIC, _TABLE, len(data)) + data

    def lift(self, value: Any) -> bytes:
        """One value, once."""
        return self._few(np.array([hash64(value)], "<u8"), np.array([1], "<u8"))

    def of_run(self, values: Iterable[Any]) -> bytes:
        """The sketch of many values at once."""
        counted = Counter(values)
        hashes = np.array([hash64(value) for value in counted], "<u8")
        counts = np.array(list(counted.values()), "<u8")
        nothing = np.empty(0, "<u8")
        return self._few(*added((hashes, counts), (nothing, nothing)))

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Add."""
        if a[4] == b[4] == _FEW:
            return self._few(*added(_pairs(a), _pairs(b)))
        x, y = (_read(p) if p[4] == _TABLE else self._table(*_pairs(p)) for p in (a, b))
        x.merge(y)
        return self._written(x)

    def lower(self, data: bytes) -> Any:
        """The count that is asked for, or the sketch."""
        return self.estimate(data, self.of) if self.asks else data

    @staticmethod
    def estimate(answer: bytes, value: Any) -> int:
        """About how often a value is in the window that answered these bytes."""
        if not isinstance(answer, bytes) or answer[:4] != _MAGIC or len(answer) < _HEAD.size:
            raise BadBytes("CountMin.estimate: expected the bytes that a window answered")
        wanted = hash64(value)
        if answer[4] == _FEW:
            hashes, counts = _pairs(answer)
            return int(counts[hashes == np.uint64(wanted)].sum())
        return int(_read(answer).get_estimate(wanted - _SIGN))


def _read(data: bytes) -> Any:
    return datasketches().count_min_sketch.deserialize(data[_HEAD.size :])
