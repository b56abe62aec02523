"""Rows for every key, in cells: chunks of keys, of which a turn reads and writes its own.

A key's chunk follows from its hash. There are as many chunks as keep them at about ``CHUNK`` bytes:
with more keys the next one is split (linear hashing), one after the other, so that no turn has to
write everything anew.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from windrow.columns.approx.hashes import key_hashes
from windrow.columns.cells import Cell, Shelf
from windrow.columns.column import array_of, plain_column
from windrow.columns.key_runs import by_code
from windrow.columns.ranges import Array
from windrow.columns.stream_plan import Chunks

CHUNK = 1 << 17


def chunk_of(hashes: Array, count: int) -> Array:
    """The chunk of every key: the low bits of its hash, one fewer where that chunk is not there."""
    size = 1 << (count - 1).bit_length()
    low = (hashes & np.uint64(size - 1)).astype(np.int64)
    return np.where(low < count, low, low & (size >> 1) - 1)


def root_of(chunk: int, count: int) -> int:
    """The chunk, of ``count``, that has the keys of a chunk to come."""
    while chunk >= count:
        chunk ^= 1 << chunk.bit_length() - 1
    return chunk


def keys_of(table: pa.Table) -> list[pa.Array]:
    """The columns of the key."""
    names = [name for name in table.column_names if name.startswith("key.")]
    return [plain_column(table[name]) for name in names]


class KeyChunks:
    """The chunks of one shelf, during one turn; key columns are called ``key.0``, ``key.1``, ..."""

    def __init__(self, shelf: Shelf, at: Chunks) -> None:
        self.shelf, self.at = shelf, at

    def of(self, keys: list[pa.Array], size: int) -> Array:
        """The chunk of each of some keys."""
        return chunk_of(key_hashes(keys, size), self.at.count)

    def holding(self, keys: list[pa.Array], size: int) -> set[int]:
        """The chunks that some keys are in, as far as there are any."""
        return set(np.unique(self.of(keys, size)).tolist()) if self.at.count else set()

    def tables(self, chunks: Iterable[int]) -> list[pa.Table]:
        """What some chunks hold."""
        return [self.shelf[chunk].table for chunk in sorted(chunks)]

    @staticmethod
    def near(table: pa.Table, keys: list[pa.Array], size: int) -> Array:
        """Which rows of a table have one of some keys; a few others may be among them."""
        bits = max(16, (8 * size).bit_length())
        last = np.uint64((1 << bits) - 1)
        seen = np.zeros(1 << bits, np.bool_)
        seen[key_hashes(keys, size) & last] = True
        found: Array = seen[key_hashes(keys_of(table), table.num_rows) & last]
        return found

    def write(self, table: pa.Table, loaded: set[int], changed: set[int]) -> None:
        """What the loaded chunks hold now; those that changed are written.

        With more keys than fit, some are split, and others read for it.
        """
        at = self.at
        per_key = max(1, table.nbytes // max(1, table.num_rows))
        count = max(at.count, -(-at.keys * per_key // CHUNK), 1) if keys_of(table) else 1
        roots = (
            {root_of(chunk, at.count) for chunk in range(at.count, count)} if at.count else set()
        )
        more = [found.select(table.column_names) for found in self.tables(roots - loaded)]
        table = pa.concat_tables([table, *more]).combine_chunks()
        changed = changed | roots | set(range(at.count, count))
        at.count = count
        ids = self.of(keys_of(table), table.num_rows)
        order, offsets = by_code(ids, count, np.arange(len(ids)))
        ordered = table.take(array_of(order))
        for chunk in sorted(changed):
            start, end = offsets[chunk], offsets[chunk + 1]
            self.shelf[chunk] = Cell(ordered.slice(start, end - start).combine_chunks(), {})

    def clear(self) -> None:
        """Remove all."""
        for chunk in range(self.at.count):
            del self.shelf[chunk]
