"""Banks: one counter for each of millions of keys, in one block of memory.

A key has a row of ⌈(bits + 1)/8⌉ bytes in one array, its 8 bytes in another, and about 1.35 places
of 4 bytes in an index; nothing else, and no Python object. Arrays grow by an eighth.
"""

import operator
import zlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from windrow.approx import frame
from windrow.approx.base import Counter
from windrow.approx.counting import Count
from windrow.approx.summing import Sum
from windrow.errors import BadBytes, BadSpecification, BadValue

Array = np.ndarray[Any, Any]
_MAGIC = b"windrow bank\x01"
_PLACES = 1.35
_ROOM = 1.125


class Bank:
    """Counts or sums of the last ``window`` values of each key, and a bit for whether it is idle.

    ``kind`` is ``"count"`` or ``"sum"``. Keys are 64-bit integers.

    >>> clicks = Bank("count", window=100, epsilon=0.05)
    >>> clicks.insert_many([7, 8, 7, 7], [True, True, False, True])
    >>> clicks.query([7, 8, 9]).round().tolist(), clicks.error_bound
    ([0.0, 0.0, 0.0], 4.5)
    >>> clicks.insert_many([7] * 100)
    >>> keys, estimates = clicks.heavy(90)
    >>> keys.tolist()
    [7]
    """

    def __init__(
        self, kind: str, window: int, epsilon: Any, maximum: int = 1, *, clamp: bool = False
    ) -> None:
        if kind not in ("count", "sum"):
            raise BadSpecification(f'kind={kind!r}: a bank is one of "count" and "sum"')
        if kind == "count" and maximum != 1:
            raise BadSpecification(f"a count's values are 0 and 1: maximum={maximum!r} is for sums")
        self.kind = kind
        self._one: Counter = (
            Count(window, epsilon, clamp=clamp)
            if kind == "count"
            else Sum(window, maximum, epsilon, clamp=clamp)
        )
        layout = self._one.layout
        if not layout.fits_machine_words:
            raise BadSpecification(
                f"{self._one!r} has fields of more than 56 bits, which a bank does not take: give "
                "a smaller window or maximum"
            )
        from windrow.columns.approx.fields import numbers

        self.stride = (layout.bits + 8) >> 3
        self._numbers = numbers(layout, before=1)
        self._scale = layout.scale
        self._allocate(64)
        self._used = 0

    @property
    def error_bound(self) -> float:
        """No key's answer is ever further from the truth than this."""
        return self._one.error_bound

    @property
    def nbytes(self) -> int:
        """All memory that the bank has: rows, keys and index, with their free places."""
        return self._rows.nbytes + self._keys.nbytes + self._index.nbytes

    def bits(self) -> int:
        """The size of one key's counter."""
        return self._one.bits()

    def lower_bound_bits(self) -> int:
        """The fewest bits a key's counter can have, whatever the algorithm."""
        return self._one.lower_bound_bits()

    def __len__(self) -> int:
        return self._used

    def __contains__(self, key: Any) -> bool:
        return bool((self.keys() == operator.index(key)).any())

    def __repr__(self) -> str:
        return f"Bank of {self._used} × {self._one!r}"

    def keys(self) -> Array:
        """All keys, oldest first."""
        return self._keys[: self._used].copy()

    def insert_many(self, keys: Any, values: Any = None) -> None:
        """Take (key, value) pairs in order; without values each is worth 1. All or none."""
        from windrow.columns.approx.bank import insert

        many = _keys_of(keys)
        taken = np.ones(len(many), np.uint8) if values is None else self._values_of(values, many)
        done = 0
        while done < len(many):
            if self._used == len(self._keys):
                self._resize(int(self._used * _ROOM) + 64)
            step, self._used = insert(
                *(self._index, self._keys, self._rows, self._used, self.stride, self._numbers),
                *(many[done:], taken[done:]),
            )
            done += step

    def query(self, keys: Any) -> Array:
        """The estimate for each key; 0 for a key that has no counter."""
        from windrow.columns.approx.bank import query

        asked = _keys_of(keys)
        out = np.empty(len(asked))
        row = (self._index, self._keys, self._rows, self.stride, self._numbers)
        query(*row, asked, self._scale, out)
        return out

    def heavy(self, threshold: float) -> tuple[Array, Array]:
        """Keys that may have ``threshold`` or more, and their estimates, largest first.

        None is missed that has; one that is returned has at least ``threshold − 2·error_bound``.
        """
        from windrow.columns.approx.bank import query_rows

        out = np.empty(self._used)
        query_rows(self._rows, self._used, self.stride, self._numbers, self._scale, out)
        rows = np.flatnonzero(out >= threshold - self.error_bound)
        rows = rows[np.argsort(-out[rows], kind="stable")]
        return self._keys[rows], out[rows]

    def drop_idle(self) -> int:
        """Drop the keys without a value since the last call, and their memory; how many went."""
        from windrow.columns.approx.bank import compact

        before = self._used
        self._used = compact(self._keys, self._rows, before, self.stride)
        self._resize(max(int(self._used * _ROOM), 64))
        return before - self._used

    def to_bytes(self) -> bytes:
        """Version, checksum, parameters, keys and rows."""
        counter = self._one.to_bytes()
        n = self._used
        body = b"".join(
            (
                *(self.kind[:1].encode(), len(counter).to_bytes(8, "little"), counter),
                *(n.to_bytes(8, "little"), self._keys[:n].astype("<i8").tobytes()),
                self._rows[: n * self.stride].tobytes(),
            )
        )
        return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The bank that these bytes are of."""
        start = len(_MAGIC)
        body = data[start + 4 :]
        if data[:start] != _MAGIC or zlib.crc32(body) != int.from_bytes(
            data[start : start + 4], "little"
        ):
            raise BadBytes(f"{len(data)} bytes that are no bank's: cut short or damaged")
        size = int.from_bytes(body[1:9], "little")
        parameters, _ = frame.read(body[9 : 9 + size], None)
        _, W, R, epsilon, clamp = parameters
        made = cls("count" if R is None else "sum", W, epsilon, R or 1, clamp=clamp)
        at = 9 + size
        n = int.from_bytes(body[at : at + 8], "little")
        at += 8
        made._resize(max(int(n * _ROOM), 64))
        made._keys[:n] = np.frombuffer(body, "<i8", n, at)
        made._rows[: n * made.stride] = np.frombuffer(body, np.uint8, n * made.stride, at + 8 * n)
        made._used = n
        made._resize(len(made._keys))
        return made

    def save(self, path: str | Path) -> None:
        """Write the bank to a file, which is replaced as a whole."""
        target = Path(path)
        beside = target.with_name(target.name + ".part")
        beside.write_bytes(self.to_bytes())
        beside.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The bank that ``save`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())

    def _values_of(self, values: Any, keys: Array) -> Array:
        given = np.asarray(values)
        if len(given) != len(keys):
            raise BadValue(f"{len(keys)} keys, but {len(given)} values: give one for each")
        try:
            return self._one._many_units(given)
        except BadValue as error:
            limit = self._one.layout.R
            if given.dtype.kind in "iu":
                key = keys[int(np.argmax((given < 0) | (given > limit)))]
                raise BadValue(f"key {key}, {error}") from None
            raise

    def _allocate(self, capacity: int) -> None:
        if capacity >= 1 << 31:
            raise BadSpecification("a bank holds up to 2,147,483,647 keys: use several")
        self._keys = np.zeros(capacity, np.int64)
        self._rows = np.zeros(capacity * self.stride, np.uint8)
        self._index = np.full(int(capacity * _PLACES) + 8, -1, np.int32)

    def _resize(self, capacity: int) -> None:
        from windrow.columns.approx.bank import build_index

        keys, rows, n = self._keys, self._rows, self._used
        self._allocate(capacity)
        self._keys[:n] = keys[:n]
        self._rows[: n * self.stride] = rows[: n * self.stride]
        build_index(self._index, self._keys, n)


def _keys_of(keys: Any) -> Array:
    given = np.asarray(keys)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise BadValue(
            f"keys of type {given.dtype} in {given.ndim} dimensions: a bank's keys are whole "
            "numbers of up to 64 bits; give text a number first, from a dictionary or a stable hash"
        )
    if given.dtype == np.uint64 and len(given) and given.max() >= 1 << 63:
        raise BadValue("a key of 2**63 or more: keys are signed 64-bit numbers")
    return np.ascontiguousarray(given, np.int64)
