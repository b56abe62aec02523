"""Chunks: how windows and the state of streams lie in a store, both alike.

    prefix "h"              the head: what it is, which rows it holds, what is where
    prefix "c" number(8)    a chunk; number = shelf · 2^48 + place
    prefix "w" number(8)    rows that wait (streams)

Every value is a frame of ``windrow.aggregates.schema``: version, kind, whose it is, length,
payload, checksum. A shelf is a level of a stored window, or a window's segments in a stream; shelf
0 are the rows themselves. What changed is written with the head, all or nothing. In Spark's state
the same chunks lie under the same numbers.
"""

from collections.abc import Iterable
from typing import Protocol

from windrow.stores.base import Store

PLACES = 48
"""Bits of a chunk's number that say where on its shelf it is."""


def chunk_number(shelf: int, place: int) -> int:
    """The number of a chunk."""
    return shelf << PLACES | place


def head_key(prefix: bytes) -> bytes:
    """Where the head lies."""
    return prefix + b"h"


def chunk_key(prefix: bytes, number: int, kind: bytes = b"c") -> bytes:
    """Where a chunk lies."""
    return prefix + kind + number.to_bytes(8, "big")


class Space(Protocol):
    """Bytes under numbers."""

    def get(self, number: int) -> bytes | None:
        """The bytes under a number."""

    def put(self, number: int, data: bytes) -> None:
        """Write bytes under a number."""

    def remove(self, number: int) -> None:
        """Forget a number."""

    def clear(self) -> None:
        """Forget everything."""


class StoreSpace:
    """The chunks of one kind in a store; changes wait here until they are written."""

    def __init__(self, store: Store, prefix: bytes, kind: bytes) -> None:
        self._store, self._prefix, self._kind = store, prefix, kind
        self.changes: dict[bytes, bytes | None] = {}

    def get(self, number: int) -> bytes | None:
        """The bytes under a number."""
        key = chunk_key(self._prefix, number, self._kind)
        return self.changes[key] if key in self.changes else self._store.get(key)

    def put(self, number: int, data: bytes) -> None:
        """Write bytes under a number."""
        self.changes[chunk_key(self._prefix, number, self._kind)] = data

    def remove(self, number: int) -> None:
        """Forget a number."""
        self.changes[chunk_key(self._prefix, number, self._kind)] = None

    def clear(self) -> None:
        """Forget everything."""
        self.changes = dict.fromkeys(self._store.keys(self._prefix + self._kind))


class ChunkStore:
    """The state of a stream's bucket in a store, under a prefix."""

    log: Space
    waiting: Space

    def __init__(self, store: Store, prefix: bytes = b"", later: bool = False) -> None:
        """``later``: nothing is written but by ``write``."""
        self._store, self._prefix, self._later = store, prefix, later
        self._spaces = [StoreSpace(store, prefix, kind) for kind in (b"c", b"w")]
        self.log, self.waiting = self._spaces
        self._head: bytes | None = None
        self._written: bytes | None = None
        self._known = False

    def load(self) -> bytes | None:
        """The head, where there is one."""
        if not self._known:
            self._head = self._written = self._store.get(head_key(self._prefix))
            self._known = True
        return self._head

    def save(self, head: bytes) -> None:
        """The head and all that changed: written at once, or when it is said (``later``)."""
        self._head, self._known = head, True
        if not self._later:
            self.write()

    def write(self) -> None:
        """Write the head with all that changed, in one write; refused if another one did."""
        self.write_with({})

    def write_with(self, more: dict[bytes, bytes]) -> None:
        """The same, and more under keys of its own."""
        assert self._head is not None
        key = head_key(self._prefix)
        changes = [item for space in self._spaces for item in space.changes.items()]
        puts = {key: data for key, data in changes if data is not None}
        deletes: Iterable[bytes] = [key for key, data in changes if data is None]
        self._store.write({**puts, **more, key: self._head}, deletes, expected=(key, self._written))
        self._written = self._head
        for space in self._spaces:
            space.changes.clear()
