"""Which values were seen: sure where the answer is no, nearly sure where it is yes."""

import math
import struct
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.hashed import WIDTH, Array, as_hashes, union
from windrow.aggregates.hashing import hash64
from windrow.aggregates.schema import Schema
from windrow.aggregates.sketches import checked_share
from windrow.errors import BadBytes, BadSpecification

_HEAD = struct.Struct("<4sBBQ")
_MAGIC = b"WBLM"
_FEW, _BITS = 0, 1
_LARGEST = 1 << 32


def places_of(hashes: Array, bits: int, tests: int) -> Array:
    """The bits of each hash: two halves make as many as are needed (Kirsch and Mitzenmacher)."""
    low = hashes & np.uint64(0xFFFFFFFF)
    high = hashes >> np.uint64(32) | np.uint64(1)
    steps = np.arange(tests, dtype=np.uint64)
    return (low[:, None] + high[:, None] * steps) % np.uint64(bits)


def _dense(hashes: Array, bits: int, tests: int) -> bytes:
    flags = np.zeros(-(-bits // 8) * 8, np.bool_)
    flags[places_of(hashes, bits, tests).ravel().astype(np.int64)] = True
    return np.packbits(flags, bitorder="little").tobytes()


class Bloom(Aggregate):
    """A Bloom filter of the window's values: bytes that ``Bloom.contains`` asks.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Bloom(capacity=100, error=0.01))
    >>> for name in ["ann", "bob"]: window.insert(name)
    >>> [wr.Bloom.contains(window.query(), name) for name in ["ann", "bob", "cid"]]
    [True, True, False]

    No value of the window is ever denied. Another value is taken for one of them with a probability
    of at most ``error`` (default 0.01) while the window holds up to ``capacity`` (default 1000)
    different values, and more often above that. ``bits`` and ``tests`` (hashes for each value)
    follow from the two: 1,199 bytes for the defaults. While that is smaller, the values' hashes
    themselves are kept. The bytes are the same in every process, in any order and grouping.
    """

    approximate = True
    commutative = True
    reproducible = True
    inputs = ("any",)
    schema = Schema.single("value", "filter")

    def __init__(
        self, *columns: str, capacity: int = 1000, error: float = 0.01, **options: Unpack[Options]
    ) -> None:
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
            raise BadSpecification(f"Bloom: capacity= is a number from 1 on, not {capacity!r}")
        self.capacity = capacity
        self.error = checked_share("Bloom", "error", error, 1e-9, 0.5)
        if self.bits >= _LARGEST:
            raise BadSpecification(
                f"Bloom: capacity={capacity!r} with error={error!r} takes {self.bits:,} bits; the "
                f"most is {_LARGEST - 1:,}"
            )
        super().__init__(*columns, **options)

    @property
    def bits(self) -> int:
        """The size of the filter: −n·ln(error) / ln(2)²."""
        return max(8, math.ceil(-self.capacity * math.log(self.error) / math.log(2) ** 2))

    @property
    def tests(self) -> int:
        """How many bits stand for a value: bits / n · ln 2."""
        return max(1, round(self.bits / self.capacity * math.log(2)))

    @property
    def error_bound(self) -> float:
        """The share of other values that are taken for ones of the window, at capacity."""
        return self.error

    @property
    def approximation(self) -> str:
        """How often wrong, and how large."""
        return (
            f"approximate: {100 * self.error:g} % false positives at {self.capacity:,} different "
            f"values, no false negatives; at most {_HEAD.size + -(-self.bits // 8):,} bytes"
        )

    def _head(self, form: int) -> bytes:
        return _HEAD.pack(_MAGIC, form, self.tests, self.bits)

    def _made(self, hashes: Array) -> bytes:
        """Hashes while they are fewer bytes than the filter: a matter of their number alone."""
        if len(hashes) * WIDTH < self.bits // 8:
            return self._head(_FEW) + hashes.tobytes()
        return self._head(_BITS) + _dense(hashes, self.bits, self.tests)

    def lift(self, value: Any) -> bytes:
        """A filter of one value."""
        return self._made(np.array([hash64(value)], "<u8"))

    def of_run(self, values: Iterable[Any]) -> bytes:
        """The filter of many values at once."""
        return self._made(np.unique(np.array([hash64(x) for x in dict.fromkeys(values)], "<u8")))

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Bit by bit, or."""
        if a[4] == b[4] == _FEW:
            return self._made(union(as_hashes(a, _HEAD.size), as_hashes(b, _HEAD.size)))
        x, y = (np.frombuffer(self._bits_of(p), np.uint8) for p in (a, b))
        return self._head(_BITS) + np.bitwise_or(x, y).tobytes()

    def _bits_of(self, data: bytes) -> bytes:
        body = data[_HEAD.size :]
        return body if data[4] == _BITS else _dense(as_hashes(body), self.bits, self.tests)

    @staticmethod
    def contains(answer: bytes, value: Any) -> bool:
        """Whether a filter, as a window answered it, says that it has seen a value."""
        if not isinstance(answer, bytes) or answer[:4] != _MAGIC or len(answer) < _HEAD.size:
            raise BadBytes("Bloom.contains: expected the bytes that a window of Bloom answered")
        _, form, tests, bits = _HEAD.unpack_from(answer)
        wanted = np.array([hash64(value)], "<u8")
        if form == _FEW:
            return bool((as_hashes(answer, _HEAD.size) == wanted[0]).any())
        places = places_of(wanted, bits, tests)[0].astype(np.int64)
        return all(answer[_HEAD.size + place // 8] >> place % 8 & 1 for place in places.tolist())
