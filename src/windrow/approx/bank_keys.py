"""The keys of a bank: which row each one has, in arrays only.

Integers take 8 bytes each. Texts (and bytes) lie one behind the other in a pool, with 8 bytes for
where each ends. Both have an index of about 1.35 places of 4 bytes for a key.
"""

import operator
from typing import Any, Protocol

import numpy as np

from windrow.errors import BadSpecification, BadValue

Array = np.ndarray[Any, Any]
PLACES = 1.35
ROOM = 1.125


class Keys(Protocol):
    """What a bank needs of its keys; rows are numbered in the order in which keys came."""

    kind: str
    used: int

    @property
    def capacity(self) -> int:
        """How many keys there is room for."""

    @property
    def nbytes(self) -> int:
        """Memory, with free places."""

    def find(self, asked: Any) -> Array:
        """The rows of some keys, −1 for those that have none."""

    def place(self, asked: Any, found: Array, done: int) -> int:
        """The rows of keys from the ``done``-th on, new ones too; how many then are done."""

    def resize(self, capacity: int, kept: Array | None = None) -> None:
        """Room for so many; with ``kept``, of these rows only."""

    def listed(self, rows: Array | None = None) -> Array:
        """The keys of all rows, or of some."""

    def to_bytes(self) -> bytes:
        """All keys."""

    def read(self, data: bytes, count: int) -> int:
        """Take what ``to_bytes`` wrote; how many bytes that was."""

    def is_one(self, key: Any) -> bool:
        """Whether it could be a key."""


def new_index(capacity: int) -> Array:
    """All places free."""
    if capacity >= 1 << 31:
        raise BadSpecification("a bank holds up to 2,147,483,647 keys: use several")
    return np.full(int(capacity * PLACES) + 8, -1, np.int32)


class IntegerKeys:
    """Whole numbers of up to 64 bits."""

    kind = "i"

    def __init__(self, capacity: int) -> None:
        self.used = 0
        self.keys = np.zeros(capacity, np.int64)
        self.index = new_index(capacity)

    @property
    def capacity(self) -> int:
        """How many keys there is room for."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Memory, with free places."""
        return self.keys.nbytes + self.index.nbytes

    @staticmethod
    def taken(keys: Any) -> Array:
        """Keys as people give them, as 64-bit integers."""
        given = np.asarray(keys)
        if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
            raise BadValue(
                f"keys of type {given.dtype} in {given.ndim} dimensions: this bank's keys are "
                "whole numbers of up to 64 bits"
            )
        if given.dtype == np.uint64 and len(given) and given.max() >= 1 << 63:
            raise BadValue("a key of 2**63 or more: keys are signed 64-bit numbers")
        return np.ascontiguousarray(given, np.int64)

    def find(self, asked: Any) -> Array:
        """The rows of some keys, −1 for those that have none."""
        from windrow.columns.approx.places import find_integers

        found = np.empty(len(asked), np.int64)
        find_integers(self.index, self.keys, asked, found)
        return found

    def place(self, asked: Any, found: Array, done: int) -> int:
        """The rows of keys from the ``done``-th on, new ones too; how many then are done."""
        from windrow.columns.approx.places import place_integers

        done, self.used = place_integers(self.index, self.keys, self.used, asked, found, done)
        return int(done)

    def resize(self, capacity: int, kept: Array | None = None) -> None:
        """Room for so many; with ``kept``, of these rows only."""
        from windrow.columns.approx.bank import build_index

        old = self.keys[: self.used] if kept is None else self.keys[kept]
        self.keys, self.index, self.used = (
            np.zeros(capacity, np.int64),
            new_index(capacity),
            len(old),
        )
        self.keys[: self.used] = old
        build_index(self.index, self.keys, self.used)

    def listed(self, rows: Array | None = None) -> Array:
        """The keys of all rows, or of some."""
        return self.keys[: self.used].copy() if rows is None else self.keys[rows]

    def to_bytes(self) -> bytes:
        """All keys."""
        return self.keys[: self.used].astype("<i8").tobytes()

    def read(self, data: bytes, count: int) -> int:
        """Take what ``to_bytes`` wrote; how many bytes that was."""
        self.keys[:count] = np.frombuffer(data, "<i8", count)
        self.used = count
        self.resize(len(self.keys))
        return 8 * count

    def is_one(self, key: Any) -> bool:
        """Whether it could be a key."""
        try:
            return -(1 << 63) <= operator.index(key) < 1 << 63
        except TypeError:
            return False


class TextKeys:
    """Texts, or bytes."""

    def __init__(self, capacity: int, text: bool) -> None:
        self.kind = "t" if text else "b"
        self.used = 0
        self.ends = np.zeros(capacity + 1, np.int64)
        self.pool = np.zeros(8 * capacity, np.uint8)
        self.index = new_index(capacity)

    @property
    def capacity(self) -> int:
        """How many keys there is room for."""
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        """Memory, with free places."""
        return self.ends.nbytes + self.pool.nbytes + self.index.nbytes

    def taken(self, keys: Any) -> "Texts":
        """Keys as people give them, as bytes."""
        from windrow.columns.approx.places import texts_of

        data, offsets, text = texts_of(keys)
        if len(offsets) > 1 and text != (self.kind == "t"):
            raise BadValue("a bank's keys are all texts or all bytes, as the first ones were")
        return Texts(data, offsets)

    def find(self, asked: Any) -> Array:
        """The rows of some keys, −1 for those that have none."""
        from windrow.columns.approx.places import find_texts

        found = np.empty(len(asked), np.int64)
        find_texts(self.index, self.pool, self.ends, asked.data, asked.offsets, found)
        return found

    def place(self, asked: Any, found: Array, done: int) -> int:
        """The rows of keys from the ``done``-th on, new ones too; how many then are done."""
        from windrow.columns.approx.places import place_texts

        where = (self.index, self.pool, self.ends, self.used)
        done, self.used = place_texts(*where, asked.data, asked.offsets, found, done)
        if done < len(asked) and self.used < self.capacity:  # the pool is full
            size = int(asked.offsets[done + 1] - asked.offsets[done])
            more = np.zeros(int(len(self.pool) * ROOM) + size + 64, np.uint8)
            more[: len(self.pool)] = self.pool
            self.pool = more
        return int(done)

    def resize(self, capacity: int, kept: Array | None = None) -> None:
        """Room for so many; with ``kept``, of these rows only."""
        from windrow.columns.approx.places import index_texts, moved_texts

        rows = np.arange(self.used) if kept is None else kept
        size = int((self.ends[rows + 1] - self.ends[rows]).sum())
        typical = size // max(1, len(rows)) + 1
        ends = np.zeros(capacity + 1, np.int64)
        pool = np.zeros(size + typical * (capacity - len(rows)), np.uint8)
        moved_texts(self.pool, self.ends, rows, pool, ends)
        self.ends, self.pool, self.used = ends, pool, len(rows)
        self.index = new_index(capacity)
        index_texts(self.index, self.pool, self.ends, self.used)

    def listed(self, rows: Array | None = None) -> Array:
        """The keys of all rows, or of some, as Python's texts or bytes."""
        raw = self.pool.tobytes()
        out = np.empty(self.used if rows is None else len(rows), object)
        for place, row in enumerate(range(self.used) if rows is None else rows.tolist()):
            key = raw[self.ends[row] : self.ends[row + 1]]
            out[place] = key.decode() if self.kind == "t" else key
        return out

    def to_bytes(self) -> bytes:
        """All keys."""
        ends = self.ends[: self.used + 1]
        return ends.astype("<i8").tobytes() + self.pool[: ends[-1]].tobytes()

    def read(self, data: bytes, count: int) -> int:
        """Take what ``to_bytes`` wrote; how many bytes that was."""
        head = 8 * (count + 1)
        ends = np.frombuffer(data, "<i8", count + 1)
        capacity = self.capacity
        self.ends = np.zeros(capacity + 1, np.int64)
        self.ends[: count + 1] = ends
        self.pool = np.frombuffer(data, np.uint8, int(ends[-1]), head).copy()
        self.used = count
        self.resize(capacity)
        return head + int(ends[-1])

    def is_one(self, key: Any) -> bool:
        """Whether it could be a key."""
        return isinstance(key, str if self.kind == "t" else bytes)


class Texts:
    """Keys as bytes, and where each begins."""

    def __init__(self, data: Array, offsets: Array) -> None:
        self.data, self.offsets = data, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1


def keys_like(keys: Any, capacity: int) -> "IntegerKeys | TextKeys":
    """What suits the first keys that come."""
    given = keys if hasattr(keys, "type") else np.asarray(keys)
    kind = getattr(given, "dtype", None)
    whole = kind is not None and (kind.kind in "iu" or not len(given))
    if hasattr(keys, "type"):  # an Arrow array
        whole = "int" in str(keys.type)
    if whole or (kind is not None and kind.kind not in "USO"):
        return IntegerKeys(capacity)
    from windrow.columns.approx.places import texts_of

    return TextKeys(capacity, texts_of(keys)[2])
