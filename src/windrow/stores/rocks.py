"""RocksDB, in a folder of this machine."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from windrow.errors import StoreUnavailable, WindrowError
from windrow.stores.base import Expected, Store, require_expected

try:
    import rocksdict
except ImportError as error:
    raise ImportError(
        "windrow.stores.Rocks needs rocksdict: pip install 'windrow[stores]'"
    ) from error

BUFFER_BYTES = 4 << 20
"""Of each of two write buffers; and of the cache for what is read."""


class Rocks(Store):
    """A RocksDB database; one process at a time.

    What was written survives the process being killed; ``sync=True`` makes every write wait for the
    disk, so that it survives a power failure too. Memory is bounded: two write buffers and a cache
    of ``buffer_bytes`` each.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, sync: bool = False, buffer_bytes: int = BUFFER_BYTES
    ) -> None:
        self.path = os.fspath(path)
        self.buffer_bytes = buffer_bytes
        self._write_options = rocksdict.WriteOptions()
        self._write_options.sync = sync
        self._open: Any = None
        self._database  # noqa: B018

    @property
    def _database(self) -> Any:
        if self._open is None:
            try:
                self._open = rocksdict.Rdict(self.path, _options(self.buffer_bytes))
            except Exception as error:  # rocksdict raises nothing narrower
                locked = ". One process at a time can have it open" if "lock" in str(error) else ""
                raise StoreUnavailable(
                    f"RocksDB at {self.path!r} cannot be opened: {error}{locked}"
                ) from error
        return self._open

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under some keys."""
        self.calls += 1
        with self._said("read"):
            return list(self._database.get(list(keys)))

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Whatever the database raises, with where it is."""
        try:
            yield
        except WindrowError:
            raise
        except Exception as error:  # rocksdict raises nothing narrower
            raise StoreUnavailable(f"RocksDB at {self.path!r} did not {what}: {error}") from error

    def write(
        self,
        puts: Mapping[bytes, bytes],
        deletes: Iterable[bytes] = (),
        expected: Expected | None = None,
    ) -> None:
        """One write batch. (The folder's lock is what keeps other processes out.)"""
        self.calls += 1
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in puts.items():
            batch.put(key, value)
        for key in deletes:
            batch.delete(key)
        with self._said("write"):
            if expected is not None:
                require_expected(expected, self._database.get(expected[0]))
            self._database.write(batch, self._write_options)

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """All keys that begin so, in order."""
        self.calls += 1
        with self._said("read"):
            for key in self._database.keys(from_key=prefix):
                if not key.startswith(prefix):
                    return
                yield key

    def close(self) -> None:
        """Release the folder."""
        database, self._open = self._open, None
        if database is not None:
            with self._said("close"):
                database.close()

    def __repr__(self) -> str:
        return f"Rocks({self.path!r})"


def _options(buffer_bytes: int) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(buffer_bytes)
    options.set_max_write_buffer_number(2)
    options.set_max_total_wal_size(4 * buffer_bytes)
    options.set_keep_log_file_num(1)
    options.set_max_open_files(64)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(buffer_bytes))
    blocks.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(blocks)
    return options
