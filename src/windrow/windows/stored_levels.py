"""Levels whose chunks live in a store; only the ends of every level are in this process.

    prefix "c" number(8)      framed bytes of the partials' schema; see ``windrow.stores.chunks``

Of each level, the chunk at its young end is filled here, and one or two at its old end were read to
be looked at: O(log n) chunks. Chunks that are full wait, as bytes, for the next write. What lies
before the oldest row is deleted with later writes, a few keys at a time.
"""

from collections.abc import Iterator, Sequence

from windrow.aggregates import EMPTY, Partial
from windrow.aggregates.base import Aggregate
from windrow.errors import BadBytes
from windrow.stores import Store
from windrow.stores.chunks import chunk_key, chunk_number
from windrow.windows.levels import BITS, MASK, Chunk, Levels

_DELETED_AT_ONCE = 64
_READ_AHEAD = 2


class StoredLevels(Levels):
    """Chunks in a store, as a window of one aggregate wants them."""

    __slots__ = (
        "_check",
        "_prefix",
        "_schema",
        "_tails",
        "aggregate",
        "incarnation",
        "pending",
        "store",
    )

    def __init__(self, store: Store, prefix: bytes, aggregate: Aggregate) -> None:
        super().__init__()
        self.store = store
        self.incarnation = ""
        """Which window of this name: what an earlier one left behind is not taken for ours."""
        self.aggregate = aggregate
        self._prefix = prefix
        self._schema = aggregate.partial_schema
        self._check = self._schema.checker()
        self._tails: list[int] = []  # per level: the chunk that is being filled, -1 for none
        self.pending: dict[bytes, bytes] = {}
        """Full chunks that are not in the store yet."""

    def key(self, level: int, name: int) -> bytes:
        """Where a chunk lies."""
        return chunk_key(self._prefix, chunk_number(level, name))

    def _owner(self, level: int, name: int) -> str:
        return f"{self.aggregate.identification} {self.incarnation} {level}/{name}"

    def encoded(self, level: int, name: int) -> bytes:
        """A chunk that is here, as bytes."""
        return self._schema.encode(self.chunks[level][name], self._owner(level, name))

    def get(self, level: int, number: int) -> Partial:
        """An element that was put and is not dead."""
        chunk = self.chunks[level].get(number >> BITS) if level < len(self.chunks) else None
        if chunk is None:
            chunk = self._load(level, number >> BITS)
        if number & MASK >= len(chunk):
            key = self.key(level, number >> BITS)
            raise BadBytes(f"key {key!r} holds {len(chunk)} elements: the window is damaged")
        return chunk[number & MASK]

    def check(self, partials: Sequence[Partial]) -> None:
        """Raise for partials that have no byte form, before anything has changed."""
        for partial in partials:
            self._check(partial)

    def _load(self, level: int, name: int) -> Chunk:
        """Read a chunk and the next one; forget those that were read before."""
        while level >= len(self.chunks):
            self._grow()
        chunks, tail = self.chunks[level], self._tails[level]
        last = name + _READ_AHEAD if tail < 0 else min(name + _READ_AHEAD, tail)
        wanted = [n for n in range(name, max(last, name + 1)) if n == name or n not in chunks]
        keys = [self.key(level, n) for n in wanted]
        missing = [key for key in keys if key not in self.pending]
        found = dict(zip(missing, self.store.get_many(missing), strict=True)) if missing else {}
        for n, key in zip(wanted, keys, strict=True):
            data = self.pending.get(key) or found.get(key)
            if data is not None:
                chunks[n] = self._decoded(level, n, data)
            elif n == name:
                raise BadBytes(f"key {key!r} is not in the store: the window is damaged")
        for n in [n for n in chunks if n != tail and not name <= n < name + _READ_AHEAD]:
            del chunks[n]
        return chunks[name]

    def _decoded(self, level: int, name: int, data: bytes) -> Chunk:
        try:
            return self._schema.decode(data, self._owner(level, name))
        except BadBytes as error:
            raise BadBytes(f"key {self.key(level, name)!r}: {error}") from error

    def _grow(self) -> None:
        super()._grow()
        self._tails.append(-1)

    def _begin(self, level: int, name: int) -> Chunk:
        """A new chunk; the one before it is full, and waits to be written."""
        tail = self._tails[level]
        if tail != name and tail in self.chunks[level] and tail >= self._swept[level]:
            self.pending[self.key(level, tail)] = self.encoded(level, tail)
            for n in [n for n in self.chunks[level] if n < tail - 1]:
                if n > min(self.chunks[level]):  # the oldest is at the head, where rows leave
                    del self.chunks[level][n]
        self._tails[level] = name
        return super()._begin(level, name)

    def sweep(self, first: int, budget: int = 0) -> None:
        """Forget chunks before the oldest row; the store's are deleted with the next writes."""
        for level, chunks in enumerate(self.chunks):
            for name in [n for n in chunks if n < first >> level >> BITS]:
                del chunks[name]

    def dead(self, first: int) -> Iterator[tuple[int, int]]:
        """A few chunks of the store that lie before the oldest row, level and name."""
        budget = _DELETED_AT_ONCE
        for level, name in enumerate(self._swept):
            living = first >> level >> BITS
            while 0 <= name < living and budget:
                yield level, name
                name += 1  # noqa: PLW2901
                budget -= 1

    def deleted(self, chunks: list[tuple[int, int]]) -> None:
        """These are no longer in the store."""
        for level, name in chunks:
            self._swept[level] = name + 1

    @property
    def swept(self) -> list[int]:
        """Per level, the first chunk that may be in the store."""
        return self._swept

    def reopen(self, first: int, end: int, swept: list[int], counts: list[int]) -> None:
        """The chunks that were being filled: rows from the store, parents made again from them."""
        for level in range(max(len(counts), len(swept))):
            self._grow()
            self._swept[level] = swept[level] if level < len(swept) else -1
        for level, count in enumerate(counts):
            living = first >> level
            tail = count - 1 >> BITS
            self._tails[level] = tail
            if level == 0:
                chunk = self._load(0, tail)
                if len(chunk) < count - (tail << BITS):
                    raise BadBytes(f"key {self.key(0, tail)!r} holds too few rows")
                del chunk[count - (tail << BITS) :]
            else:
                chunk = [self._made(level, i, living, first) for i in range(tail << BITS, count)]
                self.chunks[level][tail] = chunk
            if self._swept[level] < 0:
                self._swept[level] = living >> BITS

    def _made(self, level: int, number: int, living: int, first: int) -> Partial:
        if number < living:
            return EMPTY
        head = first >> level - 1
        older, younger = (
            self.get(level - 1, child) if child >= head else EMPTY
            for child in (2 * number, 2 * number + 1)
        )
        return self.aggregate.merger()(older, younger)
